"""A measured process: started with its job, watched, ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.machine import group_seconds

__all__ = ["THREAD_VARIABLES", "End", "Limits", "run_process"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
_LOOK_SECONDS = 0.1  # between two looks at the CPU time of a process


@dataclass(frozen=True)
class Limits:
    """Wall seconds until the work begins, and CPU and wall seconds that it may take from then."""

    prepare: float
    cpu: float
    wall: float


@dataclass(frozen=True)
class End:
    """How a process ended: "ok", "stopped", "missing" for lack of a package, or "failed"."""

    status: str = "ok"
    error: str | None = None
    cpu_seconds: float | None = None


def run_process(python: str, child: Path, directory: Path, threads: int, limits: Limits) -> End:
    """Run `child` on ``directory/job.json`` until its end or its limits.

    The limits count from the moment at which the child writes a file `started`.
    """
    surroundings = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    if python != sys.executable:
        surroundings.pop("PYTHONPATH", None)  # it speaks of this interpreter's packages
    with (directory / "log").open("w+") as log:
        process = subprocess.Popen(
            [python, str(child), str(directory / "job.json")],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=surroundings,
            start_new_session=True,
        )
        try:
            stopped = _watch(process, directory / "started", limits)
        finally:
            _end(process)
        if stopped is not None or process.returncode == 0:
            return stopped or End()
        log.seek(0)
        return _failure(log, process.returncode)


def _watch(process: subprocess.Popen[bytes], started: Path, limits: Limits) -> End | None:
    """Wait for the end of the process, or say that it must stop."""
    begin = time.monotonic()
    used_before: float | None = None
    while True:
        try:
            process.wait(_LOOK_SECONDS)
            return None
        except subprocess.TimeoutExpired:
            wall = time.monotonic() - begin
        if not started.exists():
            if wall > limits.prepare:
                return End("stopped", f"not prepared after {limits.prepare:.0f} s")
            continue
        used = group_seconds(process.pid)
        if used_before is None:
            used_before, begin, wall = used or 0.0, time.monotonic(), 0.0
        cpu = wall if used is None else used - used_before
        if cpu > limits.cpu or wall > limits.wall:
            return End("stopped", f"stopped after {cpu:.3g} CPU s", cpu)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with all workers it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failure(log: Iterable[str], code: int) -> End:
    if code < 0:
        return End("failed", f"killed by {signal.Signals(-code).name}")
    lines = [line.strip() for line in log if line.strip()]
    last = lines[-1] if lines else f"ended with code {code}"
    return End("missing" if last.startswith("ModuleNotFoundError") else "failed", last)
