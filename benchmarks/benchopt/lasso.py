"""sublearn as a solver of benchopt's benchmark_lasso: copy this file to its folder solvers.

cp benchmarks/benchopt/lasso.py benchmark_lasso/solvers/sublearn.py
benchopt run benchmark_lasso -s sublearn
"""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning

from sublearn.linear import SparseLinearRegression


class Solver(BaseSolver):
    """Active sets with a duality gap as the certificate; see the page on sparse linear models."""

    name = "sublearn"
    install_cmd = "conda"
    requirements = ("pip::sublearn",)
    sampling_strategy = "tolerance"  # of the gap, relative to the objective
    parameters = {"solver": ["auto", "cd1"]}  # noqa: RUF012  # benchopt's own form

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Take the problem; its losses are a sum, ours a mean."""
        self.X, self.y = X, y
        self.model = SparseLinearRegression(
            l1=lmbd / X.shape[0], fit_intercept=fit_intercept, solver=self.solver
        )

    def get_next(self, tolerance):
        """The tolerance after this one."""
        return min(1.0, tolerance) / 10  # the first one is huge

    def run(self, tolerance):
        """Solve from the beginning to a tolerance."""
        self.model.set_params(tol=min(max(tolerance, 1e-13), 1.0))
        with warnings.catch_warnings():  # a tolerance below what rounding allows
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        """Weights, and behind them the intercept if there is one."""
        weights = np.ravel(self.model.coef_)
        if self.model.fit_intercept:
            weights = np.append(weights, self.model.intercept_)
        return {"beta": weights}
