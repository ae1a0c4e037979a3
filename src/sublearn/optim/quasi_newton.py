r"""Inexact proximal quasi-Newton methods for any penalty with a proximal operator.

Algorithms 14 to 18 of Tang, "Big Data Optimization in Machine Learning", 2016.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.interruption import check
from sublearn.optim.lhac import InnerBudget, LhacSolution, passes_at
from sublearn.optim.linear_input import check_numbers, refusal
from sublearn.optim.penalties import Proximal, Separable
from sublearn.trace import Callback, Status, Trace, watch
from sublearn.typing import Seed
from sublearn.validation import (
    WATCH_RULES,
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

__all__ = ["ProximalSettings", "proximal_quasi_newton"]

_MOST_TRIALS = 60
_MOST_STEPS = 10_000  # of an inner solver that works to an accuracy
_SHARE = 1e-3  # of theta, that mu / 2 adds where no mu is given
_FLOOR = 1e-10  # of the largest theta so far, below which it never is


@dataclass(frozen=True)
class ProximalSettings(Settings):
    r"""How :func:`proximal_quasi_newton` makes its steps.

    Parameters
    ----------
    memory : int, default=10
        Pairs of changes that the Hessian :math:`G_k` is made of (L-BFGS). With 0 there is none:
        :math:`H_k = \tfrac{1}{2 \mu} I`, each model has a closed form, and the method is ISTA.
    inner : {"auto", "coordinate", "random", "ista", "fista"}, default="auto"
        What minimises the model: passes of coordinate descent; as many coordinates drawn
        independently (algorithms 16 to 18); proximal gradient steps; the same with Nesterov's
        momentum. The first two are for :class:`Separable` penalties; "auto" is "coordinate" there,
        and "fista" for others.
    budget : "linear", "log", int or pair of float, default="linear"
        Passes or steps in outer iteration k: 0.2 k + 1, log(k) + 1, a constant, or a k + b.
    accuracy : {"quadratic", "geometric", "gap"} or None, default=None
        Go on instead until the model is within :math:`\phi_k` of its minimum, by a bound that
        follows from its strong convexity: :math:`a^2 / k^2` (theorem 15), :math:`a \delta^k`, or
        the share `a` of the decrease that the model predicts.
    a, delta : float, default=1.0, 0.5
        Of `accuracy`.
    rho : float, default=0.01
        :math:`\rho`: share of the predicted decrease that a step must reach.
    beta : float, default=0.5
        :math:`\beta < 1`, by which :math:`\mu` shrinks after a step that does not.
    mu : float or None, default=None
        :math:`\bar\mu`, with which each iteration begins: :math:`H_k = G_k + \tfrac{1}{2 \mu} I`.
        None adds a thousandth of the size of :math:`G_k`; without memory it begins with 1 and then
        with the last one that was accepted.
    random_state : int, Generator, RandomState or None, default=None
        Of "random".
    """

    memory: int = 10
    inner: str = "auto"
    budget: str | int | tuple[float, float] = "linear"
    accuracy: str | None = None
    a: float = 1.0
    delta: float = 0.5
    rho: float = 0.01
    beta: float = 0.5
    mu: float | None = None
    random_state: Seed = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "memory": Interval(int, 0, 1000),
        "inner": OneOf("auto", "coordinate", "random", "ista", "fista"),
        "budget": InnerBudget(),
        "accuracy": OrNone(OneOf("quadratic", "geometric", "gap")),
        "a": Positive(float),
        "delta": Interval(float, 0, 1, "neither"),
        "rho": Interval(float, 0, 1, "right"),
        "beta": Interval(float, 0, 1, "neither"),
        "mu": OrNone(Positive(float)),
        "random_state": RandomState(),
    }

    def allowed(self, k: int, decrease: float) -> float:
        """phi_k; `decrease` is what the model has predicted so far."""
        if self.accuracy == "gap":
            return self.a * decrease
        return self.a**2 / k**2 if self.accuracy == "quadratic" else self.a * self.delta**k


_RULES: dict[str, Rule] = {
    "tol": NonNegative(float),
    "max_iter": Positive(int),
    "settings": SettingsOf(ProximalSettings),
    **WATCH_RULES,
}


def proximal_quasi_newton(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]] | _core.SmoothObjective,
    init: np.ndarray,
    penalty: Proximal,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    settings: ProximalSettings | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> LhacSolution:
    r"""Minimise a smooth convex function plus a penalty with a proximal operator.

    .. math:: \min_x F(x) = f(x) + g(x)

    Iteration k (algorithms 14 and 15 of [1]_) minimises, more or less exactly, the model

    .. math:: Q(u) = f(x) + \langle \nabla f(x), u - x \rangle
        + \tfrac12 \|u - x\|_{H_k}^2 + g(u), \qquad H_k = G_k + \tfrac{1}{2 \mu} I

    and accepts its minimiser if :math:`F(u) - F(x) \le \rho (Q(u) - F(x))`; otherwise
    :math:`\mu` shrinks.

    Parameters
    ----------
    objective : callable, object with methods or compiled objective
        f, as for :func:`lhac`: returns the value and the gradient at x. A method
        ``lower_bound()`` returns a number that no value of F is below.
    init : array of shape (n,)
        Where to start, in the domain of g.
    penalty : object with methods `value` and `prox`
        g: :class:`Separable`, :class:`GroupNorm`, :class:`TreeNorm`, :class:`NuclearNorm`, or
        your own. :class:`Mcp` and :class:`Scad` are not convex: F falls, and what is found is a
        stationary point.
    tol : float
        On the gap divided by :math:`|F|` where the objective knows a bound; else on the norm of
        :math:`x - \mathrm{prox}(x - t \nabla f(x))` with a fixed t, divided by that at `init`.
    max_iter : int
        Limit of the iterations.
    settings : ProximalSettings or None
        Of the steps, None for the defaults.
    verbose, callback
        As for estimators.

    Returns
    -------
    LhacSolution
        `x`, `objective`, `certificate`, `lower_bound`, `status`, `n_iter` and `trace`. Columns of
        the trace: seconds, objective, certificate, n_inner (inner steps so far), n_values (values
        of f asked for so far), accuracy (the bound on how far the last model was from its
        minimum; NaN with budgets), mu.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.

    Examples
    --------
    >>> from sublearn.optim import GroupNorm
    >>> f = lambda x: (0.5 * ((x - 2) ** 2).sum(), x - 2)
    >>> solution = proximal_quasi_newton(f, np.zeros(4), GroupNorm([0, 0, 1, -1], [1.0, 9.0]))
    >>> (solution.x.round(4) + 0.0).tolist()
    [1.2929, 1.2929, 0.0, 2.0]
    """
    check_arguments("proximal_quasi_newton", locals(), _RULES)
    start = check_numbers("proximal_quasi_newton", "init", init, "coordinate")
    settings = ProximalSettings.of(settings)
    if settings.inner in ("coordinate", "random") and not isinstance(penalty, Separable):
        raise ParameterError(
            "ProximalSettings.inner must be 'auto', 'ista' or 'fista' for a penalty that is not "
            f"Separable, got {settings.inner!r}"
        )
    progress = Progress(max_iter)
    run = _Run(objective, start, penalty, settings, float(tol), int(max_iter))
    return watch(
        lambda: run.solve(progress), progress, n_total=max_iter, callback=callback,
        verbose=verbose, title="proximal_quasi_newton",
    )  # fmt: skip


class _Model:
    """Q less F(x), at the point x, for one Hessian and one mu."""

    def __init__(self, hessian: _core.LowRankHessian | None, x: np.ndarray, gradient: np.ndarray):
        self.hessian, self.x, self.gradient, self.half = hessian, x, gradient, 0.0
        self.theta = 0.0
        self.G = self.GR = np.zeros((len(x), 0))
        if hessian is not None:
            g, gr, width = hessian.factors(len(x))
            self.theta = hessian.theta
            self.G, self.GR = (a.reshape(len(x), width) for a in (g, gr))
        self.ends = self._ends()

    def _ends(self) -> tuple[float, float]:
        """The least and the largest eigenvalue of G_k."""
        if not self.G.any():
            return self.theta, self.theta
        Q, T = np.linalg.qr(self.G)
        values = self.theta - np.linalg.eigvalsh(_symmetric(Q.T @ self.GR @ T.T))
        return max(float(values.min()), 0.0), max(float(values.max()), self.theta)

    def product(self, d: np.ndarray) -> np.ndarray:
        """H d."""
        return (self.theta + self.half) * d - self.GR @ (self.G.T @ d)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """Gradient of the smooth part at u."""
        return self.gradient + self.product(u - self.x)

    def smooth(self, u: np.ndarray) -> float:
        """The smooth part at u, less that at x."""
        d = u - self.x
        return float(d @ (self.gradient + 0.5 * self.product(d)))

    def step(self, penalty: Proximal, u: np.ndarray) -> tuple[np.ndarray, float]:
        """A proximal gradient step from u, and how far its end is from the minimum at most.

        The residual (M - H)(u - u+) is a subgradient of Q at the end u+, and Q is strongly convex.
        """
        most = self.ends[1] + self.half
        after = penalty.prox(u - self.slope(u) / most, 1.0 / most)
        d = u - after
        residual = most * d - self.product(d)
        return after, float(residual @ residual) / (2 * (self.ends[0] + self.half))


def _symmetric(A: np.ndarray) -> np.ndarray:
    return 0.5 * (A + A.T)


class _Run:
    """One call of :func:`proximal_quasi_newton`."""

    def __init__(
        self, objective: object, start: np.ndarray, penalty: Proximal,
        settings: ProximalSettings, tol: float, max_iter: int,
    ):  # fmt: skip
        function: object = getattr(objective, "value_and_gradient", objective)
        if not callable(function):
            raise refusal(
                "proximal_quasi_newton", "objective",
                "be callable, compiled or have value_and_gradient", objective,
            )  # fmt: skip
        self.function = function
        self.bound_of = getattr(objective, "lower_bound", None)
        self.penalty, self.settings, self.tol, self.max_iter = penalty, settings, tol, max_iter
        self.x = start
        self.rng = np.random.default_rng(as_seed(settings.random_state))
        has_memory = settings.memory > 0
        self.hessian = _core.LowRankHessian(len(start), settings.memory) if has_memory else None
        self.n_inner = self.n_values = 0
        self.accuracy, self.half, self.most_theta, self.t = np.nan, 0.0, 0.0, 1.0
        self.bound, self.first = -np.inf, 0.0
        self.rows: list[tuple[float, ...]] = []

    def solve(self, progress: Progress) -> LhacSolution:
        """Algorithm 14."""
        begin = time.perf_counter()
        self.loss, self.gradient = self._ask(self.x)
        self.value = self.penalty.value(self.x)
        if not np.isfinite(self.loss + self.value):
            raise ParameterError(
                "proximal_quasi_newton.init must be where the objective and the penalty are "
                f"finite, got {self.loss + self.value}"
            )
        status, k = Status.MAX_ITER, 0
        while True:
            self._record(begin)
            if self.rows[-1][2] <= self.tol:
                status = Status.CONVERGED
            elif progress.stop_requested:
                status = Status.STOPPED
            elif k >= self.max_iter:
                status = Status.MAX_ITER
            elif not self._advance(k + 1):
                status = Status.STALLED
            else:
                k += 1
                progress.add(1)
                check()
                continue
            return self._solution(status)

    def _ask(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.n_values += 1
        value, found = self.function(x)
        gradient = np.ascontiguousarray(found, dtype=np.float64)
        if gradient.shape != x.shape:
            raise ValueError(
                "proximal_quasi_newton.function must return a gradient of the shape of x, "
                f"{x.shape}, got {gradient.shape}"
            )
        if np.isfinite(value) and not np.isfinite(gradient).all():
            raise ValueError(
                "proximal_quasi_newton.function must return a finite gradient where its value is "
                "finite, got NaN or infinity"
            )
        return float(value), gradient

    def _record(self, begin: float) -> None:
        objective = self.loss + self.value
        if self.bound_of is not None:
            self.bound = max(self.bound, float(self.bound_of()))
        residual = self.x - self.penalty.prox(self.x - self.t * self.gradient, self.t)
        size = float(np.linalg.norm(residual))
        if not self.rows:
            self.first = size
        certificate = size / self.first if self.first > 0 else 0.0
        if np.isfinite(self.bound):
            certificate = max(objective - self.bound, 0.0) / max(abs(objective), 1e-300)
        mu = 0.5 / self.half if self.half > 0 else np.inf
        self.rows.append(
            (time.perf_counter() - begin, objective, certificate, self.n_inner, self.n_values,
             self.accuracy, mu)
        )  # fmt: skip

    def _advance(self, k: int) -> bool:
        """Algorithm 15. False where no step lowers F any more."""
        if self._try(k):
            return True
        if self.hessian is None:
            return False
        self.hessian.clear()  # the model misled: once more with the gradient alone
        return self._try(k)

    def _try(self, k: int) -> bool:
        model = _Model(self.hessian, self.x, self.gradient)
        self.most_theta = max(self.most_theta, model.theta)
        model.half = self._first_half(model)
        noise = 4e-16 * abs(self.loss)
        for _ in range(_MOST_TRIALS):
            check()
            u = self._minimise(model, k)
            value = self.penalty.value(u)
            predicted = model.smooth(u) + value - self.value
            if not predicted < 0:
                return False
            loss, gradient = self._ask(u)
            if loss - self.loss + value - self.value <= self.settings.rho * predicted + noise:
                self._accept(u, loss, value, gradient, model.half)
                return True
            model.half = max(model.half, _SHARE * model.theta) / self.settings.beta
        return False

    def _first_half(self, model: _Model) -> float:
        """1 / (2 mu) at the beginning of an iteration."""
        if self.settings.mu is not None:
            return 0.5 / self.settings.mu
        if self.hessian is None:
            return self.half if self.half > 0 else 0.5
        return max(_SHARE * model.theta, _FLOOR * self.most_theta)

    def _accept(
        self, u: np.ndarray, loss: float, value: float, gradient: np.ndarray, half: float
    ) -> None:
        s, t = u - self.x, gradient - self.gradient
        if self.hessian is not None:
            self.hessian.append(s, t)
        self.x, self.loss, self.value, self.gradient, self.half = u, loss, value, gradient, half

    # --- inner solvers -----------------------------------------------------------------------

    @property
    def _inner(self) -> str:
        if self.settings.inner != "auto":
            return self.settings.inner
        return "coordinate" if isinstance(self.penalty, Separable) else "fista"

    def _minimise(self, model: _Model, k: int) -> np.ndarray:
        """p_{H, phi}(x): no worse than x, and within phi_k or after l(k) steps."""
        if self.hessian is None:  # a closed form
            self.n_inner += 1
            self.accuracy = 0.0
            return self.penalty.prox(model.x - model.gradient / model.half, 1.0 / model.half)
        settings, u, y, t = self.settings, model.x, model.x, 1.0
        is_timed = settings.accuracy is None
        best, best_value = model.x, self.value
        for n in range(passes_at(settings.budget, k) if is_timed else _MOST_STEPS):
            if n % 16 == 0:
                check()
            self.n_inner += 1
            if self._inner in ("coordinate", "random"):
                u, bound = self._pass(model, u, is_timed)
            else:
                after, bound = model.step(self.penalty, y)
                following = 0.5 * (1 + np.sqrt(1 + 4 * t * t)) if self._inner == "fista" else 1.0
                y = after + (t - 1) / following * (after - u)
                u, t = after, following
            value = model.smooth(u) + self.penalty.value(u)
            if value < best_value or n == 0:
                best, best_value = u, value
            if not is_timed:
                self.accuracy = bound
                if bound <= settings.allowed(k, self.value - value):
                    return u if value <= self.value else best
        return best

    def _pass(self, model: _Model, u: np.ndarray, is_timed: bool) -> tuple[np.ndarray, float]:
        penalty = self.penalty
        assert isinstance(penalty, Separable)
        assert self.hessian is not None
        order = np.arange(len(u), dtype=np.int32)
        if self._inner == "random":
            order = self.rng.integers(0, len(u), size=len(u), dtype=np.int32)
        u = self.hessian.descend(
            model.gradient, model.x, u, model.half, penalty.compiled(), penalty.levels, order
        )
        return (u, np.nan) if is_timed else model.step(penalty, u)

    def _solution(self, status: Status) -> LhacSolution:
        names = ("seconds", "objective", "certificate", "n_inner", "n_values", "accuracy", "mu")
        columns = dict(zip(names, map(list, zip(*self.rows, strict=True)), strict=True))
        for name in ("n_inner", "n_values"):
            columns[name] = [int(v) for v in columns[name]]
        return LhacSolution(
            status=status,
            objective=columns["objective"][-1],
            certificate=columns["certificate"][-1],
            n_iter=len(self.rows) - 1,
            trace=Trace(columns),
            x=self.x,
            lower_bound=float(self.bound),
        )
