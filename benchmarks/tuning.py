"""Which C, l1, tol and intercept a user would choose for each data set, from training rows alone.

The best rows of the small sets are the settings of the entrant `sublearn` in extreme.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from extreme import CUTS, PROBLEMS
from harness.bench import Bench
from harness.judge import precision_at
from harness.problem import Split
from harness.table import Figures, Table
from harness.timing import cpu_timed

from sublearn.extreme import PPDSparseClassifier

DEFAULT = {"C": 1.0, "l1": 0.1, "tol": 0.03, "fit_intercept": True}
GRID = {"C": (0.1, 0.3, 1.0, 3.0), "l1": (0.03, 0.1, 0.3, 1.0)}
#: Tried with the best C and l1.
REFINED: Sequence[dict[str, Any]] = ({"tol": 0.01}, {"fit_intercept": "fixed"})
SHOWN = 5


def search(bench: Bench, problem: str, *, folds: int, held: int) -> Figures:
    """Settings by mean of P@1, P@3 and P@5 over `held` of `folds` folds; default, then the best."""
    loaded = next(p for p in PROBLEMS if p.name == problem).load(bench.data, bench.seed)
    judge = functools.partial(
        validated, loaded, folds=folds, held=bench.size(held, 1), seed=bench.seed
    )
    grid = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
    settings = [
        DEFAULT,
        *bench.some({**DEFAULT, **own} for own in grid if own.items() - DEFAULT.items()),
    ]
    found = sorted((judge(setting) for setting in settings), key=_mean, reverse=True)
    best = dict(zip(DEFAULT, found[0], strict=False))
    found += [judge({**best, **change}) for change in bench.some(REFINED)]
    found.sort(key=_mean, reverse=True)
    default = next(row for row in found if row[: len(DEFAULT)] == list(DEFAULT.values()))
    rows = [["default", *default], *(["best", *row] for row in found[:1])]
    rows += [["", *row] for row in found[1:SHOWN]]
    columns = {"": "", "C": "g", "l1": "g", "tol": "g", "fit_intercept": ""}
    columns |= dict.fromkeys(("P@1", "P@3", "P@5", "mean"), ".4f>")
    return Figures({**columns, "fit CPU s": ".2f<"}, rows)


def _mean(row: Sequence[Any]) -> float:
    return float(row[-2])


def validated(
    split: Split, setting: dict[str, Any], *, folds: int, held: int, seed: int
) -> list[Any]:
    """Settings, precisions on rows held out, their mean, and seconds of one fit."""
    precisions, seconds = [], []
    X, Y = split.train["X"], split.train["Y"]
    for train, test in folded(X.shape[0], folds, held, seed):
        model = PPDSparseClassifier(random_state=seed, **setting)
        seconds.append(cpu_timed(functools.partial(model.fit, X[train], Y[train]))[1])
        labels, _ = model.predict_top_k(X[test], k=CUTS[-1])
        precisions.append([precision_at(k, Y[test], labels) for k in CUTS])
    means = np.mean(precisions, axis=0)
    return [*setting.values(), *means.tolist(), float(means.mean()), float(np.mean(seconds))]


def folded(n_rows: int, folds: int, held: int, seed: int) -> Iterator[tuple[Any, Any]]:
    fold = np.random.default_rng(seed).permutation(n_rows) % folds
    return ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(held))


def tuned(problem: str, folds: int, held: int) -> Table:
    note = (
        f"{held} of {folds} folds of the training rows held out in turn; precisions are means over "
        "them, CPU seconds the mean of one fit. Ordered by the mean of P@1, P@3 and P@5."
    )
    measure = functools.partial(search, problem=problem, folds=folds, held=held)
    return Table(problem, problem, note, measure)


TABLES = [
    *(tuned(name, 5, 5) for name in ("sector", "rcv1sub1", "stackex_cs", "ng20", "bibtex")),
    tuned("delicious", folds=5, held=2),
]
