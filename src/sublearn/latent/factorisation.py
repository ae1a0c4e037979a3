"""Binary factorisations X = 1 b' + Z W with a given number of features, and their improvement.

From the atoms of the convex problem to K features: a choice, least squares, alternating
minimisation over codes and features, and exchanges of the least useful feature for a better one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sublearn.fitting.progress import Progress
from sublearn.latent.atom_search import SteepestAtoms
from sublearn.latent.atoms import centred_columns
from sublearn.latent.codes import improve_codes

__all__ = ["Factorisation", "Factoriser"]

_MAX_ALTERNATIONS = 200
_QUICK_ALTERNATIONS = 15  # enough to see whether an exchange pays
_LEAST_DROP = 1e-6  # of the error, by an alternation
_ROUNDING = 1e-18  # of the data's square
_DEPENDENT = 0.1  # share of a column's square: a few wrong bits of another one
_LEAST_SQUARE = 1e-9  # of a column, per row: less is rounding
_PATIENCE = 4  # exchanges in vain before the search for more ends


@dataclass(frozen=True)
class Factorisation:
    """Codes Z (0/1, samples in rows), features W, intercept b, and |X - 1b' - ZW|^2."""

    Z: np.ndarray
    W: np.ndarray
    b: np.ndarray
    error: float


