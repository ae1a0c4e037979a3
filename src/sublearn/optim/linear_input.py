"""Data of linear models as their solvers take them, or a refusal that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from sublearn.errors import ParameterError
from sublearn.validation.design import says_if_vanishing
from sublearn.validation.native import as_native, refuse_large
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import show

__all__ = ["check_features", "check_numbers", "check_row_weights", "check_targets", "refusal"]


def refusal(who: str, name: str, must: str, value: Any) -> ParameterError:
    """The error *who.name must ..., got value*."""
    return ParameterError(f"{who}.{name} must {must}, got {show(value)}")


def check_features(who: str, X: Any) -> Any:
    """A dense array or a sparse matrix of finite float32 or float64 numbers."""
    X = check_layout(X, f"{who}.X")
    X = check_array(
        X, accept_sparse="csc", dtype=[np.float64, np.float32], estimator=who, input_name="X"
    )
    refuse_large(X.data if sp.issparse(X) else X, f"{who}.X", np.float64)
    return X if sp.issparse(X) else as_native(X)


def check_numbers(who: str, name: str, values: Any, length: int, per: str) -> np.ndarray:
    """`length` finite numbers as float64."""
    try:
        vector = as_native(np.ascontiguousarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise refusal(who, name, "be numbers", values) from error
    if vector.shape != (length,) or not np.isfinite(vector).all():
        raise refusal(who, name, f"be {length} finite numbers, one for each {per}", values)
    refuse_large(vector, f"{who}.{name}")
    return vector


def check_targets(who: str, y: Any, n_rows: int, loss: str) -> np.ndarray:
    """Targets that the loss is defined for."""
    targets = check_numbers(who, "y", y, n_rows, "sample")
    other = targets[~np.isin(targets, (-1, 1))]
    if loss in ("logistic", "squared_hinge") and len(other):
        raise refusal(who, "y", f"be -1 or 1 for the {loss} loss", float(other[0]))
    if loss == "poisson" and (targets < 0).any():
        raise refusal(who, "y", "be non-negative for the poisson loss", float(targets.min()))
    if loss in ("squared", "huber") and (must := says_if_vanishing(targets)):
        raise refusal(who, "y", must, float(np.abs(targets).max()))
    return targets


def check_row_weights(who: str, weights: Any, n_rows: int) -> np.ndarray:
    """Weights of the rows; equal ones that add up to 1 if none were given."""
    if weights is None:
        return np.full(n_rows, 1.0 / n_rows)
    numbers = check_numbers(who, "weights", weights, n_rows, "sample")
    if (numbers < 0).any() or not numbers.any():
        raise refusal(who, "weights", "be non-negative and not all zero", weights)
    return numbers
