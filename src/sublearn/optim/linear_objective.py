"""The smooth part of a linear model as a compiled objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.optim.linear_input import (
    check_features,
    check_row_weights,
    check_targets,
    refusal,
)
from sublearn.validation import Positive, check_argument

__all__ = ["LOSSES", "linear_data", "linear_objective"]

#: Losses of one row, f(z; y) for the prediction z = <x, w> + b.
LOSSES = ("logistic", "squared", "squared_hinge", "huber", "poisson")


def linear_objective(
    X: Any,
    y: Any,
    loss: str = "logistic",
    *,
    weights: Any = None,
    fit_intercept: bool = False,
    huber_delta: float = 1.35,
    n_threads: int = 1,
) -> Any:
    r"""Compiled objective :math:`\sum_i s_i f(\langle x_i, w \rangle + b; y_i)`.

    Parameters
    ----------
    X : sparse matrix or dense array of shape (n_samples, n_features)
        float32 and float64 are used as they are.
    y : array of shape (n_samples,)
        -1 or 1 for "logistic" and "squared_hinge", non-negative for "poisson", any number else.
    loss : {"logistic", "squared", "squared_hinge", "huber", "poisson"}
        The loss of a row.
    weights : array of shape (n_samples,), optional
        :math:`s_i`; 1 / n_samples each if not given, so that the value is a mean.
    fit_intercept : bool
        Whether the last coordinate is an intercept.
    huber_delta : float
        Where Huber's loss turns from a square into a line.
    n_threads : int
        Threads of the gradient.

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
    if loss not in LOSSES:
        raise refusal(who, "loss", f"be one of {', '.join(LOSSES)}", loss)
    check_argument(f"{who}.huber_delta", huber_delta, Positive(float))
    design = as_columns(check_features(who, X))
    targets = check_targets(who, y, design.shape[0], loss)
    rows = check_row_weights(who, weights, design.shape[0])
    return linear_data(design, targets, loss, rows, fit_intercept, huber_delta).objective(n_threads)


def as_columns(X: Any) -> Any:
    """`X` by columns: CSC with 32-bit indices, or a dense array in Fortran order."""
    dtype = X.dtype if X.dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.float64
    if not sp.issparse(X):
        return np.asfortranarray(X, dtype=dtype)
    X = X.tocsc()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.astype(dtype, copy=False)


def linear_data(
    X: Any, y: Any, loss: str, weights: Any, fit_intercept: bool, parameter: float = 1.0
) -> Any:
    """The compiled form of a problem; `X` as :func:`as_columns` returns it."""
    n_rows = X.shape[0]
    if weights is None:
        weights = np.full(n_rows, 1.0 / n_rows)
    rest = (
        np.ascontiguousarray(y, dtype=np.float64),
        np.ascontiguousarray(weights, dtype=np.float64),
        loss,
        float(parameter),
        bool(fit_intercept),
    )
    if not sp.issparse(X):
        return _core.linear_data(X, *rest)
    if X.nnz > np.iinfo(np.int32).max:
        raise ValueError(f"X must have at most 2^31 - 1 stored entries, got {X.nnz}")
    indptr = X.indptr.astype(np.int32, copy=False)
    indices = X.indices.astype(np.int32, copy=False)
    return _core.linear_data((indptr, indices, X.data), n_rows, *rest)
