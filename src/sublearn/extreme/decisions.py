"""Which labels a sample gets where it may carry several: how `predict` makes sets of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.execution import one_at_a_time
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.extreme.probabilities import LabelProbabilities
from sublearn.extreme.thresholds import (
    METRICS,
    Entries,
    best_threshold,
    best_thresholds,
    expected_f1,
)
from sublearn.io.fields import Fields, Floats, Number, check_fields
from sublearn.typing import LabelsLike, MatrixLike, State
from sublearn.validation import (
    Boolean,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    check_arguments,
    decode_predictions,
)

if TYPE_CHECKING:
    from sublearn.validation.labels import DecodedLabels

__all__ = ["Decision", "LabelDecisions"]

_Self = TypeVar("_Self", bound="LabelDecisions")
_RULES: dict[str, Rule] = {
    "rule": OneOf("global", "per_label", "expected_f1"),
    "metric": OneOf(*METRICS),
    "at_least_one": Boolean(),
    "min_positives": Positive(int),
}
_ALL_SCORES = 2**22  # held-out scores that are all looked at
_MOST_LISTED = 100  # labels of a held-out row that are looked at where there are more scores
_MOST_EXPECTED = 32  # labels of a row that expected F1 chooses among


class Decision:
    """How sets are made of scores.

    Parameters
    ----------
    rule : str
        "global", "per_label" or "expected_f1".
    thresholds : ndarray of shape (n_labels,)
        A label is predicted where it scores above its own.
    shared : float
        The threshold of labels that have none of their own, also of those that come later.
    at_least_one : bool
        Whether a sample whose labels all score too low gets the best one.
    """

    FIELDS: ClassVar[Fields] = {
        "rule": _RULES["rule"],
        "thresholds": Floats("labels", finite=True),
        "shared": Number(),
        "at_least_one": Boolean(),
    }

    def __init__(self, rule: str, thresholds: np.ndarray, shared: float, at_least_one: bool):
        self.rule, self.thresholds = rule, thresholds
        self.shared, self.at_least_one = float(shared), bool(at_least_one)
        self._shifted: tuple[LinearLabels, LinearLabels] | None = None

    def to_state(self) -> State:
        """What `from_state` takes."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def __reduce__(self) -> tuple[type[Decision], tuple[object, ...]]:
        return Decision, tuple(self.to_state().values())

    @staticmethod
    def from_state(state: State, n_labels: int) -> Decision:
        """Inverse of `to_state`, for so many labels; what does not fit is a ValueError."""
        check_fields(state, Decision.FIELDS, {"labels": n_labels})
        return Decision(**state)

    def for_labels(self, before: np.ndarray, after: np.ndarray) -> Decision:
        """The same for other labels: thresholds by name, the shared one for those that are new."""
        known = dict(zip(before.tolist(), self.thresholds.tolist(), strict=True))
        thresholds = np.array([known.get(label, self.shared) for label in after.tolist()])
        return Decision(self.rule, thresholds, self.shared, self.at_least_one)

    def above(self, model: LinearLabels, X: sp.csr_matrix, n_threads: int) -> sp.csr_matrix:
        """The labels that score above their thresholds."""
        if self.rule == "global":
            return model.above(X, self.shared, n_threads)
        if self._shifted is None or self._shifted[0] is not model:
            bias = (model.bias - self.thresholds).astype(model.bias.dtype)
            self._shifted = model, LinearLabels(model.lists, bias)
        return self._shifted[1].above(X, 0.0, n_threads)


