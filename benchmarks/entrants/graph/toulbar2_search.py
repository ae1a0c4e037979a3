"""toulbar2: exact hybrid best-first search, or with "vns" its neighbourhood search.

Costs are negated scores with six decimals, so its bound is off by as much for each factor. Its own
limit is in whole CPU seconds.
"""

import math

from harness.factors import FactorArrays
from pytoulbar2 import CFN

read = FactorArrays.from_arrays

DECIMALS = 6
MAX_CELLS = 60_000_000  # one table for each factor: beyond this the tables alone are gigabytes


def refuse(problem, task):
    if problem.n_cells > MAX_CELLS:
        return f"{problem.n_cells:.1e} joint states, each kept in a table of its factor"
    return None


def prepare(problem, task):
    cfn = CFN(resolution=DECIMALS, seed=task.seed + 1, verbose=-1, **task.settings)
    for i, n_labels in enumerate(problem.domain.tolist()):
        cfn.AddVariable(f"x{i}", range(n_labels))
    # Infinite costs end in a segmentation fault on promedas_11 (1.4.0.1); with finite ones that
    # cost more than all else together it is solved.
    graph = problem.without_forbidden()
    for i in range(graph.n_variables):
        cfn.AddFunction([i], (-graph.unary_of(i)).tolist())
    for scope, table in graph.factors():
        cfn.AddFunction(scope.tolist(), (-table).ravel().tolist())
    return cfn


def solve(cfn, task, keep):
    found = cfn.Solve(timeLimit=max(1, math.ceil(task.limit)))
    bound = -cfn.GetDDualBound()
    is_proven = found is not None and bound + found[1] < 10.0**-DECIMALS
    if is_proven or "vns" not in task.settings:
        keep.bound(bound)
    keep.tell(proven=float(is_proven))
    if found is not None:
        keep(found[0])
