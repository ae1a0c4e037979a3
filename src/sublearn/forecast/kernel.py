"""The Gaussian kernel of local models: how much each column counts in it, and explicit features.

    k(x, x') = exp(-1/2 sum_j s_j^2 (x_j - x'_j)^2)

An embedding mixes lags, temperatures and calendar columns, and a kernel with one width for all of
them wastes its rows on columns that say nothing. The scales s_j and the noise are those of largest
evidence under a Gaussian process (with a prior that keeps the scales together) on a few hundred
rows: O(n^3) once per step, whatever the length of the series.

With explicit features, whose inner products are the kernel nearly or in the mean, a kernel method
on N rows is a linear one on N x m features: K = Phi Phi' is never formed, and 100,000 rows need
100,000 x m numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import scipy.linalg
import scipy.optimize

from sublearn.interruption import check
from sublearn.io.fields import Fields, Floats, check_fields
from sublearn.typing import State

__all__ = [
    "FourierMap",
    "KernelMap",
    "NystroemMap",
    "RowsMap",
    "gaussian_kernel",
    "learn_relevance",
    "make_map",
    "restore_map",
    "squared_distances",
]

_JITTER = 1e-8
_CHUNK = 8192  # rows at a time: bounds the memory for kernel values
_PRIOR_WIDTH = 1.5  # of the logarithm of a scale
_BOUNDS = (-7.0, 1.0)
_MAX_STEPS = 30  # of the search for the scales


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """|a - b|^2 of all pairs of rows."""
    squares = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B)
    squares -= 2.0 * (A @ B.T)
    return np.maximum(squares, 0.0, out=squares)


def gaussian_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(-1/2 |a - b|^2) of all pairs of rows."""
    squares = squared_distances(A, B)
    squares *= -0.5
    return np.exp(squares, out=squares)


# --- scales -------------------------------------------------------------------------------------


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
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator, n_rows: int
) -> Relevance:
    """Scales from `n_rows` random rows; `y` should have mean 0 and standard deviation near 1."""
    chosen = rng.permutation(len(X))[:n_rows]
    x, r = np.asarray(X[chosen], dtype=np.float64), np.asarray(y[chosen], dtype=np.float64)
    d = x.shape[1]
    centre = -0.5 * np.log(d)
    start = np.concatenate([np.full(d, centre), [0.0, np.log(0.3)]])
    found = scipy.optimize.minimize(
        _minus_evidence, start, args=(x, r, centre), jac=True, method="L-BFGS-B",
        bounds=[_BOUNDS] * d + [(-2.0, 2.0), (-4.0, 0.5)], options={"maxiter": _MAX_STEPS},
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
    K = signal * gaussian_kernel(u, u)
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


# --- explicit features --------------------------------------------------------------------------


@dataclass(frozen=True)
class NystroemMap:
    """phi(x) = L^-1 k(Z, x) for landmarks Z, L L' = k(Z, Z): exact on the landmarks' span."""

    FIELDS: ClassVar[Fields] = {
        "landmarks": Floats("map", "columns", bits=64),
        "whitening": Floats("map", "map", bits=64),
    }

    landmarks: np.ndarray
    whitening: np.ndarray  # L^-1, lower triangular

    @classmethod
    def fit(cls, X: np.ndarray, n_features: int, rng: np.random.Generator) -> NystroemMap:
        """Landmarks are random rows of X, all of them if there are fewer."""
        Z = np.ascontiguousarray(X[rng.permutation(len(X))[:n_features]])
        K = gaussian_kernel(Z, Z)
        K.flat[:: len(Z) + 1] += _JITTER * len(Z)
        L = scipy.linalg.cholesky(K, lower=True, check_finite=False)
        inverse = scipy.linalg.solve_triangular(L, np.eye(len(Z)), lower=True, check_finite=False)
        # In the order in which a file keeps it: a loaded map rounds as this one does.
        return cls(Z, np.ascontiguousarray(inverse))

    @property
    def n_features(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""
        out = np.empty((len(X), self.n_features))
        for i in range(0, len(X), _CHUNK):
            check()
            K = gaussian_kernel(X[i : i + _CHUNK], self.landmarks)
            np.matmul(K, self.whitening.T, out=out[i : i + _CHUNK])
        return out


@dataclass(frozen=True)
class FourierMap:
    """phi(x) = sqrt(2 / m) cos(W x + b): random features of Rahimi and Recht."""

    FIELDS: ClassVar[Fields] = {
        "frequencies": Floats("map", "columns", bits=64),
        "phases": Floats("map", bits=64),
    }

    frequencies: np.ndarray  # (m, d)
    phases: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, n_features: int, rng: np.random.Generator) -> FourierMap:
        """Frequencies are standard normal, the spectrum of the Gaussian kernel."""
        W = rng.standard_normal((n_features, X.shape[1]))
        return cls(W, rng.uniform(0.0, 2 * np.pi, n_features))

    @property
    def n_features(self) -> int:
        """Number of frequencies."""
        return len(self.phases)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""
        return np.sqrt(2.0 / self.n_features) * np.cos(X @ self.frequencies.T + self.phases)


@dataclass(frozen=True)
class RowsMap:
    """phi(x) = k(x, Z) for rows Z: what coefficients of the kernel form are multiplied by."""

    FIELDS: ClassVar[Fields] = {"rows": Floats("map", "columns", bits=64)}

    rows: np.ndarray

    @property
    def n_features(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of X."""
        return gaussian_kernel(X, self.rows)

    def sums(self, X: np.ndarray, a: np.ndarray) -> np.ndarray:
        """sum_i a_i (k(z_i, x) + 1) for each row x of X."""
        out = np.empty(len(X))
        step = max(1, _CHUNK * 100 // max(1, len(self.rows)))
        for i in range(0, len(X), step):
            check()
            out[i : i + step] = self(X[i : i + step]) @ a
        return out + a.sum()


#: Rows to features; its attributes are the arrays that make the same map again.
KernelMap: TypeAlias = NystroemMap | FourierMap | RowsMap


def make_map(kind: str, X: np.ndarray, n_features: int, rng: np.random.Generator) -> KernelMap:
    """The map called `kind`, fitted to the rows of X."""
    if kind == "nystroem":
        return NystroemMap.fit(X, n_features, rng)
    return FourierMap.fit(X, n_features, rng)


def restore_map(state: State, n_columns: int) -> KernelMap:
    """The map with these arrays, for rows of so many columns."""
    cls: type[NystroemMap | FourierMap | RowsMap] = FourierMap
    if "landmarks" in state or "rows" in state:
        cls = NystroemMap if "landmarks" in state else RowsMap
    check_fields(state, cls.FIELDS, {"columns": n_columns})
    return cls(**state)
