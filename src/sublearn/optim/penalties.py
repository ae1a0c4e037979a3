r"""Convex penalties and two that are not, by their value and their proximal operator.

.. math:: \mathrm{prox}_{t g}(v) = \operatorname{argmin}_u g(u) + \tfrac{1}{2 t} \|u - v\|^2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.interruption import aside
from sublearn.optim.linear_input import check_levels, check_numbers, refusal
from sublearn.validation import Interval, NonNegative, Positive, check_argument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["GroupNorm", "Mcp", "NuclearNorm", "Proximal", "Scad", "Separable", "TreeNorm"]

_MOST_SWEEPS = 10_000
_TREE_TOL = 1e-14  # of the hierarchical operator


class Proximal(Protocol):
    """What :func:`sublearn.optim.proximal_quasi_newton` asks of a penalty."""

    def value(self, x: np.ndarray) -> float:
        """g(x); infinite outside the domain."""

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """The minimiser of g(u) + |u - v|^2 / (2 step)."""


def _soft(v: np.ndarray, level: ArrayLike) -> np.ndarray:
    return np.sign(v) * np.maximum(np.abs(v) - level, 0.0)


class Separable:
    r"""l1 norm, squared norm and box: :math:`\sum_j \lambda_j |x_j| + \tfrac{l_2}{2} x_j^2`.

    Parameters
    ----------
    size : int
        Number of coordinates.
    l1 : float or array of shape (size,)
        :math:`\lambda`.
    l2 : float
        Weight of half the squared norm.
    bounds : pair of float
        :math:`a \le 0 \le b` for all coordinates.

    Examples
    --------
    >>> Separable(3, l1=1.0, bounds=(0, 1)).prox(np.array([-3.0, 1.5, 4.0]), 1.0).tolist()
    [0.0, 0.5, 1.0]
    """

    def __init__(
        self,
        size: int,
        l1: ArrayLike = 0.0,
        *,
        l2: float = 0.0,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ):
        check_argument("Separable.l2", l2, NonNegative(float))
        self.levels = check_levels("Separable", l1, size, "coordinate")
        self.l2 = float(l2)
        self.bounds = _bounds(bounds)

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        lower, upper = self.bounds
        if (x < lower).any() or (x > upper).any():
            return np.inf
        return float(self.levels @ np.abs(x) + 0.5 * self.l2 * (x @ x))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Soft threshold, shrinkage, and the nearest point of the box."""
        shrunk = _soft(v, step * self.levels) / (1.0 + step * self.l2)
        return np.clip(shrunk, *self.bounds)

    def compiled(self) -> _core.SeparablePenalty:
        """The form that the core takes; l1 is passed beside it."""
        penalty = _core.SeparablePenalty()
        penalty.l2 = self.l2
        penalty.lower, penalty.upper = self.bounds
        return penalty


def _bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    try:
        lower, upper = (float(end) for end in bounds)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= 0 <= upper:
        raise refusal("Separable", "bounds", "be a pair of numbers with 0 between them", bounds)
    return lower, upper


