"""LHAC, for any smooth convex objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol, TypeAlias

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.interruption import check
from sublearn.optim.gradient_check import refuse_wrong_gradient
from sublearn.optim.linear_input import check_levels, check_numbers, compiled_penalty
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.typing import Seed
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    Settings,
    SettingsOf,
    as_seed,
    check_arguments,
)
from sublearn.validation.values import as_native, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LhacSettings", "LhacSolution", "lhac"]

#: Below, the first active set is too large a share of all coordinates to save anything.
LEAST_FOR_ACTIVE_SET = 500
_ROUNDING = 1e-6  # by which a lower bound may be above F, relative to the largest F of a run
_BUDGETS = {"linear": (0.2, 1.0, False), "log": (1.0, 1.0, True)}
#: Strategies, and the names that the core has for them.
_STRATEGIES = tuple(strategy.name for strategy in _core.LhacStrategy)

_ValueAndGradient: TypeAlias = "tuple[float, ArrayLike]"


class _Objective(Protocol):
    """An objective with methods; `partial` and `lower_bound` may be missing."""

    def value_and_gradient(self, x: np.ndarray, /) -> _ValueAndGradient: ...


class InnerBudget(Rule):
    """Passes of coordinate descent as a function of the iteration."""

    def accepts(self, value: object) -> bool:
        if isinstance(value, tuple):
            return len(value) == 2 and all(NonNegative(float).accepts(part) for part in value)
        return (isinstance(value, str) and value in _BUDGETS) or Positive(int).accepts(value)

    def __str__(self) -> str:
        return "'linear', 'log', a positive integer or a pair of non-negative numbers"


def _budget(budget: str | int | tuple[float, float]) -> tuple[float, float, bool]:
    """Slope and constant of l(k), and whether the slope is of log k."""
    if isinstance(budget, str):
        return _BUDGETS[budget]
    slope, constant = budget if isinstance(budget, tuple) else (0.0, budget)
    return float(slope), float(constant), False


def passes_at(budget: str | int | tuple[float, float], k: int) -> int:
    """l(k)."""
    slope, constant, is_logarithmic = _budget(budget)
    return max(1, int(slope * (np.log(k) if is_logarithmic else k) + constant))


@dataclass(frozen=True)
class LhacSettings(Settings):
    r"""How :func:`lhac` makes its steps.

    Parameters
    ----------
    strategy : str, default="greedy_half"
        How the coordinates to move are chosen in each iteration. The strategies of section 5.7.1 of
        Tang (2016) and their names there, with the sets Z1 to Z3 of (5.4.1) and P the size of the
        least subgradient. The sets are those of the gradient of all that is smooth, l2 included;
        a coordinate without a kink at 0, such as an intercept, is in Z2 wherever it is:

        - "greedy_half": "greedy_adaptive", but never fewer than half of Z1 and Z3, or ten;
        - "greedy_adaptive" (GRDY-AD, step 8 of algorithm 20): Z2 and as many of Z1 and Z3, largest
          P first; all of them once they are at most `eta` times as many as Z2, or Z2 is empty;
        - "greedy" (GRDY): all of Z1, Z2 and Z3, largest P first;
        - "greedy_cut" (GRDY-CTZ): as many of these as are in Z1 and Z2;
        - "greedy_inexact" (GRDY-EP): of Z3 only those whose P is above `epsilon`, largest P first;
        - "standard" (STD): all of Z1, Z2 and Z3 in their order;
        - "standard_inexact" (STD-EP): of Z3 only those whose P is above `epsilon`;
        - "standard_rough" (STD-EPA): the same with a larger `epsilon`.
    eta : float, default=2.0
        Of "greedy_adaptive" and "greedy_half": :math:`\eta` of algorithm 20.
    epsilon : float or None, default=None
        Of the last three strategies and "greedy_inexact"; None is 0.01, for "standard_rough" 0.5.
    epsilon_unit : {"l1", "absolute"}, default="l1"
        Whether `epsilon` is a share of the coordinate's l1 weight, or a number as in the thesis.
        With l1 far below 0.01 the numbers of the thesis leave every coordinate where it is.
    scaling : {"sizes", "identity"}, default="sizes"
        The matrix that the Hessian starts from is :math:`B_0 = \theta M`: M is the identity as in
        the thesis, or a diagonal of how large the curvatures of coordinates are beside each other,
        where the objective knows them (compiled ones do: mean squares of the columns, to the power
        3/4). Columns of very different size then cost little.
    rho : float, default=0.01
        :math:`\rho` of (5.2.3): share of the predicted decrease that a step must reach.
    beta : float, default=2.0
        :math:`\beta` of algorithm 20, by which :math:`\mu` grows after a step that does not.
    mu0 : float, default=0.0
        :math:`\mu_0` of algorithm 20, where :math:`\mu` begins in each iteration. With 0 it
        begins at the floor, and goes on from :math:`2 \theta`.
    floor : float, default=1e-10
        :math:`\mu / 2` is never below this share of the largest :math:`\theta` so far: the
        Hessian is at least one positive multiple of M in the whole run, as the theorems of
        chapter 4 ask.
    memory : int, default=10
        Pairs of changes that the Hessian is made of; with 0 it is :math:`\theta M` alone.
    budget : "linear", "log", int or pair of float, default="linear"
        Passes of coordinate descent in outer iteration k: 0.2 k + 1, log(k) + 1, a constant, or
        a k + b. A model without kinks, whose coordinates have no l1 weight and no bound at 0, is
        a linear system and is solved, in at most 40 passes.
    globalisation : {"prox", "line_search", "null_step"}, default="prox"
        Whether a step that does not lower F enough is computed anew with a larger multiple of the
        identity added to the Hessian (section 5.2.3), or halved; or ends its iteration, which
        leaves the point where it is and lets the Hessian learn from the gradient at the step. Then
        each iteration asks for one value and gradient, as is right where that is an exchange with
        other machines.
    shuffle : bool or "independent", default=False
        Visit the coordinates in random order; "independent" draws each of them from all, as in
        algorithm 16, and a pass is as many draws.
    random_state : int, Generator, RandomState or None, default=None
        Of the random order.
    check_gradient : bool, default=True
        Refuse a function of Python whose gradient at the start contradicts differences of its
        values along two random directions. That takes five calls of a function that is right;
        compiled objectives are not checked. What rounding or a kink can explain is not refused.
    """

    strategy: str = "greedy_half"
    eta: float = 2.0
    epsilon: float | None = None
    epsilon_unit: str = "l1"
    scaling: str = "sizes"
    rho: float = 0.01
    beta: float = 2.0
    mu0: float = 0.0
    floor: float = 1e-10
    memory: int = 10
    budget: str | int | tuple[float, float] = "linear"
    globalisation: str = "prox"
    shuffle: bool | str = False
    random_state: Seed = None
    check_gradient: bool = True

    _rules: ClassVar[Mapping[str, Rule]] = {
        "strategy": OneOf(*_STRATEGIES),
        "eta": Interval(float, 1, np.inf),
        "epsilon": OrNone(NonNegative(float)),
        "epsilon_unit": OneOf("l1", "absolute"),
        "scaling": OneOf("sizes", "identity"),
        "rho": Interval(float, 0, 1),
        "beta": Interval(float, 1, 1e6, "right"),
        "mu0": NonNegative(float),
        "floor": Interval(float, 0, 1),
        "memory": Interval(int, 0, 1000),
        "budget": InnerBudget(),
        "globalisation": OneOf("prox", "line_search", "null_step"),
        "shuffle": Either(OneOf("independent"), Boolean()),
        "random_state": RandomState(),
        "check_gradient": Boolean(),
    }

    def compiled(self, tol: float, violation_tol: float, max_iter: int) -> _core.LhacSettings:
        """The form that the core takes."""
        settings = _core.LhacSettings()
        settings.tol, settings.violation_tol = float(tol), float(violation_tol)
        settings.max_iter, settings.memory = int(max_iter), int(self.memory)
        epsilon = -1.0 if self.epsilon is None else float(self.epsilon)
        settings.set_strategy(
            _core.LhacStrategy[self.strategy], float(self.eta), epsilon,
            self.epsilon_unit == "absolute",
        )  # fmt: skip
        settings.is_scaled = self.scaling == "sizes"
        settings.rho, settings.beta = float(self.rho), float(self.beta)
        settings.mu0, settings.floor = float(self.mu0), float(self.floor)
        settings.is_random, settings.seed = bool(self.shuffle), as_seed(self.random_state)
        settings.is_independent = self.shuffle == "independent"
        settings.set_budget(*_budget(self.budget))
        settings.globalisation = _core.Globalisation[self.globalisation]
        return settings


_RULES: dict[str, Rule] = {
    "l2": NonNegative(float),
    "tol": NonNegative(float),
    "violation_tol": OrNone(NonNegative(float)),
    "max_iter": Positive(int),
    "active_set": Either(OneOf("auto"), Boolean()),
    "settings": SettingsOf(LhacSettings),
    **WATCH_RULES,
}


@dataclass(frozen=True)
class LhacSolution(Solution):
    """A minimiser, and how it was found.

    Parameters
    ----------
    x : ndarray
        The point.
    lower_bound : float
        The best lower bound on the optimum that is known, minus infinity without any.
    """

    x: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lower_bound: float = -np.inf


def lhac(
    objective: Callable[[np.ndarray], _ValueAndGradient] | _Objective | _core.SmoothObjective,
    init: ArrayLike,
    l1: ArrayLike,
    *,
    l2: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    tol: float = 1e-6,
    violation_tol: float | None = None,
    max_iter: int = 1000,
    active_set: bool | str = "auto",
    settings: LhacSettings | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> LhacSolution:
    r"""Minimise a smooth convex function plus a separable penalty.

    .. math::
        \min_x F(x) = L(x) + \sum_j \lambda_j |x_j| + \frac{l_2}{2} \|x\|^2
        \quad \text{with} \quad a \le x_j \le b

    by low-rank Hessian approximation in active-set coordinate descent (algorithm 20 of [1]_). Only
    values and gradients of :math:`L` are asked for: the data may be anywhere.

    Parameters
    ----------
    objective : callable, object with methods or compiled objective
        ``objective(x)``, or ``objective.value_and_gradient(x)``, returns the value and the gradient
        at `x`; the value may be infinite outside the domain. A method ``partial(x, support)`` that
        returns the value and ``gradient[support]``, for an ascending integer array `support`
        outside of which `x` is 0, is what an active set needs. A method ``lower_bound()`` returns a
        number that no value of F is below; it is asked after each step and makes the gap. One that
        is above a value of F is refused.
        Compiled ones (:func:`linear_objective`) do not enter Python.
    init : array of shape (n,)
        Where to start; a solution of a similar problem saves iterations.
    l1 : float or array of shape (n,)
        :math:`\lambda`, or one weight for each coordinate; 0 leaves a coordinate unpenalised.
    l2 : float
        Weight of the squared norm.
    bounds : pair of float
        :math:`a \le 0 \le b`; ``(0, inf)`` asks for non-negative coordinates.
    tol : float
        On the duality gap divided by :math:`|F|`, where the objective knows a bound.
    violation_tol : float or None
        Where it knows none: on the l1 norm of the least subgradient divided by the one at `init`,
        which is then the certificate. None is `tol`.
    max_iter : int
        Limit of outer iterations.
    active_set : "auto" or bool
        Whether most gradients are asked for over an active set of coordinates only: the support and
        the worst violators. Full gradients then certify the point, extend the set and, where the
        objective knows its dual, rule coordinates out for good (gap-safe screening [2]_). Needs
        `partial` or a compiled objective; "auto" uses it for those with at least 500
        coordinates. All other options keep their meaning; `budget` and `max_iter` count
        iterations over all active sets, and the Hessian is kept from set to set.
    settings : LhacSettings or None
        Of the steps, None for the defaults.
    verbose, callback
        As for estimators.

    Returns
    -------
    LhacSolution
        `x`, `objective`, `certificate`, `status`, `n_iter` and `trace` with one row per outer
        iteration: the sizes of the sets Z1, Z2, Z3 of (5.4.1), free coordinates, passes, values
        asked for, and `n_asked`, the coordinates whose gradient was asked for. Where these are an
        active set, so are the sets and `violation`, and without a dual `certificate` is that of
        the last full gradient.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.
    .. [2] E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap safe screening rules for sparsity
       enforcing penalties", JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> solution = lhac(lambda x: (0.5 * ((x - 2) ** 2).sum(), x - 2), np.zeros(3), l1=0.5)
    >>> solution.x.round(6).tolist()
    [1.5, 1.5, 1.5]
    """
    check_arguments("lhac", locals(), _RULES)
    start = check_numbers("lhac", "init", init, "coordinate")
    levels = check_levels("lhac", l1, len(start), "coordinate")
    penalty = compiled_penalty("lhac", l2, bounds)
    settings = LhacSettings.of(settings)
    core_settings = settings.compiled(
        tol, tol if violation_tol is None else violation_tol, max_iter
    )
    compiled = _as_objective(objective, len(start))
    has_active_set = _decide_active_set(active_set, compiled)
    if settings.check_gradient and not _is_ours(objective):
        function = _UserObjective(objective, len(start)).value_and_gradient
        refuse_wrong_gradient(function, start, (float(bounds[0]), float(bounds[1])))
    monitor = _core.Monitor()
    x, end, bound, columns = watch(
        lambda: _core.lhac(
            compiled, levels, penalty, core_settings, start, has_active_set, monitor
        ),
        monitor,
        n_total=max_iter,
        callback=callback,
        verbose=verbose,
        title="lhac",
    )
    trace = Trace(columns)
    if not np.isfinite(trace["objective"][0]):  # a compiled objective is not checked before
        raise _not_finite(trace["objective"][0])
    if isinstance(compiled, _core.PythonObjective):
        _refuse_wrong_bound(bound, trace["objective"])
    return LhacSolution(
        status=Status.of(end),
        objective=float(trace["objective"][-1]),
        certificate=float(trace["certificate"][-1]),
        n_iter=len(trace) - 1,
        trace=trace,
        x=x,
        lower_bound=float(bound),
    )


def _is_ours(objective: object) -> bool:
    """Whether tests of this package have seen its gradient."""
    is_compiled = isinstance(objective, _core.SmoothObjective)
    return is_compiled or type(objective).__module__.partition(".")[0] == "sublearn"


def _as_objective(objective: object, size: int) -> _core.SmoothObjective:
    if not isinstance(objective, _core.SmoothObjective):
        return _UserObjective(objective, size).compiled()
    if objective.size != size:
        raise ParameterError(
            f"lhac.init must have {objective.size} entries as the objective, got {size}"
        )
    return objective


def _decide_active_set(active_set: bool | str, objective: _core.SmoothObjective) -> bool:
    if active_set == "auto":
        return bool(objective.has_parts) and objective.size >= LEAST_FOR_ACTIVE_SET
    if active_set and not objective.has_parts:
        raise ParameterError(
            "lhac.active_set must be 'auto' or False for an objective that cannot give a part of "
            "its gradient, got True"
        )
    return bool(active_set)


def _refuse_wrong_bound(bound: float, objectives: np.ndarray) -> None:
    """One above a value of F by more than rounding, which would pass for convergence."""
    least = objectives.min()
    if bound > least + _ROUNDING * np.abs(objectives).max():
        raise ParameterError(
            "lhac.objective.lower_bound must return what no value of F is below, "
            f"got {bound} where F is {least}"
        )


def _missing(*_: np.ndarray) -> NoReturn:
    raise NotImplementedError  # never called


class _UserObjective:
    """A function of the user's, whose results are made floats and float64 vectors or refused."""

    def __init__(self, objective: object, size: int):
        self.size, self.is_start = size, True
        function: object = getattr(objective, "value_and_gradient", objective)
        self.part = getattr(objective, "partial", None) or _missing
        self.bound = getattr(objective, "lower_bound", None) or _missing
        if not callable(function):
            raise ParameterError(
                "lhac.objective must be callable, compiled or have a method value_and_gradient, "
                f"got {show(objective)}"
            )
        self.function = function
        for name, method in (("partial", self.part), ("lower_bound", self.bound)):
            if not callable(method):
                raise ParameterError(f"lhac.objective.{name} must be callable, got {show(method)}")

    def compiled(self) -> _core.PythonObjective:
        """The form that the core takes."""
        partial = None if self.part is _missing else self.value_and_part
        bound = None if self.bound is _missing else self.lower_bound
        return _core.PythonObjective(self.value_and_gradient, partial, self.size, bound)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _checked_pair("objective", lambda: self.function(x), self.size)
        if self.is_start and np.isinf(value):
            raise _not_finite(value)
        self.is_start = False
        return value, gradient

    def value_and_part(self, x: np.ndarray, support: np.ndarray) -> tuple[float, np.ndarray]:
        return _checked_pair("objective.partial", lambda: self.part(x, support), len(support))

    def lower_bound(self) -> float:
        found = self.bound()
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = np.nan
        if np.isnan(value) or value == np.inf:
            raise ParameterError(
                f"lhac.objective.lower_bound must return a number, got {show(found)}"
            )
        return value


def _not_finite(value: float) -> ParameterError:
    return ParameterError(f"lhac.objective must be finite at init, got {value}")


def _checked_pair(
    name: str, call: Callable[[], _ValueAndGradient], size: int
) -> tuple[float, np.ndarray]:
    check()
    try:
        value, found = call()
    except (TypeError, ValueError) as error:
        if "unpack" not in str(error):
            raise
        raise ParameterError(f"lhac.{name} must return (value, gradient)") from error
    gradient = as_native(np.ascontiguousarray(found, dtype=np.float64))
    if gradient.shape != (size,):
        raise ParameterError(
            f"lhac.{name} must return a gradient of shape ({size},), got {gradient.shape}"
        )
    value = float(value)
    if np.isnan(value) or (np.isfinite(value) and not np.isfinite(gradient).all()):
        raise ParameterError(f"lhac.{name} must return finite numbers, got NaN or infinity")
    if value == -np.inf:
        raise ParameterError(f"lhac.{name} must be bounded from below, got {value}")
    return value, gradient
