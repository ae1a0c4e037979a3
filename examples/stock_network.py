"""Which stocks move together once the rest of the market is known?

    pip install '.[plot]'
    python examples/stock_network.py stock_network.png

Daily closing prices of 452 stocks over five years (SUBLEARN_DATA/stockdata, else ../shared/data). A
sparse inverse covariance matrix of their logarithmic returns is estimated with an l1 weight chosen
by the likelihood of held-out days; the picture shows the strongest partial correlations. Sectors
were not used to find them.
"""

import argparse
import io
import lzma
import os
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import scale

from sublearn.display import NetworkDisplay
from sublearn.linear import SparseInverseCovariance

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
COLOURS = ["#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6",
           "#ffff99", "#d9d9d9", "#80cdc1", "#f1b6da", "#dfc27d"]  # fmt: skip


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("picture", type=Path, nargs="?", default="stock_network.png")
    arguments.add_argument("--small", action="store_true", help="100 stocks, one l1 weight")
    options = arguments.parse_args()
    if not (DATA / "stockdata").is_dir():
        print(f"no folder {DATA / 'stockdata'}: set SUBLEARN_DATA to where the data is")
        return
    tickers, sectors, returns = read_stocks(100 if options.small else None)

    start = time.perf_counter()
    l1 = 0.3 if options.small else "cv"
    # Prices jump where a stock was split: cut, lest two splits on one day make a link.
    model = SparseInverseCovariance(l1, cv=3, tol=1e-3, n_jobs=-1).fit(
        np.clip(scale(returns), -3, 3)
    )
    seconds = time.perf_counter() - start
    n_links = (model.sparse_precision_.nnz - len(tickers)) // 2
    print(f"{len(tickers)} stocks, l1 {model.l1_:.3f}, {n_links:,} links, {seconds:.1f} s")

    legend = dict(zip(sorted(set(sectors)), COLOURS, strict=False))
    display = NetworkDisplay.from_estimator(
        model, n_links=110, names=tickers, with_pairs=False,
        colours=[legend[sector] for sector in sectors], legend=legend,
    )  # fmt: skip
    same = np.mean([sectors[i] == sectors[j] for i, j in display.links])
    print(f"{same:.0%} of the {len(display.links)} links in the picture stay inside a sector")
    display.figure_.savefig(options.picture, dpi=110)
    print(f"wrote {options.picture}")


def read_stocks(n_most):
    """Tickers, their sectors and the logarithmic returns, days in rows."""
    folder = DATA / "stockdata"
    with lzma.open(folder / "stockdata.csv.xz", "rt") as file:
        tickers = file.readline().strip().split(",")
        prices = np.loadtxt(io.StringIO(file.read()), delimiter=",")
    info = (line.split("\t") for line in (folder / "stockdata_info.tsv").read_text().splitlines())
    sector_of = {row[0]: row[1] for row in info}
    tickers = [ticker.strip('"') for ticker in tickers]
    sectors = [sector_of.get(ticker, "other") for ticker in tickers]
    return tickers[:n_most], sectors[:n_most], np.diff(np.log(prices), axis=0)[:, :n_most]


if __name__ == "__main__":
    main()
