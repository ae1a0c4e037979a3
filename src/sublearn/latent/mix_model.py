"""What a fit of a mixture reads, and what it leaves for prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from sublearn.io.fields import Fields, Floats
from sublearn.latent.mix_em import Mixture, log_densities
from sublearn.latent.stored_part import StoredPart
from sublearn.validation import Boolean

__all__ = ["FittedMixture", "MixtureProblem"]

_TINY = float(np.finfo(float).tiny)


class MixtureProblem:
    """Features and targets, the latter without what all rows have in common, and of unit size.

    There is such a part if every row has exactly one component, so that a function may be added to
    all of them; `l2` is the weight of half its squared norm.
    """

    def __init__(self, features: np.ndarray, y: np.ndarray, has_common_part: bool, l2: float):
        self.features, self.y, self.l2 = features, y, l2
        self.common = np.zeros(features.shape[1])
        if has_common_part:
            ridge = np.sqrt(l2 * len(y))
            lifted = np.vstack([features, ridge * np.eye(features.shape[1])])
            longer = np.concatenate([y, np.zeros(features.shape[1])])
            self.common = np.linalg.lstsq(lifted, longer, rcond=None)[0]
        rest = y - features @ self.common
        size = float(np.sqrt(np.mean(rest**2)))
        is_rounding = size <= 1e-12 * float(np.abs(y).max(initial=0.0))
        self.unit = 1.0 if is_rounding or size == 0 else size
        self.targets = np.zeros_like(rest) if is_rounding else rest / self.unit

    def fitted(self, mixture: Mixture, patterns: np.ndarray, is_hard: bool) -> FittedMixture:
        """A mixture for the targets as they were, the component of the largest share first."""
        order = np.argsort(-(mixture.shares @ patterns), kind="stable")
        return FittedMixture(
            weights=(self.common + self.unit * mixture.coef)[order],
            patterns=patterns[:, order],
            shares=mixture.shares,
            variances=self.unit**2 * mixture.variances,
            is_hard=is_hard,
        )


@dataclass(frozen=True)
class FittedMixture(StoredPart):
    """Functions, and the ways to combine them."""

    FIELDS: ClassVar[Fields] = {
        "weights": Floats("components", "inner"),
        "patterns": Floats("patterns", "components"),
        "shares": Floats("patterns"),
        "variances": Floats("patterns"),
        "is_hard": Boolean(),
    }

    weights: np.ndarray  # the functions in the space of features
    patterns: np.ndarray  # which components a row may have
    shares: np.ndarray  # of the patterns
    variances: np.ndarray  # of the patterns
    is_hard: bool  # give a row to the nearest pattern

    def values(self, features: np.ndarray) -> np.ndarray:
        """Of each component at each row."""
        return features @ self.weights.T

    def codes(self, features: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Probability that a row with target y has each component."""
        squares = (y[:, None] - self.values(features) @ self.patterns.T) ** 2
        if self.is_hard:
            return self.patterns[squares.argmin(axis=1)]
        variances = np.maximum(self.variances, _TINY)
        chances = softmax(log_densities(squares, self.shares, variances), axis=1)
        return chances @ self.patterns

    def noise(self, features: np.ndarray, y: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Standard deviation of the residuals of each component's rows."""
        residuals = y - (codes * self.values(features)).sum(axis=1)
        rows = np.maximum(codes.sum(axis=0), _TINY)
        return np.sqrt((codes * residuals[:, None] ** 2).sum(axis=0) / rows)