class GroupNorm:
    r"""Norms of disjoint groups: :math:`\sum_g \lambda_g \|x_g\|_2`.

    Parameters
    ----------
    groups : array of int of shape (size,)
        The group of each coordinate, from 0 on; -1 for a coordinate without penalty.
    weights : float or array of shape (n_groups,)
        :math:`\lambda_g`.

    Examples
    --------
    >>> GroupNorm([0, 0, 1], 1.0).prox(np.array([3.0, 4.0, 0.5]), 1.0).round(3).tolist()
    [2.4, 3.2, 0.0]
    """

    def __init__(self, groups: ArrayLike, weights: ArrayLike):
        self.groups = as_groups("GroupNorm", groups)
        self.n_groups = int(self.groups.max(initial=-1)) + 1
        if self.n_groups == 0:
            raise refusal("GroupNorm", "groups", "name at least one group", groups)
        self.weights = _weights("GroupNorm", weights, self.n_groups, "group")
        self._held = self.groups >= 0

    def norms(self, x: np.ndarray) -> np.ndarray:
        """The norm of each group."""
        squares = np.bincount(self.groups[self._held], x[self._held] ** 2, minlength=self.n_groups)
        return np.sqrt(squares)

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        return float(self.weights @ self.norms(x))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Each group shrunk by its share."""
        norms = self.norms(v)
        kept = np.maximum(1.0 - step * self.weights / np.maximum(norms, 1e-300), 0.0)
        return np.where(self._held, v * np.append(kept, 1.0)[self.groups], v)


def as_groups(who: str, groups: ArrayLike, size: int | None = None) -> np.ndarray:
    """The group of each coordinate, -1 for none."""
    found = np.asarray(groups)
    is_sound = found.ndim == 1 and found.dtype.kind in "iu" and len(found) > 0
    if size is not None:
        is_sound = is_sound and len(found) == size
    if not is_sound or found.min() < -1 or found.max() >= len(found):
        count = "an integer" if size is None else f"{size} integers, one"
        raise refusal(
            who, "groups", f"be {count} for each coordinate from -1 to their number less 1", groups
        )
    return found.astype(np.int64)


def _weights(who: str, weights: ArrayLike, size: int, per: str) -> np.ndarray:
    values = np.full(size, weights, dtype=np.float64) if np.ndim(weights) == 0 else weights
    levels = check_numbers(who, "weights", values, per, size)
    if (levels < 0).any():
        raise refusal(who, "weights", "be non-negative", weights)
    return levels


class TreeNorm:
    r"""Norms of nested groups of a forest: :math:`\sum_t \lambda_t \|x_{D(t)}\|_2`.

    :math:`D(t)` is coordinate t with all its descendants. The operator is that of
    :func:`sublearn.hierarchy.project_hierarchy` (theorem 2 of Tang, 2016).

    Parameters
    ----------
    parents : array of int of shape (size,)
        The parent of each coordinate, -1 for a root.
    weights : float or array of shape (size,)
        :math:`\lambda_t`.

    Examples
    --------
    >>> TreeNorm([-1, 0, 0], 0.5).prox(np.array([0.3, 0.9, 0.8]), 1.0).round(3).tolist()
    [0.043, 0.057, 0.043]
    """

    def __init__(self, parents: ArrayLike, weights: ArrayLike):
        above = as_groups("TreeNorm", parents)
        n = len(above)
        self.weights = _weights("TreeNorm", weights, n, "coordinate")
        has_parent = above >= 0
        indptr = np.concatenate([[0], np.cumsum(has_parent)]).astype(np.int64)
        self._graph = _core.LabelGraph(indptr, above[has_parent].astype(np.int32))
        self._order = np.asarray(self._graph.order())
        if len(self._order) < n:
            raise ParameterError("TreeNorm.parents must be a forest, got a cycle")
        self._above = above

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        squares = x**2
        for t in self._order[::-1]:
            if self._above[t] >= 0:
                squares[self._above[t]] += squares[t]
        return float(self.weights @ np.sqrt(squares))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """One pass from the leaves to the roots, one back."""
        row = np.ascontiguousarray(v, dtype=np.float64)[None]
        out, no_support = np.empty_like(row), np.empty((0, 0), dtype=bool)
        self._graph.project(
            row, step * self.weights, out, no_support, _TREE_TOL, _MOST_SWEEPS, 1, _core.Monitor()
        )
        return out[0]


class NuclearNorm:
    r"""The sum of the singular values of a matrix, :math:`\lambda \|X\|_*`, x its entries by row.

    Parameters
    ----------
    shape : pair of int
        Of the matrix.
    weight : float
        :math:`\lambda`.

    Examples
    --------
    >>> NuclearNorm((2, 2), 1.0).prox(np.array([3.0, 0.0, 0.0, 0.5]), 1.0).round(3).tolist()
    [2.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, shape: tuple[int, int], weight: float):
        check_argument("NuclearNorm.weight", weight, NonNegative(float))
        is_pair = isinstance(shape, (tuple, list)) and len(shape) == 2
        if not is_pair or not all(Positive(int).accepts(size) for size in shape):
            raise refusal("NuclearNorm", "shape", "be two positive integers", shape)
        self.shape, self.weight = (int(shape[0]), int(shape[1])), float(weight)

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        return self.weight * float(self._parts(x)[1].sum())

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Soft threshold of the singular values."""
        left, values, right = self._parts(v)
        return np.ravel((left * np.maximum(values - step * self.weight, 0.0)) @ right)

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        matrix = x.reshape(self.shape)
        n_operations = 20.0 * matrix.size * min(self.shape)
        return aside(_decompose, matrix, n_operations=n_operations)


def _decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left, values, right


class Mcp:
    r"""The minimax concave penalty, whose slope falls from :math:`\lambda` at 0 to none.

    .. math:: p(t) = \lambda |t| - \tfrac{t^2}{2 \gamma}
        \text{ up to } |t| = \gamma \lambda, \quad \tfrac{\gamma \lambda^2}{2} \text{ beyond}

    Parameters
    ----------
    l1 : float
        :math:`\lambda`.
    gamma : float, default=3.0
        :math:`\gamma > 1`; the smaller, the sooner a weight is free of the penalty.
    """

    _least = 1.0

    def __init__(self, l1: float, gamma: float = 3.0):
        self.l1, self.gamma = _concave(type(self).__name__, l1, gamma, self._least)

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        size = np.minimum(np.abs(x), self.gamma * self.l1)
        return float((self.l1 * size - size**2 / (2 * self.gamma)).sum())

    def slope(self, x: np.ndarray) -> np.ndarray:
        """p'(|t|), at 0 the slope to the right."""
        return np.maximum(self.l1 - np.abs(x) / self.gamma, 0.0)

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """The firm threshold, for steps below gamma; the best of its ends for others."""
        free = np.where(np.abs(v) > self.gamma * self.l1, v, 0.0)
        if step >= self.gamma:
            return np.where(np.abs(v) > self.l1 * np.sqrt(step * self.gamma), v, 0.0)
        inside = _soft(v, step * self.l1) / (1.0 - step / self.gamma)
        return np.where(np.abs(v) > self.gamma * self.l1, free, inside)


