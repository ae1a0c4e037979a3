r"""The convex problem of the Latent Feature Lasso, (6) of the paper, by greedy steps.

    min over c >= 0  of  f(c) + l1 sum_j c_j,
    f(c) = min over W  of  |X - ZW|^2 / 2N + l2/2 sum_j |W_j|^2 / c_j

over all binary columns z_j: search for atoms of steepest descent, correct all weights, shrink.
The dual is   max over A  of  (<X, A> - |A|^2 / 2) / N   s.t.  z'AA'z <= 2 N^2 l1 l2  for all z, so
that the residual, scaled until the semidefinite bound on z'AA'z allows it, proves a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sublearn.errors import ParameterError
from sublearn.fitting.path import FittedPath
from sublearn.fitting.progress import Progress
from sublearn.latent.atom_search import SteepestAtoms
from sublearn.latent.atoms import AtomSet, best_weights, features_of
from sublearn.trace import Solution, Status, Trace
from sublearn.validation import Interval, check_argument
from sublearn.validation.values import is_int64, show
from sublearn.validation.weights import as_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LassoFit", "LassoProblem", "LatentFeaturePath", "share_or_values"]

_NEW_ATOMS = 16  # at most, in one step
_MOST_ATOMS = 400  # active ones: Newton steps cost their cube
_WEIGHTS_TOL = 1e-5  # of l1, on the gradient of active weights
_NEGLIGIBLE = 1e-6  # of the largest weight
_COLUMNS = ("seconds", "objective", "certificate", "violation", "n_atoms")


@dataclass(frozen=True)
class LassoFit(Solution):
    """Weights and features of the active atoms, best first.

    `certificate` bounds (objective - optimum) / objective. The column "violation" of `trace` is the
    largest z'AA'z / (2 N^2 l1 l2) of the atoms found, at most 1 at the optimum.
    """

    Z: np.ndarray
    c: np.ndarray
    W: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """|W_k|, by which atoms are ranked: c_k |W_k|^2 is its cube at the optimum, scaled."""
        return np.sqrt(np.einsum("kd,kd->k", self.W, self.W))


class LassoProblem:
    """One data matrix at one (l1, l2), lambda and tau of the paper, and atoms to begin with.

    `search` keeps its vectors from one step, and one l1, to the next.
    """

    def __init__(
        self, atoms: AtomSet, search: SteepestAtoms, l1: float, l2: float, progress: Progress
    ):
        self.atoms, self.search, self.l1, self.l2 = atoms, search, l1, l2
        self.progress = progress
        self._scale = 2.0 * len(atoms.X) ** 2 * l1 * l2
        self._rows: list[tuple[float, ...]] = []
        self._start = time.perf_counter()

    def solve(
        self, c: np.ndarray, violation_tol: float, max_iter: int, certify: bool = True
    ) -> LassoFit:
        """Steps until no atom found violates optimality by more than `violation_tol` of l1."""
        status = Status.MAX_ITER
        c, objective = self._correct(c)
        for _ in range(max_iter):
            Z, values = self.search.find(self.atoms.residual(features_of(self.atoms, c, self.l2)))
            violation = float(values[0]) / self._scale
            self._log(objective, violation, len(c))
            if self.progress.stop_requested:
                status = Status.STOPPED
                break
            if violation <= 1.0 + violation_tol:
                status = Status.CONVERGED
                break
            if len(c) >= _MOST_ATOMS:
                break
            n_new = self.atoms.add(Z[values > self._scale][:_NEW_ATOMS])
            if n_new == 0:
                break
            c, objective = self._correct(np.concatenate([c, np.zeros(n_new)]))
        W = features_of(self.atoms, c, self.l2)
        is_certified = certify and not self.progress.stop_requested
        certificate = self._certificate(W, objective) if is_certified else np.inf
        order = np.argsort(-np.einsum("kd,kd->k", W, W), kind="stable")
        self.atoms.keep(order)
        return LassoFit(
            status=status,
            objective=objective,
            certificate=certificate,
            n_iter=len(self._rows),
            trace=self._trace(certificate),
            Z=self.atoms.Z.copy(),
            c=c[order],
            W=W[order],
        )

    def _correct(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Best weights of the active atoms; those at zero leave."""
        if len(c) == 0:
            return c, self.atoms.square / (2.0 * len(self.atoms.X))
        point = best_weights(self.atoms, self.l1, self.l2, c, _WEIGHTS_TOL)
        active = point.c > _NEGLIGIBLE * point.c.max(initial=0.0)
        self.atoms.keep(active)
        return point.c[active], point.objective

    def _certificate(self, W: np.ndarray, objective: float) -> float:
        if objective <= 0.0:
            return 0.0
        A = self.atoms.residual(W)
        bound = self.search.bound(A)
        largest = np.sqrt(self._scale / bound) if bound > 0.0 else np.inf
        inner, square = float(np.einsum("ij,ij->", self.atoms.X, A)), float((A * A).sum())
        s = min(inner / square if square > 0.0 else 0.0, largest)
        dual = (s * inner - 0.5 * s**2 * square) / len(A)
        return max(0.0, objective - dual) / objective

    def _log(self, objective: float, violation: float, n_atoms: int) -> None:
        seconds = time.perf_counter() - self._start
        self._rows.append((seconds, objective, np.inf, violation, n_atoms))
        gap = max(0.0, violation - 1.0) * objective
        self.progress.add(n_done=1)
        self.progress.tell(objective=objective, gap=gap, nnz_primal=n_atoms)

    def _trace(self, certificate: float) -> Trace:
        """A row for each step; the certificate is known of the last one."""
        table = np.array(self._rows).reshape(-1, len(_COLUMNS))
        table[-1:, _COLUMNS.index("certificate")] = certificate
        return Trace(dict(zip(_COLUMNS, table.T, strict=True)))


