r"""Where a last layer begins: the classifier of nearest means, with scores at the right scale.

With :math:`m_k` the mean of the rows of a label, the nearest mean is that of the largest

.. math::
    z_k = c \left( \langle m_k, x \rangle - \tfrac12 \|m_k\|^2 \right)

for any c > 0: a linear layer. The scale c minimises softmax on some of the rows, each left
out of the means of its own labels: without that, a label with one row would seem certain.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.layer_training import LabelRows

__all__ = ["nearest_means", "scaled_means"]

_N_ROWS = 500  # that choose the scale
_N_SCORES = 8_000_000  # at a time; very many labels get fewer rows, 16 at least
_LOG_SCALES = (-7.0, 5.0)  # for rows of length about 1; means that never err want infinity
_PRIOR = 1.0  # rows at 0 that each mean has besides: a label with few rows is less certain


def nearest_means(
    rows: np.ndarray,
    labels: LabelRows,
    n_labels: int,
    rng: np.random.Generator,
    *,
    has_intercept: bool,
    n_threads: int = 1,
) -> np.ndarray:
    """Weights of shape (n_labels, n_features [+ 1]); zeros where means say nothing of the labels.

    Labels without a row, and rows without a label, are allowed. Without intercepts the lengths of
    the means are left out.
    """
    means, scale = scaled_means(
        rows, labels, n_labels, rng, has_intercept=has_intercept, n_threads=n_threads
    )
    with np.errstate(over="ignore", invalid="ignore"):
        own = -0.5 * np.einsum("kd,kd->k", means, means)
        parts = [scale * means] + [scale * own[:, None]] * has_intercept
    weights = np.hstack(parts).astype(np.float32)
    return weights if np.isfinite(weights).all() else np.zeros_like(weights)


def scaled_means(
    rows: np.ndarray,
    labels: LabelRows,
    n_labels: int,
    rng: np.random.Generator,
    *,
    has_intercept: bool,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.float32]:
    """The mean of each label, of shape (n_labels, n_features), and the scale c."""
    indicator = sp.csr_matrix(
        (np.ones(len(labels.ids), dtype=np.float32), labels.ids, labels.begin),
        (len(rows), n_labels),
    )
    counts = np.bincount(labels.ids, minlength=n_labels).astype(np.float32)
    sums = np.asarray(indicator.T @ rows, dtype=np.float32)
    means = sums / (counts + np.float32(_PRIOR))[:, None]
    own = -0.5 * np.einsum("kd,kd->k", means, means)
    size = int(np.clip(_N_SCORES // max(n_labels, 1), 16, _N_ROWS))
    some = np.sort(rng.permutation(len(rows))[:size])
    with blas_threads(n_threads), np.errstate(over="ignore", invalid="ignore"):
        scores = (rows[some] @ means.T).astype(np.float64) + has_intercept * own
        theirs = labels.take(some)
        _leave_out(scores, rows[some], theirs, sums, counts, has_intercept=has_intercept)
        return means, np.float32(_scale(scores, theirs))


def _leave_out(
    scores: np.ndarray,
    rows: np.ndarray,
    labels: LabelRows,
    sums: np.ndarray,
    counts: np.ndarray,
    *,
    has_intercept: bool,
) -> None:
    """Scores of the rows' own labels as if their means had been taken without them."""
    row_of = np.repeat(np.arange(len(rows)), np.diff(labels.begin))
    left = (counts[labels.ids] - 1 + _PRIOR)[:, None]
    others = (sums[labels.ids] - rows[row_of]) / left
    products = np.einsum("pd,pd->p", others, rows[row_of] - 0.5 * has_intercept * others)
    scores[row_of, labels.ids] = products


def _scale(scores: np.ndarray, labels: LabelRows) -> float:
    """The c that minimises softmax of c times the scores; 0 if none is better than 0."""
    counts = np.diff(labels.begin)
    row_of = np.repeat(np.arange(len(scores)), counts)
    own = float(scores[row_of, labels.ids].sum())
    if not np.isfinite(scores).all():
        return 0.0

    def loss(log_scale: float) -> float:
        c = np.exp(log_scale)
        return float(counts @ logsumexp(c * scores, axis=1) - c * own)

    found = minimize_scalar(loss, bounds=_LOG_SCALES, method="bounded", options={"xatol": 0.05})
    at_zero = float(counts.sum() * np.log(scores.shape[1]))
    return float(np.exp(found.x)) if found.fun < at_zero else 0.0
