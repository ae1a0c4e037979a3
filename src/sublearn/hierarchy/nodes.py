r"""The nodes of HiClass: what each learns from, and what it says of rows that reach it.

A node of the taxonomy tells its children apart, on the rows of its own (algorithm 2 of Tang, "Big
Data Optimization in Machine Learning", 2016). The node above the roots has number -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit
from sklearn.base import clone

from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.cost_model import choose_solver, node_size, solver_of_level
from sublearn.hierarchy.label_models import (
    LOSSES,
    BinaryTask,
    LabelModels,
    TaskOptions,
    gather,
    solve_tasks,
    summarise,
)
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.interruption import aside
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.linear_solve import LinearSolution
from sublearn.trace import Solution

__all__ = [
    "STAY",
    "Node",
    "NodeReport",
    "collect_nodes",
    "fit_estimators",
    "fit_sparse_models",
    "n_sparse_models",
]

TOP = -1
STAY = -1  # the class of rows that end at a node, beside the positions of its children


@dataclass(frozen=True, eq=False)
class Node:
    """A label with children that have rows, the rows that reach it, and where they go.

    Parameters
    ----------
    label : int
        Its position, -1 above the roots.
    level : int
        Of its children.
    children : ndarray of int
        Those with rows.
    rows : ndarray of int
        Rows of the training data that reach it.
    child_of : ndarray of int
        For each of them the child that it goes on to, STAY if it ends here.
    """

    label: int
    level: int
    children: np.ndarray
    rows: np.ndarray
    child_of: np.ndarray

    @property
    def is_plain(self) -> bool:
        """Whether all its rows go to one child: there is nothing to learn."""
        return len(self.children) == 1 and bool((self.child_of == self.children[0]).all())


@dataclass(frozen=True)
class NodeReport:
    """How a node's model was found: for `trace_`, and for the cost model."""

    label: int
    level: int
    n_rows: int
    n_features: int
    n_entries: int
    solver: str
    seconds: float
    objective: float
    certificate: float
    n_iter: int


def collect_nodes(taxonomy: Taxonomy, labels: np.ndarray, is_optional: bool) -> list[Node]:
    """The nodes of a forest that rows with these labels reach, parents first.

    Without `is_optional` rows that end at an inner label are no rows of its node.
    """
    parent = np.full(taxonomy.n_labels, TOP)
    has_parent = np.diff(taxonomy.indptr) > 0
    parent[has_parent] = taxonomy.indices
    at = labels.copy()
    steps: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    rows = np.arange(len(labels))
    _add(steps, at, rows, np.full(len(rows), STAY))
    while len(rows):
        above = parent[at]
        _add(steps, above, rows, at)
        is_left = above != TOP
        at, rows = above[is_left], rows[is_left]
    nodes = [_node(taxonomy, label, parts, is_optional) for label, parts in steps.items()]
    found = [node for node in nodes if node is not None]
    return sorted(found, key=lambda node: (node.level, node.label))


def _add(
    steps: dict[int, list[tuple[np.ndarray, np.ndarray]]],
    nodes: np.ndarray,
    rows: np.ndarray,
    children: np.ndarray,
) -> None:
    order = np.argsort(nodes, kind="stable")
    found, first = np.unique(nodes[order], return_index=True)
    for node, own in zip(found.tolist(), np.split(order, first[1:]), strict=True):
        steps.setdefault(node, []).append((rows[own], children[own]))


def _node(
    taxonomy: Taxonomy,
    label: int,
    parts: list[tuple[np.ndarray, np.ndarray]],
    is_optional: bool,
) -> Node | None:
    rows = np.concatenate([part[0] for part in parts])
    child_of = np.concatenate([part[1] for part in parts])
    children = np.unique(child_of[child_of != STAY])
    if not len(children):
        return None
    keep = np.ones(len(rows), dtype=bool) if is_optional else child_of != STAY
    order = np.argsort(rows[keep], kind="stable")
    level = 0 if label == TOP else int(taxonomy.levels[label]) + 1
    return Node(label, level, children, rows[keep][order], child_of[keep][order])


# --- sparse linear models ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """One child against its siblings, and where the result goes."""

    node: Node
    child: int
    task: BinaryTask
    columns: np.ndarray | None


def fit_sparse_models(
    X: Any,
    nodes: list[Node],
    n_labels: int,
    C: float,
    solver: Any,
    options: TaskOptions,
    progress: Progress,
    closure: sp.csr_matrix | None = None,
) -> tuple[LabelModels, list[NodeReport], Solution]:
    """One model for each child of each node; the second of two is the first one's mirror.

    With a matrix `closure` of ancestors, children overlap: a row is one of all its ancestors.
    """
    rows = X.tocsr() if sp.issparse(X) else X
    jobs = [job for node in nodes for job in _jobs(rows, node, C, solver, closure)]
    found = solve_tasks([job.task for job in jobs], options, progress)
    own = _gathered(jobs, found, X.shape[1], options)
    weights, intercepts = _spread(own, jobs, nodes, X, n_labels)
    reports = [_report(job, solution) for job, solution in zip(jobs, found, strict=True)]
    return LabelModels(weights, intercepts), reports, summarise(found)


def n_sparse_models(node: Node, is_overlapping: bool) -> int:
    """How many models `fit_sparse_models` solves for a node; children overlap with a closure."""
    if node.is_plain:
        return 0
    return 1 if _is_pair(node) and not is_overlapping else len(node.children)


