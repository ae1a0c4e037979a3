"""Exact marginals of graphs of small width, by a bucket tree.

Variables are eliminated one after another. The bucket of v is a table over v and its neighbours S
that are left,

    A_v(x_v, x_S) = theta_v(x_v) + sum of factors and messages,   m_v(x_S) = reduce_{x_v} A_v,

and m_v goes to the bucket of the first variable of S that is eliminated later. Back from the last
bucket, B_v = A_v + reduce(B_parent) - m_v is the score of everything given x_v and x_S: the largest
one with `reduce` a maximum, the logarithm of the sum of exp(score) with log-sum-exp.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sublearn import interruption
from sublearn.graph.factor_graph import FactorGraph

__all__ = ["BucketTree", "log_sum", "maximum"]

Reduce: TypeAlias = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]
_MOST_CELLS, _MOST_CELLS_IN_ALL, _MOST_AXES = 1 << 20, 1 << 24, 24


def maximum(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The largest score."""
    return values.max(axis=axes)


def log_sum(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """log(sum(exp(score))), -inf where every state is forbidden."""
    most = values.max(axis=axes, keepdims=True)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(values - shift).sum(axis=axes, keepdims=True)) + shift).squeeze(axes)


class BucketTree:
    """An order of elimination, and the factors in each bucket; unary scores may change."""

    def __init__(self, graph: FactorGraph):
        self._domain = graph.domain.tolist()
        self._begin = np.concatenate([[0], np.cumsum(graph.domain)])
        self._order: list[int] = []
        self._scope: list[tuple[int, ...]] = [()] * graph.n_variables
        self.is_narrow = self._eliminate(graph)
        if self.is_narrow:
            self._parent = [self._first(scope[1:]) for scope in self._scope]
            self._factors = self._read(graph)

    def _eliminate(self, graph: FactorGraph) -> bool:
        """Always a variable with the smallest bucket; False if one is too large."""
        near: list[set[int]] = [set() for _ in self._domain]
        for group in graph.factors:
            for scope in group.scopes.tolist():
                for i in scope:
                    near[i].update(scope)
        for i, others in enumerate(near):
            others.discard(i)
        waiting = [(self._cells(i, near[i]), i) for i in range(len(near))]
        heapq.heapify(waiting)
        is_out, n_cells = [False] * len(near), 0
        while waiting:
            cells, i = heapq.heappop(waiting)
            if is_out[i] or cells != self._cells(i, near[i]):
                continue
            n_cells += cells
            if cells > _MOST_CELLS or n_cells > _MOST_CELLS_IN_ALL or len(near[i]) >= _MOST_AXES:
                return False
            interruption.check()
            is_out[i] = True
            self._order.append(i)
            self._scope[i] = (i, *sorted(near[i]))
            for j in near[i]:
                near[j] |= near[i]
                near[j] -= {i, j}
                heapq.heappush(waiting, (self._cells(j, near[j]), j))
        self._place = {i: k for k, i in enumerate(self._order)}
        return True

    def _cells(self, i: int, near: set[int]) -> int:
        return self._domain[i] * math.prod(self._domain[j] for j in near)

    def _first(self, variables: tuple[int, ...]) -> int:
        return min(variables, key=self._place.__getitem__, default=-1)

    def _read(self, graph: FactorGraph) -> list[np.ndarray]:
        """The factors of each bucket, added up."""
        sums = [np.zeros([self._domain[j] for j in scope]) for scope in self._scope]
        for group in graph.factors:
            for f, scope in enumerate(group.scopes.tolist()):
                table = group.tables_of_factors(slice(f, f + 1)).reshape(group.table.shape)
                v = self._first(tuple(scope))
                sums[v] = sums[v] + self._spread(table, tuple(scope), self._scope[v])
        return sums

    @staticmethod
    def _spread(table: np.ndarray, own: tuple[int, ...], scope: tuple[int, ...]) -> np.ndarray:
        """The table with its axes in the order of `scope`, and axes of length 1 for the others."""
        order = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
        shape = [1] * len(scope)
        for k, n in zip(own, table.shape, strict=True):
            shape[scope.index(k)] = n
        return table.transpose(order).reshape(shape)

    def run(self, unary: np.ndarray, reduce: Reduce) -> tuple[list[np.ndarray], float]:
        """For each variable the score of everything given its label, and that of everything."""
        buckets, messages, total = self._forward(unary, reduce)
        found: list[np.ndarray] = [np.zeros(0)] * len(self._domain)
        for v in reversed(self._order):
            interruption.check()
            p, scope = self._parent[v], self._scope[v]
            if p < 0:  # the other components are the same for each of its labels
                buckets[v] = buckets[v] + (total - messages[v] if np.isfinite(total) else 0.0)
            else:
                rest = tuple(k for k, j in enumerate(self._scope[p]) if j not in scope)
                down = reduce(buckets[p], rest) if rest else buckets[p]
                given = tuple(j for j in self._scope[p] if j in scope)
                own = np.where(np.isfinite(messages[v]), messages[v], 0.0)
                buckets[v] = buckets[v] + (
                    self._spread(down, given, scope) - self._spread(own, scope[1:], scope)
                )
            axes = tuple(range(1, len(scope)))
            found[v] = reduce(buckets[v], axes) if axes else buckets[v]
        return found, total

    def _forward(
        self, unary: np.ndarray, reduce: Reduce
    ) -> tuple[list[np.ndarray], list[np.ndarray], float]:
        buckets = list(self._factors)
        messages: list[np.ndarray] = [np.zeros(0)] * len(buckets)
        total = 0.0
        for v in self._order:
            interruption.check()
            scope = self._scope[v]
            own = unary[self._begin[v] : self._begin[v + 1]]
            buckets[v] = buckets[v] + own.reshape(-1, *[1] * (len(scope) - 1))
            messages[v] = reduce(buckets[v], (0,))
            p = self._parent[v]
            if p < 0:
                total += float(messages[v])
            else:
                buckets[p] = buckets[p] + self._spread(messages[v], scope[1:], self._scope[p])
        return buckets, messages, total
