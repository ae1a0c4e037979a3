"""What files of weighted constraint problems have in common: costs of joint states, made scores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.table_makers import sparse_table

__all__ = ["CostFunction", "Room", "add_cost_functions"]

_SPARSE_CELLS = 1 << 16  # pairs of more cells stay lists of states and a default


class Room:
    """How many cells a file may ask for: a number for each of its bytes, and some for any file."""

    def __init__(self, n_bytes: int):
        self._most = (1 << 22) + 256 * n_bytes
        self._taken = 0

    def take(self, n_cells: int, line: int) -> None:
        """Refuse cells beyond what the size of the file makes plausible."""
        self._taken += n_cells
        if self._taken > self._most:
            raise ValueError(
                f"line {line}: domains and tables must have at most {self._most} cells in a file "
                f"of this size, got more"
            )


@dataclass(frozen=True)
class CostFunction:
    """States of some variables and their scores; all other states have `default`.

    `scores` has a number for each state, or for each of `states`, rows of labels.
    """

    scope: tuple[int, ...]
    scores: np.ndarray
    line: int
    states: np.ndarray | None = None
    default: float = 0.0

    def table(self, shape: tuple[int, ...], room: Room) -> np.ndarray:
        """An array with an axis for each variable."""
        n_cells = math.prod(shape)
        room.take(n_cells, self.line)
        if not shape:
            return np.array(self.scores[-1] if self.scores.size else self.default)
        if self.states is None:
            return self.scores.reshape(shape)
        out = np.full(shape, self.default)
        out[tuple(self.states.T)] = self.scores
        return out

    def is_large_pair(self, shape: tuple[int, ...]) -> bool:
        """Whether it is to be kept as a list of states."""
        return len(shape) == 2 and self.states is not None and math.prod(shape) > _SPARSE_CELLS

    def check_allowed(self, n_cells: int) -> None:
        """Refuse a function that forbids everything, with its line."""
        has_others = self.states is not None and len(self.states) < n_cells
        most = float(self.scores.max()) if self.scores.size else -np.inf
        if np.isneginf(max(most, self.default) if has_others else most):
            raise ValueError(f"line {self.line}: a cost function must allow a state, got none")


def add_cost_functions(
    graph: FactorGraph, functions: Iterable[CostFunction], room: Room
) -> FactorGraph:
    """Add all functions, those of one shape at once; equal tables are stored once."""
    same: dict[tuple[int, ...], list[CostFunction]] = defaultdict(list)
    for function in functions:
        shape = tuple(graph.domain[list(function.scope)].tolist())
        function.check_allowed(math.prod(shape))
        if function.is_large_pair(shape):
            table = sparse_table(
                function.scores, cells=function.states, shape=shape, default=function.default
            )
            graph.add_factor(function.scope, table)
        else:
            same[shape].append(function)
    for shape, members in same.items():
        tables = np.stack([function.table(shape, room) for function in members])
        if shape:
            graph.add_factors(np.array([function.scope for function in members]), tables)
        elif graph.n_variables:
            graph.add_unary(0, np.full(graph.domain[0], tables.sum()))
    return graph