def _jobs(X: Any, node: Node, C: float, solver: Any, closure: sp.csr_matrix | None) -> list[_Job]:
    if node.is_plain:
        return []
    part, columns = _filled_columns(X[node.rows])
    asked = solver_of_level(solver, node.level)
    chosen = choose_solver(node_size(part)) if asked == "auto" else asked
    l1 = 1.0 / (C * len(node.rows))  # (2.2.2) divided by C and by the number of rows
    if closure is not None:
        by_label = closure[node.child_of].tocsc()
        own = [by_label.indices[by_label.indptr[c] : by_label.indptr[c + 1]] for c in node.children]
    else:
        children = node.children[:1] if _is_pair(node) else node.children
        own = [np.flatnonzero(node.child_of == c) for c in children]
    tasks = [BinaryTask(part, positives, l1, chosen) for positives in own]
    pairs = zip(node.children, tasks, strict=False)
    return [_Job(node, int(c), task, columns) for c, task in pairs]


def _is_pair(node: Node) -> bool:
    """Whether one model tells all there is: what is not the first child is the second."""
    return len(node.children) == 2 and bool(np.isin(node.child_of, node.children).all())


def _filled_columns(X: Any) -> tuple[Any, np.ndarray | None]:
    """Columns with entries, and which they are; all of a dense matrix."""
    if not sp.issparse(X):
        return as_columns(X), None
    columns = np.unique(X.indices)
    place = np.zeros(X.shape[1], dtype=X.indices.dtype)
    place[columns] = np.arange(len(columns), dtype=X.indices.dtype)
    part = sp.csr_matrix((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
    return as_columns(part), columns


def with_constant(X: Any) -> Any:
    """Features with a constant one behind them, by columns as they were."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sp.issparse(X):
        return sp.hstack([X, sp.csc_matrix(ones)], format="csc")
    return np.asfortranarray(np.hstack([X, ones]))


def constant_as_intercept(models: LabelModels) -> LabelModels:
    """The weights of the last feature, a constant, as intercepts."""
    by_feature = models.weights.tocsr()
    constants = by_feature[-1].toarray()[0]
    return LabelModels(by_feature[:-1].tocsc(), models.intercepts + constants)


def _gathered(
    jobs: list[_Job],
    found: list[LinearSolution | None],
    n_features: int,
    options: TaskOptions,
) -> LabelModels | None:
    if not jobs:
        return None
    tasks, columns = [job.task for job in jobs], [job.columns for job in jobs]
    return gather(tasks, found, columns, n_features, options)


def _spread(
    own: LabelModels | None, jobs: list[_Job], nodes: list[Node], X: Any, n_labels: int
) -> tuple[sp.csc_matrix, np.ndarray]:
    """A column for each label; labels without a model have constants that never or always win."""
    never, always = LOSSES["logistic"].constants
    intercepts = np.full(n_labels, never, dtype=X.dtype)
    source, sign = np.full(n_labels, -1), np.ones(n_labels)
    for node in nodes:
        if node.is_plain:
            intercepts[node.children] = always
    for k, job in enumerate(jobs):
        source[job.child], sign[job.child] = k, 1.0
        if _is_pair(job.node):
            other = int(job.node.children[1])
            source[other], sign[other] = k, -1.0
    taken = np.flatnonzero(source >= 0)
    if own is None:
        return sp.csc_matrix((X.shape[1], n_labels), dtype=X.dtype), intercepts
    intercepts[taken] = own.intercepts[source[taken]] * sign[taken]
    place = sp.csr_matrix(
        (sign[taken].astype(X.dtype), (source[taken], taken)), shape=(len(jobs), n_labels)
    )
    return (own.weights @ place).tocsc(), intercepts


def _report(job: _Job, solution: Any) -> NodeReport:
    base = (job.child, job.node.level, *node_size(job.task.X), job.task.solver)
    if solution is None:
        return NodeReport(*base, 0.0, 0.0, 0.0, 0)
    seconds = solution.trace["seconds"]
    spent = float(seconds[-1]) if len(seconds) else 0.0
    return NodeReport(*base, spent, solution.objective, solution.certificate, solution.n_iter)


def sparse_log_scores(node: Node, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of children, each against its siblings, and of ending here."""
    own = z[:, node.children].astype(np.float64)
    return log_expit(own), log_expit(-own).sum(axis=1)


# --- any classifier --------------------------------------------------------------------------


def fit_estimators(
    X: Any, nodes: list[Node], estimator: Any, n_jobs: int, progress: Progress
) -> dict[int, Any]:
    """A clone of `estimator` for each node, fitted on its rows to tell its children apart."""
    rows = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)

    def fit_one(node: Node) -> Any:
        if progress.stop_requested:
            return None
        model = aside(
            clone(estimator).fit, rows[node.rows], node.child_of, n_operations=np.inf
        )  # of whatever library
        progress.finish_solve()
        return model

    taught = [node for node in nodes if not node.is_plain]
    hints = progress.hints(cost=lambda node: len(node.rows))
    models = map_blocks(fit_one, taught, n_jobs, hints=hints)
    pairs = zip(taught, models, strict=True)
    return {node.label: model for node, model in pairs if model is not None}


def estimator_log_scores(node: Node, model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of children, and of ending here, as a node's classifier gives them."""
    if hasattr(model, "predict_proba"):
        with np.errstate(divide="ignore"):
            found = np.log(model.predict_proba(X))
    else:
        margins = np.asarray(model.decision_function(X), dtype=np.float64)
        margins = np.column_stack([-margins, margins]) if margins.ndim == 1 else margins
        found = log_expit(margins)
    columns = {int(c): k for k, c in enumerate(model.classes_)}
    own = found[:, [columns[int(c)] for c in node.children]]
    stay = found[:, columns[STAY]] if STAY in columns else np.full(len(own), -np.inf)
    return own, stay
