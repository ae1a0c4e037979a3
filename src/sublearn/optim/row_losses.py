r"""Losses of a row for what is done once per fit: the model without features, held-out rows, links.

The formulas are those of the solvers, compiled (cpp/include/sublearn/losses). Each loss is
:math:`f(z; y)` for the prediction :math:`z`, convex, smooth and at least 0.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit, xlogy

from sublearn import _core
from sublearn.validation import Interval, Positive, Rule, Settings

_FARTHEST = 1e9  # of an intercept beside offsets
_EVEN = 1e-12  # of all slopes, below which a sum of them is 0

__all__ = [
    "Hinge",
    "Huber",
    "KinkedLoss",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Squared",
    "as_loss",
    "compiled_name",
]


@dataclass(frozen=True)
class Loss(abc.ABC):
    """The loss of one row, for arrays of them."""

    name: ClassVar[str]

    @property
    def parameter(self) -> float:
        """What the compiled form takes beside the name."""
        return 1.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y); infinite where it is too large for a number."""
        return self._over("value", z, y) + self.shift(y)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return self._over("slope", z, y)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return self._over("curvature", z, y)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y) = max_z a z - f(z; y), infinite outside its domain."""
        return self._over("conjugate", a, y) - self.shift(y)

    @abc.abstractmethod
    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The one prediction for all rows that has the least loss."""

    def best_beside(self, offsets: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """The one number beside offsets that has the least loss."""

        def slope(b: float) -> float:
            return float(weights @ self.slope(offsets + b, y))

        reach = 1.0
        while slope(-reach) > 0 or slope(reach) < 0:
            reach *= 2.0
            if reach > _FARTHEST:  # the solver looks on by itself
                return 0.0
        return float(brentq(slope, -reach, reach))

    def shift(self, y: np.ndarray) -> np.ndarray | float:
        """What the compiled form of the loss leaves out."""
        return 0.0

    def _over(self, function: str, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        compiled = _core.RowLoss(self.name, self.parameter)
        a, y = np.broadcast_arrays(a, y)
        rows = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (a, y))
        found: np.ndarray = getattr(compiled, function)(*rows).reshape(a.shape)
        return found


class Logistic(Loss):
    """log(1 + exp(-y z)), y in {-1, 1}."""

    name = "logistic"

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The log odds."""
        positive = weights[y > 0].sum()
        return float(logit(positive / (positive + weights[y < 0].sum())))


class Squared(Loss):
    """(z - y)^2 / 2."""

    name = "squared"

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The mean."""
        return float(np.average(y, weights=weights))


@dataclass(frozen=True)
class Huber(Settings, Loss):
    """r^2 / 2 for |r| <= delta, delta |r| - delta^2 / 2 beyond, with r = z - y.

    Parameters
    ----------
    delta : float, default=1.35
        Where the square turns into a line, in the unit of y. The default loses 5 % of the
        precision of least squares if errors are Gaussian with variance 1 (Huber, 1981).
    """

    delta: float = 1.35

    name: ClassVar[str] = "huber"
    _rules: ClassVar[Mapping[str, Rule]] = {"delta": Positive(float)}

    @property
    def parameter(self) -> float:
        """What the compiled form takes beside the name."""
        return float(self.delta)

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """Where the slopes add up to 0, between the least and the largest target."""
        low, high = float(y.min()), float(y.max())
        if low == high:
            return low
        return float(brentq(lambda b: weights @ self.slope(np.float64(b), y), low, high))


@dataclass(frozen=True)
class KinkedLoss(Loss):
    """max(lo r, hi r) with r = z - y; its slopes and conjugate are those of a smooth loss near it.

    :mod:`sublearn.optim.kinked` says how the two belong together.
    """

    @abc.abstractmethod
    def ends(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """lo and hi of each row."""

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y), of the lines."""
        low, high = self.ends(y)
        return np.maximum(low * (z - y), high * (z - y))

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The best prediction for all rows."""
        return self.best_beside(np.zeros_like(y), y, weights)

    def best_beside(self, offsets: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """The kink at which the slope of the sum changes its sign."""
        low, high = self.ends(y)
        kinks = y - offsets
        order = np.argsort(kinks, kind="stable")
        slope = np.cumsum((weights * (high - low))[order]) + float(weights @ low)
        # Sums of what adds up to 0 leave their rounding.
        at = np.searchsorted(slope, -_EVEN * float(weights @ (high - low)))
        return float(kinks[order[min(int(at), len(order) - 1)]])


@dataclass(frozen=True)
class Quantile(Settings, KinkedLoss):
    """The pinball loss: level (y - z) below the target, (1 - level) (z - y) above it.

    Parameters
    ----------
    level : float, default=0.5
        Share of the targets that are to lie below their prediction.
    """

    level: float = 0.5

    name: ClassVar[str] = "quantile"
    _rules: ClassVar[Mapping[str, Rule]] = {"level": Interval(float, 0, 1, "neither")}

    @property
    def parameter(self) -> float:
        """What the compiled form takes beside the name."""
        return float(self.level)

    def ends(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for all rows."""
        return np.full(len(y), -self.level), np.full(len(y), 1 - self.level)


class Hinge(KinkedLoss):
    """max(0, 1 - y z), y in {-1, 1}."""

    name = "hinge"

    def ends(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By the sign of y."""
        return np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)


class Poisson(Loss):
    """exp(z) - y z + y log y - y, half of the deviance, y >= 0."""

    name = "poisson"

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The logarithm of the mean."""
        return float(np.log(np.average(y, weights=weights)))

    def shift(self, y: np.ndarray) -> np.ndarray:
        """y log y - y."""
        return xlogy(y, y) - y


def as_loss(loss: str | Loss) -> Loss | None:
    """A loss with a kink, by name or as it is; other losses as they are, None for other names."""
    if isinstance(loss, str):
        return {"hinge": Hinge(), "quantile": Quantile()}.get(loss)
    return loss


def compiled_name(loss: str | Loss) -> tuple[str, float]:
    """Name and parameter of a loss for the core."""
    loss = Huber() if loss == "huber" else loss
    return (loss, 1.0) if isinstance(loss, str) else (loss.name, loss.parameter)
