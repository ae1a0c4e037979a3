r"""The nodes of HiClass: what each learns from, and what it says of rows that reach it.

A node of the taxonomy tells its children apart, on the rows of its own (algorithm 2 of Tang, "Big
Data Optimization in Machine Learning", 2016). The node above the roots has number -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit
from sklearn.base import BaseEstimator, clone

from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.cost_model import NODE_SOLVERS, choose_solver, node_size, solver_of_level
from sublearn.hierarchy.label_models import (
    LOSSES,
    BinaryTask,
    LabelModels,
    TaskOptions,
    by_rows,
    gather,
    solve_tasks,
    summarise,
)
from sublearn.hierarchy.margins import (
    N_PARTS,
    Line,
    Margins,
    has_probabilities,
    learn_lines,
    margins_of,
    unseen_margins,
)
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.interruption import aside
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.linear_solve import LinearSolution
from sublearn.trace import Solution, Trace
from sublearn.typing import Matrix

__all__ = [
    "STAY",
    "Node",
    "NodeModel",
    "NodeRows",
    "collect_nodes",
    "fit_estimators",
    "fit_sparse_models",
    "n_fits_of_a_node",
    "trace_of",
]

TOP = -1
_LEAST_PROBABILITY = 1e-6  # a forest says 0 of what no tree has seen, which need not be impossible
STAY = -1  # the class of rows that end at a node, beside the positions of its children


@dataclass(frozen=True, eq=False)
class Node:
    """A label with children that rows reach.

    Parameters
    ----------
    label : int
        Its position, -1 above the roots.
    level : int
        Of its children.
    children : ndarray of int
        Those with rows.
    is_plain : bool
        Whether all rows go to one child: there is nothing to learn.
    """

    label: int
    level: int
    children: np.ndarray
    is_plain: bool


@dataclass(frozen=True, eq=False)
class NodeRows:
    """A node, the training rows that reach it, and where each goes on: a child, or STAY."""

    node: Node
    rows: np.ndarray
    child_of: np.ndarray

    @classmethod
    def of(
        cls, label: int, level: int, children: np.ndarray, rows: np.ndarray, child_of: np.ndarray
    ) -> NodeRows:
        """The rows of a node that they decide about."""
        is_plain = len(children) == 1 and bool((child_of == children[0]).all())
        return cls(Node(label, level, children, is_plain), rows, child_of)

    def taught(self, are_nested: bool) -> np.ndarray:
        """The children with a model of their own.

        What is not the first of two children is the second, unless a row may be none or both.
        """
        children = self.node.children
        is_pair = len(children) == 2 and not are_nested and STAY not in self.child_of
        return children[: 0 if self.node.is_plain else 1 if is_pair else None]


def collect_nodes(taxonomy: Taxonomy, labels: np.ndarray, is_optional: bool) -> list[NodeRows]:
    """The nodes of a forest that rows with these labels reach, parents first.

    Without `is_optional` rows that end at an inner label are no rows of its node.
    """
    parent = np.full(taxonomy.n_labels, TOP)
    parent[np.diff(taxonomy.indptr) > 0] = taxonomy.indices
    closed = taxonomy.ancestor_matrix[labels]
    every = np.arange(len(labels))
    rows, child = np.repeat(every, np.diff(closed.indptr)), closed.indices.astype(np.int64)
    label = parent[child]
    if is_optional:
        rows, label = np.append(rows, every), np.append(label, labels)
        child = np.append(child, np.full(len(labels), STAY))
    order = np.lexsort((rows, label))
    found, first = np.unique(label[order], return_index=True)
    parts = []
    for t, at in zip(found.tolist(), np.split(order, first[1:]), strict=True):
        children = np.setdiff1d(child[at], [STAY])
        if len(children):
            level = int(taxonomy.levels[children[0]])
            parts.append(NodeRows.of(t, level, children, rows[at], child[at]))
    return sorted(parts, key=lambda part: (part.node.level, part.node.label))


# --- sparse linear models ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """One child against its siblings, and the sibling that is what the child is not, if any."""

    node: Node
    child: int
    task: BinaryTask
    mirrored: int | None


def fit_sparse_models(
    X: Matrix,
    parts: list[NodeRows],
    n_labels: int,
    C: float,
    solver: str | Sequence[str],
    options: TaskOptions,
    progress: Progress,
    closure: sp.csr_matrix | None = None,
) -> tuple[LabelModels, Solution]:
    """One model for each child of each node; the second of two is the first one's mirror.

    With a matrix `closure` of ancestors, children are nested: a row is one of all its ancestors.
    """
    rows = by_rows(X)
    jobs = [job for part in parts for job in _jobs(rows, part, C, solver, closure)]
    tasks = [job.task for job in jobs]
    found = solve_tasks(tasks, options, progress)
    models = _spread(gather(tasks, found, X, options), jobs, parts, n_labels)
    return models, replace(summarise(found), trace=trace_of(jobs, found))


def _jobs(
    X: Matrix,
    part: NodeRows,
    C: float,
    solver: str | Sequence[str],
    closure: sp.csr_matrix | None,
) -> list[_Job]:
    taught = part.taught(are_nested=closure is not None)
    if not len(taught):
        return []
    features, columns = _filled_columns(X[part.rows])
    asked = solver_of_level(solver, part.node.level)
    chosen = choose_solver(node_size(features)) if asked == "auto" else asked
    l1 = 1.0 / (C * len(part.rows))  # (2.2.2) divided by C and by the number of rows
    by_label = None if closure is None else closure[part.child_of].tocsc()
    mirrored = int(part.node.children[1]) if len(taught) < len(part.node.children) else None
    jobs = []
    for child in taught.tolist():
        if by_label is None:
            positives = np.flatnonzero(part.child_of == child)
        else:
            positives = by_label.indices[by_label.indptr[child] : by_label.indptr[child + 1]]
        task = BinaryTask(features, positives, l1, chosen, columns)
        jobs.append(_Job(part.node, child, task, mirrored))
    return jobs


def _filled_columns(X: Matrix) -> tuple[Matrix, np.ndarray | None]:
    """Columns with entries, and which they are; all of a dense matrix."""
    if isinstance(X, np.ndarray):
        return as_columns(X), None
    columns = np.unique(X.indices)
    place = np.zeros(X.shape[1], dtype=X.indices.dtype)
    place[columns] = np.arange(len(columns), dtype=X.indices.dtype)
    part = sp.csr_matrix((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
    return as_columns(part), columns


def with_constant(X: Matrix) -> Matrix:
    """Features with a constant one behind them, by columns as they were."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if isinstance(X, np.ndarray):
        return np.asfortranarray(np.hstack([X, ones]))
    return sp.hstack([X, sp.csc_matrix(ones)], format="csc")


