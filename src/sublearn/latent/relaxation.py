"""The semidefinite relaxation of a Boolean quadratic problem: sweeps, bound and rounding.

For ``domain="01"`` the substitution z = (1 + y) / 2 turns z'Qz + l'z into

    1/4 y'Qy + 2 b'y + constant,    b = (Q1 + l) / 4,    constant = 1'Q1 / 4 + 1'l / 2,

over signs y, equations (14) and (15) of the paper (Yen and others, 2017). The matrix of the
relaxation is lifted by one vertex, which b couples to the others.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sublearn import _core
from sublearn.interruption import check
from sublearn.latent.quadratic_form import QuadraticForm

__all__ = ["Relaxation", "default_rank"]

# Moving past the optimum of each vertex, as successive over-relaxation does: on graphs and on Gram
# matrices the same value takes half the sweeps or less of 1.0; 1.9 begins too slowly.
_RELAXATION = 1.8
_MAX_PASSES = 200  # of flips; five are usual
_LANCZOS_STEPS = 80
_MOST_DOUBLINGS = 60
_MATTERS = 1e-2


def default_rank(n_vertices: int) -> int:
    """ceil(sqrt(2 n)), which leaves no bad local optimum, but at most 64.

    On graphs of 7,000 and 20,000 vertices 64 gives the value that 119 and 200 give; were it too
    little on another one, the bound would stay away from the value.
    """
    return min(64, int(np.ceil(np.sqrt(2 * n_vertices))))


class Relaxation:
    """The problem of a form Q and a linear term over a domain, "01" or "pm1", with its vectors."""

    def __init__(self, form: QuadraticForm, linear: np.ndarray | None, domain: str):
        self.form, self.domain = form, domain
        if domain == "01":
            sums = form.times(np.ones(form.size))
            self.scale, self.constant = 0.25, 0.25 * float(sums.sum())
            self.b: np.ndarray | None = 0.25 * sums
            if linear is not None:
                self.b = self.b + 0.25 * linear
                self.constant += 0.5 * float(linear.sum())
        else:
            self.scale, self.constant = 1.0, 0.0
            self.b = None if linear is None else 0.5 * linear
        self._native = form.native(self.scale, self.b)

    @property
    def n_vertices(self) -> int:
        """Unit vectors of the relaxation."""
        return self.form.size + (self.b is not None)

    def start(self, vectors: np.ndarray | None, rank: int | None, seed: int) -> None:
        """From given vectors, or at random."""
        if vectors is None:
            self._native.start(rank or default_rank(self.n_vertices), seed)
        else:
            self._native.start_from(np.ascontiguousarray(vectors, dtype=np.float64))

    def sweep(
        self, max_sweeps: int, least_gain: float, seed: int, monitor: _core.Monitor
    ) -> dict[str, np.ndarray]:
        """Passes of the mixing method until one gains no more than `least_gain`."""
        return self._native.sweep(max_sweeps, least_gain, _RELAXATION, seed, monitor)

    def vectors(self) -> np.ndarray:
        """The unit vectors, one in each row."""
        return self._native.vectors()

    def evaluate(self) -> tuple[float, np.ndarray]:
        """Value of the relaxation at the present vectors, and its dual multipliers."""
        value, multipliers = self._native.evaluate()
        return float(value) + self.constant, multipliers

    def bound(self, multipliers: np.ndarray) -> tuple[float, bool]:
        """An upper bound on the problem from any multipliers, and whether it is proved.

        With shift the least number that makes Diag(multipliers + shift) minus the lifted matrix
        positive definite, no signs have a value above sum(multipliers + shift). Lanczos guesses the
        shift and a factorisation proves it; a guess too small is doubled.
        """
        n = len(multipliers)
        size = float(np.abs(multipliers).max(initial=0.0))
        if size == 0.0:  # of a matrix of zeros
            return self.constant, True
        margin = 4.0 * n * np.finfo(float).eps * size  # of rounding inside the factorisation
        shift = max(0.0, -self._guess_least_eigenvalue(multipliers)) * 1.02 + margin
        is_proved = True
        for _ in range(_MOST_DOUBLINGS):
            check()
            answer = self.form.is_dominated(multipliers + shift, self.scale, self.b)
            if answer is None:
                shift, is_proved = self._careful_shift(multipliers) + margin, False
            if answer is not False:
                break
            shift *= 2.0
        return float(multipliers.sum() + n * (shift + margin)) + self.constant, is_proved

    def round(
        self, n_rounds: int, seed: int, n_threads: int, monitor: _core.Monitor
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distinct answers, best first, and their values."""
        n_blocks = -(-n_rounds // 32)
        signs, values = self._native.round(n_blocks, _MAX_PASSES, seed, n_threads, monitor)
        if self.b is None:  # y and -y are one answer: let the first sign be -1, which is z = 0
            signs = signs * -signs[:, :1]
        order = np.argsort(-values, kind="stable")
        first = list({signs[i].tobytes(): i for i in reversed(order)}.values())[::-1]
        found = signs[first] if self.domain == "pm1" else (signs[first] + 1) // 2
        return found.astype(np.int8), values[first] + self.constant

    def _times_lifted(self, v: np.ndarray) -> np.ndarray:
        n = self.form.size
        out = np.empty_like(v)
        out[:n] = self.scale * self.form.times(v[:n])
        if self.b is not None:
            out[:n] += self.b * v[n]
            out[n] = self.b @ v[:n]
        return out

    def _guess_least_eigenvalue(self, multipliers: np.ndarray) -> float:
        """Of Diag(multipliers) - lifted, from above: some steps of Lanczos, orthogonalised."""
        n = len(multipliers)
        steps = min(n, _LANCZOS_STEPS)
        basis = np.zeros((steps + 1, n))
        alpha, beta = np.zeros(steps), np.zeros(steps)
        basis[0] = _some_vector(n)
        k = 0
        for k in range(steps):
            check()
            w = multipliers * basis[k] - self._times_lifted(basis[k])
            alpha[k] = basis[k] @ w
            for _ in range(2):  # once is not enough
                w -= basis[: k + 1].T @ (basis[: k + 1] @ w)
            beta[k] = np.linalg.norm(w)
            if beta[k] <= 1e-13 * np.abs(alpha[: k + 1]).max():
                break
            basis[k + 1] = w / beta[k]
        tridiagonal = scipy.linalg.eigvalsh_tridiagonal(alpha[: k + 1], beta[:k])
        return float(tridiagonal[0])

    def _careful_shift(self, multipliers: np.ndarray) -> float:
        """What Diag(multipliers) - lifted lacks, where it is too large to be factorised.

        Restarted Lanczos on the mirrored spectrum, to a thousandth of what would matter (a shift
        of `_MATTERS` of the multipliers' mean), and that much again as a margin.
        """
        top = 2.0 * float(np.abs(multipliers).max())
        accuracy = 1e-3 * _MATTERS * float(np.abs(multipliers).mean())

        def times_mirrored(v: np.ndarray) -> np.ndarray:
            check()
            return (top - multipliers) * v + self._times_lifted(v)

        mirrored = LinearOperator(
            (len(multipliers),) * 2,
            matvec=times_mirrored,
            dtype=np.float64,
        )
        try:
            start = _some_vector(len(multipliers))
            largest = eigsh(
                mirrored, k=1, which="LA", ncv=40, tol=accuracy / top, v0=start,
                return_eigenvectors=False,
            )[0]  # fmt: skip
        except ArpackNoConvergence:
            return np.inf  # nothing is known, and the bound says so
        return max(0.0, largest - top) + accuracy


def _some_vector(n: int) -> np.ndarray:
    """A unit vector that is orthogonal to no eigenvector, but for bad luck."""
    v = np.random.default_rng(n).standard_normal(n)
    return v / np.linalg.norm(v)
