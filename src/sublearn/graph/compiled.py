"""From Python's factors to the graph of the core: finite scores, scales that are not negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from sublearn import _core
from sublearn.graph.factors import Factors

__all__ = ["compile_graph", "fill_forbidden", "forbidden_depth"]


def forbidden_depth(unary: np.ndarray, begin: np.ndarray, factors: Sequence[Factors]) -> float:
    """How far below the best state of its table a forbidden state has to be; 0 if there is none.

    Everything else can differ by the sum R of all ranges at most, so that 1 + R is enough. A power
    of two is taken: scores that change a little leave the tables as they are.
    """
    low, high = unary_bounds(unary, begin)
    total = float((high - low).sum()) + sum(group.total_range() for group in factors)
    if not np.isfinite(total):
        raise ValueError("FactorGraph: scores must be so small that their sum is finite")
    forbidding = [group for group in factors if group.table.has_forbidden]
    if not forbidding and not np.isneginf(unary).any():
        return 0.0
    weights = np.concatenate([np.ones(1), *(group.weights() for group in forbidding)])
    depth = (1.0 + total) / float(weights[weights > 0].min())
    return float(2.0 ** np.ceil(np.log2(depth)))


def unary_bounds(unary: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest allowed score of each variable; one without any is refused."""
    high = np.maximum.reduceat(unary, begin[:-1])
    if np.isneginf(high).any():
        i = int(np.argmax(np.isneginf(high)))
        raise ValueError(
            f"FactorGraph: variable {i} must have an allowed label, got -inf for each of them"
        )
    low = np.minimum.reduceat(np.where(np.isneginf(unary), np.inf, unary), begin[:-1])
    return low, high


def fill_forbidden(unary: np.ndarray, begin: np.ndarray, depth: float) -> np.ndarray:
    """Unary scores with finite numbers for -inf."""
    high = np.maximum.reduceat(unary, begin[:-1])
    return np.where(np.isneginf(unary), np.repeat(high - depth, np.diff(begin)), unary)


def compile_graph(
    domain: np.ndarray,
    unary: np.ndarray,
    begin: np.ndarray,
    factors: Sequence[Factors],
    depth: float,
) -> _core.FactorGraph:
    """The graph of the core. Tables that were compiled before are taken as they are."""
    tables = _NativeTables(depth)
    table_of = [tables.number(group) for group in factors]
    return _core.FactorGraph(
        domain,
        fill_forbidden(unary, begin, depth),
        _scope_begin(factors),
        _joined([group.scopes.ravel() for group in factors], np.int32),
        _joined(table_of, np.int32),
        _joined([group.weights() for group in factors], np.float64),
        tables.all,
    )


class _NativeTables:
    """Numbers the core's tables; a negative scale is that of a negated twin, made once."""

    def __init__(self, depth: float):
        self.all: list[_core.FactorTable] = []
        self._depth = depth
        self._first: dict[tuple[int, int], int] = {}

    def number(self, group: Factors) -> np.ndarray:
        """Table of each factor."""
        rows = group.rows_or_first()
        is_negative = None if group.scale is None else group.scale < 0
        if is_negative is None or not is_negative.any():
            return rows + self._first_of(group, 1)
        if is_negative.all():
            return rows + self._first_of(group, -1)
        firsts = [self._first_of(group, sign) for sign in (1, -1)]
        return rows + np.where(is_negative, np.int32(firsts[1]), np.int32(firsts[0]))

    def _first_of(self, group: Factors, sign: int) -> int:
        key = (id(group.table), sign)
        if key not in self._first:
            self._first[key] = len(self.all)
            self.all.extend(group.table._compiled(sign, self._depth))
        return self._first[key]


def _scope_begin(factors: Sequence[Factors]) -> np.ndarray:
    parts, end = [np.zeros(1, np.int64)], 0
    for group in factors:
        n, arity = group.scopes.shape
        parts.append(np.arange(end + arity, end + arity * n + 1, arity, dtype=np.int64))
        end += arity * n
    return _joined(parts, np.int64)


def _joined(parts: list[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    """All parts in a row; one alone is not copied, for large graphs are often one group."""
    joined = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])
    return joined.astype(dtype, copy=False)
