"""The n best assignments of a factor graph, and which of them are proved to be."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.graph.bucket_tree import BucketTree, maximum
from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.map import MapResult, run_map
from sublearn.typing import Seed
from sublearn.validation import NonNegative, OrNone, Positive, Rule, as_seed, check_arguments
from sublearn.validation.values import show

__all__ = ["NBest", "n_best_assignments"]

_RULES: dict[str, Rule] = {"n": Positive(int), "tol": NonNegative(float),
                           "search_work": NonNegative(float),
                           "time_limit": OrNone(Positive(float))}  # fmt: skip


@dataclass(frozen=True)
class NBest:
    """What :func:`n_best_assignments` found.

    Parameters
    ----------
    assignments : ndarray of int of shape (n_found, n_variables)
        All different, the best first.
    scores : ndarray of shape (n_found,)
    is_proved : ndarray of bool of shape (n_found,)
        Whether nothing that is not among the rows up to this one scores more than it, but for
        `tol`.
    bound : float
        No assignment that is not among the rows scores more; -inf if there is none.
    names : list of hashable, optional
        What the variables are called, if the graph has names.
    """

    assignments: np.ndarray
    scores: np.ndarray
    is_proved: np.ndarray
    bound: float
    names: list[Hashable] | None = None

    def labels(self, k: int) -> dict[Hashable, int]:
        """The label of each variable by name or number in assignment `k`, 0 the best."""
        names = range(self.assignments.shape[1]) if self.names is None else self.names
        return dict(zip(names, self.assignments[k].tolist(), strict=True))


def n_best_assignments(
    graph: FactorGraph,
    n: int,
    *,
    tol: float = 1e-6,
    search_work: float = 1e8,
    time_limit: float | None = None,
    random_state: Seed = None,
) -> NBest:
    """Find the n best assignments by splitting what is left into parts, the best first.

    When an assignment x is found in a part, the rest of the part is split by the first variable
    at which another one differs from x (Lawler 1972). A part waits under a bound: that of the part
    it comes from, or on graphs of small width the best score that a label other than x's can have
    (Yanover and Weiss 2004). Only a part that comes to the top is solved.

    Parameters
    ----------
    graph : FactorGraph
    n : int
        How many; fewer are returned if the graph allows no more, or the time is over.
    tol : float, default 1e-6
        Relative gap at which a part counts as solved.
    search_work : float, default 1e8
        Operations of the search in each part after its bound has converged.
    time_limit : float, optional
        Seconds in all.
    random_state : int, RandomState, Generator or None, optional
        Seed of the searches.

    Returns
    -------
    NBest

    Examples
    --------
    >>> from sublearn.graph import FactorGraph, n_best_assignments, potts
    >>> graph = FactorGraph(unary=[[0.0, 1.0], [0.25, 0.0]])
    >>> graph.add_factor([0, 1], potts(2, 0.5))
    >>> found = n_best_assignments(graph, 3)
    >>> found.assignments.tolist(), found.scores.tolist(), found.is_proved.all().item()
    ([[1, 1], [1, 0], [0, 0]], [1.0, 0.75, 0.25], True)
    """
    if not isinstance(graph, FactorGraph):
        raise ParameterError(f"n_best_assignments.graph must be a FactorGraph, got {show(graph)}")
    check_arguments("n_best_assignments", locals(), _RULES)
    settings = _core.MapSettings()
    settings.tol, settings.search_work, settings.seed = tol, search_work, as_seed(random_state)
    return _Parts(graph, settings, time_limit).best(int(n))


@dataclass(order=True)
class _Part:
    """Assignments that the unary scores allow; `order` puts the highest bound first."""

    order: tuple[float, int]
    unary: np.ndarray = field(compare=False)
    first: int = field(compare=False)  # variables before this one have one label
    result: MapResult | None = field(default=None, compare=False)

    @property
    def bound(self) -> float:
        return -self.order[0]


class _Parts:
    """The heap of what is left."""

    def __init__(self, graph: FactorGraph, settings: _core.MapSettings, time_limit: float | None):
        self._graph, self._settings = graph, settings
        self._end = np.inf if time_limit is None else time.monotonic() + time_limit
        self._base = graph.copy()  # with the core's tables of the part before
        self._tree = BucketTree(graph)
        self._number = itertools.count()
        self._heap: list[_Part] = []

    def best(self, n: int) -> NBest:
        found: list[MapResult] = []
        self._push(np.inf, self._graph._unary, 0)
        while self._heap and len(found) < n and time.monotonic() < self._end:
            part = heapq.heappop(self._heap)
            if part.result is None:
                self._solve(part)
            else:
                found.append(part.result)
                for bound, unary, first in self._split(part, part.result):
                    self._push(bound, unary, first)
        if not found:
            raise ValueError(
                "n_best_assignments.graph must allow an assignment within the time, got none"
            )
        return self._sorted(found)

    def _push(
        self, bound: float, unary: np.ndarray, first: int, result: MapResult | None = None
    ) -> None:
        # equal bounds: what is solved comes before what is not
        place = (-bound, next(self._number) - (1 << 60 if result is not None else 0))
        heapq.heappush(self._heap, _Part(place, unary, first, result))

    def _solve(self, part: _Part) -> None:
        self._base = self._base.copy()
        self._base._unary, self._base._is_unary_new = part.unary, True
        if np.isfinite(self._end):
            self._settings.time_limit = max(1e-3, self._end - time.monotonic())
        result = run_map(self._base, self._settings)
        if np.isfinite(result.score):
            bound = result.score if result.gap <= self._settings.tol else result.bound
            self._push(min(part.bound, max(bound, result.score)), part.unary, part.first, result)

    def _split(self, part: _Part, result: MapResult) -> Iterator[tuple[float, np.ndarray, int]]:
        """Parts without the assignment: as it up to a variable, another label there."""
        begin, bounds = self._graph._begin, self._bounds(part, result)
        unary = part.unary
        for i in range(part.first, self._graph.n_variables):
            own = slice(int(begin[i]), int(begin[i + 1]))
            label = int(begin[i]) + int(result.assignment[i])
            others = unary.copy()
            others[label] = -np.inf
            if np.isfinite(others[own]).any() and np.isfinite(bounds[i]):
                yield bounds[i], others, i
            fixed = unary.copy()
            fixed[own] = -np.inf
            fixed[label] = unary[label]
            unary = fixed

    def _bounds(self, part: _Part, result: MapResult) -> list[float]:
        """What an assignment of the part with another label can score, for each variable."""
        if not self._tree.is_narrow:
            return [part.bound] * self._graph.n_variables
        scores, _ = self._tree.run(part.unary, maximum)
        others = (np.delete(own, x) for own, x in zip(scores, result.assignment, strict=True))
        rounding = 1e-9 * max(1.0, abs(result.score))
        return [
            min(part.bound, float(own.max()) + rounding) if own.size else -np.inf for own in others
        ]

    def _sorted(self, found: list[MapResult]) -> NBest:
        is_closed = np.logical_and.accumulate([r.gap <= self._settings.tol for r in found])
        scores = np.array([result.score for result in found])
        order = np.argsort(-scores, kind="stable")
        bound = max((part.bound for part in self._heap), default=-np.inf)
        assignments = np.stack([result.assignment for result in found])
        return NBest(assignments[order], scores[order], is_closed[order], bound, self._graph.names)
