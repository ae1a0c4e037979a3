"""A run that solves one smooth problem after another: kinked losses, concave penalties."""

from __future__ import annotations

import abc
import time

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.optim.linear_problem import LinearProblem
from sublearn.optim.linear_solve import CANCELLATION, LinearSolution, SolverSettings
from sublearn.trace import Status, Trace

__all__ = ["StagedRun"]


class StagedRun(abc.ABC):
    """Stages until a certificate, a limit or a request ends them; a row of the trace for each."""

    def __init__(self, problem: LinearProblem, settings: SolverSettings, scale: float):
        self.problem, self.settings, self.scale = problem, settings, scale
        self.objective = np.inf
        self.n_iter = 0
        self.rows: list[dict[str, float]] = []
        self.status: Status | None = None
        self.began = time.perf_counter()

    @property
    @abc.abstractmethod
    def certificate(self) -> float:
        """Relative gap of the point that is known."""

    @property
    @abc.abstractmethod
    def point(self) -> tuple[np.ndarray, float]:
        """Weights and intercept that `objective` is that of."""

    @abc.abstractmethod
    def advance(self, progress: Progress) -> None:
        """One stage, and what it showed."""

    def unit(self) -> float:
        """What gaps are divided by."""
        return max(abs(self.objective), CANCELLATION * self.scale + 1e-300)

    def run(self, progress: Progress) -> LinearSolution:
        """All stages; counted as one solve."""
        while self.status is None:
            self.advance(progress)
            if progress.stop_requested and self.status is None:
                self.status = Status.STOPPED
        progress.finish_solve()
        return self.solution()

    def record(self, found: LinearSolution, **own: float) -> None:
        """A row: the last of the stage's own, with what it counts counted on."""
        last = {name: float(found.trace[name][-1]) for name in found.trace.columns}
        earlier = self.rows[-1] if self.rows else {"n_passes": 0.0, "work": 0.0}
        self.rows.append(
            last | {
                "seconds": time.perf_counter() - self.began,
                "objective": self.objective,
                "certificate": self.certificate,
                "n_passes": last["n_passes"] + earlier["n_passes"],
                "work": last["work"] + earlier["work"],
            } | own
        )  # fmt: skip

    def solution(self) -> LinearSolution:
        """The point that is known."""
        names = [name for name in self.rows[-1] if all(name in row for row in self.rows)]
        w, intercept = self.point
        return LinearSolution(
            status=self.status or Status.STOPPED,
            objective=self.objective,
            certificate=self.certificate,
            n_iter=self.n_iter,
            trace=Trace({name: np.array([row[name] for row in self.rows]) for name in names}),
            x=w,
            intercept=float(intercept),
        )
