"""Probabilities of a fitted linear classifier, after `calibrate` on rows that it has not seen.

The maps themselves are in calibration.py; here they meet labels in all forms, and files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sublearn.execution import one_at_a_time
from sublearn.extreme.calibration import Calibration, fit_calibration
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.fitting.labels import LabelClassifier
from sublearn.metrics.names import find_positions
from sublearn.typing import LabelsLike, MatrixLike
from sublearn.validation import (
    LabelKind,
    OneOf,
    OrNone,
    Positive,
    Rule,
    check_arguments,
    encode_labels,
)

__all__ = ["LabelProbabilities"]

_Self = TypeVar("_Self", bound="LabelProbabilities")
_BLOCK_ROWS = 1024  # rows whose sparse scores are held at a time
_BLOCK_SCORES = 2**22  # dense scores mapped at a time
# Of 1, 5, 10, 20 and 50, with a fifth of the training rows held out: 20 gave sigmoids the lowest
# Brier score on bibtex and the lowest log loss on delicious, 50 gave isotonic lines both on both.
_MIN_POSITIVES = {"sigmoid": 20, "isotonic": 50}
_FORM = ("is_indicator", "is_multilabel")
_RULES: dict[str, Rule] = {
    "method": OneOf("sigmoid", "isotonic"),
    "min_positives": OrNone(Positive(int)),
}


def _is_calibrated(classifier: LabelProbabilities) -> bool:
    """Whether `calibrate` was called for the present weights: others are set without maps."""
    if not hasattr(classifier, "calibration_"):
        raise AttributeError(
            f"{type(classifier).__name__} gives probabilities after calibrate(X, y) on held-out "
            "rows"
        )
    return True


class LabelProbabilities(LabelClassifier):
    """The part of `LinearLabelClassifier` that has `calibrate` and what there is after it."""

    model_: LinearLabels
    calibration_: Calibration
    _check_new: Callable[[MatrixLike], sp.csr_matrix]
    _scores: Callable[[sp.csr_matrix], np.ndarray]
    _top_k: Callable[[sp.csr_matrix, int], tuple[np.ndarray, np.ndarray]]

    @one_at_a_time
    def calibrate(
        self: _Self,
        X: MatrixLike,
        y: LabelsLike,
        method: str = "sigmoid",
        *,
        min_positives: int | None = None,
    ) -> _Self:
        """Learn from held-out rows what probability a score stands for.

        Afterwards there are `predict_proba` and `predict_proba_top_k`, until the next `fit`.
        Predicted labels and their order stay as they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows that were not used to fit: on its own training rows a model looks better than it
            is.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in the form given to `fit`. Labels that the model does not know are
            passed over.
        method : {"sigmoid", "isotonic"}, default="sigmoid"
            "sigmoid" fits two numbers per label to the log loss (Platt's method, with his smoothed
            targets); "isotonic" a non-decreasing line of any shape, which needs more rows.
        min_positives : int or None, default=None
            A label gets a map of its own if at least so many of the rows carry it, and as many do
            not. All other labels share one isotonic map, learnt from the pairs of score and truth
            of all of them together: a few rows do not determine a map, and the scores of all
            labels are margins on one scale. None means 20 for "sigmoid" and 50 for "isotonic".

        Returns
        -------
        LinearLabelClassifier
            Itself.
        """
        check_arguments("calibrate", locals(), _RULES)
        X = self._check_new(X)
        self.calibration_ = fit_calibration(
            X,
            self.model_.weights,
            self.model_.bias,
            self._truth(y, X.shape[0]),
            method=method,
            min_positives=int(min_positives or _MIN_POSITIVES[method]),
        )
        return self

    def calibrate_like(self: _Self, other: LabelProbabilities) -> _Self:
        """Take over the maps of another calibrated model with the same labels.

        For a model that is fitted to all rows after another one, with the same parameters, was
        fitted to most of them and calibrated on the rest: no row is lost to calibration, for the
        price of a second fit.

        Parameters
        ----------
        other : classifier
            Calibrated, and with the same `classes_`.

        Returns
        -------
        LinearLabelClassifier
            Itself.
        """
        check_is_fitted(self)
        if not hasattr(other, "predict_proba"):
            raise ValueError("calibrate_like.other must be calibrated, got one that is not")
        same = other.label_kind_ == self.label_kind_
        if not same or not np.array_equal(other.classes_, self.classes_):
            raise ValueError("calibrate_like.other must have the same classes_, got others")
        self.calibration_ = other.calibration_
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of all labels, dense; with very many prefer `predict_proba_top_k`.

        There after :meth:`calibrate` only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            With one label per sample, rows sum to 1: each label's own probability divided by the
            sum of all. With several labels per sample, the probability of each label on its own.
        """
        found = self._scores(self._check_new(X))
        for block in np.array_split(found, 1 + found.size // _BLOCK_SCORES):
            labels = np.broadcast_to(np.arange(block.shape[1]), block.shape)
            block[:] = self.calibration_.probability(labels, block)
        if self._label_kind is LabelKind.BINARY:
            return np.hstack([1 - found, found])
        if self._label_kind is LabelKind.MULTICLASS:
            return _shares(found, found.sum(axis=1), found.shape[1])
        return found

    @available_if(_is_calibrated)
    def predict_proba_top_k(self, X: MatrixLike, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample, best first, and their probabilities.

        There after :meth:`calibrate` only. Costs what `predict_top_k` costs; with one label per
        sample also a sparse product of rows and weights, for the sum over all labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            As for `predict_top_k`.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Those of `predict_top_k`, in the order of the scores. Since each label has a map of its
            own, probabilities need not fall along a row.
        probabilities : ndarray of shape (n_samples, k)
            Entries of `predict_proba`.
        """
        X = self._check_new(X)
        ids, scores = self._top_k(X, k)
        if self._label_kind is LabelKind.BINARY:
            second = np.where(ids == 1, scores, -scores)
            found = self.calibration_.probability(np.zeros_like(ids), second)
            found = np.where(ids == 1, found, 1 - found)
        else:
            found = self.calibration_.probability(ids, scores)
        if self._label_kind is LabelKind.MULTICLASS:
            found = _shares(found, self._total_probability(X), len(self.classes_))
        return self.classes_[ids], found.astype(scores.dtype, copy=False)

    def _truth(self, y: LabelsLike, n_samples: int, caller: str = "calibrate") -> sp.csr_matrix:
        """Held-out labels by column of the model's weights; labels it does not know are left out.

        A label list of a row may become empty by that, and the row is a negative of every label.
        """
        found = encode_labels(y, n_samples, estimator_name=caller, for_fit=False)
        kind, n_classes = self._label_kind, len(self.classes_)
        if any(getattr(found.kind, what) != getattr(kind, what) for what in _FORM):
            raise ValueError(
                f"{caller}.y must have the form it had in fit ({kind.value}), "
                f"got {found.kind.value}"
            )
        if kind.is_indicator and found.n_classes != n_classes:
            raise ValueError(
                f"{caller}.y must have {n_classes} columns as in fit, got {found.n_classes}"
            )
        places = found.classes
        if not kind.is_indicator:
            places = find_positions(self.classes_, found.classes, argument=f"{caller}.y")
        truth = found.to_csr(np.where(places < 0, n_classes, places), n_classes + 1)[:, :n_classes]
        if truth.nnz == 0:
            raise ValueError(f"{caller}.y must carry labels that the model knows, got none")
        return truth[:, 1:] if kind is LabelKind.BINARY else truth

    def _total_probability(self, X: sp.csr_matrix) -> np.ndarray:
        """Sum over labels of their own probabilities: that of the biases, and for the labels that
        share a feature with the row what changes by it."""
        weights, bias = self.model_.weights, self.model_.bias.astype(np.float64)
        map_ = self.calibration_.probability
        at_bias = map_(np.arange(len(bias)), bias)
        total = np.full(X.shape[0], at_bias.sum())
        for start in range(0, X.shape[0], _BLOCK_ROWS):
            products = sp.csr_matrix(X[start : start + _BLOCK_ROWS] @ weights)
            labels = products.indices
            change = map_(labels, products.data + bias[labels]) - at_bias[labels]
            rows = np.repeat(np.arange(products.shape[0]), np.diff(products.indptr))
            total[start : start + _BLOCK_ROWS] += np.bincount(rows, change, products.shape[0])
        return total


def _shares(found: np.ndarray, total: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities divided by their sum over all labels; equal ones where all are zero."""
    total = total[:, None]
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / n_classes)
