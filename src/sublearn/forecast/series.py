"""A load series as a user passes it, made an array on a regular grid; a forecast made like it.

A series either has times (a pandas DatetimeIndex) or only positions; then a day is `steps_per_day`
positions and position 0 is midnight of a Monday. Times with a zone are kept in UTC, where days have
24 hours, and turned to wall time for hour, weekday and holiday; days, and other steps that are even
on the clock alone, are kept in wall time. Messages show times as the user's clock does.
Gaps become NaN. pandas is never imported unless a pandas object came in.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, TypeAlias, TypeGuard
from zoneinfo import ZoneInfo

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = [
    "Clock",
    "LoadSeries",
    "LoadsLike",
    "Shape",
    "Table",
    "check_exogenous",
    "check_series",
    "column_names",
    "exogenous_grid",
    "refuse_other_times",
    "warn_of_gaps",
]

#: Loads or exogenous columns as users pass them.
LoadsLike: TypeAlias = "ArrayLike | pd.Series | pd.DataFrame"
#: A forecast as users get it.
Table: TypeAlias = "np.ndarray | pd.Series | pd.DataFrame"

_DAY = 24 * 60  # minutes
_WEEK = 7  # days
_MONDAY = 4 * _DAY  # 5 January 1970


@dataclass(frozen=True)
class Clock:
    """`start` is the minute of position 0 since 1970: in UTC if there is a zone, else wall time.

    With `is_wall` positions are even steps of wall time in the zone, as days from midnight to
    midnight are, though some have 23 or 25 hours.
    """

    start: int
    step: int
    zone: str | None = None
    has_dates: bool = True
    is_wall: bool = False

    def __post_init__(self) -> None:
        if _DAY % self.step:
            raise ValueError(f"clock.step must divide the {_DAY} minutes of a day, got {self.step}")
        if self.zone is not None:
            _zone_called(self.zone)

    @property
    def steps_per_day(self) -> int:
        """Positions in a day of 24 hours."""
        return _DAY // self.step

    @property
    def day_ahead(self) -> int:
        """Steps of the next day, or of the next week if a step is a day."""
        return max(self.steps_per_day, _WEEK if self.step == _DAY else 1)

    def wall_minutes(self, positions: np.ndarray) -> np.ndarray:
        """Minutes of wall time since 1970 at these positions."""
        minutes = self.start + self.step * np.asarray(positions, dtype=np.int64)
        if self.zone is None or self.is_wall:
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
        """datetime64 of n positions from the first, in UTC if there is a zone and no `is_wall`."""
        minutes = self.start + self.step * np.arange(first, first + n)
        return minutes.astype("datetime64[m]").astype("datetime64[ns]")

    def seconds_of(self, index: pd.DatetimeIndex) -> np.ndarray:
        """Seconds since 1970 of given times, as this clock counts them."""
        moments = _wall(index) if self.is_wall else _utc(index)
        return moments.astype("datetime64[s]").astype(np.int64)

    def show(self, seconds: int) -> str:
        """A moment of this clock as the user's own clock shows it."""
        return _shown(seconds, None if self.is_wall else self.zone)

    @classmethod
    def of_positions(cls, steps_per_day: int) -> Clock:
        """For a series without times."""
        return cls(_MONDAY, _DAY // steps_per_day, None, has_dates=False)


@dataclass(frozen=True)
class Shape:
    """How forecasts are given back: like the series that was fitted."""

    is_pandas: bool
    is_one: bool
    names: list[str | int] | None
    dtype: str

    def forecast(self, values: np.ndarray, clock: Clock, first: int) -> Table:
        """An array, Series or DataFrame of a forecast of shape (horizon, n_series)."""
        values = values.astype(self.dtype, copy=False)
        if not self.is_pandas:
            return values[:, 0] if self.is_one else values
        import pandas as pd

        index = pd.DatetimeIndex(clock.times(first, len(values)))
        if clock.is_wall:
            first_of_two = np.ones(len(index), dtype=bool)
            index = index.tz_localize(
                clock.zone, ambiguous=first_of_two, nonexistent="shift_forward"
            )
        elif clock.zone is not None:
            index = index.tz_localize("UTC").tz_convert(clock.zone)
        if self.is_one:
            return pd.Series(values[:, 0], index=index, name=self.names[0] if self.names else None)
        return pd.DataFrame(values, index=index, columns=self.names)


@dataclass(frozen=True)
class LoadSeries:
    """Values on the grid, (n, n_series), NaN in gaps; `rows` are the positions of given rows."""

    values: np.ndarray
    rows: np.ndarray
    clock: Clock
    shape: Shape


def check_series(
    y: LoadsLike, steps_per_day: int | None, what: str, like: Clock | None = None
) -> LoadSeries:
    """A LoadSeries of an array, a pandas Series or a pandas DataFrame; `what` it is called.

    `like` is the clock of the series that this one belongs to.
    """
    values = _numbers(y, what)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(
            f"{what} must be a series or a table with a column for each series, got shape "
            f"{values.shape}"
        )
    dtype = "float32" if values.dtype == np.float32 else "float64"
    names = _names(y, values) if _is_pandas(y) else None
    shape = Shape(_is_pandas(y), values.ndim == 1, names, dtype)
    values = values.reshape(len(values), -1).astype(np.float64)
    if np.isinf(values).any():
        raise ValueError(f"{what} must be finite or NaN, got infinity")
    clock, rows = _clock_of(y, steps_per_day, len(values), what, like)
    grid = np.full((int(rows[-1]) + 1, values.shape[1]), np.nan)
    grid[rows] = values
    return LoadSeries(grid, rows, clock, shape)


def check_exogenous(X: LoadsLike, n_rows: int, n_columns: int | None, what: str) -> np.ndarray:
    """Exogenous columns as an array of the rows that belong to them, NaN where there are gaps."""
    values = _numbers(X, what).astype(np.float64, copy=False)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"{what} must be a column or a table of {n_rows} rows, got shape {values.shape}"
        )
    values = values[:, None] if values.ndim == 1 else values
    if len(values) != n_rows:
        raise ValueError(f"{what} must have {n_rows} rows, got {len(values)}")
    if n_columns is not None and values.shape[1] != n_columns:
        raise ValueError(
            f"{what} must have as many columns as in fit ({n_columns}), got {values.shape[1]}"
        )
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise ValueError(f"{what} must be finite or NaN, got {values[row, column]} in row {row}")
    return values


