r"""Penalties that fall as weights grow, MCP and SCAD, by local linear approximation.

.. math:: \min_{w, b} F(w, b) = \sum_i s_i f(z_i; y_i) + \sum_j p(c_j |w_j|)
    + \tfrac{l_2}{2} \|w\|^2

with p concave on the right of 0 and of slope :math:`\lambda` there. Its tangents at weights v lie
above it: with the factors :math:`c_j p'(c_j |v_j|) / \lambda` in place of :math:`c_j`, the l1
penalty touches F's at v and is nowhere below it up to a constant. Solving that convex problem and
touching anew lowers F in each step (Zou and Li, 2008).

What is certified is the last tangent: the duality gap of the convex problem that touches F at the
weights that are returned. Where it is 0 they are stationary: no small move lowers F. There may be
other stationary points, with a lower F; no gap says how far off the least is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.optim import linear_solve
from sublearn.optim.dual_point import dual_value
from sublearn.optim.linear_problem import LinearProblem, Penalty
from sublearn.optim.linear_solve import LinearSolution, SolverSettings
from sublearn.optim.penalties import Mcp, Scad
from sublearn.optim.stages import StagedRun
from sublearn.trace import Status
from sublearn.validation import Interval, OneOf, OrNone, Rule, Settings

__all__ = ["SHAPES", "ConcavePenalty", "FallingWeights", "solve"]

#: Names of concave penalties.
SHAPES: Mapping[str, type[Mcp]] = {"mcp": Mcp, "scad": Scad}

_ROUGH = 1e-3  # tolerance of the first tangent
_CLOSER = 0.1  # of the last certificate
_PATIENCE = 5  # tangents without a lower objective
_ROUNDING = 1e-14


@dataclass(frozen=True)
class ConcavePenalty(Penalty):
    """MCP or SCAD of the size of each weight times its factor.

    Parameters
    ----------
    shape : type
        `Mcp` or `Scad`.
    gamma : float
        How soon a weight is free of the penalty.
    """

    shape: type[Mcp]
    gamma: float

    def tangent(self, w: np.ndarray, l1: float) -> Penalty:
        """The l1 penalty that touches at `w`."""
        slopes = self.shape(l1, self.gamma).slope(self.factors * w) / l1
        return Penalty(self.factors * slopes, self.l2, self.is_positive)

    def value(self, w: np.ndarray, l1: float) -> float:
        """The penalty of the weights."""
        return self.shape(l1, self.gamma).value(self.factors * w) + 0.5 * self.l2 * float(w @ w)


@dataclass(frozen=True)
class FallingWeights(Settings):
    r"""Weights of the l1 penalty that fall to 0 as a weight grows: a concave penalty.

    Large weights are then not pulled towards 0, as those of the lasso are.

    Parameters
    ----------
    shape : {"mcp", "scad"}, default="mcp"
        The minimax concave penalty, whose slope falls at once, or the smoothly clipped absolute
        deviation, whose slope is `l1` up to there.
    gamma : float or None, default=None
        :math:`\gamma`: from :math:`\gamma l_1` on a weight is free of the penalty. Above 1 for
        "mcp", above 2 for "scad"; None is 3 and 3.7.
    """

    shape: str = "mcp"
    gamma: float | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "shape": OneOf(*SHAPES),
        "gamma": OrNone(Interval(float, 1, np.inf, "neither")),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._made(1.0)  # knows what gamma must be

    def _made(self, l1: float) -> Mcp:
        kind = SHAPES[self.shape]
        return kind(l1) if self.gamma is None else kind(l1, self.gamma)

    def penalty(self, n_features: int, l2: float, is_positive: bool) -> ConcavePenalty:
        """Of so many features."""
        gamma = self._made(1.0).gamma
        return ConcavePenalty(np.ones(n_features), l2, is_positive, SHAPES[self.shape], gamma)


def solve(
    problem: LinearProblem,
    penalty: ConcavePenalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
    init: LinearSolution | None = None,
) -> LinearSolution:
    """A stationary point, from `init` or from the solution of the l1 penalty."""
    return _Run(problem, penalty, l1, settings, init).run(progress)


class _Run(StagedRun):
    """Tangents one after another."""

    def __init__(
        self,
        problem: LinearProblem,
        penalty: ConcavePenalty,
        l1: float,
        settings: SolverSettings,
        init: LinearSolution | None,
    ):
        super().__init__(problem, settings, problem.scale)
        self.penalty, self.l1 = penalty, l1
        self.at = init
        w = np.zeros(problem.n_features) if init is None else init.x
        self.tangent = penalty.tangent(w, l1)
        self.gap = np.inf  # of the tangent's problem

    @property
    def certificate(self) -> float:
        """Relative gap of the problem that touches the objective."""
        return self.gap / self.unit() if np.isfinite(self.gap) else np.inf

    @property
    def point(self) -> tuple[np.ndarray, float]:
        """Where it touches."""
        assert self.at is not None
        return self.at.x, self.at.intercept

    def advance(self, progress: Progress) -> None:
        """Solve the problem of the tangent, and touch at its solution."""
        tol = float(np.clip(_CLOSER * self.certificate, 0.1 * self.settings.tol, _ROUGH))
        found = linear_solve.solve(
            self.problem, self.tangent, self.l1, replace(self.settings, tol=tol), progress, self.at,
            is_part=True,
        )  # fmt: skip
        self.at = found
        self.n_iter += found.n_iter
        self.tangent = self.penalty.tangent(found.x, self.l1)
        self._measure(found)
        self.record(found)
        self.status = self._judge()

    def _measure(self, found: LinearSolution) -> None:
        loss = self.problem.value(found.x, found.intercept)
        self.objective = loss + self.penalty.value(found.x, self.l1)
        touching = loss + self.tangent.value(found.x, self.l1)
        bound = dual_value(self.problem, self.tangent, self.l1, found.x, found.intercept)
        self.gap = max(touching - bound, 0.0)

    def _judge(self) -> Status | None:
        if self.certificate <= self.settings.tol:
            return Status.CONVERGED
        if len(self.rows) >= self.settings.max_iter:
            return Status.MAX_ITER
        is_long = len(self.rows) > _PATIENCE
        earlier = self.rows[-1 - _PATIENCE]["objective"] if is_long else np.inf
        is_still = self.objective >= earlier - _ROUNDING * abs(earlier)
        return Status.STALLED if is_long and is_still else None