class LabelDecisions(LabelProbabilities):
    """The part of `LinearLabelClassifier` that has `tune_thresholds` and makes sets by it."""

    n_jobs: int | None
    decision_: Decision

    @one_at_a_time
    def tune_thresholds(
        self: _Self,
        X: MatrixLike,
        y: LabelsLike,
        rule: str = "global",
        *,
        metric: str = "f1_micro",
        at_least_one: bool = True,
        min_positives: int = 10,
    ) -> _Self:
        """Learn from held-out rows which labels `predict` gives to a sample.

        Without it `predict` gives the labels that score above zero. It is kept by `save`,
        `compress`, `partial_fit` and `remove_labels`, until the next `fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows that were not used to fit.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in the form given to `fit`, several to a sample.
        rule : {"global", "per_label", "expected_f1"}, default="global"
            - "global": one threshold for all labels, the best for `metric` on these rows.
            - "per_label": for each label the threshold of its own largest F1, where at least
              `min_positives` of these rows carry it; the others share the global one.
            - "expected_f1": for each sample the set of largest expected F1, taking its labels for
              independent: it goes by probabilities, and needs :meth:`calibrate` before. At most
              32 labels.
        metric : {"f1_micro", "f1_samples", "f1_macro"}, default="f1_micro"
            What the global threshold is the best for; see :mod:`sublearn.metrics`. "f1_macro" is
            a mean over all labels of the model.
        at_least_one : bool, default=True
            Give a sample whose labels all score too low the best one, if it has a feature.
        min_positives : int, default=10
            See `rule`.

        Returns
        -------
        LinearLabelClassifier
            Itself.
        """
        check_arguments("tune_thresholds", locals(), _RULES)
        X = self._check_new(X)
        self._refuse_one_label_each(rule)
        entries = self._held_out_entries(X, self._truth(y, X.shape[0], "tune_thresholds"))
        self.decision_ = self._tuned(entries, rule, metric, bool(at_least_one), int(min_positives))
        return self

    def _tuned(
        self, entries: Entries, rule: str, metric: str, at_least_one: bool, min_positives: int
    ) -> Decision:
        shared = 0.0
        if rule != "expected_f1":
            shared = best_threshold(entries, metric, at_least_one=at_least_one)
        thresholds = np.full(len(self.classes_), shared)
        if rule == "per_label":
            thresholds = best_thresholds(entries, shared, min_positives)
        return Decision(rule, thresholds, shared, at_least_one)

    def _refuse_one_label_each(self, rule: str) -> None:
        if not self._label_kind.is_multilabel:
            raise ValueError(
                "tune_thresholds is for labels of which a sample may carry several, got a model "
                "fitted to one label per sample: its predict gives the best label"
            )
        if rule == "expected_f1" and not hasattr(self, "calibration_"):
            raise ParameterError(
                "tune_thresholds.rule must be 'global' or 'per_label' before "
                "calibrate(X, y) was called on held-out rows, got 'expected_f1'"
            )

    def _held_out_entries(self, X: sp.csr_matrix, truth: sp.csr_matrix) -> Entries:
        """Scores of all labels; of the best ones where that would be too many."""
        n_rows, n_labels = truth.shape
        k = n_labels if n_rows * n_labels <= _ALL_SCORES else min(n_labels, _MOST_LISTED)
        ids, scores = self._top_k(X, k)
        rows = np.repeat(np.arange(n_rows), k)
        return Entries(rows, ids.ravel(), scores.ravel().astype(np.float64), truth)

    def _predict_sets(self, X: sp.csr_matrix) -> DecodedLabels:
        """Labels of samples that may carry several, in the form of `fit`."""
        n_threads = as_n_threads(self.n_jobs)
        decision = self.__dict__.get("decision_")
        if decision is None:
            predicted = self.model_.above(X, 0.0, n_threads)
        elif decision.rule == "expected_f1":
            predicted = self._best_expected(X)
        else:
            predicted = decision.above(self.model_, X, n_threads)
        if decision is not None and decision.at_least_one:
            predicted = self._with_the_best(X, predicted)
        return decode_predictions(self._label_kind, self.classes_, predicted)

    def _with_the_best(self, X: sp.csr_matrix, predicted: sp.csr_matrix) -> sp.csr_matrix:
        """One label for each sample that has a feature and no label."""
        rows = np.flatnonzero((np.diff(predicted.indptr) == 0) & (np.diff(X.indptr) > 0))
        if len(rows) == 0:
            return predicted
        best = self._top_k(X[rows], 1)[0][:, 0]
        ones = np.ones(len(rows), dtype=bool)
        return sp.csr_matrix(predicted + sp.csr_matrix((ones, (rows, best)), predicted.shape))

    def _best_expected(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """The set of largest expected F1 of each sample that has a feature."""
        ids, scores = self._top_k(X, _MOST_EXPECTED)
        chances = self.calibration_.probability(ids, scores)
        order = np.argsort(-chances, axis=1, kind="stable")
        ids, chances = (np.take_along_axis(part, order, axis=1) for part in (ids, chances))
        rest = np.maximum(self._total_probability(X) - chances.sum(axis=1), 0.0)
        if ids.shape[1] == len(self.classes_):
            rest[:] = 0.0
        sizes = 1 + expected_f1(chances, rest).argmax(axis=1)
        sizes[np.diff(X.indptr) == 0] = 0
        is_in = np.arange(ids.shape[1]) < sizes[:, None]
        entries = (np.ones(is_in.sum(), dtype=bool), (np.nonzero(is_in)[0], ids[is_in]))
        return sp.csr_matrix(entries, shape=(X.shape[0], len(self.classes_)))

    def _keep_decision(self, before: np.ndarray) -> None:
        """Labels have come or gone since `before`: their thresholds go with them."""
        if "decision_" in self.__dict__:
            self.decision_ = self.decision_.for_labels(before, self.classes_)
