"""Sequential reweighted message passing with dense messages: TRW-S where all factors are pairs.

Multipliers mu_{fi} reparametrise the scores without a change of any assignment's value:

    theta_i(a) + sum_f mu_{fi}(a)      and      theta_f(y) - sum_i mu_{fi}(y_i)

so the sum of their maxima is a bound. A pass visits the variables in order; each takes the
max-marginals of the factors that lie behind it and hands equal shares of its score to those ahead;
the bound never rises (Kolmogorov 2006; for factors of any arity Kolmogorov 2015). Assignments are
decoded in a pass, each variable given those already decided.
"""

from __future__ import annotations

import numpy as np
from harness.factors import FactorArrays

__all__ = ["Trws"]


class Trws:
    """Multipliers, and passes over the variables."""

    def __init__(self, problem: FactorArrays):
        self.graph = problem.without_forbidden()
        self.scopes: list[list[int]] = []
        self._place: list[tuple[int, int]] = []
        for number, group in enumerate(self.graph.groups):
            self.scopes += group.scopes.tolist()
            self._place += [(number, f) for f in range(len(group.scopes))]
        self.mu = [[np.zeros(self.graph.domain[i]) for i in scope] for scope in self.scopes]
        self._buffers: dict[tuple[int, ...], np.ndarray] = {}
        self.beside: list[list[int]] = [[] for _ in range(self.graph.n_variables)]
        for f, scope in enumerate(self.scopes):
            for i in scope:
                self.beside[i].append(f)

    def table(self, f: int) -> np.ndarray:
        """Scores of a factor, scaled."""
        group, row = self._place[f]
        return self.graph.groups[group].table(row)

    def iterate(self) -> np.ndarray:
        """A pass forth and one back; the assignment that was decoded on the way back."""
        self._pass(range(self.graph.n_variables), 1)
        return self._pass(range(self.graph.n_variables - 1, -1, -1), -1)

    def bound(self) -> float:
        """The sum of the maxima."""
        nodes = sum(float(self._belief(i).max()) for i in range(self.graph.n_variables))
        return nodes + sum(float(self._rest(f).max()) for f in range(len(self.scopes)))

    def _pass(self, order: range, way: int) -> np.ndarray:
        labels = np.full(self.graph.n_variables, -1)
        for i in order:
            decided = self.graph.unary_of(i).copy()
            behind, ahead = [], []
            for f in self.beside[i]:
                keys = [way * j for j in self.scopes[f]]
                is_behind = way * i > min(keys)
                decided += self._given(f, i, labels) if is_behind else self._mu(f, i)
                if is_behind:
                    behind.append(f)
                if way * i < max(keys):
                    ahead.append(f)
            labels[i] = int(decided.argmax())
            for f in behind:
                self._mu(f, i)[:] += self._marginal(f, i)
            share = self._belief(i) / max(len(behind), len(ahead), 1)
            for f in ahead:
                self._mu(f, i)[:] -= share
        return labels

    def _mu(self, f: int, i: int) -> np.ndarray:
        return self.mu[f][self.scopes[f].index(i)]

    def _belief(self, i: int) -> np.ndarray:
        total = self.graph.unary_of(i).copy()
        for f in self.beside[i]:
            total += self._mu(f, i)
        return total

    def _rest(self, f: int, but: int | None = None) -> np.ndarray:
        """The table of a factor less its multipliers, but for those of one variable."""
        out = self.table(f)
        scope, shape = self.scopes[f], out.shape
        buffer = self._buffers.setdefault(shape, np.empty(shape))
        for axis, (i, mu) in enumerate(zip(scope, self.mu[f], strict=True)):
            if i != but:
                across = mu.reshape([-1 if a == axis else 1 for a in range(len(scope))])
                out = np.subtract(out, across, out=buffer)
        return out

    def _marginal(self, f: int, i: int) -> np.ndarray:
        others = tuple(a for a, j in enumerate(self.scopes[f]) if j != i)
        return self._rest(f, but=i).max(axis=others) - self._mu(f, i)

    def _given(self, f: int, i: int, labels: np.ndarray) -> np.ndarray:
        """Best score of a factor for each label of i, variables behind it as they were decided."""
        scope = self.scopes[f]
        cells = tuple(slice(None) if labels[j] < 0 or j == i else labels[j] for j in scope)
        values = self.table(f)[cells]
        open_ones = [j for j in scope if labels[j] < 0 or j == i]
        for axis, j in enumerate(open_ones):
            if j != i:
                shape = [-1 if a == axis else 1 for a in range(len(open_ones))]
                values = values - self._mu(f, j).reshape(shape)
        others = tuple(a for a, j in enumerate(open_ones) if j != i)
        return values.max(axis=others) if others else values
