"""What every reader returns, and the checks and conversions that readers and writers share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sublearn.typing import LabelsLike, Matrix, MatrixLike, SparseMatrix
from sublearn.validation.sparse import check_layout

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

__all__ = ["Dataset"]

_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and labels of one file; unpacks as ``X, Y = dataset``.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Sorted indices, no stored zeros, int32 indices whenever they fit.
    Y : csr_matrix of shape (n_samples, n_labels), or ndarray of shape (n_samples,)
        Indicator matrix (ones of dtype int8). An ordinary LIBSVM file with one label per row gives
        these labels as a vector.
    feature_names, label_names : ndarray of str, or None
        Names, if the file has them.

    Notes
    -----
    The matrices are `csr_matrix`, not the newer `csr_array`: every release of SciPy and
    scikit-learn in use takes them, and ``X * w`` keeps the meaning it has in older code.
    """

    X: sparse.csr_matrix
    Y: Matrix
    feature_names: np.ndarray | None = field(default=None, repr=False)
    label_names: np.ndarray | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Matrix]:
        yield self.X
        yield self.Y


def as_float_dtype(dtype: DTypeLike, caller: str) -> np.dtype:
    """`dtype` if it is float32 or float64, else a refusal in the name of `caller`."""
    found = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise ValueError(f"{caller}.dtype must be float32 or float64, got {found}")
    return found


def as_names(names: ArrayLike | None, n: int, what: str) -> np.ndarray | None:
    """A vector of `n` strings, or None."""
    if names is None:
        return None
    out = np.asarray(names, dtype=str)
    if out.shape != (n,):
        raise ValueError(f"{what} must have {n} entries, got shape {out.shape}")
    return out


def csr_from_parts(
    values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """CSR matrix over sorted parts, without copying values; SciPy wants one dtype for indices."""
    fits = len(indices) <= _INT32_MAX and max(shape) <= _INT32_MAX
    index_dtype = np.int32 if fits else np.int64
    parts = (
        values,
        indices.astype(index_dtype, copy=False),
        indptr.astype(index_dtype, copy=False),
    )
    matrix = sparse.csr_matrix(parts, shape=shape, copy=False)
    matrix.has_canonical_format = True
    return matrix


def indicator(indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """0/1 matrix with the given columns in each row."""
    return csr_from_parts(np.ones(len(indices), dtype=np.int8), indices, indptr, shape)


def canonical_csr(matrix: SparseMatrix, what: str) -> sparse.csr_matrix:
    """A CSR matrix as readers return them, copied only if something has to change."""
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise ValueError(f"{what} must be a matrix, got {matrix.ndim} dimension(s)")
    matrix = check_layout(matrix, what)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{what} must hold numbers, got dtype {matrix.dtype}")
    out = sparse.csr_matrix(matrix)
    if not out.has_canonical_format or np.any(out.data == 0):
        out = out.copy()
        out.sum_duplicates()
        out.eliminate_zeros()
    return csr_from_parts(out.data, out.indices, out.indptr, out.shape)


def canonical_features(X: MatrixLike, what: str) -> sparse.csr_matrix:
    """Finite float32 or float64 features; integers and booleans become float64."""
    out = canonical_csr(X, what)
    if out.dtype not in (np.float32, np.float64):
        out = out.astype(np.float32 if out.dtype == np.float16 else np.float64)
    if not np.isfinite(out.data).all():
        raise ValueError(f"{what} must be finite, got NaN or infinity")
    return out


def canonical_indicator(Y: LabelsLike, what: str) -> sparse.csr_matrix:
    """An indicator matrix of ones."""
    out = canonical_csr(Y, what)
    if np.any(out.data != 1):
        raise ValueError(f"{what} must hold 0 and 1 only, got {out.data[out.data != 1][0]!s}")
    return indicator(out.indices, out.indptr, out.shape)


def check_same_rows(X: Matrix, Y: Matrix, caller: str) -> None:
    """Refuse features and labels of different lengths."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"{caller}.Y must have {X.shape[0]} rows as X has, got {Y.shape[0]}")
