"""The measured process: loads one entrant, times what it does, writes what it returned.

Run as ``python child.py job.json`` by :mod:`harness.runner`, possibly by an interpreter of
another environment, so it needs NumPy and SciPy alone. Everything but the timed calls stays
outside the clock: imports, reading the data, saving the model, writing the answer. What is written
after each lap counts, also when the process is ended from outside.
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
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

if __name__ == "__main__":
    # The judges are found, last, lest they hide what a rival imports; this folder is not.
    sys.path = [*sys.path[1:], str(Path(__file__).resolve().parents[1])]

from harness.arrays import load_arrays, save_arrays

MEGABYTE = 2**20
#: Single rows are asked one by one, until there are enough of them or the time is up.
SINGLE_ROWS, SINGLE_SECONDS = 200, 2.0
#: The whole test set is asked again while that takes less than this, for a time that means much.
BATCHES, BATCH_SECONDS = 15, 0.5
#: What an estimator says of its own solution.
OWN_FIGURES = ("certificate", "objective")
#: Packages of the main environment whose versions are kept.
FOUNDATIONS = ("numpy", "scipy", "scikit-learn", "sublearn")


@dataclass(frozen=True)
class Task:
    """What an entrant is told besides the data; limits are in CPU and in wall seconds.

    The wall limit is for solvers that have no other clock: the limit times the wall seconds that a
    CPU second took just before, 1 on an idle machine.
    """

    settings: dict[str, Any]
    request: dict[str, Any]
    threads: int
    seed: int
    scratch: Path
    limit: float
    wall_limit: float = math.inf


@dataclass(frozen=True)
class Lap:
    """Seconds of one call: user+system CPU of this process and its ended children, and wall."""

    cpu: float
    wall: float

    def __sub__(self, other: Lap) -> Lap:
        return Lap(self.cpu - other.cpu, self.wall - other.wall)

    def __add__(self, other: Lap) -> Lap:
        return Lap(self.cpu + other.cpu, self.wall + other.wall)


def main() -> None:
    """Run the job described by the file named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    directory = Path(job["directory"])
    (directory / "scratch").mkdir()
    told = {name: job[name] for name in ("settings", "request", "threads", "seed", "limit")}
    task = Task(**told, scratch=directory / "scratch")
    warnings.simplefilter("ignore")
    script = load_script(Path(job["script"]))
    data = read(script, job["files"]["train"])
    why = getattr(script, "refuse", lambda data, task: None)(data, task)
    if why:
        (directory / "refused").write_text(why)
        return
    keep = Keeper(script, task, job)
    if "warm_up" in job["files"]:
        first = replace(task, settings={**task.settings, **(job["sweep"] or [{}])[0]})
        small = prepared(script, read(script, job["files"]["warm_up"]), task)
        keep.tell(cold_seconds=timed(lambda: script.fit(small, first))[1].cpu)
    keep.data_mb = resident_mb()
    data = prepared(script, data, task)
    if hasattr(script, "solve"):
        task = replace(task, wall_limit=stretch() * task.limit)
    keep.begin()
    if hasattr(script, "solve"):
        script.solve(data, task, keep)
    else:
        fitted(script, data, task, job["sweep"] or [{}], keep)
    keep.write()


def read(script: ModuleType, path: str) -> Any:
    """Training arrays in the form that the script wants."""
    arrays = load_arrays(Path(path))
    return script.read(arrays) if hasattr(script, "read") else arrays


def prepared(script: ModuleType, data: Any, task: Task) -> Any:
    return script.prepare(data, task) if hasattr(script, "prepare") else data


def fitted(
    script: ModuleType, data: Any, task: Task, sweep: list[dict[str, Any]], keep: Keeper
) -> None:
    """A lap for each of the settings, until one says that it is done or the time is up."""
    used = 0.0
    for settings in sweep:
        own = replace(task, settings={**task.settings, **settings})
        model, spent = timed(functools.partial(script.fit, data, own))
        lap = keep.lap(model, spent)
        used += spent.cpu
        if lap.get("is_done") or used > task.limit:
            return


