"""Where new atoms come from: the steepest ones of the convex problem, and those in the data's span.

Both are Boolean quadratic problems. With an intercept the columns of the residual R sum to zero,
z and 1 - z are one atom, and z'RR'z = y'RR'y / 4 for y = 2z - 1 needs no extra vertex: the all-ones
vector, which takes the first place where there is no intercept, has the value 0.
"""

from __future__ import annotations

import numpy as np

from sublearn import _core
from sublearn.latent.quadratic_form import FactoredForm, form_of_factor
from sublearn.latent.relaxation import Relaxation, default_rank

__all__ = ["SteepestAtoms", "atoms_in_span", "principal_axes", "signal_rank"]

_N_ROUNDS = 32  # hyperplanes
_MAX_SWEEPS, _BOUND_SWEEPS = 20, 300  # to find atoms, and to bound them
_RANK = 24  # of the vectors; with 45 and more the same atoms take twice the time


class SteepestAtoms:
    """Approximate maximisers of z'RR'z for residuals R that change slowly, (13) of the paper.

    With an intercept columns of R sum to zero. `monitor` stops a search.
    """

    def __init__(self, has_intercept: bool, seed: int, n_threads: int, monitor: _core.Monitor):
        self.has_intercept, self.seed, self.n_threads = has_intercept, seed, n_threads
        self.monitor = monitor
        self._vectors: np.ndarray | None = None
        self._n_calls = 0

    def find(self, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distinct atoms, best first, and their z'RR'z."""
        problem = self._mixed(R, _MAX_SWEEPS, 1e-4)
        seed = self.seed + self._n_calls
        found, values = problem.round(_N_ROUNDS, seed, self.n_threads, self.monitor)
        return (_as_atoms(found), 0.25 * values) if self.has_intercept else (found, values)

    def bound(self, R: np.ndarray) -> float:
        """No atom has a larger z'RR'z."""
        problem = self._mixed(R, _BOUND_SWEEPS, 1e-6)
        bound, _ = problem.bound(problem.evaluate()[1])
        return 0.25 * bound if self.has_intercept else bound

    def _mixed(self, R: np.ndarray, max_sweeps: int, tol: float) -> Relaxation:
        problem = Relaxation(form_of_factor(R), None, "pm1" if self.has_intercept else "01")
        problem.start(self._vectors, min(_RANK, default_rank(problem.n_vertices)), self.seed)
        size = float(np.abs(problem.evaluate()[1]).sum())
        problem.sweep(max_sweeps, tol * size, self.seed + self._n_calls, self.monitor)
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
    basis: np.ndarray, n_starts: int, seed: int, n_threads: int, monitor: _core.Monitor
) -> np.ndarray:
    """Binary vectors close to the span of orthonormal, centred columns U and the constants.

    Under the conditions of theorem 4 these are the features themselves. The share of y = 2z - 1
    that lies in the span is y'PP'y / N, P the basis with the constants: a Boolean quadratic form
    with all features as maximisers, of value 1. Flips reach them one after the other from signs of
    U g + t, g and t normal: rows on either side of a random threshold, so that rare features are
    found as well. (The whitening does it: y'XX'y prefers sums of strong features.)

    They are the rows, distinct and best first; an atom is as good as its complement, of which it
    has no more ones.
    """
    n_samples, rank = basis.shape
    constant = np.full((n_samples, 1), 1.0 / np.sqrt(n_samples))
    problem = Relaxation(FactoredForm(np.hstack([constant, basis])), None, "pm1")
    problem.start(np.hstack([np.sqrt(rank) * constant, basis]), None, seed)
    found, _ = problem.round(n_starts, seed, n_threads, monitor)
    return _as_atoms(found * np.where(found.sum(axis=1, keepdims=True) > 0, -1, 1))


def _as_atoms(signs: np.ndarray) -> np.ndarray:
    return ((signs + 1) // 2).astype(np.int8)
