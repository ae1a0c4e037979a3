"""Rankings as `scoring` of scikit-learn's searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from sublearn.metrics.at_k import ndcg_at_k, precision_at_k, recall_at_k
from sublearn.typing import LabelsLike, MatrixLike
from sublearn.validation.values import is_int64, show

__all__ = ["ndcg_scorer", "precision_scorer", "recall_scorer"]

#: ``scorer(estimator, X, y)``, as scikit-learn calls it.
Scorer = Callable[[BaseEstimator, MatrixLike, LabelsLike], float]
_Metric = Callable[[LabelsLike, np.ndarray, int], float | np.ndarray]


@dataclass(frozen=True)
class _TopKScorer:
    """Calls `predict_top_k` of an estimator, or of the last step of a pipeline."""

    metric: _Metric
    k: int

    def __call__(self, estimator: BaseEstimator, X: MatrixLike, y: LabelsLike) -> float:
        if hasattr(estimator, "steps"):  # a pipeline passes on scikit-learn's own methods only
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        labels, _ = estimator.predict_top_k(X, self.k)
        if labels.dtype == bool:  # metrics take booleans for an indicator matrix and refuse them
            labels = labels.astype(np.int8)
        return float(self.metric(y, labels, self.k))


def precision_scorer(k: int = 1) -> Scorer:
    """Precision@k as ``scoring=`` of `GridSearchCV` and `cross_val_score`.

    Unlike scikit-learn's own scorers it takes labels in any form, label lists included, and
    estimators with `predict_top_k`, alone or as the last step of a pipeline.

    Parameters
    ----------
    k : int, default=1
        Where to cut the ranking.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, larger is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sublearn.extreme import PPDSparseClassifier
    >>> grid = {"l1": [0.03, 0.1], "C": [1, 10]}
    >>> search = GridSearchCV(
    ...     PPDSparseClassifier(), grid, scoring=precision_scorer(3), cv=KFold(3)
    ... )
    """
    return _scorer(precision_at_k, k)


def ndcg_scorer(k: int = 5) -> Scorer:
    """nDCG@k as ``scoring=``; see :func:`precision_scorer`."""
    return _scorer(ndcg_at_k, k)


def recall_scorer(k: int = 5) -> Scorer:
    """Recall@k as ``scoring=``; see :func:`precision_scorer`."""
    return _scorer(recall_at_k, k)


def _scorer(metric: _Metric, k: int) -> _TopKScorer:
    if not is_int64(k) or k < 1:
        raise ValueError(f"k must be a positive integer, got {show(k)}")
    return _TopKScorer(metric, int(k))
