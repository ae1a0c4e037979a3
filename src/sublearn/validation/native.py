"""Dense arrays as compiled code reads them, and numbers that it can square and add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sublearn import _core

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["LARGEST", "as_native", "refuse_large"]

#: The largest size of a value in each precision: sums of squares and of products stay finite.
LARGEST: dict[np.dtype, float] = {
    np.dtype(np.float32): _core.largest_value(True),
    np.dtype(np.float64): _core.largest_value(False),
}


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
