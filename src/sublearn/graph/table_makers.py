"""Tables from what users have: arrays, SciPy matrices, functions of labels, label embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sublearn.graph.tables import (
    DenseTable,
    DifferenceTable,
    LowRankTable,
    SparseTable,
    Table,
    TableStack,
    n_cells,
)
from sublearn.graph.unaries import refuse_nan
from sublearn.typing import SparseMatrix
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import is_finite_number, is_int64, show

__all__ = [
    "TableLike",
    "as_table",
    "dense",
    "label_distance",
    "low_rank",
    "potts",
    "sparse_table",
    "truncated_linear",
]

#: What becomes a table: scores for every joint state, or for some of them.
TableLike: TypeAlias = "Table | ArrayLike | SparseMatrix"

_MAX_LABELS = int(np.iinfo(np.int32).max)


def dense(values: ArrayLike) -> Table:
    """A table with a score for every joint state of its variables.

    Parameters
    ----------
    values : array-like of numbers
        One axis for each variable. -inf forbids a state. Copied.
    """
    return DenseTable(_as_scores(values, "dense.values")[None])


def sparse_table(
    values: ArrayLike | SparseMatrix,
    *,
    cells: ArrayLike | None = None,
    shape: tuple[int, ...] | None = None,
    default: float = 0.0,
) -> Table:
    """A table in which most joint states have the same score.

    Parameters
    ----------
    values : SciPy sparse matrix, or array-like of numbers
        The scores that differ from the default. Of a matrix every stored entry counts, zeros
        included; entries stored twice are added.
    cells : array-like of int of shape (n_values, arity), optional
        The joint states that have them; needed unless `values` is a matrix.
    shape : tuple of int, optional
        Labels of each variable; needed unless `values` is a matrix.
    default : float, default=0.0
        The score of all other states; -inf allows only those given.
    """
    if sparse.issparse(values):
        values, cells, shape = _parts_of_matrix(values)
    if cells is None or shape is None:
        raise ValueError("sparse_table.cells and shape must be given where values is no matrix")
    shape = _check_shape(shape, "sparse_table.shape")
    scores = _as_scores(values, "sparse_table.values", ndim=1, may_forbid_all=True)
    flat = _flat_cells(cells, shape, len(scores))
    order = np.argsort(flat, kind="stable")
    flat, scores = flat[order], scores[order]
    if len(flat) and (np.diff(flat) == 0).any():
        raise ValueError("sparse_table.cells must be distinct, got a joint state twice")
    if default != -np.inf and not is_finite_number(default):
        raise ValueError(
            f"sparse_table.default must be a finite number or -inf, got {show(default)}"
        )
    is_open = np.isfinite(default) and len(flat) < n_cells(shape)
    if not is_open and not np.isfinite(scores).any():
        raise ValueError("sparse_table.values must allow at least one joint state, got none")
    return SparseTable(shape, flat, scores, float(default))


def potts(n_labels: int, penalty: float = 1.0) -> Table:
    """Score 0 for equal labels and ``-penalty`` for different ones.

    >>> potts(3, 2.0).to_array()
    array([[ 0., -2., -2.],
           [-2.,  0., -2.],
           [-2., -2.,  0.]])
    """
    penalty = _check_number(penalty, "potts.penalty")
    return label_distance(n_labels, lambda d: -penalty * (d != 0))


def truncated_linear(n_labels: int, slope: float = 1.0, limit: float = np.inf) -> Table:
    """Score ``-min(slope * |a - b|, limit)``: neighbours may differ a little, edges cost once.

    >>> truncated_linear(4, 1.0, 2.0).to_array()[0]
    array([ 0., -1., -2., -2.])
    """
    slope = _check_number(slope, "truncated_linear.slope")
    if limit != np.inf:
        limit = _check_number(limit, "truncated_linear.limit")
    return label_distance(n_labels, lambda d: -np.minimum(slope * np.abs(d), limit))


def label_distance(
    n_labels: int | tuple[int, int], score: Callable[[np.ndarray], ArrayLike] | ArrayLike
) -> Table:
    """A score that depends on the second label minus the first only.

    Parameters
    ----------
    n_labels : int, or pair of int
        Labels of both variables, or of the first and of the second.
    score : callable or array-like
        Called with an array of differences from ``1 - n_labels`` to ``n_labels - 1`` it returns
        their scores; or these scores.
    """
    pair = n_labels if isinstance(n_labels, tuple) else (n_labels, n_labels)
    first, second = _check_shape(pair, "label_distance.n_labels", arity=2)
    found = score(np.arange(1 - first, second)) if callable(score) else score
    values = _as_scores(found, "label_distance.score", ndim=1)
    if len(values) != first + second - 1:
        raise ValueError(
            f"label_distance.score must have {first + second - 1} scores, one for each difference "
            f"of labels, got {len(values)}"
        )
    return DifferenceTable((first, second), values)


def low_rank(left: ArrayLike, right: ArrayLike | None = None) -> Table:
    """Inner products of label embeddings: score ``left[a] @ right[b]``.

    Parameters
    ----------
    left : array-like of shape (n_labels_of_first, rank)
    right : array-like of shape (n_labels_of_second, rank), optional
        By default `left`, and the table is symmetric.
    """
    sides = []
    for name, side in (("left", left), ("right", left if right is None else right)):
        values = _as_scores(side, f"low_rank.{name}", ndim=2)
        if np.isneginf(values).any():
            raise ValueError(f"low_rank.{name} must be finite, got -inf")
        sides.append(values)
    if sides[0].shape[1] != sides[1].shape[1]:
        raise ValueError(
            f"low_rank.right must have as many columns as left, {sides[0].shape[1]}, "
            f"got {sides[1].shape[1]}"
        )
    return LowRankTable(*sides)


def as_table(table: TableLike, arity: int, name: str) -> Table:
    """A table of `arity` variables, made from an array or a SciPy matrix if need be.

    An array with one axis more is a stack: a table for each factor.
    """
    if not isinstance(table, Table):
        if sparse.issparse(table):
            table = sparse_table(table)
        else:
            values = _as_scores(table, name)
            is_stack = values.ndim == arity + 1
            table = _stack(values, name) if is_stack else DenseTable(values[None])
    if len(table.shape) != arity:
        raise ValueError(
            f"{name} must have an axis for each of {arity} variables, got shape {table.shape}"
        )
    return table


def _stack(values: np.ndarray, name: str) -> Table:
    is_forbidden = np.isneginf(values.reshape(len(values), -1)).all(axis=1)
    if is_forbidden.any():
        raise ValueError(
            f"{name} must allow at least one joint state in each table, got none in table "
            f"{int(np.argmax(is_forbidden))}"
        )
    return TableStack(values)


def _as_scores(
    values: ArrayLike, name: str, ndim: int | None = None, *, may_forbid_all: bool = False
) -> np.ndarray:
    """A copy in float64 that no one else can change; NaN and +inf are refused."""
    try:
        out = np.array(values, dtype=np.float64, order="C")
        out += 0.0  # no negative zeros: equal tables have equal bytes
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {show(values)}") from None
    if (ndim is not None and out.ndim != ndim) or out.ndim == 0:
        raise ValueError(f"{name} must have {ndim or 'one or more'} axes, got {out.ndim}")
    if out.size == 0 and not may_forbid_all:
        raise ValueError(f"{name} must not be empty, got shape {out.shape}")
    refuse_nan(out, name)
    if not may_forbid_all and np.isneginf(out).all():
        raise ValueError(f"{name} must allow at least one joint state, got -inf everywhere")
    out.flags.writeable = False
    return out


def _parts_of_matrix(matrix: SparseMatrix) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    entries = check_sparse(matrix, "sparse_table.values").tocoo(copy=True)
    entries.sum_duplicates()
    return entries.data, np.column_stack([entries.row, entries.col]), entries.shape


def _flat_cells(cells: ArrayLike, shape: tuple[int, ...], n_values: int) -> np.ndarray:
    found = np.asarray(cells)
    if n_values == 0 and found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.shape != (n_values, len(shape)) or found.dtype.kind not in "iu":
        raise ValueError(
            f"sparse_table.cells must be integers of shape {(n_values, len(shape))}, got shape "
            f"{found.shape} and dtype {found.dtype}"
        )
    if (found < 0).any() or (found >= np.array(shape)).any():
        raise ValueError(f"sparse_table.cells must be within shape {shape}, got a label outside")
    return np.ravel_multi_index(tuple(found.astype(np.int64).T), shape).astype(np.int64)


def _check_shape(shape: Sequence[int], name: str, arity: int | None = None) -> tuple[int, ...]:
    sizes = tuple(shape)
    is_right = all(is_int64(size) and 1 <= size <= _MAX_LABELS for size in sizes)
    if not is_right or not sizes or (arity is not None and len(sizes) != arity):
        raise ValueError(f"{name} must hold numbers of labels >= 1, got {show(shape)}")
    if n_cells(sizes) >= 2**63:
        raise ValueError(f"{name} must have less than 2^63 joint states, got {show(shape)}")
    return tuple(int(size) for size in sizes)


def _check_number(value: float, name: str) -> float:
    if not is_finite_number(value):
        raise ValueError(f"{name} must be a finite number, got {show(value)}")
    return float(value)
