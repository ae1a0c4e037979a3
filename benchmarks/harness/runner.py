"""One run of one entrant on one problem, in a process of its own, judged by the benchmark."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from harness.arrays import Arrays, load_arrays, save_arrays
from harness.audit import Audit
from harness.entrant import Entrant
from harness.environments import EnvironmentFailure, python_of
from harness.judge import Judge
from harness.problem import Split
from harness.process import Limits, run_process

__all__ = ["Case", "Conditions", "Outcome", "Run", "run_once"]

_CHILD = Path(__file__).with_name("child.py")
_SCRIPTS = Path(__file__).resolve().parents[1] / "entrants"

Lap = Mapping[str, float | None]


class Case:
    """A problem at hand: loaded, and written for the processes of entrants, at first use.

    `request` is the question that all entrants get, such as {"k": 5}. With `warm_up`, training
    arrays that take no time themselves, the seconds of a first fit are shown as a cold start. In a
    `thorough` case predictions are repeated, asked row by row, and the model is saved.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Split],
        judge: Judge,
        request: Mapping[str, Any] | None = None,
        *,
        warm_up: Arrays | None = None,
        audit: Audit | None = None,
        is_thorough: bool = False,
    ):
        self.name, self.judge, self.request = name, judge, dict(request or {})
        self.is_thorough = is_thorough
        self._load, self._warm_up, self._audit = load, warm_up, audit

    @cached_property
    def split(self) -> Split:
        return self._load()

    @cached_property
    def audit(self) -> Audit | None:
        """None where it would take too long."""
        return self._audit if self._audit and self._audit.is_cheap(self.split.train) else None

    @cached_property
    def files(self) -> dict[str, str]:
        """Where training and test arrays were written, as long as this is used."""
        folder = tempfile.mkdtemp(prefix="benchmark-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        parts = {"train": self.split.train, "test": self.split.test}
        parts |= {"warm_up": self._warm_up} if self._warm_up else {}
        files = {name: Path(folder) / f"{name}.npz" for name in parts}
        for name, arrays in parts.items():
            save_arrays(files[name], arrays)
        return {name: str(path) for name, path in files.items()}


@dataclass(frozen=True)
class Conditions:
    """What is the same for all entrants.

    An entrant that is fitted anew, with more and more effort, begins no further fit after `limit`
    CPU seconds; one that improves its answer is asked to end by then. A process is stopped after
    `stop` CPU seconds of its own work, `limit` if not given, which a busy machine does not cut.
    """

    limit: float = 3600.0
    stop: float | None = None
    threads: int = 1
    seed: int = 0
    is_building: bool = True  # an environment that is not there

    def limits(self) -> Limits:
        stop = self.threads * (self.limit if self.stop is None else self.stop)
        return Limits(prepare=600.0, cpu=stop, wall=20.0 * stop + 10.0)


@dataclass(frozen=True)
class Run:
    """Laps, each a dictionary of times and judged figures, and figures of the run as a whole.

    `status` is "ok", "stopped" if its time was up, "refused" if it does not take the problem,
    "missing" if it is not installed, else "failed"; `error` says it in words. What was done before
    a run was stopped or failed counts.
    """

    laps: Sequence[Lap] = ()
    figures: Lap = field(default_factory=dict)
    status: str = "ok"
    error: str | None = None
    software: Sequence[str] = ()

    def figure(self, name: str) -> float | None:
        """Of the last lap, else of the run."""
        return {**self.figures, **(self.laps[-1] if self.laps else {})}.get(name)


@dataclass
class Outcome:
    """The runs of one entrant on one problem, one for each round."""

    entrant: Entrant
    threads: int = 1
    runs: list[Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.entrant.name

    @property
    def laps(self) -> Sequence[Lap]:
        """Of the first round."""
        return self.runs[0].laps if self.runs else ()

    @property
    def status(self) -> str:
        """That of the first run that is not "ok"."""
        return next((run.status for run in self.runs if run.status != "ok"), "ok")

    @property
    def error(self) -> str | None:
        return next((run.error for run in self.runs if run.error is not None), None)

    def figure(self, name: str) -> float | None:
        """Median over the rounds, None where it is not known."""
        known = [value for run in self.runs if (value := run.figure(name)) is not None]
        return median(known) if known else None

    def ratio(self, name: str, first: Outcome) -> float | None:
        """Median over the rounds of this figure divided by `first`'s in the same round."""
        rounds = zip(self.runs, first.runs, strict=False)
        pairs = [(own.figure(name), other.figure(name)) for own, other in rounds]
        known = [a / b for a, b in pairs if a is not None and b]
        return median(known) if known else None

    def cell(self, name: str) -> float | str | None:
        """A figure, or in words why there is none: the seconds after which it was stopped, ..."""
        value = self.figure(name)
        return self.end() if value is None else value

    def times(self, name: str, first: Outcome) -> float | str | None:
        """The ratio; if it was stopped, at least that of the seconds it had had."""
        ratio, least = self.ratio(name, first), first.figure(name)
        if ratio is None and least and self.status == "stopped":
            return f"> {(self.figure('stopped_cpu_seconds') or 0.0) / least:.0f}"
        return ratio

    def row(self, first: Outcome, *names: str) -> list[Any]:
        """Its name and these figures; one with a `/` before it as a multiple of `first`'s.

        Where there are no seconds of a fit stands why.
        """
        cells: list[Any] = [self.name]
        for name in names:
            if name.startswith("/"):
                cells.append(self.times(name[1:], first))
            else:
                cells.append(self.cell(name) if name == "fit_cpu_seconds" else self.figure(name))
        return cells

    def end(self) -> str | None:
        """How runs ended that did not end by themselves, in a word."""
        words = {"failed": "fails", "missing": "not installed", "refused": "skipped"}
        if self.status == "stopped":
            return f"> {self.figure('stopped_cpu_seconds') or 0.0:.0f}"
        return words.get(self.status)

    def cheapest(
        self, name: str, *, least: float = -math.inf, most: float = math.inf
    ) -> float | None:
        """CPU seconds of the cheapest fit with a figure in these bounds, None if there is none."""
        known = [(lap.get(name), lap["fit_cpu_seconds"]) for lap in self.laps]
        good = [
            s
            for value, s in known
            if value is not None and s is not None and least <= value <= most
        ]
        return min(good, default=None)


def run_once(case: Case, entrant: Entrant, conditions: Conditions) -> Run:
    """One run; whatever goes wrong in the entrant's process becomes the error of the run."""
    with tempfile.TemporaryDirectory(prefix="run-") as name:
        directory = Path(name)
        job = {
            "script": str(_SCRIPTS / entrant.script),
            "environment": entrant.environment,
            "files": case.files,
            "directory": name,
            "settings": entrant.settings_for(case.name),
            "sweep": [dict(settings) for settings in entrant.sweep],
            "request": case.request,
            "limit": conditions.limit,
            "threads": conditions.threads,
            "seed": conditions.seed,
            "is_audited": case.audit is not None,
            "is_thorough": case.is_thorough,
        }
        (directory / "job.json").write_text(json.dumps(job))
        try:
            python = python_of(entrant.environment, is_building=conditions.is_building)
        except EnvironmentFailure as failure:
            return Run(status="missing", error=f"environment {entrant.environment}: {failure}")
        end = run_process(python, _CHILD, directory, conditions.threads, conditions.limits())
        return _judged(case, directory, end.status, end.error, end.cpu_seconds)


def _judged(case: Case, directory: Path, status: str, error: str | None, cpu: float | None) -> Run:
    """What the process has written, its answers judged."""
    result = directory / "result.json"
    figures = {"stopped_cpu_seconds": cpu} if status == "stopped" else {}
    if (directory / "refused").exists():
        return Run(status="refused", error=(directory / "refused").read_text())
    if not result.exists():
        return Run(figures=figures, status=status, error=error)
    found = json.loads(result.read_text())
    laps = []
    try:
        for number, lap in enumerate(found["laps"]):
            answer = load_arrays(directory / f"answer-{number}.npz")
            laps.append({**lap, **_quality(case, answer), **_audited(case, directory, number)})
    except (KeyError, ValueError) as wrong:
        status, error = "failed", f"{type(wrong).__name__}: {wrong}"
    return Run(laps, {**found["figures"], **figures}, status, error, found["software"])


def _quality(case: Case, answer: Arrays) -> dict[str, float]:
    return {name: float(value) for name, value in case.judge(case.split.truth, answer).items()}


def _audited(case: Case, directory: Path, number: int) -> dict[str, float]:
    """What the audit finds, nothing where the entrant returned no solution."""
    path = directory / f"solution-{number}.npz"
    if case.audit is None or not path.exists():
        return {}
    return case.audit.check(case.split.train, load_arrays(path))
