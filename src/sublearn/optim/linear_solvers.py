"""Sparse linear models by any of the compiled solvers, behind one function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.optim.linear_input import (
    check_features,
    check_numbers,
    check_row_weights,
    check_targets,
    refusal,
)
from sublearn.optim.linear_objective import LOSSES, as_columns, linear_data
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_arguments,
)
from sublearn.validation.values import is_finite_number

__all__ = ["SOLVERS", "LinearSolution", "LinearSolver", "minimise_linear"]

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

    method: Any
    max_iter: int
    works_on_all: bool = True
    needs_bounded_curvature: bool = False
    takes_bounds: bool = True

    def settings(self, tol: float, max_iter: int, n_threads: int) -> Any:
        """The form that the core takes."""
        settings = _core.LinearSettings()
        settings.method, settings.tol = self.method, tol
        settings.max_iter, settings.n_threads = max_iter, n_threads
        return settings


#: The one table of solvers; the estimators of `sublearn.linear` read it too.
SOLVERS = {
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
_RULES: dict[str, Rule] = {
    "loss": OneOf(*LOSSES),
    "l2": NonNegative(float),
    "solver": OneOf(*SOLVERS),
    "fit_intercept": Boolean(),
    "huber_delta": Positive(float),
    "tol": NonNegative(float),
    "max_iter": OrNone(Positive(int)),
    "curvature_bound": OneOf(*_CURVATURE_BOUNDS),
    **RUN_RULES,
}


def minimise_linear(
    X: Any,
    y: Any,
    loss: str = "logistic",
    l1: Any = 1.0,
    *,
    l2: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    solver: str = "newton",
    fit_intercept: bool = False,
    weights: Any = None,
    x0: Any = None,
    intercept0: float = 0.0,
    huber_delta: float = 1.35,
    tol: float = 1e-6,
    max_iter: int | None = None,
    curvature_bound: str = "coordinate",
    n_jobs: int | None = 1,
    random_state: Any = 0,
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
        -1 or 1 for "logistic" and "squared_hinge", non-negative for "poisson", any number else.
    loss : {"logistic", "squared", "squared_hinge", "huber", "poisson"}
        f, the loss of a row.
    l1 : float or array of shape (n_features,)
        :math:`\lambda`, or one weight for each feature. Without `l2` and without finite `bounds`
        every weight must be positive: the duality gap of an unpenalised feature stays open.
    l2 : float
        Weight of the squared norm.
    bounds : pair of float
        :math:`a \le 0 \le b` for all weights; ``(0, inf)`` asks for non-negative ones. Not for
        "interior_point".
    solver : {"newton", "lhac", "cd1", "interior_point"}
        - "newton": proximal Newton steps by coordinate descent (CD2 of [1]_, GLMNET) inside an
          active set with gap-safe screening.
        - "lhac": algorithm 20 of [1]_ inside the same active set.
        - "cd1": first-order stochastic coordinate descent over all features; for losses of
          bounded curvature, all but "poisson".
        - "interior_point": Newton's method on a log barrier over all features [2]_; the system is
          factored up to 400 features and solved by conjugate gradients above.
    fit_intercept : bool
        Whether b may differ from 0; it is not penalised.
    weights : array of shape (n_samples,), optional
        :math:`s_i`; 1 / n_samples each if not given, so that the loss is a mean.
    x0, intercept0 : array of shape (n_features,) and float
        Where to start; 0 if not given.
    huber_delta : float
        Where Huber's loss turns from a square into a line.
    tol : float
        On the duality gap divided by the objective.
    max_iter : int, optional
        Limit of rounds of the active set ("newton", "lhac"; 100 if not given), epochs ("cd1";
        10,000) or Newton steps ("interior_point"; 200).
    curvature_bound : {"coordinate", "global"}
        For "cd1": one bound for each feature, or the largest of them for all as in (2.2.19).
    n_jobs : int
        Threads of the gradients.
    random_state : int, Generator or RandomState
        Of the coordinates that "cd1" draws.
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
    _check(locals())
    chosen = SOLVERS[solver]
    _check_choice(solver, loss, bounds)
    design = as_columns(check_features(_NAME, X))
    n_rows, n_features = design.shape
    targets = check_targets(_NAME, y, n_rows, loss)
    rows = check_row_weights(_NAME, weights, n_rows)
    data = linear_data(design, targets, loss, rows, fit_intercept, huber_delta)
    levels = _levels(l1, n_features, l2, bounds)
    penalty = _core.SeparablePenalty()
    penalty.l2, (penalty.lower, penalty.upper) = float(l2), (float(end) for end in bounds)
    max_iter = chosen.max_iter if max_iter is None else int(max_iter)
    settings = chosen.settings(float(tol), max_iter, as_n_threads(n_jobs))
    settings.bound, settings.seed = _CURVATURE_BOUNDS[curvature_bound], as_seed(random_state)
    start = _start(x0, n_features, bounds), float(intercept0) if fit_intercept else 0.0
    monitor = _core.Monitor()
    found = watch(
        lambda: _core.fit_linear(data, levels, penalty, settings, *start, monitor),
        monitor,
        n_total=max_iter,
        callback=callback,
        verbose=verbose,
        title=solver,
        may_be_left=True,
    )
    return _solution(chosen, *found)


def _solution(
    solver: LinearSolver, w: np.ndarray, intercept: float, status: Any, columns: dict[str, Any]
) -> LinearSolution:
    trace = Trace(columns)
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


def _refuse(name: str, must: str, value: Any) -> ParameterError:
    return refusal(_NAME, name, must, value)


def _check(arguments: dict[str, Any]) -> None:
    check_arguments(_NAME, arguments, _RULES)
    if not is_finite_number(arguments["intercept0"]):
        raise _refuse("intercept0", "be a finite number", arguments["intercept0"])
    try:
        lower, upper = (float(end) for end in arguments["bounds"])
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= 0 <= upper:
        raise _refuse("bounds", "be a pair of numbers with 0 between them", arguments["bounds"])


def _check_choice(solver: str, loss: str, bounds: tuple[float, float]) -> None:
    if SOLVERS[solver].needs_bounded_curvature and loss == "poisson":
        raise _refuse("loss", f"have a bounded curvature for solver {solver!r}", loss)
    if not SOLVERS[solver].takes_bounds and np.isfinite(bounds).any():
        raise _refuse("bounds", f"be infinite for solver {solver!r}", bounds)


def _levels(l1: Any, n_features: int, l2: float, bounds: tuple[float, float]) -> np.ndarray:
    values = np.full(n_features, l1) if np.ndim(l1) == 0 else l1
    levels = check_numbers(_NAME, "l1", values, n_features, "feature")
    if (levels < 0).any():
        raise _refuse("l1", "be non-negative", l1)
    if not levels.all() and l2 == 0 and not np.isfinite(bounds).all():
        raise _refuse("l1", "be positive where there is neither l2 nor a finite box", l1)
    return levels


def _start(x0: Any, n_features: int, bounds: tuple[float, float]) -> np.ndarray:
    if x0 is None:
        return np.zeros(n_features)
    return np.clip(check_numbers(_NAME, "x0", x0, n_features, "feature"), *bounds)
