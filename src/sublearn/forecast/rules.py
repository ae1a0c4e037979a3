"""Rules for parameters that are lists: of lags, of dates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from sublearn.validation import Rule
from sublearn.validation.values import is_int64

__all__ = ["Dates", "Integers"]


@dataclass(frozen=True)
class Integers(Rule):
    """A sequence of integers, none below `least`."""

    least: int
    may_be_empty: bool = False

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)) or not isinstance(
            value, (list, tuple, range, np.ndarray)
        ):
            return False
        if len(value) == 0:
            return self.may_be_empty
        return all(is_int64(item) and item >= self.least for item in value)

    def __str__(self) -> str:
        return f"a sequence of integers of at least {self.least}"


@dataclass(frozen=True)
class Dates(Rule):
    """Dates as `datetime.date`, datetime64 or ISO strings, or a mapping with such keys."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
            return False
        try:
            self.days(value)
        except (TypeError, ValueError):
            return False
        return True

    @staticmethod
    def days(value: Collection[Any]) -> list[int]:
        """Days since 1970, sorted."""
        return sorted({_day(item) for item in value})

    def __str__(self) -> str:
        return "a collection of dates such as '2008-12-25'"


def _day(item: Any) -> int:
    """Days since 1970 of a date; of a time with a zone, the day its clock shows."""
    if not isinstance(item, (str, date, np.datetime64)):
        raise TypeError(f"a date is needed, got {item!r}")
    if isinstance(item, date):
        item = item.isoformat()[:10]
    day = np.datetime64(item, "D")
    if np.isnat(day):
        raise ValueError("a date is needed, got NaT")
    return int(day.astype(np.int64))
