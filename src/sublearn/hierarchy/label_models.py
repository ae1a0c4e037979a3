r"""Sparse linear models of labels, apart from each other: stage one of HML, nodes of HiClass.

.. math:: \min_{w, b} \frac1N \sum_i \ell(\langle x_i, w \rangle + b; y_i) + l_1 \|w\|_1

(3.3.4) of Tang, "Big Data Optimization in Machine Learning", 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.optim.kinked import solve
from sublearn.optim.linear_problem import LinearProblem, Penalty
from sublearn.optim.linear_solve import METHODS, SOLVERS, LinearSolution, SolverSettings
from sublearn.optim.row_losses import Hinge, Logistic, Loss, Squared
from sublearn.optim.squeezed_rows import is_squeezing_cheaper, squeeze_rows
from sublearn.trace import Solution, Status, Trace
from sublearn.typing import Matrix

__all__ = [
    "LOSSES",
    "BinaryTask",
    "LabelModels",
    "TaskOptions",
    "by_rows",
    "fit_labels",
    "gather",
    "solve_squeezed",
    "solve_tasks",
    "summarise",
]


@dataclass(frozen=True)
class LabelLoss:
    """A loss of rows, the targets it takes, and how predictions become scores between 0 and 1."""

    loss: Loss
    negative: float
    constants: tuple[float, float]  # predictions of a label of no row, and of all rows
    scores: Callable[[np.ndarray], np.ndarray]


def _above_zero(z: np.ndarray) -> np.ndarray:
    """Predictions of 0 and 1, cut at 0."""
    return np.maximum(z, 0)


def _from_the_margin(z: np.ndarray) -> np.ndarray:
    """0 where a row is on the margin of the other side or beyond it, 1 on that of this side."""
    return np.maximum(0.5 * (1 + z), 0)


#: What `loss` may be.
LOSSES = {
    "logistic": LabelLoss(Logistic(), -1.0, (-30.0, 30.0), expit),
    "squared": LabelLoss(Squared(), 0.0, (0.0, 1.0), _above_zero),
    "hinge": LabelLoss(Hinge(), -1.0, (-1.0, 1.0), _from_the_margin),
}


@dataclass(frozen=True, eq=False)
class BinaryTask:
    """Some rows against the others.

    Parameters
    ----------
    X : csc_matrix or ndarray in Fortran order
        Rows of both sides.
    positives : ndarray of int
        Positions of the rows of one side.
    l1 : float
        Weight of the l1 penalty, beside the mean of the losses.
    solver : str, default="auto"
        A name of :data:`sublearn.optim.linear_solve.SOLVERS`.
    columns : ndarray of int or None, default=None
        The features that the columns of `X` are; None for all.
    """

    X: Matrix
    positives: np.ndarray
    l1: float
    solver: str = "auto"
    columns: np.ndarray | None = None

    @property
    def is_constant(self) -> bool:
        """Whether one side is empty: there is nothing to learn."""
        return len(self.positives) in (0, self.X.shape[0])

    def problem(self, kind: LabelLoss, fit_intercept: bool) -> LinearProblem:
        """The task as a problem over its rows."""
        n_rows = self.X.shape[0]
        y = np.full(n_rows, kind.negative)
        y[self.positives] = 1.0
        rows = np.full(n_rows, 1.0 / n_rows)
        return LinearProblem(self.X, y, rows, kind.loss, fit_intercept)


@dataclass(frozen=True)
class TaskOptions:
    """How tasks are solved, whatever they are."""

    loss: str
    fit_intercept: bool
    tol: float
    max_iter: int | None
    n_jobs: int


def by_rows(X: Matrix) -> Matrix:
    """`X` so that some of its rows are quickly taken: as it is if dense, else a csr_matrix."""
    return X if isinstance(X, np.ndarray) else X.tocsr()


def solve_tasks(
    tasks: list[BinaryTask], options: TaskOptions, progress: Progress
) -> list[LinearSolution | None]:
    """A solution of each task, several at a time; None for a constant one."""
    n_inside = max(1, options.n_jobs // max(1, len(tasks)))

    def solve_one(task: BinaryTask) -> LinearSolution | None:
        if task.is_constant:
            progress.finish_solve()
            return None
        problem = task.problem(LOSSES[options.loss], options.fit_intercept)
        return _solve(problem, task, options, n_inside, progress)

    hints = progress.hints(cost=lambda task: task.X.size)
    return map_blocks(solve_one, tasks, options.n_jobs, hints=hints)


def _solve(
    problem: LinearProblem,
    task: BinaryTask,
    options: TaskOptions,
    n_threads: int,
    progress: Progress,
) -> LinearSolution:
    penalty = Penalty(np.ones(problem.n_features), 0.0, False)
    most = METHODS[SOLVERS[task.solver][0]].max_iter
    max_iter = most if options.max_iter is None else int(options.max_iter)
    settings = SolverSettings(task.solver, options.tol, max_iter, n_threads)
    return solve(problem, penalty, task.l1, settings, progress)


def summarise(found: list[LinearSolution | None]) -> Solution:
    """The worst certificate, the most iterations and the sum of objectives of several solves."""
    solved = [solution for solution in found if solution is not None]
    if not solved:
        return Solution(Status.CONVERGED, 0.0, 0.0, 0, Trace({}))
    worst = max(solved, key=lambda one: (one.status is not Status.CONVERGED, one.certificate))
    return Solution(
        worst.status,
        float(sum(one.objective for one in solved)),
        max(one.certificate for one in solved),
        max(one.n_iter for one in solved),
        Trace({}),
    )


@dataclass(frozen=True, eq=False)
class LabelModels:
    """Weights of shape (n_features, n_labels) and intercepts."""

    weights: sp.csc_matrix
    intercepts: np.ndarray

    def predictions(self, X: Matrix) -> np.ndarray:
        """<x, w> + b of all rows and labels."""
        z = X @ self.weights
        return np.asarray(z.toarray() if sp.issparse(z) else z) + self.intercepts


def gather(
    tasks: list[BinaryTask], found: list[LinearSolution | None], X: Matrix, options: TaskOptions
) -> LabelModels:
    """The models of tasks on rows and features of `X`, a column each.

    A label of no row, or of all rows, is a constant that is never, or always, above the others.
    """
    never, always = LOSSES[options.loss].constants
    indices, values, intercepts = [np.arange(0)], [np.empty(0)], []
    for task, solution in zip(tasks, found, strict=True):
        w = np.empty(0) if solution is None else solution.x
        at = np.flatnonzero(w)
        indices.append(at if task.columns is None else task.columns[at])
        values.append(w[at])
        constant = always if len(task.positives) else never
        intercepts.append(constant if solution is None else solution.intercept)
    indptr = np.cumsum([len(own) for own in values])
    parts = (np.concatenate(values).astype(X.dtype), np.concatenate(indices), indptr)
    weights = sp.csc_matrix(parts, shape=(X.shape[1], len(tasks)))
    return LabelModels(weights, np.array(intercepts, dtype=X.dtype))


def fit_labels(
    X: Matrix, Y: sp.csc_matrix, l1: float, options: TaskOptions, progress: Progress
) -> tuple[LabelModels, Solution]:
    """One model for each column of `Y`; with the squared loss from one pass if that is faster."""
    tasks = [BinaryTask(X, Y.indices[a:b], l1) for a, b in pairwise(Y.indptr)]
    is_shared = options.loss == "squared" and is_squeezing_cheaper(X, len(tasks))
    how = solve_squeezed if is_shared else solve_tasks
    found = how(tasks, options, progress)
    return gather(tasks, found, X, options), summarise(found)


def solve_squeezed(
    tasks: list[BinaryTask], options: TaskOptions, progress: Progress
) -> list[LinearSolution | None]:
    """As `solve_tasks`, for the squared loss and tasks on the same rows: these are read once."""
    X, sizes = tasks[0].X, [len(task.positives) for task in tasks]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.concatenate([task.positives for task in tasks])
    Y = sp.csc_matrix((np.ones(len(indices)), indices, indptr), shape=(X.shape[0], len(tasks)))
    squeezed = squeeze_rows(X, Y, options.fit_intercept, lambda: progress.stop_requested)

    def solve_one(k: int) -> LinearSolution | None:
        if tasks[k].is_constant:
            progress.finish_solve()
            return None
        found = _solve(squeezed.problem(k), tasks[k], options, 1, progress)
        return replace(found, intercept=squeezed.intercept(k, found.x))

    return map_blocks(solve_one, range(len(tasks)), options.n_jobs)
