"""How a Latent Feature Lasso is learned: span atoms, convex problem, rounding, refinement.

One `FeatureLearner` serves one data matrix; the estimator asks it for as many features as it wants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.latent.atom_search import SteepestAtoms, atoms_in_span, principal_axes, signal_rank
from sublearn.latent.atoms import AtomSet
from sublearn.latent.codes import best_codes
from sublearn.latent.factorisation import Factorisation, Factoriser
from sublearn.latent.lasso_problem import LassoFit, LassoProblem

__all__ = ["FeatureLearner", "LearningSettings", "facing_a_small_intercept"]

_SPAN_STARTS = 2048  # random signs; on the paper's Syn1 and Syn3 they reach all 35 features
_MOST_SPAN_RANK = 100
_SHARE_OF_LARGEST = 0.1  # default of l1
_FIRST_WEIGHT = 1e-3  # of atoms that are offered


@dataclass(frozen=True)
class LearningSettings:
    """Parameters of the estimator that the learner needs.

    `l1` None is 0.1 of the largest that the problem with an intercept has. Without one the column
    of ones decides about the largest: it is 8 to 124 times as large in the recipes of the paper
    (Syn0 and Syn1), and a tenth of that leaves one feature or two.
    """

    l1: float | None
    l2: float
    has_intercept: bool
    violation_tol: float
    max_iter: int
    n_exchanges: int
    does_refine: bool
    seed: int
    n_threads: int
    offers_span: bool


class FeatureLearner:
    """Features of one matrix of float64; entries where `is_missing` is true are no data."""

    def __init__(
        self, X: np.ndarray, settings: LearningSettings, progress: Progress,
        is_missing: np.ndarray | None = None,
    ):  # fmt: skip
        self.settings, self.progress = settings, progress
        # Distances between rows are all that codes and weights need: with more columns than rows
        # a triangular factor has the same ones. Missing entries need the columns themselves.
        is_wide = X.shape[1] > len(X) and is_missing is None
        self.X = _triangular_factor(X) if is_wide else X
        has_intercept = settings.has_intercept
        self.search = SteepestAtoms(has_intercept, settings.seed, settings.n_threads, progress.core)
        self.factoriser = Factoriser(self.X, has_intercept, progress, is_missing)

    @cached_property
    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Singular values and left singular vectors of the centred data."""
        return principal_axes(self.X)

    @cached_property
    def largest_l1(self) -> float:
        """At and above it no atom has weight (as far as the search can see)."""
        return self._largest_of(self.search, self._without_mean(self.settings.has_intercept))

    @cached_property
    def largest_centred_l1(self) -> float:
        """The same of the problem that has an intercept."""
        if self.settings.has_intercept:
            return self.largest_l1
        settings = self.settings
        search = SteepestAtoms(True, settings.seed, settings.n_threads, self.progress.core)
        return self._largest_of(search, self._without_mean(True))

    @property
    def l1(self) -> float:
        """The weight in use."""
        if self.settings.l1 is not None:
            return self.settings.l1
        return _SHARE_OF_LARGEST * (self.largest_centred_l1 or self.largest_l1) or 1.0

    def span_atoms(self, n_components: int | None) -> np.ndarray:
        """Atoms in the span of the leading axes, one per row, with complements if they differ.

        None if the settings say so: the search then is all that the convex problem has.
        """
        values, vectors = self.axes
        rank = n_components or signal_rank(values, self.X.shape)
        rank = min(rank, int((values > 0).sum()), _MOST_SPAN_RANK)
        n_samples, settings = len(self.X), self.settings
        if rank == 0 or not settings.offers_span:
            return np.empty((0, n_samples), dtype=np.int8)
        atoms = atoms_in_span(
            vectors[:, :rank], _SPAN_STARTS, settings.seed, settings.n_threads, self.progress.core
        )[: 4 * rank]
        if settings.has_intercept:
            return atoms
        return np.vstack([np.ones((1, n_samples), dtype=np.int8), atoms, 1 - atoms])

    def lasso(self, offered: np.ndarray, certify: bool = True) -> LassoFit:
        """The convex problem at `l1`; atoms that help may come from `offered`."""
        return self.follow(np.array([self.l1]), offered, certify)[0]

    def follow(self, l1s: np.ndarray, offered: np.ndarray, certify: bool = True) -> list[LassoFit]:
        """The convex problem at falling weights, each from the one before, until asked to stop."""
        settings = self.settings
        atoms = AtomSet(self._without_mean(settings.has_intercept), settings.has_intercept)
        atoms.add(offered)
        c = np.full(len(atoms), _FIRST_WEIGHT)
        fits: list[LassoFit] = []
        for l1 in l1s:
            problem = LassoProblem(atoms, self.search, float(l1), settings.l2, self.progress)
            fits.append(problem.solve(c, settings.violation_tol, settings.max_iter, certify))
            c = fits[-1].c
            if self.progress.stop_requested:
                break
        return fits

    def factorise(self, fit: LassoFit, offered: np.ndarray, n_components: int) -> Factorisation:
        """Exactly `n_components` features, or fewer that leave no error.

        Starts: the atoms of largest score, as in the paper, a greedy choice from all atoms known,
        and those closest to the span; without an intercept also the choice that one would allow.
        The best after refinement goes on to exchanges.
        """
        factoriser, settings = self.factoriser, self.settings
        known = np.vstack([fit.Z.T, offered])
        starts = [fit.Z[:, :n_components]]
        if settings.does_refine:
            starts.append(factoriser.chosen(known, n_components))
            starts.append(self._turned(factoriser.first_independent(offered, n_components)))
            if not settings.has_intercept:
                starts.append(self._turned(self._centring().chosen(known, n_components)))
        models = []
        for Z in starts:
            model = factoriser.extended(factoriser.fitted(Z), n_components, self.search)
            models.append(factoriser.refined(model) if settings.does_refine else model)
        best = min(models, key=lambda model: model.error)
        if settings.does_refine and not factoriser.is_exact(best):
            best = factoriser.exchanged(best, self.search, settings.n_exchanges)
            best = factoriser.refined(best)
        return best

    def _centring(self) -> Factoriser:
        return Factoriser(self.X, True, self.progress)

    def _turned(self, Z: np.ndarray) -> np.ndarray:
        """Without an intercept: codes of the fit with one, turned so that it is not missed."""
        if self.settings.has_intercept:
            return Z
        factoriser = self._centring()
        return facing_a_small_intercept(factoriser.refined(factoriser.fitted(Z))).Z

    def _largest_of(self, search: SteepestAtoms, X: np.ndarray) -> float:
        _, values = search.find(X)
        return float(values[0]) / (2.0 * len(X) ** 2 * self.settings.l2)

    def _without_mean(self, is_centred: bool) -> np.ndarray:
        if not is_centred:
            return self.X
        mean = self.X.mean(axis=0)
        centred = self.X - mean
        centred[np.abs(centred) <= 1e-14 * np.abs(mean)] = 0.0  # a constant does not vary
        return centred


def _triangular_factor(X: np.ndarray) -> np.ndarray:
    """L with L L' = X X'."""
    return np.ascontiguousarray(np.asarray(np.linalg.qr(X.T, mode="r")).T)


def facing_a_small_intercept(model: Factorisation) -> Factorisation:
    """Of a feature and its complement, take those that leave the least intercept.

    1b' + zw' = 1(b + w)' - (1 - z)w': each feature can be turned around. Which ones to turn is a
    problem of codes, min over s in {0,1}^K of |b + W's|^2.
    """
    if len(model.W) == 0:
        return model
    turned = best_codes(-(model.W @ model.b)[None, :], model.W @ model.W.T)[0].astype(bool)
    Z = np.where(turned, 1 - model.Z, model.Z).astype(np.int8)
    W = np.where(turned[:, None], -model.W, model.W)
    return Factorisation(Z, W, model.b + model.W[turned].sum(axis=0), model.error)
