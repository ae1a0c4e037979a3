"""The smooth part of a linear model, of one output or of one for each class, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sublearn import _core
from sublearn.optim.linear_input import (
    check_features,
    check_row_weights,
    check_targets,
    refusal,
)
from sublearn.optim.row_losses import Huber, compiled_name
from sublearn.typing import Matrix, MatrixLike
from sublearn.validation import NameOr, as_n_threads, check_argument
from sublearn.validation.values import is_int64

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

__all__ = [
    "LOSS",
    "LinearData",
    "MultinomialData",
    "as_columns",
    "linear_data",
    "linear_objective",
    "multinomial_objective",
]

#: Losses of one row, f(z; y) for the prediction z = <x, w> + b.
LOSS = NameOr(Huber, ("logistic", "squared", "squared_hinge", "huber", "poisson"))
#: A problem as the core holds it.
LinearData: TypeAlias = (
    "_core.SparseLinearData32 | _core.SparseLinearData64 | "
    "_core.DenseLinearData32 | _core.DenseLinearData64"
)
MultinomialData: TypeAlias = (
    "_core.SparseMultinomial32 | _core.SparseMultinomial64 | "
    "_core.DenseMultinomial32 | _core.DenseMultinomial64"
)


def linear_objective(
    X: MatrixLike,
    y: ArrayLike,
    loss: str | Huber = "logistic",
    *,
    weights: ArrayLike | None = None,
    fit_intercept: bool = False,
    n_jobs: int | None = None,
) -> _core.SmoothObjective:
    r"""Compiled objective :math:`\sum_i s_i f(\langle x_i, w \rangle + b; y_i)`.

    Parameters
    ----------
    X : sparse matrix or dense array of shape (n_samples, n_features)
        float32 and float64 are used as they are.
    y : array of shape (n_samples,)
        -1 or 1 for "logistic" and "squared_hinge", non-negative for "poisson", any number else.
    loss : {"logistic", "squared", "squared_hinge", "huber", "poisson"} or Huber
        The loss of a row.
    weights : array of shape (n_samples,), optional
        :math:`s_i`; 1 / n_samples each if not given, so that the value is a mean.
    fit_intercept : bool
        Whether the last coordinate is an intercept.
    n_jobs : int or None, default=None
        Threads of the gradient; None means 1, -1 all processors.

    Returns
    -------
    objective
        With `size` and `value_and_gradient(x)`, for :func:`lhac`.

    Examples
    --------
    >>> import numpy as np
    >>> objective = linear_objective(np.eye(2), [1.0, -1.0])
    >>> value, gradient = objective.value_and_gradient(np.zeros(2))
    >>> round(value, 4), gradient.tolist()
    (0.6931, [-0.25, 0.25])
    """
    who = "linear_objective"
    check_argument(f"{who}.loss", loss, LOSS)
    name, parameter = compiled_name(loss)
    design = as_columns(check_features(who, X))
    targets = check_targets(who, y, design.shape[0], name)
    rows = check_row_weights(who, weights, design.shape[0])
    data = linear_data(design, targets, name, rows, fit_intercept, parameter)
    return data.objective(as_n_threads(n_jobs))


def as_columns(X: Matrix) -> Matrix:
    """`X` by columns: CSC with 32-bit indices, or a dense array in Fortran order."""
    dtype = X.dtype if X.dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.float64
    if isinstance(X, np.ndarray):
        return np.asfortranarray(X, dtype=dtype)
    X = X.tocsc()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.astype(dtype, copy=False)


def _csc_arrays(X: sp.csc_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, rows and values of the columns, with the integers of the core."""
    if X.nnz > np.iinfo(np.int32).max:
        raise ValueError(f"X must have at most 2^31 - 1 stored entries, got {X.nnz}")
    indptr, indices = (part.astype(np.int32, copy=False) for part in (X.indptr, X.indices))
    return indptr, indices, X.data


