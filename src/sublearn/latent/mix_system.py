"""The linear system of MixLasso's dual, and three ways to solve it.

For atoms z_1 ... z_m with coefficients c and features Phi (N x r) the system of (4.39) is

    S = I + (1 / (N l1)) sum_k c_k D(z_k) Phi Phi' D(z_k).

It is N x N, the identity plus E E' with E of N rows and r columns per atom.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

__all__ = ["Solve", "kernel_of", "make_system"]

_MOST_DIRECT = 3000  # rows of a factorised matrix: 3,000 cost 0.3 s and 72 MB
_CG_TOL = 1e-8
_CG_STEPS = 500

#: S^-1 times one column or several.
Solve = Callable[[np.ndarray], np.ndarray]


def make_system(
    features: np.ndarray, kernel: np.ndarray | None, atoms: np.ndarray, weights: np.ndarray
) -> Solve:
    """The cheapest way for atoms in rows and weights c / (N l1); `kernel` is Phi Phi' if formed."""
    n, r = features.shape
    used = weights > 0
    atoms, weights = atoms[used], weights[used]
    n_columns = r * len(weights)
    if n_columns < n and n_columns <= _MOST_DIRECT:
        return _by_columns(features, atoms, weights)
    if kernel is not None:
        return _by_rows(kernel, atoms, weights)
    return _by_iteration(features, atoms, weights)


def kernel_of(features: np.ndarray) -> np.ndarray | None:
    """Phi Phi' if it may be formed and factorised."""
    return features @ features.T if len(features) <= _MOST_DIRECT else None


def _by_rows(kernel: np.ndarray, atoms: np.ndarray, weights: np.ndarray) -> Solve:
    """Cholesky of S."""
    S = kernel * ((atoms.T * weights) @ atoms)
    S.flat[:: len(S) + 1] += 1.0
    factor = scipy.linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
    return lambda right: scipy.linalg.cho_solve(factor, right, check_finite=False)


def _by_columns(features: np.ndarray, atoms: np.ndarray, weights: np.ndarray) -> Solve:
    """Cholesky of I + E'E: (I + E E')^-1 = I - E (I + E'E)^-1 E'."""
    if not len(atoms) * features.shape[1]:
        return lambda right: right.copy()
    E = np.hstack(
        [features * (z * np.sqrt(w))[:, None] for z, w in zip(atoms, weights, strict=True)]
    )
    G = E.T @ E
    G.flat[:: len(G) + 1] += 1.0
    factor = scipy.linalg.cho_factor(G, overwrite_a=True, check_finite=False)
    return lambda right: right - E @ scipy.linalg.cho_solve(factor, E.T @ right, check_finite=False)


def _by_iteration(features: np.ndarray, atoms: np.ndarray, weights: np.ndarray) -> Solve:
    """Conjugate gradients on all columns at once; a product costs 2 n r per atom and column."""

    def times(V: np.ndarray) -> np.ndarray:
        out = V.copy()
        for z, w in zip(atoms, weights, strict=True):
            out += (w * z)[:, None] * (features @ (features.T @ (z[:, None] * V)))
        return out

    def solve(right: np.ndarray) -> np.ndarray:
        tiny = np.finfo(float).tiny
        B = right.reshape(len(right), -1)
        X, R = np.zeros_like(B), B.copy()
        P, rho = R.copy(), (R * R).sum(axis=0)
        enough = _CG_TOL**2 * np.maximum(rho, tiny)
        for _ in range(_CG_STEPS):
            if (rho <= enough).all():
                break
            SP = times(P)
            step = rho / np.maximum((P * SP).sum(axis=0), tiny)
            X += step * P
            R -= step * SP
            last, rho = rho, (R * R).sum(axis=0)
            P = R + (rho / np.maximum(last, tiny)) * P
        return X.reshape(right.shape)

    return solve
