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
from sublearn.validation import Positive, Rule, Settings

__all__ = ["Huber", "Logistic", "Loss", "Poisson", "Squared", "compiled_name"]


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


class Poisson(Loss):
    """exp(z) - y z + y log y - y, half of the deviance, y >= 0."""

    name = "poisson"

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The logarithm of the mean."""
        return float(np.log(np.average(y, weights=weights)))

    def shift(self, y: np.ndarray) -> np.ndarray:
        """y log y - y."""
        return xlogy(y, y) - y


def compiled_name(loss: str | Loss) -> tuple[str, float]:
    """Name and parameter of a loss for the core."""
    loss = Huber() if loss == "huber" else loss
    return (loss, 1.0) if isinstance(loss, str) else (loss.name, loss.parameter)
