"""The solvers of sparse linear problems, by name, and one solve by any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.optim.dual_point import dual_value
from sublearn.optim.linear_problem import LinearProblem, Penalty, SparsePenalty
from sublearn.optim.linear_solvers import METHODS, LinearSolution, LinearSolver
from sublearn.trace import Status, Trace

__all__ = ["METHODS", "SOLVERS", "LinearSolution", "SolverSettings", "largest_l1", "solve"]

#: What `solver` may be, and the methods of `sublearn.optim` that run: where one stalls, the next
#: goes on.
SOLVERS = {"auto": ("newton", "lhac")} | {name: (name,) for name in METHODS}

_MOST_INT = 2**31 - 1
_ROUNDS = 20  # of one call of the core; between two calls it is seen whether anything still moves
_ROUNDS_IF_FREE = 5  # the core's own gap does not close then
_APPROACH_TOL = 1e-4
_MOST_STEPS = 8
_NULL_TOL = 1e-10  # the largest l1 is the gradient of a model without the penalised features
_ROUNDING = 1e-15  # of the loss at 0: what a sum of losses may be off by
CANCELLATION = 1e-12  # an objective below this share of the loss at 0 is rounding


@dataclass(frozen=True)
class SolverSettings:
    """How to solve, whatever the problem."""

    solver: str
    tol: float
    max_iter: int
    n_threads: int = 1

    @property
    def methods(self) -> list[LinearSolver]:
        """What runs, in turn."""
        return [METHODS[name] for name in SOLVERS[self.solver]]

    def shared_by(self, n_problems: int) -> tuple[int, SolverSettings]:
        """How many of the problems run at once, and with which settings each."""
        n_at_once = min(n_problems, self.n_threads)
        return n_at_once, replace(self, n_threads=max(1, self.n_threads // n_at_once))


def solve(
    problem: LinearProblem,
    penalty: SparsePenalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
    init: LinearSolution | None = None,
    *,
    is_part: bool = False,
) -> LinearSolution:
    """Minimise from `init`, or from the model without features; a part of a solve is not counted.

    The core runs a few rounds at a time. Where its own gap does not close, for instance
    because features are free of any penalty, that of :mod:`sublearn.optim.dual_point` is used.
    """
    run = _Run(problem, penalty, l1, settings, init)
    may_approach = init is None and l1 > 0 and not run.method.works_on_all
    while run.status is None:
        with progress.monitor() as monitor:
            run.advance(monitor)
        if may_approach and run.status is None:
            run.restart(_approach(problem, penalty, l1, settings, progress))
        may_approach = False
    if not is_part:
        progress.finish_solve()
    return run.solution()


def largest_l1(problem: LinearProblem, penalty: SparsePenalty, settings: SolverSettings) -> float:
    """The least l1 for which every penalised feature has weight 0."""
    w, intercept = np.zeros(problem.n_features), problem.constant
    unpenalised = penalty.unpenalised
    if len(unpenalised):
        part = Penalty(np.zeros(len(unpenalised)), penalty.l2, penalty.is_positive)
        tight = replace(settings, solver="auto", tol=min(settings.tol, _NULL_TOL))
        rest = solve(problem.take_columns(unpenalised), part, 0.0, tight, Progress())
        w[unpenalised], intercept = rest.x, rest.intercept
    return penalty.least_l1(problem.gradient(w, intercept))


def _approach(
    problem: LinearProblem,
    penalty: SparsePenalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
) -> LinearSolution | None:
    """Rough solutions for a few larger l1, where `l1` is below a hundredth of the largest.

    From zero weights at a tiny l1 too many features enter, and leave again one by one. Often they
    do so in good time: this is for a solve that did not end in its first rounds.
    """
    rough = replace(settings, tol=max(settings.tol, _APPROACH_TOL))
    largest, last = largest_l1(problem, penalty, settings), None
    n_steps = min(_MOST_STEPS, int(np.log10(max(largest / l1, 1.0))) - 1)
    for larger in np.geomspace(largest, l1, n_steps + 2)[1:-1] if n_steps > 0 else ():
        run = _Run(problem, penalty, float(larger), rough, last)
        with progress.monitor() as monitor:
            run.advance(monitor)
        last = run.solution()
        if monitor.stop_requested:
            break
    return last


class _Run:
    """A loop over solvers, between two calls of the core.

    Each call runs its own loop over features. This one decides what goes on where a call ended:
    the same solver from the point it reached, the next one if that no longer helps, or nothing.
    """

    def __init__(
        self,
        problem: LinearProblem,
        penalty: SparsePenalty,
        l1: float,
        settings: SolverSettings,
        init: LinearSolution | None,
    ):
        self.problem, self.penalty, self.l1, self.settings = problem, penalty, l1, settings
        self.w = np.zeros(problem.n_features) if init is None else np.ascontiguousarray(init.x)
        self.intercept = problem.constant if init is None else init.intercept
        self.objective, self.bound = np.nan, -np.inf
        self.n_left = settings.max_iter
        self.methods = settings.methods
        self.n_iter = 0
        self.parts: list[dict[str, np.ndarray]] = []
        self.status: Status | None = None

    @property
    def method(self) -> LinearSolver:
        """What runs now."""
        return self.methods[0]

    def restart(self, init: LinearSolution | None) -> None:
        """Go on from another point; bounds stay."""
        if init is not None:
            self.w, self.intercept, self.objective = init.x, init.intercept, np.nan

    def advance(self, monitor: _core.Monitor) -> None:
        """One call of the core, and what it showed."""
        before = self.objective
        w, intercept, end, rows = self.penalty.run(
            self.problem.data, self.l1, self._settings(), self.w, float(self.intercept), monitor
        )
        status = Status.of(end)
        if not (np.isfinite(w).all() and np.isfinite(intercept)):
            self._give_up_method()
            return
        self.w, self.intercept = w, intercept
        self._count(rows)
        is_known = np.isfinite(before) and len(rows["gap"]) > 1  # the point that it began at
        self._take_in({name: v[int(is_known) :] for name, v in rows.items()})
        if status is not Status.CONVERGED and isinstance(self.penalty, Penalty):
            found = dual_value(self.problem, self.penalty, self.l1, self.w, self.intercept)
            self.bound = max(self.bound, found)
        is_final = status is Status.STALLED and self.method.works_on_all
        is_still = before - self.objective <= 0 or is_final
        self.status = self._judge(is_still, monitor.stop_requested)

    def _count(self, rows: Mapping[str, np.ndarray]) -> None:
        """Iterations of a call; one that only looked counts as well."""
        counted = rows["n_passes"][-1] if self.method.works_on_all else len(rows["gap"]) - 1
        n_new = max(int(counted), 1)
        self.n_iter += n_new
        self.n_left -= n_new

    def _settings(self) -> _core.LinearSettings:
        """Those of the next call; a pass is cheap beside what starting anew costs."""
        n_rounds = _ROUNDS_IF_FREE if len(self.penalty.free) else _ROUNDS
        n_rounds = self.n_left if self.method.works_on_all else min(self.n_left, n_rounds)
        return self.method.settings(
            self._core_tol(), min(n_rounds, _MOST_INT), self.settings.n_threads
        )

    def _core_tol(self) -> float:
        """`tol` in terms of the core's objective, which leaves out `problem.shift`."""
        core = abs(self.objective - self.problem.shift)
        if self.problem.shift == 0 or not core > 0:
            return self.settings.tol
        return self.settings.tol * min(float(self._unit(np.float64(self.objective))) / core, 1e100)

    def _unit(self, objective: np.ndarray) -> np.ndarray:
        """What gaps are divided by."""
        return np.maximum(np.abs(objective), CANCELLATION * self.problem.scale + 1e-300)

    def _take_in(self, rows: Mapping[str, np.ndarray]) -> None:
        """Rows of the trace; the last is that of the point."""
        objective = rows["objective"] + self.problem.shift
        bounds = np.maximum.accumulate(objective - rows["gap"])
        bounds = np.maximum(bounds, self.bound)
        certificate = self._relative(objective, bounds)
        named = {"seconds": rows["seconds"], "objective": objective, "certificate": certificate}
        rest = {name: values for name, values in rows.items() if name not in (*named, "gap")}
        self.parts.append(named | rest)
        self.bound, self.objective = float(bounds[-1]), float(objective[-1])

    @property
    def certificate(self) -> float:
        """Relative gap of the point."""
        gap = self._relative(np.float64(self.objective), np.float64(self.bound))
        return float(gap) if self.parts else np.inf

    def _relative(self, objective: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """Gaps in their unit; 0 where they are the rounding of the losses that cancel."""
        gap = np.maximum(objective - bound, 0.0)
        return np.where(gap <= _ROUNDING * self.problem.scale, 0.0, gap / self._unit(objective))

    def _judge(self, is_still: bool, is_stopped: bool) -> Status | None:
        if self.certificate <= self.settings.tol:
            return Status.CONVERGED
        if is_stopped:
            return Status.STOPPED
        if self.n_left <= 0:
            return Status.MAX_ITER
        if is_still:
            self._give_up_method()
        return self.status

    def _give_up_method(self) -> None:
        """Let the next method go on from the point that is known."""
        self.methods = self.methods[1:]
        if not self.methods:
            self.status = Status.STALLED

    def solution(self) -> LinearSolution:
        """What was reached."""
        trace = _join(self.parts)
        return LinearSolution(
            status=self.status or Status.MAX_ITER,
            objective=self.objective,
            certificate=self.certificate,
            n_iter=self.n_iter,
            trace=trace,
            x=self.w,
            intercept=float(self.intercept),
        )


_COUNTED = ("seconds", "work", "n_passes")  # from the start of a call of the core


def _join(parts: list[dict[str, np.ndarray]]) -> Trace:
    """The rows of all calls, with what they count counted on."""
    if not parts:
        return Trace({"seconds": [], "objective": [], "certificate": []})
    columns = {name: [part[name] for part in parts] for name in parts[0]}
    for name in _COUNTED:
        before = np.cumsum([0, *(values[-1] for values in columns[name][:-1])])
        columns[name] = [v + b for v, b in zip(columns[name], before, strict=True)]
    return Trace({name: np.concatenate(values) for name, values in columns.items()})
