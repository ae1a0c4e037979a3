"""Which solver serves a node: the one that a measured model of their times says is fastest.

Section 2.3.2 of Tang, "Big Data Optimization in Machine Learning", 2016, takes coordinate descent
at the top of a tree, where nodes are large, and an interior point method below, where they are
small.
Here the border is measured: the logarithm of the seconds of each solver is linear in those of the
rows, the features that occur in them, and the stored entries. The coefficients come from
``python benchmarks/run.py --only hierarchy``. On the nodes measured, all fitted to the same
gap, coordinate descent in an active set is the fastest nearly always, at small nodes too, and
the model knows: the border of the thesis is that of methods without an active set. Only below the
nodes measured, at a few dozen rows of a few features, is the interior point method as quick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sublearn.optim.linear_solve import SOLVERS
from sublearn.typing import Matrix
from sublearn.validation import Rule

__all__ = [
    "NODE_SOLVERS",
    "SolverNames",
    "choose_solver",
    "node_size",
    "predicted_seconds",
    "solver_of_level",
]

#: What `solver` may be for a node.
NODE_SOLVERS = tuple(SOLVERS)

#: Constant, and coefficients of log rows, log features and log entries, of log seconds.
_COSTS = {
    "newton": (-18.136, -0.269, -0.532, 1.689),
    "lhac": (-17.458, -0.600, -0.682, 1.995),
    "interior_point": (-20.030, -2.321, -0.410, 3.274),
}
_RUNS = {"newton": "auto", "lhac": "lhac", "interior_point": "interior_point"}


class SolverNames(Rule):
    """A solver, or one for each level."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        names = value if isinstance(value, (list, tuple)) else [value]
        return len(names) > 0 and all(isinstance(v, str) and v in NODE_SOLVERS for v in names)

    def __str__(self) -> str:
        return f"one of {', '.join(NODE_SOLVERS)}, or a list of them for the levels from the top"


def node_size(X: Matrix) -> tuple[int, int, int]:
    """Rows, columns and stored entries."""
    return *X.shape, int(X.size if isinstance(X, np.ndarray) else X.nnz)


def predicted_seconds(solver: str, size: tuple[int, int, int]) -> float:
    """Seconds that a solver is expected to take for a node."""
    terms = [1.0, *(math.log(max(1, count)) for count in size)]
    return math.exp(float(np.dot(_COSTS[solver], terms)))


def choose_solver(size: tuple[int, int, int]) -> str:
    """The solver that is expected to be fastest."""
    return _RUNS[min(_COSTS, key=lambda solver: predicted_seconds(solver, size))]


def solver_of_level(solver: str | Sequence[str], level: int) -> str:
    """The solver asked for at a level: one for all, or the entry of a list, its last one below."""
    return solver if isinstance(solver, str) else solver[min(level, len(solver) - 1)]
