"""What fitted linear classifiers with very many labels have in common: prediction and saving."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from sublearn.extreme.linear_labels import LinearLabels
from sublearn.io.models import SavedModel
from sublearn.trace import Trace
from sublearn.validation import (
    LabelKind,
    as_n_threads,
    check_features,
    decode_predictions,
    encode_labels,
)
from sublearn.validation.values import is_int64, show

__all__ = ["LinearLabelClassifier"]


class LinearLabelClassifier(SavedModel, ClassifierMixin, BaseEstimator):
    """Everything but `fit`.

    A subclass has a parameter `n_jobs`, and its `fit` sets `classes_`, `label_kind_` (the name of a
    `LabelKind`), `model_`, `objective_`, `certificate_`, `n_iter_`, `trace_` and what
    `check_features` sets.
    """

    n_jobs: int | None
    classes_: np.ndarray
    label_kind_: str
    model_: LinearLabels
    objective_: float
    certificate_: float
    n_iter_: int
    n_features_in_: int
    trace_: Trace

    @property
    def coef_(self) -> sp.csc_matrix:
        """Weights of shape (n_classes, n_features), a view of the model's own arrays."""
        check_is_fitted(self)
        return self.model_.weights.T

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        check_is_fitted(self)
        return self.model_.bias

    def predict_top_k(self, X: Any, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int or None, default=None
            At most the number of labels. None means 5, or all labels if there are fewer.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Entries of `classes_`; equal scores in the order of `classes_`.
        scores : ndarray of shape (n_samples, k)
            Positive where the label would be predicted on its own.
        """
        X = self._check_new(X)
        n_classes = len(self.classes_)
        k = min(5, n_classes) if k is None else k
        if not is_int64(k) or not 1 <= k <= n_classes:
            raise ValueError(f"k must be an integer between 1 and {n_classes}, got {show(k)}")
        if self._kind is LabelKind.BINARY:
            ids, scores = _top_of_two(self._scores(X)[:, 0], int(k))
        else:
            ids, scores = self.model_.top_k(X, int(k), as_n_threads(self.n_jobs))
        return self.classes_[ids], scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of all labels, dense; with very many labels prefer `predict_top_k`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes in a 1-D `y`
        """
        scores = self._scores(self._check_new(X))
        return scores[:, 0] if self._kind is LabelKind.BINARY else scores

    def predict(self, X: Any) -> Any:
        """The best label of each sample, or all labels that score above zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, sparse matrix or list of lists
            In the form in which `fit` got the labels.
        """
        X = self._check_new(X)
        if self._kind is LabelKind.BINARY:
            return self.classes_[(self._scores(X)[:, 0] > 0).astype(np.intp)]
        if self._kind is LabelKind.MULTICLASS:
            return self.classes_[self.model_.top_k(X, 1, as_n_threads(self.n_jobs))[0][:, 0]]
        predicted = self.model_.above(X, 0.0, as_n_threads(self.n_jobs))
        return decode_predictions(self._kind, self.classes_, predicted)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; with several labels per sample, the share of samples with exactly their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            True labels, in the form given to `fit`.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        if self._kind is not LabelKind.LABEL_LISTS:
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        form = encode_labels(y, len(predicted), for_fit=False).kind
        if not form.is_multilabel or getattr(y, "ndim", 1) != 1:
            raise ValueError(f"y must be a list of label lists, as in fit, got {form.value}")
        hits = [set(true) == set(found) for true, found in zip(y, predicted, strict=True)]
        return float(np.average(hits, weights=sample_weight))

    @property
    def _kind(self) -> LabelKind:
        return LabelKind[self.label_kind_]

    def _check_new(self, X: Any) -> sp.csr_matrix:
        check_is_fitted(self)
        return check_features(self, X, reset=False)

    def _scores(self, X: sp.csr_matrix) -> np.ndarray:
        return self.model_.scores(X, as_n_threads(self.n_jobs))

    def _to_bundle(self) -> dict[str, Any]:
        state = {
            "weights": self.model_.weights,
            "bias": self.model_.bias,
            "classes_": self.classes_,
            "label_kind_": self.label_kind_,
            "objective_": self.objective_,
            "certificate_": self.certificate_,
            "n_iter_": self.n_iter_,
            "n_features_in_": self.n_features_in_,
            "trace_": {name: self.trace_[name].tolist() for name in self.trace_.columns},
        }
        if hasattr(self, "feature_names_in_"):
            state["feature_names_in_"] = self.feature_names_in_
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        self.model_ = LinearLabels(state.pop("weights"), state.pop("bias"))
        self.trace_ = Trace(state.pop("trace_"))
        super()._restore(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _top_of_two(score: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Both classes of a binary problem in order; the first class has the negated score."""
    is_second = score > 0
    ids = np.column_stack([is_second, ~is_second]).astype(np.intp)
    scores = np.column_stack([np.abs(score), -np.abs(score)])
    return ids[:, :k], scores[:, :k]
