"""Functions of a mixture as linear functions of features, for linear models and for kernels.

A kernel's functions on N rows are those of the features Phi with Phi Phi' = Q, so that MixLasso's
kernel version (4.38) is its linear version on Phi. A degree-8 polynomial of one variable has nine
features whatever N is. With fewer basis rows than N this is the Nystroem approximation.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from sublearn.interruption import aside
from sublearn.io.fields import Fields, Floats, Integers, Number, OrAbsent, Record, check_fields
from sublearn.latent.stored_part import StoredPart
from sublearn.typing import State
from sublearn.validation import Boolean, NonNegative, OneOf, OrNone, Positive, Rule, Settings

__all__ = ["FeatureMap", "Kernel", "KernelMap", "LinearMap", "make_map", "restore_map"]

_LEAST_EIGENVALUE = 1e-12  # of the largest; the rest is rounding
_INDEFINITE = 1e-8  # of the largest: a negative eigenvalue that rounding does not explain
_ASYMMETRY = 1e-5  # of the largest entry of a kernel matrix, which may be of float32
_MOST_BASIS = 1000  # rows that span a kernel's functions unless n_basis says more


@dataclass(frozen=True)
class Kernel(Settings):
    r"""Space of the functions of a mixture.

    Parameters
    ----------
    kind : {"linear", "rbf", "poly", "precomputed"}, default="linear"
        With "precomputed" X is a kernel matrix: (n, n) for `fit`, (n_new, n) later.
    gamma : float or None, default=None
        Factor inside "rbf" and "poly"; None is one over the number of features.
    degree : int, default=3
        Of "poly", :math:`(\gamma \langle x, x' \rangle + c_0)^d`.
    coef0 : float, default=1.0
        :math:`c_0`.
    n_basis : int or None, default=None
        Random rows that span the functions (Nystroem). None is all, or 1,000 if there are more.
    """

    kind: str = "linear"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    n_basis: int | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "kind": OneOf("linear", "rbf", "poly", "precomputed"),
        "gamma": OrNone(Positive(float)),
        "degree": Positive(int),
        "coef0": NonNegative(float),
        "n_basis": OrNone(Positive(int)),
    }

    def options(self, n_features: int) -> dict[str, float]:
        """What scikit-learn's kernel of this kind is told."""
        if self.kind == "precomputed":
            return {}
        gamma = 1 / n_features if self.gamma is None else float(self.gamma)
        if self.kind == "rbf":
            return {"gamma": gamma}
        return {"gamma": gamma, "degree": int(self.degree), "coef0": float(self.coef0)}


class FeatureMap(StoredPart, abc.ABC):
    """From rows to features."""

    has_intercept: bool

    def features(self, X: np.ndarray) -> np.ndarray:
        """Phi, float64, with a column of ones if there is an intercept."""
        Phi = self._columns(X.astype(np.float64))
        return np.hstack([Phi, np.ones((len(X), 1))]) if self.has_intercept else Phi

    @abc.abstractmethod
    def _columns(self, X: np.ndarray) -> np.ndarray: ...

    @property
    @abc.abstractmethod
    def n_columns(self) -> int:
        """Columns of Phi."""


