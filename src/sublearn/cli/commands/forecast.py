"""`sublearn forecast`: the next hours of a load series."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Model, output_option
from sublearn.kinds.base import Form
from sublearn.typing import Matrix

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

__all__ = ["command"]


Horizon = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, show_default="as fitted", help="Number of steps."),
]
Future = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="CSV file with the exogenous columns of the steps to forecast, in the order of "
        "the file that was fitted, with or without a column of times before them.",
    ),
]
Update = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="CSV file of loads that came since, in the form of the file that was fitted: the "
        "model learns from them and is saved again, before the forecast or without one if "
        "that needs --future.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        show_default="as fitted, else the first column",
        help="Columns of --update that are loads, with commas between.",
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        show_default=False,
        help="Add columns with the ends of an interval that holds the load this often.",
    ),
]
Output = Annotated[Path | None, output_option("standard output", "CSV file to write.")]


def command(
    model: Model,
    horizon: Horizon = None,
    future: Future = None,
    update: Update = None,
    target: Target = None,
    coverage: Coverage = None,
    output: Output = None,
) -> None:
    """Forecast the steps after the series that MODEL knows, as CSV.

    Make a model with `sublearn fit forecast loads.csv --model loads.model`.

    Example: `sublearn forecast loads.model --future weather.csv --coverage 0.9 -o tomorrow.csv`

    Example: `sublearn forecast loads.model --update today.csv`
    """
    import sublearn
    from sublearn.cli.console import err
    from sublearn.io.files import check_target
    from sublearn.kinds import kind_of
    from sublearn.kinds.load_files import read_future, read_loads
    from sublearn.kinds.loads import Loads

    check_target(output, "--output")
    forecaster = sublearn.load(model)
    kind = kind_of(forecaster)
    if not isinstance(kind, Loads):
        raise ValueError(
            f"{model}: a saved LoadForecaster is needed, got a {type(forecaster).__name__}, which "
            f"gives {kind.gives}; use `sublearn predict`"
        )
    zone = forecaster.time_zone_
    X = None if future is None else read_future(future, horizon or forecaster.horizon_, zone)
    if update is not None:
        y_new, X_new = read_loads(update, kind.target_of(forecaster, Form(target=target)), zone)
        forecaster.update(y_new, X_new)
    if update is not None and X is None and forecaster.n_features_in_:
        err.print("updated; a forecast needs --future", soft_wrap=True)
    else:
        table = _table(forecaster, horizon, X, coverage)
        _write(table, output)
    if update is not None:  # at the end: what was refused above can be asked for again
        forecaster.save(model)


def _table(
    forecaster: BaseEstimator, horizon: int | None, X: Matrix, coverage: float | None
) -> list[list[object]]:
    """Header and rows: time or step, a column for each series, and its interval."""
    import numpy as np

    forecast = forecaster.predict(horizon, X)
    parts = [("", forecast)]
    if coverage is not None:
        low, high = forecaster.predict_interval(horizon, X, coverage=coverage)
        parts += [(" low", low), (" high", high)]
    n = len(forecast)
    is_plain = isinstance(forecast, np.ndarray)
    first = range(1, n + 1) if is_plain else [str(when) for when in forecast.index]
    names = _names(forecast)
    header = ["step" if is_plain else "time"]
    columns: list[Sequence[object]] = [first]
    for ending, values in parts:
        header += [f"{name}{ending}" for name in names]
        columns += list(np.asarray(values).reshape(n, -1).T)
    return [
        header,
        *([row[0], *(f"{v:.6g}" for v in row[1:])] for row in zip(*columns, strict=True)),
    ]


def _names(forecast: np.ndarray | pd.Series | pd.DataFrame) -> list[str]:
    import numpy as np

    if isinstance(forecast, np.ndarray):
        n = 1 if forecast.ndim == 1 else forecast.shape[1]
        return [f"load {s + 1}" for s in range(n)] if forecast.ndim == 2 else ["load"]
    if forecast.ndim == 2:
        return [str(name) for name in forecast.columns]
    return [str(forecast.name or "load")]


def _write(table: list[list[object]], output: Path | None) -> None:
    from sublearn.cli.writing import open_text

    with open_text(output) as stream:
        csv.writer(stream, lineterminator="\n").writerows(table)
