"""PD-Sparse and PPD-Sparse: Yen et al. 2016 (ICML), chapter 2 of Yen 2018, beside ours.

Line numbers are of the text of the papers: 002 is the ICML paper, 000 the thesis.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from extreme import wide
from harness.bench import Bench
from harness.data import mulan, svmlight_files, svmlight_random_half, unit_split
from harness.growth import fit_exponent
from harness.judge import precision_at
from harness.paper_sets import PAPER_SETS, PaperSet, like, real
from harness.problem import Problem, Split
from harness.synthetic import Documents, make_documents
from harness.table import Cell, Chart, Figures, Series, Table
from harness.timing import cpu_timed
from harness.verdicts import NOT_HERE, verdict

from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, RandomSparsification

__all__ = ["TABLES"]

SETS = PAPER_SETS | {
    one.name: one
    for one in (
        PaperSet("imgnet", "svm", 1_261_404, 0, 1_000, 1_000, 250, 1.0),
        PaperSet("lshtc-wiki", "xmc", 2_355_436, 0, 2_085_167, 320_338, 42, 3.26),
        PaperSet("mediamill", "xmc", 30_993, 12_914, 120, 101, 120, 4.38),
        PaperSet("rcv1-2k", "xmc", 623_847, 155_962, 47_236, 2_456, 73, 4.79),
    )
}
BIBTEX = mulan("bibtex")
BIBTEX_RAW = mulan("bibtex", title="bibtex-raw", is_raw=True)
SECTOR = svmlight_files("sector", train="sector.heldout.svm.xz", test="sector.test.svm.xz")
RCV1 = svmlight_random_half("rcv1sub1")
SMALL = Documents(n_train=300, n_test=100, n_features=400, n_labels=40, n_groups=4)
CUTS = (1, 3, 5)
#: "the papers' rule": l1 is the best of these on held-out rows, which end the fit (002:342).
PAPER_L1S = (0.01, 0.1, 1.0, 10.0)


class Printed(NamedTuple):
    """What a paper prints of one method on one set: seconds, megabytes, per cent right."""

    train: float | None
    model_mb: float | None
    right: float | None  # P@1, or accuracy


@dataclass(frozen=True)
class Entry:
    """A row of a table: the paper's set and figures, and what ours are measured on.

    Without a `problem` of ours it is the real set if its files are there, else a generated one of
    `share` of its size.
    """

    name: str
    printed: Mapping[str, Printed]
    share: float = 0.0
    problem: Problem | None = None
    note: str = ""
    is_same: bool = False

    def ours(self, bench: Bench) -> tuple[Problem, bool, str]:
        """What is measured, whether it is the paper's own data, and what it is in words."""
        if self.problem is not None:
            return self.problem, self.is_same, self.note
        one = SETS[self.name]
        if (bench.data / self.name).is_dir():
            return real(one), True, "the same data"
        return like(one, self.share), False, f"generated, {self.share:g} of its size"


# --- one fit -----------------------------------------------------------------------------------


def split_of(problem: Problem, bench: Bench) -> Split:
    if bench.is_quick:
        return make_documents(SMALL, bench.seed)
    return problem.load(bench.data, bench.seed)


def measured(model: Any, split: Split) -> dict[str, Any]:
    """Figures of a fit: seconds, precision, size of the file, what the trace counted."""
    _, fit = cpu_timed(lambda: model.fit(split.train["X"], split.train["Y"]))
    (labels, _), ask = cpu_timed(lambda: model.predict_top_k(split.test["X"], k=CUTS[-1]))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = (Path(folder) / "model").stat().st_size / 1e6
    last = {name: float(model.trace_[name][-1]) for name in model.trace_.columns}
    right = {f"P@{k}": 100 * float(precision_at(k, split.truth["Y"], labels)) for k in CUTS}
    shape = [*split.train["X"].shape, split.train["Y"].shape[1]]
    return {**last, **right, "fit": fit, "ask": 1000 * ask / split.test["X"].shape[0],
            "size": size, "shape": shape, "passes": int(model.n_iter_),
            "gap": float(model.certificate_)}  # fmt: skip


