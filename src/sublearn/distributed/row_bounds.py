r"""Lower bounds on the optimum of a problem whose rows lie on workers.

For slopes :math:`a_i = f'(z_i)` of the rows at some point, every :math:`\beta` with
:math:`\beta_i` between 0 and :math:`a_i` is a dual point of

.. math:: \min_x F(x) = \sum_i s f(\langle x_i, x \rangle; y_i) + \sum_j \lambda_j |x_j|
    + \tfrac{1}{2} \sum_j \mu_j x_j^2

once :math:`|v_j| \le \lambda_j` for :math:`v = s \sum_i \beta_i x_i` where :math:`\mu_j = 0`:

.. math:: F^* \ge -s \sum_i f^*(\beta_i; y_i)
    - \tfrac{1}{2} \sum_{\mu_j > 0} \max(|v_j| - \lambda_j, 0)^2 / \mu_j

With a square on every coordinate the slopes will do as they are. Else negative slopes and positive
ones are each multiplied by a factor, so that they add up to 0, as an intercept asks, and are
feasible. The factors are known only when all blocks have answered; but :math:`f^*` is convex along
either ray, so its chords between a few factors lie above it, and one answer is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sublearn.distributed.row_blocks import RowBlock, RowLoss
from sublearn.optim.row_losses import Huber, Logistic, Loss, Squared

__all__ = ["Point", "RowTask", "as_point", "dual_rays", "full", "n_ray_numbers"]

_LOSSES: dict[str, type[Loss]] = {"logistic": Logistic, "squared": Squared, "huber": Huber}
_FACTORS = 1.0 - np.array([1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 0.0])  # ascending
_NEAR = 0.9  # a factor that leaves slopes about what they are

Point = tuple[np.ndarray, np.ndarray]  # non-zero coordinates and their values


def as_point(x: np.ndarray) -> Point:
    """What is sent of `x`."""
    at = np.flatnonzero(x)
    return at.astype(np.int32), x[at]


def full(point: Point, size: int) -> np.ndarray:
    """Inverse of `as_point`."""
    x = np.zeros(size)
    x[point[0]] = point[1]
    return x


# --- on the workers ----------------------------------------------------------------------------


def n_ray_numbers(n_features: int) -> int:
    """How many numbers `dual_rays` returns."""
    return n_features + 2 + 2 * len(_FACTORS)


def dual_rays(block: RowBlock, loss: RowLoss, point: Point) -> np.ndarray:
    """The share of one block in what a dual point is made of.

    X' times the negative slopes; the sums of negative and of positive slopes; the sums of f* of
    either, times each factor.
    """
    x = full(point, block.X.shape[1] + loss.fit_intercept)
    w, intercept = (x[:-1], x[-1]) if loss.fit_intercept else (x, 0.0)
    at = np.flatnonzero(w)
    z = np.asarray(block.X[:, at].astype(np.float64) @ w[at]).ravel() + intercept
    formulas = Huber(loss.parameter) if loss.name == "huber" else _LOSSES[loss.name]()
    y = block.targets(loss)
    slopes = formulas.slope(z, y)
    down, up = np.minimum(slopes, 0.0), np.maximum(slopes, 0.0)
    of_down = slopes < 0
    conjugates = [formulas.conjugate(factor * slopes[side], y[side]).sum()
                  for side in (of_down, ~of_down) for factor in _FACTORS]  # fmt: skip
    pull = np.asarray(block.X.T @ down).ravel()
    return np.concatenate([pull, [down.sum(), up.sum()], conjugates])


# --- on the client -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowTask:
    """One problem.

    `l1` and `l2` have an entry for each coordinate, the intercept last if there is one.
    """

    loss: RowLoss
    l1: np.ndarray
    l2: np.ndarray
    start: np.ndarray
    tol: float
    max_iter: int
    is_positive: bool = False
    prune: float = 0.0  # weights of at most this size are dropped from what is found

    def penalty(self, x: np.ndarray) -> float:
        """Of both norms."""
        return float(self.l1 @ np.abs(x)) + 0.5 * float(self.l2 @ (x * x))

    @property
    def is_held(self) -> bool:
        """Whether a square holds every coordinate: slopes are then a dual point as they are."""
        return bool(self.l2.all())

    def plain_bound(self, x: np.ndarray, value: float, gradient: np.ndarray) -> float:
        """With the slopes shrunk to be feasible, whether or not they add up to 0.

        Exact where `is_held`, since sum f*(f'(z)) = <x, gradient> - value. Else the conjugates are
        replaced by their tangent, and what comes out is too large: a hope, and no bound; minus
        infinity where the slopes are too far from feasible for a tangent to say anything.
        """
        pull = self._pull(gradient)
        factor = self._feasible(pull)
        if factor < _NEAR:
            return -np.inf
        return value - factor * float(x @ gradient) - self._excess(factor * pull)

    def bound(self, gradient: np.ndarray, rays: np.ndarray) -> float:
        """From the gradient of the loss and the sum of `dual_rays` at the same point."""
        weight, n = self.loss.row_weight, len(rays) - n_ray_numbers(0)
        down, sums = weight * rays[:n], rays[n : n + 2]
        factors = _balancing(*sums) if self.loss.fit_intercept else np.ones(2)
        pull = np.zeros(len(self.l1))
        pull[:n] = self._pull(factors[0] * down + factors[1] * (gradient[:n] - down))
        shrink = self._feasible(pull)
        sides = rays[n + 2 :].reshape(2, -1)
        total = sum(np.interp(shrink * factor, _FACTORS, side)
                    for factor, side in zip(factors, sides, strict=True))  # fmt: skip
        return -weight * float(total) - self._excess(shrink * pull)

    def _pull(self, v: np.ndarray) -> np.ndarray:
        return -v if self.is_positive else np.abs(v)

    def _feasible(self, pull: np.ndarray) -> float:
        """By what to multiply slopes that pull so hard; an intercept is left out."""
        n = len(pull) - self.loss.fit_intercept
        over = (self.l2[:n] == 0) & (pull[:n] > self.l1[:n])
        return float((self.l1[:n][over] / pull[:n][over]).min(initial=1.0))

    def _excess(self, pull: np.ndarray) -> float:
        held = self.l2 > 0
        above = np.maximum(pull[held] - self.l1[held], 0.0)
        return 0.5 * float((above**2 / self.l2[held]).sum())


def _balancing(down: float, up: float) -> np.ndarray:
    """Factors of negative and positive slopes with these sums, so that all add up to 0."""
    return np.array([min(1.0, up / -down) if down < 0 else 0.0,
                     min(1.0, -down / up) if up > 0 else 0.0])  # fmt: skip
