"""Features in groups: CPU seconds to a relative gap, this library and its rivals.

Judge: mean loss + l1 sum_g sqrt(size of g) ||w_g|| without an intercept, l1 a share of the smallest
one with w = 0; every weight vector is judged by one function, the optimum is the least value that
anybody reached, and each solver is refitted with its tolerances from loose to tight, as in the
tables of `linear`. One thread, a process for each solver.

The groups of a9a are its categorical features, one column for each value; those of golub are ten
genes each, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import linear
import numpy as np
import scipy.sparse as sp
from harness.bench import Bench
from harness.growth import fit_exponent
from harness.table import Figures, Table
from harness.timing import cpu_timed

from sublearn.linear import GroupLinearRegression

#: Values of each of the fourteen features of a9a.
A9A_SIZES = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)

ENTRANTS = [
    linear.entrant("sublearn", "sublearn_groups", linear.OURS),
    linear.entrant("skglm", "skglm_groups", linear.powers(2, 7), "skglm"),
    linear.entrant("celer", "celer_groups", linear.powers(2, 7), "celer"),
]
Data = tuple[Any, np.ndarray, np.ndarray]


def census(directory: Path, seed: int) -> Data:
    X, y = linear.a9a(directory, seed)
    return X, y, np.repeat(np.arange(len(A9A_SIZES)), A9A_SIZES)


def genes(directory: Path, seed: int) -> Data:
    X, y = linear.genes("golub")(directory, seed)
    return X, y, np.arange(X.shape[1]) // 10


def planted(seed: int, n: int, n_groups: int) -> Data:
    """Ten groups of five columns count."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5 * n_groups))
    z = X[:, :50] @ rng.standard_normal(50)
    y = np.where(z + 0.5 * z.std() * rng.standard_normal(n) > 0, 1.0, -1.0)
    return np.asfortranarray(X), y, np.arange(5 * n_groups) // 5


def norms(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.sqrt(np.bincount(groups, values**2))


def l1_max(X: Any, y: np.ndarray, groups: np.ndarray, loss: str) -> float:
    gradient = X.T @ y / len(y) * (0.5 if loss == "logistic" else 1.0)
    return float((norms(gradient, groups) / np.sqrt(np.bincount(groups))).max())


def judge(truth: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    """The objective, the same for everybody; non-zeros are groups."""
    X, y, w = truth["X"], truth["y"], answer["answer"].ravel().astype(np.float64)
    z, sizes = X @ w, norms(w, truth["groups"])
    is_logistic = bool(truth["is_logistic"])
    loss = np.logaddexp(0.0, -y * z).mean() if is_logistic else 0.5 * np.mean((z - y) ** 2)
    penalty = float(truth["l1"]) * (np.sqrt(np.bincount(truth["groups"])) @ sizes)
    return {"objective": float(loss + penalty), "nnz": int(np.count_nonzero(sizes))}


def task(X: Any, y: np.ndarray, groups: np.ndarray, loss: str, share: float) -> dict[str, Any]:
    l1 = np.float64(share * l1_max(X, y, groups, loss))
    is_logistic = np.float64(loss == "logistic")
    return {"X": X, "y": y, "groups": groups, "l1": l1, "is_logistic": is_logistic}


def race(load: Callable[[Path, int], Data], loss: str) -> Callable[[Bench], Figures]:
    def measure(bench: Bench) -> Figures:
        X, y, groups = load(bench.data, bench.seed)
        n = bench.size(len(y), 500)
        X, y = (X[:n] if sp.issparse(X) else np.asfortranarray(X[:n])), y[:n]
        small = linear.tiny(sp.issparse(X))
        warm_up = task(small["X"], small["y"], np.array([0, 0, 0, 1, 1, 1]), loss, 0.5)
        rows = [
            row
            for share in bench.some((0.1, 0.03))
            for row in linear.to_gaps(
                bench, ENTRANTS, task(X, y, groups, loss, share), share, judge, warm_up
            )
        ]
        return Figures(linear.gap_columns(), rows)

    return measure


def growth(bench: Bench) -> Figures:
    """CPU seconds of a fit to a gap of 1e-6 while the number of groups doubles."""
    sizes, seconds, work = bench.some((500, 1_000, 2_000, 4_000), 2), [], []
    for n_groups in sizes:
        X, y, groups = planted(bench.seed, 500, n_groups)
        l1 = 0.1 * l1_max(X, y, groups, "squared")
        model = GroupLinearRegression(l1, feature_groups=groups, fit_intercept=False)
        laps = [cpu_timed(partial(model.fit, X, y))[1] for _ in range(3)]
        seconds.append(min(laps))
        work.append(float(model.trace_["work"][-1]))
    exponents = [fit_exponent([*map(float, sizes)], costs) for costs in (seconds, work)]
    columns = {"groups from": ",d", "to": ",d", "fit s, first": ".3f<", "last": ".3f<"}
    columns |= {"exponent of time": ".2f", "exponent of work": ".2f<"}
    return Figures(columns, [[sizes[0], sizes[-1], seconds[0], seconds[-1], *exponents]])


SETS: Mapping[str, tuple[str, Callable[[Path, int], Data], str]] = {
    "a9a": ("a9a: 14 groups of 123 columns, sparse, squared loss", census, "squared"),
    "golub": ("gene_golub: 713 groups of ten genes, squared loss", genes, "squared"),
}
NOTE = "CPU seconds of one thread to a relative gap; non-zeros are groups."
TABLES = [Table(name, title, NOTE, race(load, loss)) for name, (title, load, loss) in SETS.items()]
TABLES += [
    Table("growth", "Growth", "500 rows, groups of five columns, ten of which count.", growth)
]
