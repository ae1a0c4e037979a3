"""Sparse inverse covariance: CPU seconds to a relative gap, this library and its rivals.

    python benchmarks/covariance.py --only gene_golub-800 --json benchmarks/results/covariance.json
    python benchmarks/covariance.py --resume --json benchmarks/results/covariance.json \\
        --markdown docs/measured/covariance.md

A problem is a data set, a number of variables (those of the largest variance, as correlations)
and an l1, chosen for the density of the solution. Every entrant is run with its tolerances from
loose to tight, each run in a process of its own with one thread, until one takes longer than
SUBLEARN_BENCHMARK_BUDGET CPU seconds (60). The benchmark computes the objective of what comes
back; the cheapest run within a relative gap of 1e-3, and of 1e-6, counts. The gap is taken to a
lower bound on the optimum, over the larger of the objective's size and the number of variables.
"""

from __future__ import annotations

import functools
import io
import lzma
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.entrant import Entrant
from harness.figures import Cell, Figures, Measurement, main
from harness.growth import fit_exponent
from harness.problem import Split
from harness.runner import Conditions, Outcome, run_all

SCRIPTS = Path(__file__).resolve().parent / "entrants" / "covariance"
TARGETS = (1e-3, 1e-6)
BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_BUDGET", "60"))
BOUND_TOL = 1e-7

#: Environment, script and settings to try, from loose to tight, of each entrant; the first is ours.
ENTRANTS: Mapping[str, tuple[str, str, list[dict[str, float | str]]]] = {
    "sublearn": ("main", "sublearn_inverse.py", [{"tol": 1e-3}, {"tol": 1e-6}]),
    "scikit-learn": (
        "main",
        "sklearn_glasso.py",
        [
            {"tol": 1e-1, "enet_tol": 1e-4},
            {"tol": 1e-2, "enet_tol": 1e-4},
            {"tol": 1e-4, "enet_tol": 1e-6},
        ],
    ),
    "gglasso": ("gglasso", "gglasso_admm.py", [{"tol": tol} for tol in (1e-4, 1e-6, 1e-8)]),
}

#: l1 by data set, number of variables and density of the solution in percent (off the diagonal).
#: 20 % was not reached from 800 variables on: the density hardly grows while l1 falls (west with
#: 800: 13 % at 0.04, 15 % at 0.015, both with tol 1e-2) and the fits get long; the densest
#: problems here are those of 0.04.
L1: Mapping[tuple[str, int, int], float] = {
    ("stockdata", 400, 1): 0.431,
    ("stockdata", 400, 5): 0.249,
    ("stockdata", 400, 20): 0.0274,
    ("gene_golub", 400, 1): 0.581,
    ("gene_golub", 400, 5): 0.241,
    ("gene_golub", 400, 20): 0.0373,
    ("gene_west", 400, 1): 0.504,
    ("gene_west", 400, 5): 0.275,
    ("gene_west", 400, 20): 0.0534,
    ("gene_golub", 800, 1): 0.609,
    ("gene_golub", 800, 5): 0.157,
    ("gene_golub", 800, 12): 0.04,
    ("gene_west", 800, 1): 0.529,
    ("gene_west", 800, 5): 0.2,
    ("gene_west", 800, 13): 0.04,
    ("gene_golub", 1600, 1): 0.529,
    ("gene_golub", 1600, 5): 0.0897,
    ("gene_west", 1600, 1): 0.477,
    ("gene_west", 1600, 5): 0.116,
}


# --- data --------------------------------------------------------------------------------------


@functools.cache
def read_rows(directory: Path, name: str) -> np.ndarray:
    """Logarithmic returns of stocks, or intensities of genes."""
    if name == "stockdata":
        with lzma.open(directory / name / "stockdata.csv.xz", "rt") as file:
            prices = np.loadtxt(io.StringIO(file.read()), delimiter=",", skiprows=1)
        return np.diff(np.log(prices), axis=0)
    with lzma.open(directory / name / f"{name.removeprefix('gene_')}.csv.xz", "rt") as file:
        return np.array([[float(value) for value in line.split(",")[1:]] for line in file])


def load(directory: Path, key: tuple[str, int, int], needs_bound: bool = True) -> Split:
    """Correlations of the variables with the largest variance, and what the judge knows."""
    name, n, _ = key
    rows = read_rows(directory, name)
    rows = rows[:, np.argsort(-rows.var(axis=0), kind="stable")[:n]]
    S = np.corrcoef(rows, rowvar=False)
    train = {"S": 0.5 * (S + S.T), "l1": np.float64(L1[key])}
    bound = optimum(train["S"], L1[key]) if needs_bound else np.float64(-np.inf)
    return Split(train, {"nothing": np.zeros(1)}, {**train, "bound": bound})


def optimum(S: np.ndarray, l1: float) -> np.float64:
    """A lower bound on the optimum: the dual value that sublearn reaches with a tight tolerance.

    It is the same for all entrants; were it wrong, good runs would show negative gaps.
    """
    from sublearn.linear import SparseInverseCovariance

    model = SparseInverseCovariance(l1, covariance="precomputed", tol=BOUND_TOL).fit(S)
    gap = model.certificate_ * max(abs(model.objective_), len(S))
    return np.float64(model.objective_ - gap)


def judge(truth: dict[str, np.ndarray], answer: dict[str, np.ndarray]) -> dict[str, float]:
    """Relative gap and density of a precision matrix, made symmetric first."""
    S, X = truth["S"], answer["precision"]
    X = 0.5 * (X + X.T)
    n_pairs = len(X) * (len(X) - 1)
    links = X[~np.eye(len(X), dtype=bool)]
    try:
        factor = np.linalg.cholesky(X)
    except np.linalg.LinAlgError:
        return {"gap": np.inf, "objective": np.inf, "density": 0.0}
    value = -2 * np.log(factor.diagonal()).sum() + (S * X).sum()
    value += float(truth["l1"]) * np.abs(links).sum()
    gap = (value - float(truth["bound"])) / max(abs(value), len(S))
    return {"gap": gap, "objective": value, "density": (links != 0).sum() / n_pairs}


