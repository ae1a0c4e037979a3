"""Figures about this library alone: named measurements, their tables, and one record of all.

A script lists its measurements and calls :func:`main`. Records are rendered like those of a room:
``--records FILE --markdown PAGE`` runs nothing and writes what the documentation includes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.data import data_directory
from harness.machine import commit, machine, now
from harness.markdown import origin, table
from harness.provenance import TITLE, written
from harness.report import write_record

__all__ = ["Figures", "Measurement", "main", "median_ms", "ms_per_row"]

#: A cell is text, or a number that its column's form prints.
Cell = str | float | int | None


@dataclass(frozen=True)
class Figures:
    """One table. A column is a heading and the form in which its numbers are printed."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Measurement:
    """What is measured, in a sentence, and the function from (data directory, seed) to it."""

    name: str
    title: str
    note: str
    measure: Callable[[Path, int], Figures] = field(repr=False)


def main(title: str, measurements: Sequence[Measurement], arguments: Any = None) -> int:
    """The command line that all scripts of this kind share."""
    options = _parser(title, measurements).parse_args(arguments)
    if options.list:
        for measurement in measurements:
            print(f"{measurement.name:12} {measurement.title}")
        return 0
    if options.records:
        content = [json.loads(path.read_text()) for path in options.records]
    else:
        wanted = [m for m in measurements if not options.only or m.name in options.only]
        content = [_measured(title, wanted, options)]
    text = _page(content, options.only)
    if options.markdown:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        options.markdown.write_text(text)
    else:
        print(text, end="")
    return 0


def _parser(title: str, measurements: Sequence[Measurement]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=title)
    add = parser.add_argument
    names = [measurement.name for measurement in measurements]
    add("--only", nargs="+", choices=names, metavar="NAME", help="these measurements alone")
    add("--seed", type=int, default=0)
    add("--data", help="directory of real data (else SUBLEARN_DATA, else ../shared/data)")
    add("--json", type=Path, help="write all figures to this file, after each measurement")
    add("--resume", action="store_true", help="leave out what the file of --json already has")
    add("--markdown", type=Path, help="write the tables, with machine and commit, to this file")
    add("--records", type=Path, nargs="+", metavar="JSON", help="run nothing: what --json wrote")
    add("--list", action="store_true", help="list the measurements")
    return parser


def _measured(
    title: str, measurements: Iterable[Measurement], options: argparse.Namespace
) -> dict[str, Any]:
    """Run the measurements in turn; the record is written after each."""
    content = _resumed(options) or _record(title, options.seed)
    done = {part["name"] for part in content["tables"]}
    for measurement in (m for m in measurements if m.name not in done):
        print(f"{measurement.name}: {measurement.title}", file=sys.stderr, flush=True)
        found = measurement.measure(data_directory(options.data), options.seed)
        content["tables"].append(
            {
                "name": measurement.name,
                "title": measurement.title,
                "note": measurement.note,
                **asdict(found),
            }
        )
        content["machine"], content["date"] = machine(), now()
        if options.json:
            write_record(options.json, content)
    return content


def _resumed(options: argparse.Namespace) -> dict[str, Any] | None:
    """The record to go on with; one table of another commit would pass for one of this."""
    if not (options.resume and options.json and options.json.exists()):
        return None
    content: dict[str, Any] = json.loads(options.json.read_text())
    same = {**commit(), "seed": options.seed}
    if any(content[name] != value for name, value in same.items()):
        raise SystemExit(
            f"--resume: {options.json} is of another commit or seed; give a new --json"
        )
    return content


def _record(title: str, seed: int) -> dict[str, Any]:
    packages = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {
        "format": 1,
        "title": title,
        "script": Path(sys.argv[0]).name,
        "date": now(),
        **commit(),
        "machine": machine(),
        "arguments": sys.argv[1:],
        "seed": seed,
        "environments": {"main": {"packages": dict(sorted(packages.items()))}},
        "tables": [],
    }


def _page(records: Sequence[Mapping[str, Any]], only: Sequence[str] | None) -> str:
    """Records as Markdown, below a heading of the page that includes it."""
    script = records[0]["script"]
    parts = [f"<!-- Written by benchmarks/{script} with --markdown; do not edit. -->"]
    parts += _tables(_merged(records, only))
    own = [", ".join(f"`{part['name']}`" for part in record["tables"]) for record in records]
    runs = [{"tables": names, **origin(record)} for names, record in zip(own, records, strict=True)]
    parts += [TITLE, written(runs)]
    return "\n\n".join(parts) + "\n"


def _merged(
    records: Sequence[Mapping[str, Any]], only: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Tables of all records; one that continues the table before it is joined to that."""
    found: list[dict[str, Any]] = []
    for part in (t for record in records for t in record["tables"]):
        if only and part["name"] not in only:
            continue
        same = ("title", "note", "columns")
        if found and all(found[-1][name] == part[name] for name in same):
            found[-1]["rows"] = [*found[-1]["rows"], *part["rows"]]
        else:
            found.append(dict(part))
    return found


def _tables(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    parts: list[str] = []
    for part in tables:
        forms = list(part["columns"].values())
        rows = [
            [_text(cell, form) for cell, form in zip(row, forms, strict=True)]
            for row in part["rows"]
        ]
        n_names = sum(form == "" for form in forms)
        parts += [f"### {part['title']}", part["note"]]
        parts.append(table(list(part["columns"]), rows, n_names))
    return parts


def _text(cell: Cell, form: str) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else format(cell, form)


def ms_per_row(call: Callable[[], Any], n_rows: int, repeat: int = 5) -> float:
    """CPU milliseconds for each row of a call that answers `n_rows`, median of `repeat`."""
    laps = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        laps.append(time.process_time() - start)
    return 1000 * statistics.median(laps) / n_rows


def median_ms(calls: Iterable[Callable[[], Any]]) -> float:
    """Elapsed milliseconds of one call, median over the calls."""
    laps = []
    for call in calls:
        start = time.perf_counter()
        call()
        laps.append(time.perf_counter() - start)
    return 1000 * statistics.median(laps)
