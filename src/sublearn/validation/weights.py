"""Weights of samples and of labels: the numbers that are accepted."""

from __future__ import annotations

import numpy as np

from sublearn.typing import WeightsLike
from sublearn.validation.values import as_native, refuse_large, show

__all__ = ["as_weights", "check_sample_weight", "none_if_equal"]


def check_sample_weight(
    sample_weight: WeightsLike | None, n_samples: int, *, estimator_name: str = ""
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
    weights = as_weights(sample_weight, name)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    return none_if_equal(weights, n_samples, "samples", name)


def none_if_equal(weights: np.ndarray, n: int, items: str, name: str) -> np.ndarray | None:
    """Weights of `n` items, one each and not all zero; None if all are 1."""
    if weights.shape != (n,):
        raise ValueError(
            f"{name} must have one weight for each of {n} {items}, "
            f"got an array of shape {weights.shape}"
        )
    if not weights.any():
        raise ValueError(f"{name} must have a weight above zero, got zeros only")
    return None if (weights == 1).all() else weights


def as_weights(values: object, name: str) -> np.ndarray:
    """Finite, non-negative float64 numbers; `name` heads the message of a refusal."""
    try:
        weights = as_native(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {show(values)}") from error
    proper = np.isfinite(weights) & (weights >= 0)
    if not proper.all():
        raise ValueError(f"{name} must be finite and not negative, got {weights[~proper][0]:g}")
    refuse_large(weights, name)
    return weights