class Factoriser:
    """Factorisations of one data matrix; without an intercept b is zero.

    Entries of X where `is_missing` is true are replaced by the model's as it improves.
    """

    def __init__(
        self, X: np.ndarray, has_intercept: bool, progress: Progress,
        is_missing: np.ndarray | None = None,
    ):  # fmt: skip
        self.X, self.has_intercept, self.progress = X, has_intercept, progress
        self.is_missing = is_missing
        self._square = float(np.einsum("ij,ij->", X, X))

    def fitted(self, Z: np.ndarray) -> Factorisation:
        """Least squares for given codes."""
        codes = Z.astype(np.float64)
        W, b = self._least_squares(codes)
        R = self.X - b - codes @ W
        if self.is_missing is not None:
            R[self.is_missing] = 0.0
        return Factorisation(Z, W, b, float(np.einsum("ij,ij->", R, R)))

    def refined(
        self, start: Factorisation, max_alternations: int = _MAX_ALTERNATIONS
    ) -> Factorisation:
        """Alternate between codes and features while the error falls."""
        best = start
        for _ in range(max_alternations):
            if self.progress.stop_requested or best.Z.shape[1] == 0:
                break
            self._fill(best)
            scores = (self.X - best.b) @ best.W.T
            Z = improve_codes(best.Z, scores, best.W @ best.W.T)
            found = self.fitted(Z)
            drop = best.error - found.error
            if found.error < best.error:
                best = found
            if drop <= _LEAST_DROP * best.error:
                break
        return best

    def exchanged(self, start: Factorisation, search: SteepestAtoms, n_tries: int) -> Factorisation:
        """Try new atoms of the residual in the place of the features that are missed least."""
        best, n_vain = start, 0
        for _ in range(n_tries):
            order = self.least_useful(best)
            if n_vain >= min(_PATIENCE, len(order)) or self.progress.stop_requested:
                break
            found = self._exchange(best, int(order[n_vain]), search)
            if found.error < best.error * (1.0 - _LEAST_DROP):
                best, n_vain = found, 0
            else:
                n_vain += 1
        return best

    def extended(
        self, start: Factorisation, n_components: int, search: SteepestAtoms
    ) -> Factorisation:
        """Features of the residual one by one until there are `n_components`."""
        best = start
        while best.Z.shape[1] < n_components and not self.progress.stop_requested:
            if self.is_exact(best):
                break
            z = self._best_atom(best, search)
            best = self.fitted(np.column_stack([best.Z, z]))
        return best

    def is_exact(self, model: Factorisation) -> bool:
        """Whether what is left is rounding."""
        return model.error <= _ROUNDING * self._square

    def chosen(self, atoms: np.ndarray, n_components: int) -> np.ndarray:
        """Greedy choice among given atoms (in rows): each time the one that lowers the error most.

        Atoms already chosen are projected out of the others, so that an atom is judged by what it
        adds.
        """
        columns, R = self._centred(atoms.T), self._centred(self.X)
        squares = np.maximum(np.einsum("nk,nk->k", columns, columns), _LEAST_SQUARE * len(R))
        chosen: list[int] = []
        while len(chosen) < min(n_components, len(atoms)):
            gains, left = _gains(columns, R)
            gains[left <= 1e-9 * squares] = -1.0
            k = int(np.argmax(gains))
            if gains[k] < 0:
                break
            chosen.append(k)
            q = columns[:, k] / np.sqrt(left[k])
            columns = columns - np.outer(q, q @ columns)
            R = R - np.outer(q, q @ R)
        return atoms[chosen].T

    def first_independent(self, atoms: np.ndarray, n_components: int) -> np.ndarray:
        """The first atoms (in rows) of which none is close to a combination of those before it."""
        basis = np.empty((len(self.X), 0))
        chosen: list[np.ndarray] = []
        for z in atoms:
            column = z - z.mean()
            left = column - basis @ (basis.T @ column)
            size = float(left @ left)
            if size <= _DEPENDENT * max(float(column @ column), 1e-9):
                continue
            chosen.append(z)
            basis = np.column_stack([basis, left / np.sqrt(size)])
            if len(chosen) == n_components:
                break
        return np.array(chosen, dtype=np.int8).reshape(-1, len(self.X)).T

    def least_useful(self, model: Factorisation) -> np.ndarray:
        """Features, first those whose loss raises the error least, all others refitted."""
        centred = self._centred(model.Z)
        inverse = scipy.linalg.inv(_with_ridge(centred.T @ centred))
        losses = np.einsum("kd,kd->k", model.W, model.W) / inverse.diagonal()
        return np.argsort(losses, kind="stable")

    # --- parts ---------------------------------------------------------------------------------

    def _centred(self, columns: np.ndarray) -> np.ndarray:
        return centred_columns(columns, self.has_intercept)

    def _least_squares(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = self.X.mean(axis=0) if self.has_intercept else np.zeros(self.X.shape[1])
        if codes.shape[1] == 0:
            return np.zeros((0, self.X.shape[1])), mean
        centred = self._centred(codes)
        gram = _with_ridge(centred.T @ centred)
        W = scipy.linalg.solve(gram, centred.T @ self.X, assume_a="pos")
        return W, mean - codes.mean(axis=0) @ W if self.has_intercept else mean

    def _fill(self, model: Factorisation) -> None:
        """Missing entries from the model: the next steps can only lower the error of the others."""
        if self.is_missing is not None:
            fit = model.b + model.Z @ model.W
            self.X[self.is_missing] = fit[self.is_missing]

    def _exchange(self, model: Factorisation, k: int, search: SteepestAtoms) -> Factorisation:
        others = self.fitted(np.delete(model.Z, k, axis=1))
        z = self._best_atom(others, search)
        found = self.fitted(np.column_stack([others.Z, z]))
        return self.refined(found, _QUICK_ALTERNATIONS)

    def _best_atom(self, model: Factorisation, search: SteepestAtoms) -> np.ndarray:
        """Of the atoms found for the residual the one that explains most of it alone."""
        R = self.X - model.b - model.Z @ model.W
        Z, _ = search.find(R)
        return Z[int(np.argmax(_gains(self._centred(Z.T), R)[0]))]


def _gains(columns: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much each column alone lowers the square of R, and the columns' own squares."""
    cross, squares = columns.T @ R, np.einsum("nk,nk->k", columns, columns)
    least = _LEAST_SQUARE * len(R)
    return np.einsum("kd,kd->k", cross, cross) / np.maximum(squares, least), squares


def _with_ridge(gram: np.ndarray) -> np.ndarray:
    """Enough for equal columns to share a feature instead of dividing by zero."""
    ridge = 1e-10 * max(float(gram.diagonal().max(initial=0.0)), 1.0)
    return gram + ridge * np.eye(len(gram))
