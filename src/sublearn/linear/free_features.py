r"""A duality gap for problems with features that no penalty holds.

The dual point that belongs to weights is :math:`\theta_i = -s_i f'(z_i; y_i)`. A penalised feature
asks for :math:`|x_j^\top \theta| \le \lambda_j`, and shrinking :math:`\theta` is enough. A free
feature asks for :math:`x_j^\top \theta = 0`: shrinking does not help, and the solver's own gap
stays wide open. Here :math:`\theta` is first moved onto these equations,

.. math:: \theta \leftarrow \theta - H A (A^\top H A)^+ A^\top \theta,

with :math:`A` the free columns, those whose :math:`\lambda_j` drowns in the rounding of
:math:`x_j^\top \theta` and ones for the intercept, and :math:`H` the curvatures of the rows: what a
Newton step over the free weights would do to the slopes.
"""

from __future__ import annotations

import numpy as np

from sublearn.linear.problem import LinearProblem, Penalty

__all__ = ["MOST_FREE", "dual_value"]

MOST_FREE = 2000  # the equations are solved as a dense system of this size
_ROUNDING = 1e-10  # of the terms of a sum, that an equation may leave
_DROWNED = 1e-8  # of the terms of a sum, below which an l1 weight counts as none


def dual_value(
    problem: LinearProblem, penalty: Penalty, l1: float, w: np.ndarray, intercept: float
) -> float:
    """A lower bound on the optimum for l2 = 0; minus infinity if no feasible point was found."""
    z = problem.predictions(w, intercept)
    slopes = problem.weights * problem.loss.slope(z, problem.y)
    levels = l1 * penalty.factors
    is_held = levels <= _DROWNED * np.abs(slopes).sum() * problem.column_sizes
    held = np.flatnonzero(is_held & (w > 0) if penalty.is_positive else is_held)
    moved = _onto_equations(problem, held, z, slopes) if len(held) <= MOST_FREE else None
    if moved is None:
        return -np.inf
    slopes = moved
    v = -np.asarray(problem.X.T @ slopes, dtype=np.float64)
    v[held] = 0.0
    scale = _feasible_scale(v if penalty.is_positive else np.abs(v), levels)
    conjugates = problem.loss.conjugate(scale * slopes / problem.weights, problem.y)
    return -float(problem.weights @ conjugates)


def _onto_equations(
    problem: LinearProblem, held: np.ndarray, z: np.ndarray, slopes: np.ndarray
) -> np.ndarray | None:
    A = problem.dense_columns(held)
    if problem.fit_intercept:
        A = np.column_stack([A, np.ones(len(z))])
    if not A.shape[1]:
        return slopes
    A = A / np.maximum(np.abs(A).max(axis=0), 1e-300)
    weighted = A * (problem.weights * problem.loss.curvature(z, problem.y))[:, None]
    step = np.linalg.lstsq(A.T @ weighted, A.T @ slopes, rcond=None)[0]
    moved = slopes - weighted @ step
    left = np.abs(A.T @ moved)
    return moved if (left <= _ROUNDING * np.abs(slopes).sum()).all() else None


def _feasible_scale(v: np.ndarray, levels: np.ndarray) -> float:
    over = v > levels
    return float((levels[over] / v[over]).min(initial=1.0))
