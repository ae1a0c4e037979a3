"""The command line of all tables: choose, measure each in a process of its own, keep, render."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from harness import compare, pages, records
from harness.bench import Bench, Journal
from harness.child import now, versions
from harness.data import data_directory
from harness.machine import commit
from harness.process import THREAD_VARIABLES
from harness.table import Figures, Table

__all__ = ["RECORDS", "SCRIPTS", "main", "tables", "write_pages"]

#: The scripts beside run.py, each with its TABLES.
SCRIPTS = (
    "extreme", "records", "tuning", "solvers", "calibration", "serving", "annif_backends", "linear",
    "groups",
    "covariance", "graph", "structured", "hierarchy", "latent", "mixtures", "embed",
    "embed_training", "forecast", "trim", "cluster", "scale", "defaults",
    "reproduction.extreme", "reproduction.trim", "reproduction.structured", "reproduction.graph",
    "reproduction.embed", "reproduction.latent", "reproduction.optim", "reproduction.hierarchy",
    "reproduction.forecast",
)  # fmt: skip
_BENCHMARKS = Path(__file__).resolve().parents[1]
#: Where records are kept if no other place is named.
RECORDS = _BENCHMARKS / "results" / "records.jsonl"
_GRACE = 30.0  # wall seconds of a table that was asked to end
_SAME = ("commit", "modified", "seed", "options")  # of a measurement that need not be repeated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if a table failed or a figure became worse, else 0."""
    options = _parser().parse_args(arguments)
    if options.measure:
        return _measure(options)
    if options.compare:
        found = compare.changes(*(records.read(path) for path in options.compare))
        print(compare.told(found))
        return int(any(change.ratio > compare.WORSE for change in found))
    chosen = list(_chosen(options.only or ["*"]))
    if options.list:
        for script, table in chosen:
            print(f"{script + '/' + table.name:32} {table.title}")
    elif options.render:
        write_pages(records.read(options.json))
    elif options.only or options.all or options.quick:
        return _measure_all(chosen, options)
    else:
        _parser().print_help()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Benchmarks: tables of docs/measured/")
    add = parser.add_argument
    add("--list", action="store_true", help="list the tables")
    add("--only", nargs="+", metavar="TABLE", help="these: linear, linear/a9a, 'graph/*'")
    add("--all", action="store_true", help="every table that --json lacks; write the pages")
    add("--quick", action="store_true", help="small sizes, to see that everything works")
    add("--render", action="store_true", help="run nothing: write the pages from --json")
    add("--compare", type=Path, nargs=2, metavar="FILE", help="ratios of two files of records")
    add("--entrants", nargs="+", default=[], metavar="NAME", help="these alone, the first is ours")
    add("--cases", nargs="+", default=[], metavar="NAME", help="these data sets alone, 'grids*'")
    add("--limit", type=_positive, help="CPU seconds of an entrant, instead of the table's own")
    add("--threads", type=int, nargs="+", default=[], metavar="N", help="limits, each in turn")
    add("--repeat", type=int, default=1, metavar="N", help="rounds of entrants; medians count")
    add("--baseline", metavar="PYTHON", help="measure by this interpreter too, in turns; compare")
    add("--seed", type=int, default=0)
    add("--timeout", type=_positive, default=14400.0, help="wall seconds of a table")
    add("--jobs", type=int, metavar="N", help="tables at the same time: 1, in a quick run 2")
    add("--data", help="directory of real data (else SUBLEARN_DATA, else ../shared/data)")
    add("--json", type=Path, default=RECORDS, help="add a line for each row")
    add("--measure", nargs=2, metavar="X", help=argparse.SUPPRESS)
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, got {value:g}")
    return value


# --- tables ------------------------------------------------------------------------------------


def tables(script: str) -> list[Table]:
    """The tables of a script, one that cannot be opened if the script lacks a package."""
    try:
        found: list[Table] = importlib.import_module(script).TABLES
    except ImportError as error:
        return [Table("*", f"{error}", "", _raising(error))]
    return found


def _raising(error: ImportError) -> Any:
    def measure(bench: Bench) -> Figures:
        raise error

    return measure


