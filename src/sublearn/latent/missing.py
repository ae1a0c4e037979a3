"""Rows with missing entries: how they are read, and what the entries beside them say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sublearn.io.fields import Fields, Floats
from sublearn.latent.stored_part import StoredPart
from sublearn.typing import MatrixLike
from sublearn.validation.features import validate_numbers

__all__ = ["GaussianFill", "read_rows"]

_DTYPES = [np.float64, np.float32]
_MOST_STEPS = 50
_TOL = 1e-4  # of the columns' spread, by which entries still move
_RIDGE = 1e-6  # of the variances: columns may be equal


def read_rows(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool, allows_nan: bool, most: float
) -> np.ndarray:
    """`X` as a dense array, in which NaN stands for missing entries if they are allowed.

    An entry larger than `most` is refused.
    """
    name = type(estimator).__name__
    try:
        X = validate_numbers(
            estimator, X, reset=reset, dtype=_DTYPES, accept_sparse="csr",
            ensure_all_finite="allow-nan" if allows_nan else True,
        )  # fmt: skip
    except ValueError as error:
        if "NaN" in str(error) and not allows_nan:
            fact = str(error).partition("\n")[0]  # then scikit-learn praises estimators of its own
            raise ValueError(
                f"{fact}\n{name} leaves missing values out of the fit with missing='mask'"
            ) from None
        raise
    X = X.toarray() if hasattr(X, "toarray") else X
    largest = float(np.nanmax(np.abs(X), initial=np.float32(0)))
    if largest > most:
        raise ValueError(f"{name}: X must be at most {most:g} in size, got {largest:g}")
    is_empty = np.isnan(X).all(axis=0)
    if reset and is_empty.any():
        column = int(np.argmax(is_empty))
        raise ValueError(
            f"{name}: X must have an entry in each column, got none in column {column}"
        )
    return X


@dataclass(frozen=True)
class GaussianFill(StoredPart):
    """Mean and covariance of rows; an entry is filled by its mean given those that are there."""

    FIELDS: ClassVar[Fields] = {
        "mean": Floats("features", finite=True),
        "covariance": Floats("features", "features", finite=True),
    }

    mean: np.ndarray
    covariance: np.ndarray  # with a ridge

    @classmethod
    def of(cls, X: np.ndarray) -> GaussianFill:
        """The likeliest ones for rows of which NaN is missing, by EM."""
        mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        fill = cls(mean, np.diag(_lifted(spread**2)))
        filled = fill(X)
        for _ in range(_MOST_STEPS):
            centred = filled - filled.mean(axis=0)
            covariance = (centred.T @ centred + fill._blur(X)) / len(X)
            covariance.flat[:: len(spread) + 1] = _lifted(covariance.diagonal())
            fill = cls(filled.mean(axis=0), covariance)
            last, filled = filled, fill(X)
            if (np.abs(filled - last) <= _TOL * spread).all():
                break
        return fill

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """A copy of `X` without NaN, of its dtype."""
        out = X.copy()
        for rows, gone, there, slopes in self._patterns(X):
            known = X[np.ix_(rows, there)].astype(np.float64) - self.mean[there]
            out[np.ix_(rows, gone)] = self.mean[gone] + known @ slopes
        return out

    def _blur(self, X: np.ndarray) -> np.ndarray:
        """Sum over rows of the covariance that missing entries keep given the others."""
        total = np.zeros_like(self.covariance)
        for rows, gone, there, slopes in self._patterns(X):
            own = self.covariance[np.ix_(gone, gone)]
            total[np.ix_(gone, gone)] += len(rows) * (
                own - self.covariance[np.ix_(gone, there)] @ slopes
            )
        return total

    def _patterns(
        self, X: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Rows that miss the same entries, these, the others, and the slopes from them."""
        is_gone = np.isnan(X)
        affected = np.flatnonzero(is_gone.any(axis=1))
        patterns, which = np.unique(is_gone[affected], axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            gone, there = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            between = self.covariance[np.ix_(there, gone)]
            slopes = np.linalg.solve(self.covariance[np.ix_(there, there)], between)
            yield affected[which.ravel() == i], gone, there, slopes


def _lifted(variances: np.ndarray) -> np.ndarray:
    """A little more than they are, and above zero where a column is constant."""
    return variances + _RIDGE * np.maximum(variances, max(float(variances.mean()), 1e-300))
