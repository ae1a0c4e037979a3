"""What a tagger finds out on held-out texts before it learns: words or characters, and thresholds.

A classifier is fitted to some thousand of the texts for each way to read them, and asked about
others. That costs little beside the fit to all texts, and the thresholds serve that fit as well:
scores are margins, and on library records those of a fit to 1,000 texts were those of one to 4,000
within noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from sublearn.extreme.decisions import Decision
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.text_vectors import Analyzer
from sublearn.fitting.held_out import pick_labels, split_rows
from sublearn.fitting.labels import LabelClassifier
from sublearn.metrics.at_k import gains_of_samples
from sublearn.metrics.names import find_positions
from sublearn.metrics.ranking import Ranking
from sublearn.typing import WeightsLike
from sublearn.validation import EncodedLabels

__all__ = ["Choice", "Trial", "choose"]

_LEAST_TEXTS = 50  # fewer say nothing: words, and zero for a threshold
_MOST_TEXTS = 4_000
_MOST_CHARACTERS = 1_000_000  # of the texts of a trial
_MOST_CHARACTERS_IN_ALL = 5_000_000  # above, characters would take too long: words
_HELD_OUT = 0.2
_RANKED = 5  # labels of a text that are looked at
_STANDARD_ERRORS = 2.0  # by which characters, which cost more, must be better
_QUIET = {"callback": None, "verbose": 0, "model_path": None, "random_state": 0}


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen: how texts are read, and how sets are made (None: as the classifier does)."""

    analyzer: str | Analyzer
    decision: Decision | None


@dataclass(frozen=True, eq=False)
class Trial:
    """Texts, their labels, a classifier that is not fitted, and how texts become rows.

    `rows_of(analyzer, train, held_out)` gives the rows of two lists of texts; what there is to
    learn is learnt from the first.
    """

    texts: list[str]
    labels: EncodedLabels
    classifier: BaseEstimator
    rows_of: Callable[[str | Analyzer, list[str], list[str]], tuple[sp.csr_matrix, sp.csr_matrix]]
    sample_weight: WeightsLike | None = None


def choose(trial: Trial, analyzer: str | Analyzer, *, tunes: bool) -> Choice:
    """How to read texts if `analyzer` is "auto", and thresholds if `tunes`."""
    is_open = isinstance(analyzer, str) and analyzer == "auto"
    can_tune = tunes and isinstance(trial.classifier, LinearLabelClassifier)
    can_tune = can_tune and trial.labels.kind.is_multilabel
    plain = "word" if is_open else analyzer
    if sum(map(len, trial.texts)) > _MOST_CHARACTERS_IN_ALL:
        is_open = False
    rows = _sample(trial.texts)
    if not isinstance(trial.classifier, LabelClassifier) or not (is_open or can_tune):
        return Choice(plain, None)
    if len(rows) < _LEAST_TEXTS:
        n_labels = trial.labels.n_classes
        at_zero = Decision("global", np.zeros(n_labels), 0.0, at_least_one=True)
        return Choice(plain, at_zero if can_tune else None)
    asked = _Asked.of(trial, rows)
    best = asked.by(plain, tunes=can_tune)
    if is_open:
        other = asked.by("char_wb", tunes=can_tune)
        best = other if _is_clearly_better(other.gains, best.gains) else best
    return Choice(best.analyzer, best.decision)


def _sample(texts: list[str]) -> np.ndarray:
    """Some of the texts, always the same ones, that are not too long together."""
    order = np.random.default_rng(0).permutation(len(texts))[:_MOST_TEXTS]
    lengths = np.cumsum([len(texts[i]) for i in order])
    return np.sort(order[: max(_LEAST_TEXTS, int(np.searchsorted(lengths, _MOST_CHARACTERS)))])


def _is_clearly_better(gains: np.ndarray, others: np.ndarray) -> bool:
    ahead = gains - others
    return bool(ahead.mean() > _STANDARD_ERRORS * ahead.std() / np.sqrt(len(ahead)))


@dataclass(frozen=True, eq=False)
class _Answers:
    """What a classifier said of held-out texts."""

    analyzer: str | Analyzer
    gains: np.ndarray  # nDCG of the best labels of each text
    decision: Decision | None


@dataclass(frozen=True, eq=False)
class _Asked:
    """The texts of a trial, some of them held out."""

    trial: Trial
    train: np.ndarray
    held_out: np.ndarray

    @classmethod
    def of(cls, trial: Trial, rows: np.ndarray) -> _Asked:
        train, held_out = split_rows(len(rows), _HELD_OUT, np.random.default_rng(0))
        return cls(trial, rows[train], rows[held_out])

    def by(self, analyzer: str | Analyzer, *, tunes: bool) -> _Answers:
        """Fit to some texts read in this way, and ask about the others."""
        trial = self.trial
        parts = ([trial.texts[i] for i in part] for part in (self.train, self.held_out))
        X, X_new = trial.rows_of(analyzer, *parts)
        model = self._fitted(X)
        truth = trial.labels.to_csr()[self.held_out]
        found = model.predict_top_k(X_new, _RANKED)[0]
        ranked = find_positions(trial.labels.classes, found, argument="y")
        gains = gains_of_samples(Ranking(truth, ranked, has_columns=True))
        if tunes:
            model.tune_thresholds(X_new, pick_labels(trial.labels, self.held_out))
        return _Answers(analyzer, gains, model.__dict__.get("decision_"))

    def _fitted(self, X: sp.csr_matrix) -> BaseEstimator:
        model = clone(self.trial.classifier)
        own = model.get_params(deep=False)
        model.set_params(**{name: value for name, value in _QUIET.items() if name in own})
        labels = pick_labels(self.trial.labels, self.train)
        weights = self.trial.sample_weight
        given = {} if weights is None else {"sample_weight": _safe_indexing(weights, self.train)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, labels, **given)
