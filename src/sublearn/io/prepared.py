"""How the data of a saved model were prepared: new data must be made the same way.

A model that `sublearn fit` saved has notes on it: `normalize` (rows of length one), `shift` and
`scale` (columns moved and divided). The command line and the server ask here.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from sublearn.typing import JsonObject, Matrix

__all__ = [
    "are_empty",
    "as_dense",
    "find_scales",
    "n_values",
    "notes_of",
    "prepare_rows",
    "wide_scales",
]

_DENSE = 0.3  # a matrix with this share of entries loses nothing when its columns are moved
_WIDE = 1e3  # quotient of column sizes from which on a model feels the large ones only


def notes_of(model: BaseEstimator) -> JsonObject:
    """Notes that were saved with a model; none for a model that was not loaded from a file."""
    return vars(model).get("notes_", {})


def are_empty(rows: Matrix | list[object]) -> np.ndarray:
    """Which rows are texts without any character but white space: there is nothing to answer."""
    if isinstance(rows, list):
        return np.array([isinstance(one, str) and not one.strip() for one in rows], dtype=bool)
    return np.zeros(rows.shape[0], dtype=bool)


def as_dense(X: Matrix) -> np.ndarray:
    """A matrix as an array."""
    return X if isinstance(X, np.ndarray) else X.toarray()


def n_values(X: Matrix) -> int:
    """Stored values of a matrix."""
    return int(X.size if isinstance(X, np.ndarray) else X.nnz)


def prepare_rows(X: Matrix, notes: JsonObject) -> Matrix:
    """Columns moved and divided, then rows scaled to length one, as the notes say.

    The matrix given may be changed. Columns that are moved make a sparse matrix dense.
    """
    if "scale" in notes:
        if "shift" in notes:
            X = as_dense(X) - notes["shift"].astype(X.dtype)
        scale = notes["scale"].astype(X.dtype)
        X = X / scale if isinstance(X, np.ndarray) else sparse.csr_matrix(X.multiply(1 / scale))
    if notes.get("normalize", False):
        _make_unit_rows(X)
    return X


def find_scales(X: sparse.csr_matrix) -> JsonObject:
    """Notes that give each column the same size: its standard deviation, 1 where it is constant.

    Columns of a matrix that is nearly dense are centred as well; those of a sparse one keep their
    zeros, and are divided by the root of their mean square.
    """
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    if not _is_dense(X):
        return {"scale": _positive(np.sqrt(square))}
    return {"shift": mean, "scale": _positive(np.sqrt(np.maximum(square - mean**2, 0.0)))}


def wide_scales(X: sparse.csr_matrix) -> tuple[float, float] | None:
    """Sizes of a small and of a large column of a dense matrix, if they differ widely."""
    if not _is_dense(X) or X.shape[1] < 2:
        return None
    sizes = find_scales(X)["scale"]
    low, high = np.quantile(sizes, [0.05, 0.95])
    return (float(low), float(high)) if high > _WIDE * low else None


def _is_dense(X: sparse.csr_matrix) -> bool:
    return bool(X.nnz >= _DENSE * max(1, X.shape[0] * X.shape[1]))


def _positive(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 1e-12 * max(1.0, float(sizes.max(initial=0.0))), sizes, 1.0)


def _make_unit_rows(X: Matrix) -> None:
    """Scale each row to Euclidean length 1, in place; rows of zeros stay."""
    from sklearn.preprocessing import normalize

    if X.shape[0]:  # scikit-learn refuses a matrix without rows
        normalize(X, copy=False)
