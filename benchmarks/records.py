"""Tagging of library records from raw text: a second stage and each of its parts, and rivals.

Every rival gets the same rows: tf-idf of the words, made off the clock; ours counts words within
its fit. Nobody is tuned: ours has its defaults, rivals theirs or what their documentation says.
Titles of subjects are given to all, but only ours reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.arrays import Arrays
from harness.bench import Bench
from harness.entrant import Entrant
from harness.judge import ranking_judge
from harness.raw_records import SETS, load_records
from harness.runner import Case, Outcome
from harness.table import Chart, Figures, Series, Table

from sublearn.metrics import f1_at_k, macro_f1_at_k, r_precision, recall_at_k

CUTS = (1, 3, 5, 10, 20)
ASKED = CUTS[-1]
OURS = "extreme/sublearn_reranker.py"


def ours(name: str, note: str, **settings: Any) -> Entrant:
    return Entrant(name, OURS, settings, note=note)


PLAIN = {"n_neighbors": 0, "titles": False}
ENTRANTS = [
    ours("sublearn", "TextTagger by words", is_single=True),
    ours("second-stage", "LabelReranker on its own scores, frequency and support", **PLAIN),
    ours("neighbours", "and the nearest training texts", titles=False),
    ours("titles", "and the titles, no neighbours", n_neighbors=0),
    ours("reranker", "titles and neighbours: its default"),
    ours("no-refit", "the first stage does not learn from held-out texts", refit=False),
    ours("two-taggers", "by words and by characters", characters=True),
    ours("sublearn-svd", "TextTagger with 200 dense numbers a text", is_single=True, svd=200),
    Entrant("omikuji", "extreme/omikuji_forest.py", note="Parabel", environment="omikuji"),
    Entrant(
        "omikuji-bonsai", "extreme/omikuji_forest.py",
        {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
        note="Bonsai as its documentation sets it", environment="omikuji",
    ),
    Entrant("pecos-tree", "extreme/pecos_xlinear.py", {"tree": True}, environment="pecos"),
    Entrant(
        "napkinxc-plt", "extreme/napkinxc_models.py", {"model": "PLT"}, environment="napkinxc"
    ),
    Entrant(
        "fasttext-hs", "extreme/fasttext_supervised.py",
        {"lr": 0.5, "epoch": 25, "minCount": 1, "loss": "hs"}, environment="fasttext",
    ),
]  # fmt: skip
PARTS = (
    "sublearn", "second-stage", "neighbours", "titles", "reranker", "no-refit",
)  # fmt: skip
RIVALS = ("omikuji", "omikuji-bonsai", "pecos-tree", "napkinxc-plt", "fasttext-hs")
DENSE = ("two-taggers", "sublearn-svd")
COLUMNS = {
    "fit CPU s": ".1f<", "fit wall s": ".1f<", "CPU ms/row": ".2f<", "P@1": ".4f>", "P@5": ".4f>",
    "R@5": ".4f>", "R@20": ".4f>", "F1@1": ".4f>", "F1@3": ".4f>", "F1@5": ".4f>",
    "F1@10": ".4f>", "F1@20": ".4f>", "nDCG@20": ".4f>", "R-precision": ".4f>", "PSP@5": ".4f>",
    "macro F1@5": ".4f>", "model MB": ".1f<", "peak MB": ".0f<",
}  # fmt: skip


def judge(truth: Arrays, answer: Arrays) -> dict[str, float]:
    """The usual figures of ranked labels, and those that libraries look at."""
    figures = ranking_judge(CUTS)(truth, answer)
    Y = sp.csr_matrix(truth["Y"])
    labels = np.asarray(answer["labels"], dtype=np.int64)
    for name, metric in (("R", recall_at_k), ("F1", f1_at_k)):
        values = metric(Y, labels, list(CUTS))
        figures |= {f"{name}@{k}": float(v) for k, v in zip(CUTS, values, strict=True)}
    figures["R-precision"] = float(r_precision(Y, labels))
    figures["macro F1@5"] = float(macro_f1_at_k(Y, labels, 5))
    return figures


def measured(name: str, names: Sequence[str], n_train: int | None, n_test: int) -> Any:
    def measure(bench: Bench) -> Figures:
        sizes = bench.size(n_train, 300), bench.size(n_test, 100)
        case = Case(
            name,
            lambda: load_records(bench.data, SETS[name], *sizes, bench.seed),
            judge,
            {"k": ASKED},
        )
        limit = bench.limit(3600.0, 120.0)
        outcomes = bench.compete(case, bench.chosen(ENTRANTS, names), limit)
        split = case.split
        X, n_labels = split.train["X"], split.train["Y"].shape[1]
        unseen = split.truth["Y"].sum() and split.truth["Y"][:, n_labels:].nnz
        note = (
            f"{X.shape[0]:,} records to learn from, {n_labels:,} labels, {X.nnz / X.shape[0]:.0f} "
            f"words each; {split.test['X'].shape[0]:,} asked, {unseen:,} of "
            f"{split.truth['Y'].nnz:,} assignments to labels without a training record."
        )
        rows = [[o.name, *cells(o, split.test["X"].shape[0]).values()] for o in outcomes]
        return Figures({"entrant": "", **COLUMNS}, rows, note, charts(name, outcomes))

    return measure


def cells(outcome: Outcome, n_rows: int) -> dict[str, Any]:
    figure = outcome.figure
    asked, fit = figure("predict_cpu_seconds"), figure("fit_cpu_seconds")
    own = {
        "fit CPU s": outcome.error if fit is None else fit,
        "fit wall s": figure("fit_wall_seconds"),
        "CPU ms/row": asked and 1000 * asked / n_rows,
        "model MB": figure("model_mb"),
        "peak MB": figure("peak_mb"),
    }
    return {name: own[name] if name in own else figure(name) for name in COLUMNS}


def charts(name: str, outcomes: Sequence[Outcome]) -> list[Chart]:
    """What each part brings: two bars for each entrant."""
    done = [o for o in outcomes if o.figure("nDCG@20") is not None]
    names = [o.name for o in done]
    series = [Series(m, names, [o.figure(m) for o in done]) for m in ("nDCG@20", "F1@5")]
    title = f"{name}: what each part brings"
    return [Chart(name, title, "entrant", "more is better", series, "bars")]


def table(
    name: str, names: Sequence[str], n_train: int | None, n_test: int, title: str,
    page: str | None = None,
) -> Table:  # fmt: skip
    return Table(title, title, "", measured(name, names, n_train, n_test), page)


TABLES = [
    table("gnd", (*PARTS, *DENSE, *RIVALS), 10_000, 2_000, "gnd", page=""),
    table("yso_en", (*PARTS, *RIVALS), 10_000, 2_000, "yso_en", page=""),
    table("gnd-keywords", ("sublearn", "reranker", *RIVALS), 10_000, 2_000, "gnd-keywords"),
    table("yso_fi", (*PARTS, *RIVALS), 10_000, 2_000, "yso_fi"),
    table("gnd", ("sublearn", "reranker"), None, 20_000, "gnd-all"),
]
