"""The linear part of a forecast: ridge regression whose coefficients change with the time of day.

A Gaussian kernel falls back to the mean far from its rows, where loads go on rising or falling
with their lags; so the kernel models learn what a linear model leaves. What yesterday says of
today is not the same at noon and when the lamps go on, hence

    f(x, tau) = <u, x> + sum_k b_k(tau) (<v_k, x'> + c_k)

with hat functions b_k of the time of day tau and x' those columns that may vary. Penalties of u
and of (v, c) are those of least squared error over contiguous quarters of the series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sublearn.interruption import check

__all__ = ["Line"]

_N_HATS, _FEWER_HATS = 24, 12  # an hour or two each
_MOST_PRODUCTS = 400  # of hats and columns, for all hats: a Gram matrix costs their square
_N_FOLDS = 4
_PENALTIES = [(u, v) for u in (1e-3, 0.03, 0.3, 1.0) for v in (0.3, 3.0, 30.0)]
_CHUNK = 4096  # rows whose products are in memory at once


@dataclass(frozen=True)
class Line:
    """Coefficients of all columns, and of the first `varying.shape[1] - 1` ones by hat."""

    fixed: np.ndarray
    varying: np.ndarray  # (n_hats, n_varying + 1), the last column is the constant

    @classmethod
    def fit(cls, Z: np.ndarray, z: np.ndarray, times: np.ndarray, n_varying: int) -> Line:
        """Of standardised rows Z in the order of time, times of day in [0, 1), centred target z."""
        d, n = Z.shape[1], len(Z)
        n_hats = _N_HATS if _N_HATS * (n_varying + 1) <= _MOST_PRODUCTS else _FEWER_HATS
        folds = np.array_split(np.arange(n), _N_FOLDS)
        sums = [_sums(Z[fold], z[fold], times[fold], n_varying, n_hats) for fold in folds]
        gram = np.sum([G for G, _ in sums], axis=0)
        moment = np.sum([b for _, b in sums], axis=0)

        def ridge(penalty: tuple[float, float]) -> np.ndarray:
            of_all, of_hats = penalty
            by_hat = np.full(len(moment) - d, of_hats / n_hats)
            return np.concatenate([np.full(d, of_all), by_hat])

        def error(penalty: tuple[float, float]) -> float:
            total = 0.0
            for fold, (G, b) in zip(folds, sums, strict=True):
                w = _solve(gram - G, moment - b, (n - len(fold)) * ridge(penalty))
                total += float(w @ G @ w - 2.0 * (b @ w))  # but for the sum of z^2
            return total

        w = _solve(gram, moment, n * ridge(min(_PENALTIES, key=error)))
        return cls(w[:d], w[d:].reshape(n_hats, n_varying + 1))

    def __call__(self, Z: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Values of rows."""
        by_row = _hats(times, len(self.varying)) @ self.varying
        n_varying = by_row.shape[1] - 1
        found: np.ndarray = Z @ self.fixed + by_row[:, -1]
        return found + np.einsum("ij,ij->i", by_row[:, :-1], Z[:, :n_varying])


def _solve(gram: np.ndarray, moment: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    check()
    A = gram.copy()
    A.flat[:: len(A) + 1] += ridge + 1e-9
    found: np.ndarray = scipy.linalg.solve(
        A, moment, assume_a="pos", check_finite=False, overwrite_a=True
    )
    return found


def _hats(times: np.ndarray, n_hats: int) -> np.ndarray:
    """Values of the periodic hat functions, which sum to 1."""
    away = np.abs(times[:, None] * n_hats - np.arange(n_hats))
    hats: np.ndarray = np.maximum(1.0 - np.minimum(away, n_hats - away), 0.0)
    return hats


def _sums(
    Z: np.ndarray, z: np.ndarray, times: np.ndarray, n_varying: int, n_hats: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix and moments of the products."""
    size = Z.shape[1] + n_hats * (n_varying + 1)
    gram, moment = np.zeros((size, size)), np.zeros(size)
    for start in range(0, len(Z), _CHUNK):
        check()
        part = slice(start, start + _CHUNK)
        own = np.hstack([Z[part, :n_varying], np.ones((len(Z[part]), 1))])
        products = (_hats(times[part], n_hats)[:, :, None] * own[:, None, :]).reshape(len(own), -1)
        rows = np.hstack([Z[part], products])
        gram += rows.T @ rows
        moment += rows.T @ z[part]
    return gram, moment
