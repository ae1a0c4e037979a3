"""Structural SVMs the slow way: all labelings written down, and the optimum by cvxpy."""

import itertools

import cvxpy as cp
import numpy as np


def labelings(n_nodes, n_labels):
    return np.array(list(itertools.product(range(n_labels), repeat=n_nodes)))


def features_of(X, edges, scale, labels, n_labels, arities, widths):
    """phi(x, y) as one vector: a block of features per label, then the tables.

    A table of width w has an axis of w features in front, and `scale` has w numbers for its edges.
    """
    nodes = np.zeros((n_labels, X.shape[1]))
    for x, label in zip(X, labels, strict=True):
        nodes[label] += x
    tables = [np.zeros((w,) + (n_labels,) * a) for w, a in zip(widths, arities, strict=True)]
    for (table, *scope), s in zip(edges, scale, strict=True):
        tables[table][(slice(None), *(labels[node] for node in scope))] += s
    return np.concatenate([nodes.ravel(), *(table.ravel() for table in tables)])


class EnumeratedSVM:
    """1/2 |w|^2 + C sum_i max_y [mistakes + w' (phi(x_i, y) - phi(x_i, y_i))].

    A sample is (X, edges, scale, truth), an edge (table, node, node), or with more nodes where
    `arities` says so for its table. Mistakes cost what `costs` says, a row for each true label.
    """

    def __init__(self, samples, n_labels, n_tables, arities=None, widths=None, costs=None):
        shapes = arities or [2] * n_tables, widths or [1] * n_tables
        costs = 1.0 - np.eye(n_labels) if costs is None else np.asarray(costs)
        self.differences, self.mistakes = [], []
        for X, edges, scale, truth in samples:
            all_labels = labelings(len(X), n_labels)
            phi = np.array([features_of(X, edges, scale, y, n_labels, *shapes) for y in all_labels])
            of_truth = features_of(X, edges, scale, truth, n_labels, *shapes)
            self.differences.append(phi - of_truth)
            self.mistakes.append(costs[np.asarray(truth), all_labels].sum(axis=1))

    def objective(self, w, C):
        pairs = zip(self.differences, self.mistakes, strict=True)
        return 0.5 * w @ w + C * sum((D @ w + m).max() for D, m in pairs)

    def optimum(self, C):
        w = cp.Variable(self.differences[0].shape[1])
        pairs = zip(self.differences, self.mistakes, strict=True)
        loss = sum(cp.max(D @ w + m) for D, m in pairs)
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * loss))
        problem.solve(solver=cp.CLARABEL)
        return problem.value, w.value


def chain_sample(X, truth):
    edges = [(0, t, t + 1) for t in range(len(X) - 1)]
    return X, edges, np.ones(len(edges)), truth
