"""What fitted linear classifiers with very many labels have in common: prediction and saving."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn.extreme.calibration import Calibration
from sublearn.extreme.decisions import Decision, LabelDecisions
from sublearn.extreme.explanation import Explanation, Names, explain_score
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.fitting.labels import as_k
from sublearn.io.fields import Fields, Parts, take_parts
from sublearn.trace import Solution
from sublearn.typing import LabelsLike, MatrixLike, State
from sublearn.validation import (
    EncodedLabels,
    Interval,
    LabelKind,
    as_n_threads,
    check_argument,
    check_features,
    encode_labels,
)
from sublearn.validation.values import is_finite_number, is_int64, show

if TYPE_CHECKING:
    from sublearn.validation.labels import DecodedLabels

__all__ = ["LinearLabelClassifier"]

_Model = TypeVar("_Model", bound="LinearLabelClassifier")
_BITS = (8, 16, 32)
_CALIBRATION = "calibration_"  # heads the stored names of a calibration's arrays
_DECISION = "decision_"  # and those of how sets are made


class LinearLabelClassifier(LabelDecisions, BaseEstimator):
    """Everything but the solver.

    A subclass has a parameter `n_jobs`. Its `fit` reads its input with `_read` and hands what it
    found to `_take_over`.
    """

    _kind: ClassVar[str] = "row_labels"

    n_jobs: int | None
    model_: LinearLabels

    def _read(self, X: MatrixLike, y: LabelsLike) -> tuple[sp.csr_matrix, EncodedLabels]:
        """Features and labels of a fit."""
        X = check_features(self, X, reset=True)
        return X, encode_labels(y, X.shape[0], estimator_name=type(self).__name__)

    def _set_model(self, model: LinearLabels) -> None:
        """Other weights than before; probabilities of the former ones say nothing about them."""
        self.__dict__.pop("calibration_", None)
        if "decision_" in self.__dict__ and self.decision_.rule == "expected_f1":
            del self.decision_  # it goes by probabilities
        self.model_ = model

    def _take_over(
        self, labels: EncodedLabels, model: LinearLabels, solution: Solution, *, warns: bool = True
    ) -> None:
        """What every fit leaves: the labels, the model, and how it was found."""
        self._keep_solution(solution, warns=warns)
        self._keep_labels(labels)
        self.__dict__.pop("decision_", None)
        self._set_model(model)

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
        self, X: MatrixLike, k: int = 5, *, effort: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            How many; all labels if there are fewer.
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
        check_argument("predict_top_k.effort", effort, Interval(float, 0, 1, "right"))
        ids, scores = self._top_k(self._check_new(X), k, float(effort))
        return self.classes_[ids], scores

    def _top_k(
        self, X: sp.csr_matrix, k: int, effort: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `predict_top_k`, with positions in `classes_`."""
        k = as_k(k, len(self.classes_))
        if self._label_kind is LabelKind.BINARY:
            return _top_of_two(self._scores(X)[:, 0], k)
        return self.model_.top_k(X, k, as_n_threads(self.n_jobs), effort)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
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
        return scores[:, 0] if self._label_kind is LabelKind.BINARY else scores

    def predict(self, X: MatrixLike) -> DecodedLabels:
        """The best label of each sample; where it may carry several, a set of labels.

        The set is what :meth:`tune_thresholds` has chosen, and without it all labels that score
        above zero.

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
        if self._label_kind is LabelKind.BINARY:
            return self.classes_[(self._scores(X)[:, 0] > 0).astype(np.intp)]
        if self._label_kind is LabelKind.MULTICLASS:
            return self.classes_[self.model_.top_k(X, 1, as_n_threads(self.n_jobs))[0][:, 0]]
        return self._predict_sets(X)

    def explain(
        self,
        x: MatrixLike,
        label: Hashable,
        k: int = 10,
        *,
        feature_names: Names | None = None,
    ) -> Explanation:
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

    def _position(self, label: Hashable) -> int:
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
        if self._label_kind is LabelKind.BINARY:
            sign = 1 if position else -1
            return sign * self.coef_[0].tocsr(), sign * float(self.intercept_[0])
        return self.coef_[position].tocsr(), float(self.intercept_[position])

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
        return model

    def _check_new(self, X: MatrixLike) -> sp.csr_matrix:
        if not self.__sklearn_is_fitted__():  # scikit-learn's own test takes longer than a row
            check_is_fitted(self)
        return check_features(self, X, reset=False)

    def _scores(self, X: sp.csr_matrix) -> np.ndarray:
        return self.model_.scores(X, as_n_threads(self.n_jobs))

    def _to_bundle(self) -> State:
        state = super()._to_bundle() | self.model_.to_state()
        for head in (_CALIBRATION, _DECISION):
            if head in self.__dict__:
                part = self.__dict__[head].to_state()
                state |= {f"{head}{name}": value for name, value in part.items()}
        return state

    def _fields(self) -> Fields:
        return super()._fields() | LinearLabels.FIELDS | {
            f"{_CALIBRATION}*": Parts(), f"{_DECISION}*": Parts()
        }  # fmt: skip

    def _restore(self, state: State) -> None:
        n_classes, n_scores = len(state["classes_"]), len(state["bias"])
        is_binary = state["label_kind_"] == LabelKind.BINARY.name
        if n_scores != (1 if is_binary else n_classes) or (is_binary and n_classes != 2):
            raise ValueError(
                f"bias must have an entry for each of {n_classes} classes_, or one for two classes "
                f"in a 1-D y, got {n_scores} and label_kind_ {state['label_kind_']}"
            )
        self.model_ = LinearLabels.from_state(state)
        maps = take_parts(state, _CALIBRATION)
        if maps:
            self.calibration_ = Calibration.from_state(maps, n_scores)
        decision = take_parts(state, _DECISION)
        if decision:
            self.decision_ = Decision.from_state(decision, n_classes)
        super()._restore(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _top_of_two(score: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Both classes of a binary problem in order; the first class has the negated score."""
    is_second = score > 0
    ids = np.column_stack([is_second, ~is_second]).astype(np.intp)
    scores = np.column_stack([np.abs(score), -np.abs(score)])
    return ids[:, :k], scores[:, :k]
