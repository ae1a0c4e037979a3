"""Runs every entrant on one problem, in turns, each run in a process of its own.

The turns are interleaved (A B A B, not A A B B), so that a machine that slows down for a while
slows down everybody, and ratios are taken within a round.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from harness.arrays import load_arrays, save_arrays
from harness.audit import Audit
from harness.entrant import Entrant
from harness.environments import EnvironmentFailure, python_of
from harness.judge import Judge
from harness.machine import group_seconds
from harness.problem import Split
from harness.process import Process, run_process

__all__ = ["Conditions", "Outcome", "Run", "run_all"]

_LOOK_SECONDS = 0.5  # between two looks at the CPU time of a run
_CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True)
class Conditions:
    """What is the same for all entrants; `request` is the room's question, such as {"k": 5}.

    Every entrant runs under each limit of `threads`. A run is stopped after `timeout_seconds`, or
    when all of it has used `cpu_seconds`, which a busy machine does not cut.
    """

    threads: Sequence[int] = (1,)
    seed: int = 0
    repeat: int = 1
    timeout_seconds: float = 3600.0
    cpu_seconds: float | None = None
    request: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run of one entrant: figures and judged quality, or the error that ended it.

    `was_stopped`: the error is that its time was up.
    """

    figures: dict[str, float | None] = field(default_factory=dict)
    quality: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    was_stopped: bool = False
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """All runs of one entrant on one problem under one limit of threads."""

    problem: str
    entrant: Entrant
    settings: dict[str, Any]
    threads: int = 1
    runs: list[Run] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why the entrant failed, None if every run succeeded."""
        return next((run.error for run in self.runs if run.error is not None), None)

    @property
    def status(self) -> str:
        """ "ok", "stopped" if its time was up, else "failed"."""
        if self.error is None:
            return "ok"
        return "stopped" if any(run.was_stopped for run in self.runs) else "failed"

    def figure(self, name: str) -> float | None:
        """Median over the runs, None when the entrant failed or did not report it."""
        values = [{**run.figures, **run.quality}.get(name) for run in self.runs]
        known = [value for value in values if value is not None]
        return None if self.error or not known else median(known)

    def ratio(self, name: str, first: Outcome) -> float | None:
        """Median over the rounds of this figure divided by `first`'s in the same round."""
        if self.error or first.error:
            return None
        rounds = zip(self.runs, first.runs, strict=True)
        pairs = [(own.figures[name], other.figures[name]) for own, other in rounds]
        known = [a / b for a, b in pairs if a is not None and b]
        return median(known) if known else None


def run_all(
    problem: str,
    split: Split,
    entrants: Sequence[Entrant],
    judge: Judge,
    conditions: Conditions,
    announce: Callable[[str], None] = lambda text: None,
    audit: Audit | None = None,
) -> list[Outcome]:
    """Run `entrants` in turns; one that fails is kept as failed and not run again."""
    outcomes = [
        Outcome(problem, entrant, entrant.settings_for(problem), threads)
        for entrant in entrants
        for threads in conditions.threads
    ]
    if audit is not None and not audit.is_cheap(split.train):
        audit = None
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        directory = Path(name)
        save_arrays(directory / "train.npz", split.train)
        save_arrays(directory / "test.npz", split.test)
        for number in range(conditions.repeat):
            for outcome in (o for o in outcomes if o.error is None):
                title = f"{problem}: {outcome.entrant.name}"
                announce(
                    f"{title}, run {number + 1} of {conditions.repeat}, threads {outcome.threads}"
                )
                outcome.runs.append(_run(outcome, split, judge, conditions, directory, audit))
    return outcomes


def _run(
    outcome: Outcome,
    split: Split,
    judge: Judge,
    conditions: Conditions,
    shared: Path,
    audit: Audit | None,
) -> Run:
    """One run; whatever goes wrong in the entrant's process becomes the run's error."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=shared) as name:
        directory = Path(name)
        job = {
            "script": str(outcome.entrant.script),
            "train": str(shared / "train.npz"),
            "test": str(shared / "test.npz"),
            "directory": str(directory),
            "settings": outcome.settings,
            "request": conditions.request,
            "threads": outcome.threads,
            "seed": conditions.seed,
            "audited": audit is not None,
        }
        (directory / "job.json").write_text(json.dumps(job))
        try:
            python = python_of(outcome.entrant.environment)
        except EnvironmentFailure as failure:
            return Run(error=f"environment {outcome.entrant.environment}: {failure}")
        watch = partial(_wait, limit=conditions.timeout_seconds, cpu_limit=conditions.cpu_seconds)
        try:
            error = run_process(python, _CHILD, directory, outcome.threads, watch)
        except OutOfTime as stop:
            figures = {"stopped_cpu_seconds": stop.cpu}
            return Run(figures, error=f"stopped after {stop}", was_stopped=True)
        if error is not None:
            return Run(error=error)
        return _judged(directory, split, judge, audit)


class OutOfTime(Exception):
    """A run was stopped; `cpu` is the CPU time it had."""

    def __init__(self, wall: float, cpu: float | None):
        super().__init__(f"{wall:.3g} s" + ("" if cpu is None else f", CPU {cpu:.0f} s"))
        self.cpu = cpu


def _wait(process: Process, limit: float, cpu_limit: float | None) -> None:
    """Until the end, or `OutOfTime`; without a limit of CPU time nobody looks in between."""
    start = time.monotonic()
    while True:
        left = limit - (time.monotonic() - start)
        try:
            process.wait(left if cpu_limit is None else min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            cpu, wall = group_seconds(process.pid), time.monotonic() - start
        else:
            return
        if wall >= limit or (cpu_limit is not None and cpu is not None and cpu >= cpu_limit):
            raise OutOfTime(limit if wall >= limit else wall, cpu) from None


def _judged(directory: Path, split: Split, judge: Judge, audit: Audit | None) -> Run:
    result = json.loads((directory / "result.json").read_text())
    predictions = load_arrays(directory / "predictions.npz")
    try:
        quality = judge(split.truth, predictions)
        audited = _audited(directory / "solution.npz", split, audit)
    except (KeyError, ValueError) as error:
        return Run(error=f"{type(error).__name__}: {error}")
    return Run(
        figures={**result["figures"], **audited},
        quality={name: float(value) for name, value in quality.items()},
        python=result["python"],
        packages=result["packages"],
    )


def _audited(path: Path, split: Split, audit: Audit | None) -> dict[str, float]:
    """What the audit finds, nothing where the entrant returned no solution."""
    if audit is None or not path.exists():
        return {}
    return audit.check(split.train, load_arrays(path))
