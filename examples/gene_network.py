"""Which genes of leukaemia cells are directly related?

    pip install '.[plot]'
    python examples/gene_network.py gene_network.png

Expression of 7,129 probes in 72 samples of two kinds of leukaemia (SUBLEARN_DATA/gene_golub, else
../shared/data). Intensities are cut to 100..16000 and their logarithms taken; the 1,000 probes of
largest variance get a sparse inverse covariance matrix. The picture shows the strongest partial
correlations; the colour of a probe says in which kind it is higher, which was not used to find
them. The data has no names of genes: a label is a probe's number.
"""

import argparse
import lzma
import os
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import scale

from sublearn.display import NetworkDisplay
from sublearn.linear import SparseInverseCovariance

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
LEGEND = {
    "higher in lymphoblastic": "#fdbf6f",
    "higher in myeloid": "#b2df8a",
    "no clear difference": "#e0e0e0",
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("picture", type=Path, nargs="?", default="gene_network.png")
    arguments.add_argument("--small", action="store_true", help="200 probes instead of 1,000")
    options = arguments.parse_args()
    path = DATA / "gene_golub" / "golub.csv.xz"
    if not path.exists():
        print(f"no file {path}: set SUBLEARN_DATA to where the data is")
        return
    kinds, probes, levels = read_genes(path, 200 if options.small else 1000)

    start = time.perf_counter()
    model = SparseInverseCovariance(0.6, n_jobs=-1).fit(scale(levels))
    seconds = time.perf_counter() - start
    n_links = (model.sparse_precision_.nnz - len(probes)) // 2
    print(f"{len(probes)} probes, {n_links:,} links, {model.n_blocks_} blocks, {seconds:.1f} s")

    display = NetworkDisplay.from_estimator(
        model, n_links=110, names=probes, with_pairs=False, colours=colours_of(kinds, levels),
        legend=LEGEND,
    )  # fmt: skip
    display.figure_.savefig(options.picture, dpi=110)
    print(f"wrote {options.picture}")


def read_genes(path, n_probes):
    """Kinds of the samples, and numbers and levels of the probes that vary most."""
    with lzma.open(path, "rt") as file:
        rows = [line.strip().split(",") for line in file]
    kinds = np.array([row[0] for row in rows])
    levels = np.log10(np.clip(np.array([row[1:] for row in rows], dtype=float), 100, 16000))
    probes = np.sort(np.argsort(-levels.var(axis=0), kind="stable")[:n_probes])
    return kinds, probes + 1, levels[:, probes]


def colours_of(kinds, levels):
    """By Student's statistic between the kinds, beyond 4 a clear difference."""
    groups = [levels[kinds == kind] for kind in ("ALL", "AML")]
    spread = np.sqrt(sum(group.var(axis=0, ddof=1) / len(group) for group in groups))
    statistic = (groups[0].mean(axis=0) - groups[1].mean(axis=0)) / spread
    names = list(LEGEND)
    return [LEGEND[names[0] if t > 4 else names[1] if t < -4 else names[2]] for t in statistic]


if __name__ == "__main__":
    main()
