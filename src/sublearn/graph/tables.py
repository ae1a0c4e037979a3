"""Score tables of factors: dense arrays, sparse ones, functions of a label difference, low rank.

A table does not change after it is made and may serve any number of factors and graphs: it is
stored once, and what solvers prepare for it (sorted lists) is prepared once. Scores are finite or
-inf, which forbids a state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.validation.values import is_finite_number, is_int64, show

__all__ = [
    "DenseTable",
    "Table",
    "TableStack",
    "as_table",
    "dense",
    "label_distance",
    "low_rank",
    "potts",
    "sparse_table",
    "truncated_linear",
]

_MAX_LABELS = int(np.iinfo(np.int32).max)


class Table:
    """Scores of the joint states of a group of variables; see `dense` and the other makers.

    Attributes
    ----------
    shape : tuple of int
        Labels of each variable of the group.
    """

    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self._natives: dict[tuple[int, float], Any] = {}

    def at(self, labels: np.ndarray) -> np.ndarray:
        """Scores of joint states: `labels` is (n_states, arity), one state in each row."""
        raise NotImplementedError

    def to_array(self) -> np.ndarray:
        """All scores as a dense array."""
        labels = np.indices(self.shape).reshape(len(self.shape), -1).T
        return self.at(labels).reshape(self.shape)

    @property
    def n_tables(self) -> int:
        """How many tables the core sees: one, or the rows of a stack."""
        return 1

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest allowed score of each table, or numbers outside of them."""
        values = self._stored()
        allowed = values[np.isfinite(values)]
        return np.array([allowed.min()]), np.array([allowed.max()])

    @cached_property
    def has_forbidden(self) -> bool:
        """Whether a state is forbidden."""
        return bool(np.isneginf(self._stored()).any())

    def _compiled(self, sign: int, depth: float) -> list[Any]:
        """Tables of the core, times `sign`; forbidden states are `depth` below the best state."""
        key = (sign, depth if self.has_forbidden else 0.0)
        if key not in self._natives:
            self._natives[key] = self._make_native(*key)
        return self._natives[key]

    def _stored(self) -> np.ndarray:
        raise NotImplementedError

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        raise NotImplementedError

    def _filled(self, values: np.ndarray, sign: int, depth: float) -> np.ndarray:
        """Finite numbers for the core, in one row."""
        out = values.ravel() if sign > 0 else -values.ravel()
        if not self.has_forbidden:
            return out
        return np.where(np.isneginf(out), self.bounds[1][0] - depth, out)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_natives": {}}  # the core's tables are made again

    def __repr__(self) -> str:
        return f"{type(self).__name__}({' x '.join(map(str, self.shape))})"


class DenseTable(Table):
    """A score for every joint state."""

    def __init__(self, values: np.ndarray):
        super().__init__(values.shape)
        self._values = values

    def at(self, labels: np.ndarray) -> np.ndarray:
        """Scores of joint states, one in each row."""
        return self._values[tuple(labels.T)]

    def to_array(self) -> np.ndarray:
        """The array itself, which cannot be written."""
        return self._values

    def _stored(self) -> np.ndarray:
        return self._values

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        values = self._filled(self._values, sign, depth)
        return [_core.FactorTable.dense(_as_shape(self.shape), values)]


class SparseTable(Table):
    """One score for most joint states, others for some of them."""

    def __init__(
        self, shape: tuple[int, ...], cells: np.ndarray, values: np.ndarray, default: float
    ):
        super().__init__(shape)
        self._cells, self._values, self._default = cells, values, default

    def at(self, labels: np.ndarray) -> np.ndarray:
        out = np.full(len(labels), self._default)
        if len(self._cells) == 0:
            return out
        wanted = np.ravel_multi_index(tuple(labels.T), self.shape)
        place = np.minimum(np.searchsorted(self._cells, wanted), len(self._cells) - 1)
        is_stored = self._cells[place] == wanted
        out[is_stored] = self._values[place[is_stored]]
        return out

    def _stored(self) -> np.ndarray:
        is_full = len(self._cells) == _n_cells(self.shape)
        return self._values if is_full else np.append(self._values, self._default)

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        scores = self._filled(np.append(self._values, self._default), sign, depth)
        values, default = scores[:-1], float(scores[-1])
        return [_core.FactorTable.sparse(_as_shape(self.shape), self._cells, values, default)]


class DifferenceTable(Table):
    """A function of the second label minus the first, from ``1 - shape[0]`` on."""

    def __init__(self, shape: tuple[int, int], values: np.ndarray):
        super().__init__(shape)
        self._values = values

    def at(self, labels: np.ndarray) -> np.ndarray:
        return self._values[labels[:, 1] - labels[:, 0] + self.shape[0] - 1]

    def _stored(self) -> np.ndarray:
        return self._values

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        values = self._filled(self._values, sign, depth)
        return [_core.FactorTable.difference(_as_shape(self.shape), values)]


