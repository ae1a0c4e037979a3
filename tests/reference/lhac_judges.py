"""Tiny problems for LHAC with their optima by cvxpy, and the objective by NumPy."""

from dataclasses import dataclass, field
from functools import cached_property

import cvxpy as cp
import numpy as np

N_ROWS, N_FEATURES = 30, 8


def design():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * np.linspace(0.5, 2.0, N_FEATURES)
    z = X[:, 0] - 0.7 * X[:, 3] + 0.4 * X[:, 7] + 0.8 * rng.normal(size=N_ROWS)
    return X, np.sign(z)


@dataclass(frozen=True)
class Problem:
    """mean loss + sum_j l1_j |x_j| + l2/2 |x|^2 within bounds."""

    loss: str = "logistic"
    l1: object = 0.03
    l2: float = 0.0
    bounds: tuple = (-np.inf, np.inf)
    levels: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "levels", np.broadcast_to(self.l1, N_FEATURES).astype(float))

    def smooth(self, x):
        """Value and gradient of the mean loss, as a user would write them."""
        X, y = design()
        z = X @ x
        if self.loss == "squared":
            return 0.5 * np.mean((z - y) ** 2), X.T @ (z - y) / N_ROWS
        value = np.mean(np.logaddexp(0, -y * z))
        return value, X.T @ (-y / (1 + np.exp(y * z))) / N_ROWS

    def value(self, x):
        return self.smooth(x)[0] + self.levels @ np.abs(x) + 0.5 * self.l2 * x @ x

    @cached_property
    def optimum(self):
        X, y = design()
        x = cp.Variable(N_FEATURES)
        if self.loss == "squared":
            loss = 0.5 * cp.sum_squares(X @ x - y) / N_ROWS
        else:
            loss = cp.sum(cp.logistic(-cp.multiply(y, X @ x))) / N_ROWS
        penalty = self.levels @ cp.abs(x) + 0.5 * self.l2 * cp.sum_squares(x)
        lower, upper = self.bounds
        constraints = [x >= lower] if np.isfinite(lower) else []
        constraints += [x <= upper] if np.isfinite(upper) else []
        problem = cp.Problem(cp.Minimize(loss + penalty), constraints)
        problem.solve(solver=cp.CLARABEL)
        return problem.value


PROBLEMS = {
    "l1": Problem(),
    "elastic net": Problem("squared", l1=0.05, l2=0.2),
    "non-negative": Problem(bounds=(0.0, np.inf)),
    "box": Problem("squared", l1=0.01, bounds=(-0.1, 0.2)),
    "one weight each": Problem(l1=np.linspace(0.0, 0.1, N_FEATURES)),  # the first is unpenalised
    "unpenalised": Problem("squared", l1=0.0),
}
