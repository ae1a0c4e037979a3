"""Sparse logistic regression: CPU seconds to a relative gap, this library and its rivals.

    python benchmarks/linear.py --only a9a basehock --json benchmarks/results/linear.json
    python benchmarks/linear.py --only growth
    python benchmarks/linear.py --records benchmarks/results/linear.json \\
        --markdown docs/measured/linear.md

Judge: mean logistic loss + l1 ||w||_1 without an intercept, l1 a share of the smallest one with
w = 0; every weight vector is judged by one function. The optimum F* is the least value that anybody
reached. Each solver is refitted with its tolerances from loose to tight; the cheapest fit with
F / F* - 1 at most 1e-3, 1e-6, 1e-9 counts. One thread, a process for each solver.
"""

from __future__ import annotations

import csv
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.environments import EnvironmentFailure, python_of
from harness.figures import Figures, Measurement, main
from harness.process import THREAD_VARIABLES
from harness.sweep import save_problem
from harness.synthetic import Documents, make_documents

from sublearn.linear import SparseLogisticRegression
from sublearn.optim import lhac, linear_objective
from sublearn.trace import Status

SCRIPTS = Path(__file__).resolve().parent / "entrants" / "linear"
SWEEP = Path(__file__).resolve().parent / "harness" / "sweep.py"

#: Name to environment and script. The first is ours and every ratio's own column.
ENTRANTS: Mapping[str, tuple[str, str]] = {
    "sublearn": ("main", "sublearn_newton.py"),
    "sublearn-lhac": ("main", "sublearn_lhac.py"),
    "skglm": ("skglm", "skglm_logistic.py"),
    "liblinear (scikit-learn)": ("main", "liblinear_sklearn.py"),
    "liblinear-official": ("liblinear", "liblinear_official.py"),
    "python-glmnet": ("glmnet", "glmnet_logit.py"),
    "adelie": ("adelie", "adelie_logit.py"),
    "celer": ("celer", "celer_logistic.py"),
    "saga (scikit-learn)": ("main", "saga_sklearn.py"),
}
SHARES = (0.1, 0.01)
GAPS = (1e-3, 1e-6, 1e-9)
#: CPU seconds after which no tighter tolerance is tried, and wall seconds after which all ends.
BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_BUDGET", "20"))
LIMIT = 10 * BUDGET

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


