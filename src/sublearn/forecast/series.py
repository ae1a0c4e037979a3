"""A load series as a user passes it, made an array on a regular grid; a forecast made like it.

A series either has times (a pandas DatetimeIndex) or only positions; then a day is `steps_per_day`
positions and position 0 is midnight of a Monday. Times with a zone are kept in UTC, where days have
24 hours, and turned to wall time for hour, weekday and holiday.
Gaps become NaN. pandas is never imported unless a pandas object came in.
"""

from __future__ import annotations

import sys
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
]

#: Loads or exogenous columns as users pass them.
LoadsLike: TypeAlias = "ArrayLike | pd.Series | pd.DataFrame"
#: A forecast as users get it.
Table: TypeAlias = "np.ndarray | pd.Series | pd.DataFrame"

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
        if clock.zone is not None:
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


def check_series(y: LoadsLike, steps_per_day: int | None, what: str) -> LoadSeries:
    """A LoadSeries of an array, a pandas Series or a pandas DataFrame; `what` it is called."""
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
    clock, rows = _clock_of(y, steps_per_day, len(values), what)
    grid = np.full((int(rows[-1]) + 1, values.shape[1]), np.nan)
    grid[rows] = values
    return LoadSeries(grid, rows, clock, shape)


def check_exogenous(X: LoadsLike, n_rows: int, n_columns: int | None, what: str) -> np.ndarray:
    """Exogenous columns as a finite array with the number of rows that belong to them."""
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
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"{what} must be finite, got {values[row, column]} in row {row}")
    return values


def exogenous_grid(
    X: LoadsLike, series: LoadSeries, what: str, *, ahead: int = 0, n_columns: int | None = None
) -> np.ndarray:
    """X on the series' grid and `ahead` steps beyond; gaps of the grid by straight lines."""
    given = check_exogenous(X, len(series.rows) + ahead, n_columns, what)
    n_grid = len(series.values)
    at = np.concatenate([series.rows, np.arange(n_grid, n_grid + ahead)])
    refuse_other_times(X, series.clock, at, what)
    everywhere = np.arange(n_grid + ahead)
    return np.stack([np.interp(everywhere, at, column) for column in given.T], axis=1)


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
    given = _utc(X.index).astype("datetime64[s]").astype(np.int64)
    wanted = 60 * (clock.start + clock.step * positions)
    beside = np.flatnonzero(given != wanted)
    if len(beside):
        at = beside[0]
        due, found = (np.datetime64(int(t[at]), "s") for t in (wanted, given))
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
    y: LoadsLike, steps_per_day: int | None, n: int, what: str
) -> tuple[Clock, np.ndarray]:
    if not _is_pandas(y):
        return Clock.of_positions(24 if steps_per_day is None else steps_per_day), np.arange(n)
    if not hasattr(y.index, "tz"):
        raise ValueError(
            f"{what} must have a DatetimeIndex, got {type(y.index).__name__}; pass an array "
            "for a series without times"
        )
    known = None if steps_per_day is None else Clock.of_positions(steps_per_day).step
    clock, rows = _regular_times(y.index, what, known)
    if steps_per_day is not None and clock.steps_per_day != steps_per_day:
        raise ValueError(
            f"{what} must have {steps_per_day} steps a day as steps_per_day says, got "
            f"{clock.steps_per_day}"
        )
    return clock, rows


# --- times --------------------------------------------------------------------------------------


def _regular_times(
    index: pd.DatetimeIndex, what: str, known_step: int | None
) -> tuple[Clock, np.ndarray]:
    """Clock of an index, and the position of each row.

    Missing times leave gaps between positions. Times that go back, stand twice or fall beside the
    grid are refused. Fewer than 3 rows do not tell their step: it must be known, in minutes.
    """
    zone = _zone_name(index.tz, what)
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


def _utc(index: pd.DatetimeIndex) -> np.ndarray:
    return np.asarray(index if index.tz is None else index.tz_convert("UTC").tz_localize(None))


def _whole_minutes(index: pd.DatetimeIndex, what: str) -> np.ndarray:
    """Minutes since 1970. Refuses NaT, and times between minutes, which would be cut off."""
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