class LowRankTable(Table):
    """Inner products of the embeddings of two labels."""

    def __init__(self, left: np.ndarray, right: np.ndarray):
        super().__init__((len(left), len(right)))
        self._left, self._right = left, right

    def at(self, labels: np.ndarray) -> np.ndarray:
        return np.einsum("nr,nr->n", self._left[labels[:, 0]], self._right[labels[:, 1]])

    def to_array(self) -> np.ndarray:
        return self._left @ self._right.T

    @cached_property
    def has_forbidden(self) -> bool:
        return False

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """By Cauchy and Schwarz: the scores themselves would be a dense table."""
        longest = [np.sqrt(np.square(side).sum(axis=1).max()) for side in (self._left, self._right)]
        bound = np.array([longest[0] * longest[1]])
        return -bound, bound

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        return [_core.FactorTable.low_rank(sign * self._left, self._right)]


class TableStack(Table):
    """Many dense tables of one shape in one array, first axis first."""

    def __init__(self, values: np.ndarray):
        super().__init__(values.shape[1:])
        self.values = values

    @property
    def n_tables(self) -> int:
        """How many tables there are."""
        return len(self.values)

    def rows_at(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Scores of joint states, each in its own table."""
        cells = (rows, *labels.T)
        return self.values[cells]

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest allowed score of each table."""
        values = self.values.reshape(len(self.values), -1)
        is_allowed = np.isfinite(values)
        low = np.where(is_allowed, values, np.inf).min(axis=1)
        return low, values.max(axis=1)

    def _stored(self) -> np.ndarray:
        return self.values

    def _make_native(self, sign: int, depth: float) -> list[Any]:
        values = sign * self.values.reshape(len(self.values), -1)
        if self.has_forbidden:
            floor = values.max(axis=1, keepdims=True) - depth
            values = np.where(np.isneginf(values), floor, values)
        return _core.FactorTable.dense_stack(_as_shape(self.shape), values.ravel())


def dense(values: Any) -> Table:
    """A table with a score for every joint state of its variables.

    Parameters
    ----------
    values : array-like of numbers
        One axis for each variable. -inf forbids a state. Copied.
    """
    return DenseTable(_as_scores(values, "dense.values"))


def sparse_table(
    values: Any,
    *,
    cells: Any = None,
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
    is_open = np.isfinite(default) and len(flat) < _n_cells(shape)
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
    n_labels: int | tuple[int, int], score: Callable[[np.ndarray], Any] | Any
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


def low_rank(left: Any, right: Any = None) -> Table:
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


def as_table(table: Any, arity: int, name: str) -> Table:
    """A table of `arity` variables, made from an array or a SciPy matrix if need be.

    An array with one axis more is a stack: a table for each factor.
    """
    if not isinstance(table, Table):
        if sparse.issparse(table):
            table = sparse_table(table)
        else:
            values = _as_scores(table, name)
            is_stack = values.ndim == arity + 1
            table = _stack(values, name) if is_stack else DenseTable(values)
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
    values: Any, name: str, ndim: int | None = None, *, may_forbid_all: bool = False
) -> np.ndarray:
    """A copy in float64 that nobody else can change; NaN and +inf are refused."""
    try:
        out = np.array(values, dtype=np.float64, order="C")
        out += 0.0  # no negative zeros: equal tables have equal bytes
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {show(values)}") from None
    if (ndim is not None and out.ndim != ndim) or out.ndim == 0:
        raise ValueError(f"{name} must have {ndim or 'one or more'} axes, got {out.ndim}")
    if out.size == 0 and not may_forbid_all:
        raise ValueError(f"{name} must not be empty, got shape {out.shape}")
    if np.isnan(out).any() or np.isposinf(out).any():
        raise ValueError(f"{name} must hold finite numbers or -inf, got NaN or +inf")
    if not may_forbid_all and np.isneginf(out).all():
        raise ValueError(f"{name} must allow at least one joint state, got -inf everywhere")
    out.flags.writeable = False
    return out


def _parts_of_matrix(matrix: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    entries = matrix.tocoo(copy=True)
    entries.sum_duplicates()
    return entries.data, np.column_stack([entries.row, entries.col]), entries.shape


def _flat_cells(cells: Any, shape: tuple[int, ...], n_values: int) -> np.ndarray:
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


def _check_shape(shape: Any, name: str, arity: int | None = None) -> tuple[int, ...]:
    sizes = tuple(shape)
    is_right = all(is_int64(size) and 1 <= size <= _MAX_LABELS for size in sizes)
    if not is_right or not sizes or (arity is not None and len(sizes) != arity):
        raise ValueError(f"{name} must hold numbers of labels >= 1, got {show(shape)}")
    if _n_cells(sizes) >= 2**63:
        raise ValueError(f"{name} must have less than 2^63 joint states, got {show(shape)}")
    return tuple(int(size) for size in sizes)


def _n_cells(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= int(size)
    return n


def _check_number(value: Any, name: str) -> float:
    if not is_finite_number(value):
        raise ValueError(f"{name} must be a finite number, got {show(value)}")
    return float(value)


def _as_shape(shape: tuple[int, ...]) -> np.ndarray:
    return np.array(shape, dtype=np.int32)
