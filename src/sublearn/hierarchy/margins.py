r"""Margins of a node's classifier as probabilities, so that nodes can be compared with each other.

A classifier without `predict_proba` has margins m of its children, in a unit of its own. Platt's
map

.. math:: p(\text{child} \mid m) = 1 / (1 + e^{-(a m + b)}), \qquad a \ge 0

is learned on margins of rows that the classifier did not see: three parts of the node's rows, each
scored by a clone of the other two. All children of a node share one map, so that their order stays
that of the margins. A node has few rows, so what the nodes say together counts as `_PRIOR` pairs
more in each of them:

.. math::
    \min_{a \ge 0, b} \sum_{ij} \ell(a m_{ij} + b; t_{ij})
    + \frac{\mathrm{prior}}{n} \sum_{ij \text{ of all nodes}} \ell(a m_{ij} + b; t_{ij})

with the logistic loss and Platt's targets t, (n_+ + 1) / (n_+ + 2) and 1 / (n_- + 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator, clone

from sublearn.errors import ParameterError
from sublearn.interruption import aside
from sublearn.typing import Matrix

__all__ = [
    "N_PARTS",
    "Line",
    "Margins",
    "has_probabilities",
    "learn_lines",
    "margins_of",
    "unseen_margins",
]

N_PARTS = 3
_PRIOR = 20.0  # pairs
_MOST_BINS = 256  # of the pairs of all nodes
_MOST_STEPS = 50
_LEAST_DECREMENT = 1e-10


class Line(NamedTuple):
    """Slope and offset of the map of a node's margins."""

    slope: float = 1.0
    offset: float = 0.0

    def log_probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms of what margins stand for."""
        return np.asarray(log_expit(self.slope * margins + self.offset))


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of pairs of a row and a child, and whether the row is one of the child's."""

    values: np.ndarray
    is_own: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """Platt's, which no slope reaches: two sides without a row in between stay finite."""
        n_own = np.count_nonzero(self.is_own)
        n_other = len(self.is_own) - n_own
        return np.where(self.is_own, (n_own + 1) / (n_own + 2), 1 / (n_other + 2))


def has_probabilities(estimator: object) -> bool:
    """Whether a classifier states probabilities; those of this library do once calibrated."""
    return hasattr(estimator, "predict_proba")


def margins_of(model: BaseEstimator, X: Matrix) -> np.ndarray:
    """Margins of all classes of a fitted classifier."""
    margins = np.asarray(model.decision_function(X), dtype=np.float64)
    margins = np.column_stack([-margins, margins]) if margins.ndim == 1 else margins
    if margins.shape[1] != len(model.classes_):
        raise ParameterError(
            "HierarchicalClassifier.estimator must have one margin for each class "
            f"(decision_function_shape='ovr'), got {margins.shape[1]} of {len(model.classes_)}"
        )
    return margins


def unseen_margins(
    estimator: BaseEstimator, X: Matrix, classes: np.ndarray, after_fit: Callable[[], None]
) -> Margins:
    """Margins of rows by clones that did not see them; a class of one row is always seen."""
    part_of = _parts(classes)
    values, is_own = [], []
    for part in range(N_PARTS):
        held_out = part_of == part
        if held_out.any():
            known = np.flatnonzero(~held_out)
            model = aside(clone(estimator).fit, X[known], classes[known], n_operations=np.inf)
            values.append(margins_of(model, X[np.flatnonzero(held_out)]).ravel())
            is_own.append((classes[held_out][:, None] == model.classes_).ravel())
        after_fit()
    return Margins(np.concatenate([np.empty(0), *values]), np.concatenate([[], *is_own]) > 0)


def _parts(classes: np.ndarray) -> np.ndarray:
    """A part for each row, the rows of a class dealt out in turns; -1 for the only one of a class.

    Rows are shuffled first, always alike: their order may mean something.
    """
    order = np.random.default_rng(0).permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    _, first, counts = np.unique(classes[order], return_index=True, return_counts=True)
    place = np.arange(len(classes)) - np.repeat(first, counts)
    found = np.empty(len(classes), dtype=np.int64)
    found[order] = np.where(np.repeat(counts, counts) > 1, place % N_PARTS, -1)
    return found


def learn_lines(found: Mapping[int, Margins]) -> dict[int, Line]:
    """The map of each node, drawn towards that of all nodes together."""
    every = [part for part in found.values() if len(part.values)]
    if not every:
        return dict.fromkeys(found, Line())
    pool = _Pairs.joined([_Pairs.of(part) for part in every]).binned(_MOST_BINS)
    common = _platt(pool, otherwise=Line())
    prior = _Pairs(pool.x, pool.targets, pool.weights * (_PRIOR / pool.weights.sum()))
    return {
        label: _platt(_Pairs.joined([_Pairs.of(part), prior]), otherwise=common)
        for label, part in found.items()
    }


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Margins, targets of the pairs that have them, and how many these are."""

    x: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, part: Margins) -> _Pairs:
        return cls(part.values, part.targets, np.ones(len(part.values)))

    @classmethod
    def joined(cls, parts: list[_Pairs]) -> _Pairs:
        return cls(
            np.concatenate([one.x for one in parts]),
            np.concatenate([one.targets for one in parts]),
            np.concatenate([one.weights for one in parts]),
        )

    def binned(self, n_bins: int) -> _Pairs:
        """As many neighbours in each bin; the mean stands for them."""
        parts = np.array_split(np.argsort(self.x, kind="stable"), min(n_bins, len(self.x)))
        means = np.array([[self.x[at].mean(), self.targets[at].mean(), len(at)] for at in parts])
        return _Pairs(*means.T)


def _platt(pairs: _Pairs, otherwise: Line) -> Line:
    """Newton's method with step halving; `otherwise` where a larger margin would mean less."""
    weights, targets = pairs.weights, pairs.targets
    basis = np.column_stack([pairs.x, np.ones(len(pairs.x))])
    at = np.array([0.0, logit(weights @ targets / weights.sum())])

    def loss(line: np.ndarray) -> float:
        z = basis @ line
        return float(weights @ (np.logaddexp(0.0, z) - targets * z))

    for _ in range(_MOST_STEPS):
        p = expit(basis @ at)
        gradient = basis.T @ (weights * (p - targets))
        curvature = (basis * (weights * p * (1 - p))[:, None]).T @ basis
        step = np.linalg.solve(curvature + 1e-10 * np.eye(2), gradient)
        decrement, size, before = float(gradient @ step), 1.0, loss(at)
        while size > 1e-8 and loss(at - size * step) > before - 1e-4 * size * decrement:
            size /= 2
        at = at - size * step
        if decrement <= _LEAST_DECREMENT * max(1.0, before):
            break
    return Line(float(at[0]), float(at[1])) if at[0] > 0 else otherwise