def pd_sparse(problem: Problem, bench: Bench) -> dict[str, Any]:
    """PD-Sparse by the papers' rule; the time is that of the fit whose l1 was chosen."""

    def make() -> dict[str, Any]:
        split = split_of(problem, bench)
        found = []
        for l1 in bench.some(PAPER_L1S):
            model = PDSparseClassifier(l1=l1, early_stopping=True, random_state=bench.seed)
            found.append((measured(model, split), model.held_out_precision_, l1, model.trace_))
        best = max(found, key=lambda one: one[1])
        at = int(np.argmax(best[3]["held_out"]))  # the pass that is returned
        ks = {name: float(best[3][name][at]) for name in ("k_A", "k_W")}
        return {**best[0], **ks, "l1": best[2]}

    return dict(bench.once({"pd": problem.name}, make))


def ppd_sparse(problem: Problem, bench: Bench, **settings: Any) -> dict[str, Any]:
    """PPD-Sparse with its defaults and other settings."""
    key = {"ppd": problem.name, **{name: str(value) for name, value in settings.items()}}
    model = PPDSparseClassifier(random_state=bench.seed, **settings)
    return dict(bench.once(key, lambda: measured(model, split_of(problem, bench))))


# --- tables of data sets -----------------------------------------------------------------------

COLUMNS = {
    "data": "", "method": "", "ours on": "", "N x D x K": "", "verdict": "", "paper %": ".2f",
    "ours %": ".2f>", "paper train s": ".1f", "ours CPU s": ".2f<", "paper model MB": ".3g",
    "ours MB": ".3g<",
}  # fmt: skip
METHODS = {"PD-Sparse": pd_sparse, "PPDSparse": ppd_sparse}


def compared(entries: Sequence[Entry]) -> Callable[[Bench], Figures]:
    """Each entry with each of our methods; a verdict on per cent right needs the same data."""

    def measure(bench: Bench) -> Figures:
        rows: list[list[Cell]] = []
        for entry in bench.cases(entries):
            problem, is_same, words = entry.ours(bench)
            for method, printed in entry.printed.items():
                bench.say(f"{entry.name}: {method}")
                found = METHODS[method](problem, bench)
                said = NOT_HERE + ": files absent"
                if is_same:
                    said = verdict(printed.right, found["P@1"], is_less_better=False)
                elif entry.problem is not None:
                    said = NOT_HERE + ": nearest data"
                shape = " x ".join(f"{n:,}" for n in found["shape"])
                rows.append(
                    [entry.name, method, words, shape, said, printed.right, found["P@1"],
                     printed.train, found["fit"], printed.model_mb,
                     found["size"]]
                )  # fmt: skip
        return Figures(COLUMNS, rows)

    return measure


