"""Sparse logistic regression: CPU seconds to a relative gap, this library and its rivals.

Judge: mean logistic loss + l1 ||w||_1 without an intercept, l1 a share of the smallest one with
w = 0; every weight vector is judged by one function. The optimum F* is the least value that anybody
reached. Each solver is refitted with its tolerances from loose to tight; the cheapest fit with
F / F* - 1 at most 1e-3, 1e-6, 1e-9 counts. One thread, a process for each solver.
"""

from __future__ import annotations

import csv
import itertools
import lzma
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.bench import Bench
from harness.entrant import Entrant
from harness.growth import fit_exponent
from harness.problem import Split
from harness.runner import Case
from harness.synthetic import Documents, make_documents
from harness.table import Cell, Figures, Table
from harness.timing import cpu_timed

from sublearn.linear import SparseLogisticRegression
from sublearn.optim import LhacSettings, lhac, linear_objective
from sublearn.trace import Status


def entrant(
    name: str, script: str, tolerances: Sequence[float], environment: str = "main", **settings: Any
) -> Entrant:
    """With its tolerances from loose to tight, in its own unit."""
    sweep = [{"tol": tol} for tol in tolerances]
    return Entrant(name, f"linear/{script}.py", settings, environment=environment, sweep=sweep)


def powers(first: int, last: int, step: int = 1) -> list[float]:
    return [10.0**-k for k in range(first, last + 1, step)]


OURS = [1e-1, 1e-2, 3e-3, *powers(3, 9)]
#: The first is ours.
ENTRANTS = [
    entrant("sublearn", "sublearn_logistic", OURS, solver="newton"),
    entrant("sublearn-lhac", "sublearn_logistic", OURS, solver="lhac"),
    entrant("skglm", "skglm_logistic", powers(2, 8), "skglm"),
    entrant("liblinear (scikit-learn)", "sklearn_logistic", powers(1, 8), solver="liblinear"),
    entrant("liblinear-official", "liblinear_official", powers(1, 7), "liblinear"),
    entrant("python-glmnet", "glmnet_logit", powers(3, 11, 2), "glmnet"),
    entrant("adelie", "adelie_logit", powers(5, 13, 2), "adelie"),
    entrant("celer", "celer_logistic", powers(1, 7), "celer"),
    entrant("saga (scikit-learn)", "sklearn_logistic", powers(1, 6), solver="saga"),
]
SHARES = (0.1, 0.01)
GAPS = (1e-3, 1e-6, 1e-9)
#: CPU seconds after which no tighter tolerance is tried; a solver is stopped after ten times that.
LIMIT = 20.0

Data = tuple[Any, np.ndarray]


# --- data ---------------------------------------------------------------------------------------


def a9a(directory: Path, seed: int) -> Data:
    """Census income, N >> D."""
    return svmlight(directory / "a9a" / "a9a.xz")


def basehock(directory: Path, seed: int) -> Data:
    """Two newsgroups."""
    return svmlight(directory / "basehock" / "basehock.svm.xz")


def svmlight(path: Path) -> Data:
    from sklearn.datasets import load_svmlight_file

    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    return sp.csc_matrix(X), signs(y == y.max())


def rcv1(directory: Path, seed: int) -> Data:
    """The most frequent topic against the rest, D > N."""
    from sublearn.io import load_svmlight

    X, Y = load_svmlight(directory / "rcv1sub1" / "rcv1sub1.svm.xz", multilabel=True)
    Y = sp.csc_matrix(Y)
    return sp.csc_matrix(X, dtype=np.float64), signs(
        Y[:, np.diff(Y.indptr).argmax()].toarray().ravel() > 0
    )


