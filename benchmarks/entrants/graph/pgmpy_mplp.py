"""MPLP of pgmpy, for pairs of variables; its factors are Python objects, so small graphs alone."""

import numpy as np
from harness.factors import FactorArrays
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference import Mplp
from pgmpy.models import DiscreteMarkovNetwork

read = FactorArrays.from_arrays

MAX_CELLS = 20_000


def refuse(problem, task):
    if problem.n_cells > MAX_CELLS:
        return f"{problem.n_cells:.1e} joint states"
    if problem.max_arity > 2:
        return "ends with a KeyError where factors of three variables overlap"
    return None


def prepare(problem, task):
    graph = problem.without_forbidden()
    names = [f"x{i}" for i in range(graph.n_variables)]
    model = DiscreteMarkovNetwork()
    model.add_nodes_from(names)
    for i, name in enumerate(names):
        model.add_factors(factor([name], graph.unary_of(i)))
    for scope, table in graph.factors():
        own = [names[i] for i in scope]
        model.add_edges_from([(a, b) for k, b in enumerate(own) for a in own[:k]])
        model.add_factors(factor(own, table))
    return model, names


def factor(names, scores):
    values = np.exp(np.maximum(scores - scores.max(), -700.0))
    return DiscreteFactor(names, scores.shape, values)


def solve(model, task, keep):
    network, names = model
    found = Mplp(network).map_query()
    keep([int(found[name]) for name in names])
