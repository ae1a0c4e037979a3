r"""All classes in one problem: the multinomial logistic loss under an l1 penalty.

.. math:: \min_{W, b} \sum_i s_i \Bigl(\log \sum_k e^{z_{ik}} - z_{i y_i}\Bigr)
    + \lambda \sum_{jk} c_j |w_{jk}| + \tfrac{l_2}{2} \|W\|^2, \qquad
    z_{ik} = \langle x_i, w_k \rangle + b_k

A round takes one gradient over all features, and LHAC then works on an active set of them. The dual
point of weights is :math:`\theta_{ik} = s_i (1[k = y_i] - p_{ik})`, with p the probabilities. What
no penalty touches, intercepts above all, asks for equations :math:`u^\top \theta_k = 0`. They hold
where the loss is least in these coordinates, so Newton's method is run over them before a gap is
taken. Shrunk by t until :math:`|x_j^\top \theta_k| \le \lambda_j`, the point proves that no weights
have an objective below

.. math:: -\sum_i s_i \sum_k q_{ik} \log q_{ik}, \qquad
    q_{ik} = (1 - t)\, 1[k = y_i] + t\, p_{ik}.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax, xlogy

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.linear_problem import Penalty
from sublearn.optim.linear_solve import LinearSolution, SolverSettings
from sublearn.optim.multinomial_objective import multinomial_objective
from sublearn.optim.progress import Progress
from sublearn.trace import Status, Trace

__all__ = ["MultinomialProblem", "largest_joint_l1", "solve_joint"]

_LEAST_NEW = 100  # features that may enter the active set in a round
_ROUGH_TOL = 0.2  # what a round leaves of the subgradient, if features enter in it
_INNER_TOL = 0.03  # if none does
_INNER_MAX_ITER = 1000
_NEWTON_STEPS = 50
_HALVINGS = 30
_CENTRED = 1e-15  # of the terms of a sum: Newton's method goes no further
_ROUNDING = 1e-10  # of the terms of a sum, that an equation may leave
_CANCELLATION = 1e-12  # an objective below this share of the loss at 0 is rounding


@dataclass(frozen=True, eq=False)
class MultinomialProblem:
    """Rows with the position of a class each, and row weights above 0 of sum 1."""

    X: Any
    codes: np.ndarray
    weights: np.ndarray
    n_classes: int
    fit_intercept: bool

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def objective(self, n_threads: int) -> Any:
        """The loss as the core holds it."""
        rows = self.X, self.codes, self.n_classes, self.weights, self.fit_intercept
        return multinomial_objective(*rows, n_threads=n_threads)

    def take_columns(self, columns: np.ndarray) -> MultinomialProblem:
        """The problem on some of the features."""
        if len(columns) == self.n_features:
            return self
        return replace(self, X=as_columns(self.X[:, columns]))

    @cached_property
    def targets(self) -> np.ndarray:
        """1 for the class of a row, of shape (n_rows, n_classes)."""
        return np.eye(self.n_classes)[self.codes]

    @cached_property
    def constants(self) -> np.ndarray:
        """Intercepts of the model without features."""
        if not self.fit_intercept:
            return np.zeros(self.n_classes)
        logs = np.log(np.bincount(self.codes, self.weights, minlength=self.n_classes))
        return logs - logs.mean()

    def scores(self, point: _Point) -> np.ndarray:
        """z of all rows."""
        support = np.flatnonzero(point.W.any(axis=1))
        return np.asarray(self.X[:, support].astype(np.float64) @ point.W[support]) + point.b

    def loss(self, z: np.ndarray) -> float:
        """Of scores."""
        return -float(self.weights @ log_softmax(z, axis=1)[np.arange(len(z)), self.codes])

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """The dual point of scores."""
        return self.weights[:, None] * (self.targets - softmax(z, axis=1))

    def unpenalised_columns(self, free: np.ndarray) -> np.ndarray:
        """Columns of `free` features and ones for the intercepts, dense."""
        columns = self.X[:, free]
        columns = columns if isinstance(columns, np.ndarray) else columns.toarray()
        ones = np.ones((len(columns), int(self.fit_intercept)))
        return np.hstack([columns.astype(np.float64), ones])


@dataclass(eq=False)
class _Point:
    """Weights of shape (n_features, n_classes), and intercepts."""

    W: np.ndarray
    b: np.ndarray

    def flat(self, columns: Any, has_intercepts: bool) -> np.ndarray:
        """In the order of the core's coordinates."""
        rest = self.b if has_intercepts else self.b[:0]
        return np.concatenate([self.W[columns].ravel(), rest])


