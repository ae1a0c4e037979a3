"""Score tables of factors: dense arrays, sparse ones, functions of a label difference, low rank.

A table does not change after it is made and may serve any number of factors and graphs: it is
stored once, and what solvers prepare for it (sorted lists) is prepared once. Scores are finite or
-inf, which forbids a state.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sublearn import _core

__all__ = [
    "DenseTable",
    "DifferenceTable",
    "LowRankTable",
    "SparseTable",
    "Table",
    "TableStack",
    "n_cells",
]


class Table:
    """Scores of the joint states of a group of variables; made by `dense`, `potts` and so on.

    Attributes
    ----------
    shape : tuple of int
        Labels of each variable of the group.
    """

    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self._natives: dict[
            int, tuple[float, list[_core.FactorTable]]
        ] = {}  # by sign, of one depth each

    def at(self, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Scores of joint states, one in each row of `labels`, (n_states, arity).

        `rows` tells of which table each state is, where there are several.
        """
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

    def _compiled(self, sign: int, depth: float) -> list[_core.FactorTable]:
        """Tables of the core, times `sign`; forbidden states are `depth` below the best state."""
        depth = depth if self.has_forbidden else 0.0
        known_depth, natives = self._natives.get(sign, (-1.0, []))
        if known_depth != depth:
            natives = self._make_native(sign, depth)
            self._natives[sign] = (depth, natives)
        return natives

    def _stored(self) -> np.ndarray:
        raise NotImplementedError

    def _make_native(self, sign: int, depth: float) -> list[_core.FactorTable]:
        raise NotImplementedError

    def _filled(self, values: np.ndarray, sign: int, depth: float) -> np.ndarray:
        """Finite numbers for the core, in one row."""
        out = values.ravel() if sign > 0 else -values.ravel()
        if not self.has_forbidden:
            return out
        return np.where(np.isneginf(out), self.bounds[1][0] - depth, out)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_natives": {}}  # the core's tables are made again

    def __repr__(self) -> str:
        return f"{type(self).__name__}({' x '.join(map(str, self.shape))})"


class DenseTable(Table):
    """A score for every joint state; several tables of one shape stand one after another."""

    def __init__(self, values: np.ndarray):
        super().__init__(values.shape[1:])
        self.values = values  # (n_tables, *shape)

    def at(self, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Scores of joint states, one in each row."""
        cells = (0 if rows is None else rows, *labels.T)
        return self.values[cells]

    def to_array(self) -> np.ndarray:
        """The array itself, which cannot be written."""
        return self.values[0]

    @property
    def n_tables(self) -> int:
        """How many tables there are."""
        return len(self.values)

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest allowed score of each table."""
        values = self.values.reshape(len(self.values), -1)
        low = np.where(np.isfinite(values), values, np.inf).min(axis=1)
        return low, values.max(axis=1)

    def _stored(self) -> np.ndarray:
        return self.values

    def _make_native(self, sign: int, depth: float) -> list[_core.FactorTable]:
        values = self.values.reshape(len(self.values), -1)
        values = values if sign > 0 else -values
        if self.has_forbidden:
            floor = values.max(axis=1, keepdims=True) - depth
            values = np.where(np.isneginf(values), floor, values)
        return _core.FactorTable.dense_stack(_as_shape(self.shape), values.ravel())


class TableStack(DenseTable):
    """A dense table for each factor."""


class SparseTable(Table):
    """One score for most joint states, others for some of them."""

    def __init__(
        self, shape: tuple[int, ...], cells: np.ndarray, values: np.ndarray, default: float
    ):
        super().__init__(shape)
        self._cells, self._values, self._default = cells, values, default

    def at(self, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Scores of joint states, one in each row."""
        out = np.full(len(labels), self._default)
        if len(self._cells) == 0:
            return out
        wanted = np.ravel_multi_index(tuple(labels.T), self.shape)
        place = np.minimum(np.searchsorted(self._cells, wanted), len(self._cells) - 1)
        is_stored = self._cells[place] == wanted
        out[is_stored] = self._values[place[is_stored]]
        return out

    def _stored(self) -> np.ndarray:
        return np.append(self._values, self._default) if self._is_open() else self._values

    def _is_open(self) -> bool:
        """Whether a joint state has the default."""
        return len(self._cells) < n_cells(self.shape)

    def _make_native(self, sign: int, depth: float) -> list[_core.FactorTable]:
        default = self._default if self._is_open() else 0.0  # nothing has it: any number will do
        scores = self._filled(np.append(self._values, default), sign, depth)
        values, default = scores[:-1], float(scores[-1])
        return [_core.FactorTable.sparse(_as_shape(self.shape), self._cells, values, default)]


class DifferenceTable(Table):
    """A function of the second label minus the first, from ``1 - shape[0]`` on."""

    def __init__(self, shape: tuple[int, int], values: np.ndarray):
        super().__init__(shape)
        self._values = values

    def at(self, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Scores of joint states, one in each row."""
        return self._values[labels[:, 1] - labels[:, 0] + self.shape[0] - 1]

    def _stored(self) -> np.ndarray:
        return self._values

    def _make_native(self, sign: int, depth: float) -> list[_core.FactorTable]:
        values = self._filled(self._values, sign, depth)
        return [_core.FactorTable.difference(_as_shape(self.shape), values)]


class LowRankTable(Table):
    """Inner products of the embeddings of two labels."""

    def __init__(self, left: np.ndarray, right: np.ndarray):
        super().__init__((len(left), len(right)))
        self._left, self._right = left, right

    def at(self, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Scores of joint states, one in each row."""
        return np.einsum("nr,nr->n", self._left[labels[:, 0]], self._right[labels[:, 1]])

    def to_array(self) -> np.ndarray:
        """All inner products."""
        return self._left @ self._right.T

    @cached_property
    def has_forbidden(self) -> bool:
        """Inner products are finite."""
        return False

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """By Cauchy and Schwarz: the scores themselves would be a dense table."""
        longest = [np.sqrt(np.square(side).sum(axis=1).max()) for side in (self._left, self._right)]
        bound = np.array([longest[0] * longest[1]])
        return -bound, bound

    def _make_native(self, sign: int, depth: float) -> list[_core.FactorTable]:
        return [_core.FactorTable.low_rank(sign * self._left, self._right)]


def n_cells(shape: tuple[int, ...]) -> int:
    """Number of joint states, which may be larger than any array."""
    n = 1
    for size in shape:
        n *= int(size)
    return n


def _as_shape(shape: tuple[int, ...]) -> np.ndarray:
    return np.array(shape, dtype=np.int32)
