r"""Weights of given atoms: (7) of the paper over the active set, by projected Newton steps.

With G = Z'Z, E = Z'XX'Z, D = diag(c) and S = D^{1/2} (D^{1/2} G D^{1/2} + N l2 I)^{-1} D^{1/2},

    f(c)     = (|X|^2 - tr(S E)) / (2 N)
    f'_k(c)  = -P_kk / (2 N^2 l2),                   P = (I - G S) E (I - G S)'
    f''_jk   = P_jk (G - G S G)_jk / (N^3 l2^2),

so that an iteration costs K^3 and nothing depends on the number of samples or features. The form
of S has no 1/c in it: weights may be zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sublearn.latent.atoms import AtomSet

__all__ = ["AtomWeights", "best_weights", "features_of"]

_MAX_NEWTON = 100
_LEAST_STEP = 1e-12


@dataclass(frozen=True)
class AtomWeights:
    """A point c and what the objective is like there."""

    c: np.ndarray
    objective: float
    gradient: np.ndarray


def best_weights(
    atoms: AtomSet, l1: float, l2: float, start: np.ndarray, tol: float
) -> AtomWeights:
    """Minimise f(c) + l1 sum(c) over c >= 0; the end is near where no coordinate gains `tol`."""
    point, hessian = _evaluate(atoms, start, l1, l2)
    for _ in range(_MAX_NEWTON):
        free = (point.c > 0) | (point.gradient < 0)
        violation = np.where(point.c > 0, np.abs(point.gradient), np.maximum(-point.gradient, 0))
        if not free.any() or violation.max() <= tol * l1:
            break
        moved = _line_search(atoms, point, _direction(point, hessian, free), l1, l2)
        if moved is None:
            break
        point, hessian = moved
    return point


def features_of(atoms: AtomSet, c: np.ndarray, l2: float) -> np.ndarray:
    """W of (12), rows scaled so that Z W is the fit."""
    root = np.sqrt(c)
    inner = root[:, None] * atoms.gram * root + len(atoms.X) * l2 * np.eye(len(c))
    return root[:, None] * scipy.linalg.solve(inner, root[:, None] * atoms.cross, assume_a="pos")


def _evaluate(
    atoms: AtomSet, c: np.ndarray, l1: float, l2: float
) -> tuple[AtomWeights, np.ndarray]:
    n, G, E = len(atoms.X), atoms.gram, atoms.energy
    root = np.sqrt(c)
    inner = root[:, None] * G * root + n * l2 * np.eye(len(c))
    S = root[:, None] * scipy.linalg.inv(inner) * root
    T = np.eye(len(c)) - G @ S
    P = T @ E @ T.T
    fit = (atoms.square - float((S * E).sum())) / (2 * n)
    gradient = l1 - P.diagonal() / (2 * n**2 * l2)
    hessian = P * (T @ G) / (n**3 * l2**2)
    return AtomWeights(c, fit + l1 * float(c.sum()), gradient), 0.5 * (hessian + hessian.T)


def _direction(point: AtomWeights, hessian: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Newton's on the free coordinates; the ridge keeps equal atoms from dividing by zero."""
    H = hessian[np.ix_(free, free)]
    ridge = 1e-10 * max(H.diagonal().max(), np.finfo(float).tiny)
    step = np.zeros_like(point.c)
    step[free] = scipy.linalg.solve(
        H + ridge * np.eye(len(H)), -point.gradient[free], assume_a="pos"
    )
    return step


def _line_search(
    atoms: AtomSet, point: AtomWeights, step: np.ndarray, l1: float, l2: float
) -> tuple[AtomWeights, np.ndarray] | None:
    """Halve until the projected point is lower by a hundredth of what its gradient promises."""
    length = 1.0
    while length > _LEAST_STEP:
        c = np.maximum(point.c + length * step, 0.0)
        promise = float(point.gradient @ (c - point.c))
        if promise < 0:
            found = _evaluate(atoms, c, l1, l2)
            if found[0].objective <= point.objective + 0.01 * promise:
                return found
        length *= 0.5
    return None
