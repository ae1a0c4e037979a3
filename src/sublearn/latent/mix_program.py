r"""MixLasso's convex program: a group lasso over all :math:`2^N` ways to choose rows.

With :math:`\tau = 2 \lambda = l_1` the estimator (4.25) is

    min over w_z in R^r   1/(2N) |y - sum_z z * (Phi w_z)|^2 + l1 sum_z |w_z|,    z in {0, 1}^N,

since c |w|^2 / c + c is least at c = |w|. Its dual has one variable per row,

    max over a in R^N     1/N (y'a - |a|^2 / 2)   subject to   |Phi'(z * a)| <= N l1 for all z,

so that a bound on max_z z'AA'z, A = D(a) Phi, by the semidefinite relaxation (4.34) makes any
residual a feasible point, and the distance of the two values is a certificate. Algorithm 13:
search atoms that violate the constraint, correct all coefficients c by projected Newton steps on
(4.27), shrink by dropping those at zero.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from sublearn.fitting.progress import Progress
from sublearn.latent.boolean_quadratic import BooleanQuadraticSolution, solve_boolean_quadratic
from sublearn.latent.mix_system import System, kernel_of, make_system
from sublearn.trace import Solution, Status, Trace

__all__ = ["MixtureProgram", "Path", "Point"]

_PER_STEP = 6  # atoms that may enter at once
_LOOKED_AT = 24  # candidates of a search, best first
_NEWTON_TOL = 1e-5  # on |Phi'(z * a)| / (N l1) - 1 of active atoms
_MOST_NEWTON = 30
_SEARCH_SWEEPS = 100
_SEARCH_TOL = 1e-2  # the bound is then within 1 to 4 % of the best atom, at the search's price
_LEAST_L1 = 1e-150  # where all targets are 0 no atom enters at any weight, which must not be 0
_RANK = 24  # of the relaxation's vectors at least; solutions have rank 1 to 5
_COLUMNS = ("seconds", "l1", "objective", "certificate", "violation", "nnz_primal", "nnz_dual")


@dataclass(frozen=True)
class Point:
    """A solution for one weight of the penalty.

    Parameters
    ----------
    l1 : float
        The weight.
    atoms : ndarray of shape (m, n)
        Active z, those of large coefficients first.
    weights : ndarray of shape (m,)
        c, the norms of the atoms' functions.
    dual : ndarray of shape (n,)
        The residual a.
    objective, bound : float
        Value, and a lower bound on the minimum.
    n_steps : int
        Searches.
    """

    l1: float
    atoms: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    dual: np.ndarray = field(repr=False)
    objective: float
    bound: float
    n_steps: int

    @property
    def certificate(self) -> float:
        """(objective - bound) / objective."""
        return _relative(self.objective - self.bound, self.objective)

    def coef(self, features: np.ndarray) -> np.ndarray:
        """w of each atom, (4.30)."""
        return (
            self.weights[:, None]
            * ((self.atoms * self.dual) @ features)
            / (len(self.dual) * self.l1)
        )


class MixtureProgram:
    """The program for given features and targets.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Phi.
    targets : ndarray of shape (n,)
        y.
    seed : int
        Of the searches.
    n_jobs : int
        Threads of a search.
    progress : Progress
        Gets objective, gap and counts, and says when to stop.
    """

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, *, seed: int = 0, n_jobs: int = 1,
        progress: Progress | None = None,
    ):  # fmt: skip
        self.features, self.targets = features, targets
        self.kernel = kernel_of(features)
        self.n = len(targets)
        self.progress = progress or Progress(n_done=0)
        self.rows: list[tuple[float, ...]] = []
        self._seed, self._n_jobs = seed, n_jobs
        self._vectors: np.ndarray | None = None
        self._started = time.perf_counter()

    def l1_max(self) -> float:
        """The least weight, as far as the search sees, at which no atom is active."""
        return float(np.sqrt(max(self._search(self.targets).value, 0.0))) / self.n

    def solve(self, l1: float, start: Point | None, tol: float, max_iter: int) -> Point:
        """Algorithm 13 until the certificate, or what the search finds, is below `tol`."""
        atoms = np.zeros((0, self.n)) if start is None else start.atoms
        c = np.zeros(0) if start is None else start.weights
        system, c, objective = self._correct(l1, atoms, c)
        bound, n_steps = 0.0, 0
        for n_steps in range(1, max_iter + 1):  # noqa: B007 (told in the result)
            dual = system.solve(self.targets)
            found = self._search(dual)
            violation = float(np.sqrt(max(found.value, 0.0))) / (self.n * l1) - 1
            bound = max(bound, self._dual_value(dual, found.bound, l1))
            self._tell(l1, objective, bound, violation, c, dual)
            entering = self._entering(found, atoms, l1)
            is_done = objective - bound <= tol * objective or violation <= 0.1 * tol
            if is_done or not len(entering) or self.progress.stop_requested:
                break
            atoms = np.vstack([atoms, entering])
            c = np.concatenate([c, np.zeros(len(entering))])
            system, c, objective = self._correct(l1, atoms, c)
            atoms, c = atoms[c > 0], c[c > 0]
        order = np.argsort(-c, kind="stable")
        dual = system.solve(self.targets)  # a limit ends the loop after a correction
        return Point(l1, atoms[order], c[order], dual, objective, bound, n_steps)

    # --- search --------------------------------------------------------------------------------

    def _search(self, dual: np.ndarray) -> BooleanQuadraticSolution:
        """Atoms of large |Phi'(z * a)|, (4.31), and a bound for all atoms, (4.34)."""
        rank = min(_RANK, int(np.ceil(np.sqrt(2 * (self.n + 1)))))
        found = solve_boolean_quadratic(
            factor=self.features * dual[:, None], rank=rank, n_rounds=32,
            max_iter=_SEARCH_SWEEPS, tol=_SEARCH_TOL,
            init=self._vectors, n_jobs=self._n_jobs, random_state=self._seed,
        )  # fmt: skip
        self._vectors = found.vectors
        return found

    def _entering(
        self, found: BooleanQuadraticSolution, atoms: np.ndarray, l1: float
    ) -> np.ndarray:
        is_violating = found.candidate_values[:_LOOKED_AT] > (self.n * l1) ** 2
        candidates = found.candidates[:_LOOKED_AT][is_violating].astype(np.float64)
        known = {z.tobytes() for z in atoms}
        fresh = [z for z in candidates if z.any() and z.tobytes() not in known]
        return np.array(fresh[:_PER_STEP]).reshape(-1, self.n)

    def _dual_value(self, dual: np.ndarray, bound: float, l1: float) -> float:
        """Of the best feasible multiple of `dual`."""
        if not np.isfinite(bound):
            return 0.0
        size = float(dual @ dual)
        largest = self.n * l1 / np.sqrt(max(bound, np.finfo(float).tiny))
        cross = float(self.targets @ dual)
        s = min(largest, cross / max(size, np.finfo(float).tiny))
        return (s * cross - 0.5 * s * s * size) / self.n

    # --- correct -------------------------------------------------------------------------------

    def _correct(
        self, l1: float, atoms: np.ndarray, c: np.ndarray
    ) -> tuple[System, np.ndarray, float]:
        """Minimise F(c) = y'S(c)^-1 y / (2N) + l1/2 sum(c) over c >= 0, (4.27)."""
        system, value = self._evaluate(l1, atoms, c)
        for _ in range(_MOST_NEWTON):
            if not len(c):
                break
            gradient, hessian = self._derivatives(system, atoms, l1)
            violation = np.where(c > 0, np.abs(gradient), np.maximum(-gradient, 0.0)).max()
            if violation <= _NEWTON_TOL * l1 or self.progress.stop_requested:
                break
            direction = _newton_point(hessian, gradient, c) - c
            slope = float(gradient @ direction)
            system, c, new = self._line_search(l1, atoms, c, direction, value + 1e-15 * abs(value))
            is_stalled = value - new <= 1e-12 * abs(value) and -slope <= 1e-12 * abs(value)
            value = new
            if is_stalled:
                break
        return system, c, value

    def _evaluate(self, l1: float, atoms: np.ndarray, c: np.ndarray) -> tuple[System, float]:
        system = make_system(self.features, self.kernel, atoms, c / (self.n * l1))
        dual = system.solve(self.targets)
        return system, float(self.targets @ dual) / (2 * self.n) + 0.5 * l1 * float(c.sum())

    def _derivatives(
        self, system: System, atoms: np.ndarray, l1: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of F. With v_k = D(z_k) Phi Phi' D(z_k) a they are, by (4.10) and once more,

        (l1 - v_k'a / (N^2 l1)) / 2   and   v_k'S^-1 v_l / (N^3 l1^2).
        """
        dual = system.solve(self.targets)
        V = atoms * (((atoms * dual) @ self.features) @ self.features.T)
        gradient = 0.5 * (l1 - V @ dual / (self.n**2 * l1))
        return gradient, V @ system.solve(V.T) / (self.n**3 * l1**2)

    def _line_search(
        self, l1: float, atoms: np.ndarray, c: np.ndarray, direction: np.ndarray, most: float
    ) -> tuple[System, np.ndarray, float]:
        step = 1.0
        while True:
            moved = np.maximum(c + step * direction, 0.0)
            system, value = self._evaluate(l1, atoms, moved)
            if value <= most or step < 1e-6:
                return system, moved, value
            step *= 0.5

    # --- telling -------------------------------------------------------------------------------

    def _tell(
        self, l1: float, objective: float, bound: float, violation: float, c: np.ndarray,
        dual: np.ndarray,
    ) -> None:  # fmt: skip
        seconds = time.perf_counter() - self._started
        gap = max(0.0, objective - bound)
        certificate = _relative(gap, objective)
        n_active, n_dual = int(np.count_nonzero(c)), int(np.count_nonzero(dual))
        row = (seconds, l1, objective, certificate, violation, n_active, n_dual)
        self.rows.append(row)
        self.progress.tell(objective=objective, gap=gap, nnz_primal=n_active, nnz_dual=n_dual)

    def trace(self) -> Trace:
        """One row per search."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(_COLUMNS))
        return Trace(dict(zip(_COLUMNS, table.T, strict=True)))


class Path:
    """Solutions at falling shares of `l1_max`, each found when it is first asked for.

    Parameters
    ----------
    program : MixtureProgram
        What is solved.
    l1_shares : sequence of float
        In the order in which they are solved, each from the solution before.
    tol, max_iter : float and int
        As of `MixtureProgram.solve`.
    """

    def __init__(
        self, program: MixtureProgram, l1_shares: Sequence[float], *, tol: float, max_iter: int
    ):
        self.program, self.l1_shares, self.tol, self.max_iter = program, l1_shares, tol, max_iter
        self.points: list[Point] = []
        self._l1_max = max(program.l1_max(), _LEAST_L1)

    def __iter__(self) -> Iterator[Point]:
        for i, share in enumerate(self.l1_shares):
            if i == len(self.points):
                if self.points and self.program.progress.stop_requested:
                    return
                last = self.points[-1] if self.points else None
                l1 = float(share) * self._l1_max
                self.points.append(self.program.solve(l1, last, self.tol, self.max_iter))
            yield self.points[i]

    def solution(self, was_stopped: bool) -> Solution:
        """What was reached: the last objective, and the worst certificate."""
        points = self.points
        certificate = max((point.certificate for point in points), default=0.0)
        if certificate <= self.tol:
            status = Status.CONVERGED
        elif was_stopped:
            status = Status.STOPPED
        else:
            is_spent = any(point.n_steps >= self.max_iter for point in points)
            status = Status.MAX_ITER if is_spent else Status.STALLED
        return Solution(
            status=status,
            objective=points[-1].objective if points else 0.0,
            certificate=certificate,
            n_iter=sum(point.n_steps for point in points),
            trace=self.program.trace(),
        )


def _relative(gap: float, objective: float) -> float:
    return max(0.0, gap) / max(objective, np.finfo(float).tiny)


def _newton_point(hessian: np.ndarray, gradient: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The minimiser over x >= 0 of the quadratic model at `c`, by non-negative least squares."""
    lift = 1e-10 * max(float(np.trace(hessian)), np.finfo(float).tiny)
    L = np.linalg.cholesky(hessian + lift * np.eye(len(c)))
    return np.asarray(nnls(L.T, np.linalg.solve(L, hessian @ c - gradient))[0])
