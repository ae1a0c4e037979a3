"""What fitted linear classifiers with very many labels have in common: prediction and saving."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sublearn.extreme.calibration import Calibration, fit_calibration
from sublearn.extreme.explanation import Explanation, explain_score
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.io.models import SavedModel
from sublearn.metrics.names import find_positions
from sublearn.trace import Trace
from sublearn.validation import (
    LabelKind,
    OneOf,
    OrNone,
    Positive,
    as_n_threads,
    check_features,
    decode_predictions,
    encode_labels,
)
from sublearn.validation.values import is_finite_number, is_int64, show

__all__ = ["LinearLabelClassifier"]

_Model = TypeVar("_Model", bound="LinearLabelClassifier")
_BITS = (8, 16, 32)
_BLOCK_ROWS = 1024  # rows whose sparse scores are held at a time
_BLOCK_SCORES = 2**22  # dense scores mapped at a time
# Of 1, 5, 10, 20 and 50, with a fifth of the training rows held out: 20 gave sigmoids the lowest
# Brier score on bibtex and the lowest log loss on delicious, 50 gave isotonic lines both on both.
_MIN_POSITIVES = {"sigmoid": 20, "isotonic": 50}
_CALIBRATION = "calibration_"  # heads the stored names of a calibration's arrays


def _is_calibrated(classifier: LinearLabelClassifier) -> bool:
    """Whether `calibrate` was called for the present weights; a new fit makes others."""
    if getattr(classifier, "_calibrated_model", None) is not getattr(classifier, "model_", 0):
        raise AttributeError(
            f"{type(classifier).__name__} gives probabilities after calibrate(X, y) on held-out "
            "rows"
        )
    return True


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
        """Weights of shape (n_classes, n_features).

        A view of the model's own arrays, or a new matrix if the model is compressed.
        """
        check_is_fitted(self)
        return self.model_.weights.T

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label; read-only."""
        check_is_fitted(self)
        return self.model_.bias

    def predict_top_k(
        self, X: Any, k: int | None = None, *, effort: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int or None, default=None
            At most the number of labels. None means 5, or all labels if there are fewer.
        effort : float, default=1.0
            1 is exact. Less reads at most this share of the weights that a sample's features have,
            and leaves out the features that most labels use; scores are then sums over the other
            features. How many of the true `k` best are found depends on the data: measure it with
            a few hundred samples.

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
        if not is_finite_number(effort) or not 0 < effort <= 1:
            raise ValueError(f"effort must be above 0 and at most 1, got {show(effort)}")
        if self._kind is LabelKind.BINARY:
            ids, scores = _top_of_two(self._scores(X)[:, 0], int(k))
        else:
            n_threads = as_n_threads(self.n_jobs)
            ids, scores = self.model_.top_k(X, int(k), n_threads, float(effort))
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

    def calibrate(
        self, X: Any, y: Any, method: str = "sigmoid", *, min_positives: int | None = None
    ) -> LinearLabelClassifier:
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
        for name, value, rule in (
            ("method", method, OneOf("sigmoid", "isotonic")),
            ("min_positives", min_positives, OrNone(Positive(int))),
        ):
            if not rule.accepts(value):
                raise ValueError(f"calibrate.{name} must be {rule}, got {show(value)}")
        X = self._check_new(X)
        self.calibration_: Calibration = fit_calibration(
            X,
            self.coef_.T.tocsr(),
            self.intercept_,
            self._truth(y, X.shape[0]),
            method=method,
            min_positives=int(min_positives or _MIN_POSITIVES[method]),
        )
        self._calibrated_model = self.model_
        return self

    def calibrate_like(self, other: LinearLabelClassifier) -> LinearLabelClassifier:
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
        self._calibrated_model = self.model_
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
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
        if self._kind is LabelKind.BINARY:
            return np.hstack([1 - found, found])
        if self._kind is LabelKind.MULTICLASS:
            return _shares(found, found.sum(axis=1), found.shape[1])
        return found

    @available_if(_is_calibrated)
    def predict_proba_top_k(self, X: Any, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample, best first, and their probabilities.

        There after :meth:`calibrate` only. Costs what `predict_top_k` costs; with one label per
        sample also a sparse product of rows and weights, for the sum over all labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int or None, default=None
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
        labels, scores = self.predict_top_k(X, k)
        ids = find_positions(self.classes_, labels, argument="labels")
        if self._kind is LabelKind.BINARY:
            second = np.where(ids == 1, scores, -scores)
            found = self.calibration_.probability(np.zeros_like(ids), second)
            found = np.where(ids == 1, found, 1 - found)
        else:
            found = self.calibration_.probability(ids, scores)
        if self._kind is LabelKind.MULTICLASS:
            found = _shares(found, self._total_probability(X), len(self.classes_))
        return labels, found.astype(scores.dtype, copy=False)

    def explain(self, x: Any, label: Any, k: int = 10, *, feature_names: Any = None) -> Explanation:
        """The features behind a label's score of one sample.

        Parameters
        ----------
        x : array-like or sparse matrix of shape (n_features,) or (1, n_features)
            One sample.
        label : object
            An entry of `classes_`.
        k : int, default=10
            Most features to list, by decreasing size of value times weight.
        feature_names : array-like of shape (n_features,), optional
            Names of the features; by default `feature_names_in_`, if the model has them.

        Returns
        -------
        Explanation
            Its string is a small table; `to_dict` gives plain values.
        """
        if not is_int64(k) or k < 1:
            raise ValueError(f"explain.k must be a positive integer, got {show(k)}")
        if not sp.issparse(x) and not hasattr(x, "columns") and np.ndim(x) == 1:
            x = np.reshape(x, (1, -1))
        x = self._check_new(x)
        if x.shape[0] != 1:
            raise ValueError(f"explain.x must be one sample, got {x.shape[0]}")
        position = self._position(label)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        # A sequence may make its names when they are asked for: only its length is looked at.
        if names is not None and (not hasattr(names, "__len__") or len(names) != x.shape[1]):
            raise ValueError(f"explain.feature_names must be {x.shape[1]} names, got {show(names)}")
        weights, bias = self._weights_of(position)
        found = explain_score(x, weights, bias, self.classes_[position], int(k), names)
        if not hasattr(self, "predict_proba"):
            return found
        probability = float(self.predict_proba(x)[0, position])
        return dataclasses.replace(found, probability=probability)

    def _position(self, label: Any) -> int:
        """Where `label` stands in `classes_`."""
        check_is_fitted(self)
        is_array = isinstance(label, np.ndarray)
        known_labels = enumerate(self.classes_.tolist())
        found = [k for k, known in known_labels if not is_array and known == label]
        if not found:
            raise ValueError(f"explain.label must be one of classes_, got {show(label)}")
        return found[0]

    def _weights_of(self, position: int) -> tuple[sp.csr_matrix, float]:
        """Weights (one row) and bias of a label; the first of two classes has those of the second,
        negated."""
        if self._kind is LabelKind.BINARY:
            sign = 1 if position else -1
            return sign * self.coef_[0].tocsr(), sign * float(self.intercept_[0])
        return self.coef_[position].tocsr(), float(self.intercept_[position])

    def _truth(self, y: Any, n_samples: int) -> sp.csr_matrix:
        """Held-out labels by column of the model's weights; labels it does not know are left out.

        A label list of a row may become empty by that, and the row is a negative of every label.
        """
        found = encode_labels(y, n_samples, estimator_name="calibrate", for_fit=False)
        kind, n_classes = self._kind, len(self.classes_)
        if (found.kind.is_indicator, found.kind.is_multilabel) != (
            kind.is_indicator,
            kind.is_multilabel,
        ):
            raise ValueError(
                f"calibrate.y must have the form it had in fit ({kind.value}), "
                f"got {found.kind.value}"
            )
        if kind.is_indicator and found.n_classes != n_classes:
            raise ValueError(
                f"calibrate.y must have {n_classes} columns as in fit, got {found.n_classes}"
            )
        places = found.classes if kind.is_indicator else self._find(found.classes)
        truth = found.to_csr(np.where(places < 0, n_classes, places), n_classes + 1)[:, :n_classes]
        if truth.nnz == 0:
            raise ValueError("calibrate.y must carry labels that the model knows, got none")
        return truth[:, 1:] if kind is LabelKind.BINARY else truth

    def _find(self, labels: np.ndarray) -> np.ndarray:
        return find_positions(self.classes_, labels, argument="calibrate.y")

    def _total_probability(self, X: sp.csr_matrix) -> np.ndarray:
        """Sum over labels of their own probabilities: that of the biases, and for the labels that
        share a feature with the row what changes by it."""
        weights, bias = self.coef_.T.tocsr(), self.intercept_.astype(np.float64)
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

    def compress(self: _Model, bits: int = 8, *, prune: float = 0.0) -> _Model:
        r"""A copy of the fitted model with smaller weights; this one stays as it is.

        Saved files shrink, and prediction reads the smaller weights as they are. Label ids take 16
        bits where there are at most 65,536 labels.

        Parameters
        ----------
        bits : {8, 16, 32}, default=8
            32 stores float32. 8 and 16 store integers :math:`q` and for each feature :math:`j` a
            scale :math:`s_j = \max_k |w_{jk}| / (2^{bits - 1} - 1)`, and take :math:`s_j q` for the
            weight. Weights that become zero are dropped.
        prune : float, default=0.0
            Weights of at most this size are dropped as well.

        Returns
        -------
        estimator
            Of the same class, with the same parameters, labels and calibration; `certificate_` and
            `trace_` are those of the weights before.

        Notes
        -----
        With 8 and 16 bits a weight moves by at most :math:`\max(s_j / 2, prune)`, so that, up to
        the rounding of floating-point sums, a score moves by at most

        .. math:: \sum_j |x_j| \max(s_j / 2, prune).
        """
        check_is_fitted(self)
        if not is_int64(bits) or bits not in _BITS:
            raise ValueError(f"bits must be 8, 16 or 32, got {show(bits)}")
        if not is_finite_number(prune) or prune < 0:
            raise ValueError(f"prune must be a number that is not negative, got {show(prune)}")
        model = copy.copy(self)
        model.model_ = self.model_.compress(int(bits), float(prune))
        if hasattr(self, "predict_proba"):
            model._calibrated_model = model.model_
        return model

    @property
    def _kind(self) -> LabelKind:
        return LabelKind[self.label_kind_]

    def _check_new(self, X: Any) -> sp.csr_matrix:
        if not self.__sklearn_is_fitted__():  # scikit-learn's own test takes longer than a row
            check_is_fitted(self)
        return check_features(self, X, reset=False)

    def _scores(self, X: sp.csr_matrix) -> np.ndarray:
        return self.model_.scores(X, as_n_threads(self.n_jobs))

    def _to_bundle(self) -> dict[str, Any]:
        state = self.model_.to_state() | {
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
        if hasattr(self, "predict_proba"):
            parts = self.calibration_.to_state()
            state |= {f"{_CALIBRATION}{name}": value for name, value in parts.items()}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        self.model_ = LinearLabels.from_state(state)
        self.trace_ = Trace(state.pop("trace_"))
        parts = {name: state.pop(name) for name in list(state) if name.startswith(_CALIBRATION)}
        if parts:
            parts = {name.removeprefix(_CALIBRATION): value for name, value in parts.items()}
            self.calibration_ = Calibration.from_state(parts)
            self._calibrated_model = self.model_
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


def _shares(found: np.ndarray, total: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities divided by their sum over all labels; equal ones where all are zero."""
    total = total[:, None]
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / n_classes)
