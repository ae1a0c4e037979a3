"""EM for mixtures of regressions in which every component has a noise level of its own.

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
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["LEAST", "LEAST_SCALE", "EMSteps", "Mixture", "MixtureEM"]

_CAUTION = 0.3  # rows at the common noise level that each component sees, per degree of freedom
#: Least mean square of targets: parts of it are above 0 even if all targets are 0.
LEAST_SCALE = 1e-280
LEAST = 1e-20  # least variance, as a part of that of the targets
_MOST_PRODUCTS = 20_000_000  # entries of the table of products of features that may be kept


@dataclass(frozen=True)
class Mixture:
    """K regressions in the space of features, with their shares of rows and noise.

    Parameters
    ----------
    coef : ndarray of shape (n_components, n_features)
        Weights.
    shares : ndarray of shape (n_components,)
        Probability of each component.
    variances : ndarray of shape (n_components,)
        Of the noise of each.
    log_likelihood : float
        Of the rows they were fitted to.
    outliers : float
        Part of the rows that no component explains; their targets are spread evenly.
    """

    coef: np.ndarray
    shares: np.ndarray
    variances: np.ndarray
    log_likelihood: float = -np.inf
    outliers: float = 0.0

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


_Mixture = TypeVar("_Mixture", bound=Mixture)


class EMSteps(abc.ABC, Generic[_Mixture]):
    """EM on given rows; a subclass says what the parts leave of a row, and fits them.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        Rows.
    targets : ndarray of shape (n_samples,)
        What the parts explain.
    l2 : float
        Weight of half the squared norm of each component, next to the mean loss.
    is_hard : bool
        Give each row to its nearest part instead of sharing it out.
    should_stop : callable
        Asked before each iteration.
    """

    #: Part of the targets' variance below which residuals are rounding.
    exact: float
    kind: type[_Mixture]

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, l2: float, *, is_hard: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ):  # fmt: skip
        self.features, self.targets = features, targets
        self.is_hard, self.should_stop = is_hard, should_stop
        self.n_rows, self.n_features = features.shape
        self._ridge = l2 * self.n_rows
        self._scale = max(float(np.mean(targets**2)), LEAST_SCALE)

    @abc.abstractmethod
    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each part."""

    @abc.abstractmethod
    def fit(self, chances: np.ndarray, last: _Mixture) -> _Mixture:
        """Weights, shares and noise of the rows as they are shared out."""

    def log_outside(self, mixture: _Mixture) -> float:
        """Log density of a row that no part explains."""
        return -np.inf

    def start(self, coef: np.ndarray) -> _Mixture:
        """Given weights, equal shares, and the noise that is left by the nearest part."""
        squares = self.residuals(coef) ** 2
        n = squares.shape[1]
        level = max(float(squares.min(axis=1).mean()), LEAST * self._scale)
        return self.kind(coef, np.full(n, 1 / n), np.full(n, level))

    def run(self, mixture: _Mixture, max_iter: int = 500, tol: float = 1e-6) -> _Mixture:
        """Iterate until the mean log-likelihood moves by at most `tol`."""
        last = -np.inf
        for step in range(max_iter):
            chances, value = self.share_out(mixture)
            if (abs(value - last) <= tol * self.n_rows and step > 3) or self.should_stop():
                break
            last = value
            mixture = self.fit(chances, mixture)
            if mixture.variances.max() <= self.exact * self._scale:
                break
        return replace(mixture, log_likelihood=self.share_out(mixture)[1])

    def share_out(self, mixture: _Mixture) -> tuple[np.ndarray, float]:
        """Probability of each part for each row, and the log-likelihood."""
        squares = self.residuals(mixture.coef) ** 2
        variances, outside = mixture.variances, self.log_outside(mixture)
        logs = np.log(mixture.shares) - 0.5 * np.log(variances) - squares / (2 * variances)
        top = np.maximum(logs.max(axis=1, keepdims=True), outside)
        chances = np.exp(logs - top)
        total = chances.sum(axis=1, keepdims=True) + np.exp(outside - top)
        value = float((top + np.log(total)).sum() - 0.5 * self.n_rows * np.log(2 * np.pi))
        if self.is_hard:
            return np.eye(len(mixture.shares))[squares.argmin(axis=1)], value
        return chances / total, value

    def noise(
        self, squares: np.ndarray, rows: np.ndarray, freedom: np.ndarray, freedom_each: Any
    ) -> np.ndarray:
        """Variances, unbiased and drawn to the common one: few rows do not make a part sharp.

        Without the second, components lock on chance subsets (20 features, 3 components, 130 rows:
        0 of 30 random starts end right, with it 3).
        """
        common = squares.sum() / self.n_rows
        extra = _CAUTION * (freedom_each + 1)
        own = np.maximum(rows - freedom, 1e-3 * rows + 1e-9)
        return np.maximum((squares + extra * common) / (own + extra), LEAST * self._scale)


class MixtureEM(EMSteps[Mixture]):
    """EM of components, of which each row follows one; parameters as those of `EMSteps`."""

    exact, kind = 1e-14, Mixture

    def __init__(self, features: np.ndarray, targets: np.ndarray, l2: float, **options: Any):
        super().__init__(features, targets, l2, **options)
        self._upper = np.triu_indices(self.n_features)
        n_products = self.n_rows * len(self._upper[0])
        self._products = self._all_products() if n_products <= _MOST_PRODUCTS else None
        # The constant that densities leave out is put back at the end, so it is taken out here.
        spread = float(np.ptp(targets)) if len(targets) else 0.0
        self._log_range = np.log(max(spread, np.finfo(float).tiny)) - 0.5 * np.log(2 * np.pi)
        self._moments = features * targets[:, None]

    def _all_products(self) -> np.ndarray:
        i, j = self._upper
        return self.features[:, i] * self.features[:, j]

    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each component."""
        return self.targets[:, None] - self.features @ coef.T

    def log_outside(self, mixture: Mixture) -> float:
        """Log density of an outlier, whose target is anywhere between the others."""
        is_empty = mixture.outliers == 0
        return -np.inf if is_empty else float(np.log(mixture.outliers) - self._log_range)

    def losses_without(self, mixture: Mixture) -> np.ndarray:
        """By how much the log-likelihood falls without each component, the others as they are."""
        squares = self.residuals(mixture.coef) ** 2
        variances = mixture.variances
        logs = np.log(mixture.shares) - 0.5 * np.log(variances) - squares / (2 * variances)
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
