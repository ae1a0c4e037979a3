"""Rules for parameters that are lists: of lags, of dates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            return False
        try:
            self.days(value)
        except (TypeError, ValueError):
            return False
        return True

    @staticmethod
    def days(value: Iterable[Any]) -> list[int]:
        """Days since 1970, sorted."""
        stamps = [np.datetime64(item, "D") for item in value]
        return sorted({int(stamp.astype(np.int64)) for stamp in stamps})

    def __str__(self) -> str:
        return "dates"
