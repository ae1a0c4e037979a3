"""Runs one solver on one factor graph in a process of its own, and judges what it kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.environments import EnvironmentFailure, python_of
from harness.factors import FactorArrays
from harness.machine import group_seconds
from harness.runner import THREAD_VARIABLES

__all__ = ["Run", "Solver", "run"]

_CHILD = Path(__file__).with_name("anytime.py")
#: Wall seconds for imports, reading and a rival's own form of the problem.
_PREPARE = 180.0
_SCRIPTS = Path(__file__).resolve().parents[1] / "entrants" / "graph"


@dataclass(frozen=True)
class Solver:
    """A script under entrants/graph, the environment it runs in, and its settings."""

    name: str
    environment: str
    script: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """What came out; `error` says why nothing did, or why the run did not end by itself."""

    score: float | None = None
    bound: float | None = None
    seconds_to_best: float | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    above_data_mb: float | None = None
    error: str | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(bound - score) / max(1, |score|), None if one of them is not known."""
        if self.score is None or self.bound is None or not np.isfinite(self.score):
            return None
        return max(0.0, self.bound - self.score) / max(1.0, abs(self.score))


def run(
    problem: FactorArrays,
    file: Path,
    solver: Solver,
    limit: float,
    seed: int = 0,
    threads: int = 1,
) -> Run:
    """One run of `limit` CPU seconds for each thread; `file` is where `problem` was saved."""
    with tempfile.TemporaryDirectory(prefix="contest-") as name:
        directory = Path(name)
        job = {
            "script": str(_SCRIPTS / solver.script),
            "problem": str(file),
            "directory": name,
            "settings": dict(solver.settings),
            "limit": limit,
            "threads": threads,
            "seed": seed,
        }
        (directory / "job.json").write_text(json.dumps(job))
        try:
            error = _process(python_of(solver.environment), directory, limit, threads)
        except EnvironmentFailure as failure:
            return Run(error=f"environment {solver.environment}: {failure}")
        return _judged(problem, directory, error)


def _process(python: str, directory: Path, limit: float, threads: int) -> str | None:
    """The measured process from start to end; what went wrong, if anything."""
    surroundings = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    if python != sys.executable:
        surroundings.pop("PYTHONPATH", None)  # it speaks of this interpreter's packages
    with (directory / "log").open("w+") as log:
        process = subprocess.Popen(
            [python, str(_CHILD), str(directory / "job.json")],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=surroundings,
            start_new_session=True,
        )
        try:
            stopped = _watched(process, directory, threads * limit)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if stopped is not None or process.returncode == 0:
            return stopped
        if process.returncode < 0:
            return f"killed by {signal.Signals(-process.returncode).name}"
        log.seek(0)
        lines = [line.strip() for line in log if line.strip()]
        return lines[-1] if lines else f"ended with code {process.returncode}"


def _watched(process: subprocess.Popen[bytes], directory: Path, limit: float) -> str | None:
    """Wait for the end, or for more CPU seconds than the limit and a grace; why it must stop."""
    begin = time.monotonic()
    used_before: float | None = None
    while process.poll() is None:
        time.sleep(0.1)
        if not (directory / "started").exists():
            if time.monotonic() - begin > _PREPARE:
                return f"not prepared after {_PREPARE:.0f} s"
            continue
        used = group_seconds(process.pid)
        if used_before is None:
            used_before, begin = used or 0.0, time.monotonic()
        cpu = time.monotonic() - begin if used is None else used - used_before
        # The grace is for solvers that look at the clock between iterations.
        if cpu > 1.2 * limit + 2.0 or time.monotonic() - begin > 20.0 * limit + 10.0:
            return f"stopped after {cpu:.0f} CPU s"
    return None


def _judged(problem: FactorArrays, directory: Path, error: str | None) -> Run:
    if (directory / "refused").exists():
        return Run(error=f"skipped: {(directory / 'refused').read_text()}")
    result, labels = directory / "result.json", directory / "labels.npy"
    if not result.exists():
        return Run(error=error or "no result")
    found = json.loads(result.read_text())
    found.pop("finished", None)
    try:
        score = problem.score(np.load(labels)) if labels.exists() else None
    except ValueError as wrong:
        return Run(error=f"no assignment: {wrong}")
    return Run(score=score, error=error, **found)