@dataclass(frozen=True)
class LinearMap(FeatureMap):
    """Columns of mean 0 and variance 1, and a column of ones; without intercept only scaled.

    A column that does not vary is left out next to an intercept, and has weight 0.
    """

    center: np.ndarray
    scale: np.ndarray
    has_intercept: bool

    FIELDS: ClassVar[Fields] = {
        "center": Floats("features"),
        "scale": Floats("features"),
        "has_intercept": Boolean(),
    }

    @classmethod
    def of(cls, X: np.ndarray, has_intercept: bool) -> LinearMap:
        """The map that fits the columns of `X`."""
        center = X.mean(axis=0) if has_intercept else np.zeros(X.shape[1])
        scale = np.sqrt(((X - center) ** 2).mean(axis=0))
        still = X.max(axis=0) == X.min(axis=0) if has_intercept else scale == 0
        scale[still | (scale == 0)] = np.inf
        return cls(center, scale, has_intercept)

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return (X - self.center) / self.scale

    @property
    def n_columns(self) -> int:
        """Columns of Phi."""
        return len(self.scale) + self.has_intercept

    def coef_and_intercept(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the columns as they were, and constants."""
        n = len(self.scale)
        coef = weights[:, :n] / self.scale
        constants = weights[:, n] if self.has_intercept else np.zeros(len(weights))
        return coef, constants - coef @ self.center


@dataclass(frozen=True)
class KernelMap(FeatureMap):
    """Phi(x) = k(x, basis) B, and a column of ones if there is an intercept."""

    kernel: str  # name of scikit-learn, or "precomputed"
    options: dict[str, float]  # of the kernel
    basis: np.ndarray  # rows; for "precomputed" their indices
    mixing: np.ndarray  # B, (n_basis, r): eigenvectors over the roots of their eigenvalues
    has_intercept: bool

    FIELDS: ClassVar[Fields] = {
        "options": Record(dict.fromkeys(("gamma", "degree", "coef0"), OrAbsent(Number()))),
        "mixing": Floats("basis", None),
        "has_intercept": Boolean(),
    }  # `restore_map` knows the others

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return self.against_basis(X) @ self.mixing

    @property
    def n_columns(self) -> int:
        """Columns of Phi."""
        return self.mixing.shape[1] + self.has_intercept

    def against_basis(self, X: np.ndarray) -> np.ndarray:
        """k(x, basis) of each row."""
        if self.kernel == "precomputed":
            return X[:, self.basis]
        return np.asarray(pairwise_kernels(X, self.basis, metric=self.kernel, **self.options))


def restore_map(kind: str, state: State, sizes: Mapping[str, int]) -> FeatureMap:
    """Inverse of `state` for a kernel, of rows with ``sizes["features"]`` columns."""
    if kind == "linear":
        return LinearMap.restored(state, sizes)
    is_given = kind == "precomputed"
    basis = Integers("basis", high="features") if is_given else Floats("basis", "features")
    check_fields(state, {"kernel": OneOf(kind), "basis": basis, **KernelMap.FIELDS}, sizes)
    return KernelMap(**state)


def make_map(kernel: Kernel, X: np.ndarray, has_intercept: bool, seed: int) -> FeatureMap:
    """The map for rows `X`, or for a kernel matrix."""
    if kernel.kind == "linear":
        return LinearMap.of(X.astype(np.float64), has_intercept)
    if kernel.kind == "precomputed":
        _check_kernel_matrix(X)
    n_basis = min(len(X), _MOST_BASIS if kernel.n_basis is None else int(kernel.n_basis))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:n_basis])
    return aside(_kernel_map, kernel, X, has_intercept, chosen, n_operations=10.0 * n_basis**3)


def _check_kernel_matrix(X: np.ndarray) -> None:
    head = "MixLassoRegressor: X must be a symmetric matrix for a precomputed kernel"
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"{head}, got shape {X.shape}")
    difference = float(np.abs(X - X.T).max())
    if difference > _ASYMMETRY * float(np.abs(X).max()):
        raise ValueError(f"{head}, got entries that differ by {difference:g}")


def _kernel_map(
    kernel: Kernel, X: np.ndarray, has_intercept: bool, chosen: np.ndarray
) -> KernelMap:
    """The map with the rows `chosen` as its basis; refuses a kernel with negative eigenvalues."""
    kind, options = kernel.kind, kernel.options(X.shape[1])
    rows = X[chosen].astype(np.float64)
    basis = chosen if kind == "precomputed" else rows
    Q = KernelMap(kind, options, basis, np.empty(0), False).against_basis(rows)
    values, vectors = np.linalg.eigh(0.5 * (Q + Q.T))  # SciPy's holds the lock of Python
    largest = max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -_INDEFINITE * len(values) * largest:
        raise ValueError(
            "MixLassoRegressor: X must be a positive semidefinite kernel matrix for "
            f"Kernel({kind!r}), got an eigenvalue of {values[0]:g} next to {largest:g}"
        )
    kept = values > _LEAST_EIGENVALUE * largest
    mixing = (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return KernelMap(kind, options, basis, np.ascontiguousarray(mixing), has_intercept)
