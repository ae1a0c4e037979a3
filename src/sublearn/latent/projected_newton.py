"""The step of Newton's method under c >= 0 that always descends."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

__all__ = ["model_minimiser"]


def model_minimiser(hessian: np.ndarray, gradient: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The minimiser over x >= 0 of the quadratic model at `c`, by non-negative least squares.

    The way there descends, also where the Hessian is singular: what the model does not bound, the
    constraints do.
    """
    lift = 1e-10 * max(float(np.trace(hessian)), np.finfo(float).tiny)
    L = np.linalg.cholesky(hessian + lift * np.eye(len(c)))
    return np.asarray(nnls(L.T, np.linalg.solve(L, hessian @ c - gradient))[0])
