"""Metrics of probabilities: whether labels with probability p are right in a share p of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sublearn.metrics.ranking import read_ranking
from sublearn.typing import LabelsLike
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Reliability", "brier_score", "expected_calibration_error", "reliability_curve"]


class Reliability(NamedTuple):
    """Predictions grouped by probability.

    Parameters
    ----------
    predicted : ndarray of shape (n_groups,)
        Mean probability of each group.
    observed : ndarray of shape (n_groups,)
        Share of its predictions that are right.
    counts : ndarray of int, shape (n_groups,)
        Number of its predictions.
    """

    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray


def reliability_curve(
    y_true: LabelsLike,
    labels: ArrayLike | None,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    classes: ArrayLike | None = None,
) -> Reliability:
    """Mean probability and share of right predictions, for predictions of similar probability.

    Parameters
    ----------
    y_true : array-like, sparse matrix or list of label lists
        True labels in any form that `fit` takes.
    labels : array of shape (n_samples, k), or None
        Predicted labels, as ``labels, probabilities = est.predict_proba_top_k(X, k)`` gives them.
        None if `probabilities` has a column for each label, as `predict_proba` gives them.
    probabilities : array of shape (n_samples, k)
        Of the predicted labels, from 0 to 1.
    n_bins : int, default=15
        Groups of equal width between 0 and 1; empty ones are left out.
    classes : array-like, optional
        As in :func:`sublearn.metrics.precision_at_k`.

    Returns
    -------
    Reliability
    """
    if not is_int64(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a positive integer, got {show(n_bins)}")
    p, hits = _read_predictions(y_true, labels, probabilities, classes)
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    some = counts > 0
    predicted, observed = (np.bincount(bins, values, n_bins)[some] for values in (p, hits))
    return Reliability(predicted / counts[some], observed / counts[some], counts[some])


def expected_calibration_error(
    y_true: LabelsLike,
    labels: ArrayLike | None,
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    classes: ArrayLike | None = None,
) -> float:
    """Mean distance of probability and share of right predictions, over predictions.

    Predictions are grouped by probability as in :func:`reliability_curve`, whose arguments these
    are; 0 is best.

    Examples
    --------
    >>> labels, p = np.array([["a"], ["a"]]), np.array([[0.5], [0.5]])
    >>> expected_calibration_error([["a"], ["b"]], labels, p)
    0.0
    """
    curve = reliability_curve(y_true, labels, probabilities, n_bins=n_bins, classes=classes)
    distance = np.abs(curve.predicted - curve.observed)
    return float(np.average(distance, weights=curve.counts))


def brier_score(
    y_true: LabelsLike,
    labels: ArrayLike | None,
    probabilities: ArrayLike,
    *,
    classes: ArrayLike | None = None,
) -> float:
    """Mean squared distance of probability and truth (0 or 1), over predictions; 0 is best.

    Arguments are those of :func:`reliability_curve`.
    """
    p, hits = _read_predictions(y_true, labels, probabilities, classes)
    return float(np.mean((p - hits) ** 2))


def _read_predictions(
    y_true: LabelsLike,
    labels: ArrayLike | None,
    probabilities: ArrayLike,
    classes: ArrayLike | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and whether each prediction is right, both flat."""
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"probabilities must be a matrix with entries, got shape {p.shape}")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities must be from 0 to 1, got others")
    if labels is None:
        truth = read_ranking(y_true, p, 1, classes).truth
        return p.ravel(), truth.toarray()[:, : p.shape[1]].ravel().astype(np.float64)
    labels = np.asarray(labels)
    if labels.shape != p.shape:
        raise ValueError(
            f"labels must have the shape of probabilities {p.shape}, got {labels.shape}"
        )
    hits = read_ranking(y_true, labels, labels.shape[1], classes).hits()
    return p.ravel(), hits.ravel().astype(np.float64)
