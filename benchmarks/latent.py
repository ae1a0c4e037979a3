"""Latent features and max-cut: quality and CPU seconds, this library and its rivals.

    python benchmarks/latent.py --only synthetic --json benchmarks/results/latent.json
    python benchmarks/latent.py --resume --json benchmarks/results/latent.json \\
        --markdown docs/measured/latent.md

Every run is in a process of its own with one thread. Binary factorisations X = Z W without an
intercept are judged by the root mean square of X - Z W, which the benchmark computes, at each K.
Rivals with random starts repeat them and keep their best; they have as many CPU seconds at each K
as this library took there, at least SUBLEARN_BENCHMARK_BUDGET (4). The rivals are the benchmark's
own code, in judges/binary_factors.py. With SUBLEARN_BENCHMARK_RUNS, a file, runs of real matrices
are kept there one by one, so that a table that takes many minutes can go on after an interruption.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from harness.entrant import Entrant
from harness.figures import Cell, Figures, Measurement, main
from harness.growth import fit_exponent
from harness.machine import commit
from harness.problem import Split
from harness.runner import Conditions, Outcome, run_all

SCRIPTS = Path(__file__).resolve().parent / "entrants" / "latent"
BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_BUDGET", "4"))
SLOW_BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_SLOW_BUDGET", "120"))
_runs = os.environ.get("SUBLEARN_BENCHMARK_RUNS")
RUNS = Path(_runs) if _runs else None
SIZES = (4, 10, 20, 35, 50)
RIVALS = ("bp_means", "gibbs", "variational", "exhaustive")
NOTHING = {"nothing": np.zeros(1)}

#: n, d, K, noise and pixels of a feature in the recipes of table 1 of the paper.
RECIPES: Mapping[str, tuple[int, int, int, float, int]] = {
    "Syn0": (100, 196, 4, 0.0, 8),
    "Syn1": (1000, 1000, 35, 0.01, 1000),
    "Syn2": (1000, 900, 14, 0.1, 49),
    "Syn3": (1000, 900, 35, 0.1, 36),
}
REAL = ("lfl_tabletop", "lfl_yale", "lfl_mnist1000", "lfl_yeast", "lfl_blocks")


# --- data --------------------------------------------------------------------------------------


def recipe(n: int, d: int, k: int, noise: float, n_pixels: int, seed: int) -> Split:
    """Features that are square patches of normal numbers in an image, half of them in each row."""
    rng = np.random.default_rng(seed)
    W = np.zeros((k, d))
    height, side = int(np.ceil(np.sqrt(n_pixels))), int(np.sqrt(d))
    for feature in W:
        if n_pixels == d:
            feature[:] = rng.normal(size=d)
            continue
        image = np.zeros((side, side))
        top, left = rng.integers(0, side - height + 1, size=2)
        image[top : top + height, left : left + height] = rng.normal(size=(height, height))
        feature[: side * side] = image.ravel()
    Z = (rng.random((n, k)) < 0.5).astype(np.int8)
    X = Z @ W + noise * rng.normal(size=(n, d))
    return Split({"X": X}, NOTHING, {"X": X, "Z": Z, "W": W})


def real(directory: Path, name: str) -> Split:
    """One of the authors' matrices."""
    (path,) = (directory / name).glob("*.mat")
    content = scipy.io.loadmat(path)
    X = np.asarray(content["data" if "data" in content else "pics"], dtype=np.float64)
    return Split({"X": X}, NOTHING, {"X": X})