# --- along falling weights -----------------------------------------------------------------------


class LatentFeatures(NamedTuple):
    """Features at one weight: their sizes, largest first, and their columns."""

    scores: np.ndarray
    codes: np.ndarray


@dataclass(frozen=True, eq=False)
class LatentFeaturePath(FittedPath[LatentFeatures]):
    """What :meth:`sublearn.latent.LatentFeatureLasso.fit_path` found.

    Parameters
    ----------
    l1s : ndarray
        Weights, largest first.
    n_atoms : ndarray of int
        Columns with weight at each.
    objectives : ndarray
        Values of the convex problem.
    certificates : ndarray
        Shares by which they may be above the optimum.
    scores : list of ndarray
        Sizes of the features at each weight, largest first.
    codes : list of ndarray of int8
        Columns at each weight, in the order of `scores`.
    """

    l1s: np.ndarray
    n_atoms: np.ndarray
    objectives: np.ndarray
    certificates: np.ndarray
    scores: list[np.ndarray] = field(repr=False)
    codes: list[np.ndarray] = field(repr=False)

    def _step(self, position: int) -> LatentFeatures:
        return LatentFeatures(self.scores[position], self.codes[position])

    @classmethod
    def of(cls, l1s: np.ndarray, fits: Sequence[LassoFit]) -> LatentFeaturePath:
        """The path of the first weights, as many as were reached."""
        return cls(
            l1s=l1s[: len(fits)],
            n_atoms=np.array([len(fit.c) for fit in fits], dtype=int),
            objectives=np.array([fit.objective for fit in fits]),
            certificates=np.array([fit.certificate for fit in fits]),
            scores=[fit.scores for fit in fits],
            codes=[fit.Z for fit in fits],
        )


def share_or_values(l1s: int | ArrayLike, ratio: float) -> tuple[np.ndarray, bool]:
    """Falling weights, and whether they are shares of the largest useful one."""
    who = "LatentFeatureLasso.fit_path"
    if np.ndim(l1s) == 0:
        if not is_int64(l1s) or l1s <= 0:
            raise ParameterError(
                f"{who}.l1s must be a positive integer or numbers, got {show(l1s)}"
            )
        check_argument(f"{who}.ratio", ratio, Interval(float, 0, 1, "neither"))
        return np.geomspace(1.0, ratio, int(l1s) + 1)[1:], True
    values = as_weights(l1s, f"{who}.l1s")
    if values.ndim != 1 or not len(values) or not values.all():
        raise ParameterError(f"{who}.l1s must be positive numbers, got {show(l1s)}")
    return np.sort(values)[::-1], False
