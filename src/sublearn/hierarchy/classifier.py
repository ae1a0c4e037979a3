"""One label per sample, at the end of a path down a taxonomy: HiClass as an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.labels import best_labels
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.cost_model import SolverNames
from sublearn.hierarchy.ends import Ends, inner_ends
from sublearn.hierarchy.label_models import LabelModels, TaskOptions, summarise
from sublearn.hierarchy.margins import Line
from sublearn.hierarchy.model import (
    TAXONOMY_RULE,
    HasScores,
    TaxonomyModel,
    store_models,
    take_models,
    unfitted,
)
from sublearn.hierarchy.nodes import (
    TOP,
    Node,
    NodeModel,
    NodeRows,
    collect_nodes,
    constant_as_intercept,
    fit_estimators,
    fit_sparse_models,
    n_fits_of_a_node,
    sparse_log_scores,
    trace_of,
    with_constant,
)
from sublearn.hierarchy.path_arrays import form_of_paths, path_rows
from sublearn.hierarchy.paths import (
    Ask,
    best_leaves,
    blend,
    expected_f1,
    greedy_ends,
    path_probabilities,
)
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.io.fields import (
    Fields,
    Floats,
    Integers,
    ListOf,
    OrAbsent,
    Parts,
    Record,
    Sparse,
    check_fields,
)
from sublearn.io.models import nested_state, restore_nested
from sublearn.io.taxonomies import NamedEdges
from sublearn.metrics.exact_labels import share_right
from sublearn.trace import Callback, Solution
from sublearn.typing import JsonObject, LabelsLike, Matrix, MatrixLike, State, WeightsLike
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    EncodedLabels,
    InstanceOf,
    Interval,
    JobCount,
    LabelKind,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    check_params,
)
from sublearn.validation.design import check_design
from sublearn.validation.values import is_finite_number, show

__all__ = ["HierarchicalClassifier"]

_MODELS = "nodes."
_FLAT = "flat."
_STRATEGY = OneOf("top_down", "flat", "global", "blend")
_MOST_SCORES = 2**22  # of a block of rows that is predicted at once


class _Thresholds(Rule):
    """A probability, or a mapping from labels to probabilities."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        numbers = value.values() if isinstance(value, Mapping) else [value]
        return all(is_finite_number(v) and 0 <= v <= 1 for v in numbers)

    def __str__(self) -> str:
        return "a number from 0 to 1 or a mapping from labels to such numbers"


