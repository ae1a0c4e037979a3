"""From a series to rows: lags (Takens), exogenous columns, calendar (2.4.2).

A row belongs to a time t and to a lead: how long before t the forecast is made. Lags below a day
count back from the last load known then, so that the newest loads are used whatever the lead;
lags of a day and more count back from t, and by whole days more until they are known.

Loads of a row are measured from a baseline: zero, a weekly profile, the last loads known. Loads
that wander from week to week are better learned as deviations from the last weeks at the same
time. Loads whose level moves within a day are better learned as what they gain or lose from the
origin of the forecast on (anchored): then the same gain on other days says most about today's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sublearn.forecast.series import Clock

__all__ = [
    "Baseline",
    "Calendar",
    "Embedding",
    "Rows",
    "auto_lags",
    "lead_blocks",
    "weekly_profile",
]

_DAY = 24 * 60
_WEEK = 7
_DAY_WAVES = 2
_OLDER = 0.5  # what a week counts beside the week after it


def lead_blocks(horizon: int, steps_per_day: int) -> list[int]:
    """Last lead of each block: short blocks first, where the newest loads say most.

    >>> lead_blocks(24, 24), lead_blocks(168, 24)
    ([1, 3, 24], [1, 3, 24, 72, 168])
    """
    day = steps_per_day
    ends = [1, max(1, day // 8), day, 3 * day, 7 * day]
    ends += [week * 7 * day for week in range(2, horizon // (7 * day) + 2)]
    return sorted({min(end, horizon) for end in ends})


def auto_lags(steps_per_day: int, n_weeks: int = 1) -> list[int]:
    """The last hours, the same hour of the days before, and around the same hour a week before."""
    day, week = steps_per_day, _WEEK * steps_per_day
    hour = max(1, day // 24)
    lags = {1, 1 + hour, 1 + 2 * hour, *(day * i for i in range(1, _WEEK + 1))}
    for i in range(1, n_weeks + 1):
        lags |= {i * week - hour, i * week, i * week + hour}
    return sorted(lags)


@dataclass(frozen=True)
class Calendar:
    """Columns of wall time: position in the day, weekday, position in the year, holidays."""

    clock: Clock
    has_week: bool
    has_year: bool
    holidays: tuple[int, ...] = ()  # days since 1970

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """One row for each position."""
        minutes = self.clock.wall_minutes(positions)
        days = minutes // _DAY
        columns = _waves((minutes % _DAY) / _DAY, _DAY_WAVES)
        if self.has_week:
            weekday = (days + 3) % _WEEK  # 1 January 1970 was a Thursday
            columns += [(weekday == i).astype(np.float64) for i in range(_WEEK)]
        if self.has_year:
            columns += _waves(days / 365.2425, 1)
        if self.holidays:
            table = np.array(self.holidays)
            columns += [np.isin(days - shift, table).astype(np.float64) for shift in (0, 1, -1)]
        return np.stack(columns, axis=1)

    @property
    def n_of_week(self) -> int:
        """How many of the columns, from the first on, tell time of day and weekday."""
        return 2 * _DAY_WAVES + _WEEK * self.has_week

    def times_of_day(self, positions: np.ndarray) -> np.ndarray:
        """Wall time in days since midnight, in [0, 1)."""
        return (self.clock.wall_minutes(positions) % _DAY) / _DAY


def _waves(phase: np.ndarray, n: int) -> list[np.ndarray]:
    angles = [2 * np.pi * k * phase for k in range(1, n + 1)]
    return [wave for angle in angles for wave in (np.sin(angle), np.cos(angle))]


@dataclass(frozen=True)
class Rows:
    """Design rows, what is added to a forecast of them, and their times of day in [0, 1).

    The first `n_loads` columns are in units of the load. The first `n_varying`, loads and exogenous
    ones, may have a linear coefficient for each time of day. `linear` are the columns that have one
    at all: a weekly profile knows the day and the week already, and on a few weeks their columns
    would only fit its errors.
    """

    design: np.ndarray
    base: np.ndarray
    times: np.ndarray
    n_loads: int
    n_varying: int
    linear: np.ndarray

    @property
    def usable(self) -> np.ndarray:
        """True for rows without a gap."""
        found: np.ndarray = np.isfinite(self.design).all(axis=1) & np.isfinite(self.base)
        return found

    def only(self, chosen: np.ndarray) -> Rows:
        """Some of the rows."""
        return replace(
            self, design=self.design[chosen], base=self.base[chosen], times=self.times[chosen]
        )


@dataclass(frozen=True)
class Embedding:
    """Which columns a row has."""

    calendar: Calendar
    lags: tuple[int, ...]
    windows: tuple[int, ...]  # of means of loads, up to the last one known
    X_lags: tuple[int, ...]
    X_windows: tuple[int, ...]  # of exogenous columns, up to the row's own time

    @property
    def day(self) -> int:
        """Steps of a day."""
        return self.calendar.clock.steps_per_day

    @property
    def hour(self) -> int:
        """Steps of an hour, one if they are longer."""
        return max(1, self.day // 24)

    def reach(self, lead: int) -> int:
        """How far before its own time a row of this lead looks, at most."""
        loads = lead + int(self.back(np.array([lead])).max()) + self.hour
        exogenous = max(max(self.X_lags, default=0), max(self.X_windows, default=0))
        return max(loads, lead + max(self.windows, default=0), exogenous)

    def back(self, leads: np.ndarray) -> np.ndarray:
        """Steps from each row's time back to its lags, of shape (n_rows, n_lags).

        >>> hours = Calendar(Clock.of_positions(24), has_week=True, has_year=False)
        >>> Embedding(hours, (1, 2, 24, 168), (168,), (), ()).back(np.array([1, 30]))
        array([[  1,   2,  24, 168],
               [ 30,  31,  48, 168]])
        """
        lags, leads = np.array(self.lags), leads[:, None]
        days_more = np.maximum(-(-(leads - lags) // self.day), 0)
        return np.where(lags < self.day, leads + lags - 1, lags + self.day * days_more)

    def rows(
        self, y: np.ndarray, X: np.ndarray | None, positions: np.ndarray, leads: np.ndarray,
        baseline: Baseline, first_position: int = 0,
    ) -> Rows:  # fmt: skip
        """Rows whose loads, and targets, are measured from the baseline.

        `positions` index y, whose first value stands at `first_position` of the clock.
        """
        loads, base = baseline.columns(y, self, positions, leads)
        parts = [loads]
        if X is not None:
            parts.append(self._exogenous(X, positions))
        n_varying = sum(part.shape[1] for part in parts)
        at = positions + first_position
        parts += [leads[:, None].astype(np.float64), self.calendar.columns(at)]
        design = np.hstack(parts)
        linear = np.ones(design.shape[1], dtype=bool)
        if baseline.weeks:
            linear[n_varying + 1 : n_varying + 1 + self.calendar.n_of_week] = False
        times = self.calendar.times_of_day(at)
        return Rows(design, base, times, loads.shape[1], n_varying, linear)

    def _exogenous(self, X: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Lags and trailing means of the columns of X, which must reach the positions."""
        at = positions[:, None] - np.array(self.X_lags, dtype=int)
        parts = []
        for column in X.T:
            parts.append(_gather(column, at))
            parts += [
                _trailing_mean(column, positions, window)[:, None] for window in self.X_windows
            ]
        return np.hstack(parts)


