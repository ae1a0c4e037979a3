"""A factor graph as plain arrays: what crosses the border to a rival's process, and its judge.

NumPy alone, as it is imported by interpreters of other environments. The score of an assignment is
computed here for everybody, from these arrays and from nothing that a solver says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["FactorArrays", "Group"]


@dataclass(frozen=True)
class Group:
    """Factors over tables of one shape.

    `scopes` (n_factors, arity) are their variables, `tables` (n_tables, ...) the scores, `rows`
    (n_factors,) which table a factor has, `scale` (n_factors,) what it is multiplied by.
    """

    scopes: np.ndarray
    tables: np.ndarray
    rows: np.ndarray
    scale: np.ndarray

    @property
    def n_cells(self) -> int:
        """Joint states of one factor."""
        return int(np.prod(self.tables.shape[1:], dtype=np.int64))

    def table(self, f: int) -> np.ndarray:
        """Scores of factor `f`, not to be written to; a scale of zero forbids nothing."""
        scale, values = self.scale[f], self.tables[self.rows[f]]
        if scale == 1.0:
            return values
        return scale * values if scale else np.zeros_like(values)

    def scores(self, labels: np.ndarray) -> np.ndarray:
        """The score of each factor."""
        values = self.tables[(self.rows, *labels[self.scopes].T)]
        return self.scale * np.where(self.scale == 0.0, 0.0, values)


@dataclass(frozen=True)
class FactorArrays:
    """Variables with `domain` labels each, their scores in one row, and groups of factors."""

    domain: np.ndarray
    unary: np.ndarray
    groups: Sequence[Group]

    @cached_property
    def begin(self) -> np.ndarray:
        """Where the scores of each variable begin in `unary`."""
        return np.concatenate([[0], np.cumsum(self.domain)])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.domain)

    @property
    def n_factors(self) -> int:
        """Number of factors over two variables or more."""
        return sum(len(group.scopes) for group in self.groups)

    @property
    def n_cells(self) -> int:
        """Joint states of all factors: what dense messages or one table each would go through."""
        return sum(len(group.scopes) * group.n_cells for group in self.groups)

    @property
    def max_arity(self) -> int:
        """Variables of the largest factor."""
        return max((group.scopes.shape[1] for group in self.groups), default=1)

    def unary_of(self, i: int) -> np.ndarray:
        """Scores of the labels of a variable."""
        return self.unary[self.begin[i] : self.begin[i + 1]]

    def factors(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Variables and scores of each factor."""
        for group in self.groups:
            for f, scope in enumerate(group.scopes):
                yield scope, group.table(f)

    def score(self, labels: Any) -> float:
        """Value of an assignment, -inf if it has a forbidden state; refuses what is none."""
        labels = np.asarray(labels)
        if labels.shape != self.domain.shape or labels.dtype.kind not in "iu":
            raise ValueError(f"an assignment must be {len(self.domain)} integers, got {labels!r}")
        if (labels < 0).any() or (labels >= self.domain).any():
            raise ValueError("an assignment must have labels of the domains")
        total = float(self.unary[self.begin[:-1] + labels].sum())
        return total + sum(float(group.scores(labels).sum()) for group in self.groups)

    def without_forbidden(self) -> FactorArrays:
        """Forbidden states cost more than all others together can gain, and are finite."""
        spread = 2.0 * float(np.abs(self.unary[np.isfinite(self.unary)]).sum())
        for group in self.groups:
            each = np.array([_spread(table) for table in group.tables])
            spread += float((np.abs(group.scale) * each[group.rows]).sum())
        depth = -2.0 * (spread + 1.0)
        groups = [
            Group(g.scopes, np.where(np.isneginf(g.tables), depth, g.tables), g.rows, g.scale)
            for g in self.groups
        ]
        return FactorArrays(
            self.domain, np.where(np.isneginf(self.unary), depth, self.unary), groups
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name, as it crosses a process border."""
        flat = {"domain": self.domain, "unary": self.unary}
        for k, group in enumerate(self.groups):
            for name in ("scopes", "tables", "rows", "scale"):
                flat[f"{name}{k}"] = getattr(group, name)
        return flat

    @classmethod
    def from_arrays(cls, flat: Mapping[str, np.ndarray]) -> FactorArrays:
        """What `arrays` returned."""
        return cls(flat["domain"], flat["unary"], list(_groups(flat)))

    @classmethod
    def of(cls, graph: Any) -> FactorArrays:
        """The arrays of a :class:`sublearn.graph.FactorGraph`."""
        groups = []
        for factors in graph.factors:
            stack = getattr(factors.table, "values", None)
            is_stack = isinstance(stack, np.ndarray) and stack.ndim == len(factors.table.shape) + 1
            tables = stack if is_stack else factors.table.to_array()[None]
            scale = np.ones(len(factors)) if factors.scale is None else factors.scale
            groups.append(Group(factors.scopes, tables, factors.rows_or_first(), scale))
        unary = [graph.unary(i) for i in range(graph.n_variables)]
        return cls(np.asarray(graph.domain), np.concatenate(unary), groups)


def _groups(flat: Mapping[str, np.ndarray]) -> Iterator[Group]:
    k = 0
    while f"scopes{k}" in flat:
        yield Group(*(flat[f"{name}{k}"] for name in ("scopes", "tables", "rows", "scale")))
        k += 1


def _spread(scores: np.ndarray) -> float:
    return float(np.ptp(scores[np.isfinite(scores)]))
