"""Graphs of labels: a structural SVM with one table for each kind of edge."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.execution import all_or_nothing
from sublearn.graph import FactorGraph, MapResult, solve_map
from sublearn.io.fields import Fields, Floats, ListOf, OrAbsent
from sublearn.structured.learning import Passes
from sublearn.structured.model import LEARNING_RULES, StructuredModel, append_columns
from sublearn.structured.problem import Problem, Weights, begins, split_tables
from sublearn.structured.samples import MOST_NODES, Graphs, Sample, stack_samples
from sublearn.structured.sequences import LabelLists, encode_flat, flatten_lists, split_lists
from sublearn.trace import Callback
from sublearn.typing import Seed, State
from sublearn.validation import (
    InstanceOf,
    Interval,
    NonNegative,
    OrNone,
    Positive,
    Rule,
    check_features,
    check_params,
)
from sublearn.validation.values import show

__all__ = ["StructuralSVM"]

_MOST_CELLS = 10**8  # of a table: 800 MB
_MAP_ITER = 200  # of the solver of the linear program, where a graph has cycles


class StructuralSVM(StructuredModel):
    r"""Labels of the nodes of a graph, chosen together: grids, trees, any graph.

    Edges are listed by template (see :class:`Sample`); each template F has one table
    :math:`T_F` of scores of label pairs. The score of labels :math:`y` is

    .. math::
        \sum_j w_{y_j}^\top x_j + \sum_F \sum_{(a, b) \in F} \Bigl[ s_{ab}\, T_F(y_a, y_b)
        + \sum_d z_{ab,d}\, V_{F,d}(y_a, y_b) \Bigr]

    with z the features of edges, if there are any. The objective is that of :class:`ChainSVM`, with
    :math:`\tfrac12 \|T_F\|^2` for every template and :math:`\tfrac12 \|V_{F,d}\|^2` for every
    feature of its edges. On trees it is solved exactly. On graphs with cycles the inner maximum is
    relaxed to the local polytope, (5) of [1]_: a linear program, of value at least that of the best
    labels.

    A template of three or four nodes has a table with as many axes, and
    :math:`T_F(y_a, y_b, y_c)` in the score. Its search takes about :math:`K^{n - 1}` steps for n
    nodes, where that of a pair reads a few cells; where one template has more than two nodes, all
    are searched that way.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, which is a sum over nodes.
    fit_intercept : bool, default=True
        Whether each label has a bias: a feature that is 1 everywhere. It is penalised like others.
    tol : float or None, default=None
        The fit ends when `certificate_` is at most this; a `ConvergenceWarning` says so if
        `max_iter` passes do not get there. None asks for no certificate: the fit ends at 0.01 or
        after `max_iter` passes, whichever comes first, without a warning.
    max_iter : int, default=30
        Limit on the passes over the samples.
    early_stopping : bool or int, default=False
        Keep samples away from training, end the fit when the share of right labels in them has not
        risen for so many passes, 3 if True, and return the best model, not the last.
    validation_fraction : float, default=0.1
        Share of the samples that `early_stopping` keeps away.
    average, solver, passes
        As in :class:`ChainSVM`.
    map_time_limit : float or None, default=None
        Seconds of MAP inference in one call of `predict`. None: no limit; with a limit the answer
        may depend on the machine.
    n_jobs : int or None, default=None
        Threads for MAP inference; None means 1, -1 all processors.
    random_state : int, RandomState instance, Generator or None, default=None
        Order of visits, and the held-out samples.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights of features.
    intercept_ : ndarray of shape (n_classes,)
        Biases; zeros without `fit_intercept`.
    templates_ : tuple of str
        Names of templates, sorted.
    tables_ : dict from template to ndarray of shape (n_classes, n_classes)
        Score of label a at the first node and b at the second in row a, column b; an axis for each
        node where a template has more of them.
    edge_coef_ : dict from template to ndarray of shape (n_edge_features, n_classes, n_classes)
        For templates whose edges have features, a table for each feature.
    objective_ : float
        Value of the objective; an upper bound of it on graphs with cycles. NaN if it was never
        computed.
    certificate_ : float
        As in :class:`ChainSVM`: no weights have an objective below
        ``(1 - certificate_) * objective_``, the relaxed one on graphs with cycles.
    n_iter_, held_out_accuracy_, trace_, n_features_in_
        As in :class:`ChainSVM`.

    References
    ----------
    .. [1] I. E.-H. Yen, X. Huang, K. Zhong, R. Zhang, P. Ravikumar, I. Dhillon, "Dual Decomposed
       Learning with Factorwise Oracle for Structural SVM of Large Output Domain", NIPS 2016.

    Examples
    --------
    >>> from sublearn.structured import Sample, StructuralSVM
    >>> import numpy as np
    >>> star = {"child": [[0, 1], [0, 2]]}
    >>> X = [Sample(np.array([[1.0], [0.0], [0.0]]), star), Sample(-np.eye(3, 1), star)]
    >>> model = StructuralSVM(C=10.0, max_iter=100, random_state=0)
    >>> model = model.fit(X, [["on", "on", "on"], ["off", "off", "off"]])
    >>> model.predict(X)
    [['on', 'on', 'on'], ['off', 'off', 'off']]
    """

    _kind: ClassVar[str] = "factor_graphs"

    _rules: ClassVar[dict[str, Rule]] = LEARNING_RULES | {
        "map_time_limit": OrNone(Positive(float)),
    }

    _arities: dict[str, int]  # how many nodes the factors of each template have
    _widths: dict[str, int]  # how many features
    templates_: tuple[str, ...]
    tables_: dict[str, np.ndarray]
    edge_coef_: dict[str, np.ndarray]

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 30,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        average: bool = True,
        solver: str = "block_descent",
        passes: Passes | None = None,
        map_time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.average = average
        self.solver = solver
        self.passes = passes
        self.map_time_limit = map_time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(
        self, X: Sequence[Sample], y: LabelLists, *, costs: ArrayLike | None = None
    ) -> StructuralSVM:
        """Learn from samples and the labels of their nodes.

        Parameters
        ----------
        X : list of Sample
        y : list of array-like
            For each sample a label for each node; a grid of labels is read row by row. Labels are
            strings, numbers or anything else that is hashable, of one type.
        costs : array-like of shape (n_classes, n_classes) or None, default=None
            What a node loses that has the label of the row and gets that of the column, labels in
            sorted order; zero where both are the same. None: 1 for each mistake.

        Returns
        -------
        StructuralSVM
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        graphs = stack_samples(X, None, None, name)
        labels = _flatten_labels(y, graphs.n_nodes, name)
        rows = check_features(self, graphs.rows, reset=True)
        self.classes_, truth = encode_flat(labels, name)
        self._arities, self._widths = graphs.arities, graphs.widths
        self.templates_ = tuple(graphs.arities)
        self._refuse_large_tables()
        problem = replace(self._problem(graphs, rows, truth), costs=self._check_costs(costs))
        self._keep_weights(self._learn(problem))
        return self

    def _keep_weights(self, weights: Weights) -> None:
        """Weights as attributes; the first table of a template with features is that of scales."""
        self._weights = weights.W
        self.tables_, self.edge_coef_ = {}, {}
        for name, table in zip(self.templates_, weights.tables, strict=True):
            has_features = self._widths[name] > 0
            self.tables_[name] = table[0] if has_features else table
            if has_features:
                self.edge_coef_[name] = table[1:]

    def _refuse_large_tables(self) -> None:
        n_labels = len(self.classes_)
        for name, arity in self._arities.items():
            width = self._widths[name]
            if n_labels**arity * (1 + width) > _MOST_CELLS:
                of_features = f" and {width} features" if width else ""
                raise ValueError(
                    f"{type(self).__name__}: the table of template {name!r} must have at most "
                    f"{_MOST_CELLS:,} cells, got {n_labels} labels at {arity} nodes{of_features}"
                )

    def _problem(self, graphs: Graphs, rows: sp.csr_matrix, truth: np.ndarray) -> Problem:
        return Problem(
            X=append_columns(rows, np.ones(rows.shape[0])) if self.fit_intercept else rows,
            truth=truth,
            n_labels=len(self.classes_),
            node_begin=begins(graphs.n_nodes),
            factor_begin=begins(graphs.n_factors),
            scope=graphs.scope,
            table=graphs.table,
            arity=tuple(graphs.arities.values()),
            scale=graphs.scale,
            features=graphs.edge_features,
            width=tuple(width + 1 if width else 0 for width in graphs.widths.values()),
        )

    def _best_labels(
        self, problem: Problem, weights: Weights, monitor: _core.Monitor | None = None
    ) -> np.ndarray:
        return self._solve(problem, weights, 0.0, monitor).assignment

    def _worst_score(self, problem: Problem, weights: Weights, monitor: _core.Monitor) -> float:
        return self._solve(problem, weights, problem.mistakes(), monitor).bound

    def _solve(
        self,
        problem: Problem,
        weights: Weights,
        extra: np.ndarray | float,
        monitor: _core.Monitor | None,
    ) -> MapResult:
        """MAP inference on all samples at once: one graph of as many components."""
        unary = np.asarray((problem.X @ weights.W).todense(), dtype=np.float64) + extra
        graph = FactorGraph(unary=unary)
        for number, table in enumerate(weights.tables):
            chosen, nodes = problem.scopes_of(number)
            if len(chosen) and problem.widths[number]:
                tables = problem.features_of(number, chosen) @ table.reshape(len(table), -1)
                graph.add_factors(nodes, tables.reshape(-1, *table.shape[1:]))
            elif len(chosen):
                scale = None if problem.scale is None else problem.scale[chosen]
                graph.add_factors(nodes, table, scale)
        return solve_map(
            graph,
            max_iter=_MAP_ITER,
            time_limit=self.map_time_limit if monitor is None else None,
            search_work=1e8 if monitor is None else 0.0,
            n_jobs=self.n_jobs,
            random_state=0,  # predictions do not depend on chance
            callback=None if monitor is None else (lambda _: monitor.stop_requested),
        )

    def predict(self, X: Sequence[Sample]) -> list[list[Hashable]]:
        """Labels of the nodes of each sample, of highest score; exactly on trees."""
        check_is_fitted(self)
        problem = self._read(X)
        found = self._best_labels(problem, self._model)
        return split_lists(self.classes_[found].tolist(), problem.n_nodes)

    def decision_function(self, X: Sequence[Sample]) -> list[np.ndarray]:
        """Scores of each label at each node, without edges: (n_nodes, n_classes) per sample."""
        check_is_fitted(self)
        problem = self._read(X)
        return np.split((problem.X @ self._weights).toarray(), problem.node_begin[1:-1])

    def score(self, X: Sequence[Sample], y: LabelLists) -> float:
        """Share of nodes with the right label; one that `fit` did not see is never right."""
        check_is_fitted(self)
        problem = self._read(X)
        labels = _flatten_labels(y, problem.n_nodes, type(self).__name__)
        return self._share_right(replace(problem, truth=self._codes_of(labels, "y")), self._model)

    @property
    def _model(self) -> Weights:
        tables = [
            np.concatenate([table[None], self.edge_coef_[name]])
            if name in self.edge_coef_
            else table
            for name, table in self.tables_.items()
        ]
        return Weights(self._weights, tables)

    def _read(self, X: Sequence[Sample]) -> Problem:
        graphs = stack_samples(X, self._arities, self._widths, type(self).__name__)
        rows = check_features(self, graphs.rows, reset=False)
        return self._problem(graphs, rows, np.zeros(rows.shape[0], dtype=np.int32))

    def _to_bundle(self) -> State:
        cells = [np.zeros(0), *(table.reshape(-1) for table in self._model.tables)]
        return super()._to_bundle() | {
            "templates": list(self.templates_),
            "arities": list(self._arities.values()),
            "widths": list(self._widths.values()),
            "tables": np.concatenate(cells),
        }

    def _fields(self) -> Fields:
        return super()._fields() | {
            "templates": ListOf(InstanceOf(str), "templates"),
            "arities": OrAbsent(ListOf(Interval(int, 1, MOST_NODES), "templates")),
            "widths": OrAbsent(ListOf(NonNegative(int), "templates")),
            "tables": Floats(None, finite=True, bits=64),
        }

    def _restore(self, state: State) -> None:
        self._restore_weights(state, int(self.fit_intercept))
        self.templates_ = tuple(state.pop("templates"))
        # Files of before templates of three nodes have no arities: all of them were pairs.
        arities = state.pop("arities", [2] * len(self.templates_))
        self._arities = dict(zip(self.templates_, arities, strict=True))
        # Nor had edges features.
        widths = state.pop("widths", [0] * len(self.templates_))
        self._widths = dict(zip(self.templates_, widths, strict=True))
        cells, n_labels = state.pop("tables").reshape(-1), len(state["classes_"])
        shapes = [
            ((1 + width,) if width else ()) + (n_labels,) * arity
            for arity, width in zip(self._arities.values(), self._widths.values(), strict=True)
        ]
        n_cells = sum(math.prod(shape) for shape in shapes)
        if len(self._arities) < len(self.templates_) or len(cells) != n_cells:
            raise ValueError(
                f"tables must have {n_cells} cells for {n_labels} classes_ and templates "
                f"{show(self._arities)}, got {len(cells)}"
            )
        self._keep_weights(Weights(self._weights, split_tables(cells, shapes)))
        super()._restore(state)


def _flatten_labels(y: LabelLists, n_nodes: np.ndarray, name: str) -> list[Hashable]:
    """Labels of all nodes one after another; a grid of labels is read row by row."""
    if isinstance(y, (list, tuple)):
        y = [labels.ravel() if isinstance(labels, np.ndarray) else labels for labels in y]
    return flatten_lists(y, n_nodes, f"{name}: y")
