"""Which C, l1, tol and bias a user would choose for each data set, from its training rows alone.

    python benchmarks/tuning.py --json benchmarks/results/tuning.json
    python benchmarks/tuning.py --records benchmarks/results/tuning.json \\
        --markdown docs/measured/tuning.md

The best rows of the small sets are the settings of the entrant `sublearn` in extreme.py.
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from extreme import PROBLEMS
from harness.figures import Figures, Measurement, main
from harness.judge import precision_at
from harness.problem import Split
from sklearn.exceptions import ConvergenceWarning

from sublearn.extreme import PPDSparseClassifier

DEFAULT = {"C": 1.0, "l1": 0.1, "tol": 0.03, "bias": "learned"}
GRID = {"C": (0.1, 0.3, 1.0, 3.0), "l1": (0.03, 0.1, 0.3, 1.0)}
#: Tried with the best C and l1.
REFINED: Sequence[dict[str, Any]] = ({"tol": 0.01}, {"bias": "fixed"})
CUTS = (1, 3, 5)
SHOWN = 5


def search(problem: str, directory: Path, seed: int, *, folds: int, held: int) -> Figures:
    """Settings by mean of P@1, P@3 and P@5 over `held` of `folds` folds; default, then the best."""
    loaded = next(p for p in PROBLEMS if p.name == problem).load(directory, seed)
    judge = functools.partial(validated, loaded, folds=folds, held=held, seed=seed)
    grid = itertools.product(*GRID.values())
    settings = [{**DEFAULT, **dict(zip(GRID, values, strict=True))} for values in grid]
    found = sorted((judge(setting) for setting in settings), key=_mean, reverse=True)
    best = dict(zip(DEFAULT, found[0], strict=False))
    found += [judge({**best, **change}) for change in REFINED]
    found.sort(key=_mean, reverse=True)
    default = next(row for row in found if row[: len(DEFAULT)] == list(DEFAULT.values()))
    rows = [["default", *default], *(["best", *row] for row in found[:1])]
    rows += [["", *row] for row in found[1:SHOWN]]
    columns = {"": "", "C": "g", "l1": "g", "tol": "g", "bias": ""}
    columns |= dict.fromkeys(("P@1", "P@3", "P@5", "mean"), ".4f")
    return Figures({**columns, "fit CPU s": ".2f"}, rows)


def _mean(row: Sequence[Any]) -> float:
    return float(row[-2])


def validated(
    split: Split, setting: dict[str, Any], *, folds: int, held: int, seed: int
) -> list[Any]:
    """Settings, precisions on rows held out, their mean, and seconds of one fit."""
    precisions, seconds = [], []
    for train, test in folded(split.train["X"].shape[0], folds, held, seed):
        X, Y = split.train["X"], split.train["Y"]
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = PPDSparseClassifier(random_state=seed, **setting).fit(X[train], Y[train])
        seconds.append(time.process_time() - start)
        labels, _ = model.predict_top_k(X[test], k=CUTS[-1])
        precisions.append([precision_at(k, Y[test], labels) for k in CUTS])
    means = np.mean(precisions, axis=0)
    return [*setting.values(), *means.tolist(), float(means.mean()), float(np.mean(seconds))]


def folded(n_rows: int, folds: int, held: int, seed: int) -> Iterator[tuple[Any, Any]]:
    fold = np.random.default_rng(seed).permutation(n_rows) % folds
    return ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(held))


def tuned(problem: str, folds: int, held: int) -> Measurement:
    note = (
        f"{held} of {folds} folds of the training rows held out in turn; precisions are means over "
        "them, CPU seconds the mean of one fit. Ordered by the mean of P@1, P@3 and P@5."
    )
    measure = functools.partial(search, problem, folds=folds, held=held)
    return Measurement(problem, problem, note, measure)


SMALL = ("sector", "rcv1sub1", "stackex_cs", "ng20", "bibtex")
MEASUREMENTS = [
    *(tuned(name, folds=5, held=5) for name in SMALL),
    tuned("delicious", folds=5, held=2),
]

if __name__ == "__main__":
    raise SystemExit(main("Settings chosen on training rows", MEASUREMENTS))
