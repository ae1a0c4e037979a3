"""Parameters of LoadForecaster that belong together, and the rules of those that are lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import ClassVar, TypeAlias, TypeGuard

import numpy as np

from sublearn.errors import ParameterError
from sublearn.validation import Boolean, Either, Interval, OneOf, OrNone, Positive, Rule, Settings
from sublearn.validation.values import is_int64

__all__ = ["Dates", "DatesLike", "Integers", "LoadFeatures", "LocalKernels"]

#: Days as users write them; of a mapping, its keys.
DatesLike: TypeAlias = Collection[str | date | np.datetime64]


@dataclass(frozen=True)
class Integers(Rule):
    """A sequence of integers, none below `least`."""

    least: int
    may_be_empty: bool = False

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if not isinstance(value, (list, tuple, range, np.ndarray)):
            return False
        if len(value) == 0:
            return self.may_be_empty
        return all(is_int64(item) and item >= self.least for item in value)

    def __str__(self) -> str:
        return f"a sequence of integers of at least {self.least}"


@dataclass(frozen=True)
class Shares(Rule):
    """A sequence of at least one number above 0 and below 1."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if not isinstance(value, (list, tuple, np.ndarray)) or len(value) == 0:
            return False
        return all(Interval(float, 0, 1, "neither").accepts(item) for item in value)

    def __str__(self) -> str:
        return "a sequence of numbers in (0, 1)"


@dataclass(frozen=True)
class Dates(Rule):
    """Dates as `datetime.date`, datetime64 or ISO strings, or a mapping with such keys."""

    def accepts(self, value: object) -> TypeGuard[DatesLike]:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
            return False
        try:
            self.days(value)
        except (TypeError, ValueError):
            return False
        return True

    @staticmethod
    def days(value: DatesLike) -> list[int]:
        """Days since 1970, sorted."""
        return sorted({_day(item) for item in value})

    def __str__(self) -> str:
        return "a collection of dates such as '2008-12-25'"


def _day(item: object) -> int:
    """Days since 1970 of a date; of a time with a zone, the day its clock shows."""
    if not isinstance(item, (str, date, np.datetime64)):
        raise TypeError(f"a date is needed, got {item!r}")
    day = np.asarray(item.isoformat()[:10] if isinstance(item, date) else item, "datetime64[D]")
    if np.isnat(day):
        raise ValueError("a date is needed, got NaT")
    return int(day.astype(np.int64))


@dataclass(frozen=True)
class LoadFeatures(Settings):
    """What is known of an hour that is forecast: the rows that LoadForecaster learns from.

    Parameters
    ----------
    lags : "auto", "held_out" or sequence of int, default="auto"
        Steps back whose loads are columns. "auto" takes the last three hours, the same hour of the
        last seven days and its neighbours a week before; "held_out" chooses between that, days
        alone and two weeks by the error on the last fifth of the first series. Lags below a day
        count back from the last load known, others from the hour that is forecast, and by whole
        days more until they are known.
    lead_blocks : sequence of int or None, default=None
        For strategy="direct": last lead of each block of leads that share a model, ending at the
        horizon. None makes blocks that grow with the lead.
    profile_weeks : "auto" or int, default="auto"
        Above 0, loads are taken as deviations from the mean of so many past weeks at the same
        time, each week counting half as much as the next; "auto" tries 0, 1 and 4.
    anchored : "auto" or bool, default="auto"
        Whether loads are measured from the last hour known, so that a row holds what was gained
        or lost since. Of all combinations that "auto" leaves open the one of least error on the
        last fifth is taken, block by block; on a series of up to 10,000 steps the mean of the two
        best, if the second comes near.
    X_lags : "auto" or sequence of int, default="auto"
        Steps back at which exogenous columns are taken, 0 for the row's own time.
    X_windows : "auto" or sequence of int, default="auto"
        Lengths of trailing means of exogenous columns; "auto" is one day and two.
    steps_per_day : int or None, default=None
        Steps of a series without times, a divisor of 1440; None is 24. A series with times says it
        itself.
    """

    lags: str | Sequence[int] = "auto"
    lead_blocks: Sequence[int] | None = None
    profile_weeks: str | int = "auto"
    anchored: str | bool = "auto"
    X_lags: str | Sequence[int] = "auto"
    X_windows: str | Sequence[int] = "auto"
    steps_per_day: int | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "lags": Either(OneOf("auto", "held_out"), Integers(1)),
        "lead_blocks": OrNone(Integers(1)),
        "profile_weeks": Either(OneOf("auto"), Interval(int, 0, 52)),
        "anchored": Either(OneOf("auto"), Boolean()),
        "X_lags": Either(OneOf("auto"), Integers(0)),
        "X_windows": Either(OneOf("auto"), Integers(1, may_be_empty=True)),
        "steps_per_day": OrNone(Interval(int, 1, 1440)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps_per_day is not None and 1440 % self.steps_per_day:
            raise ParameterError(
                "LoadFeatures.steps_per_day must divide the 1440 minutes of a day, got "
                f"{self.steps_per_day}"
            )
        for name in ("lags", "lead_blocks", "X_lags", "X_windows"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):  # equal whatever it was given as
                object.__setattr__(self, name, tuple(int(item) for item in value))


@dataclass(frozen=True)
class LocalKernels(Settings):
    """The kernel models of LoadForecaster: how many, and how large.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters, each with a model of its own (in the paper: k); None is one for 4,000
        rows, up to eight. Of steps shorter than an hour, whose neighbours are more alike, a cluster
        takes more rows, those of as many days: 8,000 of half hours.
    clustering : {"nmf", "kmeans"}, default="nmf"
        Kernel k-means through a non-negative factorisation, or the plain one.
    kernel_map : {"nystroem", "fourier"}, default="nystroem"
        Landmarks, or random features.
    n_components : int, default=400
        Features of each local model.
    relevance_rows : int, default=400
        Random rows from which the scales of columns are learned, at a cost of their cube.
    line : bool, default=True
        Whether a linear model is taken off first and the kernel models learn what it leaves, as far
        as held-out rows believe them. Without it they are all there is, as in Tang (2016).
    batch : int, default=1
        Rows of a step of the solvers "online" and "online_kernel" (in the paper: s).
    """

    n_clusters: int | None = None
    clustering: str = "nmf"
    kernel_map: str = "nystroem"
    n_components: int = 400
    relevance_rows: int = 400
    line: bool = True
    batch: int = 1

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_clusters": OrNone(Positive(int)),
        "clustering": OneOf("nmf", "kmeans"),
        "kernel_map": OneOf("nystroem", "fourier"),
        "n_components": Positive(int),
        "relevance_rows": Interval(int, 10, 5000),
        "line": Boolean(),
        "batch": Positive(int),
    }

    def small(self, n_components: int, relevance_rows: int) -> LocalKernels:
        """One model that costs little: with at most so many features and rows."""
        return replace(
            self,
            n_clusters=1,
            n_components=min(n_components, self.n_components),
            relevance_rows=min(relevance_rows, self.relevance_rows),
        )
