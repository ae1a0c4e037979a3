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

from sublearn.latent.mix_em import LEAST, EMSteps, Mixture
from sublearn.latent.mix_program import Point
from sublearn.latent.mix_rounding import (
    covering_functions,
    random_functions,
    strongest_functions,
)

__all__ = ["GeneralMixture", "GeneralRefiner", "all_patterns"]

_ROUGH_TOL = 1e-5
_FINAL_TOL = 1e-8


def all_patterns(n_components: int) -> np.ndarray:
    """The 2^K rows of zeros and ones; bit k of the row's number is entry k."""
    numbers = np.arange(2**n_components)
    return ((numbers[:, None] >> np.arange(n_components)) & 1).astype(np.float64)


@dataclass(frozen=True)
class GeneralMixture(Mixture):
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


class GeneralRefiner(EMSteps[GeneralMixture]):
    """Makes generalised mixtures of a given size; parameters as those of `StandardRefiner`."""

    exact, kind = 1e-12, GeneralMixture

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, *, l2: float, refine: str | None,
        n_starts: int, seed: int, should_stop: Callable[[], bool],
    ):  # fmt: skip
        super().__init__(features, targets, l2, is_hard=refine != "soft", should_stop=should_stop)
        self.n_starts, self.seed = n_starts, seed
        self.max_iter = 500 if refine else 1

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
        return bool(left <= self.exact * self._scale)

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

    def fit(self, chances: np.ndarray, last: GeneralMixture) -> GeneralMixture:
        """All functions by one least-squares problem, then shares and noise."""
        common = float(chances.ravel() @ (self.residuals(last.coef) ** 2).ravel()) / self.n_rows
        trust = max(common, LEAST * self._scale) / last.variances  # about 1
        coef = self._functions(chances * trust, last.size)
        squares = (chances * self.residuals(coef) ** 2).sum(axis=0)
        rows = chances.sum(axis=0)
        shares = (rows + 1e-9) / (self.n_rows + 1e-9 * len(rows))
        # The functions' degrees of freedom are laid on all rows alike.
        freedom, each = coef.size * rows / self.n_rows, coef.size / len(rows)
        return GeneralMixture(coef, shares, self.noise(squares, rows, freedom, each))

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