def race(load: Callable[[Path, int], Data]) -> Callable[[Path, int], Figures]:
    """All entrants on one set."""

    def measure(directory: Path, seed: int) -> Figures:
        X, y = load(directory, seed)
        rows: list[list[Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            save_problem(Path(folder), X, y)
            for share in SHARES:
                rows += raced(Path(folder), share * l1_max(X, y), share)
        columns = {"l1 / l1 max": "g", "solver": ""}
        for gap in GAPS:
            columns |= {f"s to {gap:g}": ".3f", f"ratio to best, {gap:g}": ".2f"}
        columns |= {"non-zeros": "d", "best gap": ".0e", "cold s": ".2f", "MB above data": ".0f"}
        return Figures(columns, rows)

    return measure


def l1_max(X: Any, y: np.ndarray) -> float:
    return float(np.abs(X.T @ y).max() / (2 * len(y)))


def raced(folder: Path, l1: float, share: float) -> list[list[Any]]:
    results = {name: swept(folder, l1, *entrant) for name, entrant in ENTRANTS.items()}
    fits = {name: result.get("fits", []) for name, result in results.items()}
    best = min(fit["objective"] for found in fits.values() for fit in found)
    seconds = {name: [to_gap(found, best, gap) for gap in GAPS] for name, found in fits.items()}
    fastest = [
        min((s[g] for s in seconds.values() if s[g]), default=None) for g in range(len(GAPS))
    ]
    rows = []
    for name, result in results.items():
        row: list[Any] = [share, name]
        for value, least in zip(seconds[name], fastest, strict=True):
            row += [value, value / least if value and least else None]
        last = fits[name][-1] if fits[name] else None
        closest = min((fit["objective"] for fit in fits[name]), default=None)
        row += [
            last["nnz"] if last else None,
            closest / best - 1 if closest else None,
            result.get("cold"),
            result.get("above_data_mb"),
        ]
        rows.append(row)
    return rows


def to_gap(fits: list[dict[str, Any]], best: float, gap: float) -> float | None:
    """Seconds of the cheapest fit that is close enough."""
    close = [fit["cpu_seconds"] for fit in fits if fit["objective"] <= best * (1 + gap)]
    return min(close, default=None)


def swept(folder: Path, l1: float, environment: str, script: str) -> dict[str, Any]:
    """What harness/sweep.py reports; what was done before a limit or an error counts."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    job = {
        "script": str(SCRIPTS / script),
        "directory": str(folder),
        "l1": l1,
        "budget": BUDGET,
        "enough": -np.inf,
        "result": str(result),
    }
    (folder / "job.json").write_text(json.dumps(job))
    try:
        command = [python_of(environment), str(SWEEP), str(folder / "job.json")]
        one_thread = dict.fromkeys(THREAD_VARIABLES, "1")
        done = subprocess.run(
            command, env={**os.environ, **one_thread}, timeout=LIMIT, capture_output=True, text=True
        )
        if done.returncode:
            print(f"{script}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    except (EnvironmentFailure, subprocess.TimeoutExpired) as error:
        print(f"{script}: {error}", file=sys.stderr)
    return json.loads(result.read_text()) if result.exists() else {}


# --- growth ---------------------------------------------------------------------------------------


def growth(directory: Path, seed: int) -> Figures:
    """Seconds to relative gap 1e-4 while one size doubles; the exponent of a fitted power."""
    series: dict[str, list[tuple[float, Data, float]]] = {
        "rows (dense)": [
            (n, correlated(directory, seed, n, 500), 0.05) for n in (4_000, 8_000, 16_000, 32_000)
        ],
        "features (dense)": [
            (d, correlated(directory, seed, 2_000, d), 0.05) for d in (1_000, 2_000, 4_000, 8_000)
        ],
        "rows (sparse)": [
            (n, text_like(directory, seed, n), 0.05) for n in (10_000, 20_000, 40_000, 80_000)
        ],
        "features (sparse)": [
            (d, text_like(directory, seed, d=d), 0.05) for d in (25_000, 50_000, 100_000, 200_000)
        ],
    }
    fixed = text_like(directory, seed)
    series["support (sparse)"] = [(s, fixed, s) for s in (0.2, 0.1, 0.05, 0.02, 0.01)]
    return Figures(
        {"what grows": "", "from": ",g", "to": ",g", "fit s, first": ".3f", "last": ".3f",
         "exponent of time": ".2f", "exponent of work": ".2f"},
        [grown(name, points) for name, points in series.items()],
    )  # fmt: skip


def grown(name: str, points: list[tuple[float, Data, float]]) -> list[Any]:
    sizes, seconds, work = [], [], []
    for size, (X, y), share in points:
        start = time.process_time()
        model = SparseLogisticRegression(l1=share * l1_max(X, y), tol=1e-4, fit_intercept=False)
        model.fit(X, y)
        seconds.append(time.process_time() - start)
        work.append(float(model.trace_["work"][-1]))
        sizes.append(np.count_nonzero(model.coef_) if name.startswith("support") else size)
    exponents = [np.polyfit(np.log(sizes), np.log(values), 1)[0] for values in (seconds, work)]
    return [name, float(sizes[0]), float(sizes[-1]), seconds[0], seconds[-1], *exponents]


def step(directory: Path, seed: int) -> Figures:
    """LHAC apart from values and gradients: nanoseconds per visit to a coordinate, N doubled."""
    rows = []
    for n in (1_000, 2_000, 4_000, 8_000):
        X, y = correlated(directory, seed, n, 1_000)
        objective = linear_objective(X, y)
        few, many = (timed_lhac(objective, X, y, budget) for budget in (20, 600))
        rows.append([n, 1e9 * (many[0] - few[0]) / (many[1] - few[1])])
    return Figures({"rows": ",d", "ns per coordinate step": ".0f"}, rows)


def timed_lhac(objective: Any, X: Any, y: np.ndarray, budget: int) -> tuple[float, int]:
    """CPU seconds, the least of five, and steps of eight iterations with this many passes each."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        solution = lhac(
            objective, np.zeros(X.shape[1]), 0.01 * l1_max(X, y), budget=budget, max_iter=8,
            tol=0.0, working_set=False,
        )  # fmt: skip
        seconds.append(time.process_time() - start)
    return min(seconds), int(solution.trace["n_steps"][-1])


def working_set(directory: Path, seed: int) -> Figures:
    """`lhac` with and without its working set, to a relative gap of 1e-6."""
    columns = {"data": "", "l1 / l1 max": "g", "non-zeros": "d"}
    for form in ("without", "with"):
        columns |= {f"s, {form}": ".3f", f"steps, {form}": "d", f"entries asked, {form}": ".1e"}
    rows = []
    for name in ("basehock", "rcv1sub1", "golub", "alon", "sparse", "dense"):
        X, y = SETS[name][1](directory, seed)
        for share in SHARES:
            runs = [asked_lhac(X, y, share * l1_max(X, y), flag) for flag in (False, True)]
            rows.append([name, share, runs[1][0], *runs[0][1:], *runs[1][1:]])
    return Figures(columns, rows)


def asked_lhac(X: Any, y: np.ndarray, l1: float, flag: bool) -> list[Any]:
    """Non-zeros, CPU seconds if the gap was reached, steps, entries of gradients asked for."""
    start = time.process_time()
    found = lhac(linear_objective(X, y), np.zeros(X.shape[1]), l1, max_iter=5000, working_set=flag)
    seconds = time.process_time() - start if found.status is Status.CONVERGED else None
    asked = float(found.trace["n_asked"].sum())
    return [int(np.count_nonzero(found.x)), seconds, found.n_iter, asked]


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
MEASUREMENTS = [Measurement(name, title, NOTE, race(load)) for name, (title, load) in SETS.items()]
MEASUREMENTS += [
    Measurement("growth", "Growth", "Work counts entries of X looked at.", growth),
    Measurement(
        "working_set",
        "LHAC with and without a working set",
        "CPU seconds of `lhac` to a relative gap of 1e-6; steps are its iterations.",
        working_set,
    ),
    Measurement("step", "A coordinate step of LHAC", "Without values and gradients.", step),
]

if __name__ == "__main__":
    raise SystemExit(main("Sparse logistic regression", MEASUREMENTS))
