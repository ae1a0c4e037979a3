"""Sparse matrices of SciPy, verified before SciPy's loops or the core's run over them.

SciPy checks a matrix when it is built, and not all of it: arrays that were changed later, or that
came from a file, may point anywhere. Its conversions, sums and sorts then read and write outside
the arrays. What passes here is safe for both.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.typing import SparseMatrix
from sublearn.validation.values import as_native

__all__ = ["check_compressed", "check_layout", "check_sparse"]

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
_NARROWEST_LIMIT = np.iinfo(np.int32).max


def check_layout(X: Any, name: str) -> Any:
    """`X` so that compiled code can read it: a sparse matrix verified, a dense array native.

    Whatever is neither is returned as it is.
    """
    if sp.issparse(X):
        return check_sparse(X, name)
    return as_native(X) if isinstance(X, np.ndarray) else X


def check_sparse(matrix: SparseMatrix, name: str) -> SparseMatrix:
    """A sparse matrix of any format that SciPy can convert without leaving its arrays.

    Parameters
    ----------
    matrix : sparse matrix or sparse array of SciPy
        Its arrays may be anything at all.
    name : str
        What to call it in a refusal.

    Returns
    -------
    sparse matrix or sparse array
        CSR and CSC as :func:`check_compressed` returns them; other formats as they are or, where
        the format has no arrays of indices, as COO or CSR.
    """
    if len(matrix.shape) != 2:
        raise ValueError(f"{name} must be 2-D, got {len(matrix.shape)}-D")
    check = _CHECKS.get(matrix.format)
    if check is None:
        raise ValueError(f"{name} must be in a format of SciPy, got {matrix.format!r}")
    return check(matrix, name)


def check_compressed(matrix: SparseMatrix, name: str) -> SparseMatrix:
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
    shape = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    arrays = _check_blocks(matrix, shape, _as_values(matrix.data, 1, f"{name}.data"), name)
    return _with_arrays(matrix, *arrays)


def _check_bsr(matrix: SparseMatrix, name: str) -> SparseMatrix:
    data = _as_values(matrix.data, 3, f"{name}.data")
    height, width = data.shape[1:]
    if min(height, width) < 1 or matrix.shape[0] % height or matrix.shape[1] % width:
        raise ValueError(
            f"{name}.data must hold blocks that divide its shape {matrix.shape}, "
            f"got blocks of shape {(height, width)}"
        )
    shape = (matrix.shape[0] // height, matrix.shape[1] // width)
    return _with_arrays(
        matrix, *_check_blocks(matrix, shape, data, name), blocksize=(height, width)
    )


def _check_coo(matrix: SparseMatrix, name: str) -> SparseMatrix:
    data = _as_values(matrix.data, 1, f"{name}.data")
    n_rows, n_columns = matrix.shape
    row = _check_ids(matrix.row, len(data), n_rows, f"{name}.row")
    col = _check_ids(matrix.col, len(data), n_columns, f"{name}.col")
    if data is matrix.data and row is matrix.row and col is matrix.col:
        return matrix
    return _maker(matrix)((data, (row, col)), shape=matrix.shape)


def _check_dia(matrix: SparseMatrix, name: str) -> SparseMatrix:
    data = _as_values(matrix.data, 2, f"{name}.data")
    offsets = _as_indices(matrix.offsets, f"{name}.offsets")
    if len(data) != len(offsets):
        raise ValueError(
            f"{name}.data must have a row for each of {len(offsets)} offsets, got {len(data)}"
        )
    return _check_coo(_with_arrays(matrix, data, offsets=offsets).tocoo(), name)


def _check_dok(matrix: SparseMatrix, name: str) -> SparseMatrix:
    try:
        coo = matrix.tocoo()  # Python's loops, and a constructor that looks at every index
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{name} must hold entries within {matrix.shape}: {error}") from None
    return _check_coo(coo, name)


def _check_lil(matrix: SparseMatrix, name: str) -> SparseMatrix:
    rows, data = matrix.rows, matrix.data
    n_rows = matrix.shape[0]
    for part, lists in (("rows", rows), ("data", data)):
        if len(lists) != n_rows or not all(isinstance(items, list) for items in lists):
            raise ValueError(f"{name}.{part} must be {n_rows} lists, one for each row, got others")
    counts = np.fromiter(map(len, rows), np.int64, n_rows)
    if (counts != np.fromiter(map(len, data), np.int64, n_rows)).any():
        raise ValueError(f"{name}.rows and {name}.data must have lists of equal lengths")
    n_entries = int(counts.sum())
    try:
        ids = np.fromiter(chain.from_iterable(rows), np.int64, n_entries)
        values = np.fromiter(chain.from_iterable(data), matrix.dtype, n_entries)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}.rows and {name}.data must hold numbers: {error}") from None
    ids = _check_ids(ids, n_entries, matrix.shape[1], f"{name}.rows")
    indptr = np.concatenate([[0], np.cumsum(counts)])
    csr = sp.csr_array if isinstance(matrix, sp.lil_array) else sp.csr_matrix
    return csr((values, ids, indptr), shape=matrix.shape)


_CHECKS = {
    "csr": check_compressed,
    "csc": check_compressed,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "dia": _check_dia,
    "dok": _check_dok,
    "lil": _check_lil,
}


def _check_blocks(
    matrix: SparseMatrix, shape: tuple[int, int], data: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data, indices and offsets, the last two of one type; `shape` counts blocks."""
    indptr = _as_indices(matrix.indptr, f"{name}.indptr")
    indices = _as_indices(matrix.indices, f"{name}.indices")
    if len(indices) != len(data):
        raise ValueError(
            f"{name}.indices and {name}.data must have the same length, "
            f"got {len(indices)} and {len(data)}"
        )
    _core.check_compressed(indptr, indices, *shape, f"{name}.indptr", f"{name}.indices")
    n_used = int(indptr[-1])
    if n_used < len(data):
        data, indices = data[:n_used], indices[:n_used]
    if indices.dtype != indptr.dtype:
        common = np.int32 if max(n_used, shape[1]) <= _NARROWEST_LIMIT else np.int64
        indptr, indices = indptr.astype(common, copy=False), indices.astype(common, copy=False)
    return data, indices, indptr


