"""A room's benchmark as data, and the command line that all rooms share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.audit import Audit
from harness.data import data_directory
from harness.entrant import Entrant
from harness.growth import measure_growth, show_growth
from harness.judge import Judge
from harness.markdown import render
from harness.problem import Problem, Split
from harness.report import record, show, write_record
from harness.runner import Conditions, Outcome, run_all

__all__ = ["Axis", "Room", "main"]

#: Columns of the widest table; a pipe would otherwise get 80 and cut every number.
_MIN_WIDTH = 240
#: Stands for all entrants on the command line.
EVERYBODY = "all"


@dataclass(frozen=True)
class Axis:
    """A size to double: the sizes, those of a quick run, and the problem of one size and seed."""

    sizes: Sequence[int]
    quick_sizes: Sequence[int]
    make: Callable[[int, int], Split]


@dataclass(frozen=True)
class Room:
    """What one script compares."""

    title: str
    problems: Sequence[Problem]
    entrants: Sequence[Entrant]
    judge: Judge
    request: Mapping[str, Any] = field(default_factory=dict)
    audit: Audit | None = None
    axes: Mapping[str, Axis] = field(default_factory=dict)
    #: Problems and entrants of a run without arguments, and of ``--quick``.
    default: tuple[Sequence[str], Sequence[str]] = ((), ())
    quick: tuple[Sequence[str], Sequence[str]] = ((), ())


def main(room: Room, arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if an entrant failed, else 0. Being out of time is no failure."""
    options = _parser(room).parse_args(arguments)
    console = Console(width=max(_MIN_WIDTH, Console().width))
    if options.list:
        _list(room, console)
        return 0
    if options.records:
        return _render(options)
    conditions = Conditions(
        threads=options.threads,
        seed=options.seed,
        repeat=options.repeat,
        timeout_seconds=options.timeout,
        request=dict(room.request),
    )
    bench = _Bench(room, options, conditions, console)
    return bench.grow() if options.growth else bench.compare()


def _parser(room: Room) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=room.title)
    names = {entrant.name for entrant in room.entrants}
    problems = {problem.name for problem in room.problems}
    add = parser.add_argument
    add("--problems", nargs="+", choices=sorted(problems), metavar="NAME")
    add(
        "--entrants",
        nargs="+",
        choices=[EVERYBODY, *sorted(names)],
        metavar="NAME",
        help="ratios: to the first; 'all' for everybody",
    )
    add("--repeat", type=_positive, default=1, help="rounds of interleaved runs; medians are shown")
    add("--threads", type=_positive, nargs="+", default=[1], help="limits, each run in turn")
    add("--seed", type=int, default=0)
    add("--timeout", type=float, default=3600.0, help="seconds after which a run is stopped")
    add("--data", help="directory of real data (else SUBLEARN_DATA, else ../shared/data)")
    add("--json", type=Path, help="write all figures to this file")
    add("--markdown", type=Path, help="write the tables, with machine and commit, to this file")
    add("--records", type=Path, nargs="+", metavar="JSON", help="run nothing: what --json wrote")
    add("--growth", choices=sorted(room.axes), help="double this size and fit exponents")
    add(
        "--sizes", type=_positive, nargs="+", help="of a growth: these alone, a piece of the series"
    )
    add("--quick", action="store_true", help="small problems, to see that everything works")
    add("--list", action="store_true", help="list problems and entrants")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _list(room: Room, console: Console) -> None:
    problems, entrants = Table("problem", "what"), Table("entrant", "environment", "what")
    for problem in room.problems:
        problems.add_row(problem.name, problem.note)
    for entrant in room.entrants:
        entrants.add_row(entrant.name, entrant.environment, entrant.note)
    console.print(problems, entrants)
    if room.axes:
        console.print("growth:", ", ".join(room.axes))


def _render(options: argparse.Namespace) -> int:
    """Markdown from records of earlier runs, on the screen if no file is named."""
    text = render([json.loads(path.read_text()) for path in options.records])
    if options.markdown:
        options.markdown.write_text(text)
    else:
        print(text, end="")
    return 0


class _Bench:
    """One call of the command line."""

    def __init__(
        self, room: Room, options: argparse.Namespace, conditions: Conditions, console: Console
    ):
        self.room, self.options, self.conditions, self.console = room, options, conditions, console
        problems, entrants = room.quick if options.quick else room.default
        by_name = {entrant.name: entrant for entrant in room.entrants}
        chosen = options.entrants or entrants
        self.entrants = [by_name[n] for n in (by_name if EVERYBODY in chosen else chosen)]
        self.problem_names = options.problems or problems
        self.data = data_directory(options.data)

    def compare(self) -> int:
        """All chosen entrants on all chosen problems."""
        by_name = {problem.name: problem for problem in self.room.problems}
        splits: dict[str, Split] = {}
        outcomes: list[Outcome] = []
        unloaded: dict[str, str] = {}
        for name in self.problem_names:
            try:
                splits[name] = by_name[name].load(self.data, self.conditions.seed)
            except (ImportError, OSError, ValueError) as error:
                unloaded[name] = f"{type(error).__name__}: {error}"
                self.console.print(f"{name} failed to load: {error}", markup=False, style="red")
                self._keep(splits, outcomes, unloaded=unloaded)
                continue
            args = (name, splits[name], self.entrants, self.room.judge, self.conditions)
            found = run_all(*args, self._announce, self.room.audit)
            show(name, splits[name], found, self.conditions, self.console)
            outcomes += found
            self._keep(splits, outcomes, unloaded=unloaded)
        return int(bool(unloaded) or any(outcome.status == "failed" for outcome in outcomes))

    def grow(self) -> int:
        """All chosen entrants along one axis."""
        axis, seed = self.room.axes[self.options.growth], self.conditions.seed
        sizes = self.options.sizes or (axis.quick_sizes if self.options.quick else axis.sizes)
        growths = measure_growth(
            self.options.growth,
            sizes,
            lambda size: axis.make(size, seed),
            self.entrants,
            self.room.judge,
            self.conditions,
            self._announce,
        )
        show_growth(growths, self.console)
        outcomes = [outcome for growth in growths for outcome in growth.outcomes]
        self._keep({}, outcomes, growth=[growth.as_record() for growth in growths])
        return int(any(outcome.status == "failed" for outcome in outcomes))

    def _keep(self, splits: dict[str, Split], outcomes: list[Outcome], **more: Any) -> None:
        found = record(splits, outcomes, self.conditions, **more)
        if self.options.json:
            write_record(self.options.json, found)
        if self.options.markdown:
            self.options.markdown.write_text(render([found]))

    def _announce(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
