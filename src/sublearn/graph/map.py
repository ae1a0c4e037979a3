"""The most probable assignment of a factor graph, with a bound on how good any other can be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.graph.factor_graph import FactorGraph
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.typing import Seed
from sublearn.validation import (
    RUN_RULES,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_arguments,
)
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sublearn.display import BoundDisplay
    from sublearn.display.base import AxesLike

__all__ = ["MapResult", "run_map", "solve_map"]

#: The parts that work, by the name of the solver.
_SOLVERS = {
    "auto": _core.MapParts.everything,
    "gdmm": _core.MapParts.gdmm,
    "gdmm_and_search": _core.MapParts.gdmm_and_search,
    "messages": _core.MapParts.messages,
    "local_search": _core.MapParts.local_search,
    "neighbourhoods": _core.MapParts.neighbourhoods,
}

_RULES: dict[str, Rule] = {
    "time_limit": OrNone(Positive(float)),
    "tol": NonNegative(float),
    "max_iter": Positive(int),
    "search_work": NonNegative(float),
    "solver": OneOf(*_SOLVERS),
    "rho": OrNone(Positive(float)),
    "eta": OrNone(Positive(float)),
    **RUN_RULES,
}


@dataclass(frozen=True)
class MapResult(Solution):
    """What :func:`solve_map` found.

    `status` is converged if `gap` is at most `tol`, and otherwise says which budget ran out:
    `time_limit`, `max_iter`, or `search_work` where fewer iterations were made; a part that works
    alone and has nothing left to do has stalled. `n_iter` counts iterations of GDMM over all
    connected components, 0 if none was needed, and `trace` has seconds, score, bound, active labels
    and states, work.

    Parameters
    ----------
    assignment : ndarray of int
        Label of each variable.
    bound : float
        No assignment scores more.
    names : list of hashable, optional
        What the variables are called, if the graph has names.
    found_by, bounded_by : str
        The part of the solver that made the last improvement of the score, and of the bound:
        "start" (the best label of each variable, and reductions), "elimination", "messages",
        "branch_and_bound", "gdmm", "local_search" or "neighbourhoods".
    """

    assignment: np.ndarray
    bound: float
    names: list[Hashable] | None = None
    found_by: str = "start"
    bounded_by: str = "start"

    @property
    def labels(self) -> dict[Hashable, int]:
        """The label of each variable by its name, or by its number if it has none."""
        names = range(len(self.assignment)) if self.names is None else self.names
        return dict(zip(names, self.assignment.tolist(), strict=True))

    @property
    def score(self) -> float:
        """The objective: a natural logarithm, -inf if the assignment has a forbidden state."""
        return self.objective

    @property
    def gap(self) -> float:
        """The certificate: (bound - score) / max(1, abs(score))."""
        return self.certificate

    def plot(self, ax: AxesLike = None) -> BoundDisplay:
        """Draw how the score rose and the bound fell; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        BoundDisplay
        """
        from sublearn.display import BoundDisplay

        columns = (self.trace[name] for name in ("seconds", "score", "bound"))
        title = f"Score and bound, gap {self.gap:.1e}"
        return BoundDisplay(*columns, title=title).called_by("MapResult.plot").plot(ax)


def solve_map(
    graph: FactorGraph,
    *,
    time_limit: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 2000,
    search_work: float = 1e9,
    solver: str = "auto",
    rho: float | None = None,
    eta: float | None = None,
    init: MapResult | ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> MapResult:
    r"""Find the assignment of largest score, and an upper bound on the score of all assignments.

    Between the two is the linear program (3.25) of the paper,

    .. math::
        \max_{x, y} \sum_i \theta_i^T x_i + \sum_f \theta_f^T y_f
        \quad\text{s.t.}\quad M_{if}\, y_f = x_i,

    over points of simplices. For any multipliers :math:`\mu`,

    .. math::
        \sum_i \max_a \Big[\theta_i(a) + \sum_f \mu_{if}(a)\Big]
        + \sum_f \max_y \Big[\theta_f(y) - \sum_i \mu_{if}(y_i)\Big]

    bounds every assignment from above: it is the certificate, and its maxima are over all states.
    By default several methods take turns, and `found_by` and `bounded_by` of the result name the
    ones that made the last improvements: elimination on graphs of small width, sweeps of messages,
    branch and bound, a variant of the greedy direction method of multipliers (GDMM), local search
    with exact moves of large blocks, and large neighbourhoods.

    Parameters
    ----------
    graph : FactorGraph
        What to maximise.
    time_limit : float, optional
        Seconds after which the best assignment so far is returned. With a limit, what is left of
        the time after the linear program is solved goes into the search.
    tol : float, default 1e-6
        Stop at a relative gap of this size.
    max_iter : int, default 2000
        Iterations of GDMM on one connected component; with "messages" and "neighbourhoods", sweeps.
    search_work : float, default 1e9
        Operations (some seconds) of the search on one component after the bound has converged,
        where there is no time limit.
    solver : {"auto", "gdmm", "gdmm_and_search", "messages", "local_search", "neighbourhoods"}
        "auto", the default, is all that helps. "gdmm" is GDMM as the paper prints it and nothing
        else: algorithm 9 where all variables are binary and all factors pairwise, else algorithm 8.
        The others are further parts of "auto" alone, to see what each contributes:
        "gdmm_and_search" our variant of GDMM in turns with local search, "messages" sweeps of dense
        messages, "neighbourhoods" the same and then large neighbourhoods of what they decode to.
        All but "auto" work on the graph as it is.
    rho : float, optional
        Penalty of GDMM. By default it is chosen from the scores and, but for "gdmm", then balanced
        between primal and dual residual.
    eta : float, optional
        Dual step of GDMM, `rho` by default.
    init : MapResult or array-like of int, optional
        An assignment to start from, of an earlier graph with other scores for example. A good one
        lets the solver exclude labels from the beginning.
    n_jobs : int, optional
        Threads; None means 1, -1 all processors. Without a time limit the answer is the same for
        any number.
    random_state : int, RandomState, Generator or None, optional
        Seed of the search. The same seed gives the same answer where there is no time limit.
    verbose : int, default 0
        1 draws a progress bar.
    callback : callable, optional
        Gets an :class:`~sublearn.trace.Event` about ten times a second; a true return value stops
        the solver, which returns the best assignment so far.

    Returns
    -------
    MapResult

    Examples
    --------
    >>> from sublearn.graph import FactorGraph, potts, solve_map
    >>> graph = FactorGraph(unary=[[0.0, 1.0], [0.4, 0.0], [0.0, 1.0]])
    >>> graph.add_factors([[0, 1], [1, 2]], potts(2, 0.5))
    >>> result = solve_map(graph)
    >>> result.assignment.tolist(), result.score, result.gap
    ([1, 1, 1], 2.0, 0.0)
    """
    if not isinstance(graph, FactorGraph):
        raise ParameterError(f"solve_map.graph must be a FactorGraph, got {show(graph)}")
    check_arguments("solve_map", locals(), _RULES)
    settings = _core.MapSettings()
    settings.tol, settings.max_iter, settings.search_work = tol, int(max_iter), search_work
    settings.time_limit = np.inf if time_limit is None else time_limit
    settings.rho, settings.eta, settings.parts = rho or 0.0, eta or 0.0, _SOLVERS[solver]
    settings.n_threads, settings.seed = as_n_threads(n_jobs), as_seed(random_state)
    result = run_map(graph, settings, init, callback, verbose)
    if np.isneginf(result.score) and result.status is Status.CONVERGED:
        raise ValueError(
            "solve_map.graph must allow an assignment: each one has a forbidden state "
            "(a score of -inf, or zero in a file)"
        )
    return result


def run_map(
    graph: FactorGraph,
    settings: _core.MapSettings,
    init: MapResult | ArrayLike | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> MapResult:
    """Solve a graph; a score of -inf with the status converged: it allows no assignment."""
    native, labels, monitor = graph._compiled(), _as_labels(init, graph), _core.Monitor()
    found = watch(
        lambda: _core.solve_map(native, settings, labels, monitor),
        monitor,
        n_total=settings.max_iter,
        callback=callback,
        verbose=verbose,
        title="MAP",
        may_be_left=True,
    )
    return _result(graph, found, settings)


def _as_labels(init: MapResult | ArrayLike | None, graph: FactorGraph) -> np.ndarray | None:
    if init is None:
        return None
    given = init.assignment if isinstance(init, MapResult) else init
    return np.ascontiguousarray(graph._labels(given, "solve_map.init"), dtype=np.int32)


def _result(graph: FactorGraph, found: dict, settings: _core.MapSettings) -> MapResult:
    score, status = graph.score(found["labels"]), Status.of(found["status"])
    if status is Status.MAX_ITER:
        status = _spent(int(found["n_iter"]), settings)
    bound = max(float(found["bound"]), score)
    return MapResult(
        status=status,
        objective=score,
        certificate=(bound - score) / max(1.0, abs(score)) if np.isfinite(score) else np.inf,
        n_iter=int(found["n_iter"]),
        trace=Trace(found["rows"]),
        assignment=found["labels"],
        bound=bound,
        names=graph.names,
        found_by=found["found_by"].name,
        bounded_by=found["bounded_by"].name,
    )


def _spent(n_iter: int, settings: _core.MapSettings) -> Status:
    """The budget that ended a solver which neither converged nor was stopped."""
    if np.isfinite(settings.time_limit):  # the search has no other limit then
        return Status.TIME_LIMIT
    return Status.SEARCH_WORK if n_iter < settings.max_iter else Status.MAX_ITER
