"""Generalised mixtures: each row is the sum of any subset of K functions.

EM over the 2^K subsets. The functions are found together, from one least-squares problem with K
blocks of features; subsets have shares and noise levels of their own for the reason given in
`mix_em`: those that are right hold their rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sublearn.latent.mix_em import LEAST_SCALE
from sublearn.latent.mix_program import Point
from sublearn.latent.mix_rounding import (
    covering_functions,
    random_functions,
    strongest_functions,
)

__all__ = ["GeneralMixture", "GeneralRefiner", "all_patterns"]

_CAUTION = 0.3  # as in mix_em
_LEAST = 1e-20
_EXACT = 1e-12
_ROUGH_TOL = 1e-5
_FINAL_TOL = 1e-8


def all_patterns(n_components: int) -> np.ndarray:
    """The 2^K rows of zeros and ones; bit k of the row's number is entry k."""
    numbers = np.arange(2**n_components)
    return ((numbers[:, None] >> np.arange(n_components)) & 1).astype(np.float64)


@dataclass(frozen=True)
class GeneralMixture:
    """K functions, and shares and noise of the 2^K subsets.

    Parameters
    ----------
    coef : ndarray of shape (n_components, n_features)
        Weights.
    shares, variances : ndarray of shape (2 ** n_components,)
        Of the subsets, in the order of `all_patterns`.
    log_likelihood : float
        Of the rows they were fitted to.
    """

    coef: np.ndarray
    shares: np.ndarray
    variances: np.ndarray
    log_likelihood: float = -np.inf

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.coef)


class GeneralRefiner:
    """Makes generalised mixtures of a given size; parameters as those of `StandardRefiner`."""

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, *, l2: float, refine: str | None,
        n_starts: int, seed: int, should_stop: Callable[[], bool],
    ):  # fmt: skip
        self.features, self.targets = features, targets
        self.is_hard, self.n_starts, self.seed = refine != "soft", n_starts, seed
        self.max_iter = 500 if refine else 1
        self.should_stop = should_stop
        self.n_rows, self.n_features = features.shape
        self._ridge = l2 * self.n_rows
        self._scale = max(float(np.mean(targets**2)), LEAST_SCALE)

    def best(self, points: Iterable[Point], n_components: int) -> GeneralMixture:
        """The most likely mixture from several starts."""
        found: GeneralMixture | None = None
        for coef in itertools.islice(self._starts(points, n_components), self.n_starts):
            mixture = self.run(self.start(coef), self.max_iter, _ROUGH_TOL)
            if found is None or mixture.log_likelihood > found.log_likelihood:
                found = mixture
            if self.is_exact(found) or self.should_stop():
                break
        assert found is not None  # there is at least one start
        return self.run(found, self.max_iter, _FINAL_TOL)

    def is_exact(self, mixture: GeneralMixture) -> bool:
        """Whether nothing but rounding is left of the targets."""
        left = (self.residuals(mixture.coef) ** 2).min(axis=1).mean()
        return bool(left <= _EXACT * self._scale)

    def _starts(self, points: Iterable[Point], n_components: int) -> Iterator[np.ndarray]:
        """The strongest atoms of each solution, functions that cover the rows, random halves."""
        rng = np.random.default_rng([self.seed, n_components])
        kept: list[Point] = []
        for point in points:
            kept.append(point)
            yield strongest_functions(point, self.features, n_components)
            yield covering_functions(point, self.features, self.targets, n_components)
        for i in itertools.count():
            point = kept[i % len(kept)]
            if i % 2:
                yield random_functions(self.features, n_components, rng)
            else:
                yield covering_functions(point, self.features, self.targets, n_components, rng)

    # --- EM ------------------------------------------------------------------------------------

    def residuals(self, coef: np.ndarray) -> np.ndarray:
        """Of each row under each subset."""
        return self.targets[:, None] - (self.features @ coef.T) @ all_patterns(len(coef)).T

    def start(self, coef: np.ndarray) -> GeneralMixture:
        """Given weights, equal shares, and the noise that is left by the nearest subset."""
        squares = self.residuals(coef) ** 2
        n = squares.shape[1]
        level = max(float(squares.min(axis=1).mean()), _LEAST * self._scale)
        return GeneralMixture(coef, np.full(n, 1 / n), np.full(n, level))

    def run(
        self, mixture: GeneralMixture, max_iter: int = 500, tol: float = 1e-6
    ) -> GeneralMixture:
        """Iterate until the mean log-likelihood moves by at most `tol`."""
        last = -np.inf
        for step in range(max_iter):
            chances, value = self.share_out(mixture)
            if (abs(value - last) <= tol * self.n_rows and step > 3) or self.should_stop():
                break
            last = value
            mixture = self.fit(chances, mixture)
            if mixture.variances.max() <= _EXACT * self._scale:
                break
        value = self.share_out(mixture)[1]
        return GeneralMixture(mixture.coef, mixture.shares, mixture.variances, value)

    def share_out(self, mixture: GeneralMixture) -> tuple[np.ndarray, float]:
        """Probability of each subset for each row, and the log-likelihood."""
        squares = self.residuals(mixture.coef) ** 2
        variances = mixture.variances
        logs = np.log(mixture.shares) - 0.5 * np.log(variances) - squares / (2 * variances)
        top = logs.max(axis=1, keepdims=True)
        chances = np.exp(logs - top)
        total = chances.sum(axis=1, keepdims=True)
        value = float((top + np.log(total)).sum() - 0.5 * self.n_rows * np.log(2 * np.pi))
        if self.is_hard:
            return np.eye(len(mixture.shares))[squares.argmin(axis=1)], value
        return chances / total, value

    def fit(self, chances: np.ndarray, last: GeneralMixture) -> GeneralMixture:
        """All functions by one least-squares problem, then shares and noise."""
        common = float(chances.ravel() @ (self.residuals(last.coef) ** 2).ravel()) / self.n_rows
        trust = max(common, _LEAST * self._scale) / last.variances  # about 1
        coef = self._functions(chances * trust, last.size)
        squares = (chances * self.residuals(coef) ** 2).sum(axis=0)
        rows = chances.sum(axis=0)
        shares = (rows + 1e-9) / (self.n_rows + 1e-9 * len(rows))
        return GeneralMixture(coef, shares, self._variances(squares, rows, coef.size))

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

    def _variances(self, squares: np.ndarray, rows: np.ndarray, n_weights: int) -> np.ndarray:
        """As in `mix_em`; the functions' degrees of freedom are laid on all rows alike."""
        freedom = n_weights * rows / self.n_rows
        common = squares.sum() / self.n_rows
        extra = _CAUTION * (n_weights / len(rows) + 1)
        own = np.maximum(rows - freedom, 1e-3 * rows + 1e-9)
        return np.maximum((squares + extra * common) / (own + extra), _LEAST * self._scale)
