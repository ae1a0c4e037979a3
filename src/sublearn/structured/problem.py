"""What is learnt from, and what is learnt: samples as arrays of the core, and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

__all__ = ["Problem", "Weights", "begins", "split_tables"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples as the core reads them: nodes with features and true labels, factors over them.

    A sample may be empty. `scope` has the nodes of one factor after another, and `arity` tells for
    each table how many nodes its factors have.
    """

    X: sp.csr_matrix  # a row for each node
    truth: np.ndarray  # int32, label of each node
    n_labels: int  # of every node
    node_begin: np.ndarray  # int64, first node of each sample, and the end
    factor_begin: np.ndarray  # int64, first factor of each sample, and the end
    scope: np.ndarray  # int32
    table: np.ndarray  # int32, which table scores a factor
    arity: tuple[int, ...]
    scale: np.ndarray | None  # of each factor, what its table is multiplied by; None is 1
    weight: np.ndarray | None = None  # of each sample, what its loss counts; None is 1
    features: sp.csr_matrix | None = None  # of each factor, the scale first; None if none has any
    width: tuple[int, ...] = ()  # of each table, features with the scale; 0 is a scale alone
    costs: np.ndarray | None = None  # of labels, a row for each true one; None is 1 if wrong

    @property
    def n_nodes(self) -> np.ndarray:
        """Of each sample."""
        return np.diff(self.node_begin)

    def take(self, samples: np.ndarray) -> Problem:
        """Some of the samples, in increasing order."""
        nodes = _members(self.node_begin, samples)
        factors = _members(self.factor_begin, samples)
        place = np.zeros(len(self.truth), dtype=np.int32)
        place[nodes] = np.arange(len(nodes))
        return replace(
            self,
            X=self.X[nodes],
            truth=self.truth[nodes],
            node_begin=begins(self.n_nodes[samples]),
            factor_begin=begins(np.diff(self.factor_begin)[samples]),
            scope=place[self.scope[_members(self.scope_begin, factors)]],
            table=self.table[factors],
            scale=None if self.scale is None else self.scale[factors],
            weight=None if self.weight is None else self.weight[samples],
            features=None if self.features is None else self.features[factors],
        )

    @property
    def scope_begin(self) -> np.ndarray:
        """Where the nodes of each factor begin in `scope`, and the end."""
        return begins(np.array(self.arity, dtype=np.int64)[self.table])

    def scopes_of(self, table: int) -> tuple[np.ndarray, np.ndarray]:
        """Which factors have this table, and their nodes: shape (n_factors, arity)."""
        chosen = np.flatnonzero(self.table == table)
        begin = self.scope_begin[chosen]
        return chosen, self.scope[begin[:, None] + np.arange(self.arity[table])]

    @property
    def table_shapes(self) -> list[tuple[int, ...]]:
        """An axis of labels for each node of a table's factors, behind one of features if any."""
        return [
            ((width,) if width else ()) + (self.n_labels,) * arity
            for arity, width in zip(self.arity, self.widths, strict=True)
        ]

    @property
    def widths(self) -> tuple[int, ...]:
        """`width`, with zeros where no factor has features."""
        return self.width or (0,) * len(self.arity)

    def features_of(self, table: int, chosen: np.ndarray) -> sp.csr_matrix:
        """Features of these factors, which have this table."""
        assert self.features is not None
        return self.features[chosen][:, : self.widths[table]]

    def mistakes(self) -> np.ndarray:
        """What each label of each node costs."""
        costs = 1.0 - np.eye(self.n_labels) if self.costs is None else self.costs
        return costs[self.truth]

    @property
    def worst_loss(self) -> float:
        """What all nodes cost at most."""
        if self.costs is None:
            return float(len(self.truth))
        return float(self.costs.max(axis=1)[self.truth].sum())

    def features_of_truth(self) -> Weights:
        """The sum of phi(x, y) over samples: its product with w is the score of all truths."""
        n_nodes = len(self.truth)
        weight = np.ones(len(self.n_nodes)) if self.weight is None else self.weight
        of_nodes = np.repeat(weight, self.n_nodes)
        of_factors = np.repeat(weight, np.diff(self.factor_begin))
        Y = sp.csr_matrix((of_nodes, self.truth, np.arange(n_nodes + 1)), (n_nodes, self.n_labels))
        weight_of = of_factors
        if self.scale is not None:
            of_factors = of_factors * self.scale
        tables = [np.zeros(shape) for shape in self.table_shapes]
        for number, table in enumerate(tables):
            chosen, nodes = self.scopes_of(number)
            labels = tuple(self.truth[nodes].T)
            if not self.widths[number]:
                np.add.at(table, labels, of_factors[chosen])
                continue
            cells = np.ravel_multi_index(labels, table.shape[1:])
            n, n_cells = len(chosen), table[0].size
            ones = sp.csr_matrix((weight_of[chosen], cells, np.arange(n + 1)), (n, n_cells))
            table += (self.features_of(number, chosen).T @ ones).toarray().reshape(table.shape)
        return Weights((self.X.T @ Y).tocsr(), tables)


def begins(sizes: np.ndarray) -> np.ndarray:
    """Where parts of these sizes begin that stand one after another, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _members(begin: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Places of some parts, one part after another."""
    sizes = np.diff(begin)[parts]
    return np.repeat(begin[parts] - begins(sizes)[:-1], sizes) + np.arange(sizes.sum())


def split_tables(cells: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Tables of these shapes from their cells, one table after another."""
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=np.int64)
    parts = np.split(cells, ends)[: len(shapes)]
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


@dataclass(frozen=True, eq=False)
class Weights:
    """W, a row for each feature and a column for each label, and a table for each template."""

    W: sp.csr_matrix
    tables: Sequence[np.ndarray]

    def dot(self, other: Weights) -> float:
        """Inner product."""
        of_nodes = self.W.astype(np.float64).multiply(other.W).sum()
        pairs = zip(self.tables, other.tables, strict=True)
        return float(of_nodes + sum(np.vdot(mine, its) for mine, its in pairs))

    def squared_norm(self) -> float:
        """|w|^2."""
        of_nodes = np.square(self.W.data, dtype=np.float64).sum()
        return float(of_nodes + sum(np.vdot(table, table) for table in self.tables))
