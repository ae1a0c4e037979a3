"""What a run shows and keeps: a table on the screen, and one JSON record."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.machine import commit, machine, now
from harness.problem import Split
from harness.runner import Conditions, Outcome

__all__ = ["record", "show", "write_record"]


def show(
    problem: str,
    split: Split,
    outcomes: Sequence[Outcome],
    conditions: Conditions,
    console: Console,
) -> None:
    """Print one problem's table; ratios are to the first entrant, failures stand below it."""
    qualities = list(
        dict.fromkeys(name for o in outcomes for run in o.runs for name in run.quality)
    )
    n_test = next(iter(split.test.values())).shape[0]
    table = Table(title=_title(problem, split, conditions), title_justify="left")
    table.add_column("entrant", no_wrap=True)
    for heading in (
        "fit CPU s",
        "ratio",
        "fit wall s",
        "ratio",
        "CPU ms/row",
        "1 row ms",
        *qualities,
    ):
        table.add_column(heading, justify="right")
    for heading in ("model MB", "peak MB"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        table.add_row(outcome.entrant.name, *_cells(outcome, outcomes[0], qualities, n_test))
    console.print(table)
    for outcome in (o for o in outcomes if o.error):
        console.print(f"{outcome.entrant.name} failed: {outcome.error}", markup=False, style="red")


def _title(problem: str, split: Split, conditions: Conditions) -> str:
    shapes = ", ".join(
        f"{part} {name} {'x'.join(map(str, shape))}"
        for part, arrays in split.shapes().items()
        for name, shape in arrays.items()
        if part != "truth"
    )
    return f"{problem}: {shapes}; threads {conditions.threads}, median of {conditions.repeat}"


def _cells(outcome: Outcome, first: Outcome, qualities: Sequence[str], n_test: int) -> list[str]:
    if outcome.error:
        return ["failed"]
    cells = []
    for name in ("fit_cpu_seconds", "fit_wall_seconds"):
        cells += [_number(outcome.figure(name), ".2f"), _number(outcome.ratio(name, first), ".2f")]
    predict = outcome.figure("predict_cpu_seconds")
    cells.append(_number(None if predict is None else 1000 * predict / n_test, ".3f"))
    cells.append(_number(outcome.figure("single_row_ms"), ".3f"))
    cells += [_number(outcome.figure(name), ".4f") for name in qualities]
    return [*cells, *(_number(outcome.figure(name), ".1f") for name in ("model_mb", "peak_mb"))]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def record(
    splits: dict[str, Split], outcomes: Sequence[Outcome], conditions: Conditions, **more: Any
) -> dict[str, Any]:
    """Everything needed to read the figures later, as plain data."""
    return {
        "format": 1,
        "date": now(),
        **commit(),
        "machine": machine(),
        "arguments": sys.argv[1:],
        "seed": conditions.seed,
        "threads": conditions.threads,
        "repeat": conditions.repeat,
        "request": conditions.request,
        "environments": _environments(outcomes),
        "problems": {name: split.shapes() for name, split in splits.items()},
        "results": [_result(o, _first(o, outcomes)) for o in outcomes],
        **more,
    }


def _environments(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    runs = [(o.entrant.environment, run) for o in outcomes for run in o.runs if run.packages]
    return {name: {"python": run.python, "packages": run.packages} for name, run in runs}


def _first(outcome: Outcome, outcomes: Sequence[Outcome]) -> Outcome:
    return next(o for o in outcomes if o.problem == outcome.problem)


def _result(outcome: Outcome, first: Outcome) -> dict[str, Any]:
    timings = ("fit_cpu_seconds", "fit_wall_seconds", "predict_cpu_seconds", "predict_wall_seconds")
    names = dict.fromkeys(n for run in outcome.runs for n in (*run.figures, *run.quality))
    return {
        "problem": outcome.problem,
        "entrant": outcome.entrant.name,
        "environment": outcome.entrant.environment,
        "settings": outcome.settings,
        "status": "failed" if outcome.error else "ok",
        "error": outcome.error,
        "median": {name: outcome.figure(name) for name in names},
        "ratio": {name: outcome.ratio(name, first) for name in timings},
        "runs": [
            {"figures": run.figures, "quality": run.quality, "error": run.error}
            for run in outcome.runs
        ],
    }


def write_record(path: Path, content: dict[str, Any]) -> None:
    """Write a record, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
