"""Prices of four companies without their names: which price belongs to whom?

    pip install '.[plot]'
    python examples/unmixed_stocks.py unmixed_stocks.png

Closing prices of IBM, Microsoft, Nvidia and Apple on every fourth trading day from 2003 on, splits
undone (SUBLEARN_DATA/stockdata, else ../shared/data), thrown together. `MixLassoRegressor` with a
polynomial kernel of degree 8 finds four curves through their logarithms, each with a noise of its
own, and which price lies on which. Where two curves cross it cannot know who is who afterwards.
"""

import argparse
import io
import itertools
import lzma
import os
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sublearn.latent import Kernel, MixLassoRegressor, MixtureSearch

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
COMPANIES = ["IBM", "MSFT", "NVDA", "AAPL"]
COLOURS = ["#2171b5", "#d95f02", "#41ab5d", "#756bb1"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("picture", type=Path, nargs="?", default="unmixed_stocks.png")
    arguments.add_argument("--small", action="store_true", help="100 days, fewer starts")
    options = arguments.parse_args()
    if not (DATA / "stockdata").is_dir():
        print(f"no folder {DATA / 'stockdata'}: set SUBLEARN_DATA to where the data is")
        return
    times, prices, company = read_prices(100 if options.small else 300)

    start = time.perf_counter()
    model = MixLassoRegressor(
        4, kernel=Kernel("poly", degree=8, gamma=2.0, coef0=2.0), random_state=0,
        search=MixtureSearch(n_starts=12 if options.small else None),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # curves for a picture
        model.fit(times[:, None], np.log(prices))
    curves = np.exp(model.predict_components(times[:, None]))
    error = np.sqrt(np.mean((prices - curves[np.arange(len(prices)), model.labels_]) ** 2))
    best = max(
        itertools.permutations(range(4)), key=lambda names: agreement(names, model.labels_, company)
    )
    print(f"{len(prices)} prices, RMSE {error:.2f} dollars, {time.perf_counter() - start:.1f} s")
    print(f"{agreement(best, model.labels_, company):.0%} of them lie on their company's curve")
    draw(times, prices, company, curves, best, options.picture)
    print(f"wrote {options.picture}")


def read_prices(n_steps):
    """Time in [-1, 1], price, and number of the company."""
    with lzma.open(DATA / "stockdata" / "stockdata.csv.xz", "rt") as file:
        tickers = file.readline().replace('"', "").strip().split(",")
        table = np.loadtxt(io.StringIO(file.read()), delimiter=",")
    prices = without_splits(table[:, [tickers.index(name) for name in COMPANIES]])
    prices = prices[: 4 * n_steps : 4]
    times = np.repeat(np.linspace(-1, 1, len(prices)), 4)
    return times, prices.ravel(), np.tile(np.arange(4), len(prices))


def without_splits(prices):
    """Closing prices as if every share had always been what it is at the end.

    A stock that closes below 0.7 of the day before was split, 2 for 1 or 3 for 2.
    """
    prices = prices.copy()
    for day, company in np.argwhere(prices[1:] < 0.7 * prices[:-1]):
        ratio = prices[day, company] / prices[day + 1, company]
        prices[: day + 1, company] /= np.round(2 * ratio) / 2
    return prices


def agreement(names, labels, company):
    """Part of the prices whose curve has their company's name."""
    return np.mean(np.array(names)[labels] == company)


def draw(times, prices, company, curves, names, path):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
    years = 2003 + (times + 1) / 2 * 4 * (len(prices) / 4) / 252  # every fourth of 252 days
    left.plot(years, prices, ".", ms=3, color="#636363")
    left.set_title("What the fit gets", loc="left")
    for k, name in enumerate(names):
        right.plot(years[company == name], prices[company == name], ".", ms=3, color=COLOURS[name])
        right.plot(years, curves[:, k], color=COLOURS[name], lw=2, label=COMPANIES[name])
    right.set_title("Curves found, and the prices by their true names", loc="left")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("year")
        axes.set_yscale("log")
        axes.set_ylim(0.7 * prices.min(), 1.3 * prices.max())
    left.set_ylabel("dollars")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
