"""The measured process of a solver that improves an assignment until its time is up.

Run as ``python anytime.py job.json``, possibly by an interpreter of another environment, so it
needs NumPy and SciPy alone. The solver's script defines

    refuse(problem) -> str or None     why it cannot take this problem, if it cannot
    prepare(problem, task) -> model    its own form of the problem, off the clock
    solve(model, task, keep)           timed; tells every better assignment to `keep`

What was kept when the process is ended from outside counts. Limits are in CPU seconds, lest a busy
machine decide. A solver that has a wall clock alone is given `task.wall_limit`: the limit times the
wall seconds that a CPU second took just before, 1 on an idle machine.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

BENCHMARKS = str(Path(__file__).resolve().parents[1])
sys.path[0] = BENCHMARKS
from harness.child import forget_peak, load_script, peak_mb, resident_mb  # noqa: E402
from harness.factors import FactorArrays  # noqa: E402

del sys.path[0]
sys.path.append(BENCHMARKS)  # the judges are there; last, lest it hide what a rival imports


class Keeper:
    """The best assignment so far, in files as soon as it is known."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.figures: dict[str, Any] = {"bound": None, "seconds_to_best": None, "more": {}}
        self.wall, self.cpu, self.data_mb = time.perf_counter(), cpu_seconds(), resident_mb()

    def __call__(self, labels: Any, *, wall: float | None = None) -> None:
        """Keep a better assignment, found now or after `wall` seconds."""
        np.save(self.directory / "labels.new.npy", np.asarray(labels, dtype=np.int64))
        (self.directory / "labels.new.npy").replace(self.directory / "labels.npy")
        share = 1.0 if wall is None else min(1.0, wall / (time.perf_counter() - self.wall))
        self.figures["seconds_to_best"] = share * self.seconds
        self.write()

    def bound(self, value: float) -> None:
        """No assignment scores more."""
        if np.isfinite(value):
            self.figures["bound"] = float(value)

    def tell(self, **more: float) -> None:
        """Something else about the run."""
        self.figures["more"].update(more)

    @property
    def seconds(self) -> float:
        """CPU seconds since the start."""
        return cpu_seconds() - self.cpu

    def write(self, **more: Any) -> None:
        """What is known so far."""
        found = {
            **self.figures,
            "cpu_seconds": self.seconds,
            "wall_seconds": time.perf_counter() - self.wall,
            "above_data_mb": peak_mb() - self.data_mb,
            **more,
        }
        (self.directory / "result.new").write_text(json.dumps(found))
        (self.directory / "result.new").replace(self.directory / "result.json")


def main() -> None:
    """Run the job described by the file named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    directory = Path(job["directory"])
    task = SimpleNamespace(
        limit=job["limit"], threads=job["threads"], seed=job["seed"], settings=job["settings"]
    )
    script = load_script(Path(job["script"]))
    problem = FactorArrays.load(Path(job["problem"]))
    why: str | None = getattr(script, "refuse", lambda problem: None)(problem)
    if why:
        (directory / "refused").write_text(why)
        return
    prepare: Callable[..., Any] = script.prepare
    model = prepare(problem, task)
    task.wall_limit = stretch() * task.limit
    forget_peak()
    (directory / "started").touch()
    keep = Keeper(directory)
    script.solve(model, task, keep)
    keep.write(finished=True)


def stretch(seconds: float = 0.3) -> float:
    """Wall seconds that a CPU second takes on this machine now."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < seconds:
        pass
    return max(1.0, (time.perf_counter() - wall) / (time.process_time() - cpu))


def cpu_seconds() -> float:
    """User and system seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
