"""Ranking very many labels by one margin: PD-Sparse as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.linear_labels import LinearLabels, is_small
from sublearn.extreme.pd_report import (
    PDReport,
    best_held_out,
    ended_early,
    objective_of,
    summarise,
    with_objective,
)
from sublearn.fitting.held_out import patience_of, pick, read_eval_set, split_rows
from sublearn.fitting.label_weights import as_label_weights
from sublearn.fitting.progress import Progress
from sublearn.io.fields import Fields, Number
from sublearn.trace import Callback
from sublearn.typing import ClassWeightLike, EvalSet, LabelsLike, MatrixLike, Seed, WeightsLike
from sublearn.validation import (
    EARLY_STOPPING,
    RUN_RULES,
    Boolean,
    ClassWeight,
    Either,
    EncodedLabels,
    Interval,
    LabelKind,
    NonNegative,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_params,
    check_sample_weight,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["PDSparseClassifier"]

_MOST_INT = 2**31 - 1  # the core counts passes with 32 bits
#: On sets with one label a row the fit to all of 50 rows ranks better by up to .03, on sets with
#: several the best pass by up to .3: benchmarks/solvers.py, table few_rows.
_ROWS_TO_HOLD_OUT = 50


class PDSparseClassifier(LinearLabelClassifier):
    r"""Linear classifier that ranks a sample's labels above all others by a margin.

    With :math:`P_i` the labels of sample :math:`i`, :math:`N_i` the other labels and
    :math:`z = W^\top x_i`, minimises (equation 13 of [1]_)

    .. math::
        \sum_k \bigl(\tfrac12 \|w_k\|^2 + l_1 \|w_k\|_1\bigr)
        + C \sum_i s_i \max\bigl(0,\; 1 + \max_{k \in N_i} z_k - \min_{k \in P_i} z_k\bigr)

    where :math:`s_i` are the sample weights. With an intercept :math:`z = W^\top x_i + b`, and
    :math:`\tfrac12 \|b\|^2` is added. All labels are one problem: their scores compete. A
    sample touches its own labels and the few that it confuses with them: violating labels are
    found through the non-zero weights of its features (search), its dual variables are optimised
    by an exact projection (correct), and labels whose dual variable is back at zero leave its
    active set (shrink).

    A sample has no loss if it has no labels, or all of them. Without an intercept, a sample
    without features has the loss :math:`C s_i`, whatever the weights.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    l1 : float, default=0.1
        Weight of the l1 penalty; larger gives fewer non-zero weights. In the paper:
        :math:`\lambda`. It does not scale with the number of samples, but with the length of
        rows: 1 is moderate for 0/1 features, 0.01 for rows of length one.
    fit_intercept : bool, default=False
        Add a constant feature whose weights are free of l1; the paper has none. It helps where
        samples have many labels of very different frequency, and costs time in proportion to the
        number of labels at each visit.
    search : {"auto", "exact", "partition", "sampled"}, default="auto"
        How violating labels are found.

        - "exact": among all labels (20).
        - "partition": in one of three parts of the labels, drawn per visit (24).
        - "sampled": the same by scores estimated from a sample of the features (25), of the size
          that (30) gives; what it finds is scored exactly.
        - "auto": "exact", and "partition" from the pass on after which counted work says that it
          is cheaper. Never decided by the clock.

        A search may add five labels to an active set for each label of the sample; that doubles,
        up to 100, after passes whose search took more than twice the work of the rest.
    tol : float, default=0.01
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int, default=100
        Limit on the passes over the samples; a refit has as many again.
    early_stopping : "auto", bool or int, default="auto"
        True keeps rows away from training, ends the fit when the precision of the best label on
        them has not risen for so many passes (True means 3), and returns the best, as all
        experiments of the paper do. Each pass offers two models: the weights at its end, and those
        of the mean of its dual variables. "auto" does so from 50 rows on, and where `refit` asks
        for it: a fit that goes on to its certificate may rank worse than an early pass, on data
        with many labels a row even worse than no model. False ends by the certificate alone.
    validation_fraction : float, default=0.1
        Share of the rows that `early_stopping` keeps away if `fit` gets no `eval_set`. The last row
        of a label, and rows that weigh nothing, are not kept away; where that leaves too few,
        "auto" keeps none away.
    refit : bool or "closed", default=False
        After the fit, solve again without l1 over the weights that are not zero, and return that
        model if it is better on the held-out rows. "closed" is section 4.3 as it is written: over
        the dual variables that are not zero as well, without a search. True goes on searching.
        Needs `early_stopping` or an `eval_set`.
    prune : float, default=0.0
        Weights of at most this size are dropped after the fit. `objective_` and `certificate_`
        are those of the weights that are left, which takes the scores of all samples and labels;
        `certificate_` may be above `tol` although the fit has converged.
    class_weight : {"balanced", "propensity"}, mapping, array-like or None, default=None
        Weights of labels; a sample counts by the mean weight of its labels, beside
        `sample_weight`. "balanced" is n_samples / (n_classes * count); "propensity" is 2 / p - 1
        with p the label's propensity.
    n_jobs : int or None, default=None
        Threads for prediction, for the held-out rows and for the evaluation of the objective;
        None means 1, -1 all processors. Samples are visited one after another on one thread. The
        model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Order of the samples, draws of the searches, and the held-out rows. The same seed gives
        the same model.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached, with held-out rows the best so far.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, or column numbers if `y` was an indicator matrix.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights. One row, the difference of the two, if there are two classes and `y` is
        one-dimensional.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; zeros unless `fit_intercept`.
    objective_ : float
        Value of the objective at the weights found; without its l1 term if `refit_`. NaN if the
        callback stopped the fit before it was known.
    certificate_ : float
        Duality gap divided by `objective_`: the weights are at most this far from optimal, as a
        share of the whole objective. That of :math:`W = 0` is :math:`C \sum_i s_i`; where the
        optimum is hardly below it, a small certificate says little. Infinite if the callback
        stopped the fit. With early stopping it can be large.
    n_iter_ : int
        Passes over the samples, those of the refit included.
    refit_ : bool
        Whether the model is that of the refit.
    held_out_precision_ : float or None
        Share of the held-out rows whose best label is right; None without held-out rows.
    trace_ : Trace
        One row per pass. Columns seconds, objective, dual, certificate, nnz_primal, nnz_dual,
        active (labels in the active set of a sample, mean), work (entries visited so far),
        evaluated, n_candidates, n_partitions, refit, k_A and k_W (section 3.1: non-zero dual
        variables per sample, non-zero weights per feature), and held_out where there are held-out
        rows.
        The dual is of each pass. The objective takes an exact search of all samples and is
        computed where that adds at most a quarter to the work, and in the last pass
        (`evaluated`); elsewhere the last one stands, and the certificate is its gap to the dual
        of the pass.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.
    label_names_ : ndarray of shape (n_classes,)
        Only if `y` was an indicator data frame with string column names: what `classes_`, its
        column numbers, are called.

    Notes
    -----
    The loss orders labels and does not say where to cut: use `predict_top_k` where samples have
    several labels. `predict` returns the labels that score above zero.

    Without held-out rows the objective is never above that of :math:`W = 0`: weights that are worse
    are scaled by the factor between 0 and 1 at which the objective is least. That leaves the order
    of the labels as it is, unless it is 0: where samples have many labels, no weights at all can be
    the optimum.

    The dual has masses :math:`a \ge 0` on a sample's labels and :math:`b \ge 0` on the others,
    both of one sum :math:`t_i \le C s_i`, and the value :math:`\sum_i t_i - \tfrac12 \|W\|^2`,
    :math:`W = \mathrm{soft}(V, l_1)`, :math:`v_k = \sum_i (a_{ik} - b_{ik}) x_i`.

    References
    ----------
    .. [1] I. E.-H. Yen, X. Huang, K. Zhong, P. Ravikumar, I. Dhillon, "PD-Sparse: A Primal and
       Dual Sparse Approach to Extreme Multiclass and Multilabel Classification", ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.extreme import PDSparseClassifier
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])
    >>> model = PDSparseClassifier(l1=0.01, random_state=0).fit(X, ["a", "b", "b", "c"])
    >>> model.predict(X).tolist()
    ['a', 'b', 'b', 'c']
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "C": Positive(float),
        "l1": NonNegative(float),
        "fit_intercept": Boolean(),
        "search": OneOf("auto", "exact", "partition", "sampled"),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "early_stopping": Either(OneOf("auto"), EARLY_STOPPING),
        "validation_fraction": Interval(float, 0, 1, "neither"),
        "refit": Either(Boolean(), OneOf("closed")),
        "prune": NonNegative(float),
        "class_weight": ClassWeight("balanced", "propensity"),
        **RUN_RULES,
    }
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        "bias": "fit_intercept", "n_partitions": None, "n_candidates": None,
    }  # fmt: skip
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {
        "fit_intercept": {"learned": True, "none": False}
    }

    refit_: bool
    held_out_precision_: float | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float = 0.1,
        fit_intercept: bool = False,
        search: str = "auto",
        tol: float = 0.01,
        max_iter: int = 100,
        early_stopping: bool | int | str = "auto",
        validation_fraction: float = 0.1,
        refit: bool | str = False,
        prune: float = 0.0,
        class_weight: ClassWeightLike = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.search = search
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.prune = prune
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None = None,
        eval_set: EvalSet = None,
    ) -> PDSparseClassifier:
        """Learn the weights of all labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. A dense matrix is stored as a sparse one during the fit.
        y : array-like, sparse matrix, or list of label lists
            Labels: one per sample (1-D), an indicator matrix of shape (n_samples, n_labels), or for
            each sample a list of its labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the losses of samples; zero leaves a sample out. Held-out rows count alike.
        eval_set : pair (X, y) or None, default=None
            Held-out rows for early stopping, which it turns on. Labels that `y` lacks are never
            predicted.

        Returns
        -------
        PDSparseClassifier
            Itself, fitted.
        """
        check_params(self)
        self._refuse_what_does_not_fit(eval_set)
        X, labels = self._read(X, y)
        caps = self._caps(labels, sample_weight)
        seed = as_seed(self.random_state)
        train, caps, held_out = self._divide(X, labels, caps, eval_set, seed)
        by_feature, report = self._solve(train, caps, held_out, seed)
        solution = summarise(report)
        model = self._model(by_feature, X.dtype, labels)
        self.refit_ = bool(report["was_refit"])
        if self.prune > 0:
            l1 = 0.0 if self.refit_ else float(self.l1)
            objective = objective_of(model, train, caps, l1, as_n_threads(self.n_jobs))
            solution = with_objective(solution, objective, report)
        self._take_over(labels, model, solution, warns=not ended_early(report, self.max_iter))
        self.held_out_precision_ = best_held_out(report)
        return self

    def _refuse_what_does_not_fit(self, eval_set: EvalSet) -> None:
        name = type(self).__name__
        if self.refit and not self.early_stopping and eval_set is None:
            raise ParameterError(
                f"{name}.refit must be False without early_stopping or an eval_set, "
                f"got {self.refit!r}"
            )

    def _keeps_rows_away(self, n_rows: int) -> bool:
        if self.early_stopping == "auto":
            return n_rows >= (2 if self.refit else _ROWS_TO_HOLD_OUT)
        return bool(self.early_stopping)

    @np.errstate(over="ignore")
    def _caps(self, labels: EncodedLabels, sample_weight: WeightsLike | None) -> np.ndarray:
        """C times the weight of each sample."""
        name = type(self).__name__
        weights = check_sample_weight(sample_weight, labels.n_samples, estimator_name=name)
        caps = np.full(labels.n_samples, float(self.C))
        if weights is not None:
            caps *= weights
        of_labels = as_label_weights(self.class_weight, labels, estimator_name=name)
        if of_labels is not None:
            indicator = labels.to_csr()
            counts = np.maximum(np.diff(indicator.indptr), 1)
            caps *= indicator.astype(np.float64) @ of_labels / counts
        if not caps.sum() < np.finfo(np.float64).max:  # the loss where all scores are zero
            raise ParameterError(
                f"{name}.C times the weights of samples and labels must have a "
                f"finite sum, got {caps.sum():g}"
            )
        return caps

    def _divide(
        self,
        X: sp.csr_matrix,
        labels: EncodedLabels,
        caps: np.ndarray,
        eval_set: EvalSet,
        seed: int,
    ) -> tuple[_Rows, np.ndarray, _Rows]:
        """Training rows, their caps, and held-out rows (none of them without early stopping).

        A held-out row weighs something, and leaves training rows for each of its labels.
        """
        if eval_set is not None:
            return (X, labels), caps, read_eval_set(eval_set, self, labels, X.dtype)
        weighed = np.flatnonzero(caps > 0)
        if not self._keeps_rows_away(len(weighed)):
            return (X, labels), caps, pick(X, labels, np.arange(0))
        if X.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__}: X must have at least 2 samples for early_stopping, "
                f"got n_samples = {X.shape[0]}"
            )
        if len(weighed) < 2:
            return (X, labels), caps, pick(X, labels, np.arange(0))
        parts = split_rows(len(weighed), self.validation_fraction, np.random.default_rng(seed))
        rows, held_out = _with_all_labels(labels.to_csr(), *(weighed[part] for part in parts))
        is_ours_to_say = isinstance(self.early_stopping, str) and not self.refit
        enough = min(len(parts[1]) // 2, _ROWS_TO_HOLD_OUT)
        if is_ours_to_say and len(held_out) < enough:  # too few to judge a pass by
            return (X, labels), caps, pick(X, labels, np.arange(0))
        return pick(X, labels, rows), caps[rows], pick(X, labels, held_out)

    def _solve(
        self, train: _Rows, caps: np.ndarray, held_out: _Rows, seed: int
    ) -> tuple[_Lists, PDReport]:
        settings = self._settings(seed)
        progress = Progress(settings.max_iter * (2 if self.refit else 1))
        index_type = train[0].indices.dtype

        def job() -> tuple[_Lists, PDReport]:
            rows, others = self._labelled(*train, index_type), self._labelled(*held_out, index_type)
            return _core.fit_pd_sparse(rows, caps, others, settings, progress.core)

        by_feature, report = self._watch(job, progress, title="PD-Sparse")
        report["has_held_out"] = held_out[0].shape[0] > 0
        report["shape"] = train[0].shape[0], train[0].shape[1] + bool(self.fit_intercept)
        return by_feature, report

    def _settings(self, seed: int) -> _core.PDSettings:
        settings = _core.PDSettings()
        settings.l1 = float(self.l1)
        settings.has_bias = bool(self.fit_intercept)
        settings.tol = float(self.tol)
        settings.max_iter = min(int(self.max_iter), _MOST_INT // 2)
        settings.search = getattr(_core.PDSearch, self.search)
        patience = True if isinstance(self.early_stopping, str) else self.early_stopping
        settings.n_iter_no_change = min(patience_of(patience), _MOST_INT)
        settings.refit = bool(self.refit)
        settings.is_refit_closed = self.refit == "closed"
        settings.seed = seed
        settings.n_threads = as_n_threads(self.n_jobs)
        return settings

    def _labelled(
        self, X: sp.csr_matrix, labels: EncodedLabels, index_type: DTypeLike
    ) -> Any:  # one of four classes of the core, by the types of numbers and indices
        if self.fit_intercept:
            X = sp.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr")
        indptr, indices = (ids.astype(index_type, copy=False) for ids in (X.indptr, X.indices))
        return _core.labelled_rows(indptr, indices, X.data, X.shape[1], labels.indptr, labels.rows)

    def _model(self, by_feature: _Lists, dtype: np.dtype, labels: EncodedLabels) -> LinearLabels:
        indptr, indices, values = by_feature
        shape = (len(indptr) - 1, labels.n_classes)
        weights = sp.csr_matrix((values, indices, indptr), shape=shape)
        if labels.kind is LabelKind.BINARY:  # one score is enough: the second class less the first
            weights = (weights[:, 1] - weights[:, 0]).tocsr()
        bias = np.zeros(weights.shape[1], dtype=dtype)
        if self.fit_intercept:
            bias += weights[-1].toarray()[0]
            weights = weights[:-1]
        if self.prune > 0:
            weights.data[is_small(weights.data, float(self.prune))] = 0
            weights.eliminate_zeros()
        return LinearLabels(weights, bias)

    def _fields(self) -> Fields:
        return super()._fields() | {
            "refit_": Boolean(),
            "held_out_precision_": Number(or_none=True),
        }

    _STORED = (*LinearLabelClassifier._STORED, "refit_", "held_out_precision_")


_Rows = tuple[sp.csr_matrix, EncodedLabels]
_Lists = tuple[np.ndarray, np.ndarray, np.ndarray]  # offsets, labels and weights by feature


def _with_all_labels(
    indicator: sp.csr_matrix, rows: np.ndarray, held_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows, where the last row of a label is not held out."""
    counts = np.bincount(indicator[rows].indices, minlength=indicator.shape[1])
    is_last = indicator[held_out].astype(np.float64) @ (counts == 0).astype(np.float64) > 0
    if not is_last.any():
        return rows, held_out
    return np.sort(np.concatenate([rows, held_out[is_last]])), held_out[~is_last]
