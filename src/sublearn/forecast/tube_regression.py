"""Regression with a tube loss on explicit features: the loss, and two ways to the minimum.

    minimise over w    P(w) = 1/2 |w|^2 + C sum_i l(y_i - <w, phi_i>)

which is (2.4.29) with lambda = 1 / (C N). The interior-point method solves its dual: with
w = Phi' (p - q),

    minimise 1/2 |w|^2 - <p - q, y> + upper sum p - lower sum q,
    0 <= p <= C upper_slope,  0 <= q <= C lower_slope.

K = Phi Phi' has rank m, so a step costs one Gram matrix of m columns, O(N m^2) (Fine and
Scheinberg), and some twenty steps suffice whatever N is. Every iterate is feasible for both
problems: P(w) minus the dual value bounds the error, and the solver stops by it.

The online method, algorithm 8, takes a stochastic step for each row (solvers/svr/online_svr.hpp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.linalg

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.validation import (
    Interval,
    NonNegative,
    OrNone,
    Positive,
    Rule,
    Settings,
    check_argument,
)

__all__ = [
    "REACH",
    "Fit",
    "TubeLoss",
    "dual_share",
    "fit_interior_point",
    "fit_online",
    "learn_new_rows",
    "online_settings",
]

_TO_BORDER = 0.99  # of the longest step that keeps all variables positive
_N_EPOCHS = 20  # passes of algorithm 8
REACH = 0.05  # of the way to the tube that a new row pulls a fitted model
_SHARE = Interval(float, 0, 1, "neither")
_FINITE = Interval(float, -np.inf, np.inf)


@dataclass(frozen=True)
class TubeLoss(Settings):
    r"""A loss that is zero in a tube around the forecast and rises with a slope on each side of it.

    .. math::
        \ell(r) = s_u \max(0, r - u) + s_l \max(0, l - r), \qquad l \le u,

    of a residual r = load - forecast. :meth:`shifted` and :meth:`quantile` make the two that
    forecasts are made for.

    Parameters
    ----------
    lower, upper : float, default=-0.005, 0.005
        Ends of the tube, as shares of the mean load.
    lower_slope, upper_slope : float, default=1.0
        What a forecast costs that is too high, and one that is too low.
    share_below : float or None, default=None
        Share of loads that should lie below the forecast, which is levelled on held-out rows.
    """

    lower: float = -0.005
    upper: float = 0.005
    lower_slope: float = 1.0
    upper_slope: float = 1.0
    share_below: float | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "lower": _FINITE,
        "upper": _FINITE,
        "lower_slope": Positive(float),
        "upper_slope": Positive(float),
        "share_below": OrNone(_SHARE),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower > self.upper:
            raise ParameterError(
                f"TubeLoss.lower must not be above upper={self.upper:g}, got {self.lower:g}"
            )

    @classmethod
    def shifted(cls, epsilon: float = 0.005, eta: float = 0.0) -> TubeLoss:
        """The shifted epsilon-insensitive loss (2.4.32).

        Parameters
        ----------
        epsilon : float, default=0.005
            Half the width of the tube, as a share of the mean load.
        eta : float, default=0.0
            Shift of the tube, as a share of the mean load, below `epsilon`: a forecast that is too
            low costs from epsilon - eta on, one that is too high from epsilon + eta on.

        Returns
        -------
        TubeLoss
        """
        check_argument("TubeLoss.shifted.epsilon", epsilon, NonNegative(float))
        check_argument("TubeLoss.shifted.eta", eta, NonNegative(float))
        if eta > 0 and eta >= epsilon:
            raise ParameterError(
                f"TubeLoss.shifted.eta must be below epsilon={epsilon:g}, got {eta:g}"
            )
        return cls(-(epsilon + eta), epsilon - eta)

    @classmethod
    def quantile(cls, share: float) -> TubeLoss:
        """The quantile (pinball) loss, whose tube is empty.

        Parameters
        ----------
        share : float
            Share of loads that should lie below the forecast, above 0 and below 1.

        Returns
        -------
        TubeLoss
        """
        check_argument("TubeLoss.quantile.share", share, _SHARE)
        return cls(0.0, 0.0, 1.0 - share, share, share)

    def values(self, r: np.ndarray) -> np.ndarray:
        """Loss of each residual."""
        return self.upper_slope * np.maximum(r - self.upper, 0.0) + self.lower_slope * np.maximum(
            self.lower - r, 0.0
        )

    def conjugate(self, a: np.ndarray) -> np.ndarray:
        """sup over r of a r - l(r), for a in [-lower_slope, upper_slope]."""
        return np.where(a > 0, a * self.upper, a * self.lower)

    def slopes(self, r: np.ndarray) -> np.ndarray:
        """A subgradient at each residual; 0 in the tube and on its border."""
        return self.upper_slope * (r > self.upper) - self.lower_slope * (r < self.lower)


@dataclass(frozen=True)
class Fit:
    """Weights, and how good they are: `gap` is P(w) minus a dual value."""

    w: np.ndarray
    objective: float
    gap: float
    n_iter: int
    n_support: int

    @property
    def certificate(self) -> float:
        """The gap as a share of the objective; 0 where both vanish."""
        return self.gap / self.objective if self.objective > 0 else 0.0


def fit_interior_point(
    features: np.ndarray,
    y: np.ndarray,
    loss: TubeLoss,
    C: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    should_stop: Callable[[], bool] = lambda: False,
) -> Fit:
    """Solve to a relative gap of `tol`; `features` carry the bias as a column, if there is one."""
    point = _Point.start(y, loss, C)
    found = judge(features, y, loss, C, np.zeros(features.shape[1]), point.a, 0)
    for n_iter in range(1, max_iter + 1):
        if found.certificate <= tol or should_stop():
            break
        if not point.step(features):
            break
        found = judge(features, y, loss, C, features.T @ point.a, point.a, n_iter)
    return found


def judge(
    features: np.ndarray, y: np.ndarray, loss: TubeLoss, C: float, w: np.ndarray, a: np.ndarray,
    n_iter: int,
) -> Fit:  # fmt: skip
    """Objective of w, and its distance to the dual value of a (clipped into the dual's box)."""
    a = np.clip(a, -C * loss.lower_slope, C * loss.upper_slope)
    primal = 0.5 * float(w @ w) + C * float(loss.values(y - features @ w).sum())
    u = features.T @ a
    dual = -0.5 * float(u @ u) + float(a @ y - loss.conjugate(a).sum())
    gap = max(primal - max(dual, 0.0), 0.0)  # a = 0 has the dual value 0
    n_support = int(np.count_nonzero(np.abs(a) > 1e-3 * C))
    return Fit(w, primal, gap, n_iter, n_support)


@dataclass
class _Point:
    """Bounded variables x = (p, q), the room up to their bounds, and the multipliers of both.

    Rows of each array belong to p and q. The equations low - high = cost(x) of the multipliers
    hold at the start, are linear, and so hold after every step.
    """

    x: np.ndarray  # (2, N), > 0
    room: np.ndarray  # bound - x, > 0
    low: np.ndarray  # multipliers of x >= 0
    high: np.ndarray  # multipliers of x <= bound

    @classmethod
    def start(cls, y: np.ndarray, loss: TubeLoss, C: float) -> _Point:
        bound = np.array([[C * loss.upper_slope], [C * loss.lower_slope]])
        x = np.broadcast_to(0.5 * bound.min(), (2, len(y))).copy()  # a = p - q = 0: w = 0
        cost = np.stack([loss.upper - y, y - loss.lower])
        level = max(float(np.abs(y).mean()), 1e-12)
        low = np.maximum(cost, 0.0) + level
        return cls(x, bound - x, low, low - cost)

    @property
    def a(self) -> np.ndarray:
        """Dual coefficients p - q of the rows."""
        return self.x[0] - self.x[1]

    @np.errstate(over="ignore", invalid="ignore")
    def step(self, features: np.ndarray) -> bool:
        """Mehrotra's predictor and corrector with one factorisation.

        False, and nothing has moved, where numbers so large come up that no direction is left.
        """
        curvature = 1.0 / (self.low / self.x + self.high / self.room)  # (2, N)
        scaled = np.sqrt(curvature.sum(axis=0))[:, None] * features
        if not np.isfinite([scaled.min(), scaled.max()]).all():
            return False
        factor = _factor(scaled)

        def solve(low_target: np.ndarray | float, high_target: np.ndarray | float) -> _Move:
            # low x = low_target and high room = high_target, to first order.
            right = low_target / self.x - self.low - (high_target / self.room - self.high)
            pull = curvature * right
            dw = scipy.linalg.cho_solve(
                factor, features.T @ (pull[0] - pull[1]), check_finite=False
            )
            v = features @ dw
            dx = pull - curvature * np.stack([v, -v])
            dlow = (low_target - self.low * dx) / self.x - self.low
            dhigh = (high_target + self.high * dx) / self.room - self.high
            return _Move(dx, dlow, dhigh)

        ahead = solve(0.0, 0.0)
        mu = self._complementarity(ahead, 0.0)
        reached = self._complementarity(ahead, self._longest(ahead))
        target = mu * (reached / mu) ** 3
        move = solve(target - ahead.x * ahead.low, target + ahead.x * ahead.high)
        length = _TO_BORDER * self._longest(move)
        if not (np.isfinite(length) and all(np.isfinite(part).all() for part in move)):
            return False
        self.x += length * move.x
        self.room -= length * move.x
        self.low += length * move.low
        self.high += length * move.high
        return True

    def _longest(self, move: _Move) -> float:
        pairs = (
            (self.x, move.x), (self.room, -move.x), (self.low, move.low), (self.high, move.high),
        )  # fmt: skip
        length = 1.0 / _TO_BORDER
        for value, change in pairs:
            falling = change < 0
            if falling.any():
                length = min(length, float((value[falling] / -change[falling]).min()))
        return min(length, 1.0 / _TO_BORDER)

    def _complementarity(self, move: _Move, length: float) -> float:
        """Mean product of a variable and its multiplier, after a move."""
        x, room = self.x + length * move.x, self.room - length * move.x
        total = float((x * (self.low + length * move.low)).sum())
        total += float((room * (self.high + length * move.high)).sum())
        return max(total / (2 * self.x.size), 1e-300)


class _Move(NamedTuple):
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _factor(scaled: np.ndarray) -> tuple[np.ndarray, bool]:
    """A Cholesky factor of 1 + S'S, as `cho_solve` takes it.

    Where rows are so long that the 1 drowns in S'S, R of a QR decomposition of S on top of 1: the
    same factor, and squares are never taken.
    """
    hessian = scaled.T @ scaled
    hessian.flat[:: len(hessian) + 1] += 1.0
    try:
        return scipy.linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        both = np.vstack([scaled, np.eye(scaled.shape[1])])
        return scipy.linalg.qr(both, mode="economic", pivoting=False, check_finite=False)[1], False


# --- algorithm 8 --------------------------------------------------------------------------------


def fit_online(
    features: np.ndarray, y: np.ndarray, loss: TubeLoss, C: float, seed: int,
    n_epochs: int = _N_EPOCHS, batch: int = 1,
) -> Fit:  # fmt: skip
    """Algorithm 8 with steps of `batch` rows, averaged over the second half of its steps.

    Its certificate is no better than the dual point at hand: the slopes at its own residuals,
    shrunk to where the dual value is largest.
    """
    n = len(y)
    settings = online_settings(loss, 1.0 / (C * n))
    settings.n_epochs, settings.seed, settings.batch = n_epochs, seed, min(batch, n)
    settings.radius = float(np.sqrt(2.0 * loss.values(y).mean() * C * n))
    w = np.zeros(features.shape[1])
    _core.online_svr(features, np.ascontiguousarray(y), w, settings, _core.Monitor())
    a = C * loss.slopes(y - features @ w)
    u = features.T @ a
    curvature, ascent = float(u @ u), float(a @ y - loss.conjugate(a).sum())
    return judge(features, y, loss, C, w, dual_share(ascent, curvature) * a, n_epochs)


def dual_share(ascent: float, curvature: float) -> float:
    """The share of a dual point, at most all of it, whose value is largest."""
    return min(max(ascent / curvature, 0.0), 1.0) if curvature > 0 else 0.0


def learn_new_rows(
    features: np.ndarray, y: np.ndarray, loss: TubeLoss, C: float, w: np.ndarray, n_seen: int
) -> np.ndarray:
    """Weights after one pass over new rows, in their order, from the step that w had reached."""
    w = w.copy()
    settings = online_settings(loss, 1.0 / (C * n_seen))
    settings.first_step, settings.reach = n_seen, REACH
    _core.online_svr(features, np.ascontiguousarray(y), w, settings, _core.Monitor())
    return w


def online_settings(loss: TubeLoss, l2: float) -> _core.OnlineSvrSettings:
    """What the core knows of a problem."""
    settings = _core.OnlineSvrSettings()
    settings.lower, settings.upper = loss.lower, loss.upper
    settings.lower_slope, settings.upper_slope = loss.lower_slope, loss.upper_slope
    settings.l2 = l2
    return settings
