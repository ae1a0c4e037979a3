"""Functions of a mixture as linear functions of features, for linear models and for kernels.

A kernel's functions on N rows are those of the features Phi with Phi Phi' = Q, so that MixLasso's
kernel version (4.38) is its linear version on Phi. A degree-8 polynomial of one variable has nine
features whatever N is. With fewer basis rows than N this is the Nystroem approximation.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from sublearn.io.fields import Floats, Integers, Number, OrAbsent, Record, check_fields
from sublearn.validation import Boolean, OneOf

__all__ = ["FeatureMap", "KernelMap", "LinearMap", "make_kernel_map", "restore_map"]

_LEAST_EIGENVALUE = 1e-12  # of the largest; the rest is rounding
_INDEFINITE = 1e-8  # of the largest: a negative eigenvalue that rounding does not explain


class FeatureMap(abc.ABC):
    """From rows to features."""

    @abc.abstractmethod
    def features(self, X: np.ndarray) -> np.ndarray:
        """Phi, float64."""

    @property
    @abc.abstractmethod
    def n_columns(self) -> int:
        """Columns of Phi."""

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """What a saved model keeps."""


@dataclass(frozen=True)
class LinearMap(FeatureMap):
    """Columns of mean 0 and variance 1, and a column of ones; without intercept only scaled.

    A column that does not vary is left out next to an intercept, and has weight 0.
    """

    center: np.ndarray
    scale: np.ndarray
    has_intercept: bool

    @classmethod
    def of(cls, X: np.ndarray, has_intercept: bool) -> LinearMap:
        """The map that fits the columns of `X`."""
        center = X.mean(axis=0) if has_intercept else np.zeros(X.shape[1])
        scale = np.sqrt(((X - center) ** 2).mean(axis=0))
        still = X.max(axis=0) == X.min(axis=0) if has_intercept else scale == 0
        scale[still | (scale == 0)] = np.inf
        return cls(center, scale, has_intercept)

    def features(self, X: np.ndarray) -> np.ndarray:
        """Phi, float64."""
        scaled = (X.astype(np.float64) - self.center) / self.scale
        return np.hstack([scaled, np.ones((len(X), 1))]) if self.has_intercept else scaled

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

    def state(self) -> dict[str, Any]:
        """What a saved model keeps."""
        return {"center": self.center, "scale": self.scale, "has_intercept": self.has_intercept}


@dataclass(frozen=True)
class KernelMap(FeatureMap):
    """Phi(x) = k(x, basis) B, and a column of ones if there is an intercept.

    Parameters
    ----------
    kernel : str
        Name of scikit-learn, or "precomputed".
    options : dict
        Of the kernel.
    basis : ndarray
        Rows; for "precomputed" their indices.
    mixing : ndarray of shape (n_basis, r)
        B, eigenvectors over the roots of their eigenvalues.
    has_intercept : bool
        Add the column of ones.
    """

    kernel: str
    options: dict[str, float]
    basis: np.ndarray
    mixing: np.ndarray
    has_intercept: bool

    def features(self, X: np.ndarray) -> np.ndarray:
        """Phi, float64."""
        Phi = self._against_basis(X) @ self.mixing
        return np.hstack([Phi, np.ones((len(X), 1))]) if self.has_intercept else Phi

    @property
    def n_columns(self) -> int:
        """Columns of Phi."""
        return self.mixing.shape[1] + self.has_intercept

    def _against_basis(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(np.float64)
        if self.kernel == "precomputed":
            return X[:, self.basis]
        return np.asarray(pairwise_kernels(X, self.basis, metric=self.kernel, **self.options))

    def state(self) -> dict[str, Any]:
        """What a saved model keeps."""
        return {
            "kernel": self.kernel, "options": self.options, "basis": self.basis,
            "mixing": self.mixing, "has_intercept": self.has_intercept,
        }  # fmt: skip


def restore_map(kernel: str, state: dict[str, Any], sizes: Mapping[str, int]) -> FeatureMap:
    """Inverse of `state` for a kernel, of rows with ``sizes["features"]`` columns."""
    if kernel == "linear":
        numbers = Floats("features")
        table: dict[str, Any] = {"center": numbers, "scale": numbers, "has_intercept": Boolean()}
        check_fields(state, table, sizes)
        return LinearMap(**state)
    is_given = kernel == "precomputed"
    rows = Integers("basis", high="features") if is_given else Floats("basis", "features")
    option = OrAbsent(Number())
    check_fields(
        state,
        {
            "kernel": OneOf(kernel),
            "options": Record(dict.fromkeys(("gamma", "degree", "coef0"), option)),
            "basis": rows,
            "mixing": Floats("basis", None),
            "has_intercept": Boolean(),
        },
        sizes,
    )
    return KernelMap(**state)


def make_kernel_map(
    X: np.ndarray, kernel: str, options: dict[str, float], has_intercept: bool,
    chosen: np.ndarray,
) -> KernelMap:  # fmt: skip
    """The map with the rows `chosen` as its basis; refuses a kernel with negative eigenvalues."""
    is_given = kernel == "precomputed"
    basis = chosen if is_given else X[chosen].astype(np.float64)
    bare = KernelMap(kernel, options, basis, np.eye(len(chosen)), False)
    Q = bare.features(X[chosen])
    values, vectors = np.linalg.eigh(0.5 * (Q + Q.T))  # SciPy's holds the lock of Python
    largest = max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -_INDEFINITE * len(values) * largest:
        raise ValueError(
            "MixLassoRegressor: X must be a positive semidefinite kernel matrix for "
            f"kernel={kernel!r}, got an eigenvalue of {values[0]:g} next to {largest:g}"
        )
    kept = values > _LEAST_EIGENVALUE * largest
    mixing = (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return KernelMap(kernel, options, basis, np.ascontiguousarray(mixing), has_intercept)
