"""Covariance matrices as users give them, and what a precision matrix makes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from sublearn.errors import ParameterError
from sublearn.interruption import aside
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "check_l1",
    "check_symmetric",
    "extended_bic",
    "log_likelihood",
    "refuse_no_solution",
    "scatter",
]

_ASYMMETRY = 1e-8  # of a covariance matrix, as a correlation: what rounding may leave
_LEAST_VARIANCE = 1e-300  # its inverse is a number, with room for sums
_INDEFINITE = 1e-8  # of a negative eigenvalue, for each variable: what rounding may leave
_EBIC_GAMMA = 0.5  # Foygel and Drton (2010)


def scatter(centered: np.ndarray) -> np.ndarray:
    """Mean of the outer products of rows with themselves."""
    n_operations = float(centered.size) * centered.shape[1]
    return aside(np.matmul, centered.T, centered, n_operations=n_operations) / len(centered)


def check_symmetric(S: np.ndarray, name: str) -> np.ndarray:
    """A covariance matrix without what rounding left in it, or a refusal."""
    if S.shape[0] != S.shape[1]:
        raise ValueError(f"{name}: X must be a square covariance matrix, got shape {S.shape}")
    negative = np.flatnonzero(S.diagonal() < 0)
    if len(negative):
        raise ValueError(
            f"{name}: X must be a covariance matrix, got the variance "
            f"{S[negative[0], negative[0]]:g} of variable {negative[0]}"
        )
    scale = np.sqrt(S.diagonal())
    difference = np.abs(S - S.T) - _ASYMMETRY * np.outer(scale, scale)
    if (difference > 0).any():
        i, j = np.unravel_index(np.argmax(difference), S.shape)
        raise ValueError(
            f"{name}: X must be symmetric as a covariance matrix is, got {S[i, j]:g} in row "
            f"{i}, column {j} and {S[j, i]:g} the other way round"
        )
    S = 0.5 * (S + S.T)
    if _least_eigenvalue_below(_correlation(S), -_INDEFINITE * len(S)):
        raise ValueError(
            f"{name}: X must be positive semidefinite as a covariance matrix is, got a "
            "matrix with a negative eigenvalue"
        )
    return S


def check_l1(l1: ArrayLike, shape: tuple[int, ...], name: str) -> float | np.ndarray:
    """One weight, or a symmetric matrix of them."""
    if isinstance(l1, (int, float, np.number)):
        return float(l1)
    try:
        weights = np.array(l1, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be numbers, got {show(l1)}") from error
    if weights.shape != shape:
        raise ParameterError(
            f"{name} must be a number or a matrix of shape {shape}, got shape {weights.shape}"
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ParameterError(f"{name} must hold finite numbers that are not negative")
    if not np.array_equal(weights, weights.T):
        raise ParameterError(f"{name} must be a symmetric matrix")
    return weights


def refuse_no_solution(
    S: np.ndarray, l1: float | np.ndarray, diagonal: float | np.ndarray, name: str
) -> None:
    """Without a positive definite matrix in the dual's box the objective has no minimum."""
    free = np.flatnonzero(S.diagonal() + diagonal <= 0)
    if len(free):
        raise ValueError(
            f"{name}: X must have variables that vary unless penalise_diagonal is set, got "
            f"variable {free[0]} with variance 0"
        )
    least = float((S.diagonal() + diagonal).min())
    if least < _LEAST_VARIANCE:
        raise ValueError(
            f"{name}: X must have variances of at least {_LEAST_VARIANCE:g}, got {least:g}; "
            "scale its columns"
        )
    off = l1 if isinstance(l1, float) else l1[~np.eye(len(S), dtype=bool)].max(initial=0.0)
    if off > 0 or len(S) == 1:
        return
    shifted = S + np.diag(np.broadcast_to(diagonal, len(S)))
    if _least_eigenvalue_below(_correlation(shifted), 1e-12 * len(S)):
        raise ValueError(
            f"{name}.l1 must be positive where the covariance matrix is singular, got 0"
        )


def _correlation(S: np.ndarray) -> np.ndarray:
    """S scaled to a unit diagonal; a variable without variance keeps its row as it is."""
    scale = np.sqrt(S.diagonal())
    scale[scale == 0] = 1.0
    return S / scale / scale[:, None]


def _least_eigenvalue_below(A: np.ndarray, level: float) -> bool:
    """Whether A - level I has no Cholesky factor."""
    shifted = A - level * np.eye(len(A))
    try:
        aside(np.linalg.cholesky, shifted, n_operations=float(len(A)) ** 3 / 3)
    except scipy.linalg.LinAlgError:
        return True
    return False


def log_likelihood(S: np.ndarray, precision: np.ndarray) -> float:
    """Mean over rows whose second moments about the location are S."""
    log_det = np.linalg.slogdet(precision)[1]
    constant = len(S) * np.log(2 * np.pi)
    return float(0.5 * (log_det - (S * precision).sum() - constant))


def extended_bic(S: np.ndarray, precision: np.ndarray, n_rows: int) -> float:
    """-2 log-likelihood of the rows + |E| (log n + 4 gamma log p), |E| links, gamma = 1/2."""
    n_links = (np.count_nonzero(precision) - len(S)) / 2
    price = np.log(n_rows) + 4 * _EBIC_GAMMA * np.log(len(S))
    return float(-2 * n_rows * log_likelihood(S, precision) + n_links * price)
