"""Columns far from 0 or of very different size, moved and scaled before the fit and back after.

A solver compares the violations of features, and those of large columns drown the others. The
scales are powers of two, so that no number is rounded; the l1 weight of a feature moves with its
scale, so that the problem stays the same. (Its l2 weight could not: such problems stay as they
are.)
"""

from __future__ import annotations

import numpy as np

from sublearn.typing import Matrix
from sublearn.validation.design import Design

__all__ = [
    "centre_columns",
    "column_offsets",
    "column_scales",
    "divide_columns",
    "largest_entries",
]

_SPREAD = 10  # powers of two between the largest entries of columns that are left alone
_FAR = 0.75  # of a column's range, between 0 and the middle of the range
#: Of the entries of a sparse matrix, above which it is made dense to centre it: a dense entry is
#: read about four times as fast as a sparse one.
_DENSE_SHARE = 0.25


def column_scales(design: Design) -> np.ndarray | None:
    """A power of two near the largest entry of each column; None if they are near each other."""
    largest = largest_entries(design)
    exponents = np.frexp(largest)[1]
    filled = exponents[largest > 0]
    if not len(filled) or filled.max() - filled.min() <= _SPREAD:
        return None
    limit = np.finfo(design.X.dtype).maxexp - 8  # also 1 / scale must be a number of X's type
    return np.where(largest > 0, np.ldexp(1.0, np.clip(exponents, -limit, limit)), 1.0)


def column_offsets(design: Design) -> np.ndarray | None:
    """Means of the columns, if some column stays far from 0; else None.

    Such columns look like the intercept to a method that moves one coordinate at a time, and it
    takes very many steps to tell them apart. A sparse matrix has such columns only where they are
    full, and is centred, which makes it dense, if a quarter of all its entries are there.
    """
    X = design.X
    if not isinstance(X, np.ndarray) and X.nnz < _DENSE_SHARE * X.shape[0] * X.shape[1]:
        return None
    high, low = design.high.astype(np.float64), design.low.astype(np.float64)
    is_far = (np.abs(high + low) > 2 * _FAR * (high - low)) & (high > low)
    if not is_far.any():
        return None
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return np.where(high > low, means, low).astype(X.dtype)  # constants vanish exactly


def centre_columns(X: Matrix, offsets: np.ndarray) -> np.ndarray:
    """A dense copy of `X` without the means of its columns."""
    dense = X if isinstance(X, np.ndarray) else X.toarray(order="F")
    return np.asfortranarray(dense - offsets)


def divide_columns(X: Matrix, scales: np.ndarray) -> Matrix:
    """A copy of `X` with each column divided by its scale."""
    inverse = (1.0 / scales).astype(X.dtype)
    if isinstance(X, np.ndarray):
        return np.asfortranarray(X * inverse)
    scaled = X.copy()
    scaled.data *= np.repeat(inverse, np.diff(X.indptr))
    return scaled


def largest_entries(design: Design) -> np.ndarray:
    """The size of the largest entry of each column, in float64."""
    return np.maximum(design.high, -design.low).astype(np.float64)