def _chosen(patterns: Sequence[str]) -> Iterator[tuple[str, Table]]:
    known = [(script, table) for script in SCRIPTS for table in _if_named(script, patterns)]
    for pattern in patterns:
        if not any(_is_match(*pair, pattern) for pair in known):
            raise SystemExit(f"--only must name tables of --list, got {pattern}")
    return (pair for pair in known if any(_is_match(*pair, pattern) for pattern in patterns))


def _if_named(script: str, patterns: Sequence[str]) -> list[Table]:
    """Scripts are imported only if a table of theirs may be wanted: some take seconds."""
    named = any(fnmatch.fnmatch(script, pattern.partition("/")[0]) for pattern in patterns)
    return tables(script) if named else []


def _is_match(script: str, table: Table, pattern: str) -> bool:
    return fnmatch.fnmatch(f"{script}/{table.name}", pattern if "/" in pattern else f"{pattern}/*")


# --- measuring ---------------------------------------------------------------------------------


def _measure_all(chosen: Sequence[tuple[str, Table]], options: argparse.Namespace) -> int:
    done = _done(options) if options.all else set()
    left = [(s, t) for s, t in chosen if f"{s}/{t.name}" not in done]
    print(f"{len(left)} tables to measure, {len(chosen) - len(left)} done before", file=sys.stderr)
    with ThreadPoolExecutor(options.jobs or (2 if options.quick else 1)) as pool:
        ends = list(pool.map(lambda pair: _in_turns(*pair, options), left))
    measured = [f"{s}/{t.name}" for (s, t), end in zip(left, ends, strict=True) if end == "ok"]
    _show(options, measured)
    counts = {end: ends.count(end) for end in ("ok", "missing", "failed")}
    print(", ".join(f"{n} {end}" for end, n in counts.items()), file=sys.stderr)
    return int(counts["failed"] > 0)


def _show(options: argparse.Namespace, measured: Sequence[str]) -> None:
    """What a run is for: a comparison, pages, or the tables that were asked for."""
    found = records.read(options.json)
    if options.baseline:
        print(compare.told(compare.changes(records.read(_beside(options.json)), found)))
    elif options.all and not options.quick:
        write_pages(found)
    elif options.only and measured:
        print(pages.page_of(r for r in found if r["table"] in measured), end="")


def _done(options: argparse.Namespace) -> set[str]:
    """Tables that were measured before in the same way."""
    same = {**commit(), "seed": options.seed, "options": _told(options)}
    return {
        record["table"]
        for record in records.read(options.json)
        if all(record["origin"][name] == same[name] for name in _SAME)
    }


def _told(options: argparse.Namespace) -> str:
    """The options that change figures, as they were given."""
    words = ["--quick"] if options.quick else []
    for name in ("entrants", "cases", "threads"):
        if getattr(options, name):
            words += [f"--{name}", *map(str, getattr(options, name))]
    words += ["--limit", f"{options.limit:g}"] if options.limit else []
    words += ["--repeat", f"{options.repeat}"] if options.repeat > 1 else []
    return " ".join(words)


def _in_turns(script: str, table: Table, options: argparse.Namespace) -> str:
    """Measure a table; with a baseline first by that, and both as often as rounds are asked for."""
    if not options.baseline:
        return _measured(script, table, options, sys.executable)
    after = argparse.Namespace(**{**vars(options), "repeat": 1})
    before = argparse.Namespace(**{**vars(after), "json": _beside(options.json)})
    ends = []
    for _ in range(options.repeat):
        ends.append(_measured(script, table, before, options.baseline))
        ends.append(_measured(script, table, after, sys.executable))
    return next((end for end in ends if end != "ok"), "ok")


def _beside(path: Path) -> Path:
    """The records of a baseline."""
    return path.with_suffix(f".baseline{path.suffix}")