def genes(name: str) -> Callable[[Path, int], Data]:
    """Expression values of few patients, logarithms of unit variance, D >> N."""

    def load(directory: Path, seed: int) -> Data:
        (path,) = (directory / f"gene_{name}").glob("*.csv.xz")
        with lzma.open(path, "rt") as file:
            rows = [row for row in csv.reader(file) if row]
        if not is_number(rows[0][-1]):
            rows = rows[1:]
        classes = np.array([row[0] for row in rows])
        values = np.array([[float(cell) for cell in row[1:]] for row in rows])
        values = np.log(np.maximum(values, 1.0)) if values.max() > 100 else values
        scale = values.std(axis=0)
        X = (values - values.mean(axis=0))[:, scale > 0] / scale[scale > 0]
        return np.asfortranarray(X), signs(classes == np.unique(classes)[0])

    return load


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def mnist(directory: Path, seed: int) -> Data:
    """The digit 8 against the rest, dense, N >> D; 20,000 rows."""
    images, digits = (
        idx(directory / "mnist" / f"train-{part}.xz")
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    X = images[:20_000].reshape(20_000, -1) / 255.0
    return np.asfortranarray(X), signs(digits[:20_000] == 8)


def idx(path: Path) -> np.ndarray:
    """The format of MNIST's files: type, number of axes, their lengths, the bytes."""
    with lzma.open(path) as file:
        content = file.read()
    shape = np.frombuffer(content, ">u4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def text_like(directory: Path, seed: int, n: int = 20_000, d: int = 50_000) -> Data:
    """Rows of words with a planted sparse model."""
    documents = Documents(n_train=n, n_test=2, n_features=d, words_per_document=100)
    X = sp.csc_matrix(make_documents(documents, seed).train["X"], dtype=np.float64)
    rng = np.random.default_rng(seed)
    common = np.argsort(-np.diff(X.indptr))[: min(4_000, d // 2)]
    w = np.zeros(d)
    w[rng.choice(common, 300, replace=False)] = rng.normal(0, 12, 300)
    z = X @ w
    return X, signs(rng.random(n) < 1 / (1 + np.exp(np.median(z) - z)))


def correlated(directory: Path, seed: int, n: int = 6_000, d: int = 2_000) -> Data:
    """Dense columns, each correlated by 0.7 with the one before, a planted sparse model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    w = np.zeros(d)
    w[rng.choice(d, min(100, d), replace=False)] = rng.normal(0, 1, min(100, d))
    z = X @ w
    return np.asfortranarray(X), signs(rng.random(n) < 1 / (1 + np.exp(-3 * z / z.std())))


def signs(is_positive: np.ndarray) -> np.ndarray:
    return np.where(is_positive, 1.0, -1.0)


# --- time to a gap --------------------------------------------------------------------------------


def race(load: Callable[[Path, int], Data]) -> Callable[[Bench], Figures]:
    """All entrants on one set."""

    def measure(bench: Bench) -> Figures:
        X, y = load(bench.data, bench.seed)
        n = bench.size(len(y), 3_000)
        X, y = (X[:n] if sp.issparse(X) else np.asfortranarray(X[:n])), y[:n]
        rows = [row for share in bench.some(SHARES) for row in raced(bench, X, y, share)]
        return Figures(gap_columns(), rows)

    return measure


def gap_columns() -> dict[str, str]:
    """Headings of the rows of `to_gaps`."""
    columns = {"l1 / l1 max": "g", "solver": ""}
    for gap in GAPS:
        columns |= {f"s to {gap:g}": ".3f<", f"ratio to best, {gap:g}": ".2f"}
    return columns | {
        "non-zeros": "d", "best gap": ".0e", "cold s": ".2f", "MB above data": ".0f<"
    }  # fmt: skip


def l1_max(X: Any, y: np.ndarray) -> float:
    return float(np.abs(X.T @ y).max() / (2 * len(y)))


def judge(truth: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    """The objective, the same for everybody."""
    X, y, w = truth["X"], truth["y"], answer["answer"].ravel().astype(np.float64)
    value = np.logaddexp(0.0, -y * (X @ w)).mean() + float(truth["l1"]) * np.abs(w).sum()
    return {"objective": float(value), "nnz": int(np.count_nonzero(w))}


def raced(bench: Bench, X: Any, y: np.ndarray, share: float) -> list[list[Cell]]:
    """A row for each entrant on the l1 penalty."""
    train = {"X": X, "y": y, "l1": np.float64(share * l1_max(X, y))}
    return to_gaps(bench, ENTRANTS, train, share, judge, tiny(sp.issparse(X)))


def to_gaps(
    bench: Bench, entrants: Sequence[Entrant], train: dict[str, Any], share: float, judge: Any,
    warm_up: dict[str, Any],
) -> list[list[Cell]]:  # fmt: skip
    """A row for each entrant; what was done before a limit or an error counts."""
    split = Split(train, {"nothing": np.zeros(1)}, train)
    case = Case(f"l1={share:g}", lambda: split, judge, warm_up=warm_up)
    limit = bench.limit(LIMIT)
    found = bench.compete(case, bench.chosen(entrants), limit, stop=10 * limit)
    best = min(lap["objective"] for outcome in found for lap in outcome.laps)
    rows: list[list[Cell]] = [[share, outcome.name] for outcome in found]
    for gap in GAPS:
        seconds = [outcome.cheapest("objective", most=best * (1 + gap)) for outcome in found]
        least = min((s for s in seconds if s), default=None)
        for row, own, outcome in zip(rows, seconds, found, strict=True):
            row += [outcome.end() if own is None else own, own / least if own and least else None]
    for row, outcome in zip(rows, found, strict=True):
        closest = min((lap["objective"] for lap in outcome.laps), default=None)
        n_left = outcome.figure("nnz")
        gap = None if closest is None else closest / best - 1
        ends = [outcome.figure(name) for name in ("cold_seconds", "above_data_mb")]
        row += [None if n_left is None else int(n_left), gap, *ends]
    return rows


def tiny(is_sparse: bool) -> dict[str, Any]:
    """A problem that takes no time itself: its first fit is the cold start."""
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((40, 6)))
    y = signs(X[:, 0] > 0)
    return {"X": sp.csc_matrix(X) if is_sparse else X, "y": y, "l1": np.float64(0.05)}


def growth(bench: Bench) -> Figures:
    """Seconds to relative gap 1e-4 while one size doubles; the exponent of a fitted power."""
    dense, sparse = (partial(make, bench.data, bench.seed) for make in (correlated, text_like))
    series: dict[str, tuple[Sequence[int], Callable[[int], Data]]] = {
        "rows (dense)": ((4_000, 8_000, 16_000, 32_000), lambda n: dense(n, 500)),
        "features (dense)": ((1_000, 2_000, 4_000, 8_000), lambda d: dense(2_000, d)),
        "rows (sparse)": ((10_000, 20_000, 40_000, 80_000), lambda n: sparse(n)),
        "features (sparse)": ((25_000, 50_000, 100_000, 200_000), lambda d: sparse(d=d)),
    }
    rows = []
    for name, (sizes, make) in bench.some(series.items()):
        chosen = bench.some(sizes, 2)
        rows.append(grown(name, chosen, [(make(size), 0.05) for size in chosen]))
    fixed = sparse(*bench.size((), (1_000, 2_000)))
    shares = (0.2, 0.1, 0.05, 0.02, 0.01)
    rows.append(grown("support (sparse)", None, [(fixed, share) for share in shares]))
    columns = {"what grows": "", "from": ",g", "to": ",g", "fit s, first": ".3f<", "last": ".3f<"}
    return Figures(columns | {"exponent of time": ".2f", "exponent of work": ".2f<"}, rows)


def grown(name: str, sizes: Any, points: Sequence[tuple[Data, float]]) -> list[Cell]:
    """A row; without `sizes` the non-zero weights are what grows."""
    found = []
    for (X, y), share in points:
        model = SparseLogisticRegression(l1=share * l1_max(X, y), tol=1e-4, fit_intercept=False)
        _, spent = cpu_timed(partial(model.fit, X, y))
        n_left = float(np.count_nonzero(model.coef_))
        found.append((n_left, spent, float(model.trace_["work"][-1])))
    support, seconds, work = zip(*found, strict=True)
    sizes = [*map(float, sizes or support)]
    exponents = [fit_exponent(sizes, costs) for costs in (seconds, work)]
    return [name, sizes[0], sizes[-1], seconds[0], seconds[-1], *exponents]


def step(bench: Bench) -> Figures:
    """LHAC apart from values and gradients: nanoseconds per visit to a coordinate, N doubled."""
    rows = []
    for n in bench.some((1_000, 2_000, 4_000, 8_000)):
        X, y = correlated(bench.data, bench.seed, n, 1_000)
        objective = linear_objective(X, y)
        few, many = (timed_lhac(objective, X, y, budget) for budget in (20, 600))
        rows.append([n, 1e9 * (many[0] - few[0]) / (many[1] - few[1])])
    return Figures({"rows": ",d", "ns per coordinate step": ".0f<"}, rows)


def timed_lhac(objective: Any, X: Any, y: np.ndarray, budget: int) -> tuple[float, int]:
    """CPU seconds, the least of five, and steps of eight iterations with this many passes each."""
    solve = partial(
        lhac, objective, np.zeros(X.shape[1]), 0.01 * l1_max(X, y), max_iter=8, tol=0.0,
        active_set=False, settings=LhacSettings(budget=budget),
    )  # fmt: skip
    laps = [cpu_timed(solve) for _ in range(5)]
    return min(seconds for _, seconds in laps), int(laps[0][0].trace["n_steps"][-1])


def active_set(bench: Bench) -> Figures:
    """`lhac` with and without its active set, to a relative gap of 1e-6."""
    columns = {"data": "", "l1 / l1 max": "g", "non-zeros": "d"}
    for form in ("without", "with"):
        columns |= {f"s, {form}": ".3f<", f"steps, {form}": "d", f"entries asked, {form}": ".1e<"}
    rows = []
    for name in bench.some(("basehock", "rcv1sub1", "golub", "alon", "sparse", "dense")):
        X, y = SETS[name][1](bench.data, bench.seed)
        for share in bench.some(SHARES):
            runs = [asked_lhac(X, y, share * l1_max(X, y), flag) for flag in (False, True)]
            rows.append([name, share, runs[1][0], *runs[0][1:], *runs[1][1:]])
    return Figures(columns, rows)


def asked_lhac(X: Any, y: np.ndarray, l1: float, flag: bool) -> list[Any]:
    """Non-zeros, CPU seconds if the gap was reached, steps, entries of gradients asked for."""
    objective, start = linear_objective(X, y), np.zeros(X.shape[1])
    found, seconds = cpu_timed(partial(lhac, objective, start, l1, max_iter=5000, active_set=flag))
    shown = seconds if found.status is Status.CONVERGED else None
    asked = float(found.trace["n_asked"].sum())
    return [int(np.count_nonzero(found.x)), shown, found.n_iter, asked]


SOLVERS = ("auto", "newton", "lhac", "interior_point")


def shaped(n: int, p: int, density: float, spread: float, seed: int) -> Data:
    """Normal entries, columns whose sizes spread over so many powers of ten."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density, "csc", random_state=rng, data_rvs=rng.standard_normal)
    X = X @ sp.diags(10 ** rng.uniform(-spread / 2, spread / 2, size=p))
    z = X[:, : max(p // 20, 3)].sum(axis=1)
    y = signs(np.ravel(z) + np.std(z) * rng.logistic(size=n) / 3 > 0)
    return (np.asfortranarray(X.toarray()) if density == 1 else sp.csc_matrix(X)), y


def choices(bench: Bench) -> Figures:
    """CPU seconds of each solver to its tolerance, and of "auto" beside the best of them."""
    shapes = itertools.product(
        bench.size((300, 3_000), (60, 100)), bench.size((100, 2_000), (20, 50)), (0.05, 1.0),
        (0.0, 2.0), (0.1, 0.003), (False, True),
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for n, p, density, spread, share, has_intercept in bench.some(shapes, 4):
        X, y = shaped(n, p, density, spread, bench.seed)
        times = []
        for solver in SOLVERS:
            model = SparseLogisticRegression(
                share * l1_max(X, y), solver=solver, fit_intercept=has_intercept
            )
            laps = [cpu_timed(partial(model.fit, X, y))[1] for _ in range(2)]
            times.append(min(laps))
        ratio = times[0] / min(times)
        rows.append([n, p, density, spread, share, str(has_intercept), *times, ratio])
    columns = {"rows": ",d", "columns": ",d", "density": "g", "spread": "g", "l1 / l1 max": "g"}
    columns |= {"intercept": ""} | {f"s, {name}": ".4f<" for name in SOLVERS}
    return Figures(columns | {"auto / best": ".2f<"}, rows)


SETS: Mapping[str, tuple[str, Callable[[Path, int], Data]]] = {
    "a9a": ("a9a: 32,561 rows, 123 features, sparse", a9a),
    "basehock": ("basehock: 1,993 rows, 4,862 features, sparse", basehock),
    "rcv1sub1": ("rcv1sub1: 6,000 rows, 47,236 features, sparse", rcv1),
    "golub": ("gene_golub: 72 rows, 7,129 features, dense", genes("golub")),
    "alon": ("gene_alon: 62 rows, 2,000 features, dense", genes("alon")),
    "mnist": ("mnist: 20,000 rows, 784 features, dense", mnist),
    "sparse": ("Generated words: 20,000 rows, 50,000 features", text_like),
    "dense": ("Generated, correlated: 6,000 rows, 2,000 features, dense", correlated),
}
NOTE = "CPU seconds of one thread to a relative gap; ratios to the fastest solver."
TABLES = [Table(name, title, NOTE, race(load)) for name, (title, load) in SETS.items()]
TABLES += [
    Table("growth", "Growth", "Work counts entries of X looked at.", growth),
    Table(
        "active_set",
        "LHAC with and without an active set",
        "CPU seconds of `lhac` to a relative gap of 1e-6; steps are its iterations.",
        active_set,
    ),
    Table(
        "auto",
        'solver="auto" and the others',
        "CPU seconds of a fit to a gap of 1e-6, the less of two; columns spread over so many "
        "powers of ten.",
        choices,
    ),
    Table("step", "A coordinate step of LHAC", "Without values and gradients.", step),
]
