"""What a table is measured on: data, seed, the size of the run, and the one way to run entrants."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from harness.entrant import Entrant
from harness.environments import is_installed
from harness.runner import Case, Conditions, Outcome, Run, run_once

__all__ = ["Bench", "Journal"]

T = TypeVar("T")


class Journal:
    """Parts of a table that are done, a line of a file for each: an interrupted run goes on.

    `facts` are what makes a part another one, such as the commit and the table.
    """

    def __init__(self, path: Path | None = None, facts: Mapping[str, Any] | None = None):
        self._path, self._facts = path, dict(facts or {})
        self._known: dict[str, Any] = {}
        if path is not None and path.exists():
            entries = map(json.loads, path.read_text().splitlines())
            self._known = {entry["key"]: entry["value"] for entry in entries}

    def once(self, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What was kept under this key, else what `make` returns, kept from now on."""
        text = json.dumps({**self._facts, **key}, sort_keys=True)
        if text not in self._known:
            self._known[text] = value = make()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a") as file:
                    file.write(json.dumps({"key": text, "value": value}) + "\n")
        return self._known[text]


class Bench:
    """One measurement of one table. A quick one is to see that everything works."""

    def __init__(
        self,
        data: Path,
        seed: int = 0,
        *,
        is_quick: bool = False,
        limit: float | None = None,
        entrants: Sequence[str] = (),
        cases: Sequence[str] = (),
        threads: Sequence[int] = (),
        rounds: int = 1,
        journal: Journal | None = None,
    ):
        self.data, self.seed, self.is_quick, self.rounds = data, seed, is_quick, rounds
        self._limit, self._entrants, self._threads = limit, entrants, threads
        self._cases = cases or ("*",)
        self._journal = journal or Journal()
        self.software: dict[str, None] = {}  # in the order in which it was met

    def some(self, items: Iterable[T], n: int = 1) -> list[T]:
        """All of them; the first `n` in a quick run."""
        found = list(items)
        return found[:n] if self.is_quick else found

    def size(self, full: T, quick: T) -> T:
        """The second in a quick run."""
        return quick if self.is_quick else full

    def cases(self, items: Iterable[Any], n: int = 1) -> list[Any]:
        """Those whose name the command line asks for; the first `n` of them in a quick run."""
        named = [(getattr(item, "name", item), item) for item in items]
        wanted = [i for name, i in named if any(fnmatch(name, p) for p in self._cases)]
        return self.some(wanted, n)

    def limit(self, full: float, quick: float = 2.0) -> float:
        """CPU seconds of an entrant: those of the command line, else the table's own."""
        return self._limit if self._limit is not None else self.size(full, quick)

    def chosen(
        self, entrants: Iterable[Entrant], names: Sequence[str] = (), n: int = 2
    ) -> list[Entrant]:
        """Those that the command line names, else those with these `names`, else all.

        Of the latter a quick run has the first `n` that are installed.
        """
        by_name = {entrant.name: entrant for entrant in entrants}
        known = [by_name[name] for name in self._entrants if name in by_name]
        if self._entrants and not known:
            raise ValueError(f"--entrants must name some of {', '.join(by_name)}")
        every = [by_name[name] for name in names or by_name]
        return known or self.size(every, [e for e in every if is_installed(e.environment)][:n])

    def say(self, text: object) -> None:
        """A line for whoever waits."""
        print(f"  {text}", file=sys.stderr, flush=True)

    def once(self, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """A part of the table that takes long, from an interrupted run of it if that has it."""
        return self._journal.once(key, make)

    def compete(
        self,
        case: Case,
        entrants: Iterable[Entrant],
        limit: float,
        *,
        stop: float | None = None,
        threads: Sequence[int] = (1,),
        rounds: int | None = None,
    ) -> list[Outcome]:
        """All entrants in turns: A B A B, so that a slow minute of the machine hits everybody.

        One that does not end well is not run again. Ratios are to be taken within a round.
        """
        limits = self._threads or threads
        outcomes = [Outcome(entrant, n) for entrant in entrants for n in limits]
        for number in range(rounds or self.rounds):
            for outcome in (o for o in outcomes if o.status == "ok"):
                conditions = Conditions(
                    limit, stop, outcome.threads, self.seed, is_building=not self.is_quick
                )
                outcome.runs.append(self._run(case, outcome.entrant, conditions, number))
        return outcomes

    def run(
        self, case: Case, entrant: Entrant, limit: float, *, stop: float | None = None
    ) -> Outcome:
        """One entrant alone."""
        return self.compete(case, [entrant], limit, stop=stop)[0]

    def _run(self, case: Case, entrant: Entrant, conditions: Conditions, number: int) -> Run:
        key = {
            "problem": case.name,
            "request": case.request,
            "entrant": entrant.name,
            "settings": entrant.settings_for(case.name),
            "sweep": [dict(settings) for settings in entrant.sweep],
            "conditions": vars(conditions),
            "round": number,
        }
        run = Run(**self.once(key, lambda: vars(run_once(case, entrant, conditions))))
        self.software |= dict.fromkeys(run.software)
        self.say(f"{case.name}: {entrant.name}, threads {conditions.threads}: {_told(run)}")
        return run


def _told(run: Run) -> str:
    figures = {**run.figures, **(run.laps[-1] if run.laps else {})}
    parts = [run.error] if run.error else []
    parts += [f"{name} {value:.6g}" for name, value in figures.items() if value is not None]
    return ", ".join(parts)
