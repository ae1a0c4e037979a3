"""What each kind of model is asked and what it answers; :func:`service_of` finds a model's kind.

A question is a pydantic class, so that its fields are checked and documented in one place; an
answer is what becomes JSON. A new kind of model is a class and a line of `_KINDS`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation
from sklearn.base import is_regressor

from sublearn.io.prepared import are_empty, is_text_model
from sublearn.serve.rows import Rows
from sublearn.typing import JsonObject, Matrix
from sublearn.validation.values import show

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

    from sublearn.validation.labels import DecodedLabels

__all__ = ["Question", "Service", "service_of"]

#: Scores or features, in a dense form, of the items that a model is asked about at once.
_MOST_VALUES = 4_000_000


class Question(BaseModel):
    """Fields that a question does not have are refused, since they are typing errors.

    So are values of another type that could be taken for the right one, such as true or "5" for 5.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


_Asked = TypeVar("_Asked", bound=Question)


class Service(ABC, Generic[_Asked]):
    """A model and how to ask it."""

    question: ClassVar[type[Question]]
    answers: ClassVar[str]  # what the model gives, for people

    def __init__(self, model: BaseEstimator):
        self.model = model

    @staticmethod
    @abstractmethod
    def fits(model: BaseEstimator) -> bool:
        """Whether a model is of this kind."""

    @abstractmethod
    def answer(self, question: _Asked, check: Callable[[], None]) -> JsonObject:
        """The answer as JSON values; `check` is called now and then and may raise to end it."""

    @abstractmethod
    def example(self) -> JsonObject:
        """A question that this model answers."""


