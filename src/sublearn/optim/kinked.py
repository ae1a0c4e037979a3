r"""Losses with a kink, by parabolas that get narrower: quantile regression and the hinge loss.

.. math:: \min_{w, b} F(w, b) = \sum_i s_i f(z_i; y_i) + p(w), \qquad
    f(z; y) = \max_{l_i \le a \le h_i} a (z - y)

The smoothed loss :math:`f_\mu(z; y) = \max_a a (z - y) - \frac\mu2 a^2` joins the two lines by a
parabola of width :math:`\mu`. Its problem is the one of width 1 with y, w, b and offsets divided by
:math:`\mu` and l2 multiplied by it, so that every solver takes it. The slopes a of its solution lie
in the lines' own dual, whatever :math:`\mu` is:

.. math:: D(\theta) = \sum_i \theta_i y_i - p^*(X^\top \theta), \qquad
    \theta_i = -s_i a_i, \quad \sum_i \theta_i = 0,

scaled until :math:`p^*` is finite, is a lower bound on F. Widths fall until that gap is closed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.optim import linear_solve
from sublearn.optim.linear_problem import LinearProblem, Penalty, SparsePenalty
from sublearn.optim.linear_solve import LinearSolution, SolverSettings
from sublearn.optim.row_losses import KinkedLoss
from sublearn.optim.stages import StagedRun
from sublearn.trace import Status, Trace

__all__ = ["largest_l1", "solve"]

_FIRST_TOL = 1e-3  # of the first widths
_NARROWER = 0.1  # at most by this factor at a time
_NARROWEST = 1e-12  # of the size of the residuals, below which they are rounding
_NULL_WIDTH = 1e-6  # the same, for the model without features


def solve(
    problem: LinearProblem,
    penalty: SparsePenalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
    init: LinearSolution | None = None,
) -> LinearSolution:
    """Minimise from `init`, or from the model without features, whatever the loss is."""
    if not isinstance(problem.loss, KinkedLoss):
        return linear_solve.solve(problem, penalty, l1, settings, progress, init)
    assert isinstance(penalty, Penalty), "a kink and groups are not learned together"
    return _Run(problem, penalty, l1, settings, init).run(progress)


def largest_l1(problem: LinearProblem, penalty: SparsePenalty, settings: SolverSettings) -> float:
    """The least l1 for which every penalised weight is 0; with a kink, hardly above the least."""
    if not isinstance(problem.loss, KinkedLoss):
        return linear_solve.largest_l1(problem, penalty, settings)
    width = _NULL_WIDTH * _size(problem, np.zeros(problem.n_features), problem.constant)
    return linear_solve.largest_l1(_scaled(problem, width), penalty, settings)


def _size(problem: LinearProblem, w: np.ndarray, intercept: float) -> float:
    """The mean distance of predictions from the kink."""
    found = float(problem.weights @ np.abs(problem.predictions(w, intercept) - problem.y))
    return found or 1.0


def _scaled(problem: LinearProblem, width: float) -> LinearProblem:
    """The problem whose solution, times `width`, is that of parabolas of this width."""
    offsets = None if problem.offsets is None else problem.offsets / width
    return replace(problem, y=problem.y / width, offsets=offsets)


def _balanced(theta: np.ndarray) -> np.ndarray:
    """A dual point near `theta` whose entries add up to 0: the excess side is scaled down."""
    up, down = float(theta[theta > 0].sum()), float(-theta[theta < 0].sum())
    least = min(up, down)
    if least == 0:
        return np.zeros_like(theta)
    return np.where(theta > 0, theta * (least / up), theta * (least / down))


class _Run(StagedRun):
    """Widths one after another, and the best point and bound so far."""

    def __init__(
        self,
        problem: LinearProblem,
        penalty: Penalty,
        l1: float,
        settings: SolverSettings,
        init: LinearSolution | None,
    ):
        self.penalty, self.l1 = penalty, l1
        self.w = np.zeros(problem.n_features) if init is None else init.x
        self.intercept = problem.constant if init is None else init.intercept
        self.size = self.width = _size(problem, self.w, self.intercept)
        self.bound, self.best = -np.inf, (self.w, self.intercept)
        super().__init__(problem, settings, self.size)

    @property
    def certificate(self) -> float:
        """Relative gap of the best point."""
        return max(self.objective - self.bound, 0.0) / self.unit()

    @property
    def point(self) -> tuple[np.ndarray, float]:
        """The best so far."""
        return self.best

    def advance(self, progress: Progress) -> None:
        """One width: solve, measure, choose the next."""
        before = self.certificate if self.rows else np.inf
        tol = float(np.clip(0.05 * before, 0.1 * self.settings.tol, _FIRST_TOL))
        found = self._solve(tol, progress)
        self.w, self.intercept = self.width * found.x, self.width * found.intercept
        self.n_iter += found.n_iter
        self._measure(found)
        self.record(found, width=self.width)
        is_stuck = found.status is Status.STALLED and self.certificate >= before
        if self.certificate <= self.settings.tol:
            self.status = Status.CONVERGED
        elif self.n_iter >= self.settings.max_iter * len(self.rows):
            self.status = Status.MAX_ITER
        elif is_stuck or self.width < _NARROWEST * self.size:
            self.status = Status.STALLED
        share = 0.3 * self.settings.tol / max(self.certificate, 1e-300)
        self.width *= max(_NARROWER, min(share, 0.5))

    def _solve(self, tol: float, progress: Progress) -> LinearSolution:
        init = LinearSolution(
            Status.STOPPED, np.nan, np.inf, 0, Trace({}), self.w / self.width,
            self.intercept / self.width,
        )  # fmt: skip
        penalty = replace(self.penalty, l2=self.penalty.l2 * self.width)
        settings = replace(self.settings, tol=tol)
        problem = _scaled(self.problem, self.width)
        rest = penalty, self.l1, settings, progress, init
        return linear_solve.solve(problem, *rest, is_part=True)

    def _measure(self, found: LinearSolution) -> None:
        """The lines' own objective and dual at the point."""
        problem = self.problem
        z = problem.predictions(self.w, self.intercept)
        slopes = problem.loss.slope(z / self.width, problem.y / self.width)
        self.bound = max(self.bound, self._dual(-problem.weights * slopes))
        if problem.fit_intercept:
            rest = z - self.intercept
            self.intercept = problem.loss.best_beside(rest, problem.y, problem.weights)
        value = problem.value(self.w, self.intercept) + self.penalty.value(self.w, self.l1)
        if value <= self.objective:
            self.objective, self.best = value, (self.w, self.intercept)

    def _dual(self, theta: np.ndarray) -> float:
        """D of a point, scaled until it is feasible."""
        problem, penalty = self.problem, self.penalty
        if problem.fit_intercept:
            theta = _balanced(theta)
        levels = self.l1 * penalty.factors
        pull = np.asarray(problem.X.T @ theta, dtype=np.float64)
        scale = float(_core.feasible_scale(penalty.compiled(), levels, -pull))
        kinks = problem.y if problem.offsets is None else problem.y - problem.offsets
        value = scale * float(theta @ kinks)
        if penalty.l2 > 0:
            excess = (pull if penalty.is_positive else np.abs(pull)) * scale - levels
            value -= float((np.maximum(excess, 0.0) ** 2).sum()) / (2 * penalty.l2)
        return value
