"""Choices within the two solvers: warm starts of PPD-Sparse, intercept and end of PD-Sparse."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from extreme import CUTS
from harness.bench import Bench
from harness.contests import Task, label_rows
from harness.data import mulan, svmlight_random_half
from harness.judge import precision_at
from harness.problem import Split
from harness.table import Cell, Figures, Table
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


FEW = (50, 100, 200, 400)
DECIDED = ("yeast", "bibtex", "reutersk500", "emotions", "enron")
JUDGED = ("corel5k", "tmc2007_500")


def few_rows(bench: Bench) -> Figures:
    """P@1 of fits to few rows that their certificate ends, and that held-out rows end."""
    rows: list[list[Cell]] = []
    for name in bench.cases((*DECIDED, *JUDGED)):
        task = label_rows(name, bench)
        for n_rows in bench.size(FEW, FEW[:1]):
            if n_rows <= task.X.shape[0]:
                ends = np.mean([ended(task, n_rows, seed) for seed in range(bench.size(5, 1))], 0)
                use = "judged" if name in JUDGED else "decided"
                rows.append([name, use, n_rows, *map(float, ends)])
    columns = {"data": "", "the default was": "", "rows": "d", "certificate": ".3f>",
               "held-out rows": ".3f>", "most frequent label": ".3f"}  # fmt: skip
    return Figures(columns, rows)


def ended(task: Task, n_rows: int, seed: int) -> list[float]:
    """Precisions of the best label: two ends of the fit, and the most frequent label."""
    chosen = np.random.default_rng(seed).permutation(task.X.shape[0])[:n_rows]
    X, Y = task.X[chosen], sp.csc_matrix(task.y)[chosen]
    known = np.flatnonzero(np.diff(Y.indptr))
    Y, truth = Y[:, known], sp.csr_matrix(task.y_test)[:, known]
    found = []
    for early in (False, True):
        model = PDSparseClassifier(early_stopping=early, random_state=seed).fit(X, Y.tocsr())
        labels, _ = model.predict_top_k(task.X_test, k=1)
        found.append(precision_at(1, truth, labels))
    most = np.full((truth.shape[0], 1), np.diff(Y.indptr).argmax())
    return [*found, precision_at(1, truth, most)]


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
        "few_rows",
        "PD-Sparse on few rows: which end ranks better",
        "P@1 on the test rows, mean of 5 draws of the training rows; l1 0.1, no intercept.",
        few_rows,
        page="pd_sparse_few_rows",
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
