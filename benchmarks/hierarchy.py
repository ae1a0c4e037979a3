"""Labels in a taxonomy: HiClass, HML and the projection, beside their rivals.

HiClass: every entrant in a process of its own with one thread, at most 120 CPU seconds, on rows
whose labels are one path to a leaf. HML: test scores of the sets that FLAT, Leaf Reduce, Root Map
and HML make of the same models of labels; the first three with the threshold 0.5, as in the table
of the thesis, and with the threshold that is best on the held-out scores that HML learns from.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from harness.bench import Bench
from harness.entrant import Entrant
from harness.growth import fit_exponent
from harness.problem import Split
from harness.runner import Case
from harness.table import Cell, Figures, Table
from harness.taxonomies import (
    LOOKED_AT,
    MULTILABEL,
    SINGLE_LABEL,
    TAXONOMIES,
    Rows,
    gnd,
    load_rows,
)
from harness.timing import cpu_timed
from scipy.optimize import least_squares
from sklearn.svm import LinearSVC

from sublearn.extreme import PPDSparseClassifier
from sublearn.fitting.progress import Progress
from sublearn.hierarchy import (
    GroupWeights,
    HierarchicalClassifier,
    HierarchicalMultilabelClassifier,
    Taxonomy,
    hierarchy_support,
    leaf_reduce,
    paths,
    project_hierarchy,
    root_map,
)
from sublearn.hierarchy.cost_model import operations
from sublearn.hierarchy.group_weights import WeightSearch, row_sizes
from sublearn.hierarchy.label_models import (
    BinaryTask,
    TaskOptions,
    solve_squeezed,
    solve_tasks,
)
from sublearn.hierarchy.score_maps import with_leaves
from sublearn.hierarchy.set_metrics import METRICS, RowGroups, Truth, count_sets
from sublearn.metrics import f1_samples, hamming_loss, hierarchical_f1, jaccard_samples
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.squeezed_rows import is_squeezing_cheaper

#: Weight of the loss by data set, the same for all entrants: the better of 1 and 10 for ours.
C: Mapping[str, float] = {
    "rcv1_dev": 10.0,
    "hmc_imclef07a": 1.0,
    "hmc_cellcycle_fun": 10.0,
    "20news": 10.0,
}
#: l1 of stage one by data set.
L1: Mapping[str, float] = {"rcv1_dev": 1e-4, "hmc_cellcycle_fun": 3e-3, "yso_en": 2e-4}

#: Solvers by level, the last one for all below: large nodes at the top, small ones below.
THESIS = ["newton", "interior_point"]
#: The first one is ours.
ENTRANTS = [
    *(
        Entrant(name, "hierarchy/sublearn_hiclass.py", settings)
        for name, settings in {
            "HiClass, hybrid": {"solver": "auto"},
            "HiClass, greedy path": {"decoding": "greedy"},
            "HiClass, hybrid of the thesis": {"solver": THESIS},
            "HiClass, CD2": {"solver": "newton"},
            "HiClass, LHAC": {"solver": "lhac"},
            "HiClass, interior point": {"solver": "interior_point"},
            "HiClass, CD1 (SCD)": {"solver": "cd1"},
            "ours, flat": {"strategy": "flat"},
            "ours, global": {"strategy": "global"},
        }.items()
    ),
    *(
        Entrant(
            f"hiclass, per {strategy}",
            "hierarchy/hiclass_package.py",
            {"strategy": strategy},
            environment="hiclass",
        )
        for strategy in ("parent", "node", "level")
    ),
    Entrant("flat one-vs-rest (liblinear)", "hierarchy/liblinear_flat.py"),
]


# --- HiClass -----------------------------------------------------------------------------------


def as_split(rows: Rows, name: str) -> Split:
    """What entrants get, positions for names, and what the judge keeps."""
    own = rows.taxonomy
    parents = np.full(own.n_labels, -1)
    parents[np.diff(own.indptr) > 0] = own.indices
    ends, ends_test = rows.ends
    train = {"X": rows.X, "ends": ends, "parents": parents, "C": np.float64(C[name])}
    return Split(train, {"X": rows.X_test}, {"ends": ends_test, "parents": parents})


def judge(truth: dict[str, np.ndarray], answer: dict[str, np.ndarray]) -> dict[str, float]:
    """Share of right labels, which is micro-F1 (2.3.6), and hierarchical F1."""
    taxonomy = Taxonomy(truth["parents"].tolist())
    right, found = truth["ends"], answer["ends"]
    return {
        "micro_f1": float((right == found).mean()),
        "hierarchical_f1": hierarchical_f1(right, found, taxonomy),
    }


def race(name: str) -> Callable[[Bench], Figures]:
    """All entrants on one data set."""

    def measure(bench: Bench) -> Figures:
        case = Case(name, lambda: as_split(rows_of(bench, name), name), judge, is_thorough=True)
        found = bench.compete(case, bench.chosen(ENTRANTS), bench.limit(120.0))
        costs = ("fit_cpu_seconds", "/fit_cpu_seconds", "predict_cpu_seconds")
        rows = [o.row(found[0], "micro_f1", "hierarchical_f1", *costs) for o in found]
        columns = {"entrant": "", "micro-F1": ".4f>", "hierarchical F1": ".4f>", "fit s": ".3g<"}
        return Figures(columns | {"ratio to the hybrid": ".1f", "predict s": ".3g<"}, rows)

    return measure


def rows_of(bench: Bench, name: str, is_single: bool = True) -> Rows:
    """A set; a part of its training rows in a quick run."""
    data = load_rows(bench.data, name, is_single=is_single)
    step = bench.size(1, max(1, data.X.shape[0] // 600))
    return data if step == 1 else replace(data, X=data.X[::step], Y=data.Y[::step])


def threads(bench: Bench) -> Figures:
    """Elapsed seconds of a fit on one thread and on two, and what the nodes allow."""
    rows: list[list[Cell]] = []
    for name in bench.some(SINGLE_LABEL):
        data = rows_of(bench, name)
        n_laps = bench.size(5 if name == "20news" else 15, 2)
        laps = np.array([[fit_seconds(data, name, n) for n in (1, 2)] for _ in range(n_laps)])
        best = laps.min(axis=0)
        seconds = fitted(data, name, 1).trace_["seconds"]
        most = [float(seconds.sum() / makespan(seconds, n)) for n in (2, 8)]
        rows.append([name, len(seconds), *best.tolist(), float(best[0] / best[1]), *most])
    columns = {"data": "", "models": "d", "1 thread, s": ".3g<", "2 threads, s": ".3g<"}
    columns |= {"speed-up": ".2f>", "2 by nodes": ".2f", "8 by nodes": ".2f"}
    return Figures(columns, rows)


def makespan(seconds: np.ndarray, n_threads: int) -> float:
    """When the last of several threads ends that take the longest model left, each time."""
    ends = np.zeros(n_threads)
    for lap in np.sort(seconds)[::-1]:
        ends[ends.argmin()] += lap
    return float(ends.max())


def fitted(data: Rows, name: str, n_jobs: int) -> HierarchicalClassifier:
    model = HierarchicalClassifier(data.taxonomy, C=C[name], n_jobs=n_jobs)
    return model.fit(data.X, data.taxonomy.names[data.ends[0]])


def fit_seconds(data: Rows, name: str, n_jobs: int) -> float:
    start = time.perf_counter()
    fitted(data, name, n_jobs)
    return time.perf_counter() - start


def path_products(bench: Bench) -> Figures:
    """Cross-validation on the training rows: how much of a node's sum divides a step."""
    rows: list[list[Cell]] = []
    powers = (0.0, 0.25, 0.5, 0.75, 1.0)
    for name in bench.some(SINGLE_LABEL):
        data = rows_of(bench, name)
        y, names = data.ends[0], data.taxonomy.names
        fold = np.random.default_rng(bench.seed).permutation(np.arange(len(y)) % 5)
        chances = {power: np.zeros(len(y)) for power in powers}
        is_right = {power: np.zeros(len(y), dtype=bool) for power in powers}
        for k in range(5):
            held = np.flatnonzero(fold == k)
            model = HierarchicalClassifier(data.taxonomy, C=C[name])
            model.fit(data.X[fold != k], names[y[fold != k]])
            for power in powers:
                with mock.patch.object(paths, "_SHARED", power):
                    found = model._probabilities(data.X[held])[1]
                chances[power][held] = found[np.arange(len(held)), y[held]]
                is_right[power][held] = found.argmax(axis=1) == y[held]
        for power in powers:
            gain = is_right[power].astype(float) - is_right[1.0]
            error = float(gain.std() / np.sqrt(len(y)))
            loss = -float(np.log(np.maximum(chances[power], 1e-9)).mean())
            right = float(is_right[power].mean())
            rows.append([name, len(y), power, right, float(gain.mean()), error, loss])
    columns = {"data": "", "rows": "d", "power": ".2f", "micro-F1": ".4f>"}
    columns |= {"gain over power 1": ".4f", "standard error": ".4f", "log loss": ".4f"}
    return Figures(columns, rows)


