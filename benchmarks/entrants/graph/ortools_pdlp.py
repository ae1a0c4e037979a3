"""The linear program over the local polytope, by PDLP of OR-Tools; labels of largest marginals.

The bound is that of its multipliers and holds for whatever accuracy they have.
"""

import numpy as np
import scipy.sparse as sp
from harness.factors import FactorArrays
from ortools.pdlp import solvers_pb2
from ortools.pdlp.python import pdlp

read = FactorArrays.from_arrays

MAX_STATES = 300_000


def refuse(problem, task):
    return f"{problem.n_cells:.1e} joint states" if problem.n_cells > MAX_STATES else None


class Program:
    """max c z, E z = e, z >= 0 with labels first, then the joint states of each factor."""

    def __init__(self, problem):
        graph = self.graph = problem.without_forbidden()
        n_labels = len(graph.unary)
        owner = np.repeat(np.arange(graph.n_variables), graph.domain)
        rows, columns, values = [owner], [np.arange(n_labels)], [np.ones(n_labels)]
        costs, column, row = [graph.unary], n_labels, graph.n_variables
        self.blocks = []  # (scope, table, first row of each axis)
        for scope, table in graph.factors():
            cells = np.arange(column, column + table.size).reshape(table.shape)
            firsts = []
            for axis, i in enumerate(scope):
                k = table.shape[axis]
                label = np.indices(table.shape)[axis]
                rows += [row + label.ravel(), row + np.arange(k)]
                columns += [cells.ravel(), graph.begin[i] + np.arange(k)]
                values += [np.ones(table.size), -np.ones(k)]
                firsts.append(row)
                row += k
            self.blocks.append((scope, table, firsts))
            costs.append(table.ravel())
            column += table.size
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        self.matrix = sp.csc_matrix(entries, shape=(row, column))
        self.right = np.zeros(row)
        self.right[: graph.n_variables] = 1.0
        self.costs = np.concatenate(costs)

    def quadratic(self):
        qp = pdlp.QuadraticProgram()
        n_rows, n_columns = self.matrix.shape
        qp.resize_and_initialize(n_columns, n_rows)
        qp.objective_vector = -self.costs
        qp.constraint_matrix = self.matrix
        qp.constraint_lower_bounds = self.right
        qp.constraint_upper_bounds = self.right
        qp.variable_lower_bounds = np.zeros(n_columns)
        qp.variable_upper_bounds = np.ones(n_columns)
        return qp

    def bound(self, duals):
        """Of the multipliers mu of the marginals, whatever they are."""
        beliefs, total = self.graph.unary.copy(), 0.0
        for scope, table, firsts in self.blocks:
            rest = table
            for axis, (i, first) in enumerate(zip(scope, firsts, strict=True)):
                mu = duals[first : first + table.shape[axis]]
                beliefs[self.graph.begin[i] : self.graph.begin[i + 1]] += mu
                rest = rest - mu.reshape([-1 if a == axis else 1 for a in range(table.ndim)])
            total += rest.max()
        return total + np.maximum.reduceat(beliefs, self.graph.begin[:-1]).sum()


def prepare(problem, task):
    program = Program(problem)
    return program, program.quadratic()


def solve(model, task, keep):
    program, qp = model
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    parameters.num_threads = task.threads
    criteria = parameters.termination_criteria
    criteria.time_sec_limit = task.wall_limit
    criteria.simple_optimality_criteria.eps_optimal_relative = 1e-8
    criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-8
    found = pdlp.primal_dual_hybrid_gradient(qp, parameters)
    marginals = np.asarray(found.primal_solution)[: len(program.graph.unary)]
    keep([int(part.argmax()) for part in np.split(marginals, program.graph.begin[1:-1])])
    duals = np.asarray(found.dual_solution)
    keep.bound(min(program.bound(duals), program.bound(-duals)))  # both are valid
