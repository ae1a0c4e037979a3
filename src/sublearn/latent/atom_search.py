"""Where new atoms come from: the steepest ones of the convex problem, and those in the data's span.

Both are Boolean quadratic problems. With an intercept the columns of the residual R sum to zero,
z and 1 - z are one atom, and z'RR'z = y'RR'y / 4 for y = 2z - 1 needs no extra vertex: the all-ones
vector, which takes the first place where there is no intercept, has the value 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sublearn.latent.quadratic_form import FactoredForm, form_of_factor
from sublearn.latent.relaxation import Relaxation, default_rank

__all__ = ["SteepestAtoms", "atoms_in_span", "principal_axes", "signal_rank"]

_MAX_PASSES = 200
_RANK = 24  # of the vectors; with 45 and more the same atoms take twice the time


class SteepestAtoms:
    """Approximate maximisers of z'RR'z for residuals R that change slowly, (13) of the paper.

    Parameters
    ----------
    has_intercept : bool
        Whether columns of R sum to zero.
    seed : int
        Of sweeps and hyperplanes.
    """

    def __init__(self, has_intercept: bool, seed: int, n_threads: int = 1):
        self.has_intercept, self.seed, self.n_threads = has_intercept, seed, n_threads
        self._vectors: np.ndarray | None = None
        self._n_calls = 0

    def find(
        self, R: np.ndarray, monitor: Any, *, max_sweeps: int = 20, n_rounds: int = 32
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distinct atoms, best first, and their z'RR'z."""
        problem = self._mixed(R, monitor, max_sweeps, 1e-4)
        found, values = problem.round(
            n_rounds, _MAX_PASSES, self.seed + self._n_calls, self.n_threads, monitor
        )
        if not self.has_intercept:
            return found, values
        return ((found + 1) // 2).astype(np.int8), 0.25 * values

    def bound(self, R: np.ndarray, monitor: Any) -> float:
        """No atom has a larger z'RR'z."""
        problem = self._mixed(R, monitor, 300, 1e-6)
        bound, _ = problem.bound(problem.evaluate()[1])
        return 0.25 * bound if self.has_intercept else bound

    def _mixed(self, R: np.ndarray, monitor: Any, max_sweeps: int, tol: float) -> Relaxation:
        problem = Relaxation(form_of_factor(R), None, "pm1" if self.has_intercept else "01")
        problem.start(self._vectors, min(_RANK, default_rank(problem.n_vertices)), self.seed)
        size = float(np.abs(problem.evaluate()[1]).sum())
        problem.sweep(max_sweeps, tol * size, self.seed + self._n_calls, monitor)
        self._vectors = problem.vectors()
        self._n_calls += 1
        return problem


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of centred X, largest first, and its left singular vectors.

    By the smaller of the two Gram matrices, which is several times quicker than a singular value
    decomposition; values below 1e-7 of the largest are rounding.
    """
    X = X - X.mean(axis=0)
    is_wide = len(X) <= X.shape[1]
    squares, vectors = np.linalg.eigh(X @ X.T if is_wide else X.T @ X)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    vectors = vectors[:, ::-1]
    values[values <= 1e-7 * values[0]] = 0.0
    if is_wide:
        return values, vectors
    scaled = vectors / np.where(values > 0.0, values, np.inf)
    return values, X @ scaled


def signal_rank(singular_values: np.ndarray, shape: tuple[int, int]) -> int:
    """Singular values above noise: the hard threshold of Gavish and Donoho (2014), at least 1."""
    beta = min(shape) / max(shape)
    factor = 0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43
    threshold = factor * float(np.median(singular_values))
    return max(1, int((singular_values > threshold).sum()))


def atoms_in_span(
    basis: np.ndarray, n_starts: int, seed: int, n_threads: int, monitor: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Binary vectors close to the span of orthonormal, centred columns U and the constants.

    Under the conditions of theorem 4 these are the features themselves. The share of y = 2z - 1
    that lies in the span is y'PP'y / N, P the basis with the constants: a Boolean quadratic form
    with all features as maximisers, of value 1. Flips reach them one after the other from signs of
    U g + t, g and t normal: rows on either side of a random threshold, so that rare features are
    found as well. (The whitening does it: y'XX'y prefers sums of strong features.)

    Returns
    -------
    atoms : ndarray of int8, shape (n_found, n_samples)
        Distinct, best first; an atom is as good as its complement, of which it has no more ones.
    shares : ndarray of shape (n_found,)
        In [0, 1].
    """
    n_samples, rank = basis.shape
    constant = np.full((n_samples, 1), 1.0 / np.sqrt(n_samples))
    problem = Relaxation(FactoredForm(np.hstack([constant, basis])), None, "pm1")
    problem.start(np.hstack([np.sqrt(rank) * constant, basis]), None, seed)
    found, values = problem.round(n_starts, _MAX_PASSES, seed, n_threads, monitor)
    rare = found * np.where(found.sum(axis=1, keepdims=True) > 0, -1, 1)
    return ((rare + 1) // 2).astype(np.int8), values / len(basis)
