"""Metrics of predicted sets of labels, without a ranking.

Both arguments may come in any form that `fit` takes: 1-D labels, indicator matrix, or one list of
labels per sample.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.names import positions_with_new
from sublearn.typing import LabelsLike, WeightsLike
from sublearn.validation import encode_labels
from sublearn.validation.values import count_rows

__all__ = ["f1_macro", "f1_micro", "f1_samples", "hamming_loss", "jaccard_samples"]


def hamming_loss(y_true: LabelsLike, y_pred: LabelsLike, *, n_labels: int | None = None) -> float:
    """Share of wrong entries of the indicator matrix; for 1-D labels, share of wrong labels.

    Parameters
    ----------
    y_true, y_pred : array-like, sparse matrix or list of label lists
        Labels. If one is an indicator matrix, so must be the other.
    n_labels : int, optional
        Number of labels there are, if `y_true` and `y_pred` are lists that do not show them all;
        by default the number that occurs in them.

    Returns
    -------
    float

    Examples
    --------
    >>> hamming_loss([["a", "b"], ["c"]], [["a"], ["c"]])  # 1 wrong of 2 * 3
    0.16666666666666666
    """
    truth, predicted, is_multilabel = _read_label_sets(y_true, y_pred)
    n_wrong = truth.nnz + predicted.nnz - 2 * _count_common(truth, predicted).sum()
    if not is_multilabel:
        return float(n_wrong / (2 * truth.shape[0]))
    n_seen = truth.shape[1]
    if n_labels is not None and n_labels < n_seen:
        raise ValueError(f"n_labels must be at least the number seen ({n_seen}), got {n_labels}")
    return float(n_wrong / (truth.shape[0] * max(1, n_labels or n_seen)))


def f1_micro(y_true: LabelsLike, y_pred: LabelsLike) -> float:
    """F1 over all entries at once: twice the common entries over the entries of both; 0 for none.

    Arguments are those of :func:`hamming_loss`.
    """
    truth, predicted, _ = _read_label_sets(y_true, y_pred)
    return float(2 * _count_common(truth, predicted).sum() / max(1, truth.nnz + predicted.nnz))


def f1_macro(y_true: LabelsLike, y_pred: LabelsLike) -> float:
    """Mean over labels of the F1 of each label; a label neither true nor predicted counts as 0.

    Arguments are those of :func:`hamming_loss`.
    """
    truth, predicted, _ = _read_label_sets(y_true, y_pred)
    if truth.shape[1] == 0:
        return 0.0
    n_both = count_by_label(truth) + count_by_label(predicted)
    return float(np.mean(2 * _count_common(truth, predicted) / np.maximum(1, n_both)))


def f1_samples(
    y_true: LabelsLike, y_pred: LabelsLike, *, sample_weight: WeightsLike | None = None
) -> float:
    """Mean over samples of the F1 of each sample's set; a sample without any label counts as 0.

    Parameters
    ----------
    y_true, y_pred : array-like, sparse matrix or list of label lists
        Labels. If one is an indicator matrix, so must be the other.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the samples.

    Returns
    -------
    float

    Examples
    --------
    >>> f1_samples([["a", "b"], ["c"]], [["a"], ["c"]])  # 2 * 1 / (2 + 1) and 1
    0.8333333333333333
    """
    truth, predicted, _ = _read_label_sets(y_true, y_pred)
    common = _count_by_sample(truth.multiply(predicted).tocsr())
    sizes = _count_by_sample(truth) + _count_by_sample(predicted)
    return float(np.average(2 * common / np.maximum(1, sizes), weights=sample_weight))


def jaccard_samples(y_true: LabelsLike, y_pred: LabelsLike) -> float:
    """Mean over samples of common labels divided by labels in either set; 0 where there are none.

    Arguments are those of :func:`hamming_loss`.
    """
    truth, predicted, _ = _read_label_sets(y_true, y_pred)
    common = _count_by_sample(truth.multiply(predicted).tocsr())
    either = _count_by_sample(truth) + _count_by_sample(predicted) - common
    return float(np.mean(common / np.maximum(1, either)))


def _read_label_sets(
    y_true: LabelsLike, y_pred: LabelsLike
) -> tuple[sp.csr_matrix, sp.csr_matrix, bool]:
    """Two boolean matrices with the same columns, and whether a sample may carry many labels."""
    n_samples = count_rows(y_true, "y_true")
    if n_samples == 0:
        raise ValueError("y_true must have at least one sample, got 0")
    truth = encode_labels(y_true, n_samples, argument="y_true", for_fit=False)
    predicted = encode_labels(y_pred, n_samples, argument="y_pred", for_fit=False)
    if truth.kind.is_indicator != predicted.kind.is_indicator:
        raise ValueError(
            f"y_pred must have the form of y_true ({truth.kind.value}), got {predicted.kind.value}"
        )
    is_multilabel = truth.kind.is_multilabel or predicted.kind.is_multilabel
    if not truth.kind.is_indicator:
        ids, n_labels = positions_with_new(truth.classes, predicted.classes, argument="y_pred")
        own = truth.to_csr(np.arange(truth.n_classes), n_labels)
        return own, predicted.to_csr(ids, n_labels), is_multilabel
    if truth.n_classes != predicted.n_classes:
        raise ValueError(
            f"y_pred must have as many columns as y_true ({truth.n_classes}), "
            f"got {predicted.n_classes}"
        )
    return truth.to_csr(), predicted.to_csr(), is_multilabel


def _count_common(truth: sp.csr_matrix, predicted: sp.csr_matrix) -> np.ndarray:
    return count_by_label(truth.multiply(predicted).tocsr())


def count_by_label(indicator: sp.csr_matrix) -> np.ndarray:
    """Number of samples that carry each label."""
    return np.bincount(indicator.indices, minlength=indicator.shape[1])


def _count_by_sample(indicator: sp.csr_matrix) -> np.ndarray:
    return np.diff(indicator.indptr)
