"""Extreme classification: sublearn and its rivals on the same data, in one run.

Ratios are to the first entrant, within a round. Entrants rank labels for rows of which they have
not seen any; the judge counts. `--entrants` takes any of ENTRANTS, `--threads 1 2` shows speed-ups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.audit import LINEAR_AUDIT
from harness.bench import Bench
from harness.data import (
    mulan,
    svmlight_files,
    svmlight_random_half,
    tagged_texts,
    words_by_language,
    xmc,
)
from harness.entrant import Entrant
from harness.growth import exponent
from harness.judge import ranking_judge
from harness.paper_sets import PAPER_SETS, like, real
from harness.problem import Problem, Split
from harness.runner import Case, Outcome
from harness.synthetic import Documents, make_documents, thinned
from harness.table import Cell, Figures, Table

#: sublearn's defaults; on the small sets what tuning.py chooses by validation on the training rows.
#: `sublearn-default` below has the defaults everywhere.
SUBLEARN = {"C": 1.0, "l1": 0.1}
SUBLEARN_BY_PROBLEM: dict[str, dict[str, object]] = {
    "bibtex": {"l1": 1.0, "fit_intercept": "fixed"},
    "delicious": {"l1": 1.0},
    "sector": {"C": 3.0, "fit_intercept": "fixed"},
    "rcv1sub1": {"l1": 0.3, "tol": 0.01},
    "stackex_cs": {"C": 0.3, "l1": 0.3, "tol": 0.01},
    "ng20": {"C": 0.3, "l1": 0.03},
}

#: With 865 rows the passes of its tutorial are too few; these did best on the test rows.
FASTTEXT_BY_PROBLEM = {"sector": {"lr": 1.0, "epoch": 100}}


def ours(name: str, note: str, **settings: Any) -> Entrant:
    """PPDSparseClassifier with SUBLEARN and other settings."""
    own = {**SUBLEARN, **settings}
    return Entrant(name, "extreme/sublearn_ppd.py", own, SUBLEARN_BY_PROBLEM, note)


def rival(name: str, script: str, environment: str, note: str, **settings: Any) -> Entrant:
    by_problem = FASTTEXT_BY_PROBLEM if environment == "fasttext" else {}
    return Entrant(name, f"extreme/{script}.py", settings, by_problem, note, environment)


TUTORIAL = {"lr": 0.5, "epoch": 25, "minCount": 1}
UNWEIGHTED = "settings of its tutorial; sees features without weights"
TUNED = {**SUBLEARN_BY_PROBLEM, "yso_en": {"C": 0.3, "l1": 0.03}}
PD = {"C": 1.0, "l1": 0.01, "early_stopping": True}
PD_BY_PROBLEM = {"bibtex-raw": {"l1": 1.0, "early_stopping": 10}}

ENTRANTS = [
    ours("sublearn", "PPDSparseClassifier"),
    ours("sublearn-8bit", "its model compressed to 8 bits a weight", bits=8),
    Entrant("sublearn-default", "extreme/sublearn_ppd.py", note="defaults on every problem"),
    replace(
        ours("sublearn-tuned", "on yso_en the best P@1 of twelve settings on 10,000 held-out rows"),
        by_problem=TUNED,
    ),
    ours("sublearn-fixed", "PPDSparseClassifier, intercepts fixed at -1", fit_intercept="fixed"),
    ours("sublearn-sparsified", "PPDSparseClassifier, sparsified searches", search="sparsified"),
    Entrant(
        "sublearn-pd", "extreme/sublearn_pd.py", PD, PD_BY_PROBLEM,
        "PDSparseClassifier, l1 of the authors' examples, early stopping",
    ),
    rival("linearsvc", "linearsvc", "main", "one-vs-rest, defaults"),
    rival("linearsvc-fast", "linearsvc", "main", "one-vs-rest, dual", dual=True, tol=0.1),
    rival(
        "liblinear-ovr", "liblinear_ovr", "liblinear", "one-vs-rest, weights above 0.01",
        solver=1, C=1, smallest=0.01,
    ),
    rival("pecos-tree", "pecos_xlinear", "pecos", "XR-Linear, PIFA", tree=True),
    rival("pecos-ovr", "pecos_xlinear", "pecos", "one-vs-rest", tree=False),
    rival("napkinxc-plt", "napkinxc_models", "napkinxc", "label tree, logistic", model="PLT"),
    rival(
        "napkinxc-plt-svm", "napkinxc_models", "napkinxc", "label tree, squared hinge, C 1",
        model="PLT", loss="l2", liblinear_c=1,
    ),
    rival("napkinxc-br", "napkinxc_models", "napkinxc", "one-vs-rest, logistic", model="BR"),
    rival(
        "napkinxc-br-svm", "napkinxc_models", "napkinxc", "one-vs-rest, squared hinge, C 1",
        model="BR", loss="l2", liblinear_c=1,
    ),
    rival("omikuji", "omikuji_forest", "omikuji", "Parabel, 3 trees"),
    rival(
        "omikuji-bonsai", "omikuji_forest", "omikuji", "Bonsai as its documentation sets it",
        cluster_balanced=False, cluster_k=100, max_depth=3,
    ),
    rival("libmultilabel-ovr", "libmultilabel_linear", "libmultilabel", "1-vs-rest", tree=False),
    rival("libmultilabel-tree", "libmultilabel_linear", "libmultilabel", "label tree", tree=True),
    rival(
        "vw-plt", "vowpal", "vowpalwabbit", "--plt as in its own demonstration",
        tree=True, arity=16, rate=0.5, passes=5,
    ),
    rival(
        "vw-oaa", "vowpal", "vowpalwabbit", "--oaa, --multilabel_oaa for rows with several labels",
        tree=False, rate=0.5, passes=5,
    ),
    rival("fasttext-hs", "fasttext_supervised", "fasttext", UNWEIGHTED, loss="hs", **TUTORIAL),
    rival("fasttext-ova", "fasttext_supervised", "fasttext", UNWEIGHTED, loss="ova", **TUTORIAL),
]  # fmt: skip

SMALL = Documents(
    n_train=2_000, n_test=500, n_features=5_000, n_labels=300, n_groups=12, words_per_document=60
)


def synthetic(name: str, size: Documents) -> Problem:
    """A generated problem; the command line's seed draws it."""
    note = f"generated, {size.n_train} rows, {size.n_features} features, {size.n_labels} labels"
    return Problem(name, lambda directory, seed: make_documents(size, seed), note)


