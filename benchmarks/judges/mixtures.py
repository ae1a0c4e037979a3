"""Rivals of MixLasso for mixed regression: EM and alternating minimisation, each from random or
from tensor starts. They get the number of components; the best of their restarts counts.
"""

from __future__ import annotations

import itertools
import time

import numpy as np

__all__ = [
    "alternating_minimisation",
    "hard_em",
    "random_starts",
    "soft_em",
    "tensor_starts",
]

Found = tuple[np.ndarray, float, int]  # weights, root mean square of residuals, restarts made
_EXACT = 1e-9  # part of the targets' size at which more restarts cannot help


def random_starts(n_components: int, n_features: int, n_starts: int, seed: int) -> np.ndarray:
    """Standard normal weights, as in the paper."""
    return np.random.default_rng(seed).normal(size=(n_starts, n_components, n_features))


def patterns_of(n_components: int, is_general: bool) -> np.ndarray:
    """Which components a row may have."""
    if not is_general:
        return np.eye(n_components)
    return np.array(list(itertools.product([0.0, 1.0], repeat=n_components)))


def hard_em(
    X: np.ndarray, y: np.ndarray, starts: np.ndarray, budget: float = np.inf,
    is_general: bool = False, ridge: float = 1e-9,
) -> Found:  # fmt: skip
    """Assign each row to its best pattern, refit by least squares, until nothing moves."""
    patterns = patterns_of(starts.shape[1], is_general)

    def one(W: np.ndarray) -> np.ndarray:
        last = np.full(len(y), -1)
        for _ in range(200):
            nearest = ((y[:, None] - X @ W.T @ patterns.T) ** 2).argmin(axis=1)
            if (nearest == last).all():
                break
            last = nearest
            W = _least_squares(X, y, patterns[nearest], W, ridge)
        return W

    return _best_of(one, X, y, patterns, starts, budget)


def soft_em(
    X: np.ndarray, y: np.ndarray, starts: np.ndarray, budget: float = np.inf, ridge: float = 1e-9
) -> Found:
    """EM for a mixture of Gaussians around the functions, with one noise level for all."""
    eye = np.eye(X.shape[1])

    def one(W: np.ndarray) -> np.ndarray:
        W, K = W.copy(), len(W)
        squares = (y[:, None] - X @ W.T) ** 2
        shares, level, last = np.full(K, 1 / K), squares.min(axis=1).mean(), np.inf
        for _ in range(500):
            logs = np.log(shares) - squares / (2 * level)
            chances = np.exp(logs - logs.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            for k in range(K):
                weighted = X.T * chances[:, k]
                W[k] = np.linalg.solve(weighted @ X + ridge * eye, weighted @ y)
            squares = (y[:, None] - X @ W.T) ** 2
            shares = chances.mean(axis=0) + 1e-12
            level = max(float((chances * squares).sum()) / len(y), 1e-18)
            if abs(last - level) <= 1e-6 * level or level < 1e-16:
                break
            last = level
        return W

    return _best_of(one, X, y, np.eye(starts.shape[1]), starts, budget)


def alternating_minimisation(
    X: np.ndarray, y: np.ndarray, starts: np.ndarray, budget: float = np.inf, ridge: float = 1e-9
) -> Found:
    """Minimise the mean of prod_k (y - x'w_k)^2 over one w_k at a time (Zhong et al. 2016)."""
    eye = np.eye(X.shape[1])

    def one(W: np.ndarray) -> np.ndarray:
        W, last = W.copy(), np.inf
        for _ in range(200):
            for k in range(len(W)):
                others = np.delete(W, k, axis=0)
                trust = ((y[:, None] - X @ others.T) ** 2).prod(axis=1)
                trust /= max(float(trust.mean()), 1e-300)
                weighted = X.T * trust
                W[k] = np.linalg.solve(weighted @ X + ridge * eye, weighted @ y)
            value = float(((y[:, None] - X @ W.T) ** 2).prod(axis=1).mean())
            if last - value <= 1e-4 * value or value < 1e-30:
                break
            last = value
        return W

    return _best_of(one, X, y, np.eye(starts.shape[1]), starts, budget)


def tensor_starts(X: np.ndarray, y: np.ndarray, n_components: int, seed: int) -> np.ndarray:
    """One start from the second and third moments of y and x, which must be standard normal.

    E[y^2 (xx' - I)] / 2 is the sum of p_k w_k w_k', and the third moment likewise; in the span of
    the former the latter has orthogonal parts, found by power iterations and deflation.
    """
    n, K = len(y), n_components
    second = ((X.T * y**2) @ X / n - np.mean(y**2) * np.eye(X.shape[1])) / 2
    values, vectors = np.linalg.eigh(second)
    values, vectors = np.maximum(values[-K:], 1e-6), vectors[:, -K:]
    whiten, colour = vectors / np.sqrt(values), vectors * np.sqrt(values)
    U, G = X @ whiten, whiten.T @ whiten
    cube = y**3 / n
    tensor = np.einsum("n,na,nb,nc->abc", cube, U, U, U, optimize=True)
    line = cube @ U
    for one, two in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        tensor -= np.einsum(f"{one},{two}->abc", line, G)
    tensor /= 6
    rng, found = np.random.default_rng(seed), []
    for _ in range(K):
        size, v = max((_power(tensor, rng) for _ in range(20)), key=lambda pair: pair[0])
        found.append(size * (colour @ v))
        tensor = tensor - size * np.einsum("a,b,c->abc", v, v, v)
    return np.array(found)[None]


def _power(tensor: np.ndarray, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    v = rng.normal(size=len(tensor))
    for _ in range(50):
        v = np.einsum("abc,b,c->a", tensor, v, v)
        v /= max(float(np.linalg.norm(v)), 1e-300)
    return float(np.einsum("abc,a,b,c->", tensor, v, v, v)), v


def _least_squares(
    X: np.ndarray, y: np.ndarray, codes: np.ndarray, W: np.ndarray, ridge: float
) -> np.ndarray:
    K, D = W.shape
    if (codes.sum(axis=1) == 1).all():
        W = W.copy()
        for k in range(K):
            rows = codes[:, k] > 0
            if rows.any():
                G = X[rows].T @ X[rows] + ridge * np.eye(D)
                W[k] = np.linalg.solve(G, X[rows].T @ y[rows])
        return W
    design = (codes[:, :, None] * X[:, None, :]).reshape(len(y), K * D)
    G = design.T @ design + ridge * np.eye(K * D)
    return np.linalg.solve(G, design.T @ y).reshape(K, D)


def _best_of(one, X, y, patterns, starts, budget) -> Found:  # type: ignore[no-untyped-def]
    best, least, n_done = starts[0], np.inf, 0
    begin, size = time.process_time(), float(np.sqrt(np.mean(y**2)))
    for start in starts:
        W = one(start)
        error = float(np.sqrt(((y[:, None] - X @ W.T @ patterns.T) ** 2).min(axis=1).mean()))
        n_done += 1
        if error < least:
            best, least = W, error
        if least <= _EXACT * size or time.process_time() - begin > budget:
            break
    return best, least, n_done
