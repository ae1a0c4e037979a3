"""Which cluster a query belongs to, as probabilities (2.4.41): a multiclass kernel SVM, calibrated.

scikit-learn's linear SVM on the features of a kernel map is a kernel SVM with the map's kernel.
Its scores become probabilities by a multinomial logistic regression on rows that it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sublearn.io.fields import Floats

__all__ = ["Membership"]

_HELD_OUT = 0.3  # of the rows, for the calibration


@dataclass(frozen=True)
class Membership:
    """Scores are features @ weights + bias, log-odds are scores @ slopes + offsets."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "weights": Floats("gate", "clusters", bits=64),
        "bias": Floats("clusters", bits=64),
        "slopes": Floats("clusters", "clusters", bits=64),
        "offsets": Floats("clusters", bits=64),
    }

    weights: np.ndarray
    bias: np.ndarray
    slopes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def fit(
        cls, features: np.ndarray, labels: np.ndarray, n_clusters: int, rng: np.random.Generator
    ) -> Membership:
        """Learn from rows with known clusters; each cluster must have two rows."""
        if n_clusters == 1:
            zero = np.zeros((features.shape[1], 1))
            return cls(zero, np.zeros(1), np.ones((1, 1)), np.zeros(1))
        seen = _stratified(labels, rng)
        svm = LinearSVC(C=10.0, tol=1e-3, max_iter=2000, dual=False).fit(
            features[seen], labels[seen]
        )
        weights, bias = _one_per_class(svm.coef_.T, svm.intercept_)
        calibration = LogisticRegression(C=10.0, max_iter=2000, tol=1e-3)
        calibration.fit(features[~seen] @ weights + bias, labels[~seen])
        slopes, offsets = _one_per_class(calibration.coef_.T, calibration.intercept_)
        return cls(weights, bias, slopes, offsets)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.bias)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Probabilities, one row for each row of features."""
        odds = (features @ self.weights + self.bias) @ self.slopes + self.offsets
        odds -= odds.max(axis=1, keepdims=True)
        p = np.exp(odds)
        return p / p.sum(axis=1, keepdims=True)


def _stratified(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """True for the rows the SVM sees; of each cluster at least one row is on either side."""
    seen = np.ones(len(labels), dtype=bool)
    for cluster in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == cluster))
        seen[rows[: max(1, int(_HELD_OUT * len(rows)))]] = False
    return seen


def _one_per_class(weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For two classes scikit-learn gives the second one's score only; the first has its minus."""
    if len(bias) > 1:
        return weights, bias
    return np.hstack([-weights, weights]) / 2.0, np.concatenate([-bias, bias]) / 2.0