#: Many labels for the number of rows, yet every label has a row.
WIDE = Documents(labels_per_document=4.0, words_per_document=60.0, every_label=True)


def wide(n_labels: int, n_train: int, n_features: int) -> Documents:
    """Very many labels in groups of 25."""
    return replace(
        WIDE,
        n_labels=n_labels,
        n_train=n_train,
        n_test=2_000,
        n_features=n_features,
        n_groups=max(1, n_labels // 25),
    )


PROBLEMS = [
    mulan("bibtex"),
    mulan("bibtex", title="bibtex-raw", is_raw=True),
    mulan("delicious"),
    mulan("corel5k", suffix="-sparse"),
    xmc("yso_en"),
    words_by_language("panlex_swadesh110"),
    svmlight_files("sector", train="sector.heldout.svm.xz", test="sector.test.svm.xz"),
    svmlight_random_half("rcv1sub1"),
    svmlight_random_half("stackex_cs"),
    svmlight_random_half("ng20"),
    synthetic("synthetic", Documents()),
    synthetic("synthetic-small", SMALL),
    synthetic("synthetic-32k", wide(32_000, 50_000, 50_000)),
    synthetic("synthetic-128k", wide(128_000, 100_000, 100_000)),
    synthetic("synthetic-1m", wide(1_000_000, 300_000, 200_000)),
    *(make(one) for one in PAPER_SETS.values() for make in (real, like)),
]


def grown(axis: str, size: int, seed: int, n: int = 50_000) -> Split:
    """One size of the wide problem of `n` rows and features replaced.

    With 50,000 rows there is a row for 128,000 labels. `nnz` is steered by the number of words in
    a document.
    """
    documents = wide(size if axis == "K" else 2 * n // 25, n_train=n, n_features=n)
    names = {"N": "n_train", "D": "n_features", "nnz": "words_per_document"}
    if axis in names:
        documents = replace(documents, **{names[axis]: size})
    return make_documents(documents, seed)


#: Records of a national library in German and English with their subjects.
GND = tagged_texts("gnd", 1)


# --- one problem ---------------------------------------------------------------------------------

FIT, WALL, ASK = "fit_cpu_seconds", "fit_wall_seconds", "predict_cpu_seconds"
#: Headings, and what stands below them; those of the judge come in between.
BEFORE = {
    "fit CPU s": ".2f<", "ratio": ".2f", "fit wall s": ".2f<", "ratio ": ".2f",
    "fit speed-up": ".2f>", "CPU ms/row": ".3f<", "predict speed-up": ".2f>", "1 row ms": ".3f<",
}  # fmt: skip
AFTER = {
    "model MB": ".1f<", "peak MB": ".1f", "MB above data": ".1f<", "certificate": ".4f",
    "objective off by": ".1e",
}  # fmt: skip
#: Left out where no entrant has the figure.
OPTIONAL = {"fit speed-up", "predict speed-up", "MB above data", "certificate", "objective off by"}
CUTS = (1, 3, 5)


def case_of(name: str, load: Any, is_thorough: bool = True) -> Case:
    judge, asked = ranking_judge(CUTS), {"k": CUTS[-1]}
    return Case(name, load, judge, asked, audit=LINEAR_AUDIT, is_thorough=is_thorough)


def compared(problem: Problem, names: Sequence[str], limit: float, threads: Sequence[int]) -> Any:
    """The table of one problem."""

    def measure(bench: Bench) -> Figures:
        load = bench.size(problem, synthetic("small", SMALL)).load
        case = case_of(problem.name, lambda: load(bench.data, bench.seed), not bench.is_quick)
        entrants = bench.chosen(ENTRANTS, names, n=1)
        chosen = bench.limit(limit, 20.0)
        outcomes = bench.compete(case, entrants, chosen, threads=bench.some(threads, 1))
        note = f"{in_words(case.split)}; median of {bench.rounds}."
        return shown([(o, cells(o, outcomes, case.split)) for o in outcomes], note)

    return measure


def cells(outcome: Outcome, outcomes: Sequence[Outcome], split: Split) -> dict[str, Cell]:
    """Ratios are to the first entrant under the same limit of threads, speed-ups to the same
    entrant under the first limit."""
    first = next(o for o in outcomes if o.threads == outcome.threads)
    slow = next(o for o in outcomes if o.name == outcome.name)
    is_slow = slow is outcome
    figure = outcome.figure
    asked, own, audited = figure(ASK), figure("objective"), figure("objective_audited")
    n_rows = split.test["X"].shape[0]
    judged = {f"{name}@{k}": figure(f"{name}@{k}") for name in ("P", "PSP") for k in CUTS}
    return {
        "fit CPU s": outcome.error if outcome.figure(FIT) is None else figure(FIT),
        "ratio": outcome.ratio(FIT, first), "fit wall s": figure(WALL),
        "ratio ": outcome.ratio(WALL, first),
        "fit speed-up": None if is_slow else slow.ratio(WALL, outcome),
        "CPU ms/row": asked and 1000 * asked / n_rows,
        "predict speed-up": None if is_slow else slow.ratio("predict_wall_seconds", outcome),
        "1 row ms": figure("single_row_ms"), **judged, "nDCG@5": figure("nDCG@5"),
        "model MB": figure("model_mb"), "peak MB": figure("peak_mb"),
        "MB above data": figure("above_data_mb"), "certificate": figure("certificate"),
        "objective off by": abs(own - audited) / audited if own and audited else None,
    }  # fmt: skip


def shown(found: Sequence[tuple[Outcome, Mapping[str, Cell]]], note: str) -> Figures:
    """Threads are shown if there are several limits."""
    judged = {name: ".4f>" for name in found[0][1] if "@" in name}
    known = {name for _, row in found for name, cell in row.items() if cell is not None}
    forms = {**BEFORE, **judged, **AFTER}
    columns = {name: forms[name] for name in forms if name in known or name not in OPTIONAL}
    is_many = len({outcome.threads for outcome, _ in found}) > 1
    limits = {"threads": "d"} if is_many else {}
    rows = [
        [outcome.name, *([outcome.threads] if is_many else []), *(row[n] for n in columns)]
        for outcome, row in found
    ]
    return Figures({"entrant": "", **limits, **columns}, rows, note)


def in_words(split: Split) -> str:
    """Sizes of what entrants get, and what sizes alone do not tell."""
    words = {
        "nnz": "non-zero features",
        "labels_used": "labels with a training row",
        "positives": "labels given to rows",
    }
    sizes = [
        f"{part} {name} {'x'.join(map(str, value.shape))}"
        for part, arrays in (("train", split.train), ("test", split.test))
        for name, value in arrays.items()
    ]
    facts = [f"{split.facts()[name]:,} {text}" for name, text in words.items()]
    return f"{', '.join(sizes)}; {', '.join(facts)}"


# --- growth --------------------------------------------------------------------------------------

COSTS = {FIT: "fit CPU s", "work": "operations", ASK: "predict CPU ms/row",
         "single_row_ms": "1 row ms"}  # fmt: skip


def growth(
    axis: str,
    sizes: Sequence[int],
    quick_sizes: Sequence[int],
    limit: float,
    real: Problem | None = None,
) -> Any:
    """One size doubled: cost = a * size^b for each cost; P@1 shows that it stays one problem.

    `real` data are thinned at random to each size; else documents are generated. An entrant whose
    time was up is not run at the sizes that follow.
    """

    def measure(bench: Bench) -> Figures:
        whole = real and real.load(bench.data, bench.seed)

        def of_size(n: int) -> Split:
            if whole:
                return thinned(whole, axis, n, bench.seed)
            return grown(axis, n, bench.seed, bench.size(50_000, 2_000))

        entrants = bench.chosen(ENTRANTS, ("sublearn",))
        series: dict[str, list[Outcome | None]] = {entrant.name: [] for entrant in entrants}
        splits = []
        for size in bench.size(sizes, quick_sizes):
            case = case_of(f"{axis}={size}", lambda n=size: of_size(n), not bench.is_quick)
            splits.append(case.split)
            running = [e for e in entrants if all(o and o.figure(FIT) for o in series[e.name])]
            found = {o.name: o for o in bench.compete(case, running, bench.limit(limit, 30.0))}
            for name, outcomes in series.items():
                outcomes.append(found.get(name))
        return growth_table(axis, bench.size(sizes, quick_sizes), splits, series)

    return measure


def growth_table(
    axis: str,
    sizes: Sequence[int],
    splits: Sequence[Split],
    series: Mapping[str, Sequence[Outcome | None]],
) -> Figures:
    facts = [split.facts() for split in splits]
    rows: list[list[Cell]] = [
        ["data", heading, *(str(fact[name]) for fact in facts), ""]
        for name, heading in (("nnz", "non-zero features"), ("labels_used", "labels with a row"))
    ]
    scale = [fact["nnz"] for fact in facts] if axis == "nnz" else sizes
    for name, outcomes in series.items():
        for cost, heading in COSTS.items():
            values = [outcome and outcome.figure(cost) for outcome in outcomes]
            if cost == ASK:
                rows_asked = [split.test["X"].shape[0] for split in splits]
                pairs = zip(values, rows_asked, strict=True)
                values = [value and 1000 * value / n for value, n in pairs]
            if any(value is not None for value in values):
                rows.append([name, heading, *values, exponent(scale, values)])
        right = [outcome and outcome.figure("P@1") for outcome in outcomes]
        rows.append([name, "P@1", *("-" if p is None else f"{p:.4f}" for p in right), ""])
    columns = {"entrant": "", "cost": "", **{str(size): ".4g<" for size in sizes}, "b": ".2f"}
    return Figures(columns, rows)


OURS = ("sublearn", "sublearn-default", "sublearn-8bit")
SVMS = ("linearsvc", "linearsvc-fast", "liblinear-ovr")
TREES = ("pecos-tree", "pecos-ovr", "napkinxc-plt", "napkinxc-br-svm", "omikuji", "omikuji-bonsai")
ONLINE = ("vw-plt", "vw-oaa", "fasttext-hs", "fasttext-ova")
EVERYBODY = (*OURS, "sublearn-pd", *SVMS, *TREES, *ONLINE)
#: Problem, entrants, CPU seconds of each, and limits of threads.
CONTESTS: Mapping[str, tuple[Sequence[str], float, Sequence[int]]] = {
    "synthetic": (
        ("sublearn", "sublearn-8bit", "sublearn-pd", "pecos-tree", "pecos-ovr", "omikuji"),
        250.0, (1, 2),
    ),
    "yso_en": (
        ("sublearn", "sublearn-8bit", "sublearn-tuned", "pecos-tree", "omikuji", "omikuji-bonsai",
         "napkinxc-plt"), 600.0, (1, 2),
    ),
    "synthetic-1m": (("sublearn",), 18_000.0, (2,)),
    "bibtex": (EVERYBODY, 120.0, (1,)),
    "bibtex-raw": (
        ("sublearn-pd", "sublearn-default", "linearsvc-fast", "pecos-ovr"), 120.0, (1,)
    ),
    "delicious": (
        (*OURS, "linearsvc-fast", "liblinear-ovr", "pecos-tree", "pecos-ovr", "napkinxc-plt",
         "napkinxc-br-svm", "omikuji-bonsai", "vw-plt", "fasttext-hs"), 240.0, (1,),
    ),
    **dict.fromkeys(("rcv1sub1", "stackex_cs", "sector", "ng20"), (EVERYBODY, 120.0, (1,))),
    "panlex_swadesh110": (("sublearn", "sublearn-pd", "pecos-tree", "omikuji"), 120.0, (1,)),
}  # fmt: skip
#: The data sets of the papers, and problems of their sizes.
OTHERS = (("sublearn", "pecos-tree"), 3600.0, (1,))
GROWTH = "Cost = a * size^b: b is fitted by least squares on logarithms."
TABLES = [
    Table(
        problem.name,
        problem.name,
        f"{problem.note};",
        compared(problem, *CONTESTS.get(problem.name, OTHERS)),
        page="" if problem.name in CONTESTS else None,
    )
    for problem in sorted(PROBLEMS, key=lambda p: [*CONTESTS, p.name].index(p.name))
]
TABLES += [
    Table("growth-K", "Growth in K", GROWTH,
          growth("K", (2_000, 4_000, 8_000, 16_000, 32_000), (1_000, 2_000), 300.0)),
    Table("growth-nnz", "Growth in nnz", GROWTH,
          growth("nnz", (30, 60, 120, 240), (15, 30), 100.0)),
    *(
        Table(f"growth-{axis}", f"Growth in {axis}", GROWTH,
              growth(axis, (12_500, 25_000, 50_000, 100_000), (2_000, 4_000), 300.0), page=None)
        for axis in ("N", "D")
    ),
    *(
        Table(f"growth-gnd-{axis}", f"Growth in {axis} on library records",
              f"{GROWTH} The rest is left out at random.",
              growth(axis, sizes, sizes[:2], 600.0, GND), page=None)
        for axis, sizes in (("K", (4_000, 8_000, 16_000, 32_000)),
                            ("N", (11_000, 22_000, 45_000, 90_000)), ("nnz", (12, 25, 50, 99)))
    ),
]  # fmt: skip