@dataclass(frozen=True)
class Baseline:
    """`weeks` of the profile, 0 for none; anchored rows start from the last hour known."""

    weeks: int = 0
    is_anchored: bool = False

    def columns(
        self, y: np.ndarray, embedding: Embedding, positions: np.ndarray, leads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Columns of loads measured from the baseline, and the baseline of each row's own load.

        A position may lie up to its lead behind the end of y.
        """
        base = np.zeros(len(positions))
        if self.weeks:
            week = 7 * embedding.day
            base = weekly_profile(y, positions, week, self.weeks)
            y = y - weekly_profile(y, np.arange(len(y)), week, self.weeks)
        back, origins = embedding.back(leads), positions - leads
        loads = _gather(y, positions[:, None] - back)
        # The level of a week says nothing of what is gained from an hour on.
        windows = [w for w in embedding.windows if not self.is_anchored or w <= embedding.day]
        means = [_trailing_mean(y, origins, window) for window in windows]
        columns = np.column_stack([loads, *means])
        if not self.is_anchored:
            return columns, base
        hour = embedding.hour
        anchor = _trailing_mean(y, origins, hour)
        # A load about k days old has the anchor of k days ago; recent loads and means have today's.
        days = embedding.day * np.rint(back / embedding.day).astype(np.int64)
        days = np.where(np.array(embedding.lags) < embedding.day, 0, days)
        anchors = _trailing_mean(y, origins[:, None] - days, hour)
        columns[:, : back.shape[1]] -= anchors
        columns[:, back.shape[1] :] -= anchor[:, None]
        return columns, base + anchor


def weekly_profile(y: np.ndarray, positions: np.ndarray, week: int, n_weeks: int) -> np.ndarray:
    """Mean load at the same time of the last weeks that are known, newer ones counting more."""
    before = _gather(y, positions[:, None] - week * np.arange(1, n_weeks + 1))
    weights = np.where(np.isfinite(before), _OLDER ** np.arange(n_weeks), 0.0)
    sums = (weights * np.nan_to_num(before)).sum(axis=1)
    total = weights.sum(axis=1)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan)


def _gather(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values at these positions, NaN outside."""
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.clip(at, 0, len(values) - 1)], np.nan)


def _trailing_mean(values: np.ndarray, ends: np.ndarray, window: int) -> np.ndarray:
    """Mean of the `window` values up to each end; NaN where fewer than half of them are known."""
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    high = np.clip(ends + 1, 0, len(values))
    low = np.clip(ends + 1 - window, 0, len(values))
    n = counts[high] - counts[low]
    usable = (n * 2 >= window) & (ends < len(values))
    return np.where(usable, (sums[high] - sums[low]) / np.maximum(n, 1), np.nan)
