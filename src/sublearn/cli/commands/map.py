"""`sublearn map`: the most probable assignment of a factor graph."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Jobs, Json, Quiet, RandomState, output_option
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sublearn.graph import FactorGraph
    from sublearn.graph.map import MapResult

__all__ = ["command"]


Problem = Annotated[
    Path,
    typer.Argument(
        metavar="PROBLEM",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Factor graph in the format of the UAI competitions (MARKOV or BAYES), or costs in a "
        "`.wcsp` or `.cfn` file; with `.gz`, `.xz`, `.bz2` or `.zst` if compressed.",
    ),
]
Evidence = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Evidence: `k v x v x ...`, or the same after a 1 for one sample.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        show_default="none",
        help="Stop with the best assignment found so far.",
    ),
]
Tol = Annotated[float, typer.Option(min=0.0, metavar="GAP", help="Relative gap to stop at.")]
Output = Annotated[
    Path | None,
    output_option("name of PROBLEM with .map, in this folder", "Where to write the assignment."),
]
Tables = Annotated[
    str,
    typer.Option(metavar="KIND", help="What the numbers of the tables are: linear, log or log10."),
]


def command(
    problem: Problem,
    evidence: Evidence = None,
    time_limit: TimeLimit = None,
    tol: Tol = 1e-6,
    output: Output = None,
    tables: Tables = "linear",
    random_state: RandomState = 0,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the most probable assignment of PROBLEM.

    Prints its score (the logarithm of the product of all tables), an upper bound on the score of
    any assignment, and the relative gap between them: with a gap of zero the assignment is
    the best one. The assignment is written as the competitions want it: `MAP`, then the
    number of variables and their labels.

    Example: `sublearn map grid.uai.xz --time-limit 10`

    Example: `sublearn map network.uai --evidence network.uai.evid --output network.map`
    """
    if tables not in ("linear", "log", "log10"):
        raise typer.BadParameter(
            f"must be linear, log or log10, got {tables}", param_hint="--tables"
        )
    target = _choose_target(output, problem)
    from sublearn.graph import read_graph, solve_map, write_map

    graph = read_graph(problem, evidence, tables=tables)
    start = time.perf_counter()
    result = solve_map(
        graph,
        time_limit=time_limit,
        tol=tol,
        n_jobs=-1 if n_jobs is None else n_jobs,
        random_state=random_state,
        verbose=0 if quiet or json else 1,
    )
    seconds = time.perf_counter() - start
    write_map(result, target)
    figures = _figures(graph, result, seconds) | {"written": str(target)}
    _show(figures, title=problem.name, json=json, quiet=quiet)


def _choose_target(output: Path | None, problem: Path) -> Path:
    from sublearn.io.files import plain_name

    if output is None:
        n_kept = len(plain_name(problem))
        output = Path(f"{problem.name[:n_kept]}.map")
        if output.exists():  # it may be a reference
            raise typer.BadParameter(
                f"must be given where {output} exists already", param_hint="--output"
            )
    from sublearn.io.files import check_target

    check_target(output, "--output")
    return output


def _figures(graph: FactorGraph, result: MapResult, seconds: float) -> JsonObject:
    return {
        "graph": repr(graph),
        "status": str(result.status),
        "score": float(result.score),
        "score_log10": float(result.score) / math.log(10.0),
        "bound": float(result.bound),
        "gap": float(result.gap),
        "iterations": int(result.n_iter),
        "seconds": seconds,
    }


def _show(figures: JsonObject, *, title: str, json: bool, quiet: bool) -> None:
    from sublearn.cli.console import facts, print_json, print_titled

    if json:
        print_json(figures)
    elif not quiet:
        rows = [(key.replace("_", " "), _in_words(key, value)) for key, value in figures.items()]
        print_titled(title, facts(rows))


def _in_words(key: str, value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return (
        f"{value:.2g}" if key == "gap" else f"{value:.2f}" if key == "seconds" else f"{value:.6f}"
    )
