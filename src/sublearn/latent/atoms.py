r"""The active atoms of the Latent Feature Lasso and their weights, (7) of the paper.

Products that the weights need are kept up to date as atoms come and go. With G = Z'Z, E = Z'XX'Z,
D = diag(c) and S = D^{1/2} (D^{1/2} G D^{1/2} + N l2 I)^{-1} D^{1/2},

    f(c)     = (|X|^2 - tr(S E)) / (2 N)
    f'_k(c)  = -P_kk / (2 N^2 l2),                   P = (I - G S) E (I - G S)'
    f''_jk   = P_jk (G - G S G)_jk / (N^3 l2^2),

so that a projected Newton step costs K^3 and nothing depends on the number of samples or features.
The form of S has no 1/c in it: weights may be zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sublearn.latent.projected_newton import model_minimiser

__all__ = ["AtomSet", "AtomWeights", "best_weights", "centred_columns", "features_of"]

_MAX_NEWTON = 100
_LEAST_STEP = 1e-12


class AtomSet:
    """The active atoms z_1 .. z_K, columns of Z, of a data matrix X with samples in rows.

    With `is_centred`, columns stand for z_k minus its mean: the intercept has been taken out of
    the problem, and X must be centred as well.
    """

    def __init__(self, X: np.ndarray, is_centred: bool):
        self.X, self.is_centred = X, is_centred
        self.square = float(np.einsum("ij,ij->", X, X))
        self.Z = np.empty((len(X), 0), dtype=np.int8)
        self.columns = np.empty((len(X), 0))  # of Z as floats
        self.gram = np.empty((0, 0))  # Z'Z
        self.cross = np.empty((0, X.shape[1]))  # Z'X
        self.energy = np.empty((0, 0))  # Z'X X'Z
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        return self.Z.shape[1]

    def add(self, candidates: np.ndarray) -> int:
        """Take in those rows of `candidates` that are new; return their number."""
        fresh = [z for z in candidates if self._is_new(z)]
        if not fresh:
            return 0
        Z = np.stack(fresh, axis=1)
        columns = centred_columns(Z, self.is_centred)
        cross = columns.T @ self.X
        between = self.columns.T @ columns
        self.gram = _bordered(self.gram, between, columns.T @ columns)
        self.energy = _bordered(self.energy, self.cross @ cross.T, cross @ cross.T)
        self.cross = np.vstack([self.cross, cross])
        self.columns = np.hstack([self.columns, columns])
        self.Z = np.hstack([self.Z, Z])
        return len(fresh)

    def keep(self, which: np.ndarray) -> None:
        """Drop the other atoms."""
        self.Z, self.columns = self.Z[:, which], self.columns[:, which]
        self.gram, self.energy = self.gram[which][:, which], self.energy[which][:, which]
        self.cross = self.cross[which]
        self._known = {z.tobytes() for z in np.ascontiguousarray(self.Z.T)}

    def residual(self, W: np.ndarray) -> np.ndarray:
        """X - Z W."""
        return self.X - self.columns @ W

    def _is_new(self, z: np.ndarray) -> bool:
        """Neither seen, nor without effect: nothing, or everything where there is an intercept."""
        key = np.ascontiguousarray(z).tobytes()
        is_idle = not z.any() or (self.is_centred and bool(z.all()))
        if is_idle or key in self._known:
            return False
        self._known.add(key)
        return True


def centred_columns(Z: np.ndarray, is_centred: bool) -> np.ndarray:
    """Columns as floats, without their means if there is an intercept."""
    columns = np.asarray(Z, dtype=np.float64)
    return columns - columns.mean(axis=0) if is_centred else columns


def _bordered(old: np.ndarray, between: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.block([[old, between], [between.T, new]])


# --- weights -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtomWeights:
    """A point c and what the objective is like there."""

    c: np.ndarray
    objective: float
    gradient: np.ndarray
    hessian: np.ndarray


def best_weights(
    atoms: AtomSet, l1: float, l2: float, start: np.ndarray, tol: float
) -> AtomWeights:
    """Minimise f(c) + l1 sum(c) over c >= 0; the end is near where no coordinate gains `tol`.

    Newton's step on the active set, projected, need not descend where columns are dependent: along
    a direction without curvature it is 1e7 long, and a weight that is nearly zero stops it after
    1e-12 of its way (data of few distinct rows, such as noiseless ones without an intercept). The
    minimiser of the same model over c >= 0 then shows a way that does.
    """
    point = _evaluate(atoms, start, l1, l2)
    for _ in range(_MAX_NEWTON):
        active = (point.c > 0) | (point.gradient < 0)
        violation = np.where(point.c > 0, np.abs(point.gradient), np.maximum(-point.gradient, 0))
        if not active.any() or violation.max() <= tol * l1:
            break
        moved = _line_search(atoms, point, _direction(point, active), l1, l2)
        if moved is None:
            way = model_minimiser(point.hessian, point.gradient, point.c) - point.c
            moved = _line_search(atoms, point, way, l1, l2)
        if moved is None:
            break
        point = moved
    return point


def features_of(atoms: AtomSet, c: np.ndarray, l2: float) -> np.ndarray:
    """W of (12), rows scaled so that Z W is the fit."""
    root = np.sqrt(c)[:, None]
    return root * scipy.linalg.solve(_inner(atoms, c, l2), root * atoms.cross, assume_a="pos")


def _inner(atoms: AtomSet, c: np.ndarray, l2: float) -> np.ndarray:
    """D^{1/2} G D^{1/2} + N l2 I."""
    root = np.sqrt(c)
    return root[:, None] * atoms.gram * root + len(atoms.X) * l2 * np.eye(len(c))


def _evaluate(atoms: AtomSet, c: np.ndarray, l1: float, l2: float) -> AtomWeights:
    n, G, E, root = len(atoms.X), atoms.gram, atoms.energy, np.sqrt(c)
    S = root[:, None] * scipy.linalg.inv(_inner(atoms, c, l2)) * root
    T = np.eye(len(c)) - G @ S
    P = T @ E @ T.T
    fit = (atoms.square - float((S * E).sum())) / (2 * n)
    gradient = l1 - P.diagonal() / (2 * n**2 * l2)
    hessian = P * (T @ G) / (n**3 * l2**2)
    return AtomWeights(c, fit + l1 * float(c.sum()), gradient, 0.5 * (hessian + hessian.T))


def _direction(point: AtomWeights, active: np.ndarray) -> np.ndarray:
    """Newton's on the active set; the ridge keeps equal atoms from dividing by zero."""
    H = point.hessian[np.ix_(active, active)]
    ridge = 1e-10 * max(H.diagonal().max(), np.finfo(float).tiny)
    lifted, step = H + ridge * np.eye(len(H)), np.zeros_like(point.c)
    step[active] = scipy.linalg.solve(lifted, -point.gradient[active], assume_a="pos")
    return step


def _line_search(
    atoms: AtomSet, point: AtomWeights, step: np.ndarray, l1: float, l2: float
) -> AtomWeights | None:
    """Halve until the projected point is lower by a hundredth of what its gradient promises."""
    length = 1.0
    while length > _LEAST_STEP:
        c = np.maximum(point.c + length * step, 0.0)
        promise = float(point.gradient @ (c - point.c))
        if promise < 0:
            found = _evaluate(atoms, c, l1, l2)
            if found.objective <= point.objective + 0.01 * promise:
                return found
        length *= 0.5
    return None
