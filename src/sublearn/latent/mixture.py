"""Mixtures of regressions: what a fit reads, EM, and what it leaves for prediction.

Every part of a mixture has a noise level of its own. The parts are components, of which each row
follows one, or subsets of components, whose functions add up.

The levels are what makes it find the components. A component that is right on its rows becomes
sharp, gives up the rows of others, and so stays right while the rest still searches. Under one
common level all components remain as blurred as the worst of them. (20 features, 10 components,
1,300 rows without noise, random starts: 4 to 6 of the 10 are exact at the end, instead of none or
one.)
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.linalg
from scipy.special import softmax

from sublearn.io.fields import Fields, Floats
from sublearn.latent.codes import all_patterns
from sublearn.latent.stored_part import StoredPart
from sublearn.validation import Boolean

__all__ = ["ComponentEM", "EMSteps", "FittedMixture", "Mixture", "MixtureProblem", "SubsetEM"]

_CAUTION = 0.3  # rows at the common noise level that each component sees, per degree of freedom
_TINY = float(np.finfo(float).tiny)
_LEAST_SCALE = 1e-280  # mean square of targets: shares of it are above 0 even if they all are 0
_LEAST = 1e-20  # least variance, as a part of that of the targets
_MOST_PRODUCTS = 20_000_000  # entries of the table of products of features that may be kept


@dataclass(frozen=True)
class Mixture:
    """K regressions in the space of features, with the shares of rows and noise of their parts."""

    coef: np.ndarray  # (n_components, n_features)
    shares: np.ndarray  # of each part: component, or subset in the order of `all_patterns`
    variances: np.ndarray  # of the noise of each part
    log_likelihood: float = -np.inf  # of the rows they were fitted to
    outliers: float = 0.0  # share of rows that no part explains; their targets are spread evenly

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.coef)

    def take(self, kept: np.ndarray) -> Mixture:
        """Some of the components."""
        shares = self.shares[kept]
        return Mixture(self.coef[kept], shares / shares.sum(), self.variances[kept])

    def join(self, other: Mixture, share: float) -> Mixture:
        """These and others, which together hold `share` of the rows."""
        return Mixture(
            np.vstack([self.coef, other.coef]),
            np.concatenate([(1 - share) * self.shares, share * other.shares]),
            np.concatenate([self.variances, other.variances]),
        )


def _log_densities(squares: np.ndarray, shares: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Of rows with given squared residuals under each part, but for a constant."""
    return np.log(shares) - 0.5 * np.log(variances) - squares / (2 * variances)


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
        chances = softmax(_log_densities(squares, self.shares, variances), axis=1)
        return chances @ self.patterns

    def noise(self, features: np.ndarray, y: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Standard deviation of the residuals of each component's rows."""
        residuals = y - (codes * self.values(features)).sum(axis=1)
        rows = np.maximum(codes.sum(axis=0), _TINY)
        return np.sqrt((codes * residuals[:, None] ** 2).sum(axis=0) / rows)


# --- EM ------------------------------------------------------------------------------------------


class EMSteps(abc.ABC):
    """EM on given rows; a subclass says what the parts leave of a row, and fits them.

    `l2` is the weight of half the squared norm of each component, next to the mean loss. With
    `is_hard` each row is given to its nearest part instead of being shared out. `should_stop` is
    asked before each iteration.
    """

    #: Share of the targets' variance below which residuals are rounding.
    exact: float

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, l2: float, *, is_hard: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ):  # fmt: skip
        self.features, self.targets = features, targets
        self.is_hard, self.should_stop = is_hard, should_stop
        self.n_rows, self.n_features = features.shape
        self._ridge = l2 * self.n_rows
        self.scale = max(float(np.mean(targets**2)), _LEAST_SCALE)

    @abc.abstractmethod
    def patterns(self, n_components: int) -> np.ndarray:
        """The components of each part, a row of zeros and ones."""

    @abc.abstractmethod
    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each part."""

    @abc.abstractmethod
    def fit(self, chances: np.ndarray, last: Mixture) -> Mixture:
        """Weights, shares and noise of the rows as they are shared out."""

    def log_outside(self, mixture: Mixture) -> float:
        """Log density of a row that no part explains."""
        return -np.inf

    def start(self, coef: np.ndarray) -> Mixture:
        """Given weights, equal shares, and the noise that is left by the nearest part."""
        squares = self.residuals(coef) ** 2
        n = squares.shape[1]
        level = max(float(squares.min(axis=1).mean()), _LEAST * self.scale)
        return Mixture(coef, np.full(n, 1 / n), np.full(n, level))

    def run(self, mixture: Mixture, max_iter: int = 500, tol: float = 1e-6) -> Mixture:
        """Iterate until the mean log-likelihood moves by at most `tol`."""
        last = -np.inf
        for step in range(max_iter):
            chances, value = self.share_out(mixture)
            if (abs(value - last) <= tol * self.n_rows and step > 3) or self.should_stop():
                break
            last = value
            mixture = self.fit(chances, mixture)
            if mixture.variances.max() <= self.exact * self.scale:
                break
        return replace(mixture, log_likelihood=self.share_out(mixture)[1])

    def share_out(self, mixture: Mixture) -> tuple[np.ndarray, float]:
        """Probability of each part for each row, and the log-likelihood."""
        squares = self.residuals(mixture.coef) ** 2
        outside = self.log_outside(mixture)
        logs = _log_densities(squares, mixture.shares, mixture.variances)
        top = np.maximum(logs.max(axis=1, keepdims=True), outside)
        chances = np.exp(logs - top)
        total = chances.sum(axis=1, keepdims=True) + np.exp(outside - top)
        value = float((top + np.log(total)).sum() - 0.5 * self.n_rows * np.log(2 * np.pi))
        if self.is_hard:
            return np.eye(len(mixture.shares))[squares.argmin(axis=1)], value
        return chances / total, value

    def noise(
        self, squares: np.ndarray, rows: np.ndarray, freedom: np.ndarray,
        freedom_each: np.ndarray | float,
    ) -> np.ndarray:  # fmt: skip
        """Variances, unbiased and drawn to the common one: few rows do not make a part sharp.

        Without the second, components lock on chance subsets (20 features, 3 components, 130 rows:
        0 of 30 random starts end right, with it 3).
        """
        common = squares.sum() / self.n_rows
        extra = _CAUTION * (freedom_each + 1)
        own = np.maximum(rows - freedom, 1e-3 * rows + 1e-9)
        return np.maximum((squares + extra * common) / (own + extra), _LEAST * self.scale)


class ComponentEM(EMSteps):
    """EM of components, of which each row follows one; parameters as those of `EMSteps`."""

    exact = 1e-14

    @cached_property
    def _upper(self) -> tuple[np.ndarray, ...]:
        return np.triu_indices(self.n_features)

    @cached_property
    def _products(self) -> np.ndarray | None:
        i, j = self._upper
        is_small = self.n_rows * len(i) <= _MOST_PRODUCTS
        return self.features[:, i] * self.features[:, j] if is_small else None

    @cached_property
    def _moments(self) -> np.ndarray:
        return self.features * self.targets[:, None]

    def patterns(self, n_components: int) -> np.ndarray:
        """Each component alone."""
        return np.eye(n_components)

    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each component."""
        return self.targets[:, None] - self.features @ coef.T

    def log_outside(self, mixture: Mixture) -> float:
        """Log density of an outlier, whose target is anywhere between the others."""
        if mixture.outliers == 0:
            return -np.inf
        # The constant that densities leave out is put back at the end, so it is taken out here.
        spread = float(np.ptp(self.targets)) if len(self.targets) else 0.0
        log_range = np.log(max(spread, _TINY)) - 0.5 * np.log(2 * np.pi)
        return float(np.log(mixture.outliers) - log_range)

    def losses_without(self, mixture: Mixture) -> np.ndarray:
        """By how much the log-likelihood falls without each component, the others as they are."""
        squares = self.residuals(mixture.coef) ** 2
        logs = _log_densities(squares, mixture.shares, mixture.variances)
        rows, owner = np.arange(self.n_rows), logs.argmax(axis=1)
        top = logs[rows, owner]
        terms = np.exp(logs - top[:, None])
        total = terms.sum(axis=1, keepdims=True)
        losses = -np.log1p(-np.minimum(terms / total, 1.0 - 1e-9))
        logs[rows, owner] = -np.inf  # an owner's loss would be a difference of nearly equal numbers
        second = logs.max(axis=1)
        others = np.log(np.exp(logs - second[:, None]).sum(axis=1)) + second
        losses[rows, owner] = top + np.log(total[:, 0]) - others
        return losses.sum(axis=0) + self.n_rows * np.log1p(-mixture.shares)

    def fit(self, chances: np.ndarray, last: Mixture) -> Mixture:
        """Weighted least squares for each component, its share and its noise."""
        n_components = chances.shape[1]
        grams = self._grams(chances)
        lifted = grams.copy()
        diagonal = np.arange(self.n_features)
        lifted[:, diagonal, diagonal] += self._ridge + 1e-300
        moments = chances.T @ self._moments
        solved = np.linalg.solve(lifted, np.concatenate([moments[:, :, None], grams], axis=2))
        coef, freedom = solved[:, :, 0], np.trace(solved[:, :, 1:], axis1=1, axis2=2)
        shares = (chances.sum(axis=0) + 1e-9) / (self.n_rows + 1e-9 * n_components)
        outliers = max(1.0 - float(shares.sum()), 1e-9) if last.outliers > 0 else 0.0
        squares = (chances * self.residuals(coef) ** 2).sum(axis=0)
        variances = self.noise(squares, chances.sum(axis=0), freedom, freedom)
        return Mixture(coef, shares, variances, outliers=outliers)

    def _grams(self, chances: np.ndarray) -> np.ndarray:
        if self._products is None:
            return np.stack([(self.features.T * p) @ self.features for p in chances.T])
        i, j = self._upper
        packed = chances.T @ self._products
        grams = np.empty((chances.shape[1], self.n_features, self.n_features))
        grams[:, i, j] = grams[:, j, i] = packed
        return grams


