"""Tomorrow's load of a utility's zones, with intervals, and what an hour too little is worth.

    pip install '.[plot]' pandas
    python examples/load_zones.py load_zones.png

Hours of a utility in the United States, 2004 and 2005 (SUBLEARN_DATA/gefcom2012_load, else
../shared/data; GEFCom 2012). The sum of its zones is forecast a day ahead from past loads, measured
temperatures, calendar and holidays. Left: three days with 90 % intervals. Right: the shift eta
moves forecasts up, so that fewer hours are forecast too low.
"""

import csv
import lzma
import os
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from pictures import ORANGE, draw_pair, read_options

from sublearn.datasets import fetch_gefcom2012
from sublearn.errors import DownloadError
from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels, TubeLoss

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
FIRST_GAP = 24 * 430  # the history has weeks without loads from then on
DAYS_OFF = ["2004-07-04", "2004-09-06", "2004-11-25", "2004-12-24", "2004-12-25", "2005-01-01"]


def main():
    options = read_options(__doc__, "load_zones.png", "half a year and small models")
    zones, X = read_data()
    X = X.mean(axis=1, keepdims=True)
    index = pd.date_range("2004-01-01", periods=FIRST_GAP, freq="h")
    y = pd.Series(zones[:FIRST_GAP].sum(axis=1) / 1000, index=index, name="load")
    X = X[:FIRST_GAP]
    n_train = FIRST_GAP - 24 * 60
    few = LocalKernels(n_components=100, relevance_rows=150)
    settings = {
        "features": LoadFeatures(lead_blocks=[24]),
        "kernels": few if options.small else None,
    }

    shares, models = [0.0, 0.01, 0.02, 0.03], []
    for eta in shares:
        start = time.perf_counter()
        model = LoadForecaster(
            24, loss=TubeLoss.shifted(0.04, eta), holidays=DAYS_OFF, random_state=0, **settings
        ).fit(y[:n_train], X[:n_train])
        models.append(model)
        too_low, error = judge(model, y, X, n_train)
        print(
            f"eta {eta:.2f}: {too_low:.0%} of hours forecast too low, mean error {error:.2%}, "
            f"fit in {time.perf_counter() - start:.1f} s"
        )

    def draw_days(axes):
        for i in range(3):
            origin = n_train + 24 * (20 + i)
            past, ahead = y[:origin], X[: origin + 24]
            models[0].plot(X=ahead, y=past, truth=y[origin : origin + 24], ax=axes)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[:3], labels[:3], frameon=False)
        axes.set_ylabel("load, MW")
        axes.set_title("Three days, each forecast at the midnight before")
        axes.tick_params(axis="x", rotation=20)

    def draw_shift(axes):
        found = [100 * judge(model, y, X, n_train)[0] for model in models]
        axes.plot([100 * eta for eta in shares], found, "o-", color=ORANGE)
        axes.set_xlabel("eta, % of the mean load")
        axes.set_ylabel("hours forecast too low, %")
        axes.set_ylim(0)
        axes.set_title("A shifted tube errs on the safe side")

    draw_pair(draw_days, draw_shift, options.picture)
    print(f"wrote {options.picture}")


def judge(model, y, X, first):
    """Share of hours forecast too low, and the mean error, over the days from `first` on."""
    origins = range(first, len(y) - 23, 48)
    found = [model.predict(X=X[: o + 24], y=y[:o]) - y[o : o + 24] for o in origins]
    errors = np.concatenate(found)
    return np.mean(errors < 0), np.abs(errors).mean() / y[first:].mean()


def read_data():
    """Loads by zone and temperatures by station: from SUBLEARN_DATA, or what was downloaded."""
    folder = DATA / "gefcom2012_load"
    if folder.is_dir():
        loads = read_table(folder / "load_history.csv.xz", 20)
        return loads, read_table(folder / "temperature_history.csv.xz", 11)
    try:
        data = fetch_gefcom2012(download_if_missing=False)
    except DownloadError:
        sys.exit(
            f"no folder {folder}: set SUBLEARN_DATA to where the data is, or download them (15 MB) "
            "by `sublearn datasets gefcom2012`, in Python sublearn.datasets.fetch_gefcom2012()"
        )
    return data.y, data.X


def read_table(path, n_columns):
    """Hours in rows, zones or stations in columns; NaN where the history is empty."""
    with lzma.open(path, "rt") as file:
        rows = list(csv.reader(file))[1:]
    n_days = max(day_of(row) for row in rows) + 1
    out = np.full((n_days, 24, n_columns), np.nan)
    for row in rows:
        values = [float(text.replace(",", "")) if text else np.nan for text in row[4:28]]
        out[day_of(row), :, int(row[0]) - 1] = values
    return out.reshape(-1, n_columns)


def day_of(row):
    return (date(*(int(text) for text in row[1:4])) - date(2004, 1, 1)).days


if __name__ == "__main__":
    main()
