"""Sets of labels that agree with a taxonomy: HML as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.model_selection import ShuffleSplit

from sublearn.execution import all_or_nothing
from sublearn.fitting.labels import as_k
from sublearn.fitting.progress import Progress
from sublearn.hierarchy import group_weights as stage_two
from sublearn.hierarchy.group_weights import GroupWeights, HeldOutSets, WeightSearch, row_sizes
from sublearn.hierarchy.label_models import LOSSES, LabelModels, TaskOptions
from sublearn.hierarchy.margins import Line
from sublearn.hierarchy.model import (
    TAXONOMY_RULE,
    HasScores,
    TaxonomyModel,
    named_columns,
    store_models,
    take_models,
    unfitted,
)
from sublearn.hierarchy.projection import as_group_weights, hierarchy_support, project_hierarchy
from sublearn.hierarchy.score_maps import with_leaves
from sublearn.hierarchy.set_metrics import METRICS
from sublearn.hierarchy.stage_one import Fold, FoldsLike, StageOne, make_folds
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.io.fields import Fields, Floats, Number, OrAbsent, Parts
from sublearn.io.taxonomies import NamedEdges
from sublearn.metrics import f1_samples
from sublearn.metrics.exact_labels import share_right
from sublearn.trace import Callback, Solution, Trace
from sublearn.typing import LabelsLike, Matrix, MatrixLike, Seed, State, WeightsLike
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    EncodedLabels,
    Folds,
    LabelKind,
    OneOf,
    OrNone,
    Positive,
    Rule,
    SettingsOf,
    as_n_threads,
    as_seed,
    check_params,
    check_sample_weight,
    decode_predictions,
)
from sublearn.validation.design import check_design
from sublearn.validation.labels import DecodedLabels
from sublearn.validation.values import is_int64

__all__ = ["HierarchicalMultilabelClassifier"]

_MOST_SCORES = 2**22  # of a block of rows that is predicted at once
_MODEL = "estimator."


class HierarchicalMultilabelClassifier(TaxonomyModel):
    r"""Several labels per sample, in a taxonomy that every prediction agrees with (HML).

    Stage one learns a sparse linear model for each label, apart from the others:

    .. math::
        \min_{w, b} \frac1N \sum_i \ell(\langle x_i, w \rangle + b; y_i) + l_1 \|w\|_1
        \qquad \text{(3.3.4) of [1]}

    Its scores u, between 0 and 1, need not agree with each other. The prediction is what the
    hierarchical operator (3.3.1) leaves of them, :func:`project_hierarchy`: a label is predicted if
    the norm of the scores of itself and its descendants, each shrunk before, is above the weight
    of its group, and if its parent is predicted. Stage two learns these weights: it maximises
    the metric itself on scores of rows that stage one did not see (3.3.5).

    Parameters
    ----------
    taxonomy : Taxonomy, NamedEdges or None, default=None
        The labels and their parents; what :func:`sublearn.io.load_hmc` returns as `taxonomy` will
        do. None takes the labels as they are, without a hierarchy.
    loss : {"logistic", "squared", "hinge"}, default="logistic"
        Of stage one. Scores are probabilities; predictions of 0 and 1, cut at 0; with the hinge
        loss (1 + z) / 2 of a prediction z, cut at 0, so that its margins are 0 and 1.
    l1 : float, default=1e-4
        Weight of the l1 penalty, :math:`\lambda` in [1]_.
    estimator : estimator or None, default=None
        Learns stage one in place of the sparse linear models: anything that takes an indicator
        matrix and has `predict_proba` or `decision_function`, such as
        :class:`sublearn.extreme.PPDSparseClassifier` for very many labels.
    metric : str, default="f1_samples"
        What stage two maximises: "f1_samples", "f1_micro", "f1_macro", "jaccard" or "hamming"
        (1 minus the loss).
    cv : "auto", int or splitter, default="auto"
        Folds whose rows stage two learns from, each scored by models of the other rows: a number
        of random ones, an object with a method `split`, or pairs of training and held-out rows.
        "auto" cuts the rows into four parts and holds out as many of them as have 3,000 rows.
        ``ShuffleSplit(1, test_size=0.3)`` holds 3 of 10 rows out, once.
    group_weights : GroupWeights or None, default=None
        How stage two learns, and where it begins. None is ``GroupWeights()``.
    fit_intercept : bool, default=True
        Whether models of labels have an intercept.
    tol : float, default=1e-4
        A model of a label ends when its duality gap is at most `tol` times its objective.
    max_iter : int or None, default=None
        Limit on the rounds of a model of a label; None is 100.
    n_jobs : int or None, default=None
        Threads: labels, weights and rows. None means 1, -1 all processors. The model does not
        depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Which rows are in which fold.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    taxonomy_ : Taxonomy
        The labels.
    classes_ : ndarray
        Names of the labels, or column numbers if `y` was an indicator matrix without names.
    phi_ : ndarray of shape (n_labels,)
        Weights of the groups, in units of `unit_`; :func:`project_hierarchy` takes them.
    unit_ : str
        "one" or "row".
    takes_in_leaves_ : bool
        Whether scores of inner labels are geometric means with what their leaves say.
    coef_ : csc_matrix of shape (n_labels, n_features)
        Weights of stage one; not with `estimator`.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts of stage one; not with `estimator`.
    phi_trace_ : ndarray of shape (n_steps, n_labels)
        Weights after each step of stage two, a row of `trace_` each; no part of a saved model.
    held_out_score_ : float
        The metric on the held-out rows.
    objective_ : float
        Sum of the objectives of the labels' models; 0 with `estimator`.
    certificate_ : float
        Largest duality gap of a label's model, divided by its objective. Stage two has no
        certificate: its problem is not convex.
    n_iter_ : int
        Most rounds that a label's model took.
    trace_ : Trace
        One row per step of stage two. Columns seconds, stage (0 one weight for all labels, 1
        levels, 2 labels, 3 derivative-free, 4 subgradient, 5 trust region), n_evaluations, score
        (on held-out rows).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    Rows may carry labels of any level; their ancestors are added. A label that no row carries is
    never predicted. One label per sample (1-D) is taken as well: the label of the best score
    is then predicted, for which the weights of groups do not matter.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016,
       chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.hierarchy import HierarchicalMultilabelClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["sport/ball", "sport/ice", "news"], "/")
    >>> X = np.tile(np.eye(3), (8, 1))
    >>> Y = [["sport/ball"], ["sport/ice"], ["news"]] * 8
    >>> model = HierarchicalMultilabelClassifier(taxonomy, random_state=0).fit(X, Y)
    >>> model.predict(np.eye(3))
    [['sport', 'sport/ball'], ['sport', 'sport/ice'], ['news']]
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "taxonomy": TAXONOMY_RULE,
        "loss": OneOf(*LOSSES),
        "l1": Positive(float),
        "estimator": HasScores(),
        "metric": OneOf(*METRICS),
        "cv": Either(OneOf("auto"), Folds()),
        "group_weights": SettingsOf(GroupWeights),
        "fit_intercept": Boolean(),
        "tol": Positive(float),
        "max_iter": OrNone(Positive(int)),
        **RUN_RULES,
    }

    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        "held_out": "cv",
        "method": "group_weights.solver",
        "phi": "group_weights.init",
        "unit": "group_weights.unit",
        "max_iter_weights": "group_weights.max_iter",
    }
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {
        "group_weights.solver": {"dfo": "derivative_free", "none": None}
    }

    phi_: np.ndarray
    phi_trace_: np.ndarray
    unit_: str
    held_out_score_: float
    takes_in_leaves_: bool
    _line: Line = Line()
    _other: BaseEstimator | None

    def __init__(
        self,
        taxonomy: Taxonomy | NamedEdges | None = None,
        *,
        loss: str = "logistic",
        l1: float = 1e-4,
        estimator: BaseEstimator | None = None,
        metric: str = "f1_samples",
        cv: FoldsLike = "auto",
        group_weights: GroupWeights | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.taxonomy = taxonomy
        self.loss = loss
        self.l1 = l1
        self.estimator = estimator
        self.metric = metric
        self.cv = cv
        self.group_weights = group_weights
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # --- learning ----------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: MatrixLike, y: LabelsLike) -> HierarchicalMultilabelClassifier:
        """Learn the models of labels and the weights of their groups.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            Labels: for each sample a list of names, an indicator matrix with the columns of the
            taxonomy, or one name per sample (1-D). Ancestors are added.

        Returns
        -------
        HierarchicalMultilabelClassifier
            Itself, fitted.
        """
        check_params(self)
        rows = check_design(self, X).X
        labels = self._read_labels(y, rows.shape[0])
        Y, self._line = self._closed(labels), Line()
        settings = GroupWeights.of(self.group_weights)
        start = as_group_weights("GroupWeights.init", settings.init, self.taxonomy_.n_labels).copy()
        folds = []
        if settings.solver is not None and self._label_kind.is_multilabel:
            folds = make_folds(rows, Y, self.cv, as_seed(self.random_state))
        n_visits = stage_two.n_visits(settings) if folds else 0
        progress = Progress.of_solves((len(folds) + 1 + n_visits) * Y.shape[1], 2)
        search, model, solution = self._watch(
            lambda: self._learn(rows, Y, start, folds, progress), progress, may_be_left=True
        )
        self._keep_solution(replace(solution, trace=_trace_of(search)))
        is_unnamed = labels.kind.is_indicator and not named_columns(y)
        are_own = is_unnamed or not labels.kind.is_multilabel
        self.classes_ = labels.classes if are_own else self.taxonomy_.names
        self.ends_ = self.taxonomy_.columns_of(labels)
        self._linear = model if isinstance(model, LabelModels) else None
        self._other = None if isinstance(model, LabelModels) else model
        self.takes_in_leaves_ = search is not None and search.data.takes_in_leaves
        if search is None:
            self.phi_, self.unit_ = start, "row" if settings.unit == "row" else "one"
            self.phi_trace_, self.held_out_score_ = np.empty((0, len(start))), np.nan
        else:
            self.phi_, self.unit_ = search.phi, search.data.unit
            self.phi_trace_, self.held_out_score_ = np.array(search.path), float(search.value[0])
        return self

    def _closed(self, labels: EncodedLabels) -> sp.csr_matrix:
        columns = self.taxonomy_.columns_of(labels, f"{type(self).__name__}: y")
        return self.taxonomy_.close(labels.to_csr(columns, self.taxonomy_.n_labels))

    @property
    def _stage_one(self) -> StageOne:
        options = TaskOptions(
            self.loss,
            bool(self.fit_intercept),
            float(self.tol),
            self.max_iter,
            as_n_threads(self.n_jobs),
        )
        return StageOne(self.estimator, float(self.l1), options, self._line)

    def _learn(
        self,
        X: Matrix,
        Y: sp.csr_matrix,
        start: np.ndarray,
        folds: list[Fold],
        progress: Progress,
    ) -> tuple[WeightSearch | None, LabelModels | BaseEstimator, Solution]:
        search, stage_one = None, self._stage_one
        if folds:
            stage_one, scores, truth = stage_one.held_out_scores(X, Y, folds, progress)
            search = self._begin_search(scores, truth, start, progress)
            stage_two.learn_group_weights(search, GroupWeights.of(self.group_weights))
        self._line = stage_one.line
        return search, *stage_one.fit(X, Y, progress)

    def _begin_search(
        self, scores: np.ndarray, truth: np.ndarray, start: np.ndarray, progress: Progress
    ) -> WeightSearch:
        """A search with the best of all common weights.

        Of units, and of scores that take in leaves or not, the first one stays unless another is
        surely better on held-out rows.
        """
        settings, n_threads = GroupWeights.of(self.group_weights), as_n_threads(self.n_jobs)
        unit, leaves = settings.unit, settings.leaves
        units = ("one", "row") if unit == "auto" else (unit,)
        found = None
        ways = (False, True) if leaves == "auto" else (bool(leaves),)
        for takes_in_leaves in ways if len(self.taxonomy_.indices) else (False,):
            given = with_leaves(scores, self.taxonomy_) if takes_in_leaves else scores
            for name in units:
                own = given / row_sizes(given, name)
                data = HeldOutSets(own, truth, self.taxonomy_, self.metric, name, takes_in_leaves)
                search = WeightSearch(data, start, progress, n_threads)
                search.try_common_weights()
                if found is None or stage_two.is_sure_gain(search.value - found.value):
                    found = search
        return cast("WeightSearch", found)

    # --- prediction --------------------------------------------------------------------------

    def label_scores(self, X: MatrixLike) -> np.ndarray:
        """Scores u of stage one, as stage two takes them; they need not agree with the taxonomy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
        """
        return self._scores(self._check_new(X))

    def _scores(self, X: Matrix) -> np.ndarray:
        model = self._other if self._linear is None else self._linear
        u = self._stage_one.scores(model, X)
        return with_leaves(u, self.taxonomy_) if self.takes_in_leaves_ else u

    def projected_scores(self, X: MatrixLike) -> np.ndarray:
        """Scores after the hierarchical operator, (3.3.3): 0 for labels that are not predicted.

        Argument and result have the form of those of :meth:`label_scores`.
        """
        u = self.label_scores(X)
        sizes = row_sizes(u, self.unit_)
        found = project_hierarchy(u / sizes, self.taxonomy_, self.phi_, n_jobs=self.n_jobs)
        return sizes * found  # P(s u, s phi) = s P(u, phi)

    def predict(self, X: MatrixLike) -> DecodedLabels:
        """The labels of each sample; with each label all its ancestors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, sparse matrix or list of lists
            In the form in which `fit` got the labels.
        """
        rows = self._check_new(X)
        n_block = max(1, _MOST_SCORES // self.taxonomy_.n_labels)
        blocks = [rows[at : at + n_block] for at in range(0, rows.shape[0], n_block)]
        sets = sp.vstack([sp.csr_matrix(self._sets(block)) for block in blocks], format="csr")
        return decode_predictions(self._label_kind, self.classes_, sets)

    def _sets(self, X: Matrix) -> np.ndarray:
        u = self._scores(X)
        if self._label_kind.is_multilabel:
            own = u / row_sizes(u, self.unit_)
            return hierarchy_support(own, self.taxonomy_, self.phi_, n_jobs=self.n_jobs)
        best = u[:, self.ends_].argmax(axis=1)
        return np.arange(len(self.ends_)) == best[:, None]

    def predict_top_k(self, X: MatrixLike, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each sample and their scores, best first.

        The score of a label is the best of itself and its descendants, so that none stands
        above its ancestors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            Labels per sample; all of them if there are fewer.

        Returns
        -------
        labels, scores : ndarray of shape (n_samples, k)
        """
        scores = self.label_scores(X).copy()
        own = self.taxonomy_
        k = as_k(k, own.n_labels)
        for t in np.argsort(-own.levels, kind="stable"):
            for parent in own._parents(t):
                np.maximum(scores[:, parent], scores[:, t], out=scores[:, parent])
        order = np.lexsort((np.broadcast_to(own.levels, scores.shape), -scores), axis=1)[:, :k]
        names = self.classes_ if self._label_kind.is_indicator else own.names
        return names[order], np.take_along_axis(scores, order, axis=1)

    def score(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """Mean over samples of the F1 of predicted labels; accuracy if `y` is 1-D.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            True labels; ancestors are added.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        float
        """
        name = type(self).__name__
        predicted = self.predict(X)
        if not self._label_kind.is_multilabel:
            return share_right(self._label_kind, self.classes_, y, predicted, sample_weight)
        truth = self.taxonomy_.encode(y, argument=f"{name}: y")
        found = self.taxonomy_.encode(predicted)
        n_rows, n_given = found.shape[0], truth.shape[0]
        if n_given != n_rows:
            raise ValueError(f"{name}: y must have one row per sample ({n_rows}), got {n_given}")
        weights = check_sample_weight(sample_weight, n_rows, estimator_name=name)
        return f1_samples(truth, found, sample_weight=weights)

    # --- saving ------------------------------------------------------------------------------

    _STORED = (*TaxonomyModel._STORED, "phi_", "unit_", "held_out_score_", "takes_in_leaves_")

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        params = super()._current_params(stored)
        cv = params.get("cv")
        if isinstance(cv, float):  # earlier versions took a share of the rows
            params["cv"] = ShuffleSplit(1, test_size=cv, random_state=params.get("random_state"))
        return params

    def _stored_params(self) -> State:
        params = super()._stored_params()
        if not is_int64(self.cv) and self.cv != "auto":
            del params["cv"]  # an object of another library
        return params

    def _to_bundle(self) -> State:
        state = super()._to_bundle() | {"line": np.array(self._line)}
        return state if self._linear is not None else state | store_models({0: self._other}, _MODEL)

    def _fields(self) -> Fields:
        return super()._fields() | {
            "phi_": Floats("labels", finite=True, low=0.0),
            "unit_": OneOf("one", "row"),
            "held_out_score_": Number(or_none=True),
            f"{_MODEL}*": Parts(),
            "takes_in_leaves_": OrAbsent(Boolean()),  # not in files of earlier versions
            "line": OrAbsent(Floats(2, finite=True)),
        }

    def _restore(self, state: State) -> None:
        is_multilabel = LabelKind[state["label_kind_"]].is_multilabel
        n_predicted = len(state["phi_"] if is_multilabel else state["ends_"])
        if len(state["classes_"]) != n_predicted:
            raise ValueError(f"classes_ must be {n_predicted}, got {len(state['classes_'])}")
        state.setdefault("takes_in_leaves_", False)
        self._line = Line(*state.pop("line", np.array(Line())).tolist())
        if "weights" not in state:
            models = take_models(state, _MODEL)
            self._other, self.estimator = models[0], unfitted(models)
        super()._restore(state)


def _trace_of(search: WeightSearch | None) -> Trace:
    names = ("seconds", "stage", "n_evaluations", "score")
    rows = [] if search is None else search.rows
    return Trace({name: [row[i] for row in rows] for i, name in enumerate(names)})
