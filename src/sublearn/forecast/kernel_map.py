"""Explicit features whose inner products are those of a Gaussian kernel, nearly or in the mean.

With either map a kernel method on N rows is a linear one on N x m features: K = Phi Phi' is never
formed, and 100,000 rows need 100,000 x m numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.linalg

from sublearn.interruption import check
from sublearn.io.fields import Floats, check_fields

__all__ = ["FourierMap", "KernelMap", "NystroemMap", "gaussian_kernel", "make_map", "restore_map"]

_JITTER = 1e-8
_CHUNK = 8192  # rows at a time: bounds the memory for kernel values


def gaussian_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(-1/2 |a - b|^2) of all pairs of rows."""
    squares = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B)
    squares -= 2.0 * (A @ B.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -0.5
    return np.exp(squares, out=squares)


class KernelMap(Protocol):
    """Rows to features."""

    @property
    def n_features(self) -> int:
        """Columns of the features."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""

    def to_state(self) -> dict[str, np.ndarray]:
        """Arrays that make the same map again."""


@dataclass(frozen=True)
class NystroemMap:
    """phi(x) = L^-1 k(Z, x) for landmarks Z, L L' = k(Z, Z): exact on the landmarks' span."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "landmarks": Floats("map", "columns", bits=64),
        "whitening": Floats("map", "map", bits=64),
    }

    landmarks: np.ndarray
    whitening: np.ndarray  # L^-1, lower triangular

    @classmethod
    def fit(cls, X: np.ndarray, n_features: int, rng: np.random.Generator) -> NystroemMap:
        """Landmarks are random rows of X, all of them if there are fewer."""
        Z = np.ascontiguousarray(X[rng.permutation(len(X))[:n_features]])
        K = gaussian_kernel(Z, Z)
        K.flat[:: len(Z) + 1] += _JITTER * len(Z)
        L = scipy.linalg.cholesky(K, lower=True, check_finite=False)
        identity = np.eye(len(Z))
        return cls(Z, scipy.linalg.solve_triangular(L, identity, lower=True, check_finite=False))

    @property
    def n_features(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""
        out = np.empty((len(X), self.n_features))
        for i in range(0, len(X), _CHUNK):
            check()
            K = gaussian_kernel(X[i : i + _CHUNK], self.landmarks)
            np.matmul(K, self.whitening.T, out=out[i : i + _CHUNK])
        return out

    def to_state(self) -> dict[str, np.ndarray]:
        """Arrays that make the same map again."""
        return {"landmarks": self.landmarks, "whitening": self.whitening}


@dataclass(frozen=True)
class FourierMap:
    """phi(x) = sqrt(2 / m) cos(W x + b): random features of Rahimi and Recht."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "frequencies": Floats("map", "columns", bits=64),
        "phases": Floats("map", bits=64),
    }

    frequencies: np.ndarray  # (m, d)
    phases: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, n_features: int, rng: np.random.Generator) -> FourierMap:
        """Frequencies are standard normal, the spectrum of the Gaussian kernel."""
        W = rng.standard_normal((n_features, X.shape[1]))
        return cls(W, rng.uniform(0.0, 2 * np.pi, n_features))

    @property
    def n_features(self) -> int:
        """Number of frequencies."""
        return len(self.phases)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""
        return np.sqrt(2.0 / self.n_features) * np.cos(X @ self.frequencies.T + self.phases)

    def to_state(self) -> dict[str, np.ndarray]:
        """Arrays that make the same map again."""
        return {"frequencies": self.frequencies, "phases": self.phases}


_MAPS: dict[str, Any] = {"nystroem": NystroemMap, "fourier": FourierMap}


def make_map(kind: str, X: np.ndarray, n_features: int, rng: np.random.Generator) -> KernelMap:
    """The map called `kind`, fitted to the rows of X."""
    fitted: KernelMap = _MAPS[kind].fit(X, n_features, rng)
    return fitted


def restore_map(state: dict[str, Any], n_columns: int) -> KernelMap:
    """Inverse of `to_state`, for rows of so many columns."""
    cls = NystroemMap if "landmarks" in state else FourierMap
    check_fields(state, cls.FIELDS, {"columns": n_columns})
    return cls(**state)
