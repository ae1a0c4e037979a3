"""Factor graphs: variables with finite domains, and scores over small groups of them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sublearn import _core
from sublearn.graph import edges as edge_lists
from sublearn.graph.compiled import compile_graph, fill_forbidden, forbidden_depth, unary_bounds
from sublearn.graph.edges import Edges, GridWeights, NodeScores
from sublearn.graph.factors import Arguments, Factors, make_factors
from sublearn.graph.names import Names, Scopes, Variables
from sublearn.graph.table_makers import TableLike, as_table, dense
from sublearn.graph.tables import DenseTable, Table, TableStack
from sublearn.graph.unaries import as_domain, as_numbers, as_unaries
from sublearn.validation.values import is_int64, show

__all__ = ["FactorGraph"]

_BOTH_ON = dense([[0.0, 0.0], [0.0, 1.0]])


class FactorGraph:
    r"""Variables with finite domains, scores of their labels, and scores of groups of labels.

    The score of an assignment x is

    .. math::
        \sum_i \theta_i(x_i) + \sum_f s_f\, \theta_f(x_{\partial(f)})

    which is (3.24) of the paper with a scale for each factor. It is a logarithm of a probability up
    to a constant, and is to be maximised. A score of -inf forbids a state.

    Parameters
    ----------
    domain : array-like of int, optional
        Number of labels of each variable. Not needed where `unary` tells.
    unary : array-like, optional
        Scores of single labels: an array of shape (n_variables, n_labels), a list with an array for
        each variable, or all scores in one row. By default zeros.
    names : sequence of hashable, optional
        What variables are called. Factors, evidence and all else that takes variables then
        takes names as well as numbers; a number that is a name is taken as the name.

    Examples
    --------
    >>> graph = FactorGraph(unary=[[0.0, 1.0], [0.5, 0.0], [0.0, 0.0, 0.2]])
    >>> graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    >>> graph.add_factor([1, 2], [[0.0, 0.0, -float("inf")], [0.0, 0.0, 2.0]])
    >>> graph.score([1, 1, 2])
    4.2
    >>> graph
    FactorGraph(3 variables of 2 to 3 labels, 2 factors of 2 variables, 2 tables)
    """

    def __init__(
        self,
        domain: ArrayLike | None = None,
        unary: ArrayLike | None = None,
        *,
        names: Sequence[Hashable] | None = None,
    ):
        self._domain = as_domain(domain, unary)
        self._begin = np.concatenate([[0], np.cumsum(self._domain, dtype=np.int64)])
        self._unary = as_unaries(unary, self._domain, "FactorGraph.unary")
        self._factors: list[Factors] = []
        self._known: dict[tuple[tuple[int, ...], bytes], Table] = {}
        self._native: _core.FactorGraph | None = None
        self._native_depth = 0.0  # of its forbidden states
        self._is_unary_new = False
        self.grid_shape: tuple[int, int] | None = None
        self._names = Names(names, self.n_variables)

    @classmethod
    def from_arrays(
        cls,
        unary: ArrayLike,
        scopes: Scopes,
        table: TableLike,
        scale: ArrayLike | None = None,
        *,
        domain: ArrayLike | None = None,
        names: Sequence[Hashable] | None = None,
    ) -> FactorGraph:
        """A graph with factors of one arity: see `add_factors`."""
        graph = cls(domain, unary, names=names)
        graph._add_named(scopes, table, scale, Arguments.of("from_arrays"))
        return graph

    @classmethod
    def grid(cls, unary: ArrayLike, table: TableLike, weights: GridWeights = None) -> FactorGraph:
        """A grid of variables with factors between neighbours in rows and in columns.

        Parameters
        ----------
        unary : array-like of shape (height, width, n_labels)
            Variable ``y * width + x`` is the one in row y, column x.
        table : array-like of shape (n_labels, n_labels), or a table
            Of all neighbours: the left or upper one is first. See `potts`, `truncated_linear`.
        weights : number, or pair of arrays, optional
            Scale of the factors: one number, or arrays of shape (height, width - 1) for
            neighbours in a row and (height - 1, width) for neighbours in a column.
        """
        scores = as_numbers(unary, "FactorGraph.grid: unary")
        if scores.ndim != 3:
            raise ValueError(
                f"FactorGraph.grid: unary must have shape (height, width, n_labels), got "
                f"{scores.shape}"
            )
        height, width, n_labels = scores.shape
        graph = cls(unary=scores.reshape(-1, n_labels))
        graph.grid_shape = (height, width)
        scopes, scale = edge_lists.grid_edges(height, width, weights)
        graph._add(scopes, table, scale, Arguments.of("grid", scale="weights"))
        return graph

    @classmethod
    def from_edges(
        cls, edges: Edges, unary: NodeScores, table: TableLike, *, weight: str | None = None
    ) -> FactorGraph:
        """A graph with one table on all edges.

        Parameters
        ----------
        edges : networkx graph, or iterable of (u, v) or (u, v, scale)
            A graph is anything with `nodes` and `edges` as in networkx.
        unary : array-like, or mapping from node to scores
            In the order of the graph's nodes; of a list of edges, nodes are then 0, 1, ...
        table : array-like of shape (n_labels, n_labels), or a table
            Scores of the labels of u and v.
        weight : str, optional
            Edge attribute of a networkx graph to be the scale.
        """
        names, rows = edge_lists.nodes_of(edges, unary)
        graph = cls(unary=rows, names=names)
        scopes, scale = edge_lists.edges_of(edges, graph._names.places, graph.n_variables, weight)
        called = Arguments.of("from_edges", scopes="edges", scale="edges")
        graph._add(scopes, table, scale, called)
        return graph

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._domain)

    @property
    def n_factors(self) -> int:
        """Number of factors over two variables or more."""
        return sum(len(group) for group in self._factors)

    @property
    def n_tables(self) -> int:
        """Number of tables that are stored."""
        distinct = {id(group.table): group.table for group in self._factors}
        return sum(table.n_tables for table in distinct.values())

    @property
    def domain(self) -> np.ndarray:
        """Number of labels of each variable."""
        return self._domain

    @property
    def names(self) -> list[Hashable] | None:
        """What variables are called."""
        return self._names.names

    def unary(self, variable: Hashable) -> np.ndarray:
        """Scores of the labels of a variable."""
        i = self._names.place(variable, "FactorGraph.unary: variable")
        return self._unary[self._begin[i] : self._begin[i + 1]].copy()

    def set_unary(self, scores: ArrayLike) -> None:
        """Replace all unary scores, in any form that the constructor takes.

        Tables stay as they are: solving again after this is a warm start.
        """
        self._unary = as_unaries(scores, self._domain, "FactorGraph.set_unary: scores")
        self._is_unary_new = True

    def add_unary(self, variable: Hashable, scores: ArrayLike) -> None:
        """Add scores to those of the labels of a variable."""
        i = self._names.place(variable, "FactorGraph.add_unary: variable")
        self._add([[i]], scores, None, Arguments.of("add_unary", table="scores"))

    def add_factor(self, variables: Variables, table: TableLike, scale: float = 1.0) -> None:
        """Add one factor.

        Parameters
        ----------
        variables : sequence of variables, by number or name
            The first belongs to the first axis of the table. A factor over one variable adds to
            its unary scores; of one in which a variable is repeated only the diagonal counts.
        table : array-like with an axis for each variable, SciPy sparse matrix, or a table
            Arrays with the same content are stored once.
        scale : float, default=1.0
        """
        called = Arguments.of("add_factor", scopes="variables")
        places = self._names.row(variables, called.scopes)
        made = as_table(table, len(places), called.table)
        self._add(places[None], self._shared(made), scale, called)

    def add_factors(self, scopes: Scopes, table: TableLike, scale: ArrayLike | None = None) -> None:
        """Add many factors of one arity.

        Parameters
        ----------
        scopes : array-like of shape (n_factors, arity)
            The variables of each factor, by number or name.
        table : array-like, SciPy sparse matrix, or a table
            One table for all factors, or an array with one axis more: a table for each, of
            which equal ones are stored once.
        scale : float or array-like of shape (n_factors,), optional
            By default 1.
        """
        self._add_named(scopes, table, scale, Arguments.of("add_factors"))

    def add_interactions(self, pairs: Scopes, weights: ArrayLike) -> None:
        """Add pairwise factors of binary variables that score ``weights`` where both are 1.

        Parameters
        ----------
        pairs : array-like of shape (n_factors, 2)
            Variables, by number or name.
        weights : float or array-like of shape (n_factors,)
            In the paper: theta_f(1, 1).
        """
        called = Arguments.of(
            "add_interactions", scopes="pairs", table="the 2 x 2 table of pairs", scale="weights"
        )
        self._add_named(pairs, _BOTH_ON, weights, called)

    def score(self, assignment: ArrayLike) -> float:
        """Value of an assignment, -inf if it has a forbidden state."""
        labels = self._labels(assignment, "FactorGraph.score: assignment")
        total = float(self._unary[self._begin[:-1] + labels].sum())
        return total + sum(float(group.scores(labels).sum()) for group in self._factors)

    def condition(self, evidence: Mapping[Any, int]) -> FactorGraph:
        """A graph of the same variables in which some have only one label.

        Parameters
        ----------
        evidence : mapping from variable, by number or name, to label

        Raises
        ------
        ValueError
            If a variable or label does not exist, or the graph forbids what the evidence says.
        """
        places = [self._names.place(key, "FactorGraph.condition: evidence") for key in evidence]
        labels = list(evidence.values())
        for key, i, label in zip(evidence, places, labels, strict=True):
            if not is_int64(label) or not 0 <= label < self._domain[i]:
                raise ValueError(
                    f"FactorGraph.condition: evidence must give variable {show(key)} a label in "
                    f"0..{self._domain[i] - 1}, got {show(label)}"
                )
        fixed = np.full(self.n_variables, -1, dtype=np.int64)
        fixed[places] = labels
        out = self.copy()
        out._unary = self._only(fixed)
        out._is_unary_new = True
        out._check_allowed()
        self._refuse_contradictions(fixed)
        return out

    def copy(self) -> FactorGraph:
        """A graph of its own that shares tables and arrays, none of which ever change."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out._factors, out._known = list(self._factors), dict(self._known)
        return out

    def __copy__(self) -> FactorGraph:
        return self.copy()

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_native": None}  # the core's graph is made again

    def __repr__(self) -> str:
        low, high = int(self._domain.min()), int(self._domain.max())
        labels = f"{low}" if low == high else f"{low} to {high}"
        arities = sorted({group.scopes.shape[1] for group in self._factors}) or [2]
        of = str(arities[0]) if len(arities) == 1 else f"{arities[0]} to {arities[-1]}"
        return (
            f"FactorGraph({self.n_variables:,} variables of {labels} labels, {self.n_factors:,} "
            f"factors of {of} variables, {self.n_tables:,} tables)"
        )

    @property
    def factors(self) -> tuple[Factors, ...]:
        """Groups of factors that share tables, as arrays `scopes`, `table`, `rows`, `scale`."""
        return tuple(self._factors)

    def _compiled(self) -> _core.FactorGraph:
        """The graph of the core, made when it is first needed and after changes."""
        if self._native is not None and not self._is_unary_new:
            return self._native
        depth = forbidden_depth(self._unary, self._begin, self._factors)
        if self._native is not None and depth == self._native_depth:
            self._native = self._native.with_unary(fill_forbidden(self._unary, self._begin, depth))
        else:
            self._native = compile_graph(
                self._domain, self._unary, self._begin, self._factors, depth
            )
        self._native_depth, self._is_unary_new = depth, False
        return self._native

    def _add_named(
        self, scopes: Scopes, table: TableLike, scale: ArrayLike | None, called: Arguments
    ) -> None:
        self._add(self._names.rows(scopes, called.scopes), table, scale, called)

    def _add(
        self, scopes: ArrayLike, table: TableLike, scale: ArrayLike | None, called: Arguments
    ) -> None:
        for group in make_factors(scopes, table, scale, self._domain, called):
            if group.scopes.shape[1] == 1:
                self._absorb(group)
            else:
                self._factors.append(group)
                self._native = None

    def _absorb(self, group: Factors) -> None:
        """Factors over one variable become unary scores."""
        cells = self._begin[group.scopes] + np.arange(group.table.shape[0])
        unary = self._unary.copy()
        np.add.at(unary, cells, group.tables_of_factors(slice(None)))
        self._unary, self._is_unary_new = unary, True

    def _shared(self, table: Table) -> Table:
        """The table that an equal array became before."""
        if not isinstance(table, DenseTable) or isinstance(table, TableStack):
            return table
        values = table.to_array()
        key = (values.shape, hashlib.blake2b(values.data, digest_size=16).digest())
        return self._known.setdefault(key, table)

    def _only(self, fixed: np.ndarray) -> np.ndarray:
        """Unary scores with -inf for all labels but the fixed ones."""
        allowed = np.repeat(fixed, self._domain)
        label = np.arange(len(self._unary)) - np.repeat(self._begin[:-1], self._domain)
        return np.where((allowed >= 0) & (label != allowed), -np.inf, self._unary)

    def _check_allowed(self) -> None:
        """Refuse a variable of which every label is forbidden."""
        unary_bounds(self._unary, self._begin)

    def _refuse_contradictions(self, fixed: np.ndarray) -> None:
        for group in self._factors:
            known = group.take((fixed[group.scopes] >= 0).all(axis=1))
            is_forbidden = np.isneginf(known.scores(fixed))
            if is_forbidden.any():
                scope = known.scopes[int(np.argmax(is_forbidden))]
                pairs = ", ".join(f"{show(self._names.name(i))}: {fixed[i]}" for i in scope)
                raise ValueError(
                    f"FactorGraph.condition: evidence must be possible, got {{{pairs}}}, which a "
                    f"factor forbids"
                )

    def _labels(self, assignment: ArrayLike, name: str) -> np.ndarray:
        labels = np.asarray(assignment)
        if labels.shape != (self.n_variables,) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be {self.n_variables} integers, got shape "
                f"{labels.shape} and dtype {labels.dtype}"
            )
        is_bad = (labels < 0) | (labels >= self._domain)
        if is_bad.any():
            i = int(np.argmax(is_bad))
            raise ValueError(
                f"{name} must give variable {i} a label in "
                f"0..{self._domain[i] - 1}, got {labels[i]}"
            )
        return labels
