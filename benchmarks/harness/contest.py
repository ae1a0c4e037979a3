"""Runs one solver on one factor graph in a process of its own, and judges what it kept."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.environments import EnvironmentFailure, python_of
from harness.factors import FactorArrays
from harness.process import Process, run_process, watch_started

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
            python = python_of(solver.environment)
        except EnvironmentFailure as failure:
            return Run(error=f"environment {solver.environment}: {failure}")
        watch = partial(_watched, directory=directory, limit=threads * limit)
        error = run_process(python, _CHILD, directory, threads, watch)
        return _judged(problem, directory, error)


def _watched(process: Process, directory: Path, limit: float) -> str | None:
    # The grace is for solvers that look at the clock between iterations.
    return watch_started(
        process,
        directory,
        prepare=_PREPARE,
        cpu_limit=1.2 * limit + 2.0,
        wall_limit=20.0 * limit + 10.0,
    )


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
