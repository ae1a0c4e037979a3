"""The judge: quality recomputed from the predictions that came back, by the benchmark itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from harness.arrays import Arrays

__all__ = ["InvalidPrediction", "Judge", "precision_at", "ranking_judge"]

#: From what the judge alone knows and what an entrant answered to figures by name.
Judge = Callable[[Arrays, Arrays], dict[str, float]]


class InvalidPrediction(ValueError):
    """An answer that cannot be judged."""


def ranking_judge(ks: Sequence[int] = (1, 3, 5)) -> Judge:
    """Judge of ranked labels: ``predictions["labels"]`` is (rows, k), best first, -1 for none.

    P@k, PSP@k if the truth holds the propensities of the labels, and nDCG at the last k.
    """
    cuts = list(ks)

    def judge(truth: Arrays, predictions: Arrays) -> dict[str, float]:
        Y, labels = truth["Y"], predictions["labels"]
        figures = {f"P@{k}": precision_at(k, Y, labels) for k in cuts}
        ranked = _once(_checked(Y, labels), cuts[-1])
        figures.update(_propensity_scored(cuts, Y, ranked, truth.get("propensity")))
        figures[f"nDCG@{cuts[-1]}"] = _ndcg(cuts[-1], Y, ranked)
        return figures

    return judge


def precision_at(k: int, truth: sp.csr_matrix, labels: np.ndarray) -> float:
    """Mean over all rows of (right labels among the first `k`) / `k`.

    Rows without labels count as zero; a label named twice counts once; places left empty (-1, or
    fewer than `k` columns) count as wrong.
    """
    labels = _checked(truth, labels)[:, :k]
    n_rows, n_labels = truth.shape
    rows, columns = np.nonzero(labels >= 0)
    named = np.unique(rows * np.int64(n_labels) + labels[rows, columns])
    right = sp.csr_matrix(truth).astype(bool).tocoo()
    return np.isin(named, right.row * np.int64(n_labels) + right.col).sum() / (k * n_rows)


def _propensity_scored(
    ks: Sequence[int], truth: sp.csr_matrix, ranked: np.ndarray, propensity: np.ndarray | None
) -> dict[str, float]:
    from sublearn.metrics import psp_at_k

    if propensity is None:
        return {}
    values = psp_at_k(truth, ranked, propensity, list(ks))
    return {f"PSP@{k}": value for k, value in zip(ks, values, strict=True)}


def _ndcg(k: int, truth: sp.csr_matrix, ranked: np.ndarray) -> float:
    from sublearn.metrics import ndcg_at_k

    return float(ndcg_at_k(truth, ranked, k))


def _once(labels: np.ndarray, width: int) -> np.ndarray:
    """Exactly `width` columns, in which a label that was named before is a place left empty."""
    ranked = np.full((len(labels), width), -1, dtype=np.int64)
    ranked[:, : labels.shape[1]] = labels[:, :width]
    for place in range(1, width):
        again = (ranked[:, :place] == ranked[:, place : place + 1]).any(axis=1)
        ranked[again, place] = -1
    return ranked


def _checked(truth: sp.csr_matrix, labels: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 2 or len(labels) != truth.shape[0]:
        raise InvalidPrediction(
            f"labels must have {truth.shape[0]} rows of ranked labels, got shape {labels.shape}"
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise InvalidPrediction(f"labels must be integers, got {labels.dtype}")
    if labels.size and (labels.min() < -1 or labels.max() >= truth.shape[1]):
        raise InvalidPrediction(
            f"labels must lie in [-1, {truth.shape[1]}), got [{labels.min()}, {labels.max()}]"
        )
    return labels.astype(np.int64)
