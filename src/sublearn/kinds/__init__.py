"""What models are asked and what they answer: one class for each kind of question.

An estimator names its kind in its class (`_kind`). The command line and the server ask a model
through its kind, which knows the files of that kind, how to ask, how to write and judge answers,
and how to describe and explain a model. A new kind is a class and a line of `KINDS`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sublearn.kinds.base import Asked, Form, Kind, Lesson, Refused, Wish

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = [
    "KINDS",
    "Asked",
    "Form",
    "Kind",
    "Lesson",
    "Refused",
    "Wish",
    "kind_named",
    "kind_of",
]

#: Name of a kind to the module and the class that know it; imported when it is asked for.
KINDS = {
    "text_labels": ("texts", "TextLabels"),
    "row_labels": ("labels", "RowLabels"),
    "row_label_sets": ("labels", "RowLabelSets"),
    "taxonomy_labels": ("taxonomies", "TaxonomyLabels"),
    "row_numbers": ("numbers", "RowNumbers"),
    "row_codes": ("numbers", "RowCodes"),
    "row_likelihoods": ("numbers", "RowLikelihoods"),
    "row_scores": ("others", "RowScores"),
    "sequence_tags": ("sequences", "SequenceTags"),
    "factor_graphs": ("others", "FactorGraphs"),
    "loads": ("loads", "Loads"),
    "vectors": ("others", "Vectors"),
    "words": ("others", "Words"),
}


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    module, cls = KINDS[name]
    found: Kind = getattr(importlib.import_module(f"{__name__}.{module}"), cls)()
    return found


def kind_of(model: BaseEstimator) -> Kind:
    """The kind that the class of a model, or of an unfitted estimator, names.

    Raises
    ------
    ValueError
        For an object of another library, which names none.
    """
    name = vars_of_class(model).get("_kind")
    if name not in KINDS:
        raise ValueError(f"model must be of a class of sublearn, got a {type(model).__name__}")
    return kind_named(str(name))


def vars_of_class(model: object) -> dict[str, object]:
    """What the classes of an object define, the nearest first."""
    found: dict[str, object] = {}
    for cls in reversed(type(model).__mro__):
        found.update(vars(cls))
    return found