def dense_rows(n_rows: int, n_features: int, n_labels: int, seed: int) -> Split:
    """Classes around random centres: every feature of a row is used, and W is dense."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_labels, n_features))
    y = rng.integers(n_labels, size=2 * n_rows)
    X = (centres[y] + 1.5 * rng.normal(size=(2 * n_rows, n_features))).astype(np.float32)
    Y = np.zeros((2 * n_rows, n_labels), dtype=np.float32)
    Y[np.arange(2 * n_rows), y] = 1
    return unit_split(X[:n_rows], Y[:n_rows], X[n_rows:], Y[n_rows:])


def pd(train: float | None, mb: float | None, right: float | None) -> dict[str, Printed]:
    return {"PD-Sparse": Printed(train, mb, right)}


def both(first: Printed, second: Printed) -> dict[str, Printed]:
    return {"PD-Sparse": first, "PPDSparse": second}


#: 002:270-290 (000: table 2.1).
TABLE_1 = [
    Entry("lshtc1", pd(952, 92, 22.66), 0.02),
    Entry("dmoz", pd(2068.14, 40, 39.58), 0.01),
    Entry("imgnet", pd(4958, 3.6, 12.7), note="generated, dense rows", problem=Problem(
        "imgnet-like", lambda d, seed: dense_rows(2_000, 200, 200, seed), "")),
    Entry("aloi", pd(773.8, 7.1, 96.33), 0.03),
    Entry("sector", pd(14.12, 1.6, 95.3), problem=SECTOR,
          note="the authors' held-out rows, a tenth of the training rows"),
]  # fmt: skip
#: 002:325-340 (000: table 2.2).
TABLE_2 = [
    Entry("lshtc-wiki", pd(124_867, 685, 89.3), 0.001),
    Entry("eurlex-4k", pd(434.9, 8.0, 76.3), 0.2),
    Entry("RCV1-regions", pd(8.82, 1.7, 96.54), problem=RCV1, note="RCV1, topics, 3,000 rows"),
    Entry("bibtex", pd(5.044, 0.068, 64.55), problem=BIBTEX_RAW, is_same=True,
          note="the same data; its split into 4,880 and 2,515 rows"),
]  # fmt: skip
#: 000:689-710.
TABLE_2_4 = [
    Entry("amazon-670k", {"PPDSparse": Printed(921.9, 5300, 43.04)}, 0.02),
    Entry("wikilshtc-325k", both(Printed(94_343, 547, 60.70), Printed(353, 4900, 64.13)), 0.002),
    Entry("delicious-200k", both(Printed(5137.4, 3.8, 37.69), Printed(2869, 9400, 45.05)), 0.003),
    Entry("amazoncat-13k", both(Printed(2789, 15, 87.43), Printed(122.8, 355, 92.72)), 0.005),
]
#: 000:714-739.
TABLE_2_5 = [
    Entry("mediamill", both(Printed(23.8, 0.02, 83.64), Printed(34.1, 0.412, 84.42)), 0.05),
    Entry("bibtex", both(Printed(7.71, 0.02, 62.36), Printed(0.232, 2.5, 63.69)), problem=BIBTEX,
          note="the same data, official split, unit rows", is_same=True),
    Entry("rcv1-2k", both(Printed(709.5, 1.6, 90.02), Printed(35.0, 23, 91.08)), problem=RCV1,
          note="RCV1, 101 topics, 3,000 rows"),
    Entry("eurlex-4k", both(Printed(773.2, 25, 75.90), Printed(9.95, 9.5, 74.61)), 0.2),
]  # fmt: skip
#: 000:758-771.
TABLE_2_6 = [
    Entry("aloi", both(Printed(139.8, 19, 96.2), Printed(7.05, 14, 96.38)), 0.03),
    Entry("lshtc1", both(Printed(196.6, 88, 22.46), Printed(45.8, 381, 22.70)), 0.02),
    Entry("dmoz", both(Printed(2518.9, 680, 39.91), Printed(170.6, 790, 39.32)), 0.01),
]

# --- k_A and k_W -------------------------------------------------------------------------------

#: 002:348-357 (000: table 2.3): k_A = nnz(A) / N, k_W = nnz(W) / D (002:217).
ACTIVE: Mapping[str, tuple[float, float]] = {
    "eurlex-4k": (20.73, 45.24),
    "lshtc-wiki": (18.24, 20.95),
    "lshtc1": (7.15, 4.88),
    "aloi": (3.24, 0.31),
    "bibtex": (18.17, 1.94),
    "dmoz": (5.87, 0.116),
}


def active_variables(bench: Bench) -> Figures:
    entries = {entry.name: entry for entry in (*TABLE_1, *TABLE_2)}
    rows: list[list[Cell]] = []
    for name in bench.cases(list(ACTIVE)):
        problem, is_same, words = entries[name].ours(bench)
        found = pd_sparse(problem, bench)
        k_A, k_W = ACTIVE[name]
        said = NOT_HERE + ": files absent"
        if is_same:
            said = (
                f"k_A {verdict(k_A, found['k_A'], is_less_better=True, within=0.2)}, "
                f"k_W {verdict(k_W, found['k_W'], is_less_better=True, within=0.2)}"
            )
        rows.append(
            [
                name,
                words,
                said,
                found["shape"][2],
                found["l1"],
                k_A,
                found["k_A"],
                k_W,
                found["k_W"],
            ]
        )
    columns = {
        "data": "", "ours on": "", "verdict": "", "K": ",d", "l1": "g", "paper k_A": ".2f",
        "ours k_A": ".2f<",        "paper k_W": ".3g", "ours k_W": ".3g<",
    }  # fmt: skip
    return Figures(columns, rows)


# --- searches of PD-Sparse ---------------------------------------------------------------------


def generated(name: str, size: Documents) -> Problem:
    return Problem(name, lambda directory, seed: make_documents(size, seed), name)


SEARCHED = [
    SECTOR, BIBTEX, RCV1,
    generated("documents, K 500", replace(wide(500, 1_000, 5_000), words_per_document=60)),
    Problem("dense, D 50, K 1,000", lambda d, seed: dense_rows(1_000, 50, 1_000, seed), ""),
]  # fmt: skip


def searches(bench: Bench) -> Figures:
    """Entries that a fit visits until its certificate, and CPU seconds."""
    rows: list[list[Cell]] = []
    for problem in bench.some(SEARCHED):
        split = split_of(problem, bench)
        for search in ("exact", "partition", "sampled", "auto"):
            model = PDSparseClassifier(
                l1=0.01, search=search, early_stopping=False, tol=0.05, max_iter=30,
                random_state=bench.seed,
            )  # fmt: skip
            found = dict(
                bench.once(
                    {"search": search, "problem": problem.name},
                    functools.partial(measured, model, split),
                )
            )
            rows.append([problem.name, search, found["passes"], found["gap"], found["work"],
                         found["fit"], found["P@1"]])  # fmt: skip
    columns = {"data": "", "search": "", "passes": "d", "certificate": ".3f", "entries": ".2e<",
               "CPU s": ".2f<", "P@1 %": ".2f>"}  # fmt: skip
    return Figures(columns, rows)


# --- ends of PD-Sparse -------------------------------------------------------------------------

TUNED = [mulan("delicious"), SECTOR, svmlight_random_half("stackex_cs")]
JUDGED = [BIBTEX, RCV1, svmlight_random_half("ng20")]
ENDS: Mapping[str, Mapping[str, Any]] = {
    "certificate": {"early_stopping": False},
    "held-out rows": {"early_stopping": True},
    "held-out rows, refit": {"early_stopping": True, "refit": True},
    "held-out rows, closed refit (4.3)": {"early_stopping": True, "refit": "closed"},
}


def ends(bench: Bench) -> Figures:
    """What ends a fit, and what it is worth; the objective as a share of that of W = 0."""
    rows: list[list[Cell]] = []
    for problem in bench.some([*TUNED, *JUDGED]):
        split = split_of(problem, bench)
        n_lossy = int((split.train["Y"].getnnz(axis=1) > 0).sum())
        for name, settings in ENDS.items():
            model = PDSparseClassifier(random_state=bench.seed, **settings)
            found = dict(
                bench.once(
                    {"end": name, "problem": problem.name},
                    functools.partial(_with_objective, model, split),
                )
            )
            kept = 1.0 if name == "certificate" else 0.9
            rows.append(
                [problem.name, "tuned on" if problem in TUNED else "judged on", name,
                 found["passes"], found["value"] / (kept * n_lossy), found["gap"], found["P@1"],
                 found["P@5"], found["fit"]]
            )  # fmt: skip
    columns = {"data": "", "half": "", "ended by": "", "passes": "d", "P(W) / P(0)": ".3f",
               "certificate": ".4f", "P@1 %": ".2f>", "P@5 %": ".2f>", "CPU s": ".2f<"}  # fmt: skip
    return Figures(columns, rows)


def _with_objective(model: Any, split: Split) -> dict[str, Any]:
    return measured(model, split) | {"value": float(model.objective_)}


# --- random sparsification ---------------------------------------------------------------------

SPARSIFIED: Mapping[str, Any] = {
    "exact": "exact",
    "algorithm 4, delta 0.5": RandomSparsification(0.5),
    "algorithm 4, delta 2": RandomSparsification(2.0),
    "rounding, delta 2": RandomSparsification(2.0, scheme="rounding"),
    "an eighth (sparsified)": "sparsified",
}


def sparsification(bench: Bench) -> Figures:
    """Entries visited by a fit over K and over the words of a row, as a share of exact searches."""
    grid = [("K", n, 40.0) for n in bench.size((1_000, 4_000), (60,))]
    grid += [("words", 1_000, float(w)) for w in bench.size((20, 80, 240), ())]
    if not bench.is_quick and bench.limit(0.0) >= _LONG:
        grid += [("K", n, 40.0) for n in (16_000, 64_000, 200_000)]
    rows: list[list[Cell]] = []
    shares: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for axis, n_labels, words in grid:
        n_rows = max(100, n_labels)
        size = replace(wide(n_labels, n_rows, n_rows), words_per_document=words)
        problem = generated(f"K {n_labels:,}, {words:g} words", size)
        first: float | None = None
        for name, search in SPARSIFIED.items():
            bench.say(f"{problem.name}: {name}")
            found = dict(
                bench.once(
                    {"sparsification": name, "problem": problem.name},
                    functools.partial(_searched, search, size, bench.seed),
                )
            )
            first = first or found["work"]
            share = found["work"] / first
            x = n_labels if axis == "K" else words
            shares.setdefault((axis, name), []).append((float(x), share))
            rows.append([problem.name, name, found["work"], share, found["fit"], found["passes"],
                         found["draws"], found["P@1"]])  # fmt: skip
    columns = {"data": "", "search": "", "entries": ".2e<", "share of exact": ".2f<",
               "CPU s": ".2f<", "searches": "d", "R / nnz(w)": ".1f", "P@1 %": ".2f>"}  # fmt: skip
    return Figures(columns, rows, charts=_charts(shares))


_LONG = 3_000.0  # CPU seconds: `--limit 3000` adds the sizes up to K = 200,000


def _searched(search: Any, size: Documents, seed: int) -> dict[str, Any]:
    split = make_documents(size, seed)
    model = PPDSparseClassifier(random_state=seed, search=search)
    found = measured(model, split)
    weights = model.coef_.tocsr()
    counts = np.diff(weights.indptr)
    norms = np.asarray(abs(weights).sum(axis=1)).ravel()
    delta = search.delta if isinstance(search, RandomSparsification) else 0.5
    used = counts > 0
    draws = np.median(2 * norms[used] ** 2 / delta**2 / counts[used])
    return found | {"draws": float(draws)}


def _charts(shares: Mapping[tuple[str, str], Sequence[tuple[float, float]]]) -> list[Chart]:
    charts = []
    for axis, words in (("K", "labels K"), ("words", "words in a document")):
        series = [
            Series(name, [x for x, _ in points], [y for _, y in points])
            for (kind, name), points in shares.items()
            if kind == axis and name != "exact"
        ]
        if series:
            charts.append(
                Chart(
                    f"sparsification_{axis}", f"Work of sparsified searches over {words}", words,
                    "entries visited, share of exact", series, log_x=True,
                    caption="Below one the random search pays.",
                )
            )  # fmt: skip
    return charts


# --- growth to the size of Amazon-670K ---------------------------------------------------------

AMAZON = PAPER_SETS["amazon-670k"]


def amazon(bench: Bench) -> Figures:
    """PPD-Sparse on shares of Amazon-670K's rows, features and labels, and the growth."""
    shares = bench.size((0.01, 0.02, 0.03), (0.001, 0.002))
    if bench.limit(0.0) >= _LONG:
        shares = (*shares, 0.1, 1.0)
    costs = []
    rows: list[list[Cell]] = []
    for share in shares:
        bench.say(f"share {share:g}")
        found = dict(
            bench.once(
                {"amazon": share},
                lambda s=share: measured(
                    PPDSparseClassifier(random_state=bench.seed),
                    like(AMAZON, s).load(bench.data, bench.seed),
                ),
            )
        )
        costs.append({name: found[name] for name in ("fit", "work", "size", "ask")})
        shape = " x ".join(f"{n:,}" for n in found["shape"])
        rows.append([f"generated, share {share:g}", shape, found["fit"], found["work"],
                     found["size"], found["ask"], found["P@1"], found["gap"]])  # fmt: skip
    grown = {name: [cost[name] for cost in costs] for name in costs[0]}
    b = {name: fit_exponent(shares, values) for name, values in grown.items()}
    at_one = [grown[name][-1] * (1 / shares[-1]) ** b[name] for name in b]
    rows.append(["exponent of the share", "", *b.values(), None, None])
    if shares[-1] < 1:
        shape = f"{AMAZON.n_train:,} x {AMAZON.n_features:,} x {AMAZON.n_labels:,}"
        rows.append(["extrapolated to share 1", shape, *at_one, None, None])
    # 000:689-694: 921.9 s on 100 cores, a model of 5.3 GB, 20 ms a row, P@1 43.04
    rows.append(["paper, 100 cores, real data", "", 921.9, None, 5300.0, 20.0, 43.04, None])
    columns = {"data": "", "N x D x K": "", "train s (ours: CPU)": ".2f<", "entries": ".2e<",
               "model MB": ".1f<", "ms/row": ".3f<", "P@1 %": ".2f>",
               "certificate": ".4f"}  # fmt: skip
    return Figures(columns, rows)


