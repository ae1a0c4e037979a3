"""The papers, and the command line that remakes what they print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

from harness import command

__all__ = ["PAPERS", "Paper", "main"]


class Paper(NamedTuple):
    """A paper, and the scripts of benchmarks/reproduction/ with tables on its page."""

    title: str
    scripts: tuple[str, ...]


#: The name of a paper is that of its page, docs/reproduction/NAME.md.
PAPERS = {
    "yen2016_pd_sparse": Paper("PD-Sparse (ICML 2016)", ("extreme",)),
    "yen2016_gdmm": Paper(
        "Dual Decomposed Learning with Factorwise Oracles (NIPS 2016)", ("structured",)
    ),
    "yen2017": Paper("Latent Feature Lasso (ICML 2017)", ("latent",)),
    "yen2018": Paper(
        "Sublinear-Time Learning and Inference (thesis, 2018)",
        ("extreme", "trim", "structured", "graph", "embed", "latent"),
    ),
    "tang2016": Paper(
        "Big Data Optimization in Machine Learning (thesis, 2016)",
        ("optim", "hierarchy", "forecast"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the tables of a paper, or of all; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--paper", action="append", metavar="NAME", help=", ".join(PAPERS))
    options, others = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    papers = options.paper or list(PAPERS)
    found = [name for paper in papers for name in PAPERS if name.startswith(paper)]
    if not found or len({p for p in papers if not any(n.startswith(p) for n in PAPERS)}):
        parser.error(f"--paper must be among {', '.join(PAPERS)}, got {', '.join(papers)}")
    if "--only" in others or "--render" in others or "--list" in others:
        return command.main(others)
    wanted = [
        f"reproduction.{script}/{table.name}"
        for name in found
        for script in PAPERS[name].scripts
        for table in command.tables(f"reproduction.{script}")
        if table.page == name
    ]
    if not wanted:
        parser.error(f"{', '.join(found)}: no table yet")
    return command.main(["--only", *wanted, *others])
