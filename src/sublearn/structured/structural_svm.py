"""Graphs of labels: a structural SVM with one table for each kind of edge."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sublearn.execution import all_or_nothing
from sublearn.fitting.held_out import split_rows
from sublearn.graph import FactorGraph, solve_map
from sublearn.io.fields import Floats, ListOf, OrAbsent
from sublearn.structured.learning import Problem, Weights
from sublearn.structured.model import LEARNING_RULES, StructuredModel
from sublearn.structured.samples import Graphs, stack_samples
from sublearn.structured.sequences import encode_tags
from sublearn.trace import Callback
from sublearn.validation import (
    InstanceOf,
    Interval,
    OrNone,
    Positive,
    Rule,
    check_features,
    check_params,
)
from sublearn.validation.values import show

__all__ = ["StructuralSVM"]

_MOST_NODES = 4  # of a factor
_MOST_CELLS = 10**8  # of a table: 800 MB
_MAP_ITER = 200  # of the solver of the linear program, where a graph has cycles


class StructuralSVM(StructuredModel):
    r"""Labels of the nodes of a graph, chosen together: grids, trees, any graph.

    Edges are listed by template (see :class:`Sample`); each template F has one table
    :math:`T_F` of scores of label pairs. The score of labels :math:`y` is

    .. math::
        \sum_j w_{y_j}^\top x_j + \sum_F \sum_{(a, b) \in F} s_{ab}\, T_F(y_a, y_b)

    and the objective is that of :class:`ChainSVM`, with :math:`\tfrac12 \|T_F\|^2` for every
    template. On trees it is solved exactly. On graphs with cycles the inner maximum is relaxed to
    the local polytope, (5) of [1]_: a linear program, of value at least that of the best labels.

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
    tol : float, default=0.01
        The fit ends when `certificate_` is at most this.
    max_iter : int, default=30
        Limit on the passes over the samples.
    evaluate_every : int, default=5
        Passes from one computation of the objective to the next; it takes MAP inference on all
        samples. After the last pass it is computed in any case. 0 never computes it: the fit then
        takes `max_iter` passes.
    early_stopping : bool, default=False
        Keep samples away from training, end the fit when the share of right labels in them has not
        risen for `n_iter_no_change` passes, and return the best model, not the last.
    validation_fraction : float, default=0.1
        Share of the samples that `early_stopping` keeps away.
    n_iter_no_change : int, default=3
        Patience of early stopping, in passes.
    average : bool, default=True
        Whether the model is a mean over passes, as in :class:`ChainSVM`.
    method : {"block", "away"}, default="block"
        Algorithm 4 or algorithm 2 of [1]_, as in :class:`ChainSVM`.
    rho : float or None, default=None
        Penalty on disagreement of nodes and edges, as in :class:`ChainSVM`.
    label_parts : int, default=1
        Parts of the labels of which a visit to a node searches one, as in :class:`ChainSVM`.
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
    >>> samples = [Sample(np.array([[1.0], [0.0], [0.0]]), star), Sample(-np.eye(3, 1), star)]
    >>> model = StructuralSVM(C=10.0, max_iter=100, random_state=0)
    >>> model = model.fit(samples, [["on", "on", "on"], ["off", "off", "off"]])
    >>> model.predict(samples)
    [['on', 'on', 'on'], ['off', 'off', 'off']]
    """

    _rules: ClassVar[dict[str, Rule]] = LEARNING_RULES | {
        "map_time_limit": OrNone(Positive(float)),
    }

    _weights: sp.csr_matrix  # a row for each feature, then for the bias
    _arities: dict[str, int]  # how many nodes the factors of each template have
    templates_: tuple[str, ...]
    tables_: dict[str, np.ndarray]

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 0.01,
        max_iter: int = 30,
        evaluate_every: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        average: bool = True,
        method: str = "block",
        rho: float | None = None,
        label_parts: int = 1,
        map_time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.evaluate_every = evaluate_every
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.average = average
        self.method = method
        self.rho = rho
        self.label_parts = label_parts
        self.map_time_limit = map_time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, samples: Any, labels: Any) -> StructuralSVM:
        """Learn from samples and the labels of their nodes.

        Parameters
        ----------
        samples : list of Sample
        labels : list of array-like
            For each sample a label for each node; a grid of labels is read row by row. Labels are
            strings, numbers or anything else that is hashable, of one type.

        Returns
        -------
        StructuralSVM
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        given = stack_samples(samples, None, name)
        flat = _flatten_labels(labels, given.n_nodes, name)
        X = self._with_bias(check_features(self, given.rows, reset=True))
        self.classes_, truth = encode_tags(flat, name, "labels")
        self._arities = given.arities
        self.templates_ = tuple(given.arities)
        self._refuse_large_tables()
        seed = self._seed()
        train, held_out = self._divide(samples, seed)
        if held_out is None:
            problem, judge = self._problem(given, X, truth), None
        else:
            ends = np.cumsum(given.n_nodes)
            nodes = [np.arange(end - n, end) for end, n in zip(ends, given.n_nodes, strict=True)]
            parts = []
            for which in (train, held_out):
                rows = np.concatenate([nodes[i] for i in which])
                graphs = stack_samples([samples[i] for i in which], self._arities, name)
                parts.append(self._problem(graphs, X[rows], truth[rows]))
            problem, judged = parts
            judge = self._judge(judged)
        learnt = self._learn(problem, seed, self._primal(problem), judge)
        self._weights = learnt.weights.W
        self.tables_ = dict(zip(self.templates_, learnt.weights.tables, strict=True))
        return self

    def _refuse_large_tables(self) -> None:
        n_labels = len(self.classes_)
        for name, arity in self._arities.items():
            if n_labels**arity > _MOST_CELLS:
                raise ValueError(
                    f"{type(self).__name__}: the table of template {name!r} must have at most "
                    f"{_MOST_CELLS:,} cells, got {n_labels} labels at {arity} nodes"
                )

    def _divide(self, samples: Any, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        if not self.early_stopping:
            return np.arange(len(samples)), None
        if len(samples) < 2:
            raise ValueError(
                f"{type(self).__name__}: samples must be at least 2 for early_stopping, got 1"
            )
        return split_rows(len(samples), self.validation_fraction, np.random.default_rng(seed))

    def _problem(self, graphs: Graphs, X: sp.csr_matrix, truth: np.ndarray) -> Problem:
        return Problem(
            X=X,
            truth=np.ascontiguousarray(truth, dtype=np.int32),
            n_labels=len(self.classes_),
            node_begin=np.concatenate([[0], np.cumsum(graphs.n_nodes)]),
            factor_begin=np.concatenate([[0], np.cumsum(graphs.n_factors)]),
            scope=graphs.scope,
            table=graphs.table,
            arity=tuple(graphs.arities.values()),
            scale=graphs.scale,
        )

    def _primal(self, problem: Problem) -> Any:
        """1/2 |w|^2 + C (best score with mistakes counted - score of the truth)."""
        of_truth = problem.features_of_truth()
        mistakes = np.ones((len(problem.truth), problem.n_labels))
        mistakes[np.arange(len(problem.truth)), problem.truth] = 0.0

        def primal(weights: Weights, monitor: Any) -> float:
            found = self._solve(problem, weights, mistakes, monitor)
            loss = max(0.0, found.bound - weights.dot(of_truth))
            return 0.5 * weights.squared_norm() + self.C * loss

        return primal

    def _judge(self, problem: Problem) -> Any:
        def accuracy(weights: Weights, monitor: Any) -> float:
            found = self._solve(problem, weights, 0.0, monitor)
            return float(np.mean(found.assignment == problem.truth))

        return accuracy

    def _solve(self, graphs: Problem, weights: Weights, extra: Any, monitor: Any = None) -> Any:
        """MAP inference on all samples at once: one graph of as many components."""
        unary = np.asarray((graphs.X @ weights.W).todense(), dtype=np.float64) + extra
        graph = FactorGraph(unary=unary)
        for number, table in enumerate(weights.tables):
            chosen, nodes = graphs.scopes_of(number)
            if len(chosen):
                scale = None if graphs.scale is None else graphs.scale[chosen]
                graph.add_factors(nodes, table, scale)
        return solve_map(
            graph,
            max_iter=_MAP_ITER,
            time_limit=self.map_time_limit if monitor is None else None,
            search_work=1e8 if monitor is None else 0.0,
            n_jobs=self.n_jobs,
            callback=None if monitor is None else (lambda _: monitor.stop_requested),
        )

    def predict(self, samples: Any) -> list[list[Any]]:
        """Labels of the nodes of each sample, of highest score; exactly on trees."""
        check_is_fitted(self)
        problem, n_nodes = self._read(samples)
        found = self._solve(problem, self._model, 0.0).assignment
        labels = self.classes_[found].tolist()
        ends = np.cumsum(n_nodes).tolist()
        return [labels[end - n : end] for end, n in zip(ends, n_nodes.tolist(), strict=True)]

    def decision_function(self, samples: Any) -> list[np.ndarray]:
        """Scores of each label at each node, without edges: (n_nodes, n_classes) per sample."""
        check_is_fitted(self)
        problem, n_nodes = self._read(samples)
        return np.split((problem.X @ self._weights).toarray(), np.cumsum(n_nodes)[:-1])

    def score(self, samples: Any, labels: Any) -> float:
        """Share of nodes with the right label; one that `fit` did not see is never right."""
        check_is_fitted(self)
        problem, n_nodes = self._read(samples)
        flat = _flatten_labels(labels, n_nodes, type(self).__name__)
        found = self._solve(problem, self._model, 0.0).assignment
        return float(np.mean(found == self._codes_of(flat, "labels")))

    @property
    def coef_(self) -> Any:
        """Weights of features, a row for each label."""
        return self._weights[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        if not self.fit_intercept:
            return np.zeros(len(self.classes_))
        return self._weights[[self.n_features_in_]].toarray()[0]

    @property
    def _model(self) -> Weights:
        return Weights(self._weights, list(self.tables_.values()))

    def _read(self, samples: Any) -> tuple[Problem, np.ndarray]:
        graphs = stack_samples(samples, self._arities, type(self).__name__)
        X = self._with_bias(check_features(self, graphs.rows, reset=False))
        return self._problem(graphs, X, np.zeros(X.shape[0])), graphs.n_nodes

    def _with_bias(self, X: sp.csr_matrix) -> sp.csr_matrix:
        if not self.fit_intercept:
            return X
        return sp.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr")

    def _to_bundle(self) -> dict[str, Any]:
        cells = [np.zeros(0), *(table.reshape(-1) for table in self.tables_.values())]
        state = {
            "weights": self._weights,
            "templates": list(self.templates_),
            "arities": list(self._arities.values()),
            "tables": np.concatenate(cells),
        }
        return super()._to_bundle() | state

    def _fields(self) -> Any:
        return super()._fields() | {
            "templates": ListOf(InstanceOf(str), "templates"),
            "arities": OrAbsent(ListOf(Interval(int, 1, _MOST_NODES), "templates")),
            "tables": Floats(None, finite=True, bits=64),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._refuse_other_rows(state, int(self.fit_intercept))
        self._weights, self.templates_ = state.pop("weights"), tuple(state.pop("templates"))
        # Files of before templates of three nodes have no arities: all of them were pairs.
        arities = state.pop("arities", [2] * len(self.templates_))
        self._arities = dict(zip(self.templates_, arities, strict=True))
        cells, n_labels = state.pop("tables").reshape(-1), len(state["classes_"])
        n_cells = sum(n_labels**arity for arity in self._arities.values())
        if len(self._arities) < len(self.templates_) or len(cells) != n_cells:
            raise ValueError(
                f"tables must have {n_cells} cells for {n_labels} classes_ and templates "
                f"{show(self._arities)}, got {len(cells)}"
            )
        self.tables_ = {}
        for name, arity in self._arities.items():
            part, cells = np.split(cells, [n_labels**arity])
            self.tables_[name] = part.reshape((n_labels,) * arity)
        super()._restore(state)


def _flatten_labels(labels: Any, n_nodes: np.ndarray, head: str) -> list[Any]:
    if not hasattr(labels, "__len__") or isinstance(labels, (str, bytes)):
        raise ValueError(f"{head}: labels must have a list for each sample, got {show(labels)}")
    if len(labels) != len(n_nodes):
        raise ValueError(
            f"{head}: labels must have a list for each of {len(n_nodes)} samples, got {len(labels)}"
        )
    flat: list[Any] = []
    for i, (some, n) in enumerate(zip(labels, n_nodes.tolist(), strict=True)):
        if isinstance(some, (str, bytes)) or not hasattr(some, "__len__"):
            raise ValueError(f"{head}: labels[{i}] must be a list of labels, got {show(some)}")
        found = some.ravel().tolist() if isinstance(some, np.ndarray) else list(some)
        if len(found) != n:
            raise ValueError(
                f"{head}: labels[{i}] must have a label for each of {n} nodes, got {len(found)}"
            )
        flat.extend(found)
    return flat
