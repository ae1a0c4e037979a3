"""Metrics of labels in a taxonomy: a prediction near the truth is better than one far from it.

A label stands for itself and all its ancestors. The taxonomy is any object with `encode`, from
labels to a boolean matrix with ancestors added, and `levels`; see `sublearn.hierarchy.Taxonomy`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.label_sets import count_by_label
from sublearn.typing import LabelsLike
from sublearn.validation.values import show

__all__ = [
    "LevelScores",
    "f1_by_level",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
]


class _Taxonomy(Protocol):
    levels: np.ndarray

    def encode(self, y: LabelsLike, *, argument: str) -> sp.csr_matrix: ...


class LevelScores(NamedTuple):
    """F1 of the labels of each level, roots first: arrays with an entry for each level."""

    micro: np.ndarray
    macro: np.ndarray


def hierarchical_precision(y_true: LabelsLike, y_pred: LabelsLike, taxonomy: _Taxonomy) -> float:
    """Share of predicted labels, ancestors included, that are right; 0 if none is predicted.

    Parameters
    ----------
    y_true, y_pred : array-like, sparse matrix or list of label lists
        Labels of the taxonomy: names, one per sample or a list of them, or an indicator matrix.
    taxonomy : Taxonomy
        The labels and their ancestors.

    Returns
    -------
    float
    """
    hits, _, predicted = _counts(y_true, y_pred, taxonomy)
    return float(hits.sum() / max(1, predicted.sum()))


def hierarchical_recall(y_true: LabelsLike, y_pred: LabelsLike, taxonomy: _Taxonomy) -> float:
    """Share of true labels, ancestors included, that are predicted; 0 if there are none.

    Arguments are those of :func:`hierarchical_precision`.
    """
    hits, true, _ = _counts(y_true, y_pred, taxonomy)
    return float(hits.sum() / max(1, true.sum()))


def hierarchical_f1(y_true: LabelsLike, y_pred: LabelsLike, taxonomy: _Taxonomy) -> float:
    """Harmonic mean of hierarchical precision and recall.

    Arguments are those of :func:`hierarchical_precision`.

    Examples
    --------
    >>> from sublearn.hierarchy import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["rec.autos", "rec.sport", "sci"])
    >>> hierarchical_f1(["rec.autos"], ["rec.sport"], taxonomy)  # "rec" is right
    0.5
    """
    hits, true, predicted = _counts(y_true, y_pred, taxonomy)
    return float(2 * hits.sum() / max(1, true.sum() + predicted.sum()))


def f1_by_level(y_true: LabelsLike, y_pred: LabelsLike, taxonomy: _Taxonomy) -> LevelScores:
    """Micro and macro F1 of the labels of each level of the taxonomy.

    In the macro average of a level stand the labels that occur in `y_true` or in `y_pred`.
    Arguments are those of :func:`hierarchical_precision`.
    """
    hits, true, predicted = _counts(y_true, y_pred, taxonomy)
    micro, macro = [], []
    for level in range(int(taxonomy.levels.max()) + 1):
        at = (taxonomy.levels == level) & (true + predicted > 0)
        both = true[at] + predicted[at]
        micro.append(2 * hits[at].sum() / max(1, both.sum()))
        macro.append(np.mean(2 * hits[at] / both) if at.any() else 0.0)
    return LevelScores(np.array(micro), np.array(macro))


def _counts(
    y_true: LabelsLike, y_pred: LabelsLike, taxonomy: _Taxonomy
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right, true and predicted entries of each label, ancestors included."""
    if not hasattr(taxonomy, "encode"):
        raise ValueError(f"taxonomy must be a Taxonomy, got {show(taxonomy)}")
    truth = taxonomy.encode(y_true, argument="y_true")
    predicted = taxonomy.encode(y_pred, argument="y_pred")
    if truth.shape != predicted.shape:
        raise ValueError(
            f"y_pred must have one row per sample ({truth.shape[0]}), got {predicted.shape[0]}"
        )
    hits = sp.csr_matrix(truth.multiply(predicted))
    return count_by_label(hits), count_by_label(truth), count_by_label(predicted)
