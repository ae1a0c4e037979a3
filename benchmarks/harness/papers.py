"""The papers, and the command line that remakes what they print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from harness import command, records, verdicts
from harness.table import Table

__all__ = ["PAPERS", "Paper", "main"]

_FOLDER = "reproduction."


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
    options, others = _parser().parse_known_args(sys.argv[1:] if arguments is None else arguments)
    names = _papers(options.paper or list(PAPERS))
    by_paper = {name: _tables(name) for name in names}
    if options.list:
        for name, tables in by_paper.items():
            print(f"{name}: {PAPERS[name].title}")
            for place, table in tables.items():
                print(f"  {place.removeprefix(_FOLDER):28} {table.title}")
        return 0
    if options.render:
        command.write_pages(records.read(options.json), names)
        return _summed_up(options.json, by_paper)
    wanted = [place for tables in by_paper.values() for place in tables]
    if not wanted:
        raise SystemExit(f"{', '.join(names)}: no table yet")
    chosen = [p for p in wanted if any(_is_named(p, word) for word in options.only or ["*"])]
    unknown = [w for w in options.only or [] if not any(_is_named(p, w) for p in wanted)]
    if unknown:
        raise SystemExit(f"--only must name tables of --list, got {', '.join(unknown)}")
    code = command.main(["--only", *chosen, "--json", str(options.json), *others])
    _summed_up(options.json, by_paper)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Remake the tables and figures of papers; further options are those of run.py",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--paper", action="append", metavar="NAME", help=f"{', '.join(PAPERS)}, or how one begins")
    add("--only", nargs="+", metavar="TABLE", help="these: table_2_7, 'figure_3_*', trim/table_2_7")
    add("--list", action="store_true", help="list the tables and figures")
    add("--render", action="store_true", help="run nothing: write the pages from --json")
    add("--json", type=Path, default=command.RECORDS, help="add a line for each row")
    return parser


def _papers(asked: Sequence[str]) -> list[str]:
    """The papers whose names begin as was asked."""
    unknown = [word for word in asked if not any(name.startswith(word) for name in PAPERS)]
    if unknown:
        raise SystemExit(f"--paper must be among {', '.join(PAPERS)}, got {', '.join(unknown)}")
    return [name for name in PAPERS if any(name.startswith(word) for word in asked)]


def _tables(paper: str) -> dict[str, Table]:
    """The tables on a paper's page, by script and name."""
    return {
        f"{_FOLDER}{script}/{table.name}": table
        for script in PAPERS[paper].scripts
        for table in command.tables(f"{_FOLDER}{script}")
        if table.page == paper
    }


def _is_named(place: str, pattern: str) -> bool:
    """Whether a pattern means a table: its name alone, with its script, or in full."""
    short = place.removeprefix(_FOLDER)
    return any(fnmatch(name, pattern) for name in (place, short, short.partition("/")[2]))


def _summed_up(path: Path, by_paper: Mapping[str, Mapping[str, Table]]) -> int:
    """Say how the figures that were kept compare with those of each paper."""
    last = {part[0]["table"]: part for part in records.tables_of(records.read(path))}
    for name, tables in by_paper.items():
        kept = [last[place] for place in tables if place in last]
        found = verdicts.counts(record for part in kept for record in part)
        told = f"{len(kept)} of {len(tables)} tables measured"
        print(f"{name}: {verdicts.in_words(found)} ({told})", file=sys.stderr)
    return 0