class Scad(Mcp):
    r"""The smoothly clipped absolute deviation: l1 up to :math:`\lambda`, then less and less.

    .. math:: p'(t) = \lambda \text{ up to } \lambda, \quad
        \frac{\max(\gamma \lambda - t, 0)}{\gamma - 1} \text{ beyond}

    Parameters
    ----------
    l1 : float
        :math:`\lambda`.
    gamma : float, default=3.7
        :math:`\gamma > 2`.
    """

    _least = 2.0

    def __init__(self, l1: float, gamma: float = 3.7):
        super().__init__(l1, gamma)

    def value(self, x: np.ndarray) -> float:
        """g(x)."""
        return float(self._each(x).sum())

    def slope(self, x: np.ndarray) -> np.ndarray:
        """p'(|t|), at 0 the slope to the right."""
        size = np.abs(x)
        falling = np.maximum(self.gamma * self.l1 - size, 0.0) / (self.gamma - 1)
        return np.where(size <= self.l1, self.l1, falling)

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """The best of the minimisers of the three parts."""
        inner = np.clip(_soft(v, step * self.l1), -self.l1, self.l1)
        end, room = self.gamma * self.l1, 1.0 - step / (self.gamma - 1)
        middle = np.sign(v) * np.clip(
            (np.abs(v) - step * end / (self.gamma - 1)) / room if room > 0 else end, self.l1, end
        )
        outer = np.sign(v) * np.maximum(np.abs(v), end)
        return self._best(v, step, [inner, middle, outer, np.sign(v) * min(self.l1, end)])

    def _best(self, v: np.ndarray, step: float, points: list[np.ndarray]) -> np.ndarray:
        each = [self._each(u) + (u - v) ** 2 / (2 * step) for u in points]
        return np.choose(np.argmin(each, axis=0), points)

    def _each(self, x: np.ndarray) -> np.ndarray:
        size, end = np.abs(x), self.gamma * self.l1
        middle = (2 * end * size - size**2 - self.l1**2) / (2 * (self.gamma - 1))
        most = self.l1**2 * (self.gamma + 1) / 2
        return np.where(size <= self.l1, self.l1 * size, np.where(size <= end, middle, most))


def _concave(who: str, l1: float, gamma: float, least: float) -> tuple[float, float]:
    check_argument(f"{who}.l1", l1, NonNegative(float))
    check_argument(f"{who}.gamma", gamma, Interval(float, least, np.inf, "neither"))
    return float(l1), float(gamma)
