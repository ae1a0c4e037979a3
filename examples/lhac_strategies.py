"""How LHAC chooses its coordinates, and how exactly it should solve its models.

    pip install '.[plot]'
    python examples/lhac_strategies.py lhac_strategies.png

Redraws figures 5.1 to 5.4 of Tang's thesis for l1 logistic regression: the sizes of the four sets
of coordinates while the solver runs; the free sets of two strategies; the distance to the optimum
under four budgets l(k) of coordinate descent; and the running time against a in l(k) = a k + 1.
Uses the a9a data in the folder that SUBLEARN_DATA names, and data of its own making without them.
"""

import argparse
import lzma
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from sublearn.optim import LhacSettings, lhac, linear_objective, minimise_linear

BUDGETS = {"log k + 1": "log", "0.2 k + 1": "linear", "5": 5, "200": 200}
COLOURS = {"log k + 1": "#d95f02", "0.2 k + 1": "#08306b", "5": "#6baed6", "200": "#7a7a7a"}
SETS = {"Z1": "#08306b", "Z2": "#6baed6", "Z3": "#d95f02", "Z4": "#7a7a7a"}
SLOPES = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
CLOSE = 1e-8  # of the optimum: where running times are taken
CLOSE_TEXT = "1e-8"
N_TIMES = 3  # the least of which is shown


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "picture", type=Path, nargs="?", default="lhac_strategies.png", help="PNG to write"
    )
    arguments.add_argument("--l1", type=float, default=1e-4, help="weight of the penalty")
    arguments.add_argument("--small", action="store_true", help="a few rows, fewer slopes")
    options = arguments.parse_args()

    name, X, y = load(options.small)
    print(f"{name}: {X.shape[0]:,} rows, {X.shape[1]:,} features, l1 = {options.l1:g}")
    problem = Problem(X, y, options.l1)
    print(f"optimum {problem.optimum:.9f}")
    draw(problem, name, SLOPES[:: 3 if options.small else 1], options.picture)
    print(f"wrote {options.picture}")


def load(is_small):
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    file = Path(os.environ.get("SUBLEARN_DATA", beside)) / "a9a" / "a9a.xz"
    if not file.is_file():
        return "made-up data", *make(500 if is_small else 4000)
    with lzma.open(file) as lines:
        X, y = load_svmlight_file(lines, n_features=123)
    return ("a9a", X[:2000], y[:2000]) if is_small else ("a9a", X, y)


def make(n_rows):
    """Sparse rows, and a sparse model that told their targets with some noise."""
    rng = np.random.default_rng(0)
    X = sp.random(n_rows, 400, 0.1, format="csr", random_state=0)
    w = rng.normal(size=400) * (rng.random(400) < 0.1)
    return X, np.where(X @ w + 0.3 * rng.normal(size=n_rows) > 0, 1.0, -1.0)


class Problem:
    """An objective, its optimum, and runs of LHAC from 0."""

    def __init__(self, X, y, l1):
        self.objective, self.l1, self.n = linear_objective(X, y), l1, X.shape[1]
        judge = minimise_linear(X, y, l1=l1, solver="interior_point", tol=1e-11, max_iter=60)
        self.optimum = judge.objective

    def run(self, tol=1e-10, **settings):
        return lhac(
            self.objective, np.zeros(self.n), self.l1, tol=tol, max_iter=600, active_set=False,
            settings=LhacSettings(**settings),
        ).trace  # fmt: skip

    def errors(self, trace):
        return np.maximum(trace["objective"] / self.optimum - 1, 1e-16)

    def reach(self, **settings):
        """Least seconds, and iterations, until the objective is close to its optimum."""
        runs = []
        for _ in range(N_TIMES):
            trace = self.run(tol=CLOSE, **settings)
            at = np.flatnonzero(self.errors(trace) <= CLOSE)
            if len(at):
                runs.append((trace["seconds"][at[0]], int(at[0])))
        return min(runs, default=(np.nan, 0))


