"""Why a label: the words or features behind its score, and the path to it in a taxonomy."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, SkipValidation
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from sublearn.kinds.base import Refused, label_weights
from sublearn.serve.services import Question, Service
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["ExplainQuestion", "Explainer", "explainer_of"]

Label = str | int | float | bool


class ExplainQuestion(Question):
    """Labels of one item, and how much to say of each."""

    labels: list[Label] | None = Field(
        None, min_length=1, description="Labels to explain; the best one if absent."
    )
    k: int = Field(10, ge=1, description="Most features to list for a label.")


class TextExplainQuestion(ExplainQuestion):
    """About a text."""

    text: str = Field(description="A text.")


class RowExplainQuestion(ExplainQuestion):
    """About a row, in any of the forms that a question for labels has."""

    row: SkipValidation[list[float] | dict[str, object]] = Field(description="A row.")


class Explainer(ABC):
    """Explains labels of one model; `gives` names what an explanation holds."""

    question: ClassVar[type[Question]]
    item_field: ClassVar[str]
    gives: tuple[str, ...]

    def __init__(self, model: BaseEstimator, service: Service[Question]):
        self.model, self.service = model, service

    def answer(self, question: Question, check: Callable[[], None]) -> JsonObject:
        """`explanations`, one for each label."""
        assert isinstance(question, ExplainQuestion)
        item = self.item(question)
        labels = question.labels or self.model.predict_top_k(item, 1)[0][0].tolist()
        found = []
        for label in labels:
            check()
            found.append(self.explain(item, label, question.k))
        return {"explanations": found}

    def example(self) -> JsonObject:
        """A question that this model answers."""
        (item,) = self.service.example()[f"{self.item_field}s"]
        return {self.item_field: item, "k": 5}

    @abstractmethod
    def item(self, question: ExplainQuestion) -> Matrix | list[object]:
        """What `predict_top_k` takes."""

    def explain(self, item: Matrix | list[object], label: Label, k: int) -> JsonObject:
        """One label: the parts of its score."""
        try:
            (found,) = self.service.kind.explain(self.model, item, [str(label)], k)
        except Refused as error:
            raise ValueError(f"labels {error.sentence}") from None
        return found.to_dict()


class TextExplainer(Explainer):
    """Words, and where they stand in the text."""

    question, item_field = TextExplainQuestion, "text"
    gives = ("contributions", "spans")

    def item(self, question: ExplainQuestion) -> list[object]:
        """The text."""
        assert isinstance(question, TextExplainQuestion)
        return [question.text]

    def explain(self, item: Matrix | list[object], label: Label, k: int) -> JsonObject:
        """The parts of a score; of each word its `spans`, first and last character."""
        text, vectorizer = str(item[0]), self.model.vectorizer_
        found = super().explain(item, label, k)
        known = isinstance(vectorizer, (CountVectorizer, HashingVectorizer))
        of_words = not known or vectorizer.analyzer == "word"
        for part in found["contributions"]:
            part["spans"] = _spans(str(part["feature"]), text, of_words)
        return found


class RowExplainer(Explainer):
    """Features of a row."""

    question, item_field = RowExplainQuestion, "row"
    gives = ("contributions",)

    def item(self, question: ExplainQuestion) -> Matrix | list[object]:
        """A matrix with one row."""
        assert isinstance(question, RowExplainQuestion)
        return self.service.read([question.row])


class PathExplainer(RowExplainer):
    """Where labels stand in a taxonomy."""

    gives = ("path",)

    def explain(self, item: Matrix | list[object], label: Label, k: int) -> JsonObject:
        """The `path` from a root to the label; where a label has several parents, by the first."""
        taxonomy = self.model.taxonomy_
        path: list[object] = [label]
        while parents := taxonomy.parents(path[0]):
            path.insert(0, parents[0])
        return {"label": label, "path": path}


_EXPLAINERS: dict[str, type[Explainer]] = {
    "text_labels": TextExplainer,
    "row_labels": RowExplainer,
    "taxonomy_labels": PathExplainer,
}


def explainer_of(model: BaseEstimator, service: Service[Question]) -> Explainer | None:
    """How to explain labels of this model, if they can be explained."""
    kind = service.kind
    explainer = _EXPLAINERS.get(kind.name)
    if explainer is None:
        return None
    has_weights = explainer is PathExplainer or label_weights(kind.own(model)) is not None
    return explainer(model, service) if has_weights else None


def _spans(feature: str, text: str, of_words: bool) -> list[list[int]]:
    """Where a feature stands in a text, in characters; nowhere if it was made in another way."""
    found = set()
    for name in feature.split(" or "):  # words that are hashed to one column
        inner = r"\W+".join(map(re.escape, name.split()))
        before = r"(?<!\w)" if of_words or name.startswith(" ") else ""
        after = r"(?!\w)" if of_words or name.endswith(" ") else ""
        if inner:
            pattern = re.compile(before + inner + after, re.IGNORECASE)
            found |= {match.span() for match in pattern.finditer(text)}
    return [list(span) for span in sorted(found)]
