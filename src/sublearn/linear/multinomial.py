r"""All classes in one problem: the multinomial logistic loss under an l1 penalty.

.. math:: \min_{W, b} \sum_i s_i \Bigl(\log \sum_k e^{z_{ik}} - z_{i y_i}\Bigr)
    + \lambda \sum_{jk} c_j |w_{jk}| + \tfrac{l_2}{2} \|W\|^2, \qquad
    z_{ik} = \langle x_i, w_k \rangle + b_k

The solver is compiled (cpp/include/sublearn/solvers/multinomial).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.optim.linear_objective import MultinomialData, as_columns, multinomial_objective
from sublearn.optim.linear_problem import Penalty
from sublearn.optim.linear_solve import CANCELLATION, METHODS, LinearSolution, SolverSettings
from sublearn.trace import Status, Trace
from sublearn.typing import Matrix

__all__ = ["MultinomialProblem", "largest_joint_l1", "solve_joint"]


@dataclass(frozen=True, eq=False)
class MultinomialProblem:
    """Rows with the position of a class each, and row weights above 0 of sum 1."""

    X: Matrix
    codes: np.ndarray
    weights: np.ndarray
    n_classes: int
    fit_intercept: bool

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def objective(self, n_threads: int) -> MultinomialData:
        """The loss as the core holds it."""
        rows = self.X, self.codes, self.n_classes, self.weights, self.fit_intercept
        return multinomial_objective(*rows, n_jobs=n_threads)

    def take_columns(self, columns: np.ndarray) -> MultinomialProblem:
        """The problem on some of the features."""
        return replace(self, X=as_columns(self.X[:, columns]))

    @cached_property
    def constants(self) -> np.ndarray:
        """Intercepts of the model without features."""
        if not self.fit_intercept:
            return np.zeros(self.n_classes)
        logs = np.log(np.bincount(self.codes, self.weights, minlength=self.n_classes))
        return logs - logs.mean()

    def flat(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Weights of shape (n_features, n_classes) and intercepts as the core's coordinates."""
        return np.concatenate([W.ravel(), b if self.fit_intercept else b[:0]])

    def unflat(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of the core's coordinates."""
        size = self.n_features * self.n_classes
        b = x[size:] if self.fit_intercept else np.zeros(self.n_classes)
        return x[:size].reshape(-1, self.n_classes), b

    @property
    def null_model(self) -> tuple[np.ndarray, np.ndarray]:
        """No weights, and intercepts that are best without any."""
        return np.zeros((self.n_features, self.n_classes)), self.constants


def solve_joint(
    problem: MultinomialProblem,
    penalty: Penalty,
    l1: float,
    settings: SolverSettings,
    progress: Progress,
    inits: list[LinearSolution] | None = None,
) -> list[LinearSolution]:
    """Minimise from `inits`; one solution for each class, each with the figures of the whole."""
    init = problem.null_model if inits is None else _joined(inits)
    compiled = penalty.compiled()
    compiled.n_free_last = problem.n_classes if problem.fit_intercept else 0
    levels = np.repeat(l1 * penalty.factors, problem.n_classes)
    levels = np.append(levels, np.zeros(compiled.n_free_last))
    core = METHODS["lhac"].settings(settings.tol, settings.max_iter, settings.n_threads)
    objective = problem.objective(settings.n_threads)
    with progress.monitor() as monitor:
        x, status, rounds = _core.fit_multinomial(
            objective, levels, compiled, core, problem.flat(*init), monitor
        )
    progress.finish_solve()
    return _solutions(problem, x, Status.of(status), rounds)


def _joined(solutions: list[LinearSolution]) -> tuple[np.ndarray, np.ndarray]:
    W = np.transpose([one.x for one in solutions])
    return W, np.array([one.intercept for one in solutions])


def _solutions(
    problem: MultinomialProblem, x: np.ndarray, status: Status, rounds: dict[str, np.ndarray]
) -> list[LinearSolution]:
    unit = np.maximum(np.abs(rounds["objective"]), CANCELLATION * np.log(problem.n_classes))
    named = {"seconds": rounds["seconds"], "objective": rounds["objective"]}
    named["certificate"] = rounds.pop("gap") / unit
    trace = Trace(named | rounds)
    figures = status, float(trace["objective"][-1]), float(trace["certificate"][-1])
    W, b = problem.unflat(x)
    return [
        LinearSolution(*figures, max(len(trace) - 1, 1), trace, np.ascontiguousarray(w), float(c))
        for w, c in zip(W.T, b - b.mean(), strict=True)
    ]


def largest_joint_l1(
    problem: MultinomialProblem, penalty: Penalty, settings: SolverSettings
) -> float:
    """The least l1 for which every penalised weight is 0."""
    W, b = problem.null_model
    free = np.flatnonzero(penalty.factors == 0)
    if len(free):
        part = replace(penalty, factors=np.zeros(len(free)))
        tight = replace(settings, tol=min(settings.tol, CANCELLATION))
        found = solve_joint(problem.take_columns(free), part, 0.0, tight, Progress())
        W[free], b = _joined(found)
    gradient = problem.objective(settings.n_threads).value_and_gradient(problem.flat(W, b))[1]
    return penalty.least_l1(np.abs(problem.unflat(gradient)[0]).max(axis=1))
