r"""A duality gap where the solver's own does not close.

The dual point that belongs to weights is :math:`\theta_i = -s_i f'(z_i; y_i)`. A penalised feature
asks for :math:`|x_j^\top \theta| \le \lambda_j`, and shrinking :math:`\theta` is enough. A free
feature asks for :math:`x_j^\top \theta = 0`: shrinking does not help, and the solver's own gap
stays wide open; so it does where :math:`\lambda_j` drowns in the rounding of a gradient. Here
:math:`\theta` is first moved onto the equations that hold at the optimum,
:math:`A^\top \theta = r`, by

.. math:: \theta \leftarrow \theta - H A (A^\top H A)^+ (A^\top \theta - r),

with :math:`A` the columns of the support, such features, and ones for the intercept,
:math:`r_j = \lambda_j \mathrm{sign}(w_j) + l_2 w_j`, and :math:`H` the curvatures of the rows: what
a Newton step over these weights would do to the slopes. Then it is shrunk, and any feasible point
gives a lower bound.
"""

from __future__ import annotations

import numpy as np

from sublearn import _core
from sublearn.interruption import aside, check
from sublearn.optim.linear_problem import LinearProblem, Penalty

__all__ = ["MOST_FREE", "dual_value"]

MOST_FREE = 2000  # the equations are solved as a dense system of this size
_MOST_SUPPORT = 500  # a larger support is left to shrinking
_ROUNDING = 1e-10  # of the terms of a sum, that an equation may leave
_DROWNED = 1e-4  # of the terms of a sum, below which an l1 weight needs its equation


def dual_value(
    problem: LinearProblem, penalty: Penalty, l1: float, w: np.ndarray, intercept: float
) -> float:
    """A lower bound on the optimum; minus infinity if no feasible point was found."""
    check()
    z = problem.predictions(w, intercept)
    theta = -problem.weights * problem.loss.slope(z, problem.y)
    levels = l1 * penalty.factors
    held = _held(problem, penalty, levels, w, np.abs(theta).sum())
    targets = levels[held] * np.sign(w[held]) + penalty.l2 * w[held]
    moved = _onto_equations(problem, held, targets, z, theta) if len(held) <= MOST_FREE else None
    if moved is None:
        return -np.inf
    v = np.asarray(problem.X.T @ moved, dtype=np.float64)
    v[held] = targets
    pull = v if penalty.is_positive else np.abs(v)
    scale = _core.feasible_scale(penalty.compiled(), levels, -v)
    conjugates = problem.loss.conjugate(-scale * moved / problem.weights, problem.y)
    value = -float(problem.weights @ conjugates)
    if problem.offsets is not None:
        value -= scale * float(moved @ problem.offsets)
    if penalty.l2 > 0:
        value -= float((np.maximum(pull - levels, 0.0) ** 2).sum()) / (2 * penalty.l2)
    return value


def _held(
    problem: LinearProblem, penalty: Penalty, levels: np.ndarray, w: np.ndarray, total: float
) -> np.ndarray:
    """Features that get their equation."""
    is_drowned = levels <= _DROWNED * total * problem.column_sizes
    if penalty.is_positive:
        is_drowned &= w > 0
    if penalty.l2 > 0:
        is_drowned[:] = False
    if np.count_nonzero(w) <= _MOST_SUPPORT:
        is_drowned |= w != 0
    return np.flatnonzero(is_drowned)


def _onto_equations(
    problem: LinearProblem,
    held: np.ndarray,
    targets: np.ndarray,
    z: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray | None:
    A = problem.dense_columns(held)
    if problem.fit_intercept:
        A, targets = np.column_stack([A, np.ones(len(z))]), np.append(targets, 0.0)
    if not A.shape[1]:
        return theta
    sizes = np.maximum(np.abs(A).max(axis=0), 1e-300)
    A, targets = A / sizes, targets / sizes
    weighted = A * (problem.weights * problem.loss.curvature(z, problem.y))[:, None]
    n_operations = A.shape[1] ** 2 * (len(A) + 10.0 * A.shape[1])
    step = aside(_newton_step, A, weighted, A.T @ theta - targets, n_operations=n_operations)
    moved = theta - weighted @ step
    left = np.abs(A.T @ moved - targets)
    return moved if (left <= _ROUNDING * np.abs(theta).sum()).all() else None


def _newton_step(A: np.ndarray, weighted: np.ndarray, left: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(A.T @ weighted, left, rcond=None)[0]
