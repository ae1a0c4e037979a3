"""CP-SAT of OR-Tools: a Boolean for each label and each joint state, scores times a million.

Binary variables are one Boolean each, and a pair of them needs one more for their product.
"""

import numpy as np
from harness.factors import FactorArrays
from ortools.sat.python import cp_model

read = FactorArrays.from_arrays

UNITS = 1_000_000
MAX_STATES = 400_000  # Booleans; the model alone takes about half a minute to write


def refuse(problem, task):
    n_states = sum(len(g.scopes) * (1 if is_product(g) else g.n_cells) for g in problem.groups)
    return f"{n_states:.1e} joint states" if n_states > MAX_STATES else None


def is_product(group):
    return group.tables.shape[1:] == (2, 2) and np.isfinite(group.tables).all()


class Model:
    """Labels as literals, and a linear objective in integers."""

    def __init__(self, problem):
        self.model = cp_model.CpModel()
        self.literals, self.weights, self.constant, self.n_rounded = [], [], 0, 0
        self.labels = [self.label_literals(problem.unary_of(i)) for i in range(len(problem.domain))]
        for group in problem.groups:
            add = self.add_product if is_product(group) else self.add_states
            for f, scope in enumerate(group.scopes.tolist()):
                add(scope, group.table(f))
        self.model.maximize(
            cp_model.LinearExpr.weighted_sum(self.literals, self.weights) + self.constant
        )

    def label_literals(self, scores):
        n = len(scores)
        if n == 1:
            self.add_constant(scores[0])
            return [self.model.new_constant(1)]
        if n == 2 and np.isfinite(scores).all():
            literal = self.model.new_bool_var("")
            self.weigh(literal, scores[1] - scores[0])
            self.add_constant(scores[0])
            return [literal.negated(), literal]
        literals = [self.model.new_bool_var("") for _ in range(n)]
        self.model.add_exactly_one(literals)
        for literal, score in zip(literals, scores.tolist(), strict=True):
            if np.isneginf(score):
                self.model.add(literal == 0)
            else:
                self.weigh(literal, score)
        return literals

    def add_product(self, scope, table):
        a, b = (self.labels[i][1] for i in scope)
        self.add_constant(table[0, 0])
        self.weigh(a, table[1, 0] - table[0, 0])
        self.weigh(b, table[0, 1] - table[0, 0])
        weight = table[1, 1] + table[0, 0] - table[1, 0] - table[0, 1]
        if units(weight) == 0:
            return
        both = self.model.new_bool_var("")
        self.weigh(both, weight)
        if weight > 0:
            self.model.add_implication(both, a)
            self.model.add_implication(both, b)
        else:
            self.model.add_bool_or([a.negated(), b.negated(), both])

    def add_states(self, scope, table):
        """Joint states of a label sum to the label: the constraints of the linear program."""
        with_label = [[[] for _ in range(k)] for k in table.shape]
        for state, score in np.ndenumerate(table):
            if np.isfinite(score):
                literal = self.model.new_bool_var("")
                self.weigh(literal, score)
                for axis, label in enumerate(state):
                    with_label[axis][label].append(literal)
        for axis, i in enumerate(scope):
            for label, literals in enumerate(with_label[axis]):
                expression = cp_model.LinearExpr.sum(literals)
                self.model.add(expression == self.labels[i][label])

    def add_constant(self, score):
        self.constant += units(score)
        self.n_rounded += 1

    def weigh(self, literal, score):
        self.n_rounded += 1
        if units(score):
            self.literals.append(literal)
            self.weights.append(units(score))


def units(score):
    return round(UNITS * float(score))


class Watch(cp_model.CpSolverSolutionCallback):
    """Keeps each better assignment."""

    def __init__(self, labels, keep):
        super().__init__()
        self.labels, self.keep = labels, keep

    def on_solution_callback(self):
        chosen = [[self.boolean_value(literal) for literal in own] for own in self.labels]
        self.keep([own.index(True) for own in chosen])


def prepare(problem, task):
    return Model(problem)


def solve(model, task, keep):
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = task.threads
    solver.parameters.max_time_in_seconds = task.wall_limit
    solver.parameters.relative_gap_limit = solver.parameters.absolute_gap_limit = 0.0
    solver.parameters.random_seed = task.seed
    status = solver.solve(model.model, Watch(model.labels, keep))
    keep.tell(proven=float(status == cp_model.OPTIMAL))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        # Each rounded score may be half a unit too small.
        keep.bound((solver.best_objective_bound + 0.5 * model.n_rounded) / UNITS)