# --- runs --------------------------------------------------------------------------------------


def race(name: str, n: int) -> Callable[[Path, int], Figures]:
    """All entrants on the problems with these variables."""

    def measure(directory: Path, seed: int) -> Figures:
        rows: list[list[Cell]] = []
        for key in (key for key in L1 if key[:2] == (name, n)):
            split = load(directory, key)
            found = {entrant: swept(split, key, entrant, seed) for entrant in ENTRANTS}
            rows += [row_of(key, entrant, outcomes, found) for entrant, outcomes in found.items()]
        columns = {"density": "", "solver": "", "l1": "g"}
        for target in TARGETS:
            columns |= {f"s to {target:g}": ".3g", f"ratio to ours, {target:g}": ".1f"}
        columns |= {"best gap": ".0e", "density found": ".3f", "MB above data": ".0f"}
        return Figures(columns, rows)

    return measure


def swept(split: Split, key: tuple[str, int, int], name: str, seed: int) -> list[Outcome]:
    """One entrant from loose to tight tolerances, until its time is up or it fails."""
    environment, script, tried = ENTRANTS[name]
    conditions = Conditions(seed=seed, timeout_seconds=10 * BUDGET, cpu_seconds=BUDGET)
    outcomes: list[Outcome] = []
    for settings in tried:
        entrant = Entrant(name, environment, SCRIPTS / script, settings)
        problem = "{}-{}-{}".format(*key)
        outcomes += run_all(problem, split, [entrant], judge, conditions, announce)
        if outcomes[-1].error is not None:
            announce(f"  {outcomes[-1].error}")
            break
        if (outcomes[-1].figure("gap") or 0.0) <= TARGETS[-1]:
            break
    return outcomes


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cheapest(outcomes: Sequence[Outcome], target: float) -> float | None:
    """CPU seconds of the cheapest run within the gap."""
    good = [o for o in outcomes if o.error is None and (o.figure("gap") or 0.0) <= target]
    return min((o.figure("fit_cpu_seconds") or 0.0 for o in good), default=None)


def row_of(
    key: tuple[str, int, int],
    name: str,
    outcomes: Sequence[Outcome],
    found: Mapping[str, Sequence[Outcome]],
) -> list[Cell]:
    row: list[Cell] = [f"{key[2]} %", name, L1[key]]
    for target in TARGETS:
        own, ours = cheapest(outcomes, target), cheapest(found[next(iter(ENTRANTS))], target)
        row += [cut_text(outcomes) if own is None else own, own / ours if own and ours else None]
    done = [o for o in outcomes if o.error is None]
    closest = min(done, key=lambda o: o.figure("gap") or 0.0, default=None)
    figures: list[Cell] = [
        closest.figure(name) if closest else None for name in ("gap", "density", "above_data_mb")
    ]
    return row + figures


def cut_text(outcomes: Sequence[Outcome]) -> str | None:
    """What stands for a time that was not reached: more than it was given, or why it failed."""
    last = outcomes[-1]
    if last.status == "stopped":
        seconds = last.runs[-1].figures.get("stopped_cpu_seconds") or BUDGET
        return f"> {seconds:.0f}"
    return "fails" if last.status == "failed" else None


def growth(directory: Path, seed: int) -> Figures:
    """Our seconds while the number of variables doubles; the exponent of a fitted power."""
    rows: list[list[Cell]] = []
    for name, density in (("gene_golub", 1), ("gene_golub", 5), ("gene_west", 1), ("gene_west", 5)):
        keys = [(name, n, density) for n in (400, 800, 1600)]
        seconds = [alone(load(directory, key, needs_bound=False), key, seed) for key in keys]
        exponent = fit_exponent([key[1] for key in keys], seconds)
        rows.append([name, f"{density} %", *seconds, exponent])
    columns = {"data": "", "density": "", "s, 400": ".3g", "800": ".3g", "1,600": ".3g"}
    return Figures(columns | {"exponent": ".2f"}, rows)


def alone(split: Split, key: tuple[str, int, int], seed: int) -> float:
    name, (environment, script, _) = next(iter(ENTRANTS.items()))
    entrant = Entrant(name, environment, SCRIPTS / script, {"tol": TARGETS[0]})
    conditions = Conditions(seed=seed, repeat=3, timeout_seconds=10 * BUDGET)
    (outcome,) = run_all("{}-{}-{}".format(*key), split, [entrant], judge, conditions, announce)
    return outcome.figure("fit_cpu_seconds") or np.nan


NOTE = (
    "CPU seconds of one thread to a relative gap, and their ratio to ours; after > those that a "
    "run had when it was stopped."
)
PLACES: Mapping[str, Any] = {
    "stockdata": "Returns of stocks",
    "gene_golub": "Genes of gene_golub (72 rows)",
    "gene_west": "Genes of gene_west (49 rows)",
}
MEASUREMENTS = [
    Measurement(f"{name}-{n}", f"{PLACES[name]}, {n} variables", NOTE, race(name, n))
    for name, n in dict.fromkeys(key[:2] for key in L1)
]
MEASUREMENTS.append(
    Measurement(
        "growth", "Growth with the number of variables", "To a gap of 1e-3, median of 3.", growth
    )
)

if __name__ == "__main__":
    raise SystemExit(main("Sparse inverse covariance", MEASUREMENTS))
