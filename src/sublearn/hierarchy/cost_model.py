"""Which solver serves a node: the one that a measured model of their times says is fastest.

Section 2.3.2 of Tang, "Big Data Optimization in Machine Learning", 2016, takes coordinate descent
at the top of a tree, where nodes are large, and an interior point method below, where they are
small.
Here the border is measured: seconds of a solver are a sum of counts of operations, none with a
negative weight, so that no size outside those measured can make a solver look free; sizes below
the measured ones count as these. The weights come from
``python benchmarks/run.py --only hierarchy/cost-model``, which also predicts each family of data by
the others. On the nodes measured, all fitted to the same gap, coordinate descent in an active set
("newton") is the fastest nearly always, and what the model says for all but the smallest, where
LHAC ties with it; it never says the interior point method: the border of the thesis is that of
methods without an active set.
"""

from __future__ import annotations

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
    "operations",
    "predicted_seconds",
    "solver_of_level",
]

#: What `solver` may be for a node.
NODE_SOLVERS = tuple(SOLVERS)

#: Weights of the terms of `operations`, in seconds.
_COSTS = {
    "newton": (1.21e-5, 9.81e-8, 7.66e-9, 4.06e-9, 0.0, 0.0),
    "lhac": (6.73e-6, 0.0, 0.0, 2.49e-8, 0.0, 0.0),
    "interior_point": (8.18e-5, 0.0, 0.0, 0.0, 1.39e-9, 2.02e-17),
}
_LEAST = (2, 78, 156)  # rows, features and entries of the smallest nodes measured
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


def operations(size: tuple[int, int, int]) -> np.ndarray:
    """1, rows n, features d, entries z, and z m and m^3 of a Newton system, m = min(n, d)."""
    n, d, z = (float(max(own, least)) for own, least in zip(size, _LEAST, strict=True))
    m = min(n, d)
    return np.array([1.0, n, d, z, z * m, m**3])


def predicted_seconds(solver: str, size: tuple[int, int, int]) -> float:
    """Seconds that a solver is expected to take for a node."""
    return float(np.dot(_COSTS[solver], operations(size)))


def choose_solver(size: tuple[int, int, int]) -> str:
    """The solver that is expected to be fastest."""
    return _RUNS[min(_COSTS, key=lambda solver: predicted_seconds(solver, size))]


def solver_of_level(solver: str | Sequence[str], level: int) -> str:
    """The solver asked for at a level: one for all, or the entry of a list, its last one below."""
    return solver if isinstance(solver, str) else solver[min(level, len(solver) - 1)]
