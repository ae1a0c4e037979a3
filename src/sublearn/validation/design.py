"""Features by column and numeric targets, for solvers that visit one feature at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array, column_or_1d

from sublearn import _core
from sublearn.typing import LabelsLike, Matrix, MatrixLike, WeightsLike
from sublearn.validation.features import as_csr, sum_duplicates, validate_numbers
from sublearn.validation.values import as_native, is_finite_number, refuse_large, show
from sublearn.validation.weights import as_weights

if TYPE_CHECKING:
    pass

__all__ = [
    "Design",
    "check_design",
    "check_new_rows",
    "check_penalty_weights",
    "check_targets",
    "column_extremes",
    "says_if_vanishing",
]

_DTYPES = [np.float64, np.float32]
_LEAST = 1e-150  # the square is a number, and so is a gap of 1e-7 of it


@dataclass(frozen=True)
class Design:
    """Columns that a solver reads, and what one pass over them showed.

    Parameters
    ----------
    X : csc_matrix or ndarray in Fortran order
        The columns.
    low, high : ndarray of shape (n_features,)
        The least and the largest entry of each.
    """

    X: Matrix
    low: np.ndarray
    high: np.ndarray


def check_design(estimator: object, X: MatrixLike) -> Design:
    """`X` as the columns that a solver reads: a CSC matrix, or a dense array in Fortran order.

    Accepts what :func:`sublearn.validation.check_features` accepts, and keeps float32 and float64.
    Sparse input stays sparse and dense input dense; a dense array in C order is copied once, CSC
    and Fortran order are used as they are. The caller's matrix is never modified.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What the user passed.

    Returns
    -------
    Design
        With `X` of shape (n_samples, n_features).
    """
    X = validate_numbers(
        estimator, X, reset=True, accept_sparse="csc", order="F", dtype=_DTYPES,
        ensure_all_finite=False,
    )  # fmt: skip
    if sp.issparse(X):
        if X.data.size and not np.isfinite(X.data.sum()):
            assert_all_finite(X.data, input_name="X")
        X = sum_duplicates(as_csr(X.T)).T
    low, high = column_extremes(X)
    if not np.isfinite(low).all():
        assert_all_finite(X.data if sp.issparse(X) else X, input_name="X")
    for extremes in (low, high):
        refuse_large(extremes, f"{type(estimator).__name__}: X", np.float64)
    return Design(X, low, high)


def column_extremes(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest entry of each column of a CSC matrix or a Fortran-ordered array.

    Both are NaN for a column with an entry that is not finite.
    """
    if isinstance(X, np.ndarray):
        return _core.column_extremes(np.asfortranarray(X))
    return _core.column_extremes(X.indptr, X.data, X.shape[0])


def check_new_rows(estimator: object, X: MatrixLike) -> Matrix:
    """`X` for prediction: CSR, CSC or dense, compared with what `fit` got."""
    X = validate_numbers(estimator, X, reset=False, accept_sparse=["csr", "csc"], dtype=_DTYPES)
    values = X.data if sp.issparse(X) else X
    refuse_large(values, f"{type(estimator).__name__}: X", np.float64)
    return X


def check_targets(y: LabelsLike, n_samples: int, *, estimator_name: str) -> np.ndarray:
    """One finite float64 per sample."""
    if y is None:
        raise ValueError(
            f"This {estimator_name} estimator requires y to be passed, but the target y is None."
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "OU":
        y = _as_numbers(y, estimator_name)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0)
    if len(y) != n_samples:
        raise ValueError(
            f"{estimator_name}: y must have one number for each of {n_samples} samples, "
            f"got {len(y)}"
        )
    refuse_large(y, f"{estimator_name}: y")
    return np.ascontiguousarray(as_native(y))


def check_penalty_weights(
    weights: WeightsLike | None, n_features: int, *, estimator_name: str
) -> np.ndarray:
    """One non-negative float64 per feature; ones if `weights` is None."""
    if weights is None:
        return np.ones(n_features)
    name = f"{estimator_name}.penalty_weights"
    found = as_weights(weights, name)
    if found.shape != (n_features,):
        raise ValueError(
            f"{name} must have one weight for each of {n_features} features, "
            f"got an array of shape {found.shape}"
        )
    return found


def says_if_vanishing(y: np.ndarray) -> str | None:
    """What `y` must be for a loss of squares, if all of its squares would vanish."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0 or largest >= _LEAST:
        return None
    return (
        f"be 0 or reach {_LEAST:g} in size, since the squares of smaller numbers vanish (multiply "
        "y and l1 by one number)"
    )


def _as_numbers(y: np.ndarray, estimator_name: str) -> np.ndarray:
    wrong = [value for value in y.tolist() if not isinstance(value, float)]
    wrong = [value for value in wrong if not is_finite_number(value)]
    if wrong:
        raise ValueError(f"{estimator_name}: y must be numbers, got {show(wrong[0])}")
    return y.astype(np.float64)
