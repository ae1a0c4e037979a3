"""Labels, weights and features of a fit, cut, joined and matched as arrays."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.validation import EncodedLabels, LabelKind
from sublearn.validation.values import show

__all__ = [
    "drop_complement",
    "matched",
    "order_of",
    "padded",
    "refuse_other_labels",
    "refuse_out_of_range",
    "type_of",
    "without_labels",
    "without_weightless",
]


def drop_complement(labels: EncodedLabels) -> EncodedLabels:
    """With two classes in a 1-D `y` one problem is enough: the second class against the first."""
    if labels.kind is not LabelKind.BINARY:
        return labels
    first, last = labels.indptr[1], labels.indptr[2]
    return EncodedLabels(
        indptr=np.array([0, last - first], dtype=np.int64),
        rows=labels.rows[first:last],
        classes=labels.classes[1:],
        kind=labels.kind,
        n_samples=labels.n_samples,
    )


def without_weightless(
    X: sp.csr_matrix, labels: EncodedLabels, row_weight: np.ndarray | None
) -> tuple[sp.csr_matrix, EncodedLabels, np.ndarray | None]:
    """Samples of weight zero left out: the solver divides by the others."""
    if row_weight is None or (row_weight > 0).all():
        return X, labels, row_weight
    keep = row_weight > 0
    position = (np.cumsum(keep) - 1).astype(labels.rows.dtype)
    labels = _without_entries(labels, ~keep[labels.rows])
    labels = replace(labels, rows=position[labels.rows], n_samples=int(keep.sum()))
    return X[keep], labels, row_weight[keep]


def without_labels(labels: EncodedLabels, is_left_out: np.ndarray) -> EncodedLabels:
    """Labels that no sample carries are not trained."""
    return _without_entries(labels, np.repeat(is_left_out, labels.counts()))


def _without_entries(labels: EncodedLabels, is_left_out: np.ndarray) -> EncodedLabels:
    ends = np.concatenate([[0], np.cumsum(~is_left_out)])[labels.indptr]
    return replace(labels, indptr=ends.astype(np.int64), rows=labels.rows[~is_left_out])


def padded(known: np.ndarray, labels: EncodedLabels) -> EncodedLabels:
    """Among known labels, which no sample carries here, in the order of the joined model."""
    order = order_of(known, labels.classes)
    counts = np.concatenate([np.zeros(len(known), dtype=np.int64), labels.counts()])[order]
    return replace(
        labels,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        classes=np.concatenate([known, labels.classes])[order],
    )


def matched(
    previous: tuple[np.ndarray, sp.csr_matrix, np.ndarray], labels: EncodedLabels, n_features: int
) -> tuple[sp.csr_matrix, np.ndarray] | None:
    """Earlier weights for the labels of this fit; no weights where a label is new."""
    classes, weights, bias = previous
    if weights.shape[1] != n_features:
        return None
    place = {label: k for k, label in enumerate(classes.tolist())}
    at = np.array([place.get(label, -1) for label in labels.classes.tolist()], dtype=np.int64)
    known = at >= 0
    pick = sp.csr_matrix(
        (np.ones(known.sum(), weights.dtype), (np.flatnonzero(known), at[known])),
        shape=(len(at), len(classes)),
    )
    start_bias = np.full(len(at), -1, dtype=bias.dtype)
    start_bias[known] = bias[at[known]]
    start = (pick @ weights.tocsr()).tocsr()
    start.sort_indices()
    return start, start_bias


def refuse_other_labels(found: np.ndarray, allowed: Any, subject: str) -> None:
    """Raise if a label is not among those allowed."""
    strangers = set(found.tolist()) - set(np.asarray(allowed).tolist())
    if strangers:
        raise ValueError(
            f"{subject} must hold labels of classes only, got {show(min(strangers, key=repr))}"
        )


def order_of(known: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Puts both, one after the other, in order; labels that have none stand as they came."""
    classes = np.concatenate([known, new])
    try:
        return np.argsort(classes, kind="stable")
    except TypeError:
        return np.arange(len(classes))


def type_of(classes: np.ndarray) -> str:
    """Labels of one type are compared with each other; numbers of all types are."""
    first = classes[:1].tolist()
    if first and isinstance(first[0], numbers.Real) and not isinstance(first[0], bool):
        return "number"
    return type(first[0]).__name__ if first else "none"


def refuse_out_of_range(subject: str, dtype: np.dtype, smallest: float, largest: float) -> None:
    """Raise if the numbers between two bounds have no inverse, or no value, in a precision."""
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    if smallest < tiny:
        raise ParameterError(
            f"{subject} must be at least {tiny:.3g} for {dtype} data, got {smallest:g}"
        )
    if largest > huge:
        raise ParameterError(
            f"{subject} must be at most {huge:.3g} for {dtype} data, got {largest:g}"
        )
