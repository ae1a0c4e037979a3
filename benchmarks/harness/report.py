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

__all__ = ["comparison", "record", "shapes_in_words", "show", "write_record"]


#: Heading, figure of the record, and how it is printed; the judge's figures stand in between.
_BEFORE = (
    ("fit CPU s", "median", "fit_cpu_seconds", ".2f"),
    ("ratio", "ratio", "fit_cpu_seconds", ".2f"),
    ("fit wall s", "median", "fit_wall_seconds", ".2f"),
    ("ratio", "ratio", "fit_wall_seconds", ".2f"),
    ("CPU ms/row", "per_row", "predict_cpu_seconds", ".3f"),
    ("1 row ms", "median", "single_row_ms", ".3f"),
)
_AFTER = (("model MB", "median", "model_mb", ".1f"), ("peak MB", "median", "peak_mb", ".1f"))


def show(
    problem: str,
    split: Split,
    outcomes: Sequence[Outcome],
    conditions: Conditions,
    console: Console,
) -> None:
    """Print one problem's table; ratios are to the first entrant, failures stand below it."""
    shapes = split.shapes()
    title = f"{problem}: {shapes_in_words(shapes)}"
    title += f"; threads {conditions.threads}, median of {conditions.repeat}"
    headings, rows = comparison([_result(o, outcomes[0]) for o in outcomes], shapes)
    table = Table(title=title, title_justify="left")
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for outcome in (o for o in outcomes if o.error):
        console.print(f"{outcome.entrant.name} failed: {outcome.error}", markup=False, style="red")


def shapes_in_words(shapes: dict[str, Any]) -> str:
    """Sizes of what entrants get to see."""
    return ", ".join(
        f"{part} {name} {'x'.join(map(str, shape))}"
        for part, arrays in shapes.items()
        for name, shape in arrays.items()
        if part != "truth"
    )


def comparison(
    results: Sequence[dict[str, Any]], shapes: dict[str, Any]
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one problem's table, from the results that a record keeps."""
    qualities = dict.fromkeys(q for r in results for run in r["runs"] for q in run["quality"])
    judged = tuple((name, "median", name, ".4f") for name in qualities)
    columns = (*_BEFORE, *judged, *_AFTER)
    n_test = next(iter(shapes["test"].values()))[0]
    rows = []
    for result in results:
        cells = ["failed"] + [""] * (len(columns) - 1)
        if result["status"] == "ok":
            figures = {**result, "per_row": _per_row(result["median"], n_test)}
            cells = [_number(figures[kind].get(name), form) for _, kind, name, form in columns]
        rows.append([result["entrant"], *cells])
    return ["entrant", *(column[0] for column in columns)], rows


def _per_row(medians: dict[str, float | None], n_rows: int) -> dict[str, float]:
    """Milliseconds for each row, of the figures that are known."""
    return {name: 1000 * value / n_rows for name, value in medians.items() if value is not None}


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