def random_graph(n: int, n_edges: int, seed: int) -> sp.csr_matrix:
    """Edges of weight 1 between random pairs."""
    ends = np.random.default_rng(seed).integers(0, n, size=(n_edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    half = sp.coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    return ((half + half.T) > 0).astype(np.float64).tocsr()


def torus(height: int, width: int, seed: int) -> sp.csr_matrix:
    """A grid whose borders meet, weights -1 and 1."""
    at = np.arange(height * width).reshape(height, width)
    ends = np.vstack([np.c_[at.ravel(), np.roll(at, 1, axis).ravel()] for axis in (0, 1)])
    weights = np.random.default_rng(seed).choice([-1.0, 1.0], size=len(ends))
    half = sp.coo_matrix((weights, (ends[:, 0], ends[:, 1])), shape=(at.size, at.size)).tocsr()
    return (half + half.T).tocsr()


GRAPHS: Mapping[str, Callable[[int], sp.csr_matrix]] = {
    "random, 800 vertices, 19,000 edges": lambda seed: random_graph(800, 19176, seed),
    "random, 7,000 vertices, 17,000 edges": lambda seed: random_graph(7000, 17148, seed),
    "torus, 20,000 vertices, weights -1 and 1": lambda seed: torus(100, 200, seed),
}


# --- judges ------------------------------------------------------------------------------------


def judge_features(truth: dict[str, Any], answer: dict[str, Any]) -> dict[str, float]:
    """RMSE to the data and, if there is a truth, to it; wrong bits of the best matches."""
    fit = answer["b"] + answer["Z"] @ answer["W"]
    out = {"rmse": float(np.sqrt(np.square(truth["X"] - fit).mean()))}
    if "Z" in truth:
        clean = truth["Z"] @ truth["W"]
        out["rmse_to_truth"] = float(np.sqrt(np.square(clean - fit).mean()))
        out["hamming"] = hamming(np.asarray(answer["Z"], float), np.asarray(truth["Z"], float))
    return out


def hamming(Z: np.ndarray, truth: np.ndarray) -> float:
    """Share of wrong bits, each true column matched with the closest found one."""
    agreements = Z.T @ truth
    distances = Z.sum(axis=0)[:, None] + truth.sum(axis=0)[None, :] - 2 * agreements
    return float(distances.min(axis=0).sum() / truth.size)


def judge_cut(truth: dict[str, Any], answer: dict[str, Any]) -> dict[str, float]:
    """Value of the relaxation at the vectors, the cut, and their distance to our bound."""
    W, V = truth["graph"], answer["vectors"]
    y = 2.0 * np.asarray(answer["side"], dtype=float) - 1.0
    relaxed = 0.25 * float(W.sum() - (V * (W @ V)).sum())
    cut = 0.25 * float(W.sum() - y @ (W @ y))
    bound = float(answer["bound"])
    return {"relaxed": relaxed, "cut": cut, "bound": bound, "gap": (bound - relaxed) / relaxed}


# --- runs --------------------------------------------------------------------------------------


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_one(
    problem: str, split: Split, entrant: Entrant, judge: Any, seed: int, cpu: float = 600.0
) -> Outcome:
    """One entrant, one run."""
    conditions = Conditions(seed=seed, timeout_seconds=20 * cpu, cpu_seconds=cpu)
    (outcome,) = run_all(problem, split, [entrant], judge, conditions, announce)
    if outcome.error is not None:
        announce(f"  {outcome.error}")
    return outcome


def ours(n_components: Any, **settings: Any) -> Entrant:
    settings = {"n_components": n_components, **settings}
    return Entrant("sublearn", "main", SCRIPTS / "sublearn_features.py", settings)


def rival(method: str, n_components: int, seconds: float = BUDGET) -> Entrant:
    settings = {"method": method, "n_components": n_components, "seconds": seconds}
    return Entrant(method, "main", SCRIPTS / "judge_binary.py", settings)


def bound(method: str, n_components: int) -> Entrant:
    settings = {"method": method, "n_components": n_components}
    return Entrant(method, "main", SCRIPTS / "bound_factors.py", settings)


def synthetic(directory: Path, seed: int) -> Figures:
    """The paper's recipes at the true K, given and found, and the rivals."""
    rows: list[list[Cell]] = []
    for name, (n, d, k, noise, n_pixels) in RECIPES.items():
        split = recipe(n, d, k, noise, n_pixels, seed)
        floor = noise * np.sqrt((k + 1) / n)
        entrants: list[tuple[str, Entrant]] = [
            ("sublearn", ours(k)),
            ("sublearn, K by the gap", ours("gap")),
            ("sublearn, no intercept", ours(k, fit_intercept=False)),
            *((method, rival(method, k)) for method in RIVALS),
        ]
        for title, entrant in entrants:
            found = run_one(name, split, entrant, judge_features, seed)
            rows.append([name, title, *figures(found, "hamming", "rmse", "rmse_to_truth"), floor,
                         found.figure("fit_cpu_seconds")])  # fmt: skip
    columns = {"data": "", "method": "", "Hamming error": ".4f", "RMSE to data": ".4f",
               "RMSE to truth": ".5f", "floor": ".5f", "CPU s": ".2f"}  # fmt: skip
    return Figures(columns, rows)


def figures(outcome: Outcome, *names: str) -> list[Cell]:
    return [outcome.figure(name) for name in names]


def factorised(
    problem: str, split: Split, entrant: Entrant, seed: int
) -> tuple[float | None, float]:
    """RMSE and CPU seconds of a run, from the file of runs if this commit has made it before."""
    task = {"commit": commit()["commit"], "problem": problem, "method": entrant.name, "seed": seed}
    task |= {"settings": dict(entrant.settings)}
    lines = RUNS.read_text().splitlines() if RUNS and RUNS.exists() else []
    for run in map(json.loads, lines):
        if {name: run[name] for name in task} == task:
            return run["rmse"], run["seconds"]
    found = run_one(problem, split, entrant, judge_features, seed)
    error, seconds = found.figure("rmse"), found.figure("fit_cpu_seconds") or 0.0
    if RUNS:
        with RUNS.open("a") as file:
            print(json.dumps(task | {"rmse": error, "seconds": seconds}), file=file)
    return error, seconds


def factorisations(name: str) -> Callable[[Path, int], Figures]:
    """RMSE at each K of one real matrix, all methods."""

    def measure(directory: Path, seed: int) -> Figures:
        split = real(directory, name)
        X = split.train["X"]
        ours_took = dict.fromkeys(SIZES, 0.0)  # CPU seconds, which rivals get as well
        methods: dict[str, Callable[[int], Entrant]] = {
            "sublearn": lambda k: ours(k, fit_intercept=False),
            **{
                method: (lambda k, method=method: rival(method, k, max(BUDGET, ours_took[k])))
                for method in RIVALS
            },
            "PCA (bound)": lambda k: bound("pca", k),
        }
        if (X >= 0).all():
            methods["NMF (not binary)"] = lambda k: bound("nmf", k)
        rows: list[list[Cell]] = []
        for title, entrant_of in methods.items():
            errors: list[Cell] = []
            seconds = dict.fromkeys(SIZES, 0.0)
            for k in SIZES:
                if k > min(X.shape) or (title == "exhaustive" and k > 10):
                    errors.append(None)
                    continue
                error, seconds[k] = factorised(f"{name}-{k}", split, entrant_of(k), seed)
                errors.append(error)
            if title == "sublearn":
                ours_took |= seconds
            rows.append([title, *errors, sum(seconds.values())])
        columns = {"method": ""} | {f"K = {k}": ".5f" for k in SIZES} | {"CPU s": ".1f"}
        return Figures(columns, rows)

    return measure


def max_cut(directory: Path, seed: int) -> Figures:
    """The semidefinite relaxation of max-cut, with SCS and Clarabel where 800 vertices let them."""
    rows: list[list[Cell]] = []
    for title, make in GRAPHS.items():
        graph = make(seed)
        split = Split({"graph": graph}, NOTHING, {"graph": graph})
        entrants = [Entrant("sublearn", "main", SCRIPTS / "sublearn_max_cut.py",
                            {"tol": 1e-5, "max_iter": 5000})]  # fmt: skip
        if graph.shape[0] == 800:
            for solver, options in (("SCS", {"eps": 1e-4}), ("CLARABEL", {})):
                settings = {"solver": solver, "options": options}
                entrants.append(
                    Entrant(f"cvxpy, {solver}", "main", SCRIPTS / "cvxpy_max_cut.py", settings)
                )
        first: float | None = None
        for entrant in entrants:
            found = run_one(title, split, entrant, judge_cut, seed, SLOW_BUDGET)
            seconds = found.figure("fit_cpu_seconds")
            first = seconds if first is None else first
            time_text, times = time_texts(found, first)
            bound_gap = found.figure("gap") if entrant is entrants[0] else None
            rows.append([title, entrant.name, found.figure("relaxed"), bound_gap,
                         found.figure("cut"), time_text, times])  # fmt: skip
    columns = {"graph": "", "method": "", "SDP value": ".2f", "bound above it": ".1e", "cut": ".0f",
               "CPU s": "", "times ours": ""}  # fmt: skip
    return Figures(columns, rows)


def time_texts(found: Outcome, first: float | None) -> tuple[str, str]:
    """CPU seconds and their ratio to ours; at least those after which it was stopped, if it was."""
    seconds = found.figure("fit_cpu_seconds")
    if found.status == "failed" or not first:
        return "fails", "-"
    sign, spent = ("> ", SLOW_BUDGET) if seconds is None else ("", seconds)
    return f"{sign}{spent:.3g}", f"{sign}{spent / first:.0f}"


def growth(directory: Path, seed: int) -> Figures:
    """Our seconds while one of N, D and K doubles."""
    base = {"N": 500, "D": 200, "K": 8}
    sizes = {"N": (500, 1000, 2000, 4000), "D": (200, 400, 800, 1600), "K": (4, 8, 16, 32)}
    rows: list[list[Cell]] = []
    for axis, values in sizes.items():
        seconds = []
        for value in values:
            at = base | {axis: value}
            split = recipe(at["N"], at["D"], at["K"], 0.1, at["D"], seed)
            found = run_one(f"{axis}={value}", split, ours(at["K"]), judge_features, seed)
            seconds.append(found.figure("fit_cpu_seconds") or np.nan)
        cells = [f"{value:,}: {second:.2f}" for value, second in zip(values, seconds, strict=True)]
        rows.append([axis, *cells, fit_exponent(values, seconds)])
    columns = {"axis": "", "size: CPU s": "", " ": "", "  ": "", "   ": "", "exponent": ".2f"}
    return Figures(columns, rows)


MEASUREMENTS = [
    Measurement(
        "synthetic", "Planted features",
        "Recipes of table 1 of the paper at the true K. The floor is what noise leaves of an "
        "estimate with the true codes.", synthetic,
    ),
    *(
        Measurement(
            name.removeprefix("lfl_"), f"{name}: RMSE by number of features",
            "X = Z W without an intercept. At each K random rivals have our CPU seconds, at least "
            f"{BUDGET:g}.",
            factorisations(name),
        )
        for name in REAL
    ),
    Measurement(
        "max-cut", "Max-cut",
        "Relaxation to 1e-5; after > the CPU seconds after which a run was stopped.", max_cut,
    ),
    Measurement(
        "growth", "Growth",
        "Dense features, N = 500, D = 200, K = 8 but for the axis that doubles.", growth,
    ),
]  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(main("Latent features", MEASUREMENTS))
