"""Sparse matrices of SciPy, verified before SciPy's loops or the core's run over them.

SciPy checks a matrix when it is built, and not all of it: arrays that were changed later, or that
came from a file, may point anywhere. Its conversions, sums and sorts then read and write outside
the arrays. What passes here is safe for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]

__all__ = ["as_native", "check_compressed"]

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def check_compressed(matrix: Any, name: str) -> Any:
    """A CSR or CSC matrix whose index arrays are what they claim to be.

    The offsets start at 0, never decrease and stay within the entries, and every index is a row or
    column that the matrix has. Nothing of SciPy runs before that is known. Costs a pass over the
    index arrays in compiled code.

    Parameters
    ----------
    matrix : csr_matrix, csr_array, csc_matrix or csc_array
        Its arrays may be anything at all.
    name : str
        What to call it in a refusal.

    Returns
    -------
    csr_matrix, csr_array, csc_matrix or csc_array
        `matrix` itself if its arrays can be read as they stand, else a matrix of its type with
        copies of those that cannot: contiguous, aligned, of native byte order, indices and offsets
        both int32 or both int64, no entry that `indptr` leaves out.
    """
    if len(matrix.shape) != 2:
        raise ValueError(f"{name} must be 2-D, got {len(matrix.shape)}-D")
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    indptr = _check_index_array(matrix.indptr, f"{name}.indptr")
    indices = _check_index_array(matrix.indices, f"{name}.indices")
    data = as_native(_check_vector(matrix.data, f"{name}.data"))
    if len(indices) != len(data):
        raise ValueError(
            f"{name}.indices and {name}.data must have the same length, "
            f"got {len(indices)} and {len(data)}"
        )
    _core.check_compressed(indptr, indices, n_major, n_minor, f"{name}.indptr", f"{name}.indices")
    n_used = int(indptr[-1])
    if n_used < len(data):
        data, indices = data[:n_used], indices[:n_used]
    if indices.dtype != indptr.dtype:
        fits = max(n_used, n_minor) <= np.iinfo(np.int32).max
        common = np.int32 if fits else np.int64
        indptr, indices = indptr.astype(common, copy=False), indices.astype(common, copy=False)
    return _with_arrays(matrix, data, indices, indptr)


def as_native(array: np.ndarray) -> np.ndarray:
    """`array` if compiled code can read it as it stands, else a copy.

    The copy is contiguous, aligned and of this machine's byte order.
    """
    flags = array.flags
    if flags.aligned and flags.c_contiguous and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _check_vector(array: Any, name: str) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be an array, got {type(array).__name__}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, got {array.ndim}-D")
    return array


def _check_index_array(array: Any, name: str) -> np.ndarray:
    """int32 or int64; other integers become int64 (what does not fit turns negative)."""
    if _check_vector(array, name).dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {array.dtype}")
    array = as_native(array)
    return array if array.dtype in _INDEX_TYPES else array.astype(np.int64)


def _with_arrays(matrix: Any, data: Any, indices: Any, indptr: Any) -> Any:
    if data is matrix.data and indices is matrix.indices and indptr is matrix.indptr:
        return matrix
    maker = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[matrix.format]
    if isinstance(matrix, sp.sparray):
        maker = {"csr": sp.csr_array, "csc": sp.csc_array}[matrix.format]
    # The constructor would copy int64 indices to int32 where they fit.
    out = maker(matrix.shape, dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr
    return out
