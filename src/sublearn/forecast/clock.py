"""Regular time: the step of a series, its wall time for calendars, and the times of a forecast.

A series either has times (a pandas DatetimeIndex, or an array of datetime64) or only positions;
then a day is `steps_per_day` positions and position 0 is midnight of a Monday. Times with a zone
are kept in UTC, where days have 24 hours, and turned to wall time for hour, weekday and holiday.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

__all__ = ["Clock", "regular_times", "utc_stamps"]

_DAY = 24 * 60  # minutes
_MONDAY = 4 * _DAY  # 5 January 1970


@dataclass(frozen=True)
class Clock:
    """`start` is the minute of position 0 since 1970 (UTC if there is a zone, else wall time)."""

    start: int
    step: int
    zone: str | None = None
    has_dates: bool = True

    def __post_init__(self) -> None:
        if _DAY % self.step:
            raise ValueError(f"clock.step must divide the {_DAY} minutes of a day, got {self.step}")
        if self.zone is not None:
            _zone_called(self.zone)

    @property
    def steps_per_day(self) -> int:
        """Positions in a day of 24 hours."""
        return _DAY // self.step

    def wall_minutes(self, positions: np.ndarray) -> np.ndarray:
        """Minutes of wall time since 1970 at these positions."""
        minutes = self.start + self.step * np.asarray(positions, dtype=np.int64)
        if self.zone is None:
            return minutes
        zone = _zone_called(self.zone)

        def offset(minute: int) -> int:
            moment = datetime.fromtimestamp(60 * minute, tz=timezone.utc).astimezone(zone)
            shift = moment.utcoffset()
            return 0 if shift is None else int(shift.total_seconds()) // 60

        # Clocks change on the hour or half hour: one question for each quarter is enough.
        quarters, which = np.unique(minutes // 15, return_inverse=True)
        return minutes + np.array([offset(15 * int(q)) for q in quarters])[which]

    def position(self, minute: int) -> int:
        """Position of a time on the grid."""
        return (minute - self.start) // self.step

    def times(self, first: int, n: int) -> np.ndarray:
        """datetime64 of n positions from the first, as given (UTC if there is a zone)."""
        minutes = self.start + self.step * np.arange(first, first + n)
        return minutes.astype("datetime64[m]").astype("datetime64[ns]")

    def to_state(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "start": self.start, "step": self.step, "zone": self.zone, "has_dates": self.has_dates,
        }  # fmt: skip

    @classmethod
    def of_positions(cls, steps_per_day: int) -> Clock:
        """For a series without times."""
        return cls(_MONDAY, _DAY // steps_per_day, None, has_dates=False)


def regular_times(index: Any, what: str, known_step: int | None = None) -> tuple[Clock, np.ndarray]:
    """Clock of a DatetimeIndex or of an array of datetime64, and the position of each row.

    Missing times leave gaps between positions. Times that go back, stand twice or fall beside the
    grid are refused. Fewer than 3 rows do not tell their step: it must be known, in minutes.
    """
    zone = _zone_name(getattr(index, "tz", None), what)
    if len(index) < 3 and known_step is None:
        raise ValueError(f"{what} must have at least 3 rows, got {len(index)}")
    minutes = _whole_minutes(index, what)
    gaps = np.diff(minutes)
    _refuse_falling(minutes, gaps, what)
    step = int(np.median(gaps)) if len(minutes) >= 3 or known_step is None else known_step
    if _DAY % step:
        raise ValueError(f"{what} must have a step that divides a day, got {step} minutes")
    beside = np.flatnonzero((minutes - minutes[0]) % step)
    if len(beside):
        moment = np.datetime64(int(minutes[beside[0]]), "m")
        raise ValueError(f"{what} must have steps of {step} minutes, got {moment} beside the grid")
    return Clock(int(minutes[0]), step, zone), (minutes - minutes[0]) // step


def utc_stamps(index: Any) -> np.ndarray:
    """Seconds since 1970 of a DatetimeIndex or of datetime64; in UTC if the index has a zone."""
    return _utc(index).astype("datetime64[s]").astype(np.int64)


def _utc(index: Any) -> np.ndarray:
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    return np.asarray(index)


def _whole_minutes(index: Any, what: str) -> np.ndarray:
    """Minutes since 1970; NaT is none, and a part of one would be lost without a word."""
    moments = _utc(index)
    minutes = moments.astype("datetime64[m]")
    beside = np.flatnonzero(minutes != moments)  # NaT differs from itself
    if len(beside):
        at = beside[0]
        raise ValueError(f"{what} must have times on whole minutes, got {moments[at]} in row {at}")
    return minutes.astype(np.int64)


def _refuse_falling(minutes: np.ndarray, gaps: np.ndarray, what: str) -> None:
    if not (gaps <= 0).any():
        return
    at = int(np.argmax(gaps <= 0)) + 1
    moment = np.datetime64(int(minutes[at]), "m")
    place = "stands twice" if gaps[at - 1] == 0 else "comes after a later time"
    advice = "sort the rows by time"
    if gaps[at - 1] > -120:  # as where clocks go back
        advice = "where clocks go back an hour, give the index a time zone or use UTC"
    raise ValueError(f"{what} must have rising times, got {moment} which {place}; {advice}")


def _zone_name(zone: tzinfo | None, what: str) -> str | None:
    """The name under which a model keeps a time zone, `UTC+01:00` for one without clock changes."""
    if zone is None:
        return None
    name = str(timezone(zone.utcoffset(None))) if isinstance(zone, timezone) else str(zone)
    try:
        _zone_called(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(
            f"{what} must have a time zone with a name such as Europe/Berlin, got {zone!r}"
        ) from None
    return name


def _zone_called(name: str) -> tzinfo:
    sign, hours = name[3:4], name[4:].split(":")
    if name.startswith("UTC") and sign in ("+", "-") and len(hours) >= 2:
        ahead = timedelta(hours=int(hours[0]), minutes=int(hours[1]))
        return timezone(ahead if sign == "+" else -ahead)
    return ZoneInfo(name)
