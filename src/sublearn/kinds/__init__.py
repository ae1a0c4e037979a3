"""What models are asked and what they answer: one class for each kind of question.

An estimator names its kind in its class (`_kind`). The command line and the server ask a model
through its kind, which knows the files of that kind, how to ask, how to write and judge answers,
and how to describe and explain a model. A new kind is a class and a line of `KINDS`.
"""

from sublearn.kinds.base import (
    KINDS,
    Asked,
    Field,
    Form,
    Kind,
    Lesson,
    Refused,
    Wish,
    kind_named,
    kind_of,
)

__all__ = [
    "KINDS",
    "Asked",
    "Field",
    "Form",
    "Kind",
    "Lesson",
    "Refused",
    "Wish",
    "kind_named",
    "kind_of",
]
