"""From the body of a request to the body of its answer, in a thread of `Work`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from sublearn.serve.explaining import ExplainQuestion
from sublearn.serve.limits import Limits, Refusal
from sublearn.serve.reading import read_json, sentence_of
from sublearn.serve.services import LabelQuestion, Question
from sublearn.serve.writing import write_json
from sublearn.typing import JsonObject
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Asked", "answer", "read_question", "refusing"]

Check = Callable[[], None]


class Asked(Protocol):
    """What a service and an explainer have in common."""

    model: BaseEstimator

    @property
    def question(self) -> type[Question]:
        """The class of its questions."""

    def answer(self, question: Question, check: Check, /) -> JsonObject:
        """The answer as JSON values."""


def answer(service: Asked, limits: Limits, body: bytes, check: Check) -> list[bytes]:
    """The answer to a question, as JSON in pieces."""
    with refusing(service.question):
        question, _ = read_question(service, limits, body, check)
        return write_json(service.answer(question, check), limits, check)


def read_question(
    service: Asked, limits: Limits, body: bytes, check: Check
) -> tuple[Question, int]:
    """A question within all limits, and its number of items."""
    found = read_json(body, limits)
    if not isinstance(found, dict):
        raise ValueError(f"the question must be an object, got {show(found)}")
    check()
    n_items = limits.check_items(found)
    question = service.question.model_validate(found)
    if isinstance(question, LabelQuestion):
        limits.check_labels(question.k, n_items, len(service.model.classes_))
    elif isinstance(question, ExplainQuestion):
        limits.check_labels(question.k, len(question.labels or "1"), question.k)
    return question, n_items


@contextmanager
def refusing(question: type[Question]) -> Iterator[None]:
    """Errors about a question as the refusal of its request."""
    try:
        yield
    except ValidationError as error:
        raise Refusal(422, sentence_of(error, question), "question") from None
    except ValueError as error:
        raise Refusal(422, str(error), "question") from None