def _measured(script: str, table: Table, options: argparse.Namespace, python: str) -> str:
    """Measure a table in a process of its own; "ok", "missing" or "failed"."""
    name, start = f"{script}/{table.name}", time.monotonic()
    with tempfile.TemporaryDirectory(prefix="table-") as folder:
        result = Path(folder) / "result.json"
        arguments = [*_arguments(options), "--measure", name, str(result)]
        error = _run(python, arguments, options.timeout)
        found = json.loads(result.read_text()) if result.exists() else {"error": error}
    status = "ok"
    if found.get("error"):
        status = "missing" if found.get("is_missing") else "failed"
        words = f"{status}: {found['error']}"
    else:
        origin = records.origin_of(options.seed, _told(options), **found["origin"])
        figures = Figures(**found["figures"])
        records.append(options.json, records.records_of(script, table, figures, origin))
        words = f"{len(figures.rows)} rows, CPU {found['origin']['cpu_seconds']:.1f} s"
    print(f"{name}: {words}, {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return status


def _arguments(options: argparse.Namespace) -> list[str]:
    data = ["--data", options.data] if options.data else []
    return [
        *_told(options).split(),
        *data,
        "--seed",
        f"{options.seed}",
        "--json",
        f"{options.json}",
    ]


def _run(python: str, arguments: list[str], timeout: float) -> str:
    """This command again; how it ended, if it wrote nothing."""
    surroundings = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    command = [python, str(_BENCHMARKS / "run.py"), *arguments]
    with subprocess.Popen(command, env=surroundings) as process:
        try:
            return f"ended with code {process.wait(timeout)}"
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # it ends what it started
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
            return f"stopped after {timeout:.0f} s"


def _measure(options: argparse.Namespace) -> int:
    """Measure one table in this process."""
    name, result = options.measure[0], Path(options.measure[1])
    ((_, table),) = _chosen([name])
    parts = options.json.with_suffix("") / f"{name.replace('/', '-')}.parts.jsonl"
    bench = Bench(
        data_directory(options.data),
        options.seed,
        is_quick=options.quick,
        limit=options.limit,
        entrants=options.entrants,
        cases=options.cases,
        threads=options.threads,
        rounds=options.repeat,
        journal=Journal(parts, {**commit(), "seed": options.seed, "options": _told(options)}),
    )
    start = now()
    try:
        found = table.measure(bench)
    except Exception as error:
        traceback.print_exc()
        is_missing = isinstance(error, ImportError | FileNotFoundError)
        text = f"{type(error).__name__}: {error}"
        result.write_text(json.dumps({"error": text, "is_missing": is_missing}))
        return 1
    spent = now() - start
    largest = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    origin = {
        "software": list(dict.fromkeys([*versions("main"), *bench.software])),
        "cpu_seconds": spent.cpu,
        "wall_seconds": spent.wall,
        "peak_mb": largest / 1024,
    }
    result.write_text(json.dumps({"figures": vars(found), "origin": origin}, default=_plain))
    parts.unlink(missing_ok=True)
    return 0


def _plain(value: Any) -> Any:
    """Charts, and numbers and arrays of NumPy, as JSON has them."""
    return asdict(value) if is_dataclass(value) else value.tolist()


def write_pages(found: Sequence[records.Record], only: Container[str] | None = None) -> None:
    """Every page of which all tables were measured, in the order of the scripts.

    A page of a paper says which tables are lacking; `only` names the pages that are wanted.
    """
    by_table: dict[str, list[records.Record]] = {}
    for part in records.tables_of(found):
        by_table[part[0]["table"]] = list(part)
    for page, names in _tables_of_pages().items():
        if only is not None and page not in only:
            continue
        lacking = [name for name in names if name not in by_table]
        is_paper = all(name.startswith("reproduction.") for name in names)
        if lacking and not (is_paper and len(lacking) < len(names)):
            print(f"{page}: not written, without {', '.join(lacking)}", file=sys.stderr)
            continue
        kept = [record for name in names if name in by_table for record in by_table[name]]
        pages.write(kept, page, [name.removeprefix("reproduction.") for name in lacking])


def _tables_of_pages() -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for script in SCRIPTS:
        for table in tables(script):
            if table.page is not None:
                wanted.setdefault(table.page or script, []).append(f"{script}/{table.name}")
    return wanted
