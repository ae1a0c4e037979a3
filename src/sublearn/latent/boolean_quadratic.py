"""Quadratic functions of binary variables: a good maximiser, and a bound on all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.latent.quadratic_form import QuadraticForm, form_of_factor, form_of_matrix
from sublearn.latent.relaxation import Relaxation
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.typing import Matrix, MatrixLike, Seed
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Interval,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_arguments,
)
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import as_native, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BooleanQuadraticSolution", "solve_boolean_quadratic"]

_ASYMMETRY = 1e-10  # of the largest entry: what rounding may leave
_LARGEST = 1e70  # of entries: sums of squares of products with A A' stay finite
_MOST_INT = 2**31 - 1

_RULES: dict[str, Rule] = {
    "domain": OneOf("01", "pm1"),
    "n_rounds": Interval(int, 1, 10**6),
    "rank": OrNone(Positive(int)),
    "certify": Boolean(),
    "max_iter": Positive(int),
    "tol": Positive(float),
    **RUN_RULES,
}


@dataclass(frozen=True)
class BooleanQuadraticSolution(Solution):
    """What :func:`solve_boolean_quadratic` found.

    `certificate` is (bound - value) / abs(bound), 0 where both are 0. `status` is converged if the
    relaxation is solved to `tol`, `n_iter` counts sweeps of the mixing method, and `trace` has a
    row for each: seconds, value of the relaxation, bound of the latest check.

    Parameters
    ----------
    z : ndarray of int8, shape (n,)
        The best point.
    bound : float
        No point has a larger value; infinite with `certify=False`.
    relaxed_value : float
        Value of the semidefinite relaxation at `vectors`; at most `bound`.
    candidates : ndarray of int8, shape (n_candidates, n)
        Distinct good points, best first: what the hyperplanes and flips came to.
    candidate_values : ndarray of shape (n_candidates,)
        Their values.
    vectors : ndarray of shape (n or n + 1, rank)
        Unit vectors of the relaxation, for `init`.
    is_proved : bool
        Whether a factorisation proved `bound`. Otherwise it rests on the smallest eigenvalue that
        Lanczos saw.
    """

    z: np.ndarray = field(repr=False)
    bound: float
    relaxed_value: float
    candidates: np.ndarray = field(repr=False)
    candidate_values: np.ndarray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    is_proved: bool

    @property
    def value(self) -> float:
        """The objective, which is maximised."""
        return self.objective


def relative_gap(value: float, bound: float) -> float:
    """(bound - value) / abs(bound), 0 where both are 0 and infinite without a bound."""
    distance = max(0.0, bound - value)
    if distance == 0.0 or np.isinf(distance):
        return distance
    return distance / max(abs(bound), np.finfo(float).tiny)


def solve_boolean_quadratic(
    quadratic: MatrixLike | None = None,
    *,
    factor: ArrayLike | None = None,
    linear: ArrayLike | None = None,
    domain: str = "01",
    n_rounds: int = 64,
    rank: int | None = None,
    certify: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-4,
    init: BooleanQuadraticSolution | ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> BooleanQuadraticSolution:
    r"""Maximise :math:`z^T Q z + l^T z` over binary vectors, and bound the maximum.

    The semidefinite relaxation is solved by the mixing method [1]_: coordinate ascent over unit
    vectors, :math:`n r` numbers in all, r their length. Random hyperplanes turn the vectors into
    points, and flips of single variables improve these until none helps. The multipliers of the
    relaxation, shifted until they are feasible, give `bound`.

    Parameters
    ----------
    quadratic : array-like or sparse matrix of shape (n, n), optional
        Q, symmetric. A sweep costs r operations per nonzero.
    factor : array-like of shape (n, d), optional
        A in Q = A A', instead of `quadratic`: a sweep costs 2 n d r. Q is formed only where
        n <= 2 d, which makes sweeps cheaper.
    linear : array-like of shape (n,), optional
        l.
    domain : {"01", "pm1"}, default="01"
        Values of the variables: 0 and 1, or -1 and 1.
    n_rounds : int, default=64
        Random hyperplanes, in blocks of 32; a million at most.
    rank : int, optional
        Length of the unit vectors; by default :math:`\lceil\sqrt{2 n}\rceil`, at most 64.
    certify : bool, default=True
        Compute the bound. Without it sweeps end when one gains less than `tol` of the value.
    max_iter : int, default=1000
        Limit of sweeps.
    tol : float, default=1e-4
        Relative gap of the relaxation: stop when `bound` exceeds its value by at most `tol` times
        the sum of the multipliers' sizes.
    init : BooleanQuadraticSolution or array-like, optional
        Vectors to begin with, from a problem of the same size.
    n_jobs : int or None, default=None
        Threads for the hyperplanes. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first vectors, of the order of visits and of the hyperplanes.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the sweeps, and the vectors reached are rounded.

    Returns
    -------
    BooleanQuadraticSolution

    References
    ----------
    .. [1] P.-W. Wang, W.-C. Chang, J. Z. Kolter, "The Mixing Method: Low-Rank Coordinate Descent
       for Semidefinite Programming with Diagonal Constraints", arXiv 1706.00476, 2017.

    Examples
    --------
    >>> from sublearn.latent import solve_boolean_quadratic
    >>> found = solve_boolean_quadratic([[1.0, -2.0], [-2.0, 3.0]], random_state=0)
    >>> found.z.tolist(), found.value, round(found.bound, 3)
    ([0, 1], 3.0, 3.0)
    """
    check_arguments("solve_boolean_quadratic", locals(), _RULES)
    form = _as_form(quadratic, factor)
    problem = Relaxation(form, _as_linear(linear, form.size), domain)
    solver = _Solver(problem, as_seed(random_state), tol, min(max_iter, _MOST_INT), certify)
    problem.start(_as_vectors(init, problem), rank, solver.seed)
    watch(
        solver.run,
        solver.progress,
        n_total=max_iter,
        callback=callback,
        verbose=verbose,
        title="Boolean quadratic",
        may_be_left=True,
    )
    return solver.solution(n_rounds, as_n_threads(n_jobs))


class _Solver:
    """Sweeps and bounds in turn until they meet."""

    def __init__(self, problem: Relaxation, seed: int, tol: float, max_iter: int, certify: bool):
        self.problem, self.seed, self.tol = problem, seed, tol
        self.max_iter, self.certify = max_iter, certify
        self.progress = Progress(max_iter)
        self.bound, self.is_proved = np.inf, False
        self.has_converged = False
        self._rows: list[tuple[float, float, float]] = []
        self._start = time.perf_counter()

    def run(self) -> None:
        self.value, multipliers = self.problem.evaluate()
        least_gain = 0.1 * self.tol * float(np.abs(multipliers).sum())
        while len(self._rows) < self.max_iter and not self.progress.stop_requested:
            self._sweep(least_gain)
            self.value, multipliers = self.problem.evaluate()
            size = float(np.abs(multipliers).sum())
            self.has_converged = self._is_close(multipliers, size)
            self.progress.tell(objective=self.value)
            if self.has_converged or not least_gain > 1e-16 * size:
                break
            least_gain *= 0.1

    def _sweep(self, least_gain: float) -> None:
        n_done, before = len(self._rows), time.perf_counter() - self._start
        found = self.problem.sweep(
            self.max_iter - n_done, least_gain, self.seed + n_done, self.progress.core
        )
        values = self.value + np.cumsum(found["gain"])
        rows = zip(before + found["seconds"], values, strict=True)
        self._rows += [(seconds, value, self.bound) for seconds, value in rows]

    def _is_close(self, multipliers: np.ndarray, size: float) -> bool:
        if not self.certify:
            return True
        bound, is_proved = self.problem.bound(multipliers)
        if bound < self.bound:
            self.bound, self.is_proved = bound, is_proved
        self.progress.tell(gap=self.bound - self.value)
        return self.bound - self.value <= self.tol * size

    def _status(self) -> Status:
        if self.has_converged:
            return Status.CONVERGED
        if self.progress.stop_requested:
            return Status.STOPPED
        return Status.MAX_ITER if len(self._rows) >= self.max_iter else Status.STALLED

    def solution(self, n_rounds: int, n_threads: int) -> BooleanQuadraticSolution:
        status, monitor = self._status(), _core.Monitor()
        found, values = watch(
            lambda: self.problem.round(n_rounds, self.seed, n_threads, monitor),
            monitor,
            may_be_left=True,
        )
        columns = np.array(self._rows).reshape(-1, 3).T
        value = float(values[0])
        bound = max(self.bound, value)
        return BooleanQuadraticSolution(
            status=status,
            objective=value,
            certificate=relative_gap(value, bound),
            n_iter=len(self._rows),
            trace=Trace(dict(zip(("seconds", "relaxed_value", "bound"), columns, strict=True))),
            z=found[0],
            bound=bound,
            relaxed_value=self.value,
            candidates=found,
            candidate_values=values,
            vectors=self.problem.vectors(),
            is_proved=self.is_proved,
        )


# --- what comes in -----------------------------------------------------------------------------


def _as_form(quadratic: MatrixLike | None, factor: ArrayLike | None) -> QuadraticForm:
    if (quadratic is None) == (factor is None):
        what = "neither" if factor is None else "both"
        raise ParameterError(
            f"solve_boolean_quadratic takes either quadratic or factor, got {what} of them"
        )
    if factor is not None:
        return form_of_factor(as_matrix("solve_boolean_quadratic.factor", factor))
    return form_of_matrix(as_symmetric("solve_boolean_quadratic.quadratic", quadratic))


@overload
def as_matrix(name: str, values: object, *, ensure_2d: bool = ...) -> np.ndarray: ...
@overload
def as_matrix(name: str, values: object, *, accept_sparse: Literal["csr"]) -> Matrix: ...
def as_matrix(name: str, values: object, **options: object) -> Matrix:
    """Finite float64 numbers in C order; `options` are those of scikit-learn's `check_array`."""
    values = check_layout(values, name)
    try:
        found = check_array(values, dtype=np.float64, order="C", input_name=name, **options)
    except (TypeError, ValueError) as error:
        is_text = "could not convert" in str(error)
        why = (
            f"numbers, got {show(values)}"
            if is_text
            else f"a matrix of finite numbers: {str(error).splitlines()[0]}"
        )
        raise ParameterError(f"{name} must be {why}") from None
    largest = float(abs(found).max())
    if largest > _LARGEST:
        raise ParameterError(f"{name} must be at most {_LARGEST:g} in size, got {largest:g}")
    return found if sp.issparse(found) else as_native(found)