#: Solvers that `solver="auto"` chooses among, and the terms of `operations` that each takes.
TERMS: Mapping[str, tuple[int, ...]] = {
    "newton": (0, 1, 2, 3),
    "lhac": (0, 1, 2, 3),
    "interior_point": (0, 3, 4, 5),
}


def cost_model(bench: Bench) -> Figures:
    """Weights of counts of operations, and how a model of the other families chooses for each."""
    nodes = {name: timed_nodes(bench, name) for name in bench.some(SINGLE_LABEL, 2)}
    rows: list[list[Cell]] = []
    for name in nodes:
        model = weights_of([own for other, own in nodes.items() if other != name])
        rows.append([f"{name}, by the others", *[None] * 6, *choices(model, *nodes[name])])
    model = weights_of(list(nodes.values()))
    for solver, own in model.items():
        rows.append([solver, *own.tolist(), *[None] * 6])
    sizes = np.concatenate([own for own, _ in nodes.values()])
    every = {s: np.concatenate([times[s] for _, times in nodes.values()]) for s in TERMS}
    rows.append(["all, by the model of all", *[None] * 6, *choices(model, sizes, every)])
    columns = {"what": "", "constant": ".2e", "rows": ".2e", "features": ".2e", "entries": ".2e"}
    columns |= {"entries m": ".2e", "m^3": ".2e", "nodes": "d"}
    columns |= {f"chosen: {solver}": "d" for solver in TERMS}
    return Figures(columns | {"fastest: newton": "d", "s to the fastest": ".2f<"}, rows)