def constant_as_intercept(models: LabelModels) -> LabelModels:
    """The weights of the last feature, a constant, as intercepts."""
    by_feature = models.weights.tocsr()
    constants = by_feature[-1].toarray()[0]
    return LabelModels(by_feature[:-1].tocsc(), models.intercepts + constants)


def _spread(
    own: LabelModels, jobs: list[_Job], parts: list[NodeRows], n_labels: int
) -> LabelModels:
    """A column for each label; labels without a model have constants that never or always win."""
    never, always = LOSSES["logistic"].constants
    dtype = own.intercepts.dtype
    intercepts = np.full(n_labels, never, dtype=dtype)
    for part in parts:
        if part.node.is_plain:
            intercepts[part.node.children] = always
    place = sp.lil_matrix((len(jobs), n_labels), dtype=dtype)
    for k, job in enumerate(jobs):
        place[k, job.child], intercepts[job.child] = 1, own.intercepts[k]
        if job.mirrored is not None:
            place[k, job.mirrored], intercepts[job.mirrored] = -1, -own.intercepts[k]
    return LabelModels((own.weights @ place.tocsr()).tocsc(), intercepts)


def trace_of(jobs: list[_Job], found: list[LinearSolution | None]) -> Trace:
    """A row for each model: what it was learned from, how, and how well."""
    sizes = [node_size(job.task.X) for job in jobs]
    ends = [
        (0.0, 0.0, 0.0, 0)
        if one is None
        else (max(one.trace["seconds"], default=0.0), one.objective, one.certificate, one.n_iter)
        for one in found
    ]
    return Trace(
        {
            "label": [job.child for job in jobs],
            "level": [job.node.level for job in jobs],
            **_columns(("n_rows", "n_features", "n_entries"), sizes),
            "solver": [NODE_SOLVERS.index(job.task.solver) for job in jobs],
            **_columns(("seconds", "objective", "certificate", "n_iter"), ends),
        }
    )


def _columns(names: tuple[str, ...], rows: Sequence[tuple[float, ...]]) -> dict[str, list[float]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def sparse_log_scores(node: Node, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of children, each against its siblings, and of ending here."""
    own = z[:, node.children].astype(np.float64)
    return log_expit(own), log_expit(-own).sum(axis=1)


# --- any classifier --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NodeModel:
    """The classifier of a node, and the map from its margins if it states no probabilities."""

    classifier: BaseEstimator
    line: Line

    def log_probabilities(self, node: Node, X: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Of children, and of ending here, each against the others."""
        if has_probabilities(self.classifier):
            found = np.log(np.maximum(self.classifier.predict_proba(X), _LEAST_PROBABILITY))
        else:
            found = self.line.log_probabilities(margins_of(self.classifier, X))
        columns = {int(c): k for k, c in enumerate(self.classifier.classes_)}
        own = found[:, [columns[int(c)] for c in node.children]]
        stay = found[:, columns[STAY]] if STAY in columns else np.full(len(own), -np.inf)
        return own, stay


def n_fits_of_a_node(estimator: BaseEstimator) -> int:
    """One, and those that margins of unseen rows take."""
    return 1 if has_probabilities(estimator) else 1 + N_PARTS


def fit_estimators(
    X: Matrix, parts: list[NodeRows], estimator: BaseEstimator, n_jobs: int, progress: Progress
) -> dict[int, NodeModel]:
    """A clone of `estimator` for each node, fitted on its rows to tell its children apart."""
    rows = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X.tocsr()

    def fit_one(part: NodeRows) -> tuple[BaseEstimator, Margins | None] | None:
        if progress.stop_requested:
            return None
        own = rows[part.rows]
        model = aside(
            clone(estimator).fit, own, part.child_of, n_operations=np.inf
        )  # of whatever library
        progress.finish_solve()
        if has_probabilities(model):
            return model, None
        return model, unseen_margins(estimator, own, part.child_of, progress.finish_solve)

    taught = [part for part in parts if not part.node.is_plain]
    n_solves = n_fits_of_a_node(estimator)
    hints = progress.hints(cost=lambda part: len(part.rows), n_solves=n_solves)
    found = map_blocks(fit_one, taught, n_jobs, hints=hints)
    known = {part.node.label: one for part, one in zip(taught, found, strict=True) if one}
    lines = learn_lines({label: part for label, (_, part) in known.items() if part is not None})
    return {label: NodeModel(one, lines.get(label, Line())) for label, (one, _) in known.items()}
