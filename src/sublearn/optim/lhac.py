"""LHAC, for any smooth convex objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.interruption import check
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    Positive,
    RandomState,
    Rule,
    as_seed,
    check_arguments,
)
from sublearn.validation.native import as_native
from sublearn.validation.values import show

__all__ = ["LhacSolution", "lhac"]

FREE_SETS = ("grdy-ad", "grdy", "grdy-ctz", "grdy-ep", "std", "std-ep", "std-epa")
#: Below, the first active set is too large a share of all coordinates to save anything.
LEAST_FOR_ACTIVE_SET = 500
_ROUNDING = 1e-6  # by which a lower bound may be above F, relative to the largest F of a run
BUDGETS = {"linear": (0.2, 1.0, False), "log": (1.0, 1.0, True)}

_RULES: dict[str, Rule] = {
    "l2": NonNegative(float),
    "tol": NonNegative(float),
    "max_iter": Positive(int),
    "memory": Interval(int, 1, 1000),
    "free_set": OneOf(*FREE_SETS),
    "globalisation": OneOf("prox", "line_search", "null_step"),
    "shuffle": Boolean(),
    "working_set": Either(OneOf("auto"), Boolean()),
    "random_state": RandomState(),
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
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]] | Any,
    x0: Any,
    l1: Any,
    *,
    l2: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    tol: float = 1e-6,
    max_iter: int = 1000,
    memory: int = 10,
    free_set: str = "grdy-ad",
    budget: str | int | tuple[float, float] = "linear",
    globalisation: str = "prox",
    shuffle: bool = False,
    working_set: bool | str = "auto",
    random_state: Any = 0,
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
    x0 : array of shape (n,)
        Where to start; a solution of a similar problem saves iterations.
    l1 : float or array of shape (n,)
        :math:`\lambda`, or one weight for each coordinate; 0 leaves a coordinate unpenalised.
    l2 : float
        Weight of the squared norm.
    bounds : pair of float
        :math:`a \le 0 \le b`; ``(0, inf)`` asks for non-negative coordinates.
    tol : float
        On the duality gap divided by :math:`|F|` where the objective knows a bound, else on the
        l1 norm of the least subgradient divided by the one at `x0`.
    max_iter : int
        Limit of outer iterations.
    memory : int
        Pairs of changes that the Hessian is made of.
    free_set : {"grdy-ad", "grdy", "grdy-ctz", "grdy-ep", "std", "std-ep", "std-epa"}
        How the coordinates to move are chosen (section 5.7.1 of [1]_).
    budget : "linear", "log", int or pair of float
        Passes of coordinate descent in outer iteration k: 0.2 k + 1, log(k) + 1, a constant, or
        a k + b.
    globalisation : {"prox", "line_search", "null_step"}
        Whether a step that does not lower F enough is computed anew with a larger multiple of the
        identity added to the Hessian (5.2.3), or halved; or ends its iteration, which leaves `x`
        where it is and lets the Hessian learn from the gradient at the step. Then each iteration
        asks for one value and gradient, as is right where that is an exchange with other machines.
    shuffle : bool
        Visit the coordinates in random order.
    working_set : "auto" or bool
        Whether most gradients are asked for over an active set of coordinates only: the support and
        the worst violators. Full gradients then certify the point, extend the set and, where the
        objective knows its dual, rule coordinates out for good (gap-safe screening [2]_). Needs
        `partial` or a compiled objective; "auto" uses it for those with at least 500
        coordinates. All other options keep their meaning; `budget` and `max_iter` count
        iterations over all active sets, and the Hessian is kept from set to set.
    random_state : int, Generator or RandomState
        Of the shuffling.
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
    start = _vector("x0", x0)
    weights = _as_l1(l1, len(start))
    penalty = _penalty(l2, bounds)
    settings = _settings(tol, max_iter, memory, free_set, budget, globalisation, shuffle)
    settings.seed = as_seed(random_state)
    compiled = _as_objective(objective, len(start))
    has_active_set = _decide_active_set(working_set, compiled)
    monitor = _core.Monitor()
    x, end, bound, columns = watch(
        lambda: _core.lhac(compiled, weights, penalty, settings, start, has_active_set, monitor),
        monitor,
        n_total=max_iter,
        callback=callback,
        verbose=verbose,
        title="lhac",
    )
    trace = Trace(columns)
    if not np.isfinite(trace["objective"][0]):  # a compiled objective is not checked before
        raise ParameterError(f"lhac.objective must be finite at x0, got {trace['objective'][0]}")
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


def _vector(name: str, values: Any) -> np.ndarray:
    try:
        vector = as_native(np.ascontiguousarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"lhac.{name} must be numbers, got {show(values)}") from error
    if vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all():
        raise ParameterError(f"lhac.{name} must be a vector of finite numbers, got {show(values)}")
    return vector


def _as_l1(l1: Any, size: int) -> np.ndarray:
    weights = _vector("l1", np.full(size, l1) if np.ndim(l1) == 0 else l1)
    if len(weights) != size or (weights < 0).any():
        raise ParameterError(
            f"lhac.l1 must be a non-negative number or one for each of {size} coordinates, "
            f"got {show(l1)}"
        )
    return weights


def _penalty(l2: float, bounds: Any) -> Any:
    try:
        lower, upper = (float(end) for end in bounds)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= 0 <= upper:
        raise ParameterError(
            f"lhac.bounds must be a pair of numbers with 0 between them, got {show(bounds)}"
        )
    penalty = _core.SeparablePenalty()
    penalty.l2, penalty.lower, penalty.upper = float(l2), lower, upper
    return penalty


def _settings(
    tol: float, max_iter: int, memory: int, free_set: str, budget: Any, globalisation: str,
    shuffle: bool,
) -> Any:  # fmt: skip
    settings = _core.LhacSettings()
    settings.tol, settings.max_iter, settings.memory = float(tol), int(max_iter), int(memory)
    settings.free_set = _core.FreeSet[free_set.replace("-", "_")]
    settings.is_random = bool(shuffle)
    settings.set_budget(*_as_budget(budget))
    settings.globalisation = _core.Globalisation[globalisation]
    return settings


def _as_budget(budget: Any) -> tuple[float, float, bool]:
    if isinstance(budget, str) and budget in BUDGETS:
        return BUDGETS[budget]
    if Positive(int).accepts(budget):
        return 0.0, float(budget), False
    is_pair = isinstance(budget, tuple) and len(budget) == 2
    if is_pair and all(NonNegative(float).accepts(part) for part in budget):
        return float(budget[0]), float(budget[1]), False
    raise ParameterError(
        "lhac.budget must be 'linear', 'log', a positive integer or a pair of non-negative "
        f"numbers, got {show(budget)}"
    )


def _as_objective(objective: Any, size: int) -> Any:
    if isinstance(objective, _core.SmoothObjective):
        if objective.size != size:
            raise ParameterError(
                f"lhac.x0 must have {objective.size} entries as the objective, got {size}"
            )
        return objective
    function = getattr(objective, "value_and_gradient", objective)
    if not callable(function):
        raise ParameterError(
            "lhac.objective must be callable, compiled or have a method value_and_gradient, "
            f"got {show(objective)}"
        )
    partial = getattr(objective, "partial", None)
    if partial is not None and not callable(partial):
        raise ParameterError(f"lhac.objective.partial must be callable, got {show(partial)}")
    bound = getattr(objective, "lower_bound", None)
    if bound is not None and not callable(bound):
        raise ParameterError(f"lhac.objective.lower_bound must be callable, got {show(bound)}")
    return _core.PythonObjective(
        _checked(function, size), None if partial is None else _checked_part(partial), size,
        None if bound is None else _checked_bound(bound),
    )  # fmt: skip


def _decide_active_set(working_set: bool | str, objective: Any) -> bool:
    if working_set == "auto":
        return bool(objective.has_parts) and objective.size >= LEAST_FOR_ACTIVE_SET
    if working_set and not objective.has_parts:
        raise ParameterError(
            "lhac.working_set must be 'auto' or False for an objective that cannot give a part of "
            "its gradient, got True"
        )
    return bool(working_set)


def _checked(
    objective: Callable[[np.ndarray], Any], size: int
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """`objective` with a float and a float64 vector for its results, whatever it returns."""
    is_start = True

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _checked_pair("objective", lambda: objective(x), size)
        nonlocal is_start
        if is_start and np.isinf(value):
            raise ParameterError(f"lhac.objective must be finite at x0, got {value}")
        is_start = False
        return value, gradient

    return value_and_gradient


def _checked_part(
    partial: Callable[[np.ndarray, np.ndarray], Any],
) -> Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]:
    def value_and_part(x: np.ndarray, support: np.ndarray) -> tuple[float, np.ndarray]:
        return _checked_pair("objective.partial", lambda: partial(x, support), len(support))

    return value_and_part


def _checked_bound(bound: Callable[[], Any]) -> Callable[[], float]:
    def lower_bound() -> float:
        found = bound()
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = np.nan
        if np.isnan(value) or value == np.inf:
            raise ParameterError(
                f"lhac.objective.lower_bound must return a number, got {show(found)}"
            )
        return value

    return lower_bound


def _refuse_wrong_bound(bound: float, objectives: np.ndarray) -> None:
    """One above a value of F by more than rounding, which would pass for convergence."""
    least = objectives.min()
    if bound > least + _ROUNDING * np.abs(objectives).max():
        raise ParameterError(
            "lhac.objective.lower_bound must return what no value of F is below, "
            f"got {bound} where F is {least}"
        )


def _checked_pair(name: str, call: Callable[[], Any], size: int) -> tuple[float, np.ndarray]:
    check()
    try:
        value, gradient = call()
    except (TypeError, ValueError) as error:
        if "unpack" not in str(error):
            raise
        raise ParameterError(f"lhac.{name} must return (value, gradient)") from error
    gradient = as_native(np.ascontiguousarray(gradient, dtype=np.float64))
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