class ItemService(Service[_Asked]):
    """Questions with a list of items, each with an answer of its own."""

    items_field: ClassVar[str]

    def answer(self, question: _Asked, check: Callable[[], None]) -> JsonObject:
        """`predictions` of all items, found for so many of them at once as memory allows."""
        found: list[object] = []
        for part in self._parts(len(getattr(question, self.items_field))):
            check()
            found += self.predictions(question, part)
        return {"predictions": found}

    def _parts(self, n_items: int) -> Iterator[slice]:
        sizes = [len(getattr(self.model, "classes_", ())), getattr(self.model, "n_features_in_", 0)]
        step = max(1, _MOST_VALUES // max(1, *map(int, sizes)))
        return (slice(at, at + step) for at in range(0, n_items, step))

    @abstractmethod
    def predictions(self, question: _Asked, part: slice) -> list[object]:
        """Those of some items."""


class LabelQuestion(Question):
    """Fields of all questions for labels."""

    k: int = Field(5, ge=1, description="Labels per item, at most those of the model.")
    probabilities: bool = Field(False, description="Probabilities instead of scores.")
    threshold: float | None = Field(
        None, description="Only labels whose score or probability is at least this."
    )


_AskedForLabels = TypeVar("_AskedForLabels", bound=LabelQuestion)


class LabelService(ItemService[_AskedForLabels]):
    """The best labels of texts or rows, best first."""

    def predictions(self, question: _AskedForLabels, part: slice) -> list[object]:
        """`labels` and `scores`, or `probabilities`, of each item."""
        if question.probabilities and not hasattr(self.model, "predict_proba_top_k"):
            raise ValueError(
                "probabilities must be false for a model without them, got true; "
                "`sublearn calibrate` adds them"
            )
        best = (
            self.model.predict_proba_top_k if question.probabilities else self.model.predict_top_k
        )
        k = min(question.k, len(self.model.classes_))
        labels, scores = best(self.items(question, part), k)
        name = "probabilities" if question.probabilities else "scores"
        least = -np.inf if question.threshold is None else question.threshold
        n_kept = (scores >= least).sum(axis=1).tolist()  # the best come first
        pairs = zip(labels.tolist(), scores.tolist(), n_kept, strict=True)
        return [{"labels": found[:n], name: values[:n]} for found, values, n in pairs]

    @abstractmethod
    def items(self, question: _AskedForLabels, part: slice) -> Matrix | list[str]:
        """What `predict_top_k` takes."""


class TextQuestion(LabelQuestion):
    """Texts to be labelled."""

    texts: list[str] = Field(min_length=1, description="Texts.")


class TextLabels(LabelService[TextQuestion]):
    """Labels of raw text."""

    question, answers = TextQuestion, "labels of texts"
    items_field = "texts"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Models with words of their own."""
        return is_text_model(model)

    def predictions(self, question: TextQuestion, part: slice) -> list[object]:
        """Those of all texts; of one without any character but white space no label, marked."""
        found = super().predictions(question, part)
        name = "probabilities" if question.probabilities else "scores"
        for i in np.flatnonzero(are_empty(question.texts[part])):
            found[i] = {"labels": [], name: [], "empty": True}
        return found

    def items(self, question: TextQuestion, part: slice) -> Matrix | list[str]:
        """The texts as they are."""
        return question.texts[part]

    def example(self) -> JsonObject:
        """The words that speak most for the most frequent label, or its name."""
        model, names = self.model, self.model.feature_names_
        label = int(np.argmax(model.label_counts_))
        if names is None:
            text = str(model.classes_[label])
        else:
            weights = getattr(model.classifier_, "sparse_coef_", model.coef_).tocsr()
            is_shared = weights.shape[0] < len(model.classes_)  # by two classes, for the second
            row = weights * (1 if label else -1) if is_shared else weights[label]
            text = " ".join(str(names[j]) for j in row.indices[np.argsort(-row.data)[:3]])
        return {"texts": [text], "k": min(5, len(model.classes_))}


class RowQuestion(Question):
    """Rows of numbers, which `Rows` checks: pydantic would go through all of them in one step."""

    rows: SkipValidation[list[list[float] | dict[str, object]]] = Field(
        description="Each a list of all values, an object with `indices` (columns from 0) and "
        "`values`, or an object from names of features to values.",
    )


class RowLabelQuestion(RowQuestion, LabelQuestion):
    """Rows to be labelled."""


_AskedOfRows = TypeVar("_AskedOfRows", bound=RowQuestion)


class _OfRows(ItemService[_AskedOfRows]):
    """Models that take rows of numbers."""

    items_field = "rows"

    def __init__(self, model: BaseEstimator):
        self.rows = Rows(model)
        super().__init__(_without_names(model))

    def answer(self, question: _AskedOfRows, check: Callable[[], None]) -> JsonObject:
        """The answer to rows, which are at least one."""
        if not isinstance(question.rows, list) or not question.rows:
            raise ValueError(f"rows must be a list of at least one row, got {show(question.rows)}")
        return super().answer(question, check)

    def items(self, question: _AskedOfRows, part: slice) -> Matrix | list[str]:
        """The rows as a matrix."""
        return self.rows.matrix(question.rows[part], part.start)

    def example(self) -> JsonObject:
        """One row with one value, by its name if there are names."""
        names = self.rows.column_of
        row = {"indices": [0], "values": [1.0]} if names is None else {next(iter(names)): 1.0}
        return {"rows": [row]}


class RowLabels(_OfRows[RowLabelQuestion], LabelService[RowLabelQuestion]):
    """Labels of rows."""

    question, answers = RowLabelQuestion, "labels of rows"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Models that rank labels."""
        return hasattr(model, "predict_top_k")

    def example(self) -> JsonObject:
        """As for all rows, and how many labels."""
        return super().example() | {"k": min(5, len(self.model.classes_))}


class RowSets(_OfRows[RowQuestion]):
    """Sets of labels, with what no other set can exceed."""

    question, answers = RowQuestion, "sets of labels of rows"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Models that choose labels together."""
        return hasattr(model, "predict_with_bounds")

    def predictions(self, question: RowQuestion, part: slice) -> list[object]:
        """`labels`, `score` and `bound` of each row."""
        sets, scores, bounds = self.model.predict_with_bounds(self.items(question, part))
        names = zip(_as_lists(sets, self.model), scores.tolist(), bounds.tolist(), strict=True)
        return [
            {"labels": labels, "score": score, "bound": bound} for labels, score, bound in names
        ]


class RowNumbers(_OfRows[RowQuestion]):
    """A number, or several, for each row."""

    question, answers = RowQuestion, "numbers of rows"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Regressors on rows."""
        return bool(is_regressor(model)) and hasattr(model, "n_features_in_")

    def predictions(self, question: RowQuestion, part: slice) -> list[object]:
        """The numbers."""
        found: list[object] = self.model.predict(self.items(question, part)).tolist()
        return found


class WordSequenceQuestion(Question):
    """Sentences of words, or of words with further columns."""

    sequences: list[list[str | list[str]]] = Field(
        min_length=1, description="Each a list of words, or of lists: a word, further columns."
    )


class SentenceTags(ItemService[WordSequenceQuestion]):
    """Tags of sentences, by a model from a file of tokens."""

    question, answers = WordSequenceQuestion, "tags of sentences"
    items_field = "sequences"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Models that `sublearn fit --method chain` saved."""
        return "token_columns" in getattr(model, "notes_", {})

    def predictions(self, question: WordSequenceQuestion, part: slice) -> list[object]:
        """The tags of each sentence."""
        from sublearn.structured import word_features

        return _tags(self.model, [word_features(words) for words in question.sequences[part]])

    def example(self) -> JsonObject:
        """Two words."""
        n_columns = int(self.model.notes_["n_columns"])
        words = ["the", "dog"]
        if n_columns > 1:
            return {"sequences": [[[word] + ["x"] * (n_columns - 1) for word in words]]}
        return {"sequences": [words]}


class FeatureSequenceQuestion(Question):
    """Sequences of positions with features."""

    sequences: list[list[list[str] | dict[str, float] | list[float]]] = Field(
        min_length=1,
        description="Each a list of positions: names of features, names with values, or numbers.",
    )


class SequenceTags(ItemService[FeatureSequenceQuestion]):
    """Tags of sequences, by a model from features."""

    question, answers = FeatureSequenceQuestion, "tags of sequences"
    items_field = "sequences"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Sequence models saved in Python."""
        return hasattr(model, "transitions_") and hasattr(model, "predict_one")

    def predictions(self, question: FeatureSequenceQuestion, part: slice) -> list[object]:
        """The tags of each sequence."""
        by_value = [
            np.asarray(positions, dtype=np.float64) if _are_numbers(positions) else positions
            for positions in question.sequences[part]
        ]
        return _tags(self.model, by_value)

    def example(self) -> JsonObject:
        """One position."""
        names = getattr(self.model, "feature_names_", None)
        first = [0.0] * self.model.n_features_in_ if names is None else [str(names[0])]
        return {"sequences": [[first]]}


class ForecastQuestion(Question):
    """How far to look ahead, and what is known of that time."""

    horizon: int | None = Field(None, ge=1, description="Steps; as fitted if absent.")
    future: list[list[float]] | None = Field(
        None, description="Rows of exogenous columns, one for each step."
    )
    coverage: float | None = Field(
        None, gt=0, lt=1, description="Adds the ends of an interval that holds loads this often."
    )


class Forecasts(Service[ForecastQuestion]):
    """The steps that follow the series."""

    question, answers = ForecastQuestion, "forecasts"

    @staticmethod
    def fits(model: BaseEstimator) -> bool:
        """Forecasters."""
        return hasattr(model, "predict_interval")

    def answer(self, question: ForecastQuestion, check: Callable[[], None]) -> JsonObject:
        """`forecast`, by series if there are several, with `times`, `low` and `high` if known."""
        X = None if question.future is None else np.array(question.future, dtype=np.float64)
        forecast = self.model.predict(question.horizon, X)
        found: JsonObject = {"forecast": _series(forecast)}
        if hasattr(forecast, "index"):
            found["times"] = [str(when) for when in forecast.index]
        if question.coverage is not None:
            ends = self.model.predict_interval(question.horizon, X, coverage=question.coverage)
            found["low"], found["high"] = map(_series, ends)
        return found

    def example(self) -> JsonObject:
        """One step."""
        question: JsonObject = {"horizon": 1}
        if self.model.n_features_in_:
            question["future"] = [[0.0] * self.model.n_features_in_]
        return question


#: Asked in this order: a tagger of texts also ranks labels, a forecaster is also a regressor.
_KINDS: tuple[type[Service[Any]], ...] = (
    TextLabels,
    SentenceTags,
    SequenceTags,
    Forecasts,
    RowSets,
    RowLabels,
    RowNumbers,
)


def service_of(model: BaseEstimator) -> Service[Question]:
    """How to ask this model.

    Raises
    ------
    ValueError
        If nothing can be asked over HTTP, as of an index or of word vectors.
    """
    for kind in _KINDS:
        if kind.fits(model):
            return kind(model)
    kinds = ", ".join(kind.answers for kind in _KINDS)
    raise ValueError(f"model must give {kinds}, got a {type(model).__name__}")


def _without_names(model: BaseEstimator) -> BaseEstimator:
    """A shallow copy that expects no frame: `Rows` has dealt with names, and nobody is warned."""
    model = copy.copy(model)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model


def _tags(model: BaseEstimator, sequences: Sequence[object]) -> list[object]:
    return [{"tags": list(tags)} for tags in model.predict(sequences)]


def _are_numbers(positions: Sequence[object]) -> bool:
    return bool(positions) and all(
        isinstance(position, list) and not any(isinstance(value, str) for value in position)
        for position in positions
    )


def _series(values: np.ndarray | pd.Series | pd.DataFrame) -> JsonObject | list[float]:
    if hasattr(values, "columns"):
        return {str(name): values[name].tolist() for name in values.columns}
    return np.asarray(values).tolist()


def _as_lists(sets: DecodedLabels, model: BaseEstimator) -> list[list[object]]:
    """Sets of labels in any form as lists of names."""
    if isinstance(sets, list):
        return [list(labels) for labels in sets]
    if getattr(sets, "ndim", 2) == 1:
        return [[label] for label in sets.tolist()]
    rows = sets.toarray() if hasattr(sets, "toarray") else np.asarray(sets)
    return [model.classes_[np.flatnonzero(row)].tolist() for row in rows]
