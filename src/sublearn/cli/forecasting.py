"""Load series in CSV files for `fit --method forecast` and `forecast`."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

__all__ = ["fit_forecast", "read_columns", "read_loads"]


def read_columns(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Times of a CSV file with a header (None without), and its columns of numbers by name.

    The first column holds times if its first value is no number. An empty field is NaN.
    """
    from sublearn.io.files import open_binary

    with open_binary(path) as stream:
        rows = list(csv.reader(io.StringIO(stream.read().decode("utf-8-sig"), newline="")))
    if len(rows) < 2:
        raise ValueError(f"{path}: a header and rows of numbers are needed, got {len(rows)} lines")
    header, rows = rows[0], [row for row in rows[1:] if row]
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"{path}: line {i + 2} must have {len(header)} fields, got {len(row)}")
    has_times = not _is_number(rows[0][0])
    columns = {
        name: np.array([_number(row[i], path, j + 2) for j, row in enumerate(rows)])
        for i, name in enumerate(header)
        if i or not has_times
    }
    return (_as_times([row[0] for row in rows], path) if has_times else None), columns


def read_loads(path: Path, target: str | None) -> tuple[Any, Any]:
    """Loads and exogenous columns; `target` names the loads, else the first column is one."""
    times, columns = read_columns(path)
    names = [next(iter(columns))] if target is None else target.split(",")
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise typer.BadParameter(
            f"must name columns of {path.name} ({', '.join(columns)}), got {unknown[0]}",
            param_hint="--target",
        )
    others = [values for name, values in columns.items() if name not in names]
    y: Any = np.stack([columns[name] for name in names], axis=1)
    if times is not None:
        import pandas as pd

        y = pd.DataFrame(y, index=times, columns=names)
        y = y[names[0]] if len(names) == 1 else y
    elif len(names) == 1:
        y = y[:, 0]
    return y, np.stack(others, axis=1) if others else None


def fit_forecast(
    data: Path, model: Path, target: str | None, params: dict[str, Any]
) -> dict[str, Any]:
    """Fit, save, and tell the figures."""
    from sublearn.forecast import LoadForecaster

    y, X = read_loads(data, target)
    start = time.perf_counter()
    given = {name: value for name, value in params.items() if value is not None}
    forecaster = LoadForecaster(**given).fit(y, X)
    seconds = time.perf_counter() - start
    forecaster.set_params(verbose=0).save(model)
    return {
        "rows": len(y),
        "series": forecaster.n_series_in_,
        "columns": forecaster.n_features_in_,
        "seconds": round(seconds, 3),
        "certificate": forecaster.certificate_,
        "n_iter": forecaster.n_iter_,
        "clusters": int(forecaster.trace_["n_clusters"].max()),
        "model": str(model),
        "model_bytes": model.stat().st_size,
    }


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text.strip() == ""
    return True


def _number(text: str, path: Path, line: int) -> float:
    if not _is_number(text):
        raise ValueError(f"{path}: line {line} must hold numbers, got {text!r}")
    return float(text.replace(",", "")) if text.strip() else np.nan


def _as_times(texts: list[str], path: Path) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise ValueError(
            f"{path}: a column of times needs pandas (pip install pandas); leave it out for a "
            "series without times"
        ) from None
    try:
        return pd.DatetimeIndex(pd.to_datetime(texts))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: the first column must hold numbers or times: {error}") from None
