"""A load series as a user passes it, made an array on a regular grid; a forecast made like it.

Gaps become NaN. pandas is never imported unless a pandas object came in.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from sublearn.forecast.clock import Clock, regular_times, utc_stamps

__all__ = [
    "LoadSeries",
    "Shape",
    "check_exogenous",
    "check_series",
    "column_names",
    "refuse_other_times",
]


@dataclass(frozen=True)
class Shape:
    """How forecasts are given back: like the series that was fitted."""

    is_pandas: bool
    is_one: bool
    names: list[str | int] | None
    dtype: str

    def forecast(self, values: np.ndarray, clock: Clock, first: int) -> Any:
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

    def to_state(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "is_pandas": self.is_pandas, "is_one": self.is_one, "names": self.names,
            "dtype": self.dtype,
        }  # fmt: skip


@dataclass(frozen=True)
class LoadSeries:
    """Values on the grid, (n, n_series), NaN in gaps; `rows` are the positions of given rows."""

    values: np.ndarray
    rows: np.ndarray
    clock: Clock
    shape: Shape


def check_series(y: Any, steps_per_day: int | None, what: str) -> LoadSeries:
    """A LoadSeries of an array, a pandas Series or a pandas DataFrame; `what` it is called."""
    is_pandas = _is_pandas(y)
    values = _numbers(y, what)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(
            f"{what} must be a series or a table with a column for each series, got shape "
            f"{values.shape}"
        )
    dtype = "float32" if values.dtype == np.float32 else "float64"
    names = _names(y, values) if is_pandas else None
    shape = Shape(is_pandas, values.ndim == 1, names, dtype)
    values = values.reshape(len(values), -1).astype(np.float64)
    if np.isinf(values).any():
        raise ValueError(f"{what} must be finite or NaN, got infinity")
    clock, rows = _clock_of(y, is_pandas, steps_per_day, len(values), what)
    grid = np.full((int(rows[-1]) + 1, values.shape[1]), np.nan)
    grid[rows] = values
    return LoadSeries(grid, rows, clock, shape)


def check_exogenous(X: Any, n_rows: int, n_columns: int | None, what: str) -> np.ndarray:
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


def column_names(X: Any) -> list[str] | None:
    """Of a data frame whose columns all have strings as names."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def refuse_other_times(X: Any, clock: Clock, positions: np.ndarray, what: str) -> None:
    """Exogenous rows with times that are not those of the steps they would be taken for."""
    if not (_is_pandas(X) and hasattr(X.index, "tz") and clock.has_dates):
        return
    if (X.index.tz is None) != (clock.zone is None):
        has = "without" if clock.zone is None else "with"
        raise ValueError(f"{what} must have times {has} a time zone, as y, got {X.index.tz}")
    given = utc_stamps(X.index)
    wanted = 60 * (clock.start + clock.step * positions)
    beside = np.flatnonzero(given != wanted)
    if len(beside):
        at = beside[0]
        due, found = (np.datetime64(int(t[at]), "s") for t in (wanted, given))
        raise ValueError(f"{what} must have the times of y, got {found} in the row of {due}")


def _numbers(given: Any, what: str) -> np.ndarray:
    """An array of numbers; words and times are refused, though NumPy can make numbers of some."""
    for name in getattr(given, "columns", ()):  # an array of a whole frame has one dtype for all
        _as_numbers(np.asarray(given[name]), what, f" in column {name!r}")
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


def _is_pandas(y: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(y, (pandas.Series, pandas.DataFrame))


def _names(y: Any, values: np.ndarray) -> list[str | int] | None:
    """As they are if a file can keep them, else in words."""
    if values.ndim == 1 and y.name is None:
        return None
    names = y.columns.tolist() if values.ndim == 2 else [y.name]
    return [name if isinstance(name, (str, int)) else str(name) for name in names]


def _clock_of(
    y: Any, is_pandas: bool, steps_per_day: int | None, n: int, what: str
) -> tuple[Clock, np.ndarray]:
    if not is_pandas or not hasattr(y.index, "tz"):
        if is_pandas:
            raise ValueError(
                f"{what} must have a DatetimeIndex, got {type(y.index).__name__}; pass an array "
                "for a series without times"
            )
        return Clock.of_positions(24 if steps_per_day is None else steps_per_day), np.arange(n)
    known = None if steps_per_day is None else Clock.of_positions(steps_per_day).step
    clock, rows = regular_times(y.index, what, known)
    if steps_per_day is not None and clock.steps_per_day != steps_per_day:
        raise ValueError(
            f"{what} must have {steps_per_day} steps a day as steps_per_day says, got "
            f"{clock.steps_per_day}"
        )
    return clock, rows
