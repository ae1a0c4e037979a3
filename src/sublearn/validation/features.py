"""Features of any kind, made one canonical CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.validation.values import show

__all__ = ["check_features", "validate_numbers"]

_INDEX_MAX = 2**31 - 1  # the core numbers rows and columns with 32 bits
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_QUICK_TYPES = {np.ndarray, sp.csr_matrix, sp.csr_array}


def check_features(estimator: Any, X: Any, *, reset: bool) -> sp.csr_matrix:
    """`X` as a CSR matrix that the core can read as it stands.

    Accepts NumPy arrays, nested lists, pandas and polars frames of numbers and SciPy sparse
    matrices or arrays of any format. Dense input becomes CSR; sparse input is never made dense.
    float32 and float64 stay, other numbers become float64. In each row the column ids are sorted
    and unique (duplicates are summed); explicit zeros stay. Both index arrays have one type: the
    caller's if it is one already, else int32 where that is enough and int64 where not.

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
    if sp.issparse(X) and X.ndim == 2:
        _refuse_large_shape(X.shape)  # before the conversion to CSR, which takes a word per row
    X = validate_numbers(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
    )
    _refuse_large_shape(X.shape)
    return _canonical(X) if sp.issparse(X) else sp.csr_matrix(X)


def validate_numbers(estimator: Any, X: Any, **options: Any) -> Any:
    """`X` as scikit-learn's `validate_data` returns it; text in it is refused by its column."""
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        where = _first_text(X)
        name = type(estimator).__name__
        raise ValueError(f"{name}: X must hold numbers alone, got {where}") from None


def _first_text(X: Any) -> str:
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


def _as_it_stands(estimator: Any, X: Any) -> sp.csr_matrix | None:
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
        if X.dtype not in _DTYPES or not X.flags.c_contiguous:
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


def _canonical(X: Any) -> sp.csr_matrix:
    _refuse_broken_structure(X)
    n_entries = int(X.indptr[-1])
    index_type = _common_index_type(X)
    csr = _assemble(
        np.ascontiguousarray(X.data[:n_entries]),
        np.ascontiguousarray(X.indices[:n_entries], dtype=index_type),
        np.ascontiguousarray(X.indptr, dtype=index_type),
        X.shape,
    )
    if csr.has_canonical_format:
        return csr
    csr = _assemble(csr.data.copy(), csr.indices.copy(), csr.indptr.copy(), csr.shape)
    with np.errstate(over="ignore"):
        csr.sum_duplicates()
    if not np.isfinite(csr.data).all():
        raise ValueError("X must be finite, got duplicate entries whose sum is not")
    return csr


def _refuse_broken_structure(X: Any) -> None:
    """SciPy does not look again after a matrix was built; the core must not read outside it."""
    n_rows, n_features = X.shape
    if len(X.indptr) != n_rows + 1 or X.indptr[0] != 0 or (np.diff(X.indptr) < 0).any():
        raise ValueError("X.indptr must start at 0, not decrease and have one entry more than rows")
    n_entries = X.indptr[-1]
    if n_entries > min(len(X.indices), len(X.data)):
        raise ValueError(
            f"X.indices and X.data must have {n_entries} entries as X.indptr says, "
            f"got {len(X.indices)} and {len(X.data)}"
        )
    indices = X.indices[:n_entries]
    if n_entries and (indices.min() < 0 or indices.max() >= n_features):
        raise ValueError(
            f"X.indices must be from 0 to {n_features - 1}, got {indices.min()} to {indices.max()}"
        )


def _common_index_type(X: Any) -> Any:
    types = {X.indices.dtype, X.indptr.dtype}
    for wanted in (np.int32, np.int64):
        if types == {np.dtype(wanted)}:
            return wanted
    # Column ids fit 32 bits by the limit on the shape; the offsets decide.
    return np.int32 if X.indptr[-1] <= _INDEX_MAX else np.int64


def _assemble(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    # The constructor would copy int64 indices to int32 where they fit.
    csr = sp.csr_matrix(shape, dtype=data.dtype)
    csr.data, csr.indices, csr.indptr = data, indices, indptr
    return csr
