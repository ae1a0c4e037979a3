"""Calls that take many seconds, one row each, and the process in which Ctrl-C is pressed in one.

    python long_calls.py NAME N_JOBS [TIMES]

prepares the call and answers a small version of it. It then prints "ready" and begins, so many
times. A signal must end the call; the process prints when the exception arrived and how much work
went on in the background, and answers the small version again. With TIMES 0 it begins once, and the
signal ends the process.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from estimator_cases import CASES, answers, rng
from sklearn.ensemble import RandomForestClassifier

from sublearn.extreme import PPDSparseClassifier
from sublearn.forecast import LoadFeatures, LocalKernels
from sublearn.hierarchy import GroupWeights, Taxonomy
from sublearn.latent import Kernel, LatentFeatureLasso
from sublearn.structured import Sample

FOR_EVER = 10**6  # iterations
TINY = 1e-13  # a tolerance that is not reached


@dataclass
class Call:
    """A long call, a short one of the same kind, and the model that the long one would change."""

    begin: Callable[[], Any]
    small: Callable[[], Any]
    model: Any = None
    is_clean: Callable[[], bool] = lambda: True  # what else must hold after the signal


@dataclass(frozen=True)
class Row:
    """How a call is made for a number of threads, and the saved model that it stands for."""

    make: Callable[[int], Call]
    jobs: tuple[int, ...]
    covers: str | None = None
    needs: tuple[str, ...] = field(default=())


ROWS: dict[str, Row] = {}


def row(jobs=(1,), covers=None, needs=()):
    def keep(make):
        ROWS[make.__name__] = Row(make, jobs, covers, needs)
        return make

    return keep


def sparse_rows(n_rows, n_columns, n_each):
    """Entries at regular distances from a random first one: quickly made, and in order."""
    draw = rng()
    step = n_columns // n_each
    first = draw.integers(step, size=(n_rows, 1), dtype=np.int32)
    columns = first + np.arange(0, n_each * step, step, dtype=np.int32)
    indptr = np.arange(0, n_rows * n_each + 1, n_each)
    values = draw.random(n_rows * n_each, dtype=np.float32) - 0.5
    return sp.csr_matrix((values, columns.ravel(), indptr), shape=(n_rows, n_columns))


def label_rows(n_rows, n_labels, n_each):
    found = sparse_rows(n_rows, n_labels, n_each)
    found.data[:] = 1
    return found


def dense_rows(n_rows, n_columns, dtype=np.float64):
    return rng().random((n_columns, n_rows), dtype=dtype).T - 0.5


def fitting(case, n_jobs, long, **endless):
    """Of an estimator of `estimator_cases.py` on the arguments `long`.

    The model that is interrupted has been fitted to its small problem, and must remain so.
    """
    model = CASES[case].fit(n_jobs=n_jobs).set_params(**endless)
    X = CASES[case].data()[0]
    return Call(
        lambda: model.fit(*long),
        lambda: answers(CASES[case].fit(n_jobs=n_jobs), X),
        model,
    )


def fit_row(name, case, long, jobs=(1,), covers=False, **endless):
    """A row of a fit to the arguments that `long()` makes."""
    ROWS[name] = Row(
        lambda n_jobs: fitting(case, n_jobs, long(), **endless), jobs, case if covers else None
    )


EXACTLY = {"tol": TINY, "max_iter": FOR_EVER}
BOTH = {"jobs": (1, 2), "covers": True}  # the row that stands for a class


# --- extreme -----------------------------------------------------------------------------------


def many_labels():
    return sparse_rows(20_000, 5_000, 60), label_rows(20_000, 3_000, 3)


PPD = {**EXACTLY, "l1": 1e-3, "search": "exact", "prune": 0.0}
fit_row("ppd_sparse", "PPDSparseClassifier", many_labels, **BOTH, **PPD)
fit_row(
    "ppd_sparse_with_a_model_path", "PPDSparseClassifier", many_labels, **PPD,
    model_path=Path(tempfile.gettempdir()) / f"interrupted-{os.getpid()}" / "model.sublearn",
)  # fmt: skip
fit_row(
    "pd_sparse", "PDSparseClassifier", many_labels, **BOTH, **EXACTLY, l1=1e-3, early_stopping=False
)


@row()
def ppd_sparse_path(n_jobs):
    call = ROWS["ppd_sparse"].make(n_jobs)
    call.begin = lambda: call.model.fit_path(*many_labels(), np.geomspace(0.1, 1e-3, 20))
    return call


def fitted_labels(n_jobs):
    """A model of many weights, quickly made."""
    X, Y = sparse_rows(1_000, 5_000, 60), label_rows(1_000, 3_000, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PPDSparseClassifier(n_jobs=n_jobs, random_state=0, tol=1.0, max_iter=1).fit(X, Y)


@row((1, 2))
def ppd_sparse_prediction(n_jobs):
    model = fitted_labels(n_jobs)
    long = sparse_rows(200_000, 5_000, 60)
    return Call(
        lambda: [model.predict_top_k(long, 5) for _ in range(100)],
        lambda: model.predict_top_k(long[:20], 5)[1],
    )


@row()
def ppd_sparse_calibration(n_jobs):
    model = fitted_labels(n_jobs)
    X, Y = sparse_rows(200_000, 5_000, 60), label_rows(200_000, 3_000, 3)
    return Call(
        lambda: model.calibrate(X, Y),
        lambda: model.predict_top_k(X[:20], 5)[1],
    )


def sentences(n_texts, n_words):
    words = rng().integers(30_000, size=(n_texts, n_words))
    return [" ".join(f"w{word:x}" for word in text) for text in words.tolist()]


def labelled_sentences():
    texts = sentences(2_000, 100)
    return texts * 100, [[f"label {i % 50}"] for i in range(len(texts))] * 100


# Interrupted while words are counted.
fit_row(
    "text_tagger", "TextTagger", labelled_sentences, covers=True,
    analyzer="char_wb", ngram_range=(2, 5),
)  # fmt: skip


def shorter_sentences():
    texts, labels = labelled_sentences()
    return texts[:20_000], labels[:20_000]


fit_row("label_reranker", "LabelReranker", shorter_sentences, covers=True)


# --- linear ------------------------------------------------------------------------------------


def numbers(n_rows, n_columns):
    X = dense_rows(n_rows, n_columns)
    return X, X[:, :10].sum(axis=1) + rng().normal(size=n_rows)


def classes(n_rows, n_columns, n_classes):
    return dense_rows(n_rows, n_columns), rng().integers(n_classes, size=n_rows)


fit_row(
    "linear_regression",
    "SparseLinearRegression",
    lambda: numbers(20_000, 3_000),
    **BOTH,
    **EXACTLY,
    l1=1e-7,
)
fit_row(
    "linear_regression_by_folds",
    "SparseLinearRegression",
    lambda: numbers(10_000, 600),
    (1, 2),
    l1="cv",
    tol=1e-10,
)
fit_row(
    "regression_of_groups",
    "GroupLinearRegression",
    lambda: numbers(20_000, 3_000),
    covers=True,
    **EXACTLY,
    l1=1e-7,
    feature_groups=[*range(300)] * 10,
)
fit_row(
    "logistic_regression_of_groups",
    "GroupLogisticRegression",
    lambda: classes(10_000, 1_000, 100),
    covers=True,
    l1=1e-6,
    tol=1e-12,
    max_iter=FOR_EVER,
)
fit_row(
    "logistic_regression",
    "SparseLogisticRegression",
    lambda: classes(10_000, 1_000, 100),
    **BOTH,
    l1=1e-6,
    tol=1e-12,
    max_iter=FOR_EVER,
)
fit_row(
    "multinomial_regression",
    "SparseLogisticRegression",
    lambda: classes(10_000, 1_000, 100),
    multinomial=True,
    l1=1e-6,
    tol=1e-12,
    max_iter=FOR_EVER,
)
fit_row(
    "inverse_covariance",
    "SparseInverseCovariance",
    lambda: (dense_rows(2_000, 1_500),),
    **BOTH,
    **EXACTLY,
    l1=1e-4,
)
fit_row(
    "inverse_covariance_by_folds", "SparseInverseCovariance", lambda: (dense_rows(3_000, 1_000),)
)  # fmt: skip


@row()
def linear_regression_path(n_jobs):
    call = ROWS["linear_regression"].make(n_jobs)
    call.begin = lambda: call.model.fit_path(*numbers(8_000, 1_500))
    return call


# --- latent ------------------------------------------------------------------------------------


def binary_features(n_rows, n_columns, n_features):
    draw = rng()
    Z = draw.integers(2, size=(n_rows, n_features)).astype(float)
    noise = draw.normal(size=(n_rows, n_columns))
    return Z @ draw.normal(size=(n_features, n_columns)) + 0.3 * noise


def mixed_lines(n_rows, n_columns, n_components):
    draw = rng()
    X = draw.normal(size=(n_rows, n_columns))
    W = draw.normal(size=(n_components, n_columns))
    y = (X * W[draw.integers(n_components, size=n_rows)]).sum(axis=1)
    return X, y + 0.1 * draw.normal(size=n_rows)


fit_row(
    "latent_features", "LatentFeatureLasso", lambda: (binary_features(6_000, 400, 30),), **BOTH,
    n_components="gap", violation_tol=1e-9, max_iter=FOR_EVER,
)  # fmt: skip


@row()
def latent_features_path(n_jobs):
    long, small = binary_features(3_000, 300, 20), binary_features(60, 10, 3)
    model = LatentFeatureLasso(n_jobs=n_jobs, random_state=0)
    slow = LatentFeatureLasso(violation_tol=1e-9, max_iter=FOR_EVER, n_jobs=n_jobs, random_state=0)
    return Call(lambda: slow.fit_path(long), lambda: model.fit_path(small).l1s)


MIXTURE = {"n_components": "auto", "search": None, "tol": 1e-9, "max_iter": 50}
for name, shape, kinds in (
    ("mixtures", (20_000, 100, 6), BOTH),
    ("mixtures_of_kernels", (6_000, 10, 6), {"kernel": Kernel("rbf")}),
    ("general_mixtures", (6_000, 100, 6), {"mixture": "generalised"}),
):
    fit_row(name, "MixLassoRegressor", lambda shape=shape: mixed_lines(*shape), **kinds, **MIXTURE)


def symmetric(n):
    C = dense_rows(n, n)
    return C + C.T


def boolean_quadratic(quadratic, n_jobs, **parameters):
    from sublearn.latent import solve_boolean_quadratic

    run = {"n_jobs": n_jobs, "random_state": 0}
    return Call(
        lambda: solve_boolean_quadratic(quadratic, tol=TINY, **run, **parameters),
        lambda: solve_boolean_quadratic(symmetric(20), **run).candidate_values,
    )


@row((1, 2))
def dense_boolean_quadratic(n_jobs):
    return boolean_quadratic(symmetric(3_000), n_jobs)


@row()
def factored_boolean_quadratic(n_jobs):
    return boolean_quadratic(None, n_jobs, factor=dense_rows(20_000, 300))


@row((1, 2))
def boolean_quadratic_rounding(n_jobs):
    """Many hyperplanes, after the sweeps."""
    return boolean_quadratic(symmetric(1_000), n_jobs, n_rounds=200_000, certify=False, max_iter=1)


def random_graph(n, degree):
    draw = rng()
    ends = draw.integers(n, size=(2, n * degree // 2))
    A = sp.csr_matrix((np.ones(ends.shape[1]), ends), shape=(n, n))
    A.setdiag(0)
    return sp.csr_matrix(A + A.T)


@row((1, 2))
def max_cut(n_jobs):
    from sublearn.latent import solve_max_cut

    graph, small = random_graph(4_000, 40), random_graph(30, 4)
    return Call(
        lambda: solve_max_cut(graph, tol=TINY, n_jobs=n_jobs, random_state=0),
        lambda: solve_max_cut(small, n_jobs=n_jobs, random_state=0).side,
    )


@row()
def large_max_cut(n_jobs):
    from sublearn.latent import solve_max_cut

    graph, small = random_graph(100_000, 10), random_graph(30, 4)
    return Call(
        lambda: solve_max_cut(graph, tol=TINY, n_jobs=n_jobs, random_state=0),
        lambda: solve_max_cut(small, n_jobs=n_jobs, random_state=0).side,
    )


# --- hierarchy ---------------------------------------------------------------------------------


def binary_tree(n_labels):
    return Taxonomy([(i - 1) // 2 if i else -1 for i in range(n_labels)])


def crossed_tree(n_labels):
    """Labels with two parents."""
    parents = [[-1]] + [sorted({(i - 1) // 2, (i - 1) // 3}) for i in range(1, n_labels)]
    return Taxonomy([p if p != [-1] else -1 for p in parents])


def leaf_rows(n_rows, n_columns, n_labels):
    return dense_rows(n_rows, n_columns), rng().integers(n_labels // 2, n_labels, size=n_rows)


def hierarchical(name, n_rows, n_columns, n_labels, **options):
    fit_row(
        name, "HierarchicalClassifier", lambda: leaf_rows(n_rows, n_columns, n_labels),
        taxonomy=binary_tree(n_labels), **options,
    )  # fmt: skip


ENDLESS = {"tol": 1e-12, "max_iter": FOR_EVER}
hierarchical("hierarchical_classifier", 10_000, 300, 255, **BOTH, **ENDLESS, C=1e3)
hierarchical("flat_classifier", 8_000, 300, 127, strategy="flat", **ENDLESS, C=1e3)
hierarchical(
    "hierarchical_classifier_of_estimators", 40_000, 100, 31, jobs=(1, 2),
    estimator=RandomForestClassifier(60, random_state=0),
)  # fmt: skip


def label_sets(n_rows, n_columns, n_labels):
    taxonomy = binary_tree(n_labels)
    leaves = rng().integers(n_labels // 2, n_labels, size=n_rows)
    return dense_rows(n_rows, n_columns), sp.csr_matrix(taxonomy.ancestor_matrix[leaves])


def multilabel(name, n_rows, n_columns, n_labels, **options):
    fit_row(
        name, "HierarchicalMultilabelClassifier", lambda: label_sets(n_rows, n_columns, n_labels),
        taxonomy=binary_tree(n_labels), **options,
    )  # fmt: skip


multilabel("hierarchical_multilabel", 8_000, 300, 127, **BOTH, **ENDLESS, l1=1e-6)
multilabel(
    "hierarchical_multilabel_of_squares", 20_000, 800, 511, loss="squared", tol=1e-12, l1=1e-7
)
multilabel(  # the search for group weights takes most of the time
    "hierarchical_multilabel_weights", 10_000, 3, 511, tol=0.5, max_iter=1, l1=1.0,
    group_weights=GroupWeights(max_iter=FOR_EVER),
)  # fmt: skip


@row((1, 2))
def projection(n_jobs):
    from sublearn.hierarchy import project_hierarchy

    tree, few = binary_tree(511), dense_rows(5, 511)
    many = dense_rows(60_000, 511, np.float32)
    return Call(
        lambda: [project_hierarchy(many, tree, 0.1, n_jobs=n_jobs) for _ in range(500)],
        lambda: project_hierarchy(few, tree, 0.1, n_jobs=n_jobs),
    )


@row((1, 2))
def projection_on_several_parents(n_jobs):
    from sublearn.hierarchy import project_hierarchy

    graph, few = crossed_tree(2047), dense_rows(2, 2047)
    many = dense_rows(1_000, 2047)
    return Call(
        lambda: [project_hierarchy(many, graph, 0.5, tol=TINY, n_jobs=n_jobs) for _ in range(500)],
        lambda: project_hierarchy(few, graph, 0.1, n_jobs=n_jobs),
    )


@row()
def projection_gradient(n_jobs):
    from sublearn.hierarchy import project_hierarchy_gradient

    graph, few = crossed_tree(1023), dense_rows(2, 1023)
    many = dense_rows(5_000, 1023)
    return Call(
        lambda: project_hierarchy_gradient(many, graph, 0.3, many, n_jobs=n_jobs),
        lambda: project_hierarchy_gradient(few, graph, 0.1, few, n_jobs=n_jobs)[0],
    )


# --- forecast ----------------------------------------------------------------------------------


def load_of(n_days):
    hours = np.arange(24 * n_days)
    daily = 20 * np.sin(2 * np.pi * hours / 24) + 5 * (hours // 24 % 7 < 5)
    return 100 + daily + rng().normal(size=len(hours))


HOURS = {"horizon": 24, "intervals": True}
fit_row(
    "load_forecaster",
    "LoadForecaster",
    lambda: (load_of(2_000),),
    **BOTH,
    **HOURS,
    tol=1e-9,
    features=LoadFeatures(lead_blocks=[6, 12, 18, 24]),
    kernels=LocalKernels(relevance_rows=2_000),
)
fit_row(
    "online_load_forecaster", "LoadForecaster", lambda: (load_of(4_000),), **HOURS,
    solver="online", features=LoadFeatures(), kernels=LocalKernels(n_components=1_000),
)  # fmt: skip


@row()
def kernel_kmeans(n_jobs):
    from sublearn.forecast.clusters import kernel_kmeans_nmf

    many, few = dense_rows(50_000, 100), dense_rows(50, 5)
    return Call(
        lambda: kernel_kmeans_nmf(many, 30, rng(), n_starts=100),
        lambda: kernel_kmeans_nmf(few, 3, rng()).labels,
    )


# --- embed -------------------------------------------------------------------------------------


def index(n_jobs, n_rows, **parameters):
    from sublearn.embed import MIPSIndex

    rows = dense_rows(n_rows, 64, np.float32)
    return MIPSIndex(n_jobs=n_jobs, random_state=0, **parameters), rows


@row((1, 2), "MIPSIndex")
def mips_index(n_jobs):
    model, rows = index(n_jobs, 200_000, max_iter=1_000)

    def small():
        return index(n_jobs, 300)[0].fit(rows[:300]).search(rows[:5])[1]

    return Call(lambda: model.fit(rows), small, model)


def searching(n_jobs, call):
    model, rows = index(n_jobs, 100_000, n_clusters=50, max_iter=1)
    model.fit(rows)
    few = rows[:5]
    return Call(lambda: call(model, rows), lambda: model.search(few, 10)[1])


@row((1, 2))
def mips_search(n_jobs):
    return searching(n_jobs, lambda model, rows: model.search(rows, 10, n_probe=None))


@row()
def mips_search_above(n_jobs):
    return searching(n_jobs, lambda model, rows: model.search_above(rows, 60.0))


@row()
def mips_tuning(n_jobs):
    return searching(n_jobs, lambda model, rows: model.tune(rows[:20_000], 10, 0.99))


@row()
def mips_additions(n_jobs):
    model, rows = index(n_jobs, 100_000, n_clusters=2_000, max_iter=1)
    model.fit(rows)
    new = dense_rows(500_000, 64, np.float32)
    few = rows[:5]
    return Call(lambda: model.add(new), lambda: model.search(few, 10)[0] < 100_000)


def far_labels(X):
    return X, rng().integers(20_000, size=X.shape[0])


LAYER = {"max_iter": 1000, "search": None}
fit_row(
    "dense_extreme",
    "DenseExtremeClassifier",
    lambda: far_labels(dense_rows(100_000, 64, np.float32)),
    **BOTH,
    **LAYER,
)
fit_row(
    "embedding_extreme",
    "EmbeddingExtremeClassifier",
    lambda: far_labels(sparse_rows(100_000, 50_000, 40)),
    **BOTH,
    **LAYER,
    n_components=20,
)
WORDS = {"n_components": 16, "min_count": 5, "subsample": None}
fit_row("skip_gram", "SkipGram", lambda: (sentences(2_000, 200),), **BOTH, **WORDS, max_iter=1000)
# Interrupted while words and pairs are counted.
fit_row("skip_gram_words", "SkipGram", lambda: (sentences(2_000, 200) * 100,), **WORDS, window=20)


# --- structured --------------------------------------------------------------------------------


def sequences(n, length, n_features, n_labels):
    draw = rng()
    X = [draw.normal(size=(length, n_features)) for _ in range(n)]
    return X, [draw.integers(n_labels, size=length).tolist() for _ in range(n)]


fit_row("chain_svm", "ChainSVM", lambda: sequences(2_000, 40, 50, 40), **BOTH, **EXACTLY)


def grids(n, side, n_labels):
    draw = rng()
    X = [Sample.grid(draw.normal(size=(side, side, 5))) for _ in range(n)]
    return X, [draw.integers(n_labels, size=side * side).tolist() for _ in range(n)]


fit_row("structural_svm", "StructuralSVM", lambda: grids(200, 20, 10), **BOTH, **EXACTLY)
fit_row(
    "pairwise_multilabel", "PairwiseMultilabelSVM",
    lambda: (sparse_rows(5_000, 2_000, 50), label_rows(5_000, 200, 5)), **BOTH, **EXACTLY,
)  # fmt: skip


@row((1, 2))
def structural_svm_prediction(n_jobs):
    from sublearn.structured import StructuralSVM

    X, y = grids(6, 4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StructuralSVM(C=100.0, n_jobs=n_jobs, random_state=0, max_iter=3).fit(X, y)
    many = grids(200, 60, 8)[0]
    return Call(lambda: model.predict(many), lambda: model.predict(X))


# --- functions ---------------------------------------------------------------------------------


def grid_graph(side, n_labels):
    from sublearn.graph import FactorGraph, dense

    draw = rng()
    graph = FactorGraph(unary=draw.normal(size=(side * side, n_labels)))
    node = np.arange(side * side).reshape(side, side)
    for pairs in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:])):
        table = dense(draw.normal(size=(n_labels, n_labels)))
        graph.add_factors(np.stack(pairs, axis=-1).reshape(-1, 2), table)
    return graph


@row((1, 2))
def map_inference(n_jobs):
    from sublearn.graph import solve_map

    long, small = grid_graph(150, 20), grid_graph(3, 2)
    return Call(
        lambda: solve_map(long, tol=TINY, max_iter=FOR_EVER, n_jobs=n_jobs, random_state=0),
        lambda: solve_map(small, n_jobs=n_jobs, random_state=0).assignment,
    )


@row()
def lhac_of_a_python_function(n_jobs):
    from sublearn.optim import lhac

    X, y = numbers(10_000, 600)

    def objective(w):
        error = X @ w - y
        return 0.5 * error @ error, X.T @ error

    return Call(
        lambda: [
            lhac(objective, np.zeros(600), 1e-6, tol=TINY, max_iter=FOR_EVER) for _ in range(100)
        ],
        lambda: lhac(lambda x: (0.5 * ((x - 2) ** 2).sum(), x - 2), np.zeros(3), l1=0.5).x,
    )


def linear_function(solver):
    def make(n_jobs):
        from sublearn.optim import minimise_linear

        X, y = numbers(8_000, 1_500)
        few = numbers(50, 5)
        return Call(
            lambda: minimise_linear(
                X, y, "squared", 1e-6, solver=solver, tol=TINY, max_iter=FOR_EVER, n_jobs=n_jobs
            ),
            lambda: minimise_linear(*few, "squared", 0.1, solver=solver, n_jobs=n_jobs).x,
        )

    return make


for solver in ("newton", "lhac", "cd1", "interior_point"):
    ROWS[f"linear_function_by_{solver}"] = Row(linear_function(solver), (1,))


@row((1,), "SparseNetwork", needs=("torch",))
def deep_trim(n_jobs):
    import torch

    from sublearn.trim import L1Search, QuasiNewton, Retraining
    from sublearn.trim import deep_trim as run

    torch.set_num_threads(n_jobs)

    def trim(n_rows, width, **parameters):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(50, width), torch.nn.ReLU(), torch.nn.Linear(width, 5)
        )
        draw = torch.Generator().manual_seed(0)
        X = torch.randn(n_rows, 50, generator=draw)
        y = torch.randint(5, (n_rows,), generator=draw)
        return run(net, (X, y), max_increase=0.5, random_state=0, **parameters)

    return Call(
        lambda: trim(20_000, 1_000, quasi_newton=QuasiNewton(violation_tol=1e-9, max_iter=1000)),
        lambda: trim(
            100, 4, search=L1Search(max_stages=1), quasi_newton=QuasiNewton(max_iter=2),
            retraining=Retraining(warm_epochs=1),
        ).module(torch.zeros(1, 50)).detach().numpy(),
    )  # fmt: skip


@row()
def svmlight_reading(n_jobs):
    from sublearn.io import load_svmlight

    folder = Path(tempfile.mkdtemp())
    line = "1 " + " ".join(f"{i}:0.{i % 97}1" for i in range(1, 101)) + "\n"
    (folder / "small.txt").write_text(line)
    block = line * 20_000
    with open(folder / "long.txt", "w") as file:
        for _ in range(5):
            file.write(block)
    return Call(
        lambda: [load_svmlight(folder / "long.txt") for _ in range(100)],
        lambda: load_svmlight(folder / "small.txt").X.toarray(),
    )


@row()
def svmlight_writing(n_jobs):
    from sublearn.io import save_svmlight

    X, folder = sparse_rows(50_000, 5_000, 100), Path(tempfile.mkdtemp())
    y = np.ones(X.shape[0])

    def small():
        save_svmlight(folder / "small.txt", X[:5], y[:5])
        return (folder / "small.txt").read_text()

    return Call(
        lambda: [save_svmlight(folder / "long.txt", X, y) for _ in range(100)],
        small,
    )


@row()
def saving(n_jobs):
    """A file that is interrupted while it is written is the one before."""
    import sublearn
    from sublearn.io import load_npz, save_npz

    model, folder = fitted_labels(n_jobs), Path(tempfile.mkdtemp())
    X, Y = sparse_rows(20_000, 5_000, 100), label_rows(20_000, 3_000, 3)
    few = X[:20]
    small_model = CASES["PPDSparseClassifier"].fit(n_jobs=n_jobs)

    def small():
        small_model.save(folder / "small")
        return sublearn.load(folder / "small").coef_.toarray()

    def save_both():
        model.save(folder / "model")
        save_npz(folder / "rows.npz", X, Y)

    def content():
        names = [path.name for path in sorted(folder.iterdir()) if path.name != "small"]
        scores = sublearn.load(folder / "model").predict_top_k(few, 5)[0]
        return as_bytes([" ".join(names), scores, load_npz(folder / "rows.npz").X.data])

    save_both()
    expected = content()
    return Call(
        lambda: [save_both() for _ in range(10_000)],
        small,
        is_clean=lambda: content() == expected,
    )


@row()
def ranking_metrics(n_jobs):
    from sublearn.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k

    Y = label_rows(100_000, 5_000, 20)
    scores = sparse_rows(100_000, 5_000, 20)

    def judge(Y, scores):
        return [
            precision_at_k(Y, scores, 5), ndcg_at_k(Y, scores, 5),
            psp_at_k(Y, scores, propensities(Y), 5),
        ]  # fmt: skip

    return Call(
        lambda: [judge(Y, scores) for _ in range(200)],
        lambda: judge(Y[:20], scores[:20]),
    )


# --- the process -------------------------------------------------------------------------------


def background_work():
    """Seconds of processor time until the last thread of the library has ended."""
    before = time.process_time()
    while any(thread.name.startswith("sublearn") for thread in threading.enumerate()):
        time.sleep(0.02)
    return time.process_time() - before


def as_bytes(answer):
    if isinstance(answer, (list, tuple)):
        return b"".join(map(as_bytes, answer))
    if sp.issparse(answer):
        answer = answer.toarray()
    return answer.encode() if isinstance(answer, str) else np.asarray(answer).tobytes()


def main(name, n_jobs, times=1):
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    call = ROWS[name].make(int(n_jobs))
    if int(times) == 0:
        print("ready", flush=True)
        call.begin()
    before, attributes = as_bytes(call.small()), dict(vars(call.model)) if call.model else {}
    for _ in range(int(times)):
        print("ready", flush=True)
        try:
            call.begin()
        except KeyboardInterrupt:
            at = time.monotonic()
        else:
            at = None
        report = {
            "at": at,
            "background": background_work(),
            "is_clean": is_unchanged(call.model, attributes) and call.is_clean(),
            "is_usable": as_bytes(call.small()) == before,
        }
        print(json.dumps(report), flush=True)


def is_unchanged(model, attributes):
    """Whether a model still has the attributes of the fit before, the very same objects."""
    now = {} if model is None else vars(model)
    return now.keys() == attributes.keys() and all(now[k] is v for k, v in attributes.items())


if __name__ == "__main__":
    main(*sys.argv[1:])
