"""Choices within the two solvers: warm starts of PPD-Sparse, intercept and end of PD-Sparse."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from extreme import CUTS
from harness.bench import Bench
from harness.data import mulan, svmlight_random_half
from harness.judge import precision_at
from harness.problem import Split
from harness.table import Figures, Table
from harness.timing import cpu_timed

from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier

WARM_ROWS = 4_000


def warm(bench: Bench) -> Figures:
    """Work of a second fit to the same rows, as a share of the first."""
    splits = [mulan(name).load(bench.data, bench.seed) for name in ("bibtex", "delicious")]
    rows = []
    for loss, intercept in itertools.product(("squared_hinge", "hinge"), (True, "fixed")):
        n_rows = bench.size(WARM_ROWS, 500)
        options = {"loss": loss, "fit_intercept": intercept}
        shares = [second_share(s, n_rows, bench.seed, **options) for s in splits]
        rows.append([loss, str(intercept), *shares])
    return Figures({"loss": "", "fit_intercept": "", "bibtex": ".2f<", "delicious": ".2f<"}, rows)


def second_share(split: Split, n_rows: int, seed: int, **settings: Any) -> float:
    X, Y = split.train["X"][:n_rows], split.train["Y"][:n_rows]
    model = PPDSparseClassifier(warm_start=True, random_state=seed, **settings)
    first, second = (
        cpu_timed(functools.partial(model.fit, X, Y))[0].trace_["work"][-1] for _ in range(2)
    )
    return float(second / first)


def ranking(bench: Bench) -> Figures:
    """PD-Sparse with and without an intercept, ended by held-out rows or by its certificate."""
    problems = [mulan("bibtex"), mulan("delicious"), svmlight_random_half("ng20")]
    rows = []
    for problem in bench.some(problems):
        split = problem.load(bench.data, bench.seed)
        for intercept, early in itertools.product((False, True), (True, False)):
            model = PDSparseClassifier(
                l1=0.1,
                max_iter=30,
                random_state=bench.seed,
                fit_intercept=intercept,
                early_stopping=early,
            )
            fit = functools.partial(model.fit, split.train["X"], split.train["Y"])
            _, seconds = cpu_timed(fit)
            labels, _ = model.predict_top_k(split.test["X"], k=CUTS[-1])
            precisions = [precision_at(k, split.truth["Y"], labels) for k in CUTS]
            end = "held-out rows" if early else "certificate"
            passes, active = len(model.trace_["active"]), float(model.trace_["active"][-1])
            rows.append([problem.name, str(intercept), end, passes, active, *precisions, seconds])
    columns = {
        "data": "",
        "fit_intercept": "",
        "ended by": "",
        "passes": "d",
        "active labels": ".1f",
    }
    columns |= dict.fromkeys(("P@1", "P@3", "P@5"), ".4f>")
    return Figures({**columns, "fit CPU s": ".2f<"}, rows)


TABLES = [
    Table(
        "warm",
        "A second fit to the same rows",
        f"Matrix entries that it visits, as a share of the first fit's; the first {WARM_ROWS:,} "
        "training rows, other parameters at their defaults.",
        warm,
        page="warm_starts",
    ),
    Table(
        "ranking",
        "PD-Sparse: intercept and end of the fit",
        "`l1` 0.1, rows of length one, at most 30 passes; active labels: mean over the samples "
        "in the last pass.",
        ranking,
        page="pd_sparse",
    ),
]
