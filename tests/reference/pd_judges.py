"""Slow judges of the separation ranking problem: the objective in NumPy, its minimum by cvxpy."""

import cvxpy as cp
import numpy as np


def losses(W, X, Y):
    """Loss of each row; `W` is (n_labels, n_features), all dense."""
    Z = X @ np.asarray(W, dtype=np.float64).T
    out = np.zeros(len(X))
    for i in range(len(X)):
        if Y[i].any() and not Y[i].all():
            out[i] = max(0.0, 1 + Z[i, ~Y[i]].max() - Z[i, Y[i]].min())
    return out


def objective(W, X, Y, *, l1, C, weights=None):
    """The value of (13)."""
    s = np.ones(len(X)) if weights is None else weights
    W = np.asarray(W, dtype=np.float64)
    return 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + C * (s * losses(W, X, Y)).sum()


def optimum(X, Y, *, l1, C, weights=None, support=None, fit_intercept=False):
    """The smallest value of (13), weights outside `support` fixed at zero if it is given."""
    s = np.ones(len(X)) if weights is None else weights
    W = cp.Variable((X.shape[1], Y.shape[1]))
    b = cp.Variable((1, Y.shape[1])) if fit_intercept else np.zeros((1, Y.shape[1]))
    Z = X @ W + np.ones((len(X), 1)) @ b
    total = 0.5 * cp.sum_squares(b) + 0.5 * cp.sum_squares(W) + l1 * cp.sum(cp.abs(W))
    for i in range(len(X)):
        if Y[i].any() and not Y[i].all():
            negatives, positives = np.flatnonzero(~Y[i]), np.flatnonzero(Y[i])
            total += C * s[i] * cp.pos(1 + cp.max(Z[i, negatives]) - cp.min(Z[i, positives]))
    constraints = [] if support is None else [cp.multiply(~support, W) == 0]
    problem = cp.Problem(cp.Minimize(total), constraints)
    exact = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    problem.solve(solver=cp.CLARABEL, **exact)
    return problem.value
