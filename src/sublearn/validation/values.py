"""What counts as an integer or a number here, arrays as compiled code reads them, how a refused
value is shown."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from sublearn import _core

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "LARGEST",
    "as_native",
    "count_rows",
    "is_finite_number",
    "is_int64",
    "refuse_large",
    "show",
]

_MAX_SHOWN = 80
INT64_MAX = 2**63 - 1
#: The largest size of a value in each precision: sums of squares and of products stay finite.
LARGEST: dict[np.dtype, float] = {
    np.dtype(np.float32): _core.largest_value(True),
    np.dtype(np.float64): _core.largest_value(False),
}


def is_int64(value: object) -> TypeGuard[int]:
    """Whether `value` is an integer, not a bool, that the core can hold."""
    return _is_integer(value) and -INT64_MAX <= int(value) <= INT64_MAX


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a real number, not a bool, whose float is finite."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def count_rows(values: Any, name: str) -> int:
    """How many rows an array, a matrix or a list has; `name` heads the message of a refusal."""
    shape = getattr(values, "shape", None)
    if shape == () or (shape is None and not hasattr(values, "__len__")):
        raise ValueError(f"{name} must have rows, got {show(values)}")
    return len(values) if shape is None else int(shape[0])


def as_native(array: np.ndarray) -> np.ndarray:
    """`array` if it is aligned and in this machine's byte order, else a copy that is.

    NumPy lets arrays begin at any byte, as views of packed records and of files do; compiled code
    must not read their numbers where they stand.
    """
    if array.flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="K")


def refuse_large(values: np.ndarray, name: str, dtype: DTypeLike | None = None) -> None:
    """Raise if a finite number is too large to be computed with.

    Parameters
    ----------
    values : ndarray of float32 or float64
        The numbers.
    name : str
        What to call them.
    dtype : dtype, optional
        The precision in which they will be used; by default their own.
    """
    dtype = values.dtype if dtype is None else np.dtype(dtype)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > LARGEST[dtype]:
        raise ValueError(
            f"{name} must be at most {LARGEST[dtype]:g} in size in {dtype}, got {largest:g}"
        )


def show(value: object) -> str:
    """A refused value as it stands in an error message: short, and without NumPy's wrapping."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if _is_integer(value) and not is_int64(value):
        return "an integer of more than 64 bits"
    try:
        text = repr(value)
    except Exception:  # of an object whose parts do not fit, such as a malformed sparse matrix
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
