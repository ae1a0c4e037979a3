"""Slow judges of one-versus-rest problems: the objective in NumPy, its minimum by cvxpy."""

import cvxpy as cp
import numpy as np


def objective(W, b, X, Y, *, loss, fit_intercept, l1, C, weights=None):
    """Sum over the labels that have positives; `W` is (n_labels, n_features), all dense.

    `weights` has a factor of C for each row and label.
    """
    trained = Y.any(axis=0)
    C = C if weights is None else C * weights[:, trained]
    W, b = np.asarray(W, dtype=np.float64)[trained], np.asarray(b, dtype=np.float64)[trained]
    violation = np.maximum(1 - signs(Y[:, trained]) * (X @ W.T + b), 0)
    penalty = 0.5 * (W**2).sum() + l1 * np.abs(W).sum()
    if fit_intercept is True:
        penalty += 0.5 * (b**2).sum()
    return penalty + (C * (violation**2 if loss == "squared_hinge" else violation)).sum()


def optimum(X, Y, *, loss, fit_intercept, l1, C, weights=None):
    """The smallest sum of the objectives of all labels that have positives."""
    weights = np.ones(Y.shape) if weights is None else weights
    weights, Y = weights[:, Y.any(axis=0)], Y[:, Y.any(axis=0)]
    n_labels, n_features = Y.shape[1], X.shape[1]
    W = cp.Variable((n_features, n_labels))
    b = cp.Variable((1, n_labels)) if fit_intercept is True else -np.ones((1, n_labels))
    scores = X @ W + np.ones((len(X), 1)) @ b
    violation = cp.pos(1 - cp.multiply(signs(Y), scores))
    total = 0.5 * cp.sum_squares(W) + l1 * cp.sum(cp.abs(W))
    power = 2 if loss == "squared_hinge" else 1
    total += C * cp.sum(cp.multiply(weights, violation**power))
    if fit_intercept is True:
        total += 0.5 * cp.sum_squares(b)
    problem = cp.Problem(cp.Minimize(total))
    exact = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    problem.solve(solver=cp.CLARABEL, **exact)
    return problem.value


def further_optimum(X, Y, before, *, loss, fit_intercept, l1, C):
    """Smallest sum of losses of further rows and Bregman distances from earlier weights.

    `before` has weights (n_labels, n_features) and biases. Constants are left in place: nothing is
    lost where nothing changes.
    """
    W0, b0 = before[0].T, before[1][None, :]
    V0 = W0 + l1 * np.sign(W0)
    W = cp.Variable(W0.shape)
    b = cp.Variable(b0.shape) if fit_intercept is True else -np.ones(b0.shape)
    violation = cp.pos(1 - cp.multiply(signs(Y), X @ W + np.ones((len(X), 1)) @ b))
    total = C * cp.sum(violation**2 if loss == "squared_hinge" else violation)
    total += 0.5 * cp.sum_squares(W) + l1 * cp.sum(cp.abs(W)) - cp.sum(cp.multiply(V0, W))
    total += 0.5 * (W0**2).sum()
    if fit_intercept is True:
        total += 0.5 * cp.sum_squares(b - b0)
    exact = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    cp.Problem(cp.Minimize(total)).solve(solver=cp.CLARABEL, **exact)
    return total.value, W.value.T, (b.value if fit_intercept is True else b)[0]


def signs(Y):
    """+1 where a row carries a label, -1 where not."""
    return np.where(Y, 1.0, -1.0)
