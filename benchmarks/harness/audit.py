"""The audit: the objective of a linear model with many labels, recomputed from its weights.

An entrant that minimises a known objective returns its weights, and the benchmark works out what
they are worth on the training rows. All scores are made, in blocks, so this is for problems where
rows times labels are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from harness.arrays import Arrays

__all__ = ["LINEAR_AUDIT", "Audit", "linear_objective"]

_MOST_SCORES = 2 * 10**8
_BLOCK = 2**22


@dataclass(frozen=True)
class Audit:
    """Whether a problem is small enough, and figures from training arrays and a solution."""

    is_cheap: Callable[[Arrays], bool]
    check: Callable[[Arrays, Arrays], dict[str, float]]


def linear_objective(train: Arrays, solution: Arrays) -> float:
    """1/2 |W|^2 + l1 |W|_1 + C * loss, with the loss that ``solution["form"]`` names.

    "one-vs-rest": squared hinge of every row and every label that has a row, and 1/2 |b|^2.
    "separation": per row, how far the worst pair of a wrong and a right label is from margin 1.
    """
    X, Y = sp.csr_matrix(train["X"], dtype=np.float64), sp.csr_matrix(train["Y"])
    coef = sp.csr_matrix(solution["coef"], dtype=np.float64)
    bias = np.asarray(solution["intercept"], dtype=np.float64)
    loss = _LOSSES[str(solution["form"])]
    used = Y.getnnz(axis=0) > 0
    total = 0.0
    step = max(1, _BLOCK // Y.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        scores = (X[rows] @ coef.T).toarray() + bias
        total += loss(scores, Y[rows].toarray() > 0, used)
    penalty = 0.5 * (coef.data**2).sum() + float(solution["l1"]) * np.abs(coef.data).sum()
    if str(solution["form"]) == "one-vs-rest":
        penalty += 0.5 * (bias[used] ** 2).sum()
    return float(penalty + float(solution["C"]) * total)


def _squared_hinge(scores: np.ndarray, is_right: np.ndarray, used: np.ndarray) -> float:
    margins = np.where(is_right, scores, -scores)[:, used]
    return float((np.maximum(0, 1 - margins) ** 2).sum())


def _separation(scores: np.ndarray, is_right: np.ndarray, used: np.ndarray) -> float:
    wrong = np.where(is_right, -np.inf, scores).max(axis=1)
    right = np.where(is_right, scores, np.inf).min(axis=1)
    return float(np.maximum(0, 1 + wrong - right).sum())


_LOSSES: Mapping[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "one-vs-rest": _squared_hinge,
    "separation": _separation,
}

LINEAR_AUDIT = Audit(
    is_cheap=lambda train: train["Y"].shape[0] * train["Y"].shape[1] <= _MOST_SCORES,
    check=lambda train, solution: {"objective_audited": linear_objective(train, solution)},
)
