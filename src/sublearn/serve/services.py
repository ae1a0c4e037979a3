"""What each kind of model is asked over HTTP: the question of its kind as a class of pydantic.

:mod:`sublearn.kinds` says which fields a question has and how it is answered; here its fields are
checked, and documented for OpenAPI.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, SkipValidation, create_model
from pydantic import Field as Checked

from sublearn.kinds import KINDS, Kind, kind_named, kind_of
from sublearn.kinds.base import Field
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["LabelQuestion", "Question", "Service", "service_of"]


class Question(BaseModel):
    """Fields that a question does not have are refused, since they are typing errors.

    So are values of another type that could be taken for the right one, such as true or "5" for 5.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class LabelQuestion(Question):
    """What the questions of all kinds that rank labels have; the kind describes these fields."""

    k: int = 5
    probabilities: bool = False
    threshold: float | None = None


_Asked = TypeVar("_Asked", bound=Question)


class Service(Generic[_Asked]):
    """A model and how to ask it.

    Parameters
    ----------
    model : fitted estimator
        The model. It is asked through a shallow copy that expects no data frame: the kind has dealt
        with names of features, and there is nothing to warn of.
    kind : Kind
        Its kind.
    """

    def __init__(self, model: BaseEstimator, kind: Kind):
        self.kind, self.answers = kind, kind.gives
        self.question: type[Question] = _question_of(kind.question(model))
        self._example, self._read = kind.example(model), kind.reader(model)
        self.model = copy.copy(model)
        vars(self.model).pop("feature_names_in_", None)

    def answer(self, question: _Asked, check: Callable[[], None]) -> JsonObject:
        """The answer as JSON values; `check` is called now and then and may raise to end it."""
        return self.kind.answer(self.model, dict(question), check, self._read)

    def read(self, items: list[object]) -> Matrix | list[object]:
        """What the model takes, of items in JSON."""
        return self._read(items, 0)

    def example(self) -> JsonObject:
        """A question that this model answers."""
        return self._example


def _question_of(fields: dict[str, Field]) -> type[Question]:
    base = LabelQuestion if "k" in fields else Question
    return create_model("Question", __base__=base, **{n: _checked(f) for n, f in fields.items()})


def _checked(field: Field) -> Any:
    kind: Any = field.type
    if field.is_checked_by_kind:
        kind = Annotated[kind, SkipValidation()]
    rules: JsonObject = dict(field.rules)
    return kind, Checked(field.default, description=field.description, **rules)


def service_of(model: BaseEstimator) -> Service[Question]:
    """How to ask this model.

    Raises
    ------
    ValueError
        If nothing can be asked over HTTP, as of an index or of word vectors.
    """
    kind = kind_of(model)
    if not _can_be_asked(kind):
        served = ", ".join(one.gives for one in map(kind_named, KINDS) if _can_be_asked(one))
        raise ValueError(
            f"model must give {served}, got a {type(model).__name__}, which gives {kind.gives}; "
            f"{kind.instead}"
        )
    return Service(model, kind)


def _can_be_asked(kind: Kind) -> bool:
    return type(kind).question is not Kind.question
