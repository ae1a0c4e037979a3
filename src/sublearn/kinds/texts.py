"""Texts to labels."""

from __future__ import annotations

import warnings
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.utils import get_tags

from sublearn.extreme import LabelReranker, TextTagger
from sublearn.io import load_label_names, load_texts
from sublearn.io.prepared import are_empty, notes_of
from sublearn.kinds.base import (
    Asked,
    Field,
    Form,
    Lesson,
    Refused,
    Wish,
    fit_figures,
    label_weights,
    offers,
)
from sublearn.kinds.labels import OfLabels
from sublearn.kinds.weights import explain_by_weights, weights_at
from sublearn.typing import JsonObject, LabelsLike, Matrix
from sublearn.validation import encode_labels

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.extreme.explanation import Explanation
    from sublearn.validation import EncodedLabels

__all__ = ["TextLabels"]

_ORDERS = ("labels,text", "text,labels")


class TextLabels(OfLabels):
    """Labels of raw text."""

    name = "text_labels"
    gives = "labels of texts"
    data = "text"
    fit_form: ClassVar[tuple[str, ...]] = ("separator", "columns", "label_names")
    form: ClassVar[tuple[str, ...]] = ("text", "separator", "columns")
    items_field = "texts"

    def own(self, model: BaseEstimator) -> BaseEstimator:
        """The classifier behind the words."""
        return model.classifier_

    def feature_names(self, model: BaseEstimator) -> np.ndarray | None:
        """The word of each column; None if they are hashed."""
        return model.feature_names_

    # --- fitting -----------------------------------------------------------------------------

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Texts with something in them or with labels, and their labels."""
        as_read = _form_of(form, {})
        records = zip(*load_texts(path, **as_read), strict=True)
        kept = [(text, names) for text, names in records if text.strip() or names]
        if not kept:
            raise ValueError(f"{path}: must have at least one row, got 0")
        texts, lists = (list(column) for column in zip(*kept, strict=True))
        if form.columns is None:
            labels = encode_labels(lists, len(texts), estimator_name=type(estimator).__name__)
            _warn_of_swapped_columns(texts, labels)
        takes_lists = get_tags(_learner_of(estimator)).classifier_tags.multi_label
        targets = lists if takes_lists else _one_each(lists)
        arguments: tuple[object, ...] = (texts, targets)
        if form.label_names is not None:
            if "label_names" not in signature(estimator.fit).parameters:
                raise Refused("--label-names", "is for the method rerank, which reads titles")
            arguments = (*arguments, load_label_names(form.label_names))
        return Lesson(arguments, len(texts), as_read)

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the work, and the number of labels; the seconds are those of words and labels."""
        found = fit_figures(model.classifier_, model.fit_size_, seconds)
        return found | {"labels": len(model.classes_)}

    def finish(self, model: BaseEstimator, bits: int | None) -> BaseEstimator:
        """Silent, and with fewer bits if they are wanted."""
        for one in (model, model.classifier_):
            if "verbose" in one.get_params(deep=False):
                one.set_params(verbose=0)
        if bits is not None:
            model.classifier_ = model.classifier_.compress(bits)
        return model

    # --- asking ------------------------------------------------------------------------------

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Texts, one for each line, and their labels."""
        found = load_texts(path, **_form_of(form, notes_of(model)), needs_labels=needs_truth)
        return Asked(found.texts, found.labels, are_empty(found.texts))

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """The best labels; of a text without a known word nothing but the biases would speak."""
        if isinstance(model, LabelReranker):  # titles and near texts speak as well
            found, is_mute = super().answers(model, items, wish), are_empty(items)
        else:
            X = model.transform(items)
            is_mute = (np.diff(X.indptr) == 0) | are_empty(items)
            found = super().answers(model.classifier_, X, wish)
        pairs = zip(found, is_mute.tolist(), strict=True)
        return [self.nothing(wish) if mute else answer for answer, mute in pairs]

    def label_counts(self, model: BaseEstimator) -> np.ndarray | None:
        """Training texts that carry each label."""
        return np.asarray(model.label_counts_)

    def explain_one(
        self, model: BaseEstimator, item: Matrix | list[object], row: int, k: int
    ) -> Explanation:
        """The words behind a label's score."""
        if offers(model.classifier_, "explain"):
            return model.explain(item[0], model.classes_[row], k)
        names = model.feature_names_
        x = model.transform(item)
        return explain_by_weights(model.classifier_, x, model.classes_, row, k, names)

    # --- over HTTP ---------------------------------------------------------------------------

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Texts, and how many labels."""
        texts = Field(list[str], ..., "Texts.", {"min_length": 1})
        return self.label_fields() | {"texts": texts}

    def example(self, model: BaseEstimator) -> JsonObject:
        """The words that speak most for the most frequent label, or its name."""
        names, label = model.feature_names_, model.classes_[int(np.argmax(model.label_counts_))]
        weights, known = label_weights(model.classifier_), model.classifier_.classes_.tolist()
        if names is None or weights is None:
            text = str(label)
        else:
            row = weights_at(weights, len(known), known.index(label))
            text = " ".join(str(names[j]) for j in row.indices[np.argsort(-row.data)[:3]])
        return {"texts": [text], "k": min(5, len(model.classes_))}


def _learner_of(estimator: BaseEstimator) -> BaseEstimator:
    """What learns the labels: the classifier of a tagger, else the estimator itself."""
    tagger = estimator.taggers if isinstance(estimator, LabelReranker) else estimator
    return (tagger.classifier if isinstance(tagger, TextTagger) else None) or estimator


def _form_of(form: Form, notes: JsonObject) -> JsonObject:
    """The form of text: as given, else as the notes of a model say, else the usual one."""
    if form.separator == "":
        raise Refused("--separator", "must have characters, got none")
    columns = form.columns or str(notes.get("columns", _ORDERS[0]))
    if columns not in _ORDERS:
        raise Refused("--columns", f"must be {_ORDERS[0]} or {_ORDERS[1]}, got {form.columns}")
    return {"separator": form.separator or str(notes.get("separator", ",")), "columns": columns}


def _one_each(lists: list[list[str]]) -> LabelsLike:
    """The only label of each text, for methods that learn one."""
    for row, names in enumerate(lists):
        if len(names) != 1:
            raise ValueError(
                f"the labels of DATA must be one for each text for this method, got {names[:5]} "
                f"for text {row + 1}; ppd-sparse and pd-sparse take several"
            )
    return [names[0] for names in lists]


def _warn_of_swapped_columns(texts: list[str], labels: EncodedLabels) -> None:
    """Sentences as labels: more labels than rows, and longer than the texts."""
    if labels.n_classes <= len(texts):
        return
    length_of_labels = labels.counts() @ [len(label) for label in labels.classes]
    if length_of_labels > sum(map(len, texts)):
        warnings.warn(
            f"{labels.n_classes:,} labels for {len(texts):,} rows, longer than the texts: if the "
            "text comes first in the file, say --columns text,labels (else --columns labels,text)",
            stacklevel=2,
        )
