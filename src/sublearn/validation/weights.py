"""Weights of samples and of labels, made arrays or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sublearn.validation.labels import EncodedLabels
from sublearn.validation.params import Rule
from sublearn.validation.values import is_finite_number, show

__all__ = ["ClassWeight", "as_label_weights", "check_sample_weight"]


@dataclass(frozen=True, init=False)
class ClassWeight(Rule):
    """`class_weight`: None, a known name, a mapping or one number per class."""

    names: tuple[str, ...]

    def __init__(self, *names: str):
        object.__setattr__(self, "names", names)

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule; its length is checked against the labels."""
        if value is None or isinstance(value, Mapping):
            return True
        if isinstance(value, str):
            return value in self.names
        return isinstance(value, (np.ndarray, list, tuple))

    def __str__(self) -> str:
        names = ", ".join(repr(name) for name in self.names)
        return f"None, {names}, a mapping from labels to weights or an array of one weight a label"


def check_sample_weight(
    sample_weight: Any, n_samples: int, *, estimator_name: str = ""
) -> np.ndarray | None:
    """One non-negative float64 per sample, or None if no weights were given.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
        A single number stands for all samples.
    n_samples : int
        Rows of X.
    estimator_name : str
        Who asks; stands at the head of error messages.

    Returns
    -------
    ndarray of float64 or None
        None also if every weight is 1, so that weights of one change nothing at all.
    """
    if sample_weight is None:
        return None
    name = f"{estimator_name}: sample_weight" if estimator_name else "sample_weight"
    weights = _as_numbers(sample_weight, name)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{name} must have one weight for each of {n_samples} samples, "
            f"got an array of shape {weights.shape}"
        )
    _refuse_improper(weights, name)
    if not weights.any():
        raise ValueError(f"{name} must have a weight above zero, got zeros only")
    return None if (weights == 1).all() else weights


def as_label_weights(
    class_weight: Any, labels: EncodedLabels, *, estimator_name: str = ""
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
        weights = _as_numbers(class_weight, name)
    if weights.shape != (labels.n_classes,):
        raise ValueError(
            f"{name} must have one weight for each of {labels.n_classes} labels, "
            f"got an array of shape {weights.shape}"
        )
    _refuse_improper(weights, name)
    return None if (weights == 1).all() else weights


def _named_weights(name: str, labels: EncodedLabels) -> np.ndarray:
    counts = labels.counts()
    if name == "balanced":
        return labels.n_samples / (labels.n_classes * np.maximum(counts, 1))
    from sublearn.metrics import propensities  # metrics reads labels through this package

    return 2.0 / propensities(counts, labels.n_samples) - 1.0


def _mapped_weights(mapping: Mapping[Any, Any], classes: np.ndarray, name: str) -> np.ndarray:
    place = {label: k for k, label in enumerate(classes.tolist())}
    weights = np.ones(len(classes))
    for label, weight in mapping.items():
        key = label.item() if isinstance(label, np.generic) else label
        if key not in place:
            raise ValueError(f"{name} must name labels of y, got {show(label)}")
        if not is_finite_number(weight):
            raise ValueError(f"{name}[{show(label)}] must be a number, got {show(weight)}")
        weights[place[key]] = float(weight)
    return weights


def _as_numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {show(values)}") from error


def _refuse_improper(weights: np.ndarray, name: str) -> None:
    proper = np.isfinite(weights) & (weights >= 0)
    if not proper.all():
        raise ValueError(f"{name} must be finite and not negative, got {weights[~proper][0]:g}")
