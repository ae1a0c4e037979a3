r"""The convex problem of the Latent Feature Lasso, (6) of the paper, by greedy steps.

    min over c >= 0  of  f(c) + l1 sum_j c_j,
    f(c) = min over W  of  |X - ZW|^2 / 2N + l2/2 sum_j |W_j|^2 / c_j

over all binary columns z_j: search for atoms of steepest descent, correct all weights, shrink.
The dual is   max over A  of  (<X, A> - |A|^2 / 2) / N   s.t.  z'AA'z <= 2 N^2 l1 l2  for all z, so
that the residual, scaled until the semidefinite bound on z'AA'z allows it, proves a lower bound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.latent.atom_search import SteepestAtoms
from sublearn.latent.atom_weights import best_weights, features_of
from sublearn.latent.atoms import AtomSet
from sublearn.trace import Solution, Status, Trace

__all__ = ["LassoFit", "LassoProblem", "largest_l1"]

_NEW_ATOMS = 16  # at most, in one step
_MOST_ATOMS = 400  # active ones: Newton steps cost their cube
_NEGLIGIBLE = 1e-6  # of the largest weight
_COLUMNS = ("seconds", "objective", "certificate", "violation", "n_atoms")


@dataclass(frozen=True)
class LassoFit(Solution):
    """Weights and features of the active atoms, best first.

    `certificate` bounds (objective - optimum) / objective; `violation` is the largest
    z'AA'z / (2 N^2 l1 l2) of the atoms last found, at most 1 at the optimum.
    """

    Z: np.ndarray
    c: np.ndarray
    W: np.ndarray
    violation: float

    @property
    def scores(self) -> np.ndarray:
        """|W_k|, by which atoms are ranked: c_k |W_k|^2 is its cube at the optimum, scaled."""
        return np.sqrt(np.einsum("kd,kd->k", self.W, self.W))


def largest_l1(value: float, n_samples: int, l2: float) -> float:
    """The least l1 at which no atom has weight, from the largest z'XX'z."""
    return value / (2.0 * n_samples**2 * l2)


class LassoProblem:
    """One data matrix at one (l1, l2), to which atoms may be offered.

    Parameters
    ----------
    atoms : AtomSet
        The data, and atoms to begin with.
    search : SteepestAtoms
        Keeps its vectors from one step, and one l1, to the next.
    l1, l2 : float
        Weights: lambda and tau of the paper.
    """

    def __init__(
        self, atoms: AtomSet, search: SteepestAtoms, l1: float, l2: float, progress: Progress
    ):
        self.atoms, self.search, self.l1, self.l2 = atoms, search, l1, l2
        self.progress = progress
        self._scale = 2.0 * len(atoms.X) ** 2 * l1 * l2
        self._rows: list[tuple[float, ...]] = []

    def solve(self, c: np.ndarray, tol: float, max_iter: int, certify: bool = True) -> LassoFit:
        """Steps until the certificate is at most `tol` or no atom found violates by more."""
        start, certificate, violation = time.perf_counter(), np.inf, np.inf
        status = Status.MAX_ITER
        c, objective = self._correct(c)
        for _ in range(max_iter):
            W = features_of(self.atoms, c, self.l2)
            R = self.atoms.residual(W)
            Z, values = self.search.find(R, self.progress.core)
            violation = float(values[0]) / self._scale
            self._log(start, objective, certificate, violation, len(c))
            if self.progress.stop_requested:
                status = Status.STOPPED
                break
            if violation <= 1.0 + tol:
                status = Status.CONVERGED
                break
            if len(c) >= _MOST_ATOMS:
                break
            n_new = self.atoms.add(Z[values > self._scale][:_NEW_ATOMS])
            if n_new == 0:
                break
            c, objective = self._correct(np.concatenate([c, np.zeros(n_new)]))
        W = features_of(self.atoms, c, self.l2)
        if certify and not self.progress.stop_requested:
            certificate = self._certificate(W, objective)
        return self._sorted(c, W, objective, certificate, violation, status)

    def _correct(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Best weights of the active atoms; those at zero leave."""
        if len(c) == 0:
            return c, self.atoms.square / (2.0 * len(self.atoms.X))
        point = best_weights(self.atoms, self.l1, self.l2, c, 1e-5)
        active = point.c > _NEGLIGIBLE * point.c.max(initial=0.0)
        self.atoms.keep(active)
        return point.c[active], point.objective

    def _certificate(self, W: np.ndarray, objective: float) -> float:
        if objective <= 0.0:
            return 0.0
        A = self.atoms.residual(W)
        bound = self.search.bound(A, self.progress.core)
        largest = np.sqrt(self._scale / bound) if bound > 0.0 else np.inf
        inner, square = float(np.einsum("ij,ij->", self.atoms.X, A)), float((A * A).sum())
        s = min(inner / square if square > 0.0 else 0.0, largest)
        dual = (s * inner - 0.5 * s**2 * square) / len(A)
        return max(0.0, objective - dual) / objective

    def _log(
        self, start: float, objective: float, certificate: float, violation: float, n_atoms: int
    ) -> None:
        seconds = time.perf_counter() - start
        self._rows.append((seconds, objective, certificate, violation, n_atoms))
        gap = max(0.0, violation - 1.0) * objective
        self.progress.add(n_done=1)
        self.progress.tell(objective=objective, gap=gap, nnz_primal=n_atoms)

    def _sorted(
        self, c: np.ndarray, W: np.ndarray, objective: float, certificate: float,
        violation: float, status: Status,
    ) -> LassoFit:  # fmt: skip
        order = np.argsort(-np.einsum("kd,kd->k", W, W), kind="stable")
        self.atoms.keep(order)
        if self._rows:
            self._rows[-1] = (*self._rows[-1][:2], certificate, *self._rows[-1][3:])
        columns = np.array(self._rows).reshape(-1, len(_COLUMNS)).T
        return LassoFit(
            status=status,
            objective=objective,
            certificate=certificate,
            n_iter=len(self._rows),
            trace=Trace(dict(zip(_COLUMNS, columns, strict=True))),
            Z=self.atoms.Z.copy(),
            c=c[order],
            W=W[order],
            violation=violation,
        )