def linear_data(
    X: Matrix,
    y: np.ndarray,
    loss: str,
    weights: np.ndarray,
    fit_intercept: bool,
    parameter: float = 1.0,
    offsets: np.ndarray | None = None,
) -> LinearData:
    """The compiled form of a problem; `X` as :func:`as_columns` returns it."""
    rest = (
        np.ascontiguousarray(y, dtype=np.float64),
        np.ascontiguousarray(weights, dtype=np.float64),
        np.zeros(0) if offsets is None else np.ascontiguousarray(offsets, dtype=np.float64),
        loss,
        float(parameter),
        bool(fit_intercept),
    )
    if isinstance(X, np.ndarray):
        return _core.linear_data(X, *rest)
    return _core.linear_data(_csc_arrays(X), X.shape[0], *rest)


def multinomial_objective(
    X: MatrixLike,
    y_codes: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None = None,
    fit_intercept: bool = False,
    *,
    n_jobs: int | None = None,
) -> MultinomialData:
    r"""Compiled objective :math:`\sum_i s_i (\log \sum_k e^{z_{ik}} - z_{i y_i})`.

    Here :math:`z_{ik} = \langle x_i, w_k \rangle + b_k`. The coordinates are the entries of an
    array of shape (n_features, n_classes) row by row; with `fit_intercept` one more row holds b.

    Parameters
    ----------
    X : sparse matrix or dense array of shape (n_samples, n_features)
        float32 and float64 are used as they are.
    y_codes : array of int of shape (n_samples,)
        Classes, 0 to n_classes - 1.
    n_classes : int
        K, at least 2.
    weights : array of shape (n_samples,), optional
        :math:`s_i`; 1 / n_samples each if not given, so that the value is a mean.
    fit_intercept : bool
        Whether the last n_classes coordinates are intercepts. To leave them unpenalised, give
        :func:`lhac` an `l1` with zeros there (an `l2` reaches them all the same).
    n_jobs : int or None, default=None
        Threads of values and gradients; None means 1, -1 all processors. Their number changes no
        bit of the result.

    Returns
    -------
    objective
        With `size` and `value_and_gradient(x)`, for :func:`lhac`. It knows its dual as long as
        every coordinate has a penalty; with unpenalised intercepts :func:`lhac` stops by the
        subgradient.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.optim import lhac
    >>> objective = multinomial_objective(np.eye(3), [0, 1, 2], n_classes=3)
    >>> lhac(objective, np.zeros(9), l1=0.1, tol=1e-9).x.reshape(3, 3).round(2)
    array([[1.54, 0.  , 0.  ],
           [0.  , 1.54, 0.  ],
           [0.  , 0.  , 1.54]])
    """
    who = "multinomial_objective"
    design = as_columns(check_features(who, X))
    n_rows = design.shape[0]
    rest = (
        _codes(who, y_codes, n_rows, n_classes),
        check_row_weights(who, weights, n_rows),
        int(n_classes),
        bool(fit_intercept),
        as_n_threads(n_jobs),
    )
    if isinstance(design, np.ndarray):
        return _core.multinomial_objective(design, *rest)
    return _core.multinomial_objective(_csc_arrays(design), n_rows, *rest)


def _codes(who: str, y_codes: ArrayLike, n_rows: int, n_classes: int) -> np.ndarray:
    if not is_int64(n_classes) or not 2 <= n_classes < 2**31:
        raise refusal(who, "n_classes", "be an integer of at least 2", n_classes)
    codes = np.asarray(y_codes)
    if codes.shape != (n_rows,) or not np.issubdtype(codes.dtype, np.integer):
        raise refusal(who, "y_codes", f"be {n_rows} integers, one for each sample", y_codes)
    if n_rows and not 0 <= codes.min() <= codes.max() < n_classes:
        raise refusal(who, "y_codes", f"be classes 0 to {n_classes - 1}", y_codes)
    return np.ascontiguousarray(codes, dtype=np.int32)