def solve_joint(
    problem: MultinomialProblem,
    penalty: Penalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
    starts: list[LinearSolution] | None = None,
) -> list[LinearSolution]:
    """Minimise from `starts`; one solution for each class, each with the figures of the whole."""
    run = _JointRun(problem, penalty, l1, settings, starts)
    while run.look(progress.stop_requested) is None:
        with progress.monitor(is_one_round=True) as monitor:
            run.advance(monitor)
    progress.finish_solve()
    return run.solutions()


def largest_joint_l1(
    problem: MultinomialProblem, penalty: Penalty, settings: SolverSettings
) -> float:
    """The least l1 for which every penalised weight is 0."""
    none = replace(penalty, factors=np.where(penalty.factors > 0, np.inf, 0.0))
    free = np.flatnonzero(penalty.factors == 0)
    point = _Point(np.zeros((problem.n_features, problem.n_classes)), problem.constants.copy())
    if len(free) and penalty.l2 > 0:
        part = replace(none, factors=np.zeros(len(free)))
        tight = replace(settings, tol=min(settings.tol, _CANCELLATION))
        found = solve_joint(problem.take_columns(free), part, 0.0, tight, Progress(1, 1))
        point.W[free] = np.transpose([one.w for one in found])
        point.b = np.array([one.intercept for one in found])
    else:
        _centre(problem, free, point)
    pull = np.abs(_pull(problem, point, settings.n_threads)).max(axis=1)
    held = penalty.factors > 0
    return float((pull[held] / penalty.factors[held]).max(initial=0.0))


def _pull(problem: MultinomialProblem, point: _Point, n_threads: int) -> np.ndarray:
    """Minus the gradient of the loss in the weights."""
    flat = point.flat(slice(None), problem.fit_intercept)
    gradient = problem.objective(n_threads).value_and_gradient(flat)[1]
    return -gradient[: point.W.size].reshape(point.W.shape)


def _centre(problem: MultinomialProblem, free: np.ndarray, point: _Point) -> np.ndarray | None:
    """Minimise over what has no penalty; the dual point, or None if its equations stay open."""
    U, z = problem.unpenalised_columns(free), problem.scores(point)
    theta = problem.slopes(z)
    if not U.shape[1]:
        return theta
    sizes = np.maximum(np.abs(U).max(axis=0), 1e-300)
    U = U / sizes
    moved = np.zeros((U.shape[1], problem.n_classes))
    for _ in range(_NEWTON_STEPS):
        if np.abs(U.T @ theta).max() <= _CENTRED * np.abs(theta).sum():
            break
        step = _newton_step(problem, U, z, theta)
        length = _step_length(problem, z, U @ step)
        if length == 0:
            break
        moved += length * step
        z = z + length * (U @ step)
        theta = problem.slopes(z)
    moved -= moved.mean(axis=1, keepdims=True)  # the same for every class changes nothing
    point.W[free] += moved[: len(free)] / sizes[: len(free), None]
    if problem.fit_intercept:
        point.b = point.b + moved[-1]
    is_closed = np.abs(U.T @ theta).max() <= _ROUNDING * np.abs(theta).sum()
    return theta if is_closed else None


