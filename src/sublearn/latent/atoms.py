"""Binary columns that carry weight, with the products that the weights need kept up to date."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["AtomSet"]


class AtomSet:
    """The active atoms z_1 .. z_K of a data matrix X.

    With `is_centred`, columns stand for z_k minus its mean: the intercept has been taken out of
    the problem, and X must be centred as well.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    is_centred : bool
        Whether there is an intercept.

    Attributes
    ----------
    Z : ndarray of int8, shape (n_samples, n_atoms)
        The atoms.
    gram : ndarray of shape (n_atoms, n_atoms)
        Z'Z.
    cross : ndarray of shape (n_atoms, n_features)
        Z'X.
    energy : ndarray of shape (n_atoms, n_atoms)
        Z'X X'Z.
    """

    def __init__(self, X: np.ndarray, is_centred: bool):
        self.X, self.is_centred = X, is_centred
        self.square = float(np.einsum("ij,ij->", X, X))
        self.Z = np.empty((len(X), 0), dtype=np.int8)
        self.columns = np.empty((len(X), 0))
        self.gram = np.empty((0, 0))
        self.cross = np.empty((0, X.shape[1]))
        self.energy = np.empty((0, 0))
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        return self.Z.shape[1]

    def add(self, candidates: np.ndarray) -> int:
        """Take in those rows of `candidates` that are new; return their number."""
        fresh = [z for z in candidates if self._is_new(z)]
        if not fresh:
            return 0
        Z = np.stack(fresh, axis=1)
        columns = self._centred(Z)
        cross = columns.T @ self.X
        between = self.columns.T @ columns
        self.gram = _bordered(self.gram, between, columns.T @ columns)
        self.energy = _bordered(self.energy, self.cross @ cross.T, cross @ cross.T)
        self.cross = np.vstack([self.cross, cross])
        self.columns = np.hstack([self.columns, columns])
        self.Z = np.hstack([self.Z, Z])
        return len(fresh)

    def keep(self, which: Any) -> None:
        """Drop the other atoms."""
        self.Z, self.columns = self.Z[:, which], self.columns[:, which]
        self.gram, self.energy = self.gram[which][:, which], self.energy[which][:, which]
        self.cross = self.cross[which]
        self._known = {z.tobytes() for z in np.ascontiguousarray(self.Z.T)}

    def residual(self, W: np.ndarray) -> np.ndarray:
        """X - Z W."""
        return self.X - self.columns @ W

    def _centred(self, Z: np.ndarray) -> np.ndarray:
        columns = Z.astype(np.float64)
        return columns - columns.mean(axis=0) if self.is_centred else columns

    def _is_new(self, z: np.ndarray) -> bool:
        """Neither seen, nor without effect: nothing, or everything where there is an intercept."""
        key = np.ascontiguousarray(z).tobytes()
        is_idle = not z.any() or (self.is_centred and bool(z.all()))
        if is_idle or key in self._known:
            return False
        self._known.add(key)
        return True


def _bordered(old: np.ndarray, between: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.block([[old, between], [between.T, new]])