def _check_ids(array: object, length: int, size: int, name: str) -> np.ndarray:
    """One id below `size` for each of `length` entries: a compressed matrix of a single row."""
    ids = _as_indices(array, name)
    if len(ids) != length:
        raise ValueError(f"{name} must have an entry for each of {length} values, got {len(ids)}")
    _core.check_compressed(np.array([0, length]), ids, 1, size, name, name)
    return ids


def _as_values(array: object, ndim: int, name: str) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be an array, got {type(array).__name__}")
    if array.ndim != ndim:
        raise ValueError(f"{name} must be {ndim}-D, got {array.ndim}-D")
    array = as_native(array)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _as_indices(array: object, name: str) -> np.ndarray:
    """int32 or int64; other integers become int64 (what does not fit turns negative)."""
    array = _as_values(array, 1, name)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {array.dtype}")
    return array if array.dtype in _INDEX_TYPES else array.astype(np.int64)


def _maker(matrix: SparseMatrix) -> type[SparseMatrix]:
    """The class of SciPy of a matrix's format and kind."""
    as_array = getattr(sp, f"{matrix.format}_array")
    return as_array if isinstance(matrix, as_array) else getattr(sp, f"{matrix.format}_matrix")


def _with_arrays(
    matrix: SparseMatrix,
    data: np.ndarray,
    indices: np.ndarray | None = None,
    indptr: np.ndarray | None = None,
    offsets: np.ndarray | None = None,
    **options: tuple[int, int],
) -> SparseMatrix:
    """`matrix` if it has these arrays, else one like it that has."""
    given = {"data": data, "indices": indices, "indptr": indptr, "offsets": offsets}
    arrays = {part: array for part, array in given.items() if array is not None}
    if all(array is getattr(matrix, part) for part, array in arrays.items()):
        return matrix
    # The constructor would copy int64 indices to int32 where they fit.
    out = _maker(matrix)(matrix.shape, dtype=data.dtype, **options)
    for part, array in arrays.items():
        setattr(out, part, array)
    return out
