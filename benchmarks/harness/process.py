"""A measured process: started with its job, watched, ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.machine import group_seconds

__all__ = ["THREAD_VARIABLES", "Process", "run_process", "watch_started"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)

Process = subprocess.Popen[bytes]


def run_process(
    python: str,
    child: Path,
    directory: Path,
    threads: int,
    watch: Callable[[Process], str | None],
) -> str | None:
    """Run `child` on ``directory/job.json`` to its end; what went wrong, None if nothing did.

    `watch` waits for the end of the process, or says why it must stop; whatever it raises ends the
    process as well.
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
            stopped = watch(process)
        finally:
            _end(process)
        if stopped is not None or process.returncode == 0:
            return stopped
        log.seek(0)
        return _last_line(log, process.returncode)


def watch_started(
    process: Process, directory: Path, *, prepare: float, cpu_limit: float, wall_limit: float
) -> str | None:
    """Wait for the end of a process that writes a file `started` when its own work begins.

    It may take `prepare` wall seconds to get there; from then on the limits count.
    """
    begin = time.monotonic()
    used_before: float | None = None
    while process.poll() is None:
        time.sleep(0.1)
        if not (directory / "started").exists():
            if time.monotonic() - begin > prepare:
                return f"not prepared after {prepare:.0f} s"
            continue
        used = group_seconds(process.pid)
        if used_before is None:
            used_before, begin = used or 0.0, time.monotonic()
        wall = time.monotonic() - begin
        cpu = wall if used is None else used - used_before
        if cpu > cpu_limit or wall > wall_limit:
            return f"stopped after {cpu:.0f} CPU s"
    return None


def _end(process: Process) -> None:
    """End the process with all workers it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(log: Iterable[str], code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    lines = [line.strip() for line in log if line.strip()]
    return lines[-1] if lines else f"ended with code {code}"
