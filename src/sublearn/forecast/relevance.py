"""How much each column of the embedding matters: length scales by a Gaussian process's evidence.

An embedding mixes lags, temperatures and calendar columns, and a kernel with one width for all of
them wastes its rows on columns that say nothing. The scales s_j of

    k(x, x') = exp(-1/2 sum_j s_j^2 (x_j - x'_j)^2)

and the noise are those of largest evidence (with a prior that keeps the scales together) on a few
hundred rows: O(n^3) once per step, whatever the length of the series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from sublearn.interruption import check

__all__ = ["Relevance", "learn_relevance"]

_PRIOR_WIDTH = 1.5  # of the logarithm of a scale
_BOUNDS = (-7.0, 1.0)


@dataclass(frozen=True)
class Relevance:
    """Scales of the columns, and the standard deviations of signal and noise."""

    scales: np.ndarray
    signal: float
    noise: float

    @property
    def loss_weight(self) -> float:
        """The C at which the slope of the tube loss pulls as hard as a residual of typical size.

        For Gaussian noise the pull of a residual r on a kernel of amplitude 1 is
        r signal^2 / noise^2; the mean of |r| is 0.8 noise.
        """
        return 0.8 * self.signal**2 / self.noise


def learn_relevance(
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator, *, n_rows: int = 700, max_iter: int = 30
) -> Relevance:
    """Scales from `n_rows` random rows; `y` should have mean 0 and standard deviation near 1."""
    chosen = rng.permutation(len(X))[:n_rows]
    x, r = np.asarray(X[chosen], dtype=np.float64), np.asarray(y[chosen], dtype=np.float64)
    d = x.shape[1]
    centre = -0.5 * np.log(d)
    start = np.concatenate([np.full(d, centre), [0.0, np.log(0.3)]])
    found = scipy.optimize.minimize(
        _minus_evidence, start, args=(x, r, centre), jac=True, method="L-BFGS-B",
        bounds=[_BOUNDS] * d + [(-2.0, 2.0), (-4.0, 0.5)], options={"maxiter": max_iter},
    )  # fmt: skip
    p = found.x
    return Relevance(np.exp(p[:d]), float(np.exp(p[d])), float(np.exp(p[d + 1])))


def _minus_evidence(
    p: np.ndarray, x: np.ndarray, r: np.ndarray, centre: float
) -> tuple[float, np.ndarray]:
    """Minus the log evidence and prior, and the gradient by log scales, log signal, log noise."""
    check()
    d, n = x.shape[1], len(x)
    signal, noise = np.exp(2 * p[d]), np.exp(2 * p[d + 1])
    u = x * np.exp(p[:d])
    q = np.einsum("ij,ij->i", u, u)
    K = signal * np.exp(-0.5 * np.maximum(q[:, None] + q - 2.0 * (u @ u.T), 0.0))
    A = K.copy()
    A.flat[:: n + 1] += noise
    factor = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    half_log_det = float(np.log(factor.diagonal()).sum())
    a = scipy.linalg.cho_solve((factor, True), r, check_finite=False)
    lower = np.tril(scipy.linalg.lapack.dpotri(factor, lower=1)[0])
    inverse = lower + lower.T
    inverse.flat[:: n + 1] *= 0.5
    pull = np.outer(a, a) - inverse  # twice the derivative of the log evidence by A
    M = pull * K
    away = (p[:d] - centre) / _PRIOR_WIDTH
    value = 0.5 * float(r @ a) + half_log_det + 0.5 * float(away @ away)
    gradient = np.empty(d + 2)
    # The derivative of K by log s_j is -K (u_aj - u_bj)^2, u = x s.
    gradient[:d] = M.sum(axis=1) @ (u * u) - np.einsum("ij,ij->j", u, M @ u) + away / _PRIOR_WIDTH
    gradient[d] = -M.sum()
    gradient[d + 1] = -noise * np.trace(pull)
    return value, gradient