_OF_SETS = (
    "Ours are CPU seconds of one thread on this machine, the paper's are of its own. Where the "
    "files of a set are absent, a generated problem of a share of its rows, features and labels "
    "stands in: its precision says nothing of the real one, and there is no verdict."
)
_RULE = " l1 is the best of 0.01, 0.1, 1 and 10 on held-out rows, which end the fit."
ICML, THESIS = "yen2016_pd_sparse", "yen2018"
TABLES = [
    Table("table_1", "Table 1: multiclass data sets", _OF_SETS + _RULE, compared(TABLE_1), ICML),
    Table("table_2", "Table 2: multilabel data sets", _OF_SETS + _RULE, compared(TABLE_2), ICML),
    Table("table_3", "Table 3: active variables", "k_A = nnz(A) / N, k_W = nnz(W) / D of the pass "
          "that is returned." + _RULE, active_variables, ICML),
    Table("searches", "Section 3.2: four searches", "l1 0.01, to a certificate of 0.05. Fewer "
          "entries do not make (25) faster: looking up an active label costs three times what "
          "reading the next weight does.", searches, ICML),
    Table("ends", "Sections 4.3 and 5: what ends a fit", "Defaults but for what the row says. "
          "Half of the sets decided the default, half judge it.", ends, ICML),
    Table("table_2_4", "Table 2.4: large multilabel data sets", _OF_SETS, compared(TABLE_2_4),
          THESIS),
    Table("table_2_5", "Table 2.5: small multilabel data sets", _OF_SETS, compared(TABLE_2_5),
          THESIS),
    Table("table_2_6", "Table 2.6: multiclass data sets", _OF_SETS, compared(TABLE_2_6), THESIS),
    Table("sparsification", "Algorithm 4: random sparsification", "PPD-Sparse, default settings, "
          "one row a label; R is that of theorem 5, the median over the labels, as a share of "
          "their weights. `--limit 3000` adds K = 16,000, 64,000 and 200,000.", sparsification,
          THESIS),
    Table("amazon_670k", "Growth to the size of Amazon-670K", "PPD-Sparse, defaults, one thread. "
          "`--limit 3000` adds the full size.", amazon, THESIS),
]  # fmt: skip