class Keeper:
    """The laps of a run, in files as soon as they are known; its clock stands still meanwhile."""

    def __init__(self, script: ModuleType, task: Task, job: dict[str, Any]):
        self.script, self.task, self.job = script, task, job
        self.directory = Path(job["directory"])
        self.test = load_arrays(Path(job["files"]["test"]))
        self.laps: list[dict[str, Any]] = []
        self.told: dict[str, Any] = {}
        self.data_mb = 0.0

    def begin(self) -> None:
        """Start the clock, and the peak of memory."""
        forget_peak()
        self.start_mb = peak_mb()
        (self.directory / "started").touch()
        self.start, self.pause = now(), Lap(0.0, 0.0)

    @property
    def spent(self) -> Lap:
        return now() - self.start - self.pause

    @property
    def seconds(self) -> float:
        """CPU seconds since the start."""
        return self.spent.cpu

    def __call__(self, model: Any, *, wall: float | None = None, **figures: float) -> None:
        """Keep a better model, found now or after `wall` seconds."""
        spent, begin = self.spent, now()
        share = 1.0 if wall is None else min(1.0, wall / spent.wall)
        self.lap(model, Lap(share * spent.cpu, share * spent.wall), **figures)
        self.pause += now() - begin

    def bound(self, value: float) -> None:
        """No answer is better."""
        if math.isfinite(value):
            self.tell(bound=float(value))

    def tell(self, **figures: float) -> None:
        """Something about the run as a whole."""
        self.told.update(figures)

    def lap(self, model: Any, spent: Lap, **figures: float) -> dict[str, Any]:
        """Answers of a model in a file, and what they cost."""
        number, script, task = len(self.laps), self.script, self.task
        figures |= {"fit_cpu_seconds": spent.cpu, "fit_wall_seconds": spent.wall}
        figures |= {"fit_peak_mb": peak_mb(), "work": work_of(model)}
        figures |= {name: number_of(model, f"{name}_") for name in OWN_FIGURES}
        figures |= script.figures(model) if hasattr(script, "figures") else {}
        model = script.ready(model, task) if hasattr(script, "ready") else model
        answer, costs = self.asked(model)
        size = model_mb(script, model, task, self.directory / f"model-{number}")
        figures |= {**costs, "model_mb": size}
        save_arrays(self.directory / f"answer-{number}.npz", answer)
        if self.job["is_audited"] and hasattr(script, "solution"):
            solution = script.solution(model, task)
            if solution is not None:
                save_arrays(self.directory / f"solution-{number}.npz", solution)
        self.laps.append(figures)
        self.write()
        return figures

    def asked(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answer, and the seconds and the memory of having it."""
        if not hasattr(self.script, "predict"):
            is_named = isinstance(model, dict)
            return (model if is_named else {"answer": np.asarray(model)}), self.memory()
        ask = Question(self.script, model, self.task)
        answer, laps = repeated(ask.batch(self.test), BATCHES if self.job["is_thorough"] else 1)
        costs = {
            "predict_cpu_seconds": statistics.median(lap.cpu for lap in laps),
            "predict_wall_seconds": statistics.median(lap.wall for lap in laps),
            **self.memory(),
        }
        if self.job["is_thorough"]:
            costs["single_row_ms"] = single_row_ms(ask, self.test)
        return answer, costs

    def memory(self) -> dict[str, float]:
        peak = peak_mb()
        return {"start_mb": self.start_mb, "peak_mb": peak, "above_data_mb": peak - self.data_mb}

    def write(self) -> None:
        """What is known so far."""
        spent = self.spent
        totals = {"cpu_seconds": spent.cpu, "wall_seconds": spent.wall}
        found = {"laps": self.laps, "figures": {**totals, **self.memory(), **self.told}}
        found["software"] = versions(self.job["environment"])
        (self.directory / "result.new").write_text(json.dumps(found))
        (self.directory / "result.new").replace(self.directory / "result.json")


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


def now() -> Lap:
    """The clocks of this process; CPU is that of all threads, and of workers that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Lap(sum(usage.ru_utime + usage.ru_stime for usage in usages), time.perf_counter())


def timed(call: Callable[[], Any]) -> tuple[Any, Lap]:
    """Result of `call` and the time it took."""
    start = now()
    value = call()
    return value, now() - start


def repeated(call: Callable[[], Any], most: int) -> tuple[Any, list[Lap]]:
    """Result of `call` and its times: one if it is slow, several if it is over in no time."""
    value, lap = timed(call)
    laps = [lap]
    while len(laps) < most and sum(lap.wall for lap in laps) < BATCH_SECONDS:
        laps.append(timed(call)[1])
    return value, laps


def stretch(seconds: float = 0.3) -> float:
    """Wall seconds that a CPU second takes on this machine now."""
    start = now()
    while (spent := now() - start).cpu < seconds:
        pass
    return max(1.0, spent.wall / spent.cpu)


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


@functools.cache
def versions(environment: str) -> list[str]:
    """Packages that say what was measured: our foundations, or what an environment is named for."""
    found = []
    for name, version in sorted((d.metadata["Name"], d.version) for d in metadata.distributions()):
        is_named = name in FOUNDATIONS if environment == "main" else environment in name.lower()
        found += [f"{name} {version}"] if is_named else []
    return found


if __name__ == "__main__":
    main()
