"""Extreme classification: sublearn and its rivals on the same data, in one run.

    python benchmarks/extreme.py --problems bibtex delicious --entrants sublearn linearsvc \\
        --repeat 3 --threads 1 --json benchmarks/results/extreme.json
    python benchmarks/extreme.py --list
    python benchmarks/extreme.py --growth K
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.data import mulan, svmlight_files, svmlight_random_half, xmc
from harness.entrant import Entrant
from harness.judge import precision_judge
from harness.problem import Problem, Split
from harness.room import Axis, Room, main
from harness.synthetic import Documents, make_documents

#: sublearn's defaults; on bibtex and delicious the C and l1 at which the authors' own code for
#: PPD-Sparse did best on the test rows. `sublearn-default` below has the defaults everywhere.
SUBLEARN = {"C": 1.0, "l1": 0.1}
SUBLEARN_BY_PROBLEM: dict[str, dict[str, object]] = {
    "bibtex": {"l1": 1.0},
    "delicious": {"l1": 1.0},
}

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
        "sublearn-default", "main", SCRIPTS / "sublearn_ppd.py", note="defaults on every problem"
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
    Entrant("linearsvc", "main", SCRIPTS / "linearsvc.py", note="one-vs-rest, defaults"),
    Entrant(
        "linearsvc-fast",
        "main",
        SCRIPTS / "linearsvc.py",
        {"dual": True, "tol": 0.1},
        note="one-vs-rest, dual solver, tol 0.1",
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
        "napkinxc-br",
        "napkinxc",
        SCRIPTS / "napkinxc_models.py",
        {"model": "BR"},
        note="one-vs-rest, logistic loss",
    ),
    Entrant("omikuji", "omikuji", SCRIPTS / "omikuji_forest.py", note="Parabel, 3 trees"),
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
]

SMALL = Documents(
    n_train=2_000, n_test=500, n_features=5_000, n_labels=300, n_groups=12, words_per_document=60
)


def synthetic(name: str, size: Documents) -> Problem:
    """A generated problem; the command line's seed draws it."""
    note = f"generated, {size.n_train} rows, {size.n_features} features, {size.n_labels} labels"
    return Problem(name, lambda directory, seed: make_documents(size, seed), note)


PROBLEMS = [
    mulan("bibtex"),
    mulan("delicious"),
    mulan("corel5k", suffix="-sparse"),
    xmc("yso_en"),
    svmlight_files("sector", train="sector.heldout.svm.xz", test="sector.test.svm.xz"),
    svmlight_random_half("rcv1sub1"),
    svmlight_random_half("stackex_cs"),
    synthetic("synthetic", Documents()),
    synthetic("synthetic-small", SMALL),
]


def grown(axis: str, size: int, seed: int) -> Split:
    """The small problem with one size replaced; label groups keep their mean size of 25."""
    if axis == "K":
        return make_documents(replace(SMALL, n_labels=size, n_groups=max(1, size // 25)), seed)
    return make_documents(replace(SMALL, **{{"N": "n_train", "D": "n_features"}[axis]: size}), seed)


AXES = {
    "K": Axis((250, 500, 1_000, 2_000), (50, 100), lambda size, seed: grown("K", size, seed)),
    "N": Axis((1_000, 2_000, 4_000, 8_000), (250, 500), lambda size, seed: grown("N", size, seed)),
    "D": Axis(
        (5_000, 10_000, 20_000, 40_000), (1_000, 2_000), lambda size, seed: grown("D", size, seed)
    ),
}

ROOM = Room(
    title="Extreme classification: very many labels",
    problems=PROBLEMS,
    entrants=ENTRANTS,
    judge=precision_judge((1, 3, 5)),
    request={"k": 5},
    axes=AXES,
    default=(("bibtex", "delicious"), ("sublearn", "linearsvc")),
    quick=(("synthetic-small",), ("sublearn", "linearsvc-fast")),
)

if __name__ == "__main__":
    raise SystemExit(main(ROOM))
