"""The linear system of MixLasso's dual, and three ways to solve it.

For atoms z_1 ... z_m with coefficients c and features Phi (N x r) the system of (4.39) is

    S = I + (1 / (N l1)) sum_k c_k D(z_k) Phi Phi' D(z_k).

It is N x N, the identity plus E E' with E of N rows and r columns per atom.
"""

from __future__ import annotations

import abc

import numpy as np
import scipy.linalg

__all__ = ["System", "make_system"]

_MOST_DIRECT = 3000  # rows of a factorised matrix: 3,000 cost 0.3 s and 72 MB


class System(abc.ABC):
    """S for fixed atoms and coefficients."""

    @abc.abstractmethod
    def solve(self, right: np.ndarray) -> np.ndarray:
        """S^-1 `right`, for one column or several."""


def make_system(
    features: np.ndarray, kernel: np.ndarray | None, atoms: np.ndarray, weights: np.ndarray
) -> System:
    """The cheapest way.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Phi.
    kernel : ndarray of shape (n, n) or None
        Phi Phi' if it was formed.
    atoms : ndarray of shape (m, n)
        z, of zeros and ones.
    weights : ndarray of shape (m,)
        c / (N l1).
    """
    n, r = features.shape
    used = weights > 0
    atoms, weights = atoms[used], weights[used]
    n_columns = r * len(weights)
    if n_columns < n and n_columns <= _MOST_DIRECT:
        return _ColumnSystem(features, atoms, weights)
    if kernel is not None:
        return _RowSystem(kernel, atoms, weights)
    return _IterativeSystem(features, atoms, weights)


def kernel_of(features: np.ndarray) -> np.ndarray | None:
    """Phi Phi' if it may be formed and factorised."""
    return features @ features.T if len(features) <= _MOST_DIRECT else None


class _RowSystem(System):
    """Cholesky of S."""

    def __init__(self, kernel: np.ndarray, atoms: np.ndarray, weights: np.ndarray):
        S = kernel * ((atoms.T * weights) @ atoms)
        S.flat[:: len(S) + 1] += 1.0
        self._factor = scipy.linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, right: np.ndarray) -> np.ndarray:
        return scipy.linalg.cho_solve(self._factor, right, check_finite=False)


class _ColumnSystem(System):
    """Cholesky of I + E'E: (I + E E')^-1 = I - E (I + E'E)^-1 E'."""

    def __init__(self, features: np.ndarray, atoms: np.ndarray, weights: np.ndarray):
        blocks = [features * (z * np.sqrt(w))[:, None] for z, w in zip(atoms, weights, strict=True)]
        self._E = np.hstack(blocks) if blocks else np.zeros((len(features), 0))
        G = self._E.T @ self._E
        G.flat[:: len(G) + 1] += 1.0
        if len(G):
            self._factor = scipy.linalg.cho_factor(G, overwrite_a=True, check_finite=False)

    def solve(self, right: np.ndarray) -> np.ndarray:
        if not self._E.shape[1]:
            return right.copy()
        inner = scipy.linalg.cho_solve(self._factor, self._E.T @ right, check_finite=False)
        return right - self._E @ inner


class _IterativeSystem(System):
    """Conjugate gradients on all columns at once; a product costs 2 n r per atom and column."""

    _TOL = 1e-8
    _MOST_STEPS = 500

    def __init__(self, features: np.ndarray, atoms: np.ndarray, weights: np.ndarray):
        self._features, self._atoms, self._weights = features, atoms, weights

    def _times(self, V: np.ndarray) -> np.ndarray:
        out = V.copy()
        for z, w in zip(self._atoms, self._weights, strict=True):
            out += (w * z)[:, None] * (self._features @ (self._features.T @ (z[:, None] * V)))
        return out

    def solve(self, right: np.ndarray) -> np.ndarray:
        B = right.reshape(len(right), -1)
        X, R = np.zeros_like(B), B.copy()
        P, rho = R.copy(), (R * R).sum(axis=0)
        enough = self._TOL**2 * np.maximum(rho, np.finfo(float).tiny)
        for _ in range(self._MOST_STEPS):
            if (rho <= enough).all():
                break
            SP = self._times(P)
            step = rho / np.maximum((P * SP).sum(axis=0), np.finfo(float).tiny)
            X += step * P
            R -= step * SP
            last, rho = rho, (R * R).sum(axis=0)
            P = R + (rho / np.maximum(last, np.finfo(float).tiny)) * P
        return X.reshape(right.shape)
