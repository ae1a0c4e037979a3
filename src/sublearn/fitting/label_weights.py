"""How much the positives of each label count: `class_weight` as an array."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from sublearn.metrics import propensities
from sublearn.typing import ClassWeightLike
from sublearn.validation import EncodedLabels
from sublearn.validation.values import show
from sublearn.validation.weights import as_weights, none_if_equal

__all__ = ["as_label_weights"]


def as_label_weights(
    class_weight: ClassWeightLike, labels: EncodedLabels, *, estimator_name: str = ""
) -> np.ndarray | None:
    """The weight of each label's positives, or None if all are 1.

    Parameters
    ----------
    class_weight : None, {"balanced", "propensity"}, mapping or array-like
        - "balanced": n_samples / (n_classes * count of the label), as in scikit-learn.
        - "propensity": 2 / p - 1, where p is the label's propensity, the chance that a relevant
          label was assigned (:func:`sublearn.metrics.propensities`): the convex surrogate of an
          unbiased loss when labels are missing.
        - mapping: from labels to weights; labels left out have weight 1.
        - array: one weight per label, in the order of `labels.classes`.
    labels : EncodedLabels
        The labels of the fit.
    estimator_name : str
        Who asks; stands at the head of error messages.

    Returns
    -------
    ndarray of float64, shape (n_classes,), or None
    """
    if class_weight is None:
        return None
    name = f"{estimator_name}.class_weight" if estimator_name else "class_weight"
    if isinstance(class_weight, str):
        return _named_weights(class_weight, labels)
    if isinstance(class_weight, Mapping):
        weights = _mapped_weights(class_weight, labels.classes, name)
    else:
        weights = as_weights(class_weight, name)
    return none_if_equal(weights, labels.n_classes, "labels", name)


def _named_weights(name: str, labels: EncodedLabels) -> np.ndarray:
    counts = labels.counts()
    if name == "balanced":
        return labels.n_samples / (labels.n_classes * np.maximum(counts, 1))
    return 2.0 / propensities(labels.to_csr()) - 1.0


def _mapped_weights(
    mapping: Mapping[Hashable, float], classes: np.ndarray, name: str
) -> np.ndarray:
    place = {label: k for k, label in enumerate(classes.tolist())}
    weights = np.ones(len(classes))
    for label, weight in mapping.items():
        key = label.item() if isinstance(label, np.generic) else label
        if key not in place:
            raise ValueError(f"{name} must name labels of y, got {show(label)}")
        value = as_weights(weight, f"{name}[{show(label)}]")
        if value.ndim != 0:
            raise ValueError(f"{name}[{show(label)}] must be one number, got {show(weight)}")
        weights[place[key]] = value
    return weights
