"""The `score` of classifiers: the share of samples with exactly their labels, in any form."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import cast

import numpy as np
from sklearn.metrics import accuracy_score

from sublearn.metrics.names import find_positions
from sublearn.typing import LabelsLike, WeightsLike
from sublearn.validation import LabelKind, encode_labels
from sublearn.validation.labels import DecodedLabels
from sublearn.validation.sparse import check_layout

__all__ = ["share_right"]


def share_right(
    kind: LabelKind,
    classes: np.ndarray,
    y: LabelsLike,
    predicted: DecodedLabels,
    sample_weight: WeightsLike | None = None,
) -> float:
    """Accuracy; with several labels per sample, the share of samples with exactly their labels.

    Parameters
    ----------
    kind : LabelKind
        The form that labels had in `fit`, which is that of `predicted` and must be that of `y`.
    classes : ndarray
        Labels that the classifier knows.
    y : array-like, sparse matrix, or list of label lists
        True labels.
    predicted : array-like, sparse matrix, or list of label lists
        What `predict` gave.
    sample_weight : array-like of shape (n_samples,) or None
        Weights of the samples.
    """
    if kind.is_indicator:
        y = check_layout(y, "y")
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
    truth = encode_labels(y, len(predicted), for_fit=False)
    if kind.is_multilabel:
        if not truth.kind.is_multilabel or getattr(y, "ndim", 1) != 1:
            raise ValueError(f"y must be a list of label lists, as in fit, got {truth.kind.value}")
        lists = cast("Collection[Collection[Hashable]]", y)
        hits = [set(true) == set(found) for true, found in zip(lists, predicted, strict=True)]
        return float(np.average(hits, weights=sample_weight))
    if truth.kind.is_multilabel:
        raise ValueError(f"y must be one label per sample, as in fit, got {truth.kind.value}")
    # Positions, since labels need not have an order and accuracy_score sorts them.
    places = find_positions(classes, truth.classes, argument="y")
    expected = np.repeat(places, truth.counts())[np.argsort(truth.rows, kind="stable")]
    found = find_positions(classes, np.asarray(predicted), argument="predicted")
    return float(accuracy_score(expected, found, sample_weight=sample_weight))