def exogenous_grid(
    X: LoadsLike, series: LoadSeries, what: str, *, ahead: int = 0, n_columns: int | None = None
) -> np.ndarray:
    """X on the series' grid and `ahead` steps beyond, its short gaps filled by straight lines.

    Longer gaps stay NaN: rows that need them are not learned from.
    """
    given = check_exogenous(X, len(series.rows) + ahead, n_columns, what)
    n_grid = len(series.values)
    at = np.concatenate([series.rows, np.arange(n_grid, n_grid + ahead)])
    refuse_other_times(X, series.clock, at, what)
    grid = np.full((n_grid + ahead, given.shape[1]), np.nan)
    grid[at] = given
    longest = max(1, series.clock.steps_per_day // 4)
    filled = np.stack([_without_short_gaps(column, longest, what) for column in grid.T], axis=1)
    lines = f"up to {longest} in a row are filled by straight lines"
    warn_of_gaps(given, what, f"{lines}, rows that need longer ones are left out")
    return filled


def warn_of_gaps(given: np.ndarray, what: str, remedy: str) -> None:
    """Say how many values are missing, and what is done about it."""
    n_gaps = int(np.isnan(given).sum())
    if n_gaps:
        warnings.warn(f"{what} has {n_gaps} gaps (NaN): {remedy}", UserWarning, stacklevel=4)


def _without_short_gaps(column: np.ndarray, longest: int, what: str) -> np.ndarray:
    """Runs of up to `longest` NaN between values become straight lines, at the ends constants."""
    known = np.flatnonzero(np.isfinite(column))
    if len(known) == 0:
        raise ValueError(f"{what} must have numbers in each column, got none in one")
    everywhere, n = np.arange(len(column)), len(column)
    ends = np.concatenate([[-1], known, [n]])
    after = np.searchsorted(known, everywhere)  # the first known value that does not come before
    lengths = ends[after + 1] - ends[after] - 1
    is_long = np.isnan(column) & (lengths > longest)
    return np.where(is_long, np.nan, np.interp(everywhere, known, column[known]))


def column_names(X: LoadsLike | None) -> list[str] | None:
    """Of a data frame whose columns all have strings as names."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def refuse_other_times(X: LoadsLike, clock: Clock, positions: np.ndarray, what: str) -> None:
    """Exogenous rows with times that are not those of the steps they would be taken for."""
    if not (_is_pandas(X) and hasattr(X.index, "tz") and clock.has_dates):
        return
    if (X.index.tz is None) != (clock.zone is None):
        has = "without" if clock.zone is None else "with"
        raise ValueError(f"{what} must have times {has} a time zone, as y, got {X.index.tz}")
    given = clock.seconds_of(X.index)
    wanted = 60 * (clock.start + clock.step * positions)
    beside = np.flatnonzero(given != wanted)
    if len(beside):
        due, found = (clock.show(int(times[beside[0]])) for times in (wanted, given))
        raise ValueError(f"{what} must have the times of y, got {found} in the row of {due}")


def _numbers(given: LoadsLike, what: str) -> np.ndarray:
    """An array of numbers; words and times are refused, though NumPy can make numbers of some."""
    table: pd.DataFrame = given  # or one of polars, if it has columns
    for name in getattr(given, "columns", ()):  # an array of a whole frame has one dtype for all
        _as_numbers(np.asarray(table[name]), what, f" in column {name!r}")
    return _as_numbers(np.asarray(given), what)


def _as_numbers(values: np.ndarray, what: str, where: str = "") -> np.ndarray:
    kind, problem = values.dtype.kind, None
    if kind in "fiub":
        return values
    if kind == "O" and not any(isinstance(value, (str, bytes)) for value in values.flat):
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError) as error:
            problem = error
    advice = "; times belong to a pandas DatetimeIndex" if kind == "M" else ""
    raise ValueError(
        f"{what} must hold numbers, got dtype {values.dtype}{where}{advice}"
    ) from problem


def _is_pandas(y: LoadsLike | None) -> TypeGuard[pd.Series | pd.DataFrame]:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(y, (pandas.Series, pandas.DataFrame))


def _names(y: pd.Series | pd.DataFrame, values: np.ndarray) -> list[str | int] | None:
    """As they are if a file can keep them, else in words."""
    if values.ndim == 1 and y.name is None:
        return None
    names = y.columns.tolist() if values.ndim == 2 else [y.name]
    return [name if isinstance(name, (str, int)) else str(name) for name in names]


def _clock_of(
    y: LoadsLike, steps_per_day: int | None, n: int, what: str, like: Clock | None
) -> tuple[Clock, np.ndarray]:
    if not _is_pandas(y):
        return Clock.of_positions(24 if steps_per_day is None else steps_per_day), np.arange(n)
    if not hasattr(y.index, "tz"):
        raise ValueError(
            f"{what} must have a DatetimeIndex, got {type(y.index).__name__}; pass an array "
            "for a series without times"
        )
    known = None if steps_per_day is None else Clock.of_positions(steps_per_day).step
    clock, rows = _regular_times(y.index, what, known, like)
    if steps_per_day is not None and clock.steps_per_day != steps_per_day:
        raise ValueError(
            f"{what} must have {steps_per_day} steps a day as steps_per_day says, got "
            f"{clock.steps_per_day}"
        )
    return clock, rows


# --- times --------------------------------------------------------------------------------------


def _regular_times(
    index: pd.DatetimeIndex, what: str, known_step: int | None, like: Clock | None
) -> tuple[Clock, np.ndarray]:
    """Clock of an index, and the position of each row.

    Missing times leave gaps between positions. Times that go back, stand twice or fall beside the
    grid are refused. Fewer than 3 rows do not tell their step: it must be known, in minutes.
    """
    zone = _zone_name(index.tz, what)
    if len(index) < 3 and known_step is None:
        raise ValueError(f"{what} must have at least 3 rows, got {len(index)}")
    minutes = _whole_minutes(index, what)
    _refuse_falling(minutes, zone, what)
    step = known_step if len(minutes) < 3 and known_step else int(np.median(np.diff(minutes)))
    is_wall = _counts_by_wall(index, minutes, step) if like is None else like.is_wall
    if is_wall and zone is not None:
        minutes = _wall(index).astype("datetime64[m]").astype(np.int64)
        _refuse_falling(minutes, None, what)
    if _DAY % step:
        raise ValueError(f"{what} must have a step that divides a day, got {step} minutes")
    clock = Clock(int(minutes[0]), step, zone, is_wall=is_wall and zone is not None)
    beside = np.flatnonzero((minutes - minutes[0]) % step)
    if len(beside):
        moment = clock.show(60 * int(minutes[beside[0]]))
        raise ValueError(f"{what} must have steps of {step} minutes, got {moment} beside the grid")
    return clock, (minutes - minutes[0]) // step


def _counts_by_wall(index: pd.DatetimeIndex, minutes: np.ndarray, step: int) -> bool:
    """Whether steps are even on the clock of a zone: days, or shorter ones that are not in UTC."""
    if index.tz is None or (step != _DAY and not ((minutes - minutes[0]) % step).any()):
        return False
    wall = _wall(index).astype("datetime64[m]").astype(np.int64)
    return not ((wall - wall[0]) % step).any()


def _utc(index: pd.DatetimeIndex) -> np.ndarray:
    return np.asarray(index if index.tz is None else index.tz_convert("UTC").tz_localize(None))


def _wall(index: pd.DatetimeIndex) -> np.ndarray:
    return np.asarray(index.tz_localize(None))


def _shown(seconds: int, zone: str | None) -> str:
    """A moment, in UTC or wall time, as a clock in the zone shows it."""
    if zone is None:
        return str(np.datetime64(seconds, "s")).removesuffix(":00")
    moment = datetime.fromtimestamp(seconds, tz=timezone.utc).astimezone(_zone_called(zone))
    return moment.isoformat(timespec="seconds" if seconds % 60 else "minutes")


def _whole_minutes(index: pd.DatetimeIndex, what: str) -> np.ndarray:
    """Minutes since 1970. Refuses NaT, and times between minutes, which would be cut off."""
    moments = _utc(index)
    minutes = moments.astype("datetime64[m]")
    beside = np.flatnonzero(minutes != moments)  # NaT differs from itself
    if len(beside):
        at, moment = beside[0], index[beside[0]].isoformat()
        raise ValueError(f"{what} must have times on whole minutes, got {moment} in row {at}")
    return minutes.astype(np.int64)


def _refuse_falling(minutes: np.ndarray, zone: str | None, what: str) -> None:
    gaps = np.diff(minutes)
    if not (gaps <= 0).any():
        return
    at = int(np.argmax(gaps <= 0)) + 1
    moment = _shown(60 * int(minutes[at]), zone)
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
