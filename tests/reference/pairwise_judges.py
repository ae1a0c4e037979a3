"""Slow judges of the pairwise multilabel problem: enumeration, SciPy's linear programs, cvxpy."""

import itertools

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


def pairs_of(n_labels):
    return list(itertools.combinations(range(n_labels), 2))


def set_score(u, V, y):
    return float(u @ y + 0.5 * y @ V @ y)


def best_set(u, V):
    """The score of the best set of labels, by trying all."""
    return max(set_score(u, V, np.array(y)) for y in itertools.product((0, 1), repeat=len(u)))


def _local_polytope(n_labels):
    """A, b of A (p, q) <= b: the constraints (3.35) of every pair."""
    rows, bounds = [], []
    for e, (k, m) in enumerate(pairs_of(n_labels)):
        for coefficients, bound in (({k: -1}, 0), ({m: -1}, 0), ({k: 1, m: 1}, 1)):
            row = np.zeros(n_labels + len(pairs_of(n_labels)))
            for label, value in coefficients.items():
                row[label] = value
            row[n_labels + e] = 1 if bound == 0 else -1
            rows.append(row)
            bounds.append(bound)
    return np.array(rows), np.array(bounds)


def relaxed_best(u, V):
    """The value of the linear program over labels and pairs."""
    A, b = _local_polytope(len(u))
    values = np.concatenate([u, [V[k, m] for k, m in pairs_of(len(u))]])
    return -linprog(-values, A_ub=A, b_ub=b, bounds=(0, 1), method="highs").fun


def objective(W, bias, V, X, Y, *, C, gamma):
    """Primal value with the relaxed loss; `W` is (n_labels, n_features), all dense."""
    total = 0.5 * (W**2).sum() + 0.5 * (bias**2).sum() + 0.25 * gamma * (V**2).sum()
    for x, t in zip(X, Y, strict=True):
        u = W @ x + bias
        loss = relaxed_best(u + 1 - 2 * t, V) + t.sum() - set_score(u, V, t)
        total += C * loss
    return total


def optimum(X, Y, *, C, gamma):
    """The smallest value, through the dual of each row's linear program."""
    n_labels = Y.shape[1]
    A, b = _local_polytope(n_labels)
    pairs = pairs_of(n_labels)
    W = cp.Variable((n_labels, X.shape[1] + 1))
    v = cp.Variable(len(pairs))
    total = 0.5 * cp.sum_squares(W) + 0.5 * gamma * cp.sum_squares(v)
    constraints = []
    for x, t in zip(np.column_stack([X, np.ones(len(X))]), Y, strict=True):
        both = np.array([t[k] * t[m] for k, m in pairs], dtype=float)
        multipliers, slack = cp.Variable(len(b), nonneg=True), cp.Variable(A.shape[1], nonneg=True)
        scores = cp.hstack([W @ x + (1 - 2 * t), v])
        constraints.append(A.T @ multipliers + slack >= scores)
        most = b @ multipliers + cp.sum(slack)
        total += C * (most + t.sum() - t @ (W @ x) - both @ v)
    problem = cp.Problem(cp.Minimize(total), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value
