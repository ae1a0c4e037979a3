r"""A derivative-free trust-region method with linear models, in as many dimensions as asked for.

The basic method of Conn, Scheinberg and Vicente, "Introduction to Derivative-Free Optimization"
(2009), as section 3.4.1 of Tang, "Big Data Optimization in Machine Learning" (2016) describes it:
n + 1 points make a linear model of the function, which is maximised in a ball around the best
point; each step replaces one point and keeps the others, so that K steps cost n + 1 + K
evaluations. The ball grows where the model was right. Where it was not, a point far away is
replaced by one that makes the set better poised, and if there is none the ball shrinks.

The set is kept by its Lagrange polynomials l_j(x) = (1, x) c_j: replacing point j by x divides c_j
by l_j(x) and takes l_k(x) c_j from each other c_k, in O(n^2) operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["maximise"]

_ACCEPTED, _GOOD = 0.05, 0.5  # shares of the promised gain
_SMALLER, _LARGER = 0.5, 2.0
_FAR = 2.0  # radii from which on a point is too far away for the model
_LEAST_POISED = 1e-3  # value of a Lagrange polynomial below which a set would degenerate
_END = 1e-3  # of the first radius


@dataclass
class _Points:
    """Points in rows, their values, and the coefficients of their Lagrange polynomials."""

    at: np.ndarray  # (n + 1, n)
    values: np.ndarray
    lagrange: np.ndarray  # (n + 1, n + 1), a column for each point

    @classmethod
    def around(cls, start: np.ndarray, steps: np.ndarray, values: np.ndarray) -> _Points:
        """The start and a step along each axis."""
        n = len(start)
        at = np.vstack([start, start + np.diag(steps)])
        lagrange = np.zeros((n + 1, n + 1))
        rows = np.arange(1, n + 1)
        lagrange[rows, rows] = 1.0 / steps
        lagrange[0, rows] = -start / steps
        lagrange[:, 0] = -lagrange[:, 1:].sum(axis=1)
        lagrange[0, 0] += 1.0
        return cls(at, values.copy(), lagrange)

    @property
    def best(self) -> int:
        """Which point has the largest value; the first of equal ones."""
        return int(self.values.argmax())

    @property
    def slope(self) -> np.ndarray:
        """Of the linear function through all points."""
        return self.lagrange[1:] @ self.values

    def replace(self, j: int, x: np.ndarray, value: float) -> None:
        """Put x in the place of point j."""
        polynomials = self.lagrange[0] + x @ self.lagrange[1:]
        own = self.lagrange[:, j] / polynomials[j]
        polynomials[j] = 0.0
        self.lagrange -= np.outer(own, polynomials)
        self.lagrange[:, j] = own
        self.at[j], self.values[j] = x, value

    def leaving(self, x: np.ndarray, centre: np.ndarray, kept: int | None) -> int | None:
        """The point that x should replace: far away, and so that the set stays poised."""
        polynomials = np.abs(self.lagrange[0] + x @ self.lagrange[1:])
        distances = np.linalg.norm(self.at - centre, axis=1)
        scores = polynomials * np.maximum(distances, 1e-300) ** 2
        if kept is not None:
            scores[kept] = -1.0
        scores[polynomials < _LEAST_POISED] = -1.0
        j = int(scores.argmax())
        return j if scores[j] >= 0 else None


def maximise(
    evaluate: Callable[[list[np.ndarray]], list[float]],
    start: np.ndarray,
    radius: float,
    n_steps: int,
    after_step: Callable[[np.ndarray, float], bool],
) -> tuple[np.ndarray, float]:
    """The best point found with x >= 0, and its value.

    Parameters
    ----------
    evaluate : callable
        Values of a list of points; the first n + 1 are asked for at once.
    start : ndarray of shape (n,)
        Where to begin, none below 0.
    radius : float
        Of the first ball.
    n_steps : int
        Evaluations after the first n + 1.
    after_step : callable
        Gets the best point and value after each evaluation; a true answer ends the search.
    """
    n = len(start)
    first = [start, *(start + radius * axis for axis in np.eye(n))]
    points = _Points.around(start, np.full(n, radius), np.array(evaluate(first)))
    most, least = radius * np.sqrt(n), _END * radius
    n_left = n_steps
    while n_left > 0:
        best = points.best
        if after_step(points.at[best], float(points.values[best])) or radius < least:
            break
        n_spent, radius = _step(points, evaluate, radius, n_left)
        n_left, radius = n_left - n_spent, min(radius, most)
    best = points.best
    return points.at[best].copy(), float(points.values[best])


def _step(
    points: _Points, evaluate: Callable[[list[np.ndarray]], list[float]], radius: float, n_left: int
) -> tuple[int, float]:
    """A step along the model, and one to mend the set if it was wrong and another is left.

    Returns evaluations and the next radius.
    """
    best = points.best
    centre, value, slope = points.at[best].copy(), float(points.values[best]), points.slope
    x = _uphill(centre, slope, radius)
    promised, n_spent = float(slope @ (x - centre)), 0
    if promised > 0.0:
        (found,) = evaluate([x])
        n_spent, share = 1, (found - value) / promised
        j = points.leaving(x, centre, kept=None if found > value else best)
        if j is not None:
            points.replace(j, x, found)
        if share >= _ACCEPTED:
            return n_spent, _LARGER * radius if share >= _GOOD else radius
    if n_spent < n_left and _mend(points, evaluate, radius):
        return n_spent + 1, radius
    return max(n_spent, 1), _SMALLER * radius


def _uphill(centre: np.ndarray, slope: np.ndarray, radius: float) -> np.ndarray:
    """The end of a step of this length along the slope, on axes that are free to move."""
    is_free = (centre > 0) | (slope > 0)
    free = np.where(is_free, slope, 0.0)
    size = float(np.linalg.norm(free))
    return np.maximum(centre + (radius / size) * free, 0.0) if size > 0 else centre


def _mend(
    points: _Points, evaluate: Callable[[list[np.ndarray]], list[float]], radius: float
) -> bool:
    """Replace a far point, if there is one, by one in the ball where its polynomial is large."""
    best = points.best
    centre = points.at[best]
    distances = np.linalg.norm(points.at - centre, axis=1)
    distances[best] = -1.0
    j = int(distances.argmax())
    if distances[j] <= _FAR * radius:
        return False
    slope = points.lagrange[1:, j]
    direction = slope * (radius / np.linalg.norm(slope))
    tried = [np.maximum(centre + sign * direction, 0.0) for sign in (1.0, -1.0)]
    sizes = [abs(float(points.lagrange[0, j] + x @ points.lagrange[1:, j])) for x in tried]
    x = tried[int(np.argmax(sizes))]
    if max(sizes) < _LEAST_POISED:
        return False
    points.replace(j, x, evaluate([x])[0])
    return True
