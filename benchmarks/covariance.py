"""Sparse inverse covariance: sublearn and its rivals on correlations of genes and stocks.

    python benchmarks/covariance.py --list
    python benchmarks/covariance.py --quick
    python benchmarks/covariance.py --problems gene_golub-800-5 --entrants sublearn sklearn
    python benchmarks/covariance.py --growth gene_golub-5

A problem is a data set, a number of variables (those of the largest variance, as correlations) and
the density of the solution in percent. Every entrant is run with each of its tolerances, each run
in a process of its own under one limit of threads. The benchmark computes the objective of what
comes back; the cheapest run within a relative gap of 1e-3, and of 1e-6, counts. The gap is taken to
a lower bound on the optimum, over the larger of the objective's size and the number of variables.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from harness.data import data_directory
from harness.entrant import Entrant
from harness.growth import fit_exponent
from harness.machine import commit, machine, now
from harness.problem import Split
from harness.runner import Conditions, Outcome, run_all
from rich.console import Console
from rich.table import Table

SCRIPTS = Path(__file__).resolve().parent / "entrants" / "covariance"
TARGETS = (1e-3, 1e-6)

#: Environment, script and settings to try, from loose to tight, for each entrant.
ENTRANTS: dict[str, tuple[str, str, list[dict[str, float | str]]]] = {
    "sublearn": ("main", "sublearn_inverse.py", [{"tol": 1e-3}, {"tol": 1e-6}]),
    "sublearn-lhac": (
        "main",
        "sublearn_inverse.py",
        [{"tol": tol, "solver": "lhac", "max_iter": 20000} for tol in TARGETS],
    ),
    "sklearn": (
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
L1: dict[tuple[str, int, int], float] = {
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
    ("gene_west", 800, 1): 0.529,
    ("gene_west", 800, 5): 0.2,
    ("gene_golub", 1600, 1): 0.529,
    ("gene_golub", 1600, 5): 0.0897,
    ("gene_west", 1600, 1): 0.477,
    ("gene_west", 1600, 5): 0.116,
}


def problem_name(key: tuple[str, int, int]) -> str:
    return "{}-{}-{}".format(*key)


PROBLEMS = {problem_name(key): key for key in L1}
SERIES = sorted({f"{name}-{density}" for name, _, density in L1})


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


def load(directory: Path, key: tuple[str, int, int]) -> Split:
    """Correlations of the variables with the largest variance, and what the judge knows."""
    name, n, _ = key
    rows = read_rows(directory, name)
    rows = rows[:, np.argsort(-rows.var(axis=0), kind="stable")[:n]]
    S = np.corrcoef(rows, rowvar=False)
    train = {"S": 0.5 * (S + S.T), "l1": np.float64(L1[key])}
    return Split(train, {"nothing": np.zeros(1)}, {**train, "bound": optimum(train["S"], L1[key])})


def optimum(S: np.ndarray, l1: float) -> np.float64:
    """A lower bound on the optimum: the dual value that sublearn reaches with tol 1e-8.

    It is the same for all entrants; were it wrong, good runs would show negative gaps.
    """
    from sublearn.linear import SparseInverseCovariance

    model = SparseInverseCovariance(l1, covariance="precomputed", tol=1e-8).fit(S)
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


def entrants_of(names: Sequence[str]) -> list[Entrant]:
    """One entrant of the harness for each tolerance."""
    found = []
    for name in names:
        environment, script, tried = ENTRANTS[name]
        for k, settings in enumerate(tried):
            found.append(Entrant(f"{name}#{k}", environment, SCRIPTS / script, settings))
    return found


def cheapest(outcomes: Sequence[Outcome], name: str, target: float) -> float | None:
    """CPU seconds of the cheapest run of `name` within the gap; medians where it was repeated."""
    costs = [
        outcome.figure("fit_cpu_seconds")
        for outcome in outcomes
        if outcome.entrant.name.split("#")[0] == name
        and outcome.error is None
        and (outcome.figure("gap") or 0.0) <= target
    ]
    return min((cost for cost in costs if cost is not None), default=None)


def show(problem: str, outcomes: Sequence[Outcome], names: Sequence[str], console: Console) -> None:
    """One row per entrant and one per run."""
    table = Table(title=problem, title_justify="left")
    for heading in ("entrant", *(f"CPU s to {t:g}" for t in TARGETS), *("ratio",) * len(TARGETS)):
        table.add_column(heading, justify="left" if heading == "entrant" else "right")
    first = [cheapest(outcomes, names[0], target) for target in TARGETS]
    for name in names:
        costs = [cheapest(outcomes, name, target) for target in TARGETS]
        ratios = [c / f if c and f else None for c, f in zip(costs, first, strict=True)]
        table.add_row(
            name, *(text_of(c, ".3g") for c in costs), *(text_of(r, ".1f") for r in ratios)
        )
    console.print(table)
    for outcome in outcomes:
        gap = text_of(outcome.figure("gap"), ".1e")
        seconds = text_of(outcome.figure("fit_cpu_seconds"), ".3g")
        density = text_of(outcome.figure("density"), ".4f")
        line = f"  {outcome.entrant.name} {outcome.settings}: {seconds} s, gap {gap}, {density}"
        console.print(f"{line} {outcome.error or ''}", markup=False)


def text_of(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def run(options: argparse.Namespace, key: tuple[str, int, int], console: Console) -> list[Outcome]:
    split = load(data_directory(options.data), key)
    conditions = Conditions(
        threads=[options.threads],
        seed=0,
        repeat=options.repeat,
        timeout_seconds=options.timeout,
        request={},
    )
    entrants = entrants_of(options.entrants)
    name = problem_name(key)
    outcomes = run_all(name, split, entrants, judge, conditions, announce)
    show(name, outcomes, options.entrants, console)
    return outcomes


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def grow(options: argparse.Namespace, console: Console) -> list[Outcome]:
    """CPU seconds to each gap by number of variables, and the exponent."""
    data, density = options.growth.rsplit("-", 1)
    keys = sorted(key for key in L1 if key[0] == data and key[2] == int(density))
    found = [run(options, key, console) for key in keys]
    for name in options.entrants:
        for target in TARGETS:
            costs = [cheapest(outcomes, name, target) for outcomes in found]
            known = [(key[1], cost) for key, cost in zip(keys, costs, strict=True) if cost]
            if len(known) > 1:
                exponent = fit_exponent(*zip(*known, strict=True))
                console.print(f"{options.growth} {name} to {target:g}: {known}, p^{exponent:.2f}")
    return [outcome for outcomes in found for outcome in outcomes]


def main() -> int:
    parser = argparse.ArgumentParser(description="sparse inverse covariance")
    add = parser.add_argument
    add("--problems", nargs="+", choices=sorted(PROBLEMS), metavar="NAME")
    add("--entrants", nargs="+", choices=list(ENTRANTS), default=["sublearn", "sklearn", "gglasso"])
    add("--growth", choices=SERIES, help="all numbers of variables of this data set and density")
    add("--repeat", type=int, default=1)
    add("--threads", type=int, default=1)
    add("--timeout", type=float, default=600.0)
    add("--data", help="directory of real data (else SUBLEARN_DATA, else ../shared/data)")
    add("--json", type=Path, help="write all figures to this file")
    add("--quick", action="store_true", help="one small problem, to see that everything works")
    add("--list", action="store_true")
    options = parser.parse_args()
    console = Console(width=120)
    if options.list:
        console.print("\n".join(f"{name}  l1 {L1[key]}" for name, key in PROBLEMS.items()))
        return 0
    if options.growth:
        outcomes = grow(options, console)
    else:
        small = ["stockdata-400-1"]
        names = options.problems or (small if options.quick else list(PROBLEMS))
        outcomes = [o for name in names for o in run(options, PROBLEMS[name], console)]
    if options.json:
        options.json.write_text(json.dumps(record(outcomes), indent=1))
    return int(any(outcome.status == "failed" for outcome in outcomes))


def record(outcomes: Sequence[Outcome]) -> dict[str, object]:
    rows = [
        {
            "problem": outcome.problem,
            "entrant": outcome.entrant.name,
            "settings": outcome.settings,
            "status": outcome.status,
            "runs": [{**r.figures, **r.quality, "error": r.error} for r in outcome.runs],
        }
        for outcome in outcomes
    ]
    return {"machine": machine(), "commit": commit(), "date": now(), "runs": rows}


if __name__ == "__main__":
    sys.exit(main())
