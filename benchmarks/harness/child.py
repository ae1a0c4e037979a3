"""The measured process: loads one entrant, times its fit and predict, writes what it returned.

Run as ``python child.py job.json`` by :mod:`harness.runner`, possibly by an interpreter of
another environment, so it needs NumPy and SciPy alone. Everything but the timed calls stays
outside the clock: imports, reading the data, saving the model, writing the predictions.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

# Only the array format comes from the harness; after that its folder leaves the path, lest a
# module of ours hide one that a rival imports.
sys.path[0] = str(Path(__file__).resolve().parents[1])
from harness.arrays import load_arrays, save_arrays  # noqa: E402

del sys.path[0]

MEGABYTE = 2**20
#: Single rows are asked one by one, until there are enough of them or the time is up.
SINGLE_ROWS, SINGLE_SECONDS = 200, 2.0
#: The whole test set is asked again while that takes less than this, for a time that means much.
BATCHES, BATCH_SECONDS = 15, 0.5
#: What an estimator says of its own solution.
OWN_FIGURES = ("certificate", "objective")


@dataclass(frozen=True)
class Task:
    """What an entrant is told besides the data."""

    settings: dict[str, Any]
    request: dict[str, Any]
    threads: int
    seed: int
    scratch: Path


@dataclass(frozen=True)
class Lap:
    """Seconds of one call: user+system CPU of this process and its ended children, and wall."""

    cpu: float
    wall: float


def main() -> None:
    """Run the job described by the file named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    directory = Path(job["directory"])
    scratch = directory / "scratch"
    scratch.mkdir()
    task = Task(job["settings"], job["request"], job["threads"], job["seed"], scratch)
    script = load_script(Path(job["script"]))
    train, test = load_arrays(Path(job["train"])), load_arrays(Path(job["test"]))
    data_mb = resident_mb()
    if hasattr(script, "prepare"):
        train = script.prepare(train, task)
    forget_peak()

    start_mb = peak_mb()
    model, fitting = timed(lambda: script.fit(train, task))
    fit_peak_mb = peak_mb()
    own = {name: number_of(model, f"{name}_") for name in OWN_FIGURES}
    own["work"] = work_of(model)
    if hasattr(script, "ready"):
        model = script.ready(model, task)
    ask = Question(script, model, task)
    predictions, laps = repeated(ask.batch(test))
    predict_peak_mb = peak_mb()
    figures = {
        "fit_cpu_seconds": fitting.cpu,
        "fit_wall_seconds": fitting.wall,
        "predict_cpu_seconds": statistics.median(lap.cpu for lap in laps),
        "predict_wall_seconds": statistics.median(lap.wall for lap in laps),
        "first_predict_wall_seconds": laps[0].wall,
        "single_row_ms": single_row_ms(ask, test),
        "data_mb": data_mb,
        "start_mb": start_mb,
        "fit_peak_mb": fit_peak_mb,
        "peak_mb": predict_peak_mb,
        "above_data_mb": predict_peak_mb - data_mb,
        "model_mb": model_mb(script, model, task, directory / "model"),
        **own,
    }
    save_arrays(directory / "predictions.npz", predictions)
    solution = (
        script.solution(model, task) if job["audited"] and hasattr(script, "solution") else None
    )
    if solution is not None:
        save_arrays(directory / "solution.npz", solution)
    (directory / "result.json").write_text(json.dumps({"figures": figures, **versions()}))


class Question:
    """A fitted model and how it is asked; a rival's own form of the rows is made off the clock."""

    def __init__(self, script: ModuleType, model: Any, task: Task):
        self.script, self.model, self.task = script, model, task

    def batch(self, test: dict[str, Any]) -> Callable[[], Any]:
        """The call that is timed, for these rows."""
        if hasattr(self.script, "prepare_test"):
            test = self.script.prepare_test(test, self.task)
        return functools.partial(self.script.predict, self.model, test, self.task)


def load_script(path: Path) -> ModuleType:
    """Import a file under a name that no library uses."""
    spec = importlib.util.spec_from_file_location("entrant_script", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def timed(call: Callable[[], Any]) -> tuple[Any, Lap]:
    """Result of `call` and the time it took."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    value = call()
    return value, Lap(cpu_seconds() - cpu, time.perf_counter() - wall)


def repeated(call: Callable[[], Any]) -> tuple[Any, list[Lap]]:
    """Result of `call` and its times: one if it is slow, several if it is over in no time."""
    value, lap = timed(call)
    laps = [lap]
    while len(laps) < BATCHES and sum(lap.wall for lap in laps) < BATCH_SECONDS:
        laps.append(timed(call)[1])
    return value, laps


def single_row_ms(ask: Question, test: dict[str, Any]) -> float | None:
    """Median wall milliseconds of asking for one row; None unless all arrays share their rows."""
    lengths = {value.shape[0] if value.ndim else 0 for value in test.values()}
    n_rows = min(lengths) if len(lengths) == 1 else 0
    laps: list[float] = []
    start = time.perf_counter()
    for i in range(min(n_rows, SINGLE_ROWS)):
        row = {name: value[i : i + 1] for name, value in test.items()}
        laps.append(timed(ask.batch(row))[1].wall)
        if time.perf_counter() - start > SINGLE_SECONDS:
            break
    return 1000 * statistics.median(laps) if laps else None


def cpu_seconds() -> float:
    """User and system seconds of all threads, and of worker processes that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_mb() -> float:
    """Largest resident size of this process so far.

    On Linux ``ru_maxrss`` survives exec, so it would report the starting process if that one was
    larger; ``VmHWM`` belongs to this program alone.
    """
    found = status_mb("VmHWM:")
    if found is not None:
        return found
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def resident_mb() -> float:
    """Resident size of this process now; its peak so far where the system does not say."""
    found = status_mb("VmRSS:")
    return peak_mb() if found is None else found


def status_mb(field: str) -> float | None:
    """A field of Linux's own report on this process, None elsewhere."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024 / MEGABYTE
    return None


def forget_peak() -> None:
    """Start the peak anew where the system can: writing a rival's text file is not its fit."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def model_mb(script: ModuleType, model: Any, task: Task, directory: Path) -> float | None:
    """Size on disk of the saved model, None when the script cannot save."""
    if not hasattr(script, "save"):
        return None
    directory.mkdir()
    script.save(model, task, directory)
    return sum(f.stat().st_size for f in directory.rglob("*") if f.is_file()) / MEGABYTE


def work_of(model: Any) -> float | None:
    """Operations the estimator counted itself, None when it keeps no such trace.

    Columns of a trace are running totals, so the last row is the whole fit.
    """
    try:
        return float(model.trace_["work"][-1])
    except (AttributeError, IndexError, KeyError, TypeError):
        return None


def number_of(model: Any, name: str) -> float | None:
    """A finite number that the fitted model has under this name, else None."""
    value = getattr(model, name, None)
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if is_number else None


def versions() -> dict[str, Any]:
    """Interpreter and packages that this process could import."""
    packages = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {"python": platform.python_version(), "packages": dict(sorted(packages.items()))}


if __name__ == "__main__":
    main()