def draw(problem, name, slopes, picture):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure = plt.figure(figsize=(11.5, 8), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    grid = figure.add_gridspec(2, 4)
    draw_sets(figure.add_subplot(grid[0, :2]), problem)
    draw_free(figure.add_subplot(grid[0, 2:]), problem)
    left = figure.add_subplot(grid[1, 0])
    draw_budgets(left, figure.add_subplot(grid[1, 1], sharey=left), problem)
    draw_slopes(figure.add_subplot(grid[1, 2:]), problem, slopes)
    figure.suptitle(f"LHAC on {name}, l1 = {problem.l1:g}", x=0.01, ha="left", fontsize=12)
    figure.savefig(picture, dpi=150)


def draw_sets(axes, problem):
    trace = problem.run()
    sizes = {key: trace[key.lower()] for key in ("Z1", "Z2", "Z3")}
    sizes["Z4"] = problem.n - sum(sizes.values())
    meanings = {
        "Z1": "Z1  not 0, slope above l1",
        "Z2": "Z2  not 0, slope below",
        "Z3": "Z3  0, slope above",
        "Z4": "Z4  0, slope below",
    }
    for key, values in sizes.items():
        axes.plot(values, color=SETS[key], label=meanings[key])
    axes.set(xlabel="iteration", ylabel="coordinates")
    axes.set_ylim(0, 1.25 * problem.n)
    axes.legend(frameon=False, ncols=2, loc="upper center", fontsize=9)
    axes.set_title("Sets of coordinates (figure 5.1)", loc="left", fontsize=11)


def draw_free(axes, problem):
    for strategy, colour in (("standard", "#d95f02"), ("greedy_adaptive", "#08306b")):
        trace = problem.run(strategy=strategy, tol=CLOSE)
        close = np.flatnonzero(problem.errors(trace) <= CLOSE)
        end = close[0] + 1 if len(close) else len(trace)
        free = trace["n_active"][:end]
        print(f"{strategy}: {end} iterations, {free.sum():,} free coordinates in all")
        axes.plot(free, color=colour, label=f"{strategy}: {free.sum():,} in all")
    axes.set(xlabel=f"iteration, until {CLOSE_TEXT} from the optimum", ylabel="free coordinates")
    axes.set_ylim(0, 1.2 * axes.dataLim.y1)
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    axes.set_title("Coordinates that two strategies move (figure 5.2)", loc="left", fontsize=11)


def draw_budgets(by_iteration, by_time, problem):
    for label, budget in BUDGETS.items():
        trace = problem.run(budget=budget)
        errors = problem.errors(trace)
        by_iteration.semilogy(errors, color=COLOURS[label], label=label)
        by_time.semilogy(1000 * trace["seconds"], errors, color=COLOURS[label])
    by_iteration.set(xlabel="iteration", ylabel="distance to the optimum, as a share of it")
    by_iteration.set_ylim(1e-10, 10)
    by_iteration.legend(frameon=False, title="passes l(k)", fontsize=9)
    by_time.set(xlabel="milliseconds")
    by_time.tick_params(labelleft=False)
    by_iteration.set_title("Four budgets of passes (figure 5.3)", loc="left", fontsize=11)


def draw_slopes(axes, problem, slopes):
    found = [problem.reach(budget=(a, 1.0)) for a in slopes]
    milliseconds = [1000 * seconds for seconds, _ in found]
    axes.plot(range(len(slopes)), milliseconds, "o-", color="#08306b")
    for place, (spot, (_, n_iter)) in enumerate(zip(milliseconds, found, strict=True)):
        axes.annotate(
            n_iter, (place, spot), xytext=(0, 9), textcoords="offset points", ha="center",
            color="0.4", fontsize=9,
        )  # fmt: skip
    axes.set_xticks(range(len(slopes)), [f"{a:g}" for a in slopes])
    axes.set(xlabel="a in l(k) = a k + 1", ylabel=f"milliseconds to {CLOSE_TEXT} from the optimum")
    axes.set_ylim(0, 1.2 * np.nanmax(milliseconds))
    axes.set_title("Time, and iterations in grey (figure 5.4)", loc="left", fontsize=11)


if __name__ == "__main__":
    main()
