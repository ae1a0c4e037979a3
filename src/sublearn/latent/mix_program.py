r"""MixLasso's convex program: a group lasso over all :math:`2^N` ways to choose rows.

With :math:`\tau = 2 \lambda = l_1` the estimator (4.25) is

    min over w_z in R^r   1/(2N) |y - sum_z z * (Phi w_z)|^2 + l1 sum_z |w_z|,    z in {0, 1}^N,

since c |w|^2 / c + c is least at c = |w|. Its dual has one variable per row,

    max over a in R^N     1/N (y'a - |a|^2 / 2)   subject to   |Phi'(z * a)| <= N l1 for all z,

so that a bound on max_z z'AA'z, A = D(a) Phi, by the semidefinite relaxation (4.34) makes any
residual a feasible point, and the distance of the two values is a certificate. Algorithm 13:
search atoms that violate the constraint, correct all coefficients c by projected Newton steps on
(4.27), shrink by dropping those at zero.

For atoms z_1 ... z_m with coefficients c the system of the residual, (4.39), is

    S = I + (1 / (N l1)) sum_k c_k D(z_k) Phi Phi' D(z_k).

It is N x N, the identity plus E E' with E of N rows and r columns per atom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from sublearn.fitting.progress import Progress
from sublearn.latent.boolean_quadratic import BooleanQuadraticSolution, solve_boolean_quadratic
from sublearn.latent.projected_newton import model_minimiser
from sublearn.trace import Solution, Status, Trace

__all__ = ["MixtureProgram", "Path", "Point", "kernel_of", "make_system"]

_PER_STEP = 6  # atoms that may enter at once
_LOOKED_AT = 24  # candidates of a search, best first
_NEWTON_TOL = 1e-5  # on |Phi'(z * a)| / (N l1) - 1 of active atoms
_MOST_NEWTON = 30
_SEARCH_SWEEPS = 100
_SEARCH_TOL = 1e-2  # the bound is then within 1 to 4 % of the best atom, at the search's price
_LEAST_L1 = 1e-150  # where all targets are 0 no atom enters at any weight, which must not be 0
_RANK = 24  # of the relaxation's vectors at least; solutions have rank 1 to 5
_MOST_DIRECT = 3000  # rows of a factorised matrix: 3,000 cost 0.3 s and 72 MB
_CG_TOL = 1e-8
_CG_STEPS = 500
_COLUMNS = ("seconds", "l1", "objective", "certificate", "violation", "nnz_primal", "nnz_dual")

#: S^-1 times one column or several.
Solve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Point:
    """A solution for one weight of the penalty."""

    l1: float
    atoms: np.ndarray = field(repr=False)  # (m, n), active z, those of large coefficients first
    weights: np.ndarray = field(repr=False)  # c, the norms of the atoms' functions
    dual: np.ndarray = field(repr=False)  # the residual a
    objective: float
    bound: float  # on the minimum, from below
    n_steps: int  # searches

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


@dataclass(frozen=True)
class _Evaluation:
    """Coefficients c, the system S there, the residual a = S^-1 y and the objective."""

    c: np.ndarray
    solve: Solve
    dual: np.ndarray
    value: float


class MixtureProgram:
    """The program for given features Phi (n x r) and targets y.

    `progress` gets objective, gap and counts, and says when to stop; `seed` and `n_jobs` are of the
    searches.
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

    def solve(self, l1: float, init: Point | None, tol: float, max_iter: int) -> Point:
        """Algorithm 13 until the certificate, or what the search finds, is below `tol`."""
        atoms = np.zeros((0, self.n)) if init is None else init.atoms
        now = self._correct(l1, atoms, np.zeros(0) if init is None else init.weights)
        bound, n_steps = 0.0, 0
        for n_steps in range(1, max_iter + 1):  # noqa: B007 (told in the result)
            found = self._search(now.dual)
            violation = float(np.sqrt(max(found.value, 0.0))) / (self.n * l1) - 1
            bound = max(bound, self._dual_value(now.dual, found.bound, l1))
            self._tell(l1, now, bound, violation)
            entering = self._entering(found, atoms, l1)
            is_done = now.value - bound <= tol * now.value or violation <= 0.1 * tol
            if is_done or not len(entering) or self.progress.stop_requested:
                break
            atoms = np.vstack([atoms, entering])
            now = self._correct(l1, atoms, np.concatenate([now.c, np.zeros(len(entering))]))
            atoms, now = atoms[now.c > 0], replace(now, c=now.c[now.c > 0])
        order = np.argsort(-now.c, kind="stable")
        return Point(l1, atoms[order], now.c[order], now.dual, now.value, bound, n_steps)

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

    def _correct(self, l1: float, atoms: np.ndarray, c: np.ndarray) -> _Evaluation:
        """Minimise F(c) = y'S(c)^-1 y / (2N) + l1/2 sum(c) over c >= 0, (4.27)."""
        now = self._evaluate(l1, atoms, c)
        for _ in range(_MOST_NEWTON if len(c) else 0):
            gradient, hessian = self._derivatives(now, atoms, l1)
            violation = np.where(now.c > 0, np.abs(gradient), np.maximum(-gradient, 0.0)).max()
            if violation <= _NEWTON_TOL * l1 or self.progress.stop_requested:
                break
            direction = model_minimiser(hessian, gradient, now.c) - now.c
            last, now = now, self._line_search(l1, atoms, now, direction)
            rounding = 1e-12 * abs(last.value)
            if last.value - now.value <= rounding and -float(gradient @ direction) <= rounding:
                break
        return now

    def _evaluate(self, l1: float, atoms: np.ndarray, c: np.ndarray) -> _Evaluation:
        solve = make_system(self.features, self.kernel, atoms, c / (self.n * l1))
        dual = solve(self.targets)
        value = float(self.targets @ dual) / (2 * self.n) + 0.5 * l1 * float(c.sum())
        return _Evaluation(c, solve, dual, value)

    def _derivatives(
        self, at: _Evaluation, atoms: np.ndarray, l1: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of F. With v_k = D(z_k) Phi Phi' D(z_k) a they are, by (4.10) and once more,

        (l1 - v_k'a / (N^2 l1)) / 2   and   v_k'S^-1 v_l / (N^3 l1^2).
        """
        V = atoms * (((atoms * at.dual) @ self.features) @ self.features.T)
        gradient = 0.5 * (l1 - V @ at.dual / (self.n**2 * l1))
        return gradient, V @ at.solve(V.T) / (self.n**3 * l1**2)

    def _line_search(
        self, l1: float, atoms: np.ndarray, start: _Evaluation, direction: np.ndarray
    ) -> _Evaluation:
        step = 1.0
        while True:
            moved = self._evaluate(l1, atoms, np.maximum(start.c + step * direction, 0.0))
            if moved.value <= start.value + 1e-15 * abs(start.value) or step < 1e-6:
                return moved
            step *= 0.5

    # --- telling -------------------------------------------------------------------------------

    def _tell(self, l1: float, now: _Evaluation, bound: float, violation: float) -> None:
        seconds, gap = time.perf_counter() - self._started, max(0.0, now.value - bound)
        n_active, n_dual = int(np.count_nonzero(now.c)), int(np.count_nonzero(now.dual))
        certificate = _relative(gap, now.value)
        self.rows.append((seconds, l1, now.value, certificate, violation, n_active, n_dual))
        self.progress.tell(objective=now.value, gap=gap, nnz_primal=n_active, nnz_dual=n_dual)

    def trace(self) -> Trace:
        """One row per search."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(_COLUMNS))
        return Trace(dict(zip(_COLUMNS, table.T, strict=True)))


class Path:
    """Solutions at falling shares of `l1_max`, each from the one before, when first asked for."""

    def __init__(
        self, program: MixtureProgram, l1_shares: Sequence[float], *, tol: float, max_iter: int
    ):
        self.program, self.l1_shares, self.tol, self.max_iter = program, l1_shares, tol, max_iter
        self.points: list[Point] = []

    @cached_property
    def _l1_max(self) -> float:
        return max(self.program.l1_max(), _LEAST_L1)

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


# --- the system ----------------------------------------------------------------------------------


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
