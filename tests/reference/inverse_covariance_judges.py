"""The objective of sparse inverse covariance and its dual, written down once more in NumPy."""

import numpy as np


def as_weights(l1, n, penalise_diagonal=False):
    weights = np.array(np.broadcast_to(l1, (n, n)), dtype=float)
    if not penalise_diagonal:
        np.fill_diagonal(weights, 0.0)
    return weights


def primal(X, S, weights):
    sign, log_det = np.linalg.slogdet(X)
    return -log_det + (S * X).sum() + (weights * np.abs(X)).sum() if sign > 0 else np.inf


def dual(W, S, weights):
    """Value of a dual point, minus infinity if it is none."""
    inside = (np.abs(W - S) <= weights + 1e-12 * np.abs(S).max()).all()
    is_positive = np.linalg.eigvalsh(W)[0] > 0
    return np.linalg.slogdet(W)[1] + len(W) if inside and is_positive else -np.inf


def optimality_violation(X, S, weights):
    """Size of the least subgradient, entry by entry, largest."""
    gradient = S - np.linalg.inv(X)
    at_zero = np.maximum(np.abs(gradient) - weights, 0.0)
    elsewhere = np.abs(gradient + weights * np.sign(X))
    return np.where(X == 0, at_zero, elsewhere).max()


def random_covariance(n, n_rows, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n)) @ rng.normal(size=(n, n))
    rows -= rows.mean(axis=0)
    rows /= rows.std(axis=0)
    return rows.T @ rows / n_rows
