"""solve_map of this library."""

import numpy as np
from harness.factors import FactorArrays
from harness.graphs import PARTS

from sublearn.graph import FactorGraph, solve_map

read = FactorArrays.from_arrays


def prepare(problem, task):
    graph = FactorGraph(unary=np.split(problem.unary, problem.begin[1:-1]))
    for group in problem.groups:
        is_shared = len(group.tables) == 1
        tables = group.tables[0] if is_shared else group.tables[group.rows]
        graph.add_factors(group.scopes, tables, group.scale)
    return graph


def solve(graph, task, keep):
    result = solve_map(
        graph,
        time_limit=task.wall_limit,
        n_jobs=task.threads,
        random_state=task.seed,
        **task.settings,
    )
    trace = result.trace
    slack = 1e-9 * max(1.0, abs(result.score))
    # Rows are of the finite scores that the core sees; the last one is of the answer.
    first = int(np.argmax(trace["score"] >= trace["score"][-1] - slack))
    keep.bound(result.bound)
    keep.tell(n_iter=result.n_iter, work=float(trace["work"][-1]))
    found, bounded = PARTS.index(result.found_by), PARTS.index(result.bounded_by)
    keep.tell(found_by=float(found), bounded_by=float(bounded))
    keep(result.assignment, wall=float(trace["seconds"][first]))
