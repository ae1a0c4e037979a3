"""Features of any kind, made one canonical CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from sublearn import _core
from sublearn.typing import MatrixLike
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import as_native, refuse_large, show

__all__ = ["as_csr", "as_precise_as", "check_features", "sum_duplicates", "validate_numbers"]

_INDEX_MAX = 2**31 - 1  # the core numbers rows and columns with 32 bits
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_QUICK_TYPES = {np.ndarray, sp.csr_matrix, sp.csr_array}


def check_features(estimator: object, X: MatrixLike, *, reset: bool) -> sp.csr_matrix:
    """`X` as a CSR matrix that the core can read as it stands.

    Accepts NumPy arrays, nested lists, pandas and polars frames of numbers and SciPy sparse
    matrices or arrays of any format. Dense input becomes CSR; sparse input is never made dense.
    float32 and float64 stay, other numbers become float64. In each row the column ids are sorted
    and unique (duplicates are summed); explicit zeros stay. Both index arrays have one type: the
    caller's if it is one already, else int32 where that is enough and int64 where not. Numbers too
    large to be squared and added in their precision are refused.

    The caller's matrix is never modified, and the result shares its memory where nothing had to
    change.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_` if `reset`, is compared with them if not.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What the user passed.
    reset : bool
        True in `fit`, False in `predict`.

    Returns
    -------
    csr_matrix of shape (n_samples, n_features)
    """
    if not reset and (quick := _as_it_stands(estimator, X)) is not None:
        return quick
    X = validate_numbers(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
    )
    X = as_csr(X) if sp.issparse(X) else sp.csr_matrix(X)
    if _core.is_canonical_csr(X.indptr, X.indices, X.data, *X.shape):
        return X
    X = sum_duplicates(X)
    refuse_large(X.data, f"{type(estimator).__name__}: X")
    return X


def validate_numbers(estimator: object, X: Any, **options: object) -> Any:
    """`X` as scikit-learn's `validate_data` returns it, aligned and in native byte order.

    A sparse matrix is verified before, and text is refused by its column.
    """
    if sp.issparse(X) and X.ndim == 2:
        _refuse_large_shape(X.shape)  # before the conversion to CSR, which takes a word per row
    X = check_layout(X, "X")
    try:
        X = validate_data(estimator, X, **options)
        _refuse_large_shape(X.shape)
        return X if sp.issparse(X) else as_native(X)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        where = _first_text(X)
        name = type(estimator).__name__
        raise ValueError(f"{name}: X must hold numbers alone, got {where}") from None


def _first_text(X: MatrixLike) -> str:
    """The first text in a table that is no number, and where it stands."""
    names = list(getattr(X, "columns", ()))
    for row, values in enumerate(np.asarray(X, dtype=object)):
        for column, value in enumerate(np.atleast_1d(values)):
            if isinstance(value, str) and not _is_number(value):
                place = show(names[column]) if names else column
                return f"{show(value)} in row {row}, column {place}"
    return "text"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_it_stands(estimator: object, X: Any) -> sp.csr_matrix | None:
    """`X` if there is nothing to convert and nothing to refuse, else None.

    The long way takes 0.2 ms, many times as long as a prediction for one row. It keeps the last
    word on everything that is not plainly right, so messages come from one place.
    """
    if type(X) not in _QUICK_TYPES or hasattr(estimator, "feature_names_in_"):
        return None
    shape = X.shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] != getattr(estimator, "n_features_in_", None):
        return None
    if max(shape) > _INDEX_MAX:
        return None
    if type(X) is np.ndarray:
        flags = X.flags
        if X.dtype not in _DTYPES or not (flags.c_contiguous and flags.aligned):
            return None
        arrays: Any = _core.rows_of(X)  # the stub of the core says object
        if arrays is None:
            return None
        data, indices, indptr = arrays
        return _assemble(data, indices, indptr, shape)
    if not _core.is_canonical_csr(X.indptr, X.indices, X.data, *shape):
        return None
    return X if type(X) is sp.csr_matrix else _assemble(X.data, X.indices, X.indptr, shape)


def _refuse_large_shape(shape: tuple[int, ...]) -> None:
    for count, name in zip(shape, ("rows", "columns"), strict=True):
        if count > _INDEX_MAX:
            raise ValueError(f"X must have at most {_INDEX_MAX} {name}, got {count}")


def as_csr(X: sp.spmatrix) -> sp.csr_matrix:
    """A verified matrix of shape and order of CSR as a csr_matrix that shares its arrays."""
    if getattr(X, "stored_columns", None) is not None:  # of a store: its columns go with it
        return X
    return _assemble(X.data, X.indices, X.indptr, X.shape)


def sum_duplicates(csr: sp.csr_matrix) -> sp.csr_matrix:
    """`csr` with sorted, unique column ids in each row; a copy where they are not."""
    if csr.has_canonical_format:
        return csr
    csr = _assemble(csr.data.copy(), csr.indices.copy(), csr.indptr.copy(), csr.shape)
    with np.errstate(over="ignore"):
        csr.sum_duplicates()
    if not np.isfinite(csr.data).all():
        raise ValueError("X must be finite, got duplicate entries whose sum is not")
    return csr


def _assemble(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_matrix:
    # The constructor would copy int64 indices to int32 where they fit.
    csr = sp.csr_matrix(shape, dtype=data.dtype)
    csr.data, csr.indices, csr.indptr = data, indices, indptr
    return csr


def as_precise_as(dtype: np.dtype, X: sp.csr_matrix, subject: str) -> sp.csr_matrix:
    """Features in the precision of a model."""
    refuse_large(X.data, subject, dtype)
    cast = sp.csr_matrix(X.shape, dtype=dtype)  # the constructor would change the index type
    cast.indptr, cast.indices, cast.data = X.indptr, X.indices, X.data.astype(dtype, copy=False)
    return cast
