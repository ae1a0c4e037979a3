"""From a series to rows: lags (Takens), exogenous columns, calendar (2.4.2).

A row belongs to a time t and to a lead: how long before t the forecast is made. Lags below a day
count back from the last load known then, so that the newest loads are used whatever the lead;
lags of a day and more count back from t, and by whole days more until they are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sublearn.forecast.clock import Clock

__all__ = ["Calendar", "Embedding", "auto_lags", "gather", "lead_blocks", "trailing_mean"]

_DAY = 24 * 60
_WEEK = 7
_DAY_WAVES = 2


def lead_blocks(horizon: int, steps_per_day: int) -> list[int]:
    """Last lead of each block: short blocks first, where the newest loads say most.

    >>> lead_blocks(24, 24), lead_blocks(168, 24)
    ([1, 3, 8, 24], [1, 3, 8, 24, 72, 168])
    """
    day = steps_per_day
    ends = [1, max(1, day // 8), max(1, day // 3), day, 3 * day, 7 * day]
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
class Embedding:
    """Which columns a row has."""

    lags: tuple[int, ...]
    day: int
    windows: tuple[int, ...]  # of means of loads, up to the last one known
    X_lags: tuple[int, ...]
    X_windows: tuple[int, ...]  # of exogenous columns, up to the row's own time

    def reach(self, lead: int) -> int:
        """How far before its own time a row of this lead looks, at most."""
        loads = lead + int(self.back(np.array([lead])).max()) + max(1, self.day // 24)
        exogenous = max(max(self.X_lags, default=0), max(self.X_windows, default=0))
        return max(loads, lead + max(self.windows, default=0), exogenous)

    def back(self, leads: np.ndarray) -> np.ndarray:
        """Steps from each row's time back to its lags, of shape (n_rows, n_lags).

        >>> Embedding((1, 2, 24, 168), 24, (168,), (), ()).back(np.array([1, 30]))
        array([[  1,   2,  24, 168],
               [ 30,  31,  48, 168]])
        """
        lags, leads = np.array(self.lags), leads[:, None]
        days_more = np.maximum(-(-(leads - lags) // self.day), 0)
        return np.where(lags < self.day, leads + lags - 1, lags + self.day * days_more)

    def exogenous(self, X: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Lags and trailing means of the columns of X, which must reach the positions."""
        at = positions[:, None] - np.array(self.X_lags, dtype=int)
        parts = []
        for column in X.T:
            parts.append(gather(column, at))
            parts += [
                trailing_mean(column, positions, window)[:, None] for window in self.X_windows
            ]
        return np.hstack(parts)

    def to_state(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Embedding:
        """Inverse of `to_state`."""
        values: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in state.items()
        }
        return cls(**values)


def gather(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values at these positions, NaN outside."""
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.clip(at, 0, len(values) - 1)], np.nan)


def trailing_mean(values: np.ndarray, ends: np.ndarray, window: int) -> np.ndarray:
    """Mean of the `window` values up to each end; NaN where fewer than half of them are known."""
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    high = np.clip(ends + 1, 0, len(values))
    low = np.clip(ends + 1 - window, 0, len(values))
    n = counts[high] - counts[low]
    usable = (n * 2 >= window) & (ends < len(values))
    return np.where(usable, (sums[high] - sums[low]) / np.maximum(n, 1), np.nan)
