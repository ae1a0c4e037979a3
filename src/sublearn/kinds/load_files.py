"""Load series in CSV files."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sublearn.errors import DataFileError
from sublearn.kinds.base import Refused

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_columns", "read_dates", "read_future", "read_loads"]

#: With times a table of pandas, without them an array.
_Table: TypeAlias = "np.ndarray | pd.DataFrame | pd.Series"

_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")  # from UTC, at the end of a time
_DATE = re.compile(r"\d{4}-\d\d-\d\d(\D|$)")


def read_columns(
    path: Path, zone: str | None = None
) -> tuple[pd.DatetimeIndex | None, dict[str, np.ndarray]]:
    """Times of a CSV file with a header (None without), and its columns of numbers by name.

    The first column holds times if its first value is no number. An empty field is NaN. Times that
    say no offset are of `zone`, or of none.
    """
    from sublearn.io.files import Lines, open_binary, reading

    with open_binary(path) as stream:
        lines = Lines(stream)
        with reading(path, lines):
            rows = list(csv.reader(lines.texts()))
    with reading(path):
        return _columns_of(rows, zone)


def _columns_of(
    rows: list[list[str]], zone: str | None
) -> tuple[pd.DatetimeIndex | None, dict[str, np.ndarray]]:
    header, rows = (rows or [[]])[0], [row for row in rows[1:] if row]
    if not rows:
        raise ValueError("a header and rows of numbers are needed, got no row")
    twice = [name for name, n in Counter(header).items() if n > 1]
    if twice:
        raise ValueError(f"columns must have different names, got {twice[0]!r} twice")
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"line {i + 2} must have {len(header)} fields, got {len(row)}")
    has_times = not _is_number(rows[0][0])
    columns = {
        name: np.array([_number(row[i], j + 2) for j, row in enumerate(rows)])
        for i, name in enumerate(header)
        if i or not has_times
    }
    if not columns:
        raise ValueError("a column of numbers is needed, got times alone")
    return (_as_times([row[0] for row in rows], zone) if has_times else None), columns


def read_loads(
    path: Path, target: str | None, zone: str | None = None
) -> tuple[_Table, _Table | None]:
    """Loads and exogenous columns; `target` names the loads, else the first column is one."""
    times, columns = read_columns(path, zone)
    names = [next(iter(columns))] if target is None else target.split(",")
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise Refused(
            "--target",
            f"must name columns of {path.name} ({', '.join(columns)}), got {unknown[0]}",
        )
    others = {name: values for name, values in columns.items() if name not in names}
    y = _frame(times, {name: columns[name] for name in names})
    if len(names) == 1:
        y = y[:, 0] if times is None else y[names[0]]
    return y, _frame(times, others) if others else None


def read_future(path: Path, n_rows: int, zone: str | None) -> _Table:
    """Exogenous columns of the next `n_rows` steps."""
    times, columns = read_columns(path, zone)
    found = _frame(times, columns)[:n_rows]
    if len(found) < n_rows:
        raise DataFileError(f"{path}: {n_rows} rows are needed for the forecast, got {len(found)}")
    return found


def read_dates(path: Path) -> list[str]:
    """The dates at the beginning of the lines of a file; other lines, such as a header, none."""
    from sublearn.io.files import Lines, open_binary, reading

    with open_binary(path) as stream:
        lines = Lines(stream)
        with reading(path, lines):
            dates = [line[:10] for line in lines.texts() if _DATE.match(line)]
    if not dates:
        raise DataFileError(f"{path}: dates such as 2008-12-25 are needed, got none")
    return dates


def _frame(times: pd.DatetimeIndex | None, columns: dict[str, np.ndarray]) -> _Table:
    """A table with times and names; without times an array, for which pandas is not needed."""
    table = np.stack(list(columns.values()), axis=1)
    if times is None:
        return table
    import pandas as pd

    return pd.DataFrame(table, index=times, columns=list(columns))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text.strip() == ""
    return True


def _number(text: str, line: int) -> float:
    if not _is_number(text):
        raise ValueError(f"line {line} must hold numbers, got {text!r}")
    return float(text.replace(",", "")) if text.strip() else np.nan


def _as_times(texts: list[str], zone: str | None) -> pd.DatetimeIndex:
    try:
        import pandas as pd
    except ImportError:
        raise ValueError(
            "a column of times needs pandas (pip install pandas); leave it out for a "
            "series without times"
        ) from None
    says_offset = _OFFSET.search(texts[0]) is not None
    try:
        times = pd.DatetimeIndex(pd.to_datetime(texts, utc=says_offset))
    except (ValueError, TypeError) as error:
        raise ValueError(f"the first column must hold numbers or times: {error}") from None
    if zone is None:
        return times
    try:
        if says_offset:
            return times.tz_convert(zone)
        return times.tz_localize(zone, ambiguous="infer")
    except (ValueError, KeyError) as error:  # an unknown zone is a KeyError
        raise ValueError(f"times must be those of a clock in {zone}: {error}") from None