class HierarchicalClassifier(TaxonomyModel):
    r"""Classification down a tree of labels (HiClass).

    A sample starts above the roots and goes from node to child until there is none (algorithm 1
    of [1]_). The model of child i is learned on the rows that reach its parent, i's own against
    those of its siblings (algorithm 2, (2.3.2)), by sparse logistic regression:

    .. math::
        \min_{w, b} \|w\|_1 + |b| + C \sum_{k \in T(i)}
        \log\bigl(1 + e^{-y_k (\langle x_k, w \rangle + b)}\bigr) \qquad \text{(2.2.2) of [1]}

    Nodes do not depend on each other and are learned at the same time. They are large at the top
    of a tree and small below; a measured model of the solvers' times decides which one serves a
    node. Nearly always that is coordinate descent inside an active set, for small nodes as well.

    Parameters
    ----------
    taxonomy : Taxonomy, NamedEdges or None, default=None
        The labels; each may have one parent. What :func:`sublearn.io.load_hmc` returns as
        `taxonomy` will do. None takes the classes as they are, without a hierarchy, or that of the
        paths if `y` is an array of paths.
    strategy : {"top_down", "flat", "global", "blend"}, default="top_down"
        "flat" learns the classes that rows carry against each other, all rows at once, and leaves
        the taxonomy to the metrics. "global" learns every label against the rest, all rows at once,
        and predicts the path of the largest product of probabilities. "blend" learns "top_down" and
        "flat" and multiplies what they say of each end, the flat side with the larger share: it
        costs both fits, and on most taxonomies measured is ahead of either.
    decoding : {"best_path", "greedy", "expected_f1"}, default="best_path"
        How "top_down" with mandatory leaves finds the path of a sample. "greedy" goes to the child
        with the largest score each time, as algorithm 1 does: an error at the top cannot be mended
        below. "best_path" predicts the leaf whose path has the largest product, the largest of
        `predict_proba`; a node is asked only where its product is above that of a leaf already
        known. "expected_f1", for all strategies, predicts the class whose hierarchical F1 is to be
        expected largest: where two leaves are alike, one of the more probable branch.
    estimator : classifier or None, default=None
        Learns each node in place of sparse logistic regression: any classifier of scikit-learn's
        kind, fitted to tell the children of a node apart. Margins of one without `predict_proba`
        become probabilities by Platt's map, for which it is fitted four times at each node. Not
        for "global".
    C : float, default=10.0
        Weight of the loss beside the l1 norm.
    solver : str or list of str, default="auto"
        "auto" asks the cost model; "newton" (CD2 in [1]_), "lhac", "cd1" (SCD) and
        "interior_point" are for all nodes. A list has an entry for each level, the
        last one for those below as well.
    leaf : {"auto", "mandatory", "optional"}, default="auto"
        Where a path may end. "auto": at the labels that training rows carry. An inner label that
        some rows end at, while others go on below it, has a model of its own for ending there,
        learned beside those of its children. "mandatory": at labels without children alone; rows
        labelled above teach the labels on their path, and nothing ends there. "optional": at any
        label on the way; a sample goes on to its best child only if the child's probability is
        at least `threshold`, and rows that end at a label count against its children.
    threshold : float or mapping, default=0.5
        For "optional": of all labels, or of those that a mapping names (0.5 for the others).
    fit_intercept : bool, default=True
        Whether models have an intercept: the weight of a constant feature, under the penalty as all
        weights are. A free one costs accuracy at small nodes (cell cycle: 32 of 135 test rows
        right, 35 with the penalty).
    tol : float, default=1e-4
        A model ends when its duality gap is at most `tol` times its objective.
    max_iter : int or None, default=None
        Limit on the iterations of a model; None is that of the solver.
    n_jobs : int or None, default=None
        Nodes that are learned at the same time, as threads. None means 1, -1 all processors. The
        model does not depend on it.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    taxonomy_ : Taxonomy
        The labels.
    classes_ : ndarray of shape (n_classes,)
        Labels that training rows carry; with optional leaves also their ancestors.
    coef_ : csr_matrix of shape (n_labels, n_features)
        Weights of each label's model, in the order of `taxonomy_`; not with `estimator`.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts; not with `estimator`.
    node_models_ : dict of int to classifier
        With `estimator`: the classifier of each label with children, by position; -1 is the one
        above the roots.
    strategy_ : str
        The strategy of the fit.
    flat_ : HierarchicalClassifier
        With ``strategy="blend"``: the flat side, with a certificate of its own.
    stops_ : ndarray of int
        With ``leaf="auto"``: inner labels at which a path may end, by position.
    counts_ : ndarray of shape (n_labels,)
        Training rows of each label, ancestors included.
    objective_ : float
        Sum of the objectives of the models; 0 with `estimator`.
    certificate_ : float
        Largest duality gap of a model, divided by its objective; 0 with `estimator`.
    n_iter_ : int
        Most iterations that a model took.
    trace_ : Trace
        One row per model. Columns label (position), level, n_rows, n_features (that occur in its
        rows), n_entries, solver (position in "auto", "newton", "lhac", "cd1", "interior_point";
        0 is "newton", and LHAC where that stalls), seconds, objective, certificate, n_iter.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    A label that no row reaches is never predicted. A node with one child sends everything there,
    unless rows end at it and predictions may.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016,
       section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["rec.autos", "rec.sport", "sci.med", "sci.space"])
    >>> X = np.tile(np.eye(4), (5, 1))
    >>> y = ["rec.autos", "rec.sport", "sci.med", "sci.space"] * 5
    >>> model = HierarchicalClassifier(taxonomy, C=10.0).fit(X, y)
    >>> model.predict(np.eye(4)).tolist()
    ['rec.autos', 'rec.sport', 'sci.med', 'sci.space']
    >>> model.path_proba(np.eye(4)[:1]).round(2)
    array([[0.98, 0.96, 0.02, 0.02, 0.01, 0.01]])
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "taxonomy": TAXONOMY_RULE,
        "strategy": _STRATEGY,
        "decoding": OneOf("best_path", "greedy", "expected_f1"),
        "estimator": HasScores(),
        "C": Positive(float),
        "solver": SolverNames(),
        "leaf": OneOf("auto", "mandatory", "optional"),
        "threshold": _Thresholds(),
        "fit_intercept": Boolean(),
        "tol": Positive(float),
        "max_iter": OrNone(Positive(int)),
        "n_jobs": JobCount(),
        **WATCH_RULES,
    }

    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {"random_state": None, "path": "decoding"}
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {"decoding": {"best": "best_path"}}

    counts_: np.ndarray
    stops_: np.ndarray
    strategy_: str
    flat_: HierarchicalClassifier
    node_models_: dict[int, BaseEstimator]
    _nodes: list[Node]
    _ends: Ends
    _lines: dict[int, Line]
    _paths: tuple[int, tuple[Hashable, ...]] | None  # columns of `y` and its longest path

    def __init__(
        self,
        taxonomy: Taxonomy | NamedEdges | None = None,
        *,
        strategy: str = "top_down",
        decoding: str = "best_path",
        estimator: BaseEstimator | None = None,
        C: float = 10.0,
        solver: str | Sequence[str] = "auto",
        leaf: str = "auto",
        threshold: float | Mapping[Hashable, float] = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.taxonomy = taxonomy
        self.strategy = strategy
        self.decoding = decoding
        self.estimator = estimator
        self.C = C
        self.solver = solver
        self.leaf = leaf
        self.threshold = threshold
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # --- learning ----------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: MatrixLike, y: LabelsLike) -> HierarchicalClassifier:
        """Learn the models of all nodes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_levels)
            A label of the taxonomy for each sample, by name; or its path, a row of names from the
            root on, with "", None or NaN behind short ones. Predictions then are paths as well.

        Returns
        -------
        HierarchicalClassifier
            Itself, fitted.
        """
        check_params(self)
        self._refuse_odd_pairs()
        rows = check_design(self, X).X
        labels = self._read_labels(y, rows.shape[0])
        self._paths = form_of_paths(y)
        positions = self._positions(labels)
        self._log_thresholds()  # refuses labels that are not in the taxonomy
        self.stops_ = self._find_stops(positions)
        self._ends = Ends(self.taxonomy_, self.stops_)
        parts = self._make_nodes(positions)
        progress = Progress.of_solves(max(2, self._n_models(parts)), 1)
        learned, solution = self._watch(
            lambda: self._learn(rows, parts, progress), progress, may_be_left=True
        )
        self._keep_solution(solution)
        self._linear = learned if isinstance(learned, LabelModels) else None
        if not isinstance(learned, LabelModels):
            self.node_models_ = {label: one.classifier for label, one in learned.items()}
            self._lines = {label: one.line for label, one in learned.items()}
        self._nodes, self.strategy_ = [part.node for part in parts], self.strategy
        one = np.bincount(positions, minlength=self.taxonomy_.n_labels)
        self.counts_ = np.asarray(self.taxonomy_.ancestor_matrix.T @ one)
        self.ends_, self.classes_ = self._possible_ends(labels)
        self.__dict__.pop("flat_", None)
        if self.strategy == "blend":
            self._fit_flat(X, self.taxonomy_.names[positions])
        return self

    def _refuse_odd_pairs(self) -> None:
        """Parameters that are sound, and do not go together."""
        odd = {
            ("strategy", "global"): ("estimator", self.estimator, None),
            ("strategy", "blend"): ("leaf", self.leaf, "optional"),
            ("decoding", "expected_f1"): ("leaf", self.leaf, "optional"),
        }
        for (name, value), (other, got, limit) in odd.items():
            is_odd = got is not None if limit is None else got == limit
            if getattr(self, name) == value and is_odd:
                must = "None" if limit is None else f"not {limit!r}"
                raise ParameterError(
                    f"HierarchicalClassifier.{other} must be {must} for {name}={value!r}, "
                    f"got {show(got)}"
                )

    def _fit_flat(self, X: MatrixLike, y: np.ndarray) -> None:
        """The other side of a blend, a model of its own."""
        flat = clone(self).set_params(strategy="flat", taxonomy=self.taxonomy_)
        self.flat_ = flat.fit(X, y)

    def _n_models(self, parts: list[NodeRows]) -> int:
        if self.estimator is None:
            return sum(len(part.taught(self.strategy == "global")) for part in parts)
        n_fits = n_fits_of_a_node(self.estimator)
        return sum(n_fits for part in parts if not part.node.is_plain)

    def _positions(self, labels: EncodedLabels) -> np.ndarray:
        """Position of each row's label in the taxonomy, which must be a forest."""
        name = type(self).__name__
        if labels.kind.is_multilabel:
            raise ValueError(f"{name}: y must have one label per sample, got {labels.kind.value}")
        if not self.taxonomy_.is_forest:
            several = np.flatnonzero(np.diff(self.taxonomy_.indptr) > 1)
            raise ParameterError(
                f"{name}.taxonomy must give each label at most one parent, "
                f"got several for {show(self.taxonomy_.names.tolist()[several[0]])}"
            )
        columns = self.taxonomy_.columns_of(labels, f"{name}: y")
        positions = np.empty(labels.n_samples, dtype=np.int64)
        positions[labels.rows] = np.repeat(columns, labels.counts())
        return positions

    def _find_stops(self, positions: np.ndarray) -> np.ndarray:
        """Inner labels that paths may end at; a warning if rows end at others of them."""
        found = inner_ends(self.taxonomy_, positions)
        if self.strategy == "flat" or self.leaf == "optional" or not len(found):
            return np.empty(0, dtype=np.int64)
        if self.leaf == "auto":
            return found
        n_rows = int(np.isin(positions, found).sum())
        warnings.warn(
            f"{type(self).__name__}: {n_rows} of {len(positions)} rows have labels above others, "
            f"such as {show(self.taxonomy_.names[found[0]])}, which leaf='mandatory' never "
            "predicts; leaf='auto' does",
            UserWarning,
            stacklevel=4,
        )
        return np.empty(0, dtype=np.int64)

    def _make_nodes(self, positions: np.ndarray) -> list[NodeRows]:
        tree, places = self._ends.tree, self._ends.place(positions)
        if self.strategy in ("top_down", "blend"):
            return collect_nodes(tree, places, self.leaf == "optional")
        ends = np.unique(places)
        rows = np.arange(len(places))
        if self.strategy == "flat":
            return [NodeRows.of(TOP, 0, ends, rows, places)]
        closed = tree.ancestor_matrix[ends]
        return [NodeRows.of(TOP, 0, np.unique(closed.indices), rows, places)]

    def _learn(
        self, X: Matrix, parts: list[NodeRows], progress: Progress
    ) -> tuple[LabelModels | dict[int, NodeModel], Solution]:
        n_jobs, tree = as_n_threads(self.n_jobs), self._ends.tree
        if self.estimator is not None:
            models = fit_estimators(X, parts, self.estimator, n_jobs, progress)
            return models, replace(summarise([]), trace=trace_of([], []))
        options = TaskOptions("logistic", False, float(self.tol), self.max_iter, n_jobs)
        closure = tree.ancestor_matrix if self.strategy == "global" else None
        rows = with_constant(X) if self.fit_intercept else X
        linear, solution = fit_sparse_models(
            rows, parts, tree.n_labels, float(self.C), self.solver, options, progress, closure
        )
        return constant_as_intercept(linear) if self.fit_intercept else linear, solution

    def _possible_ends(self, labels: EncodedLabels) -> tuple[np.ndarray, np.ndarray]:
        """Positions and names of the labels at which a path may end."""
        if self.leaf != "optional" or self.strategy != "top_down":
            return self.taxonomy_.columns_of(labels), labels.classes
        reached = np.flatnonzero(self.counts_)
        names = self.taxonomy_.names[reached]
        order = np.arange(len(names)) if names.dtype == object else np.argsort(names)
        return reached[order], names[order]

    # --- prediction --------------------------------------------------------------------------

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The label at the end of each sample's path.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_levels)
            In the form in which `fit` got the labels.
        """
        positions = self._end_positions(self._check_new(X))
        if self._paths is not None:
            return path_rows(self.taxonomy_, positions, *self._paths)
        names = self.taxonomy_.names[positions]
        return names.astype(self.classes_.dtype) if self.classes_.dtype.kind != "O" else names

    def score(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """Share of samples whose label is right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like
            True labels, or paths to them.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        float
        """
        ends = self._end_positions(self._check_new(X))
        found = self.taxonomy_.names[ends]
        truth = self.taxonomy_.arrange(y, f"{type(self).__name__}: y")
        return share_right(self._label_kind, self.taxonomy_.names, truth, found, sample_weight)

    def predict_paths(self, X: MatrixLike) -> list[list[Hashable]]:
        """The labels on the path of each row of `X`, the root first."""
        ends = self._end_positions(self._check_new(X))
        closed, paths = self.taxonomy_.ancestor_matrix, []
        for end in ends:
            own = closed.indices[closed.indptr[end] : closed.indptr[end + 1]]
            path = own[np.argsort(self.taxonomy_.levels[own])]
            paths.append(self.taxonomy_.names[path].tolist())
        return paths

    def path_proba(self, X: MatrixLike) -> np.ndarray:
        """Probability that each sample's path goes through each label of the taxonomy.

        A path counts the product of its steps, each the probability of a child against its
        siblings, divided by the root of their sum (in which ending there counts if it is allowed);
        the products of all ends are divided by their sum. Of shape (n_samples, n_labels), where
        :meth:`predict_proba` has a column for each class.
        """
        return self._probabilities(self._check_new(X))[0]

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probability that each sample's path ends at each of `classes_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self._check_new(X))[1][:, self.ends_]

    def predict_top_k(self, X: MatrixLike, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` most probable classes of each sample and their probabilities, best first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            Classes per sample; all of them if there are fewer.

        Returns
        -------
        labels, scores : ndarray of shape (n_samples, k)
        """
        found = self.predict_proba(X)
        return best_labels(self.classes_, found, k)

    def _ask(
        self, X: Matrix, z: np.ndarray | None, node: Node, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log probabilities of children and of ending at a node, for some rows."""
        if node.is_plain:
            return np.zeros((len(rows), 1)), np.full(len(rows), -np.inf)
        if z is None:
            model = NodeModel(self.node_models_[node.label], self._lines[node.label])
            own, stay = model.log_probabilities(node, X[rows])
        else:
            own, stay = sparse_log_scores(node, z[rows])
        may_end = self.leaf == "optional" and node.label != TOP
        return own, stay if may_end else np.full(len(own), -np.inf)

    def _ask_of(self, X: Matrix) -> Ask:
        z = None if self._linear is None else self._linear.predictions(X)
        return partial(self._ask, X, z)

    def _end_positions(self, X: Matrix) -> np.ndarray:
        if self.strategy_ == "blend" or self.decoding == "expected_f1":
            n_block = max(1, _MOST_SCORES // self._ends.tree.n_labels)
            blocks = [X[at : at + n_block] for at in range(0, X.shape[0], n_block)]
            return np.concatenate([self._best_ends(block) for block in blocks])
        if self.strategy_ == "global":
            return self._best_paths(X)
        ask, n_rows = self._ask_of(X), X.shape[0]
        if self.leaf == "optional" or self.decoding == "greedy":
            limits = self._log_thresholds() if self.leaf == "optional" else None
            return self._ends.labels(greedy_ends(self._nodes, ask, n_rows, limits)[0])
        return self._ends.labels(best_leaves(self._nodes, ask, n_rows, self._ends.tree.n_labels))

    def _best_ends(self, X: Matrix) -> np.ndarray:
        """The class of the largest probability, or of the largest F1 that is to be expected."""
        found = self._probabilities(X)[1][:, self.ends_]
        if self.decoding == "expected_f1":
            possible = found.max(axis=0) > 0
            found = expected_f1(found, self.taxonomy_.ancestor_matrix[self.ends_])
            found[:, ~possible] = -np.inf
        return self.ends_[found.argmax(axis=1)]

    def _log_thresholds(self) -> np.ndarray:
        found = np.full(self.taxonomy_.n_labels, 0.5)
        if isinstance(self.threshold, Mapping):
            for name, value in self.threshold.items():
                try:
                    found[self.taxonomy_.position(name)] = value
                except ValueError:
                    raise ParameterError(
                        f"{type(self).__name__}.threshold must name labels of the taxonomy, got "
                        f"{self.taxonomy_.show_unknown(name)}"
                    ) from None
        else:
            found[:] = self.threshold
        with np.errstate(divide="ignore"):
            return np.log(found)

    def _path_scores(self, X: Matrix) -> np.ndarray:
        """Log of the product of probabilities along the path to each end, for "global"."""
        (node,) = self._nodes
        own, _ = sparse_log_scores(node, self._weights.predictions(X))
        tree = self._ends.tree
        every = np.full((X.shape[0], tree.n_labels), -np.inf)
        every[:, node.children] = own
        steps = tree.ancestor_matrix[self._ends.place(self.ends_)]
        sums = [every[:, steps.indices[a:b]].sum(axis=1) for a, b in pairwise(steps.indptr)]
        return np.column_stack(sums)

    def _best_paths(self, X: Matrix) -> np.ndarray:
        scores = self._path_scores(X)
        if self.leaf == "mandatory":
            inner = np.isin(self.ends_, self.taxonomy_.indices)
            scores[:, inner & ~inner.all()] = -np.inf
        return self.ends_[scores.argmax(axis=1)]

    def _probabilities(self, X: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Of passing through each label, and of ending at it."""
        n_rows, n_labels = X.shape[0], self.taxonomy_.n_labels
        if self.strategy_ == "global":
            ends = np.zeros((n_rows, n_labels))
            ends[:, self.ends_] = np.exp(log_softmax(self._path_scores(X), axis=1))
            return ends @ self.taxonomy_.ancestor_matrix.astype(float), ends
        n_places = self._ends.tree.n_labels
        found = path_probabilities(self._nodes, self._ask_of(X), n_rows, n_places)
        reach, ends = self._ends.fold(*found)
        if self.strategy_ == "blend":
            ends = ends.copy()
            flat = self.flat_._probabilities(X)[1]
            ends[:, self.ends_] = blend(flat[:, self.ends_], ends[:, self.ends_])
        if self.strategy_ in ("flat", "blend"):
            reach = ends @ self.taxonomy_.ancestor_matrix.astype(float)
        return reach, ends

    # --- saving ------------------------------------------------------------------------------

    _STORED = (*TaxonomyModel._STORED, "strategy_", "counts_", "stops_")

    def _to_bundle(self) -> State:
        state = super()._to_bundle()
        nodes = [[n.label, n.level, n.children.tolist(), n.is_plain] for n in self._nodes]
        state["nodes"] = nodes
        if self.strategy_ == "blend":
            state |= nested_state(self.flat_, _FLAT)
        if self._paths is not None:
            state |= {"path_width": self._paths[0], "path_like": list(self._paths[1])}
        if self._linear is None:
            lines = np.array([self._lines[label] for label in sorted(self.node_models_)])
            return state | {"lines": lines} | store_models(self.node_models_, _MODELS)
        n, linear = self.taxonomy_.n_labels, self._linear
        of_stops = {"weights": linear.weights[:, n:], "intercepts": linear.intercepts[n:]}
        return state | {f"stop_{name}": value for name, value in of_stops.items()}

    def _fields(self) -> Fields:
        return super()._fields() | {
            "ends_": Integers("classes", high="labels"),
            "label_kind_": OneOf(LabelKind.BINARY.name, LabelKind.MULTICLASS.name),
            "strategy_": _STRATEGY,
            "counts_": Integers("labels"),
            "nodes": Parts(),
            f"{_MODELS}*": Parts(),
            f"{_FLAT}*": Parts(),
            # not in files of earlier versions
            "stops_": OrAbsent(Integers("stops", high="labels")),
            "stop_weights": OrAbsent(Sparse("features", "stops", "csc", finite=True)),
            "stop_intercepts": OrAbsent(Floats("stops")),
            "lines": OrAbsent(Floats(None, 2, finite=True)),
            "path_width": OrAbsent(Positive(int)),
            "path_like": OrAbsent(ListOf(InstanceOf(str, int, float))),
        }

    def _restore(self, state: State) -> None:
        state.setdefault("stops_", np.empty(0, dtype=np.int64))
        n_places = len(state["counts_"]) + len(state["stops_"])
        self._nodes = _restored_nodes(state.pop("nodes"), n_places)
        width, like = state.pop("path_width", None), state.pop("path_like", ())
        self._paths = None if width is None else (width, tuple(like))
        of_stops = state.pop("stop_weights", None), state.pop("stop_intercepts", None)
        if "weights" not in state:
            lines = state.pop("lines", None)
            self.node_models_ = take_models(state, _MODELS)
            self._lines = _restored_lines(lines, sorted(self.node_models_))
            self.estimator = unfitted(self.node_models_)
            _refuse_other_models(self.node_models_, self._nodes)
        elif len(state["stops_"]):
            state["weights"] = sp.hstack([state["weights"], of_stops[0]], format="csc")
            state["intercepts"] = np.append(state["intercepts"], of_stops[1])
        if state["strategy_"] == "blend":
            self.flat_ = self._restored_flat(state)
        if state["strategy_"] in ("flat", "global") and len(self._nodes) != 1:
            raise ValueError(f"nodes must be one for {state['strategy_']}, got {len(self._nodes)}")
        super()._restore(state)
        self._ends = Ends(self.taxonomy_, self.stops_)

    @staticmethod
    def _restored_flat(state: State) -> HierarchicalClassifier:
        flat = restore_nested(state, _FLAT)
        is_flat = isinstance(flat, HierarchicalClassifier) and flat.strategy_ == "flat"
        if not is_flat or len(flat.counts_) != len(state["counts_"]):
            raise ValueError(f"{_FLAT}class must be a flat model of as many labels, got {flat!r}")
        if flat.n_features_in_ != state["n_features_in_"]:
            raise ValueError(
                f"{_FLAT}n_features_in_ must be {state['n_features_in_']}, "
                f"got {flat.n_features_in_}"
            )
        return flat

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def _restored_lines(stored: np.ndarray | None, labels: list[int]) -> dict[int, Line]:
    """Maps of margins of a file; those of earlier versions have none."""
    if stored is None:
        return dict.fromkeys(labels, Line())
    if len(stored) != len(labels):
        raise ValueError(f"lines must be {len(labels)}, one for each model, got {len(stored)}")
    pairs = zip(labels, stored.tolist(), strict=True)
    return {label: Line(*line) for label, line in pairs}


def _restored_nodes(stored: list[list[object]], n_labels: int) -> list[Node]:
    """Nodes of a file, where they must come parents first and lead from above the roots."""
    rules: Fields = {
        "label": Interval(int, TOP, n_labels - 1),
        "level": NonNegative(int),
        "children": ListOf(Interval(int, 0, n_labels - 1)),
        "is_plain": Boolean(),
    }
    four = ListOf(InstanceOf(object), len(rules))
    check_fields({"nodes": stored}, {"nodes": ListOf(four)})
    records: list[JsonObject] = [dict(zip(rules, entry, strict=True)) for entry in stored]
    check_fields({"nodes": records}, {"nodes": ListOf(Record(rules))})
    reached, seen = {TOP}, set()
    for record in records:
        own = record["children"]
        if record["label"] not in reached or record["label"] in seen or not own:
            raise ValueError(f"nodes must come parents first with children, got {show(record)}")
        if len(set(own)) < len(own) or not reached.isdisjoint(own):
            raise ValueError(f"nodes must have children of one parent, got {show(record)}")
        if record["is_plain"] and len(own) > 1:
            raise ValueError(f"nodes must have one child to be plain, got {show(record)}")
        seen.add(record["label"])
        reached.update(own)
    if not records:
        raise ValueError("nodes must begin above the roots, got none")
    return [
        Node(**record | {"children": np.array(record["children"], np.int64)}) for record in records
    ]


def _refuse_other_models(models: dict[int, BaseEstimator], nodes: list[Node]) -> None:
    for node in nodes:
        if node.is_plain:
            continue
        own = getattr(models.get(node.label), "classes_", np.empty(0))
        if not set(node.children.tolist()) <= set(own.tolist()):
            raise ValueError(
                f"{_MODELS}{node.label} must tell the children {show(node.children.tolist())} "
                f"apart, got {show(own.tolist())}"
            )
