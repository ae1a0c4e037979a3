"""Rivals of the Latent Feature Lasso: X = Z W with binary Z, K columns, no intercept.

Each makes one attempt and returns Z; the benchmark repeats attempts until the time is up and keeps
the Z whose least-squares fit is best.

- `bp_means`: alternating minimisation from random starts (Broderick, Kulis, Jordan 2013), with K
  fixed.
- `gibbs`: the collapsed sampler of the linear-Gaussian model with K features and a Beta prior on
  their frequency (Griffiths, Ghahramani 2005; the finite form of Doshi-Velez, Ghahramani 2009).
- `variational`: mean field of the same model (Doshi-Velez, Miller, Van Gael, Teh 2009).
- `exhaustive`: binary vectors close to the span of X, by 2^K solves (Slawski, Hein, Lutsik 2013).
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import digamma

__all__ = ["METHODS", "fit_features", "repeated"]

_MOST_EXHAUSTIVE = 14  # 16,384 candidates; at 20 a million of them take minutes
_GIBBS_SWEEPS = 30
_MEAN_FIELD_STEPS = 100


def fit_features(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """W of least squares."""
    return np.linalg.lstsq(Z.astype(float), X, rcond=None)[0]


def repeated(method, X, n_components, rng, is_over):
    """The best Z of attempts until `is_over()`; the first attempt is always made."""
    best, least = None, np.inf
    while best is None or not is_over():
        Z = METHODS[method](X, n_components, rng, is_over)
        error = float(np.square(X - Z @ fit_features(X, Z)).sum())
        if error < least:
            best, least = Z, error
        if method == "exhaustive":  # nothing in it is random
            break
    return best


def _start(X, n_components, rng):
    """Rows of the data as features, or random codes; which is better depends on the data."""
    n = len(X)
    if rng.random() < 0.5:
        Z = (rng.random((n, n_components)) < rng.uniform(0.2, 0.8, n_components)).astype(float)
        return Z, fit_features(X, Z)
    W = X[rng.choice(n, n_components, replace=n < n_components)].copy()
    return _flipped(X, np.zeros((n, n_components)), W), W


def bp_means(X, n_components, rng, is_over):
    Z, W = _start(X, n_components, rng)
    last = np.inf
    for _ in range(100):
        Z = _flipped(X, Z, W)
        W = fit_features(X, Z)
        R = X - Z @ W
        for k in np.flatnonzero(Z.sum(axis=0) == 0):  # an idle feature takes the worst row
            W[k] = R[np.argmax(np.square(R).sum(axis=1))]
        error = float(np.square(R).sum())
        if error > last * (1 - 1e-6):
            break
        last = error
    return Z


def _flipped(X, Z, W):
    """Passes over the features, each code set to its best value given the others."""
    Z = Z.copy()
    gram, scores = W @ W.T, X @ W.T
    slack = scores - Z @ gram
    for _ in range(20):
        changed = False
        for k in range(len(W)):
            want = (slack[:, k] + Z[:, k] * gram[k, k] > 0.5 * gram[k, k]).astype(float)
            step = want - Z[:, k]
            if step.any():
                changed = True
                Z[:, k] = want
                slack -= step[:, None] * gram[k]
        if not changed:
            break
    return Z


def gibbs(X, n_components, rng, is_over):
    Z = (rng.random((len(X), n_components)) < 0.5).astype(float)
    best, least = Z, np.inf
    for _ in range(_GIBBS_SWEEPS):
        W = fit_features(X, Z)
        noise = float(np.square(X - Z @ W).mean()) + 1e-8 * float(X.var())
        power = float(np.square(W).mean()) + 1e-12
        _gibbs_sweep(X, Z, noise, noise / power, rng, is_over)
        error = float(np.square(X - Z @ fit_features(X, Z)).sum())
        if error < least:
            best, least = Z.copy(), error
        if is_over():
            break
    return best


def _gibbs_sweep(X, Z, noise, ridge, rng, is_over):
    """One pass over rows and features; W is integrated out given the other rows."""
    n, d = X.shape
    k_all = Z.shape[1]
    gram, cross, counts = Z.T @ Z + ridge * np.eye(k_all), Z.T @ X, Z.sum(axis=0)
    for i in range(n):
        if is_over():
            return
        z = Z[i]
        gram -= np.outer(z, z)
        cross -= np.outer(z, X[i])
        counts -= z
        M = np.linalg.inv(gram)
        mean = M @ cross  # posterior mean of W without row i
        G, s = mean @ mean.T, mean @ X[i]
        square = float(X[i] @ X[i])
        for k in range(k_all):
            levels = []
            for value in (0.0, 1.0):
                z[k] = value
                spread = noise * (1.0 + float(z @ M @ z))
                left = square - 2.0 * float(s @ z) + float(z @ G @ z)
                prior = counts[k] + 1.0 if value else n - counts[k]
                levels.append(np.log(prior) - 0.5 * left / spread - 0.5 * d * np.log(spread))
            odds = np.clip(levels[0] - levels[1], -700, 700)
            z[k] = float(rng.random() < 1.0 / (1.0 + np.exp(odds)))
        gram += np.outer(z, z)
        cross += np.outer(z, X[i])
        counts += z


def variational(X, n_components, rng, is_over):
    """Noise and size of features are learned too: fixed at the spread of the data, as a first
    version had it, they make "no feature anywhere" the optimum of every step on wide data."""
    n, d = X.shape
    nu, phi = _start(X, n_components, rng)
    nu = 0.1 + 0.8 * nu
    R, least = X - nu @ phi, 1e-9 * float(np.square(X).mean()) + 1e-300
    noise, power = float(np.square(R).mean()) + least, float(np.square(phi).mean()) + least
    spread = np.zeros(n_components)  # variance of each entry of a feature
    for _ in range(_MEAN_FIELD_STEPS):
        before = nu.copy()
        for k in rng.permutation(n_components):
            R += np.outer(nu[:, k], phi[k])
            rows = float(nu[:, k].sum())
            spread[k] = noise / (rows + noise / power)
            phi[k] = (nu[:, k] @ R) / (rows + noise / power)
            own = float(phi[k] @ phi[k]) + d * spread[k]
            odds = digamma(rows + 1.0) - digamma(n - rows + 1.0)
            odds = np.clip(odds + (R @ phi[k] - 0.5 * own) / noise, -500, 500)
            nu[:, k] = 1.0 / (1.0 + np.exp(-odds))
            R -= np.outer(nu[:, k], phi[k])
        squares, rows = np.square(phi).sum(axis=1), nu.sum(axis=0)
        blur = float((nu * (1 - nu)).sum(axis=0) @ squares + d * (rows @ spread))
        noise = (float(np.square(R).sum()) + blur) / (n * d) + least
        power = float((squares + d * spread).mean()) / d + least
        if np.abs(nu - before).max() < 1e-3 or is_over():
            break
    return (nu > 0.5).astype(float)


def exhaustive(X, n_components, rng, is_over):
    if n_components > _MOST_EXHAUSTIVE:
        raise ValueError(f"2^{n_components} candidates are too many")
    U = np.linalg.svd(X, full_matrices=False)[0][:, :n_components]
    k = U.shape[1]
    rows = _independent_rows(U)
    onto = U @ np.linalg.inv(U[rows])  # z from its entries in these rows
    near: list[tuple[float, np.ndarray]] = []
    for block in _patterns(k, 4096):
        candidates = block @ onto.T
        rounded = (candidates > 0.5).astype(np.int8)
        distances = np.square(candidates - rounded).sum(axis=1)
        near += [(float(distances[i]), rounded[i]) for i in np.argsort(distances)[: 4 * k]]
        near = sorted(near, key=lambda pair: pair[0])[: 8 * k]
    return _first_independent([z for _, z in near if z.any()], n_components, len(X))


def _independent_rows(U):
    """Rows of a well-conditioned square part, by pivoted QR."""
    import scipy.linalg

    return scipy.linalg.qr(U.T, mode="economic", pivoting=True)[2][: U.shape[1]]


def _patterns(k, size):
    every = itertools.product((0.0, 1.0), repeat=k)
    while block := list(itertools.islice(every, size)):
        yield np.array(block)


def _first_independent(vectors, n_components, n):
    chosen: list[np.ndarray] = []
    for z in vectors:
        trial = np.array([*chosen, z], dtype=float)
        if np.linalg.matrix_rank(trial) == len(trial):
            chosen.append(z)
        if len(chosen) == n_components:
            break
    return np.array(chosen, dtype=float).T if chosen else np.zeros((n, 1))


METHODS = {
    "bp_means": bp_means,
    "gibbs": gibbs,
    "variational": variational,
    "exhaustive": exhaustive,
}
