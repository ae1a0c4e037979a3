"""Runs one entrant of benchmarks/structured.py in a process of its own, and judges its tags."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.arrays import load_arrays, save_arrays
from harness.chains import Chains, Split
from harness.environments import EnvironmentFailure, python_of
from harness.process import Process, run_process, watch_started

__all__ = ["Course", "Lap", "Tagger", "follow", "primal"]

_CHILD = Path(__file__).with_name("laps.py")
_SCRIPTS = Path(__file__).resolve().parents[1] / "entrants" / "structured"
#: Wall seconds for imports, reading and a rival's own form of the sequences.
_PREPARE = 600.0


@dataclass(frozen=True)
class Tagger:
    """A script under entrants/structured, the environment it runs in, and its settings."""

    name: str
    environment: str
    script: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **settings: Any) -> Tagger:
        return Tagger(self.name, self.environment, self.script, {**self.settings, **settings})


@dataclass(frozen=True)
class Lap:
    """A model: what it took, and how good it is. `seconds` are CPU seconds of the fit."""

    seconds: float
    n_iter: float
    is_done: bool = False
    accuracy: float | None = None
    tokens_per_second: float | None = None
    model_mb: float | None = None
    primal: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Course:
    """The laps of an entrant; `error` says why there are none, or no more."""

    laps: Sequence[Lap] = ()
    error: str | None = None

    @property
    def last(self) -> Lap | None:
        return self.laps[-1] if self.laps else None

    def seconds_to(self, accuracy: float) -> float | None:
        """CPU seconds of the cheapest model that is right at least this often."""
        enough = [x.seconds for x in self.laps if x.accuracy is not None and x.accuracy >= accuracy]
        return min(enough, default=None)

    def seconds_to_primal(self, value: float) -> float | None:
        """CPU seconds of the cheapest model with an objective of at most this."""
        enough = [x.seconds for x in self.laps if x.primal is not None and x.primal <= value]
        return min(enough, default=None)


def follow(
    split: Split, tagger: Tagger, limit: float, seed: int = 0, C: float | None = None
) -> Course:
    """All laps of `tagger` within `limit` CPU seconds; with C the objective instead of tags."""
    with tempfile.TemporaryDirectory(prefix="tagging-") as name:
        directory = Path(name)
        job = {
            "script": str(_SCRIPTS / tagger.script),
            "directory": name,
            "train": _written(directory / "train.npz", split.train, has_tags=True),
            "test": _written(directory / "test.npz", split.test, has_tags=False),
            "settings": dict(tagger.settings),
            "n_labels": split.n_labels,
            "limit": limit,
            "seed": seed,
            "wants_weights": C is not None,
        }
        (directory / "job.json").write_text(json.dumps(job))
        try:
            python = python_of(tagger.environment)
        except EnvironmentFailure as failure:
            return Course(error=f"environment {tagger.environment}: {failure}")
        watch = partial(_watched, directory=directory, limit=limit)
        error = run_process(python, _CHILD, directory, 1, watch)
        return _judged(directory, split, error, C)


def _written(path: Path, part: Chains, *, has_tags: bool) -> str:
    tags = {"y": part.y.astype(np.int32)} if has_tags else {}
    save_arrays(path, {"X": part.X, "lengths": part.lengths, **tags})
    return str(path)


def _watched(process: Process, directory: Path, limit: float) -> str | None:
    # Refits and decoding may take three limits together.
    return watch_started(
        process, directory, prepare=_PREPARE, cpu_limit=3.0 * limit + 5.0, wall_limit=math.inf
    )


def _judged(directory: Path, split: Split, error: str | None, C: float | None) -> Course:
    if not (directory / "result.json").exists():
        return Course(error=error or "no result")
    laps = []
    for number, found in enumerate(json.loads((directory / "result.json").read_text())):
        lap = {k: found[k] for k in ("seconds", "n_iter", "is_done")}
        if C is not None:
            arrays = load_arrays(directory / f"weights-{number}.npz")
            lap["primal"] = primal(split.train, arrays["W"], np.asarray(arrays["T"]), C)
            lap["bound"] = found.get("bound")
        else:
            tags = np.load(directory / f"tags-{number}.npy")
            if tags.shape != split.test.y.shape:
                return Course(error=f"{len(tags)} tags for {split.test.n_tokens} tokens")
            lap["accuracy"] = float(np.mean(tags == split.test.y))
            lap["tokens_per_second"] = len(tags) / max(found["predict_seconds"], 1e-9)
            lap["model_mb"] = found.get("model_mb")
        laps.append(Lap(**lap))
    return Course(laps, error)


def primal(train: Chains, W: Any, T: np.ndarray, C: float) -> float:
    """The objective of given weights, by the library's exact decoding with mistakes counted."""
    from sublearn import _core

    X, W = train.X.astype(np.float64), W.tocsr().astype(np.float64)
    truth = np.ascontiguousarray(train.y, dtype=np.int32)
    arrays = [np.asarray(m, np.int32) for m in (X.indptr, X.indices)]
    weights = [W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data]
    lengths = train.lengths.astype(np.int64)
    _, scores = _core.viterbi(
        *arrays, X.data, *weights, np.ascontiguousarray(T), lengths, truth, 1, _core.Monitor()
    )
    n, ends = len(truth), np.cumsum(lengths)
    Y = (X.T @ _one_hot(truth, W.shape[1])).multiply(W).sum()
    inside = np.setdiff1d(np.arange(n - 1), ends[:-1] - 1)
    of_truth = float(Y) + float(T[truth[inside], truth[inside + 1]].sum())
    norm = float(W.data @ W.data) + float(np.vdot(T, T))
    return 0.5 * norm + C * (float(scores.sum()) - of_truth)


def _one_hot(labels: np.ndarray, n_labels: int) -> Any:
    import scipy.sparse as sp

    n = len(labels)
    return sp.csr_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n, n_labels))
