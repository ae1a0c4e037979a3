r"""A duality gap for problems with features that no penalty holds, or hardly any.

The dual point that belongs to weights is :math:`\theta_i = -s_i f'(z_i; y_i)`. A penalised feature
asks for :math:`|x_j^\top \theta| \le \lambda_j`, and shrinking :math:`\theta` is enough. A free
feature asks for :math:`x_j^\top \theta = 0`: shrinking does not help, and the solver's own gap
stays wide open; so it does where :math:`\lambda_j` drowns in the rounding of a gradient. Here
:math:`\theta` is first moved onto the equations that hold at the optimum,
:math:`A^\top \theta = r`, by

.. math:: \theta \leftarrow \theta - H A (A^\top H A)^+ (A^\top \theta - r),

with :math:`A` such columns and ones for the intercept, :math:`r_j = \lambda_j \mathrm{sign}(w_j)`,
and :math:`H` the curvatures of the rows: what a Newton step over these weights would do to the
slopes.
"""

from __future__ import annotations

import numpy as np

from sublearn.linear.problem import LinearProblem, Penalty

__all__ = ["MOST_FREE", "dual_value"]

MOST_FREE = 2000  # the equations are solved as a dense system of this size
_ROUNDING = 1e-10  # of the terms of a sum, that an equation may leave
_DROWNED = 1e-4  # of the terms of a sum, below which an l1 weight needs its equation


def dual_value(
    problem: LinearProblem, penalty: Penalty, l1: float, w: np.ndarray, intercept: float
) -> float:
    """A lower bound on the optimum for l2 = 0; minus infinity if no feasible point was found."""
    z = problem.predictions(w, intercept)
    theta = -problem.weights * problem.loss.slope(z, problem.y)
    levels = l1 * penalty.factors
    is_held = levels <= _DROWNED * np.abs(theta).sum() * problem.column_sizes
    held = np.flatnonzero(is_held & (w > 0) if penalty.is_positive else is_held)
    targets = levels[held] * np.sign(w[held])
    if len(held) > MOST_FREE:
        return -np.inf
    moved = _onto_equations(problem, held, targets, z, theta)
    if moved is None:
        return -np.inf
    v = np.asarray(problem.X.T @ moved, dtype=np.float64)
    v[held] = targets
    scale = _feasible_scale(v if penalty.is_positive else np.abs(v), levels)
    conjugates = problem.loss.conjugate(-scale * moved / problem.weights, problem.y)
    return -float(problem.weights @ conjugates)


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
    step = np.linalg.lstsq(A.T @ weighted, A.T @ theta - targets, rcond=None)[0]
    moved = theta - weighted @ step
    left = np.abs(A.T @ moved - targets)
    return moved if (left <= _ROUNDING * np.abs(theta).sum()).all() else None


def _feasible_scale(v: np.ndarray, levels: np.ndarray) -> float:
    over = v > levels
    return float((levels[over] / v[over]).min(initial=1.0))