def timed_nodes(bench: Bench, name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows, features and entries of the nodes of a set, and seconds of each solver."""
    data = rows_of(bench, name)
    if name == "20news":  # the interior point method takes minutes on all of its rows
        data = replace(data, X=data.X[::8], Y=data.Y[::8])
    seconds: dict[str, np.ndarray] = {}
    for solver in TERMS:
        model = HierarchicalClassifier(data.taxonomy, C=1.0, solver=solver)
        fit = functools.partial(model.fit, data.X, data.taxonomy.names[data.ends[0]])
        _, total = cpu_timed(fit)
        trace = model.trace_
        own = np.maximum(trace["seconds"], 1e-6)
        seconds[solver] = np.maximum(own * total / own.sum(), 2e-5)
    sizes = np.column_stack([trace[f"n_{what}"] for what in ("rows", "features", "entries")])
    return sizes, seconds


def weights_of(
    nodes: list[tuple[np.ndarray, dict[str, np.ndarray]]],
) -> dict[str, np.ndarray]:
    """Weights of operations, none negative, of least error in the logarithm of seconds."""
    counts = np.array([operations(tuple(size)) for own, _ in nodes for size in own.tolist()])
    found = {}
    for solver, used in TERMS.items():
        seconds = np.log(np.concatenate([times[solver] for _, times in nodes]))
        unit = counts[:, used].max(axis=0)
        A = counts[:, used] / unit
        start = np.full(len(used), float(np.median(seconds)) - np.log(len(used)))

        def errors(x: np.ndarray) -> np.ndarray:
            return np.asarray(np.log(np.maximum(A @ np.exp(x), 1e-300)) - seconds)  # noqa: B023

        best = least_squares(errors, start, loss="soft_l1", bounds=(-40, 10)).x
        found[solver] = np.zeros(counts.shape[1])
        found[solver][list(used)] = np.exp(best) / unit
    return found


def choices(
    model: Mapping[str, np.ndarray], sizes: np.ndarray, times: Mapping[str, np.ndarray]
) -> list[Cell]:
    """Nodes, how often each solver is chosen, how often coordinate descent is fastest, the loss."""
    counts = np.array([operations(tuple(size)) for size in sizes.tolist()])
    chosen = np.argmin([counts @ model[solver] for solver in TERMS], axis=0)
    every = np.array([times[solver] for solver in TERMS])
    spent, least = np.take_along_axis(every, chosen[None], axis=0).sum(), every.min(axis=0).sum()
    by_solver: list[Cell] = np.bincount(chosen, minlength=len(TERMS)).tolist()
    is_newton = int((every.argmin(axis=0) == 0).sum())
    return [len(sizes), *by_solver, is_newton, float(spent / least)]


# --- HML ---------------------------------------------------------------------------------------


def sets_of_labels(name: str) -> Callable[[Bench], Figures]:
    """FLAT, Leaf Reduce, Root Map and HML on the same scores."""

    def measure(bench: Bench) -> Figures:
        data = rows_of(bench, name, is_single=False)
        rows: list[list[Cell]] = []
        for loss in bench.some(("squared", "logistic")):
            model = Remembering(data.taxonomy, loss=loss, l1=L1[name], random_state=bench.seed)
            _, seconds = cpu_timed(functools.partial(model.fit, data.X, data.Y))
            rows += [[loss, *row] for row in decoded(model, data, seconds)]
        columns = {"loss": "", "decoding": "", "precision": ".4f", "recall": ".4f", "F1": ".4f>"}
        columns |= {"HML is ahead by": ".4f", "standard error": ".4f"}
        return Figures(columns | {"fit s, both stages": ".3g<"}, rows)

    return measure


class Remembering(HierarchicalMultilabelClassifier):
    """Keeps the held-out scores and labels that stage two learns from."""

    held_out_sets: tuple[np.ndarray, np.ndarray]

    def _begin_search(
        self, scores: np.ndarray, truth: np.ndarray, start: np.ndarray, progress: Progress
    ) -> WeightSearch:
        search = super()._begin_search(scores, truth, start, progress)
        taken = with_leaves(scores, self.taxonomy_) if search.data.takes_in_leaves else scores
        self.held_out_sets = (taken, truth)
        return search


def decoded(model: Remembering, data: Rows, seconds: float) -> list[list[Cell]]:
    tree, u, truth = data.taxonomy, model.label_scores(data.X_test), data.Y_test.toarray()
    held_out = model.held_out_sets
    decoders: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
        "FLAT": lambda u, phi: u >= phi,
        "Leaf Reduce": lambda u, phi: leaf_reduce(u, tree, phi),
        "Root Map": lambda u, phi: root_map(u, tree, phi),
    }
    hml = model.predict(data.X_test).toarray().astype(bool)
    rows: list[list[Cell]] = []
    for title, decode in decoders.items():
        rows.append([f"{title}, 0.5", *beside(truth, decode(u, 0.5), hml), None])
        for unit in ("one", "row"):
            own, scores = (part / row_sizes(part, unit) for part in (u, held_out[0]))
            best = tuned(lambda phi: f1_of(held_out[1], decode(scores, phi)))  # noqa: B023
            how = "tuned" if unit == "one" else "tuned, of the row's norm"
            rows.append([f"{title}, {how}", *beside(truth, decode(own, best), hml), None])
    return [*rows, ["HML", *quality(truth, hml), None, None, seconds]]


def tuned(value: Callable[[float], float]) -> float:
    """The threshold of the largest value."""
    return float(max(np.linspace(0.02, 0.8, 79), key=value))


def f1_of(truth: np.ndarray, found: np.ndarray) -> float:
    groups = RowGroups.make(len(truth), 1)
    return float(
        METRICS["f1_samples"](count_sets(found, truth, groups), Truth.of(truth, groups))[0]
    )


def beside(truth: np.ndarray, found: np.ndarray, hml: np.ndarray) -> list[Cell]:
    """Quality, by how much HML's F1 is above it, and the error of that over rows."""
    lead = row_f1(truth, hml) - row_f1(truth, found)
    return [*quality(truth, found), float(lead.mean()), float(lead.std() / np.sqrt(len(lead)))]


def row_f1(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    sizes = truth.sum(axis=1) + found.sum(axis=1)
    return np.asarray(2 * (truth & found).sum(axis=1) / np.maximum(1, sizes))


def quality(truth: np.ndarray, found: np.ndarray) -> list[Cell]:
    """Precision, recall and F1 of each row's set, averaged over rows."""
    hits = (truth & found).sum(axis=1)
    precision = float((hits / np.maximum(1, found.sum(axis=1))).mean())
    recall = float((hits / np.maximum(1, truth.sum(axis=1))).mean())
    return [precision, recall, f1_of(truth, found)]


def curves(bench: Bench) -> Figures:
    """Each metric maximised on held-out rows; all of them on test rows, by stage."""
    data = rows_of(bench, "rcv1_dev", is_single=False)
    truth = data.Y_test.toarray()
    rows: list[list[Cell]] = []
    for metric in bench.some(("f1_samples", "jaccard", "hamming")):
        how = GroupWeights("derivative_free")
        model = HierarchicalMultilabelClassifier(
            data.taxonomy, l1=L1["rcv1_dev"], metric=metric, group_weights=how,
            random_state=bench.seed,
        ).fit(data.X, data.Y)  # fmt: skip
        u = model.label_scores(data.X_test)
        u = u / row_sizes(u, model.unit_)
        trace = model.trace_
        for at in shown_steps(trace["stage"]):
            sets = hierarchy_support(u, data.taxonomy, model.phi_trace_[at])
            test = [f1_samples(truth, sets), jaccard_samples(truth, sets)]
            done: list[Cell] = [STAGES[int(trace["stage"][at])], int(trace["n_evaluations"][at])]
            found = [float(trace["score"][at]), *test, 1 - hamming_loss(truth, sets)]
            rows.append([metric, model.unit_, *done, *found])
    columns = {"maximised": "", "unit": "", "after": "", "evaluations": "d", "held out": ".4f>"}
    columns |= {"test F1": ".4f>", "test Jaccard": ".4f>", "test 1 - Hamming": ".4f>"}
    return Figures(columns, rows)


#: Names of the stages of a search.
STAGES = ("one weight", "levels", "labels", "derivative-free")


def shown_steps(stages: np.ndarray) -> list[int]:
    """The last step of each stage, and three inside the last stage."""
    last = [int(np.flatnonzero(stages == stage)[-1]) for stage in np.unique(stages)]
    inside = np.flatnonzero(stages == stages[-1])
    return sorted({*last, *inside[np.linspace(0, len(inside) - 1, 4).astype(int)].tolist()})


# --- stage one with the squared loss -----------------------------------------------------------


def shared_pass(bench: Bench) -> Figures:
    """All labels from X'X beside a solve on the rows for each, and which the rule takes."""
    rows: list[list[Cell]] = []
    options = TaskOptions("squared", True, 1e-4, None, 1)
    for title, (X, Y) in shared_cases(bench).items():
        columns = as_columns(X)
        lists = np.split(Y.indices, Y.indptr[1:-1])
        scale = float(np.sqrt((X.multiply(X) if sp.issparse(X) else X * X).mean()))
        for share in (0.05, 0.005):  # of the deviation of an entry
            tasks = [BinaryTask(columns, own, share * scale, "auto") for own in lists]
            laps = [
                cpu_timed(functools.partial(way, tasks, options, Progress()))[1]
                for way in (solve_tasks, solve_squeezed)
            ]
            chosen = "X'X" if is_squeezing_cheaper(columns, len(tasks)) else "rows"
            sizes: list[Cell] = [X.shape[0], X.shape[1], len(tasks), share]
            rows.append([title, *sizes, *laps, laps[0] / laps[1], chosen])
    columns_of = {"data": "", "rows": "d", "features": "d", "labels": "d", "l1": ".3g"}
    columns_of |= {"by rows, s": ".3g<", "by X'X, s": ".3g<", "ratio": ".2f", "rule": ""}
    return Figures(columns_of, rows)


#: Rows, features, share of entries that are not zero, and labels.
MADE = (
    (1_000, 800, 1.0, 20),
    (10_000, 80, 1.0, 50),
    (2_000, 500, 1.0, 50),
    (20_000, 200, 0.05, 100),
    (20_000, 500, 0.05, 20),
    (5_000, 500, 0.02, 50),
)


def shared_cases(bench: Bench) -> dict[str, tuple[Any, sp.csc_matrix]]:
    """Real features dense and sparse, and made ones between; 100 labels at the most."""
    cases = {}
    for name in bench.some(("hmc_cellcycle_fun", "rcv1_dev")):
        data = rows_of(bench, name, is_single=False)
        cases[name] = (data.X, data.Y[:, : bench.size(100, 10)].tocsc())
    rng = np.random.default_rng(bench.seed)
    for n, d, density, n_labels in bench.some(MADE):
        X = rng.normal(size=(n, d))
        X = X if density == 1.0 else sp.csr_matrix(X * (rng.random((n, d)) < density))
        weights = rng.normal(size=(d, n_labels)) * (rng.random((d, n_labels)) < 10 / d)
        z = X @ weights + 0.5 * rng.normal(size=(n, n_labels))
        Y = sp.csc_matrix(z > np.quantile(z, 0.9, axis=0))
        cases[f"made, {n} x {d}, {density:.0%} filled"] = (X, Y)
    return cases


# --- the projection ----------------------------------------------------------------------------


def projection(bench: Bench) -> Figures:
    """Labels per second of one thread while the number of labels grows."""
    rng = np.random.default_rng(bench.seed)
    sizes = bench.some((1_000, 10_000, 100_000, 1_000_000), 2)
    rows: list[list[Cell]] = []
    for title, dtype in (("float32", np.float32), ("float64", np.float64)):
        rates, seconds = [], []
        for n in sizes:
            parents = np.concatenate([[-1], (rng.random(n - 1) * np.arange(1, n)).astype(int)])
            taxonomy = Taxonomy(parents.tolist())
            u = rng.normal(size=(max(1, 4_000_000 // n), n)).astype(dtype)
            project = functools.partial(project_hierarchy, u, taxonomy, 0.1)
            lap = min(cpu_timed(project)[1] for _ in range(3))
            seconds.append(lap / len(u))
            rates.append(1e-6 * u.size / lap)
        rows.append([title, *rates, fit_exponent(sizes, seconds)])
    columns = {"type": ""} | {f"{n:,} labels": ".0f>" for n in sizes}
    return Figures(columns | {"exponent of a row's time": ".2f"}, rows)


# --- flat or not -------------------------------------------------------------------------------

MOST_ROWS, MOST_TEST_ROWS = 1000, 1000
N_FOLDS = 3


def flat_or_not(bench: Bench) -> Figures:
    """PPD-Sparse without a taxonomy beside HiClass and HML that learn by the same PPD-Sparse."""
    rows: list[list[Cell]] = []
    for name in bench.some(tuple(TAXONOMIES)):
        data = TAXONOMIES[name](bench.data)
        was_seen = "yes" if name in LOOKED_AT else "no"
        for task, measure in (("one label", one_label), ("sets", sets)):
            part = data.with_one_path() if task == "one label" else data
            part = some_rows(part, bench.size(MOST_ROWS, 300), bench.seed)
            found = bench.once(
                {"data": name, "task": task}, functools.partial(measure, part, bench.seed)
            )
            ours = found[2] if found[3] is None else found[3]
            lead = ours - found[0]
            rows.append([name, was_seen, task, part.X.shape[0], *found[:4], lead, *found[4:]])
    columns = {"data": "", "looked at": "", "task": "", "rows": "d", "flat": ".4f>"}
    columns |= {"top down, greedy": ".4f>", "by the taxonomy": ".4f>", "blend": ".4f>"}
    return Figures(columns | {"lead over flat": ".4f", "flat s": ".3g<", "ours s": ".3g<"}, rows)


def some_rows(data: Rows, n_rows: int, seed: int) -> Rows:
    """At most so many random rows to learn from and to be judged by."""
    rng = np.random.default_rng(seed)
    train, test = (
        np.sort(rng.permutation(X.shape[0])[:most])
        for X, most in ((data.X, n_rows), (data.X_test, MOST_TEST_ROWS))
    )
    X, X_test = (sp.csr_matrix(X, dtype=np.float32) for X in (data.X[train], data.X_test[test]))
    return Rows(data.taxonomy, X, data.Y[train], X_test, data.Y_test[test])


def one_label(data: Rows, seed: int) -> list[float | None]:
    """Hierarchical F1 of the best class, of greedy steps, of paths and of a blend; seconds."""
    names, (y, y_test) = data.taxonomy.names, data.ends
    ppd = PPDSparseClassifier(random_state=seed)
    flat, flat_seconds = cpu_timed(functools.partial(ppd.fit, data.X, names[y]))
    nodes = HierarchicalClassifier(data.taxonomy, estimator=PPDSparseClassifier(random_state=seed))
    nodes.fit(data.X, names[y])
    blend = HierarchicalClassifier(
        data.taxonomy,
        strategy="blend",
        decoding="expected_f1",
        estimator=PPDSparseClassifier(random_state=seed),
    )
    _, seconds = cpu_timed(functools.partial(blend.fit, data.X, names[y]))
    best = nodes.predict(data.X_test)
    greedy = nodes.set_params(decoding="greedy").predict(data.X_test)
    answers = [flat.predict(data.X_test), greedy, best, blend.predict(data.X_test)]
    found = [hierarchical_f1(names[y_test], answer, data.taxonomy) for answer in answers]
    return [*found, flat_seconds, seconds]


def sets(data: Rows, seed: int) -> list[float | None]:
    """Hierarchical F1 of flat sets by a tuned threshold, and of HML for it; seconds."""
    ends = most_specific(data)
    held_out = np.zeros(ends.shape, dtype=np.float32)
    fold = np.random.default_rng(seed).integers(N_FOLDS, size=len(held_out))
    for k in range(N_FOLDS):
        held_out[fold == k] = flat_margins(
            data.X[fold != k], ends[fold != k], data.X[fold == k], seed
        )
    margins, flat_seconds = cpu_timed(
        functools.partial(flat_margins, data.X, ends, data.X_test, seed)
    )
    levels = [*np.linspace(-1, 1, 41), *np.quantile(held_out.max(axis=1), np.linspace(0, 0.5, 11))]
    choices = [(level, least) for level in levels for least in (True, False)]
    best = max(choices, key=lambda how: set_f1(data.taxonomy, data.Y, held_out, *how))
    flat = set_f1(data.taxonomy, data.Y_test, margins, *best)
    model = HierarchicalMultilabelClassifier(
        data.taxonomy,
        estimator=PPDSparseClassifier(random_state=seed),
        metric="f1_micro",
        random_state=seed,
    )
    _, seconds = cpu_timed(functools.partial(model.fit, data.X, data.Y))
    found = hierarchical_f1(data.Y_test, model.predict(data.X_test), data.taxonomy)
    return [flat, None, found, None, flat_seconds, seconds]


def inner_labels(bench: Bench) -> Figures:
    """Records at inner labels: whether these can be predicted, and margins of nodes."""
    data = gnd(bench.data, "ddc", 8000)
    n, n_test, names = bench.size(2500, 300), bench.size(1500, 100), data.taxonomy.names
    y, y_test = (names[ends] for ends in data.ends)
    rows: list[list[Cell]] = []
    entrants: dict[str, dict[str, Any]] = {
        "sparse logistic, mandatory leaves": {"leaf": "mandatory"},
        "sparse logistic": {},
        "LinearSVC, greedy": {"estimator": LinearSVC(), "decoding": "greedy"},
        "LinearSVC, best path": {"estimator": LinearSVC()},
    }
    for title, settings in entrants.items():
        model = HierarchicalClassifier(data.taxonomy, C=10.0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, seconds = cpu_timed(functools.partial(model.fit, data.X[:n], y[:n]))
        found = model.predict(data.X_test[:n_test])
        exact = float((found == y_test[:n_test]).mean())
        f1 = hierarchical_f1(y_test[:n_test], found, data.taxonomy)
        rows.append([title, exact, f1, seconds])
    return Figures({"nodes": "", "exact": ".4f>", "hierarchical F1": ".4f>", "fit s": ".3g<"}, rows)


def many_nodes(bench: Bench) -> Figures:
    """HML on 15,000 rows and 1,986 labels beside one flat fit of the same PPD-Sparse."""
    data = gnd(bench.data, "bk", bench.size(15_000, 300))
    X = data.X.astype(np.float32)
    ppd = PPDSparseClassifier(random_state=bench.seed)
    _, flat = cpu_timed(functools.partial(ppd.fit, X, most_specific(data)))
    model = HierarchicalMultilabelClassifier(
        data.taxonomy, estimator=ppd, metric="f1_micro", random_state=bench.seed
    )
    _, ours = cpu_timed(functools.partial(model.fit, X, data.Y))
    f1 = hierarchical_f1(data.Y_test, model.predict(data.X_test.astype(np.float32)), data.taxonomy)
    row: list[Cell] = [X.shape[0], data.taxonomy.n_labels, flat, ours, ours / flat, f1]
    columns = {"rows": "d", "labels": "d", "flat fit s": ".3g<", "HML fit s": ".3g<"}
    return Figures(columns | {"ratio": ".1f<", "hierarchical F1": ".4f>"}, [row])


def most_specific(data: Rows) -> sp.csr_matrix:
    """The labels of training rows without those that have another one below them."""
    Y = data.Y.astype(np.int64)
    above = (Y @ data.taxonomy.parent_matrix.astype(np.int64)).astype(bool)
    ends = sp.csr_matrix(Y - Y.multiply(above))
    ends.eliminate_zeros()
    return ends


def flat_margins(X: Any, ends: sp.csr_matrix, X_new: Any, seed: int) -> np.ndarray:
    """Margins of PPD-Sparse; those of labels without rows are below all others."""
    model = PPDSparseClassifier(random_state=seed).fit(X, ends)
    found = np.asarray(model.decision_function(X_new))
    found[:, np.diff(ends.tocsc().indptr) == 0] = -9.0
    return found


def set_f1(taxonomy: Taxonomy, Y: Any, margins: np.ndarray, level: float, least: bool) -> float:
    """Hierarchical F1 of labels above a threshold, and of the best one of each row if `least`."""
    on = margins >= level
    if least:
        on[np.arange(len(on)), margins.argmax(axis=1)] = True
    return hierarchical_f1(Y, sp.csr_matrix(on), taxonomy)


RACE = (
    "CPU seconds of one thread. All entrants have the same C; the solvers of HiClass end at a "
    "relative gap of 1e-4, liblinear at its tol of 1e-4. After > the seconds at which a run was "
    "stopped."
)
SETS = (
    "Means over test rows. All decodings have the same scores; tuned: with the threshold that is "
    "best on the held-out scores that HML learns from; of the row's norm: the threshold is a "
    "share of the norm of the row's scores, as HML's weights can be. The standard error is that of "
    "the lead over test rows. Seconds are CPU seconds of one thread."
)
TABLES = [
    *(Table(f"hiclass-{n}", f"HiClass on {n}", RACE, race(n)) for n in SINGLE_LABEL),
    Table(
        "path-products",
        "How a step of a path is counted",
        "Five folds of the training rows of each set. A step is the probability of a child against "
        "its siblings, divided by a power of their sum; 0.5 is what `HierarchicalClassifier` does.",
        path_products,
    ),
    Table(
        "threads",
        "HiClass on two threads",
        "Elapsed seconds, the best of fifteen fits in turns (20news: of five) on a machine that "
        "others use as well; by nodes: the speed-up of 2 and of 8 threads that take the longest "
        "model left each time, from the seconds of the models alone.",
        threads,
    ),
    Table(
        "cost-model",
        "Which solver serves a node",
        "Seconds of a node are a sum of counts of operations; m is the smaller of rows and "
        "features. The weights come from all four data sets (an eighth of the rows of 20news). By "
        "the others: fitted without this set, and then asked for its nodes. The last column "
        "divides the seconds of the chosen solvers by those of the fastest of each node, which on "
        "nodes of some microseconds is chance.",
        cost_model,
    ),
    *(Table(f"hml-{n}", f"HML on {n}", SETS, sets_of_labels(n)) for n in MULTILABEL),
    Table(
        "shared-pass",
        "Stage one with the squared loss: all labels from one pass",
        "CPU seconds of one thread for the models of all labels, by a solve on the rows for each, "
        "and by X'X and as many rows as it has rank. l1 in units of the root mean square of X.",
        shared_pass,
    ),
    Table(
        "curves",
        "Learning curves of stage two",
        "rcv1_dev, logistic loss: steps of the search, on held-out and on test rows.",
        curves,
    ),
    Table(
        "flat-or-not",
        "Flat, or by the taxonomy",
        "Hierarchical F1 on test rows; all learn by PPD-Sparse with its defaults, at most 1,000 "
        "rows. One label: the best class of one fit, steps down the tree, the best path, and "
        "`strategy='blend'` with `decoding='expected_f1'`. Sets: one threshold, with or without a "
        "label for each row, that is best for hierarchical F1 on held-out rows, and HML "
        "(`metric='f1_micro'`). Methods were tuned while looking at the test rows of some of the "
        "sets. Seconds are CPU seconds of one thread.",
        flat_or_not,
    ),
    Table(
        "inner-labels",
        "Labels at inner nodes, and margins",
        "Records of gnd under Dewey classes of up to four digits, the first 2,500 with the "
        "deepest of their labels, C = 10. Seconds are CPU seconds of one thread.",
        inner_labels,
    ),
    Table(
        "many-nodes",
        "HML on many rows and labels",
        "Records of gnd under the Basisklassifikation. CPU seconds of one thread.",
        many_nodes,
    ),
    Table(
        "projection",
        "The projection",
        "Million labels per second of one thread, best of three, on random trees.",
        projection,
    ),
]