def as_symmetric(name: str, values: object) -> Matrix:
    """A square matrix, dense or CSR, that differs from its transpose by no more than rounding."""
    Q = as_matrix(name, values, accept_sparse="csr")
    if Q.shape[0] != Q.shape[1]:
        raise ParameterError(f"{name} must be a square matrix, got shape {Q.shape}")
    difference = abs(Q - Q.T).max()
    if difference > _ASYMMETRY * max(abs(Q).max(), np.finfo(float).tiny):
        raise ParameterError(
            f"{name} must be symmetric (use (M + M.T) / 2), got entries that differ by "
            f"{difference:g}"
        )
    return Q


def _as_linear(linear: ArrayLike | None, n: int) -> np.ndarray | None:
    if linear is None:
        return None
    if np.shape(linear) != (n,):
        raise _refusal("linear", f"of shape ({n},)", f"shape {np.shape(linear)}")
    return as_matrix("solve_boolean_quadratic.linear", linear, ensure_2d=False)


def _as_vectors(
    init: BooleanQuadraticSolution | ArrayLike | None, problem: Relaxation
) -> np.ndarray | None:
    if init is None:
        return None
    given = init.vectors if isinstance(init, BooleanQuadraticSolution) else init
    vectors = as_matrix("solve_boolean_quadratic.init", given)
    if len(vectors) != problem.n_vertices:
        must = f"from a problem with {problem.n_vertices} vectors"
        raise _refusal("init", must, f"{len(vectors)} vectors")
    return vectors


def _refusal(name: str, must: str, got: str) -> ParameterError:
    return ParameterError(f"solve_boolean_quadratic.{name} must be {must}, got {got}")
