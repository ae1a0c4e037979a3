"""The solver files for benchopt's l1 benchmarks, run by the real benchopt on small problems."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOLVERS = Path(__file__).resolve().parents[2] / "benchmarks" / "benchopt"
#: The interface of benchmark_lasso and benchmark_logreg_l1.
OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective

class Objective(BaseObjective):
    name = "l1"
    parameters = {{"reg": [0.1], "fit_intercept": {intercepts}}}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * {largest}

    def evaluate_result(self, beta):
        n = self.X.shape[1]
        z = self.X @ beta[:n] + (beta[n] if self.fit_intercept else 0)
        return dict(value={loss} + self.lmbd * abs(beta[:n]).sum())

    def get_one_result(self):
        return dict(beta=np.zeros(self.X.shape[1] + self.fit_intercept))

    def get_objective(self):
        return dict(X=self.X, y=self.y, lmbd=self.lmbd, fit_intercept=self.fit_intercept)
"""
DATA = """
import numpy as np
from benchopt import BaseDataset

class Dataset(BaseDataset):
    name = "simulated"

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 30))
        y = X @ (np.arange(30) < 4) + 0.3 * rng.normal(size=80)
        return dict(X=X, y={y})
"""
PROBLEMS = {
    "lasso": {
        "largest": "abs(self.X.T @ (self.y - self.fit_intercept * self.y.mean())).max()",
        "loss": "0.5 * ((self.y - z) ** 2).sum()",
        "intercepts": "[False, True]",
        "y": "y + 1",
    },
    "logreg_l1": {
        "largest": "abs(self.X.T @ self.y).max() / 2",
        "loss": "np.logaddexp(0, -self.y * z).sum()",
        "intercepts": "[False]",
        "y": "np.sign(y)",
    },
}


def best_value(kind, fit_intercept):
    """The optimum by scikit-learn, whose objectives are the same up to a factor."""
    from sklearn.linear_model import Lasso, LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    y = X @ (np.arange(30) < 4) + 0.3 * rng.normal(size=80)
    if kind == "lasso":
        y = y + 1
        lmbd = 0.1 * abs(X.T @ (y - fit_intercept * y.mean())).max()
        found = Lasso(lmbd / 80, fit_intercept=fit_intercept, tol=1e-14, max_iter=10**5).fit(X, y)
        loss = 0.5 * ((y - found.predict(X)) ** 2).sum()
        return loss + lmbd * abs(found.coef_).sum()
    y = np.sign(y)
    lmbd = 0.1 * abs(X.T @ y).max() / 2
    found = LogisticRegression(
        C=1 / lmbd, l1_ratio=1, solver="liblinear", fit_intercept=False, tol=1e-6, max_iter=10**5
    ).fit(X, y)
    return np.logaddexp(0, -y * (X @ found.coef_[0])).sum() + lmbd * abs(found.coef_).sum()


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_solver_reaches_the_optimum_in_benchopt(kind, tmp_path):
    pytest.importorskip("benchopt.runner", reason="pip install benchopt")
    import pandas as pd

    problem = dict(PROBLEMS[kind])
    folder = tmp_path / "benchmark"
    for name in ("datasets", "solvers"):
        (folder / name).mkdir(parents=True)
    (folder / "datasets" / "simulated.py").write_text(DATA.format(y=problem.pop("y")))
    (folder / "objective.py").write_text(OBJECTIVE.format(**problem))
    shutil.copy(SOLVERS / f"{kind}.py", folder / "solvers" / "sublearn.py")
    command = [sys.executable, "-m", "benchopt", "run", str(folder), "--no-plot", "-n", "14",
               "-r", "1", "--no-cache", "--output", "found"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "outputs").glob("*.parquet")
    found = pd.read_parquet(file)
    assert set(found["solver_name"]) == {"sublearn[solver=auto]", "sublearn[solver=cd1]"}
    for name, rows in found.groupby(["solver_name", "p_obj_fit_intercept"]):
        best = best_value(kind, bool(name[1]))
        assert rows["objective_value"].min() == pytest.approx(best, rel=1e-6), name
