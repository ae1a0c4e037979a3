r"""Many least-squares problems on the same rows: one pass over the data serves them all.

.. math:: \min_{w, b} \frac1{2N} \|X w + b - y_k\|^2 + \lambda \|w\|_1, \qquad k = 1, 2, \dots

The data enter through :math:`G = Z^\top Z` and :math:`c_k = Z^\top y_k` alone, Z the columns of X
with their means taken off. From :math:`G = R^\top R` follow as many rows as G has rank,
:math:`R w \approx q_k` with :math:`R^\top q_k = c_k`, and one row of zeros for what no weights can
explain: a problem with the same value at all weights, which any solver takes in place of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from sublearn.optim.linear_problem import LinearProblem
from sublearn.optim.row_losses import Squared
from sublearn.typing import Matrix

__all__ = ["SqueezedRows", "is_squeezing_cheaper", "squeeze_rows"]

_BLOCK = 2**22  # entries of a block of dense rows
_MOST_ENTRIES = 2**26  # of X'X, and of the new targets: half a gigabyte each
# Nanoseconds, as measured by `benchmarks/run.py --only hierarchy`.
_SOLVE = 10.0  # of a solve, for each entry of the rows
_SPARSE_PRODUCT = 6.0  # of a multiplication inside X'X
_DENSE_PRODUCT = 0.06
_MARGIN = 2.0  # how many times larger than R the rows must be: R is dense


@dataclass(frozen=True, eq=False)
class SqueezedRows:
    """Rows that stand for all others, with targets for each problem.

    Parameters
    ----------
    X : ndarray of shape (rank + 1, n_features)
        R, scaled so that means over its rows are means over the rows it stands for.
    targets : ndarray of shape (rank + 1, n_problems)
        q of each problem, and what no weights can explain.
    means : ndarray of shape (n_features,)
        What was taken off the columns; zeros without an intercept.
    target_means : ndarray of shape (n_problems,)
        What was taken off the targets.
    """

    X: np.ndarray
    targets: np.ndarray
    means: np.ndarray
    target_means: np.ndarray

    def problem(self, k: int) -> LinearProblem:
        """Problem k; the intercept is not in it."""
        n_rows = len(self.X)
        y = np.ascontiguousarray(self.targets[:, k])
        return LinearProblem(self.X, y, np.full(n_rows, 1.0 / n_rows), Squared(), False)

    def intercept(self, k: int, w: np.ndarray) -> float:
        """The best intercept beside the weights of problem k."""
        return float(self.target_means[k] - self.means @ w)


def is_squeezing_cheaper(X: Matrix, n_problems: int) -> bool:
    """Whether X'X and solves on R are faster than solves on the rows, by the entries they read."""
    n_rows, n_features = X.shape
    if (n_features + 1) * max(n_features, n_problems) > _MOST_ENTRIES:
        return False
    if isinstance(X, np.ndarray):
        n_entries, product = float(X.size), _DENSE_PRODUCT
    else:
        n_entries, product = float(X.nnz), _SPARSE_PRODUCT
    per_row = n_entries / max(1, n_rows)  # as if all rows had as many
    making = product * n_entries * per_row
    saved = _SOLVE * n_problems * (n_entries - _MARGIN * n_features**2)
    return making < saved


def squeeze_rows(
    X: Matrix,
    Y: sp.csc_matrix,
    fit_intercept: bool,
    asks_to_stop: Callable[[], bool] = lambda: False,
) -> SqueezedRows:
    """R and q of all columns of `Y`, from one pass over the rows, or as far as that came."""
    n_rows, n_features = X.shape
    means = _means(X) if fit_intercept else np.zeros(n_features)
    target_means = _means(Y) if fit_intercept else np.zeros(Y.shape[1])
    G, c = _products(X, Y, means, asks_to_stop)
    squares = np.asarray(Y.multiply(Y).sum(axis=0), dtype=np.float64).ravel()
    squares -= n_rows * target_means**2
    R, order, rank = _factor(G)
    q = solve_triangular(R[:rank, :rank], c[order[:rank]], trans="T")
    scale = np.sqrt((rank + 1) / n_rows)
    rows = np.zeros((rank + 1, n_features), order="F")
    rows[:rank, order] = scale * R[:rank]
    rest = np.sqrt(np.maximum(squares - np.einsum("ij,ij->j", q, q), 0.0))
    return SqueezedRows(rows, scale * np.vstack([q, rest]), means, target_means)


def _means(X: Matrix) -> np.ndarray:
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def _products(
    X: Matrix, Y: sp.csc_matrix, means: np.ndarray, asks_to_stop: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Z'Z and Z'Y in float64. Means are taken off dense rows before, and off products after."""
    n_rows, n_features = X.shape
    if not isinstance(X, np.ndarray):
        exact = X.astype(np.float64)
        G = (exact.T @ exact).toarray() - n_rows * np.outer(means, means)
        sums = np.asarray(Y.sum(axis=0)).ravel()
        return G, (exact.T @ Y).toarray() - np.outer(means, sums)
    by_row = Y.tocsr().astype(np.float64)
    G, c = np.zeros((n_features, n_features)), np.zeros((n_features, Y.shape[1]))
    n_block = max(1, _BLOCK // max(1, n_features))
    for at in range(0, n_rows, n_block):
        if asks_to_stop():
            break
        Z = X[at : at + n_block] - means
        G += Z.T @ Z
        c += (by_row[at : at + n_block].T @ Z).T
    return G, c


def _factor(G: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """R, upper triangular, with G[order][:, order] = R'R, and how many of its rows count."""
    R, order, rank, _ = dpstrf(G)
    return np.triu(R), order - 1, int(rank)
