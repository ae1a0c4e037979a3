"""Rows kept away from training, to see when it stops paying: `eval_set`, or a share of the data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.names import find_positions
from sublearn.typing import EvalSet
from sublearn.validation import EncodedLabels, check_features, encode_labels
from sublearn.validation.features import as_precise_as
from sublearn.validation.values import show

__all__ = ["patience_of", "pick", "pick_labels", "read_eval_set", "split_rows"]


_PATIENCE = 3  # passes; held-out precision rarely rises again after as many without a gain


def patience_of(early_stopping: bool | int) -> int:
    """How many passes without a gain end a fit with held-out rows; `early_stopping` may tell."""
    return _PATIENCE if isinstance(early_stopping, (bool, np.bool_)) else int(early_stopping)


def split_rows(
    n_rows: int, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows, both increasing; at least one of each."""
    n_held_out = min(max(round(fraction * n_rows), 1), n_rows - 1)
    order = rng.permutation(n_rows)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def pick(
    X: sp.csr_matrix, labels: EncodedLabels, rows: np.ndarray
) -> tuple[sp.csr_matrix, EncodedLabels]:
    """Some rows, increasing, with their labels; labels that none of them carries stay."""
    return X[rows], pick_labels(labels, rows)


def pick_labels(labels: EncodedLabels, rows: np.ndarray) -> EncodedLabels:
    """The labels of some rows, increasing; those that none of them carries stay."""
    return _from_indicator(labels.to_csr()[rows], labels)


def read_eval_set(
    eval_set: EvalSet, estimator: object, labels: EncodedLabels, dtype: np.dtype
) -> tuple[sp.csr_matrix, EncodedLabels]:
    """Features and labels of `eval_set`, by the label ids of the fit.

    Parameters
    ----------
    eval_set : pair (X, y)
        Labels in the form of the fit. A label unknown there is dropped: no prediction can hit it.
    estimator : estimator
        Knows the number of features.
    labels : EncodedLabels
        The labels of the fit.
    dtype : dtype
        Of the features of the fit.

    Returns
    -------
    csr_matrix, EncodedLabels
    """
    name = type(estimator).__name__
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 2:
        raise ValueError(f"{name}: eval_set must be a pair (X, y), got {show(eval_set)}")
    try:
        X = as_precise_as(dtype, check_features(estimator, eval_set[0], reset=False), "X")
    except ValueError as error:
        raise ValueError(f"{name}: eval_set[0] must be features as in fit: {error}") from error
    given = encode_labels(
        eval_set[1], X.shape[0], estimator_name=name, argument="eval_set[1]", for_fit=False
    )
    if given.kind.is_multilabel != labels.kind.is_multilabel:
        raise ValueError(
            f"{name}: eval_set[1] must have the form of y ({labels.kind.value}), "
            f"got {given.kind.value}"
        )
    if given.kind.is_indicator != labels.kind.is_indicator:
        raise ValueError(
            f"{name}: eval_set[1] must have the form of y ({labels.kind.value}), "
            f"got {given.kind.value}"
        )
    if labels.kind.is_indicator and given.n_classes != labels.n_classes:
        raise ValueError(
            f"{name}: eval_set[1] must have {labels.n_classes} columns, got {given.n_classes}"
        )
    return X, _from_indicator(_by_labels_of(labels, given), labels)


def _by_labels_of(labels: EncodedLabels, given: EncodedLabels) -> sp.csr_matrix:
    """The given indicator matrix with the columns of the fit."""
    found = find_positions(labels.classes, given.classes, argument="eval_set[1]")
    columns = np.where(found >= 0, found, labels.n_classes)  # one column more for unknown labels
    return given.to_csr(columns, labels.n_classes + 1)[:, : labels.n_classes]


def _from_indicator(indicator: sp.csr_matrix, labels: EncodedLabels) -> EncodedLabels:
    by_label = indicator.tocsc()
    by_label.sort_indices()
    return EncodedLabels(
        indptr=by_label.indptr.astype(np.int64),
        rows=by_label.indices.astype(np.int32),
        classes=labels.classes,
        kind=labels.kind,
        n_samples=indicator.shape[0],
    )
