"""The measured process of an entrant of benchmarks/structured.py: accuracy and cost by effort.

Run as ``python laps.py job.json``, possibly by an interpreter of another environment, so it needs
NumPy and SciPy alone. A script defines

    prepare(train, task) -> data           its own form of the training data, off the clock
    fit(data, task, n_iter) -> (model, n_iter reached, whether more would change nothing)
or
    passes(data, task) -> iterator of (model, n_iter)      anytime: the clock runs inside `next`

and `predict(model, test, task) -> tags`, if it needs them `prepare_test(test, task)`,
`save(model, path)`, `weights(model) -> (W, T)`, `bound(model)`. With `fit` the number of iterations
is doubled, each fit from the start and judged by its own seconds, as long as twice the last one is
within the limit. With `passes` a lap is taken whenever the time has grown by half. What is written
after each lap counts, also when the process is ended from outside.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

BENCHMARKS = str(Path(__file__).resolve().parents[1])
sys.path[0] = BENCHMARKS
from harness.arrays import load_arrays, save_arrays  # noqa: E402
from harness.child import cpu_seconds, load_script  # noqa: E402

del sys.path[0]
sys.path.append(BENCHMARKS)  # the judges are there; last, lest it hide what a rival imports

#: A lap of an anytime entrant is taken when its seconds have grown by this.
GROWTH = 1.5


def main() -> None:
    """Run the job described by the file named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    directory = Path(job["directory"])
    task = SimpleNamespace(scratch=directory, **{k: job[k] for k in ("limit", "seed", "settings")})
    task.n_labels = job["n_labels"]
    script = load_script(Path(job["script"]))
    data = script.prepare(load_arrays(Path(job["train"])), task)
    test = load_arrays(Path(job["test"]))
    if hasattr(script, "prepare_test"):
        test = script.prepare_test(test, task)
    (directory / "started").touch()
    written = []
    for number, (model, lap) in enumerate(laps(script, data, task)):
        lap |= judged(script, model, test, task, directory, number, job["wants_weights"])
        written.append(lap)
        (directory / "result.new").write_text(json.dumps(written))
        (directory / "result.new").replace(directory / "result.json")


def laps(script: ModuleType, data: Any, task: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Models with the CPU seconds that it takes to have them."""
    if hasattr(script, "fit"):
        yield from refits(script, data, task)
    else:
        yield from snapshots(script, data, task)


def refits(script: ModuleType, data: Any, task: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    n_iter = int(task.settings.get("first", 1))
    while True:
        start = cpu_seconds()
        model, reached, is_done = script.fit(data, task, n_iter)
        seconds = cpu_seconds() - start
        yield model, {"seconds": seconds, "n_iter": reached, "is_done": bool(is_done)}
        if is_done or 2 * seconds > task.limit:
            return
        n_iter *= 2


def snapshots(script: ModuleType, data: Any, task: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    steps = script.passes(data, task)
    seconds, mark = 0.0, task.limit / 200
    while seconds < task.limit:
        start = cpu_seconds()
        found = next(steps, None)
        seconds += cpu_seconds() - start
        if found is None:
            return
        if seconds >= min(mark, task.limit):
            mark = GROWTH * seconds
            yield found[0], {"seconds": seconds, "n_iter": found[1], "is_done": False}


def judged(
    script: ModuleType,
    model: Any,
    test: Any,
    task: Any,
    directory: Path,
    number: int,
    wants_weights: bool,
) -> dict[str, Any]:
    """Tags of the test set in a file, and the cost of having them; weights only if asked for."""
    found: dict[str, Any] = {}
    if wants_weights:
        W, T = script.weights(model)
        save_arrays(directory / f"weights-{number}.npz", {"W": sp.csr_matrix(W), "T": T})
        if hasattr(script, "bound"):
            found["bound"] = script.bound(model)
        return found
    wall, cpu = time.perf_counter(), cpu_seconds()
    tags = script.predict(model, test, task)
    found["predict_seconds"] = cpu_seconds() - cpu
    found["predict_wall_seconds"] = time.perf_counter() - wall
    np.save(directory / f"tags-{number}.npy", np.asarray(tags, dtype=np.int64))
    if hasattr(script, "save"):
        path = directory / "model"
        script.save(model, path)
        found["model_mb"] = path.stat().st_size / 2**20
    return found


if __name__ == "__main__":
    main()
