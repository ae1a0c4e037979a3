"""Choices within the two solvers: warm starts of PPD-Sparse, the bias and length of PD-Sparse fits.

    python benchmarks/solvers.py --json benchmarks/results/solvers.json
    python benchmarks/solvers.py --only warm --records benchmarks/results/solvers.json \\
        --markdown docs/measured/warm_starts.md
"""

from __future__ import annotations

import itertools
import time
import warnings
from pathlib import Path
from typing import Any

from harness.data import mulan, svmlight_random_half
from harness.figures import Figures, Measurement, main
from harness.judge import precision_at
from harness.problem import Split
from sklearn.exceptions import ConvergenceWarning

from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier

WARM_ROWS = 4_000
CUTS = (1, 3, 5)


def warm(directory: Path, seed: int) -> Figures:
    """Work of a second fit to the same rows, as a share of the first."""
    splits = [mulan(name).load(directory, seed) for name in ("bibtex", "delicious")]
    rows = []
    for loss, bias in itertools.product(("squared_hinge", "hinge"), ("learned", "fixed")):
        shares = [second_share(split, seed, loss=loss, bias=bias) for split in splits]
        rows.append([loss, bias, *shares])
    return Figures({"loss": "", "bias": "", "bibtex": ".2f", "delicious": ".2f"}, rows)


def second_share(split: Split, seed: int, **settings: Any) -> float:
    X, Y = split.train["X"][:WARM_ROWS], split.train["Y"][:WARM_ROWS]
    model = PPDSparseClassifier(warm_start=True, random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second = (model.fit(X, Y).trace_["work"][-1] for _ in range(2))
    return float(second / first)


def ranking(directory: Path, seed: int) -> Figures:
    """PD-Sparse with and without a bias, ended by held-out rows or by its certificate."""
    problems = [mulan("bibtex"), mulan("delicious"), svmlight_random_half("ng20")]
    rows = []
    for problem in problems:
        split = problem.load(directory, seed)
        for bias, early in itertools.product(("none", "learned"), (True, False)):
            model, seconds = ranked(split, seed, bias=bias, early_stopping=early)
            labels, _ = model.predict_top_k(split.test["X"], k=CUTS[-1])
            precisions = [precision_at(k, split.truth["Y"], labels) for k in CUTS]
            end = "held-out rows" if early else "certificate"
            passes, active = len(model.trace_["active"]), float(model.trace_["active"][-1])
            rows.append([problem.name, bias, end, passes, active, *precisions, seconds])
    columns = {"data": "", "bias": "", "ended by": "", "passes": "d", "active labels": ".1f"}
    columns |= dict.fromkeys(("P@1", "P@3", "P@5"), ".4f")
    return Figures({**columns, "fit CPU s": ".2f"}, rows)


def ranked(split: Split, seed: int, **settings: Any) -> tuple[PDSparseClassifier, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PDSparseClassifier(l1=0.1, max_iter=30, random_state=seed, **settings)
        model.fit(split.train["X"], split.train["Y"])
    return model, time.process_time() - start


MEASUREMENTS = [
    Measurement(
        "warm",
        "A second fit to the same rows",
        f"Matrix entries that it visits, as a share of the first fit's; the first {WARM_ROWS:,} "
        "training rows, other parameters at their defaults.",
        warm,
    ),
    Measurement(
        "ranking",
        "PD-Sparse: bias and end of the fit",
        "`l1` 0.1, rows of length one, at most 30 passes; active labels: mean over the samples "
        "in the last pass.",
        ranking,
    ),
]

if __name__ == "__main__":
    raise SystemExit(main("Solvers", MEASUREMENTS))
