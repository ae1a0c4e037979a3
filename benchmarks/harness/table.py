"""A table of a measured page: what is measured, in a sentence, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.bench import Bench

__all__ = ["Cell", "Chart", "Figures", "Row", "Series", "Table", "form_of", "is_less_better"]

#: Text, or a number that the form of its column prints.
Cell = str | float | int | None
Row = Sequence[Cell]


@dataclass(frozen=True)
class Series:
    """A line of a chart, or a group of its bars; `low` and `high` are a band around `y`.

    In a chart of bars `x` holds names.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True)
class Chart:
    """A picture of measured figures: "line", "points" or "bars"; charts.py draws it.

    `name` is that of its file, unique within its page; without one, or a title, it has the table's.
    """

    name: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: str = "line"
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


@dataclass(frozen=True)
class Figures:
    """What was measured. A column is a heading and the form of its numbers.

    A form is one of Python's, "" for text; after it stands ``<`` where less is better and ``>``
    where more is: these columns are compared between two runs. `note` follows the table's own,
    `charts` stand above the table.
    """

    columns: Mapping[str, str]
    rows: Sequence[Row]
    note: str = ""
    charts: Sequence[Chart] = ()


@dataclass(frozen=True)
class Table:
    """A named table; `page` is the file it goes to, that of its script if "", none if None."""

    name: str
    title: str
    note: str
    measure: Callable[[Bench], Figures] = field(repr=False)
    page: str | None = ""


def form_of(form: str) -> str:
    """Python's part of a form."""
    return form.rstrip("<>")


def is_less_better(form: str) -> bool | None:
    """None where neither less nor more is better."""
    return {"<": True, ">": False}.get(form[-1:])