class SubsetEM(EMSteps):
    """EM of the 2^K subsets of K components; parameters as those of `EMSteps`.

    The functions are found together, from one least-squares problem with K blocks of features.
    """

    exact = 1e-12

    def patterns(self, n_components: int) -> np.ndarray:
        """All subsets."""
        return all_patterns(n_components)

    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each subset."""
        return self.targets[:, None] - (self.features @ coef.T) @ all_patterns(len(coef)).T

    def fit(self, chances: np.ndarray, last: Mixture) -> Mixture:
        """All functions by one least-squares problem, then shares and noise."""
        common = float(chances.ravel() @ (self.residuals(last.coef) ** 2).ravel()) / self.n_rows
        trust = max(common, _LEAST * self.scale) / last.variances  # about 1
        coef = self._functions(chances * trust, last.size)
        squares = (chances * self.residuals(coef) ** 2).sum(axis=0)
        rows = chances.sum(axis=0)
        shares = (rows + 1e-9) / (self.n_rows + 1e-9 * len(rows))
        # The functions' degrees of freedom are laid on all rows alike.
        freedom, each = coef.size * rows / self.n_rows, coef.size / len(rows)
        return Mixture(coef, shares, self.noise(squares, rows, freedom, each))

    def _functions(self, weights: np.ndarray, n_components: int) -> np.ndarray:
        patterns = all_patterns(n_components)
        first = weights @ patterns  # row by component
        K, r = n_components, self.n_features
        G, b = np.empty((K, r, K, r)), np.empty((K, r))
        for k in range(K):
            b[k] = (first[:, k] * self.targets) @ self.features
            for m in range(k + 1):
                both = weights @ (patterns[:, k] * patterns[:, m])
                G[k, :, m, :] = G[m, :, k, :] = (self.features.T * both) @ self.features
        square = G.reshape(K * r, K * r)
        square.flat[:: K * r + 1] += self._ridge + 1e-12 * np.trace(square) / (K * r) + 1e-300
        found = scipy.linalg.solve(square, b.ravel(), assume_a="pos", check_finite=False)
        return found.reshape(K, r)
