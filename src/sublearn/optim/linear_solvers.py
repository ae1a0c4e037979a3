"""Sparse linear models by any of the compiled solvers, behind one function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.optim.linear_input import (
    check_features,
    check_levels,
    check_numbers,
    check_row_weights,
    check_targets,
    compiled_penalty,
    refusal,
)
from sublearn.optim.linear_objective import LOSS, as_columns, linear_data
from sublearn.optim.linear_problem import LinearProblem, Penalty
from sublearn.optim.row_losses import Huber, KinkedLoss, Quantile, as_loss, compiled_name
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.typing import MatrixLike, Seed
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    JobCount,
    NameOr,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    Settings,
    as_n_threads,
    as_seed,
    check_arguments,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "METHODS",
    "CoordinateDescent",
    "LinearSolution",
    "LinearSolver",
    "minimise_linear",
]

_NAME = "minimise_linear"


@dataclass(frozen=True)
class LinearSolution(Solution):
    """A linear model, and how it was found.

    Parameters
    ----------
    x : ndarray of shape (n_features,)
        The weights; those that the penalty leaves out are exactly 0.
    intercept : float
        0 unless one was asked for.
    """

    x: np.ndarray = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0


@dataclass(frozen=True)
class LinearSolver:
    """What differs between the solvers.

    An iteration is a pass over all features, or else a round of the active set.
    """

    method: _core.LinearMethod
    max_iter: int
    works_on_all: bool = True
    needs_bounded_curvature: bool = False
    takes_bounds: bool = True

    def settings(self, tol: float, max_iter: int, n_threads: int) -> _core.LinearSettings:
        """The form that the core takes."""
        settings = _core.LinearSettings()
        settings.method, settings.tol = self.method, tol
        settings.max_iter, settings.n_threads = max_iter, n_threads
        return settings


#: The one table of solvers; the estimators of `sublearn.linear` read it too.
METHODS = {
    "newton": LinearSolver(_core.LinearMethod.newton, max_iter=100, works_on_all=False),
    "lhac": LinearSolver(_core.LinearMethod.lhac, max_iter=100, works_on_all=False),
    "cd1": LinearSolver(_core.LinearMethod.cd1, max_iter=10_000, needs_bounded_curvature=True),
    "interior_point": LinearSolver(
        _core.LinearMethod.interior_point, max_iter=200, takes_bounds=False
    ),
}

_CURVATURE_BOUNDS = {
    "coordinate": _core.CurvatureBound.coordinate,
    "global": _core.CurvatureBound.overall,
}


@dataclass(frozen=True)
class CoordinateDescent(Settings):
    """First-order stochastic coordinate descent, the solver "cd1", as it is to run.

    Parameters
    ----------
    curvature_bound : {"coordinate", "global"}, default="coordinate"
        One bound for each feature, or the largest of them for all as in (2.2.19) of Tang (2016).
    random_state : int, Generator, RandomState or None, default=None
        Of the coordinates that are drawn.
    """

    curvature_bound: str = "coordinate"
    random_state: Seed = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "curvature_bound": OneOf(*_CURVATURE_BOUNDS),
        "random_state": RandomState(),
    }


_RULES: dict[str, Rule] = {
    "loss": NameOr(Huber, (*LOSS.names, "hinge", "quantile"), (Quantile,)),
    "l2": NonNegative(float),
    "solver": NameOr(CoordinateDescent, tuple(METHODS)),
    "fit_intercept": Boolean(),
    "tol": NonNegative(float),
    "max_iter": OrNone(Positive(int)),
    "n_jobs": JobCount(),
    **WATCH_RULES,
}


def minimise_linear(
    X: MatrixLike,
    y: ArrayLike,
    loss: str | Huber | Quantile = "logistic",
    l1: ArrayLike = 1.0,
    *,
    l2: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    solver: str | CoordinateDescent = "newton",
    fit_intercept: bool = False,
    weights: ArrayLike | None = None,
    init: LinearSolution | ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> LinearSolution:
    r"""Minimise the loss of a linear model plus a separable penalty.

    .. math::
        \min_{w,b} \sum_i s_i f(\langle x_i, w \rangle + b; y_i)
        + \sum_j \lambda_j |w_j| + \frac{l_2}{2} \|w\|^2

    The solvers are those of chapters 2 and 5 of [1]_. All stop by the same duality gap, so that one
    can judge another.

    Parameters
    ----------
    X : sparse matrix or dense array of shape (n_samples, n_features)
        float32 and float64 are used as they are.
    y : array of shape (n_samples,)
        -1 or 1 for "logistic", "squared_hinge" and "hinge", non-negative for "poisson", any number
        else.
    loss : {"logistic", "squared", "squared_hinge", "huber", "poisson", "hinge", "quantile"}, \
            Huber or Quantile
        f, the loss of a row; ``Huber(delta)`` says where the square turns into a line,
        ``Quantile(level)`` which quantile. "hinge" and "quantile" have a kink, which is approached
        by ever narrower parabolas; the gap is that of the loss itself. `bounds` are then infinite
        or ``(0, inf)``, and `callback` is not called.
    l1 : float or array of shape (n_features,)
        :math:`\lambda`, or one weight for each feature. Without `l2` and without finite `bounds`
        every weight must be positive: the duality gap of an unpenalised feature stays open.
    l2 : float
        Weight of the squared norm.
    bounds : pair of float
        :math:`a \le 0 \le b` for all weights; ``(0, inf)`` asks for non-negative ones. Not for
        "interior_point".
    solver : {"newton", "lhac", "cd1", "interior_point"} or CoordinateDescent
        - "newton": proximal Newton steps by coordinate descent (CD2 of [1]_, GLMNET) inside an
          active set with gap-safe screening.
        - "lhac": algorithm 20 of [1]_ inside the same active set.
        - "cd1": first-order stochastic coordinate descent over all features; for losses of
          bounded curvature, all but "poisson". It draws the same coordinates in every call;
          ``CoordinateDescent(...)`` is the same solver with settings of its own.
        - "interior_point": Newton's method on a log barrier over all features [2]_; the system is
          factored up to 400 features and solved by conjugate gradients above.
    fit_intercept : bool
        Whether b may differ from 0; it is not penalised.
    weights : array of shape (n_samples,), optional
        :math:`s_i`; 1 / n_samples each if not given, so that the loss is a mean.
    init : LinearSolution, array of shape (n_features + fit_intercept,) or None
        Where to start: an earlier solution, or weights and, if there is one, the intercept behind
        them. None starts from 0.
    tol : float
        On the duality gap divided by the objective.
    max_iter : int, optional
        Limit of rounds of the active set ("newton", "lhac"; 100 if not given), epochs ("cd1";
        10,000) or Newton steps ("interior_point"; 200).
    n_jobs : int or None
        Threads of the gradients; None means 1, -1 all processors.
    verbose, callback
        As for estimators.

    Returns
    -------
    LinearSolution
        `x`, `intercept`, `objective`, `certificate` (the relative gap), `status`, `n_iter` and
        `trace`. Objective and certificate are those of `x` and `intercept`, also where a limit or
        the callback ended the solve.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.
    .. [2] K. Koh, S.-J. Kim, S. Boyd, "An interior-point method for large-scale l1-regularized
       logistic regression", JMLR 8, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.eye(4), np.array([4.0, -3.0, 0.5, 0.0])
    >>> for solver in ("newton", "lhac", "cd1", "interior_point"):
    ...     solution = minimise_linear(X, y, "squared", l1=0.25, solver=solver, tol=1e-9)
    ...     print(solution.x.round(4) + 0.0)
    [ 3. -2.  0.  0.]
    [ 3. -2.  0.  0.]
    [ 3. -2.  0.  0.]
    [ 3. -2.  0.  0.]
    """
    check_arguments(_NAME, locals(), _RULES)
    penalty = compiled_penalty(_NAME, l2, bounds)
    descent = solver if isinstance(solver, CoordinateDescent) else CoordinateDescent(random_state=0)
    title = "cd1" if isinstance(solver, CoordinateDescent) else solver
    (name, parameter), chosen = compiled_name(loss), METHODS[title]
    if chosen.needs_bounded_curvature and name == "poisson":
        raise refusal(_NAME, "loss", f"have a bounded curvature for solver {title!r}", name)
    if not chosen.takes_bounds and np.isfinite(bounds).any():
        raise refusal(_NAME, "bounds", f"be infinite for solver {title!r}", bounds)
    design = as_columns(check_features(_NAME, X))
    n_rows, n_features = design.shape
    targets = check_targets(_NAME, y, n_rows, name)
    rows = check_row_weights(_NAME, weights, n_rows)
    data = linear_data(design, targets, name, rows, fit_intercept, parameter)
    levels = check_levels(_NAME, l1, n_features, "feature")
    if not levels.all() and l2 == 0 and not np.isfinite(bounds).all():
        raise refusal(_NAME, "l1", "be positive where there is neither l2 nor a finite box", l1)
    max_iter = chosen.max_iter if max_iter is None else int(max_iter)
    if isinstance(kinked := as_loss(loss), KinkedLoss):
        problem = LinearProblem(design, targets, rows, kinked, bool(fit_intercept))
        return _minimise_kinked(problem, levels, penalty, title, tol, max_iter, init)
    settings = chosen.settings(float(tol), max_iter, as_n_threads(n_jobs))
    settings.bound = _CURVATURE_BOUNDS[descent.curvature_bound]
    settings.seed = as_seed(descent.random_state)
    w, b = _start(init, n_features, fit_intercept)
    monitor = _core.Monitor()
    found = watch(
        lambda: _core.fit_linear(data, levels, penalty, settings, np.clip(w, *bounds), b, monitor),
        monitor,
        n_total=max_iter,
        callback=callback,
        verbose=verbose,
        title=title,
        may_be_left=True,
    )
    return _solution(chosen, *found)


def _minimise_kinked(
    problem: LinearProblem, levels: np.ndarray, compiled: _core.SeparablePenalty, solver: str,
    tol: float, max_iter: int, init: LinearSolution | ArrayLike | None,
) -> LinearSolution:  # fmt: skip
    from sublearn.optim.kinked import solve  # it is made of the solvers here
    from sublearn.optim.linear_solve import SolverSettings

    if np.isfinite(compiled.upper) or (np.isfinite(compiled.lower) and compiled.lower != 0):
        raise refusal(_NAME, "bounds", "be infinite or (0, inf) for a loss with a kink", "others")
    w, b = _start(init, problem.n_features, problem.fit_intercept)
    begin = LinearSolution(Status.STOPPED, np.nan, np.inf, 0, Trace({}), w, b)
    penalty = Penalty(levels, float(compiled.l2), compiled.lower == 0)
    progress, settings = Progress(max_iter), SolverSettings(solver, float(tol), max_iter)
    return watch(
        lambda: solve(problem, penalty, 1.0, settings, progress, None if init is None else begin),
        progress,
        n_total=max_iter,
        title=solver,
        may_be_left=True,
    )


def _start(
    init: LinearSolution | ArrayLike | None, n_features: int, fit_intercept: bool
) -> tuple[np.ndarray, float]:
    """Weights and intercept."""
    size = n_features + bool(fit_intercept)
    if init is None:
        return np.zeros(n_features), 0.0
    if isinstance(init, LinearSolution):
        init = np.append(init.x, init.intercept)[: len(init.x) + bool(fit_intercept)]
    point = check_numbers(_NAME, "init", init, "coordinate", size)
    return point[:n_features], float(point[-1]) if fit_intercept else 0.0


def _solution(
    solver: LinearSolver,
    w: np.ndarray,
    intercept: float,
    status: _core.Status,
    rounds: Mapping[str, np.ndarray],
) -> LinearSolution:
    trace = Trace(rounds)
    objective, gap = float(trace["objective"][-1]), float(trace["gap"][-1])
    return LinearSolution(
        status=Status.of(status),
        objective=objective,
        certificate=gap / abs(objective) if gap else 0.0,
        n_iter=int(trace["n_passes"][-1]) if solver.works_on_all else len(trace) - 1,
        trace=trace,
        x=w,
        intercept=float(intercept),
    )
