"""The multinomial logistic loss of a linear model as a compiled objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sublearn import _core
from sublearn.optim.linear_input import check_features, check_row_weights, refusal
from sublearn.optim.linear_objective import as_columns, csc_arrays
from sublearn.typing import MatrixLike
from sublearn.validation import as_n_threads
from sublearn.validation.values import is_int64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["MultinomialData", "multinomial_objective"]

#: The objective as the core holds it.
MultinomialData: TypeAlias = (
    "_core.SparseMultinomial32 | _core.SparseMultinomial64 | "
    "_core.DenseMultinomial32 | _core.DenseMultinomial64"
)
_NAME = "multinomial_objective"


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
    design = as_columns(check_features(_NAME, X))
    n_rows = design.shape[0]
    rest = (
        _codes(y_codes, n_rows, n_classes),
        check_row_weights(_NAME, weights, n_rows),
        int(n_classes),
        bool(fit_intercept),
        as_n_threads(n_jobs),
    )
    if isinstance(design, np.ndarray):
        return _core.multinomial_objective(design, *rest)
    return _core.multinomial_objective(csc_arrays(design), n_rows, *rest)


def _codes(y_codes: ArrayLike, n_rows: int, n_classes: int) -> np.ndarray:
    if not is_int64(n_classes) or not 2 <= n_classes < 2**31:
        raise refusal(_NAME, "n_classes", "be an integer of at least 2", n_classes)
    codes = np.asarray(y_codes)
    if codes.shape != (n_rows,) or not np.issubdtype(codes.dtype, np.integer):
        raise refusal(_NAME, "y_codes", f"be {n_rows} integers, one for each sample", y_codes)
    if n_rows and not 0 <= codes.min() <= codes.max() < n_classes:
        raise refusal(_NAME, "y_codes", f"be classes 0 to {n_classes - 1}", y_codes)
    return np.ascontiguousarray(codes, dtype=np.int32)
