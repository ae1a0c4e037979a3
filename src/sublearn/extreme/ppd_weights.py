"""Sample and label weights of a PPD-Sparse fit: what weighs nothing leaves, extremes are refused.

A sample's loss has the factor C times its weight, times the weight of the label if it carries it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sublearn.extreme.label_arrays import (
    drop_complement,
    order_of,
    padded,
    refuse_out_of_range,
    without_labels,
    without_weightless,
)
from sublearn.fitting.label_weights import as_label_weights
from sublearn.validation import EncodedLabels, LabelKind

__all__ = ["Weighed", "refuse_extreme_weights", "weigh"]


class Weighed(NamedTuple):
    """A problem whose samples and labels all have positive weights; None where all are 1."""

    X: sp.csr_matrix
    labels: EncodedLabels
    row_weight: np.ndarray | None
    label_weight: np.ndarray | None


def weigh(
    X: sp.csr_matrix,
    labels: EncodedLabels,
    row_weight: np.ndarray | None,
    class_weight: Any,
    known: np.ndarray | None,
    *,
    estimator_name: str,
) -> Weighed:
    """The problem without what weighs nothing.

    `known` are further labels that no sample carries here, which only count in `class_weight`. Two
    classes of a 1-D `y` become one problem, and their weights weights of samples.
    """
    X, labels, row_weight = without_weightless(X, labels, row_weight)
    label_weight = _weights_of(labels, class_weight, known, estimator_name)
    targets = drop_complement(labels)
    if label_weight is None:
        return Weighed(X, targets, row_weight, None)
    if labels.kind is not LabelKind.BINARY:
        targets = without_labels(targets, label_weight == 0)
        return Weighed(X, targets, row_weight, np.where(label_weight > 0, label_weight, 1.0))
    of_sample = np.full(X.shape[0], label_weight[0])
    of_sample[targets.rows] = label_weight[1]
    if row_weight is not None:
        with np.errstate(over="ignore"):  # infinity is refused later, by a sentence
            of_sample *= row_weight
    if not of_sample.any():
        raise ValueError(
            f"{estimator_name}: sample_weight and class_weight must leave a sample of a weight "
            "above zero, got none"
        )
    return Weighed(*without_weightless(X, targets, of_sample), None)


def _weights_of(
    labels: EncodedLabels, class_weight: Any, known: np.ndarray | None, estimator_name: str
) -> np.ndarray | None:
    if known is None:
        return as_label_weights(class_weight, labels, estimator_name=estimator_name)
    joined = padded(known, labels)
    weights = as_label_weights(class_weight, joined, estimator_name=estimator_name)
    is_new = order_of(known, labels.classes) >= len(known)
    return None if weights is None else weights[is_new]


def refuse_extreme_weights(problem: Weighed, C: float, *, estimator_name: str) -> None:
    """The dual needs 1 / (2 C weight), which must be neither zero nor infinite."""
    smallest, largest = 1.0, 1.0
    given = [w for w in (problem.row_weight, problem.label_weight) if w is not None]
    for weights in given:
        if len(weights):
            smallest *= min(1.0, float(weights.min()))
            largest *= max(1.0, float(weights.max()))
    name, dtype = estimator_name, problem.X.dtype
    refuse_out_of_range(f"{name}: sample_weight times class_weight", dtype, smallest, largest)
    subject = f"{name}.C times the weights" if given else f"{name}.C"
    highest = C * largest if largest > 1 else 1.0  # C alone may be as large as it likes
    refuse_out_of_range(subject, dtype, C * smallest, highest)
