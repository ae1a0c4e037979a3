"""Data of linear models as their solvers take them, or a refusal that names the argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_array

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.typing import Matrix, MatrixLike
from sublearn.validation.design import says_if_vanishing
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import as_native, refuse_large, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "check_features",
    "check_levels",
    "check_numbers",
    "check_row_weights",
    "check_targets",
    "compiled_penalty",
    "refusal",
]


def refusal(who: str, name: str, must: str, value: object) -> ParameterError:
    """The error *who.name must ..., got value*."""
    return ParameterError(f"{who}.{name} must {must}, got {show(value)}")


def check_features(who: str, X: MatrixLike) -> Matrix:
    """A dense array or a sparse matrix of finite float32 or float64 numbers."""
    X = check_array(
        check_layout(X, f"{who}.X"), accept_sparse="csc", dtype=[np.float64, np.float32],
        estimator=who, input_name="X",
    )  # fmt: skip
    is_dense = isinstance(X, np.ndarray)
    refuse_large(X if is_dense else X.data, f"{who}.X", np.float64)
    return as_native(X) if is_dense else X


def check_numbers(
    who: str, name: str, values: ArrayLike, per: str, length: int | None = None
) -> np.ndarray:
    """Finite numbers as float64, `length` of them if that is known."""
    try:
        vector = as_native(np.ascontiguousarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise refusal(who, name, "be numbers", values) from error
    shape = vector.shape if length is None else (length,)
    if len(shape) != 1 or shape == (0,) or vector.shape != shape or not np.isfinite(vector).all():
        wanted = "finite numbers" if length is None else f"{length} finite numbers"
        raise refusal(who, name, f"be {wanted}, one for each {per}", values)
    refuse_large(vector, f"{who}.{name}")
    return vector


def check_targets(who: str, y: ArrayLike, n_rows: int, loss: str) -> np.ndarray:
    """Targets that the loss is defined for."""
    targets = check_numbers(who, "y", y, "sample", n_rows)
    other = targets[~np.isin(targets, (-1, 1))]
    if loss in ("logistic", "squared_hinge", "hinge") and len(other):
        raise refusal(who, "y", f"be -1 or 1 for the {loss} loss", float(other[0]))
    if loss == "poisson" and (targets < 0).any():
        raise refusal(who, "y", "be non-negative for the poisson loss", float(targets.min()))
    if loss in ("squared", "huber") and (must := says_if_vanishing(targets)):
        raise refusal(who, "y", must, float(np.abs(targets).max()))
    return targets


def check_row_weights(who: str, weights: ArrayLike | None, n_rows: int) -> np.ndarray:
    """Weights of the rows; equal ones that add up to 1 if none were given."""
    if weights is None:
        return np.full(n_rows, 1.0 / n_rows)
    numbers = check_numbers(who, "weights", weights, "sample", n_rows)
    if (numbers < 0).any() or not numbers.any():
        raise refusal(who, "weights", "be non-negative and not all zero", weights)
    return numbers


def check_levels(who: str, l1: ArrayLike, size: int, per: str) -> np.ndarray:
    """The l1 weight of each coordinate."""
    values = np.full(size, l1) if np.ndim(l1) == 0 else l1
    levels = check_numbers(who, "l1", values, per, size)
    if (levels < 0).any():
        raise refusal(who, "l1", "be non-negative", l1)
    return levels


def compiled_penalty(who: str, l2: float, bounds: tuple[float, float]) -> _core.SeparablePenalty:
    """Squared norm and box as the core takes them; l1 is passed beside it."""
    try:
        lower, upper = (float(end) for end in bounds)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= 0 <= upper:
        raise refusal(who, "bounds", "be a pair of numbers with 0 between them", bounds)
    penalty = _core.SeparablePenalty()
    penalty.l2, penalty.lower, penalty.upper = float(l2), lower, upper
    return penalty
