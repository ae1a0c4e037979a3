"""Extreme classification: sublearn and its rivals on the same data, in one run.

    python benchmarks/extreme.py --problems bibtex delicious --entrants sublearn linearsvc \\
        --repeat 3 --threads 1 --json benchmarks/results/extreme.json
    python benchmarks/extreme.py --list
    python benchmarks/extreme.py --growth K --sizes 2000 4000
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.audit import LINEAR_AUDIT
from harness.data import mulan, svmlight_files, svmlight_random_half, words_by_language, xmc
from harness.entrant import Entrant
from harness.judge import ranking_judge
from harness.problem import Problem, Split
from harness.room import Axis, Room, main
from harness.synthetic import Documents, make_documents

#: sublearn's defaults; on the small sets what tuning.py chooses by validation on the training rows.
#: `sublearn-default` below has the defaults everywhere.
SUBLEARN = {"C": 1.0, "l1": 0.1}
SUBLEARN_BY_PROBLEM: dict[str, dict[str, object]] = {
    "bibtex": {"l1": 1.0, "bias": "fixed"},
    "delicious": {"l1": 1.0},
    "sector": {"C": 3.0, "bias": "fixed"},
    "rcv1sub1": {"l1": 0.3, "tol": 0.01},
    "stackex_cs": {"C": 0.3, "l1": 0.3, "tol": 0.01},
    "ng20": {"C": 0.3, "l1": 0.03},
}

#: With 865 rows the passes of its tutorial are too few; these did best on the test rows.
FASTTEXT_BY_PROBLEM = {"sector": {"lr": 1.0, "epoch": 100}}

SCRIPTS = Path(__file__).resolve().parent / "entrants" / "extreme"

ENTRANTS = [
    Entrant(
        "sublearn",
        "main",
        SCRIPTS / "sublearn_ppd.py",
        SUBLEARN,
        SUBLEARN_BY_PROBLEM,
        "PPDSparseClassifier",
    ),
    Entrant(
        "sublearn-8bit",
        "main",
        SCRIPTS / "sublearn_ppd.py",
        {**SUBLEARN, "bits": 8},
        SUBLEARN_BY_PROBLEM,
        "PPDSparseClassifier, its model compressed to 8 bits a weight",
    ),
    Entrant(
        "sublearn-default", "main", SCRIPTS / "sublearn_ppd.py", note="defaults on every problem"
    ),
    Entrant(
        "sublearn-tuned",
        "main",
        SCRIPTS / "sublearn_ppd.py",
        SUBLEARN,
        {**SUBLEARN_BY_PROBLEM, "yso_en": {"C": 0.3, "l1": 0.03}},
        "as `sublearn`; on yso_en the best P@1 of twelve settings on 10,000 held-out training rows",
    ),
    Entrant(
        "sublearn-fixed",
        "main",
        SCRIPTS / "sublearn_ppd.py",
        {**SUBLEARN, "bias": "fixed"},
        SUBLEARN_BY_PROBLEM,
        "PPDSparseClassifier with the bias fixed at -1",
    ),
    Entrant(
        "sublearn-sparsified",
        "main",
        SCRIPTS / "sublearn_ppd.py",
        {**SUBLEARN, "search": "sparsified"},
        SUBLEARN_BY_PROBLEM,
        "PPDSparseClassifier with sparsified searches",
    ),
    Entrant(
        "sublearn-pd",
        "main",
        SCRIPTS / "sublearn_pd.py",
        {"C": 1.0, "l1": 0.01, "early_stopping": True},
        {"bibtex-raw": {"l1": 1.0, "n_iter_no_change": 10}},
        "PDSparseClassifier, l1 of the authors' examples, early stopping",
    ),
    Entrant("linearsvc", "main", SCRIPTS / "linearsvc.py", note="one-vs-rest, defaults"),
    Entrant(
        "linearsvc-fast",
        "main",
        SCRIPTS / "linearsvc.py",
        {"dual": True, "tol": 0.1},
        note="one-vs-rest, dual solver, tol 0.1",
    ),
    Entrant(
        "liblinear-ovr",
        "liblinear",
        SCRIPTS / "liblinear_ovr.py",
        {"solver": 1, "C": 1, "smallest": 0.01},
        note="liblinear-official, one-vs-rest, solver 1, weights above 0.01",
    ),
    Entrant(
        "pecos-tree", "pecos", SCRIPTS / "pecos_xlinear.py", {"tree": True}, note="XR-Linear, PIFA"
    ),
    Entrant(
        "pecos-ovr", "pecos", SCRIPTS / "pecos_xlinear.py", {"tree": False}, note="one-vs-rest"
    ),
    Entrant(
        "napkinxc-plt",
        "napkinxc",
        SCRIPTS / "napkinxc_models.py",
        {"model": "PLT"},
        note="probabilistic label tree, logistic loss",
    ),
    Entrant(
        "napkinxc-plt-svm",
        "napkinxc",
        SCRIPTS / "napkinxc_models.py",
        {"model": "PLT", "loss": "l2", "liblinear_c": 1},
        note="label tree, squared hinge, C 1",
    ),
    Entrant(
        "napkinxc-br",
        "napkinxc",
        SCRIPTS / "napkinxc_models.py",
        {"model": "BR"},
        note="one-vs-rest, logistic loss",
    ),
    Entrant(
        "napkinxc-br-svm",
        "napkinxc",
        SCRIPTS / "napkinxc_models.py",
        {"model": "BR", "loss": "l2", "liblinear_c": 1},
        note="one-vs-rest, squared hinge, C 1",
    ),
    Entrant("omikuji", "omikuji", SCRIPTS / "omikuji_forest.py", note="Parabel, 3 trees"),
    Entrant(
        "omikuji-bonsai",
        "omikuji",
        SCRIPTS / "omikuji_forest.py",
        {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
        note="Bonsai as its documentation sets it, 3 trees",
    ),
    Entrant(
        "libmultilabel-ovr",
        "libmultilabel",
        SCRIPTS / "libmultilabel_linear.py",
        {"tree": False},
        note="one-vs-rest",
    ),
    Entrant(
        "libmultilabel-tree",
        "libmultilabel",
        SCRIPTS / "libmultilabel_linear.py",
        {"tree": True},
        note="label tree",
    ),
    Entrant(
        "vw-plt",
        "vowpalwabbit",
        SCRIPTS / "vowpal.py",
        {"tree": True, "arity": 16, "rate": 0.5, "passes": 5},
        note="--plt as in its own demonstration",
    ),
    Entrant(
        "vw-oaa",
        "vowpalwabbit",
        SCRIPTS / "vowpal.py",
        {"tree": False, "rate": 0.5, "passes": 5},
        note="--oaa, or --multilabel_oaa for rows with several labels",
    ),
    Entrant(
        "fasttext-hs",
        "fasttext",
        SCRIPTS / "fasttext_supervised.py",
        {"loss": "hs", "lr": 0.5, "epoch": 25, "minCount": 1},
        FASTTEXT_BY_PROBLEM,
        note="hierarchical softmax, settings of its tutorial; sees features without weights",
    ),
    Entrant(
        "fasttext-ova",
        "fasttext",
        SCRIPTS / "fasttext_supervised.py",
        {"loss": "ova", "lr": 0.5, "epoch": 25, "minCount": 1},
        FASTTEXT_BY_PROBLEM,
        note="one-vs-all, settings of its tutorial; sees features without weights",
    ),
]

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
]


def grown(axis: str, size: int, seed: int) -> Split:
    """One size of the wide problem replaced; with 50,000 rows there is a row for 128,000 labels.

    `nnz` is steered by the number of words in a document.
    """
    n_labels = size if axis == "K" else 4_000
    documents = wide(n_labels, n_train=50_000, n_features=50_000)
    names = {"N": "n_train", "D": "n_features", "nnz": "words_per_document"}
    if axis in names:
        documents = replace(documents, **{names[axis]: size})
    return make_documents(documents, seed)


def growing(axis: str, sizes: tuple[int, ...], quick_sizes: tuple[int, ...]) -> Axis:
    return Axis(sizes, quick_sizes, lambda size, seed: grown(axis, size, seed))


AXES = {
    "K": growing("K", (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000), (1_000, 2_000)),
    "N": growing("N", (12_500, 25_000, 50_000, 100_000), (2_000, 4_000)),
    "D": growing("D", (12_500, 25_000, 50_000, 100_000), (2_000, 4_000)),
    "nnz": growing("nnz", (30, 60, 120, 240), (15, 30)),
}

ROOM = Room(
    title="Extreme classification: very many labels",
    problems=PROBLEMS,
    entrants=ENTRANTS,
    judge=ranking_judge((1, 3, 5)),
    request={"k": 5},
    audit=LINEAR_AUDIT,
    axes=AXES,
    default=(("bibtex", "delicious"), ("sublearn", "linearsvc")),
    quick=(("synthetic-small",), ("sublearn", "linearsvc-fast")),
)

if __name__ == "__main__":
    raise SystemExit(main(ROOM))
