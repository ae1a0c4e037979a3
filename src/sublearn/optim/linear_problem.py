r"""One sparse linear problem, ready for a solver.

.. math:: \min_{w, b} \sum_i s_i f(\langle x_i, w \rangle + b; y_i)
    + \lambda \sum_j c_j |w_j| + \tfrac{l_2}{2} \|w\|^2, \qquad \sum_i s_i = 1
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from sublearn import _core
from sublearn.optim.linear_objective import LinearData, as_columns, linear_data
from sublearn.optim.row_losses import Loss
from sublearn.typing import Matrix
from sublearn.validation.design import column_extremes

__all__ = ["CoreResult", "LinearProblem", "Penalty", "SparsePenalty", "predict_rows"]

#: What a call of the core returns: weights, intercept, status, rounds by column.
CoreResult = tuple[np.ndarray, float, _core.Status, dict[str, np.ndarray]]


class SparsePenalty(abc.ABC):
    """A penalty whose weight l1 is not told yet: what solvers ask of any."""

    l2: float
    is_positive: bool

    @property
    def unpenalised(self) -> np.ndarray:
        """Features that l1 does not hold."""
        return np.arange(0)

    @property
    def free(self) -> np.ndarray:
        """Features whose dual constraint is an equation: no l1 and no l2 holds them."""
        return np.arange(0)

    @abc.abstractmethod
    def least_l1(self, slope: np.ndarray) -> float:
        """The least l1 that holds weights at 0 against this gradient; 0 if it holds none."""

    @abc.abstractmethod
    def value(self, w: np.ndarray, l1: float) -> float:
        """The penalty of the weights."""

    @abc.abstractmethod
    def run(
        self, data: LinearData, l1: float, settings: _core.LinearSettings, w: np.ndarray,
        intercept: float, monitor: _core.Monitor,
    ) -> CoreResult:  # fmt: skip
        """One call of the core from a point."""


@dataclass(frozen=True)
class Penalty(SparsePenalty):
    """A term for each feature: l1 with a factor, the squared norm, and signs.

    Parameters
    ----------
    factors : ndarray of shape (n_features,)
        What l1 is multiplied by for each feature; 0 leaves a feature free of it.
    l2 : float
        Weight of the squared norm.
    is_positive : bool
        Whether weights must not be negative.
    """

    factors: np.ndarray
    l2: float
    is_positive: bool

    @property
    def unpenalised(self) -> np.ndarray:
        """Features that l1 does not hold."""
        return np.flatnonzero(self.factors == 0)

    @property
    def free(self) -> np.ndarray:
        """Features whose dual constraint is an equation: no l1 and no l2 holds them."""
        return self.unpenalised if self.l2 == 0 else np.arange(0)

    def compiled(self) -> _core.SeparablePenalty:
        """The form that the core takes; l1 is passed beside it."""
        penalty = _core.SeparablePenalty()
        penalty.l2 = self.l2
        if self.is_positive:
            penalty.lower = 0.0
        return penalty

    def least_l1(self, slope: np.ndarray) -> float:
        """The least l1 that holds weights at 0 against this gradient; 0 if it holds none."""
        held = self.factors > 0
        pull = -slope if self.is_positive else np.abs(slope)
        return float((pull[held] / self.factors[held]).max(initial=0.0))

    def value(self, w: np.ndarray, l1: float) -> float:
        """The penalty of the weights."""
        return float(l1 * (self.factors @ np.abs(w)) + 0.5 * self.l2 * (w @ w))

    def run(
        self, data: LinearData, l1: float, settings: _core.LinearSettings, w: np.ndarray,
        intercept: float, monitor: _core.Monitor,
    ) -> CoreResult:  # fmt: skip
        """One call of the core from a point."""
        levels = l1 * self.factors
        found: CoreResult = _core.fit_linear(
            data, levels, self.compiled(), settings, w, intercept, monitor
        )
        return found


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Rows, targets, row weights of sum 1 and a loss.

    Parameters
    ----------
    X : csc_matrix or ndarray in Fortran order
        As :func:`sublearn.validation.design.check_design` returns it.
    y : ndarray of float64
        Targets.
    weights : ndarray of float64
        Row weights, above 0, of sum 1.
    loss : Loss
        Of a row.
    fit_intercept : bool
        Whether there is an intercept.
    offsets : ndarray of float64 or None, default=None
        What is added to each row's prediction.
    """

    X: Matrix
    y: np.ndarray
    weights: np.ndarray
    loss: Loss
    fit_intercept: bool
    offsets: np.ndarray | None = None

    def __reduce__(self) -> tuple[type[LinearProblem], tuple[object, ...]]:
        """Without what the core holds; another process makes its own."""
        return LinearProblem, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @cached_property
    def data(self) -> LinearData:
        """The problem as the core holds it."""
        return linear_data(
            self.X, self.y, self.loss.name, self.weights, self.fit_intercept, self.loss.parameter,
            self.offsets,
        )  # fmt: skip

    @cached_property
    def shift(self) -> float:
        """What the objective of the core leaves out."""
        return float(np.sum(self.weights * self.loss.shift(self.y)))

    @cached_property
    def scale(self) -> float:
        """Loss of predicting 0: the size of numbers that cancel in an objective near 0."""
        return float(self.weights @ self.loss.value(np.zeros_like(self.y), self.y))

    @cached_property
    def column_sizes(self) -> np.ndarray:
        """The largest entry of each column, in size."""
        low, high = column_extremes(self.X)
        return np.maximum(high, -low).astype(np.float64)

    @cached_property
    def constant(self) -> float:
        """Intercept of the model without features."""
        if not self.fit_intercept:
            return 0.0
        if self.offsets is None:
            return self.loss.best_constant(self.y, self.weights)
        return self.loss.best_beside(self.offsets, self.y, self.weights)

    def value(self, w: np.ndarray, intercept: float) -> float:
        """The loss of a point, without penalty."""
        return float(self.weights @ self.loss.value(self.predictions(w, intercept), self.y))

    def gradient(self, w: np.ndarray, intercept: float) -> np.ndarray:
        """Gradient of the loss in the weights."""
        point = np.append(w, intercept) if self.fit_intercept else np.ascontiguousarray(w)
        return self.data.objective(1).value_and_gradient(point)[1][: self.n_features]

    def predictions(self, w: np.ndarray, intercept: float) -> np.ndarray:
        """z of all rows, in float64."""
        z = predict_rows(self.X, w, intercept)
        return z if self.offsets is None else z + self.offsets

    def take_columns(self, columns: np.ndarray) -> LinearProblem:
        """The problem on some of the features."""
        return replace(self, X=as_columns(self.X[:, columns]))

    def dense_columns(self, columns: np.ndarray) -> np.ndarray:
        """A few columns as a dense float64 array."""
        found = self.X[:, columns]
        dense = found if isinstance(found, np.ndarray) else found.toarray()
        return np.asarray(dense, dtype=np.float64)


def predict_rows(X: Matrix, w: np.ndarray, intercept: float) -> np.ndarray:
    """<x_i, w> + b of all rows in float64; only the columns of non-zero weights are read."""
    support = np.flatnonzero(w)
    return X[:, support].astype(np.float64) @ w[support] + intercept
