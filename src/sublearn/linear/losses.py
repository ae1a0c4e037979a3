r"""Losses of a row for what is done once per fit: the model without features, held-out rows, links.

The solvers have the same formulas compiled (cpp/include/sublearn/losses); tests hold the two
together. Each loss is :math:`f(z; y)` for the prediction :math:`z`, convex, smooth and at least 0.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy

__all__ = ["Huber", "Logistic", "Loss", "Poisson", "Squared"]

_SLACK = 1e-12  # a slope at the end of the domain of a conjugate, weighted and unweighted again


class Loss(abc.ABC):
    """The loss of one row, for arrays of them."""

    name: str
    parameter = 1.0

    @abc.abstractmethod
    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y)."""

    @abc.abstractmethod
    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""

    @abc.abstractmethod
    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""

    @abc.abstractmethod
    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y) = max_z a z - f(z; y), infinite outside its domain."""

    @abc.abstractmethod
    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The one prediction for all rows that has the least loss."""

    def shift(self, y: np.ndarray) -> np.ndarray | float:
        """What the compiled form of the loss leaves out."""
        return 0.0


class Logistic(Loss):
    """log(1 + exp(-y z)), y in {-1, 1}."""

    name = "logistic"

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y)."""
        return np.logaddexp(0.0, -y * z)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return -y * expit(-y * z)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return expit(z) * expit(-z)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y)."""
        u = -a * y
        inside = np.clip(u, 0.0, 1.0)
        value = xlogy(inside, inside) + xlogy(1 - inside, 1 - inside)
        return np.where(np.abs(u - inside) <= _SLACK, value, np.inf)

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The log odds."""
        positive = weights[y > 0].sum()
        return float(logit(positive / (positive + weights[y < 0].sum())))


class Squared(Loss):
    """(z - y)^2 / 2."""

    name = "squared"

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y)."""
        return 0.5 * (z - y) ** 2

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return z - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return np.ones_like(z)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y)."""
        return a * y + 0.5 * a * a

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The mean."""
        return float(np.average(y, weights=weights))


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 for |r| <= delta, delta |r| - delta^2 / 2 beyond, with r = z - y."""

    parameter: float
    name = "huber"

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y)."""
        r, delta = np.abs(z - y), self.parameter
        near = np.minimum(r, delta)
        return near * (r - 0.5 * near)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return np.clip(z - y, -self.parameter, self.parameter)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return (np.abs(z - y) <= self.parameter).astype(np.float64)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y)."""
        inside = np.clip(a, -self.parameter, self.parameter)
        is_inside = np.abs(a - inside) <= _SLACK * self.parameter
        return np.where(is_inside, inside * y + 0.5 * inside * inside, np.inf)

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """Where the slopes add up to 0, between the least and the largest target."""
        low, high = float(y.min()), float(y.max())
        if low == high:
            return low
        return float(brentq(lambda b: weights @ self.slope(np.float64(b), y), low, high))


class Poisson(Loss):
    """exp(z) - y z + y log y - y, half of the deviance, y >= 0."""

    name = "poisson"

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(z; y); infinite where exp(z) is."""
        with np.errstate(over="ignore"):
            return np.exp(z) - y * z + self.shift(y)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return np.exp(z) - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return np.exp(z)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f*(a; y)."""
        rate = a + y
        inside = np.maximum(rate, 0.0)
        is_inside = inside - rate <= _SLACK * (1.0 + y)
        return np.where(is_inside, xlogy(inside, inside) - inside - self.shift(y), np.inf)

    def best_constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The logarithm of the mean."""
        return float(np.log(np.average(y, weights=weights)))

    def shift(self, y: np.ndarray) -> np.ndarray:
        """y log y - y."""
        return xlogy(y, y) - y
