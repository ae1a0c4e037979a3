"""What a run shows and keeps: a table on the screen, and one JSON record."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.machine import commit, machine, now
from harness.problem import Split
from harness.runner import Conditions, Outcome

__all__ = [
    "comparison",
    "facts_in_words",
    "record",
    "shapes_in_words",
    "show",
    "write_record",
]


@dataclass(frozen=True)
class _Column:
    """A heading, the figure under it, and how it is printed.

    `source` is where in a result the figure stands: "median", "ratio", "speedup" or "per_row". An
    optional column is left out where nobody has the figure.
    """

    heading: str
    source: str
    figure: str
    form: str
    is_optional: bool = False


#: The judge's figures stand in between.
_BEFORE = (
    _Column("fit CPU s", "median", "fit_cpu_seconds", ".2f"),
    _Column("ratio", "ratio", "fit_cpu_seconds", ".2f"),
    _Column("fit wall s", "median", "fit_wall_seconds", ".2f"),
    _Column("ratio", "ratio", "fit_wall_seconds", ".2f"),
    _Column("fit speed-up", "speedup", "fit_wall_seconds", ".2f", is_optional=True),
    _Column("CPU ms/row", "per_row", "predict_cpu_seconds", ".3f"),
    _Column("predict speed-up", "speedup", "predict_wall_seconds", ".2f", is_optional=True),
    _Column("1 row ms", "median", "single_row_ms", ".3f"),
)
_AFTER = (
    _Column("model MB", "median", "model_mb", ".1f"),
    _Column("peak MB", "median", "peak_mb", ".1f"),
    _Column("MB above data", "median", "above_data_mb", ".1f", is_optional=True),
    _Column("certificate", "median", "certificate", ".4f", is_optional=True),
    _Column("objective off by", "median", "objective_off", ".1e", is_optional=True),
)


def show(
    problem: str,
    split: Split,
    outcomes: Sequence[Outcome],
    conditions: Conditions,
    console: Console,
) -> None:
    """Print one problem's table; ratios are to the first entrant, failures stand below it."""
    shapes = split.shapes()
    threads = ", ".join(map(str, conditions.threads))
    title = f"{problem}: {shapes_in_words(shapes)}"
    title += f"; {facts_in_words(split.facts())}"
    title += f"; threads {threads}, median of {conditions.repeat}"
    headings, rows = comparison([_result(o, outcomes) for o in outcomes], shapes)
    table = Table(title=title, title_justify="left")
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for outcome in (o for o in outcomes if o.status == "failed"):
        console.print(f"{outcome.entrant.name} failed: {outcome.error}", markup=False, style="red")


def facts_in_words(facts: Mapping[str, int]) -> str:
    """What sizes alone do not tell: features that are there, labels that some row has."""
    words = {
        "nnz": "non-zero features",
        "labels_used": "labels with a training row",
        "positives": "labels given to rows",
    }
    return ", ".join(f"{facts[name]:,} {text}" for name, text in words.items() if name in facts)


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
    n_test = next(iter(shapes["test"].values()))[0]
    filled = [{**r, "per_row": _per_row(r["median"], n_test)} for r in results]
    qualities = dict.fromkeys(q for r in results for run in r["runs"] for q in run["quality"])
    judged = [_Column(name, "median", name, ".4f") for name in qualities]
    columns = [c for c in (*_BEFORE, *judged, *_AFTER) if not c.is_optional or _is_known(c, filled)]
    limits = {result.get("threads") for result in results}
    rows = []
    for result in filled:
        cells = [result["error"] if _is_stopped(result) else "failed"] + [""] * (len(columns) - 1)
        if result["status"] == "ok":
            cells = [_number(_value(c, result), c.form) for c in columns]
        threads = [str(result["threads"])] if len(limits) > 1 else []
        rows.append([result["entrant"], *threads, *cells])
    named = ["entrant", "threads"] if len(limits) > 1 else ["entrant"]
    return [*named, *(column.heading for column in columns)], rows


def _is_stopped(result: dict[str, Any]) -> bool:
    return result["status"] == "stopped"


def _value(column: _Column, result: dict[str, Any]) -> float | None:
    return result.get(column.source, {}).get(column.figure)


def _is_known(column: _Column, results: Sequence[dict[str, Any]]) -> bool:
    return any(_value(column, result) is not None for result in results)


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
        "format": 2,
        "date": now(),
        **commit(),
        "machine": machine(),
        "arguments": sys.argv[1:],
        "seed": conditions.seed,
        "threads": list(conditions.threads),
        "repeat": conditions.repeat,
        "request": conditions.request,
        "environments": _environments(outcomes),
        "problems": {name: split.shapes() for name, split in splits.items()},
        "facts": {name: split.facts() for name, split in splits.items()},
        "results": [_result(o, outcomes) for o in outcomes],
        **more,
    }


def _environments(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    runs = [(o.entrant.environment, run) for o in outcomes for run in o.runs if run.packages]
    return {name: {"python": run.python, "packages": run.packages} for name, run in runs}


def _result(outcome: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One outcome as plain data; ratios are to the first entrant under the same limit of threads,
    speed-ups to the same entrant under the first limit."""
    timings = ("fit_cpu_seconds", "fit_wall_seconds", "predict_cpu_seconds", "predict_wall_seconds")
    names = dict.fromkeys(n for run in outcome.runs for n in (*run.figures, *run.quality))
    peers = [o for o in outcomes if o.problem == outcome.problem]
    first = next(o for o in peers if o.threads == outcome.threads)
    slow = next(o for o in peers if o.entrant.name == outcome.entrant.name)
    medians = {name: outcome.figure(name) for name in names}
    return {
        "problem": outcome.problem,
        "entrant": outcome.entrant.name,
        "environment": outcome.entrant.environment,
        "settings": outcome.settings,
        "threads": outcome.threads,
        "status": outcome.status,
        "error": outcome.error,
        "median": {**medians, "objective_off": _off(medians)},
        "ratio": {name: outcome.ratio(name, first) for name in timings},
        "speedup": {} if slow is outcome else _speedups(outcome, slow),
        "runs": [
            {"figures": run.figures, "quality": run.quality, "error": run.error}
            for run in outcome.runs
        ],
    }


def _speedups(outcome: Outcome, slow: Outcome) -> dict[str, float | None]:
    timings = ("fit_wall_seconds", "predict_wall_seconds")
    return {name: slow.ratio(name, outcome) for name in timings}


def _off(medians: Mapping[str, float | None]) -> float | None:
    """How far the objective that an entrant reports is from the audit's, relative to the latter."""
    own, audited = medians.get("objective"), medians.get("objective_audited")
    return None if own is None or not audited else abs(own - audited) / audited


def write_record(path: Path, content: dict[str, Any]) -> None:
    """Write a record, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