def _newton_step(
    problem: MultinomialProblem, U: np.ndarray, z: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    p = softmax(z, axis=1)
    weighted = problem.weights[:, None] * p
    products = (U[:, :, None] * p[:, None, :]).reshape(len(U), -1)
    hessian = -products.T @ (problem.weights[:, None] * products)
    shape = U.shape[1], problem.n_classes
    blocks = hessian.reshape(shape + shape)  # a view
    every = np.arange(problem.n_classes)
    blocks[:, every, :, every] += np.einsum("nk,na,nc->kac", weighted, U, U, optimize=True)
    return np.linalg.lstsq(hessian, (U.T @ theta).ravel(), rcond=None)[0].reshape(shape)


def _step_length(problem: MultinomialProblem, z: np.ndarray, change: np.ndarray) -> float:
    """1 halved until the loss does not grow, as far as rounding lets one see; 0 if none does."""
    most = problem.loss(z) * (1 + 1e-14)
    for n in range(_HALVINGS):
        if problem.loss(z + 0.5**n * change) <= most:
            return 0.5**n
    return 0.0


class _JointRun:
    """A solve between two rounds."""

    def __init__(
        self,
        problem: MultinomialProblem,
        penalty: Penalty,
        l1: float,
        settings: SolverSettings,
        starts: list[LinearSolution] | None,
    ):
        self.problem, self.penalty, self.settings = problem, penalty, settings
        self.l1, self.levels = l1, l1 * penalty.factors
        self.full = problem.objective(settings.n_threads)
        shape = problem.n_features, problem.n_classes
        self.point = _Point(np.zeros(shape), problem.constants.copy())
        if starts is not None:
            W = np.transpose([start.w for start in starts]).copy()
            self.point = _Point(W, np.array([start.intercept for start in starts]))
        self.bound, self.objective, self.certificate = -np.inf, np.inf, np.inf
        self.inner_tol = _INNER_TOL
        self.active = np.arange(0)
        self.n_passes, self.began = 0, time.perf_counter()
        self.rows: list[dict[str, float]] = []
        self.status: Status | None = None

    def look(self, is_stopped: bool) -> Status | None:
        """One gradient over all features: the gap, the next active set, whether to end."""
        before = self.objective
        self._settle()
        theta = _centre(self.problem, self.penalty.free, self.point)
        flat = self.point.flat(slice(None), self.problem.fit_intercept)
        loss, gradient = self.full.value_and_gradient(flat)
        pull = -gradient[: self.point.W.size].reshape(self.point.W.shape)
        self.objective = loss + self._penalty_value()
        if theta is not None:
            self.bound = max(self.bound, self._dual_value(theta, pull))
        unit = max(abs(self.objective), _CANCELLATION * np.log(self.problem.n_classes))
        self.certificate = max(self.objective - self.bound, 0.0) / unit
        over = np.maximum(np.abs(pull) - self.levels[:, None], 0.0).max(axis=1)
        over[self.point.W.any(axis=1)] = 0.0
        self.active = self._choose(over)
        self._note(float(over.max(initial=0.0)))
        self.status = self._judge(before, is_stopped)
        return self.status

    def _penalty_value(self) -> float:
        W = self.point.W
        sizes = self.levels @ np.abs(W).sum(axis=1)
        return float(sizes + 0.5 * self.penalty.l2 * (W * W).sum())

    def _dual_value(self, theta: np.ndarray, pull: np.ndarray) -> float:
        pull, levels = np.abs(pull), np.broadcast_to(self.levels[:, None], pull.shape)
        scale, rest = 1.0, 0.0
        if self.penalty.l2 > 0:
            rest = float((np.maximum(pull - levels, 0.0) ** 2).sum()) / (2 * self.penalty.l2)
        else:
            pull[self.penalty.free] = 0.0  # their equations hold
            over = pull > levels
            scale = float((levels[over] / pull[over]).min(initial=1.0))
        q = self.problem.targets - scale * theta / self.problem.weights[:, None]
        q = np.maximum(q, 0.0)
        return -float(self.problem.weights @ xlogy(q, q).sum(axis=1)) - rest

    def _choose(self, over: np.ndarray) -> np.ndarray:
        """The support, what has no penalty, and as many of the worst violators again."""
        is_in = (self.point.W != 0).any(axis=1)
        is_in[self.penalty.free] = True
        n_new = min(max(int(is_in.sum()), _LEAST_NEW), int((over > 0).sum()))
        if n_new:
            is_in[np.argpartition(-over, n_new - 1)[:n_new]] = True
        return np.flatnonzero(is_in)

    def _note(self, violation: float) -> None:
        self.rows.append(
            {
                "seconds": time.perf_counter() - self.began,
                "objective": self.objective,
                "certificate": self.certificate,
                "violation": violation,
                "nnz_primal": int(np.count_nonzero(self.point.W)),
                "n_working": len(self.active),
                "n_passes": self.n_passes,
            }
        )

    def _judge(self, before: float, is_stopped: bool) -> Status | None:
        if self.certificate <= self.settings.tol:
            return Status.CONVERGED
        if is_stopped:
            return Status.STOPPED
        if len(self.rows) > self.settings.max_iter:
            return Status.MAX_ITER
        if before - self.objective > 0:
            is_growing = self.rows[-1]["violation"] > 0
            self.inner_tol = _ROUGH_TOL if is_growing else _INNER_TOL
            return None
        if self.inner_tol < _INNER_TOL or not len(self.active):
            return Status.STALLED
        self.inner_tol = _INNER_TOL**2
        return None

    def advance(self, monitor: Any) -> None:
        """LHAC on the active set."""
        part, K = self.problem.take_columns(self.active), self.problem.n_classes
        start = self.point.flat(self.active, part.fit_intercept)
        l1 = np.zeros(len(start))
        l1[: len(self.active) * K] = np.repeat(self.levels[self.active], K)
        settings = _core.LhacSettings()
        settings.tol, settings.max_iter = self.inner_tol, _INNER_MAX_ITER
        # A callable of Python: the compiled objective would stop by a gap of its own, and the l2
        # of the core's penalty would reach the intercepts.
        objective = _core.PythonObjective(self._smooth(part), None, len(start))
        x, _, _, columns = _core.lhac(
            objective, l1, _core.SeparablePenalty(), settings, start, False, monitor
        )
        self.n_passes += int(columns["n_passes"][-1])
        if np.isfinite(x).all():
            self.point.W[self.active] = x[: len(self.active) * K].reshape(-1, K)
            if part.fit_intercept:
                self.point.b = x[-K:].copy()

    def _smooth(self, part: MultinomialProblem) -> Any:
        loss, l2 = part.objective(self.settings.n_threads), self.penalty.l2
        size = part.n_features * part.n_classes

        def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = loss.value_and_gradient(np.ascontiguousarray(x))
            if l2 > 0:
                value += 0.5 * l2 * (x[:size] @ x[:size])
                gradient[:size] += l2 * x[:size]
            return value, gradient

        return value_and_gradient

    def _settle(self) -> None:
        """Take the same from the weights of all classes: no loss changes, but the penalty may.

        l1 is least where any number between the two middle weights of a feature becomes 0; the
        middle weight nearer to the mean does. Features without penalty get weights of mean 0.
        """
        W, K = self.point.W, self.problem.n_classes
        if self.penalty.l2 > 0:
            return
        rows = np.flatnonzero(W.any(axis=1))
        middle = np.sort(W[rows], axis=1)[:, [(K - 1) // 2, K // 2]]
        mean = W[rows].mean(axis=1, keepdims=True)
        nearer = np.abs(middle - mean).argmin(axis=1)[:, None]
        shifts = np.take_along_axis(middle, nearer, axis=1)
        is_free = self.levels[rows] == 0
        shifts[is_free] = mean[is_free]
        W[rows] -= shifts

    def solutions(self) -> list[LinearSolution]:
        """What was reached; every class has the figures of the whole problem."""
        names = list(self.rows[0])
        trace = Trace({name: [row[name] for row in self.rows] for name in names})
        n_iter = max(len(trace) - 1, 1)
        figures = self.status or Status.MAX_ITER, self.objective, self.certificate, n_iter
        b = self.point.b - self.point.b.mean()
        return [
            LinearSolution(*figures, trace, np.ascontiguousarray(w), float(intercept))
            for w, intercept in zip(self.point.W.T, b, strict=True)
        ]
