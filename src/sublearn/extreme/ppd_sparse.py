"""One-versus-rest classification with very many labels: PPD-Sparse as a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.execution import all_or_nothing
from sublearn.extreme.fit_journal import FitJournal, make_plan, open_journal, refuse_unsavable
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.extreme.ppd_increments import (
    Fitted,
    in_two,
    join,
    known_labels,
    labels_to_keep,
    matched,
    order_of,
    refuse_another_form,
    refuse_other_labels,
    unknown_labels,
)
from sublearn.extreme.ppd_problem import PPDProblem, refuse_extreme_weights, weigh
from sublearn.extreme.ppd_settings import RandomSparsification
from sublearn.extreme.ppd_solve import learn_more, solve_one_part, solve_parts
from sublearn.fitting.label_weights import as_label_weights
from sublearn.fitting.path import ModelPath
from sublearn.io.bundle import load_bundle
from sublearn.parts import Join, Part, PartDone, share_of_fit
from sublearn.trace import Callback, Solution, Status
from sublearn.typing import (
    ClassWeightLike,
    JsonObject,
    LabelsLike,
    MatrixLike,
    PathLike,
    Seed,
    WeightsLike,
)
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    ClassWeight,
    EncodedLabels,
    InstanceOf,
    LabelKind,
    NameOr,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_argument,
    check_features,
    check_params,
    check_sample_weight,
    encode_labels,
)
from sublearn.validation.features import as_precise_as
from sublearn.validation.values import is_finite_number, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["PPDSparseClassifier"]

_MOST_SEARCHES = 2**31 - 1  # the core counts searches with 32 bits


class _LearnedOrFixed(Rule):
    """`fit_intercept`."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        is_true = isinstance(value, (bool, np.bool_)) and bool(value)
        return is_true or (isinstance(value, str) and value == "fixed")

    def __str__(self) -> str:
        return "True or 'fixed'"


class PPDSparseClassifier(LinearLabelClassifier):
    r"""Linear one-versus-rest classifier, sparse in its weights and in its support vectors.

    For each label on its own, with :math:`y_i = 1` for the samples that carry it and -1 for the
    others, minimises (after equation 2.30 of [1]_)

    .. math::
        \tfrac12 \|w\|^2 + \tfrac12 b^2 + l_1 \|w\|_1
        + \sum_i C \, \ell\bigl(y_i (\langle w, x_i \rangle + b)\bigr),
        \qquad \ell(z) = \max(0, 1 - z)^2 \text{ or } \max(0, 1 - z).

    A label touches its positives and the few other samples that it would confuse with them:
    violating samples are found by inverted lists over the non-zero weights (search), optimised by
    dual coordinate descent (correct), and dropped when their dual variable is back at zero
    (shrink). Labels are solved in blocks of one cache line (16 in float32, 8 in float64), which
    share every matrix entry that is read.

    Rows of very different length learn at very different rates: scale them to unit length
    (`sklearn.preprocessing.normalize`, or tf-idf, which does it).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    l1 : float, default=0.1
        Weight of the l1 penalty; larger gives fewer non-zero weights. In the paper:
        :math:`\lambda`.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The loss :math:`\ell`.
    fit_intercept : {True, "fixed"}, default=True
        True learns an intercept per label that is free of l1, as in the paper. "fixed" sets it to
        -1 for all labels: a sample that shares no feature with a label's weights is then never part
        of its problem. That takes fewer passes, but labels of different frequency are ranked less
        well: `benchmarks/run.py --only extreme/bibtex` shows by how much. False is refused: with
        an intercept of 0 every sample would be part of the problem of every label.
    search : {"exact", "sparsified"} or RandomSparsification, default="exact"
        How violating samples are found. :class:`RandomSparsification` makes some searches with few
        weights, drawn as in algorithm 4 of the thesis, their number that of theorem 5.
        "sparsified" makes every other search with an eighth of the weights. The model is the same
        up to `tol`; `docs/reproduction/yen2018.md` shows where it is found with less work.
    tol : float, default=0.03
        A label is done when its duality gap is at most `tol` times its objective. The gap of all
        labels together, `certificate_`, is a fraction of that.
    max_iter : int, default=100
        Limit on the searches per label.
    prune : float, default=0.0
        Weights of at most this size are dropped after the fit. `objective_` and `certificate_`
        are those of the weights that are left, so that `certificate_` may be above `tol` although
        the fit has converged; no warning says so, since more searches would not help.
    class_weight : {"balanced", "propensity"}, mapping, array-like or None, default=None
        Factors of `C` for the samples that carry a label. "balanced": n_samples / (n_classes *
        count), as in scikit-learn. "propensity": 2 / p - 1 with the label's propensity p
        (:func:`sublearn.metrics.propensities`), which makes up for relevant labels that no one
        assigned [2]_. A mapping from labels, or one number per label in the order of `classes_`. A
        label of weight 0 is not trained. With two classes in a 1-D `y` both have their weight.
    warm_start : bool, default=False
        Start from the weights of the last fit, label by label, instead of from nothing. The same
        model up to `tol`; a saving if data or parameters have changed little. Weights for another
        number of features are not used.
    model_path : path or None, default=None
        Write the model to this file as it grows: memory then holds a chunk of labels, not the
        model, and a fit that was killed goes on at the last finished chunk of 1,024 labels (512 in
        float64) when it is called again with the same data and parameters (and, with `warm_start`,
        from the same model). The unfinished parts are in the folder `<model_path>.parts`; one that
        is damaged is solved again. Afterwards the estimator's weights are mapped from
        the file, which :func:`sublearn.load` can open as well. While a fit runs it holds a lock on
        `<model_path>.lock`, and a second one with the same path is refused.
    n_jobs : int or None, default=None
        Threads; None means 1, -1 all processors. The model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Order in which samples are visited, the negatives to start with, and the draws of a
        sparsified search. The same seed gives the same model.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops the
        fit, and labels not yet reached then score -1 everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, or column numbers if `y` was an indicator matrix.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights; one row if there are two classes and `y` is one-dimensional.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    objective_ : float
        Sum of the objectives of all labels that some sample carries. The others are not trained:
        they have no weights and an intercept of -1.
    certificate_ : float
        Duality gap of the whole problem divided by `objective_`: the weights found are at most this
        far from optimal. Infinite if the callback stopped the fit.
    n_iter_ : int
        Largest number of searches that a label took.
    trace_ : Trace
        At most 100 rows. Columns seconds, labels, objective, certificate, nnz_primal, nnz_dual,
        work, each of all labels finished so far; `work` counts matrix entries visited.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.
    label_names_ : ndarray of shape (n_classes,)
        Only if `y` was an indicator data frame with string column names: what `classes_`, its
        column numbers, are called.

    Notes
    -----
    The dual of a label (2.31), whose value the certificate is computed from, is the maximum over
    :math:`0 \le \alpha_i` (:math:`\le C` for the hinge loss) of

    .. math::
        \sum_i \bigl(\alpha_i - \tfrac{\alpha_i^2}{4C}\bigr)
        - \tfrac12 \|\mathrm{soft}(v, l_1)\|^2 - \tfrac12 b^2,
        \quad v = \sum_i y_i \alpha_i x_i, \quad b = \sum_i y_i \alpha_i

    without the quadratic term for the hinge loss. At the optimum :math:`w = \mathrm{soft}(v, l_1)`.
    With float32 data sums over weights and samples are accurate to about 1e-6 relative; ask for a
    smaller `tol` in float64 only.

    References
    ----------
    .. [1] I. E.-H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 2.2.
    .. [2] M. Qaraei et al., "Convex surrogates for unbiased loss functions in extreme
       classification with missing labels", The Web Conference, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.extreme import PPDSparseClassifier
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])
    >>> model = PPDSparseClassifier(random_state=0).fit(X, ["a", "b", "b", "c"])
    >>> model.predict(X).tolist()
    ['a', 'b', 'b', 'c']
    >>> labels, scores = model.predict_top_k(X[2:3], k=2)
    >>> labels.tolist()
    [['b', 'c']]
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "C": Positive(float),
        "l1": NonNegative(float),
        "loss": OneOf("squared_hinge", "hinge"),
        "fit_intercept": _LearnedOrFixed(),
        "search": NameOr(RandomSparsification, ("exact", "sparsified")),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "prune": NonNegative(float),
        "class_weight": ClassWeight("balanced", "propensity"),
        "warm_start": Boolean(),
        "model_path": OrNone(InstanceOf(str, os.PathLike)),
        **RUN_RULES,
    }
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {"bias": "fit_intercept"}
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {"fit_intercept": {"learned": True}}

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float = 0.1,
        loss: str = "squared_hinge",
        fit_intercept: bool | str = True,
        search: str | RandomSparsification = "exact",
        tol: float = 0.03,
        max_iter: int = 100,
        prune: float = 0.0,
        class_weight: ClassWeightLike = None,
        warm_start: bool = False,
        model_path: PathLike | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.l1 = l1
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.search = search
        self.tol = tol
        self.max_iter = max_iter
        self.prune = prune
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.model_path = model_path
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> PPDSparseClassifier:
        """Learn the weights of all labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. A dense matrix is stored as a sparse one during the fit.
        y : array-like, sparse matrix, or list of label lists
            Labels: one per sample (1-D), an indicator matrix of shape (n_samples, n_labels), or for
            each sample a list of its labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Factors of `C`, one per sample. A sample of weight 0 is left out.

        Returns
        -------
        PPDSparseClassifier
            Itself, fitted.
        """
        check_params(self)
        previous = self._weights_to_start_from() if self.warm_start else None
        self._fit(*self._read(X, y), sample_weight, previous)
        return self

    def fit_path(
        self,
        X: MatrixLike,
        y: LabelsLike,
        l1s: Iterable[float],
        sample_weight: WeightsLike | None = None,
    ) -> ModelPath[PPDSparseClassifier]:
        """Fit a model for each of several `l1`, each started from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        l1s : sequence of float
            The penalties. They are fitted from the largest to the smallest.

        Returns
        -------
        ModelPath
            A sequence of new fitted models with the other parameters of this one, in the order of
            `l1s`. This one is not fitted. A callback that stops a fit ends the path: the model of
            that fit is the last one made, and the smaller penalties have none.
        """
        penalties = list(l1s) if isinstance(l1s, Iterable) else [None]
        for value in penalties:
            if not is_finite_number(value) or value < 0:
                raise ValueError(
                    f"{type(self).__name__}.fit_path: l1s must be a list of numbers that are not "
                    f"negative, got {show(l1s if value is None else value)}"
                )
        models: dict[float, PPDSparseClassifier] = {}
        previous = None
        for value in sorted(set(penalties), reverse=True):
            model = clone(self).set_params(l1=value, warm_start=False, model_path=None)
            check_params(model)
            is_done = model._fit(*model._read(X, y), sample_weight, previous)
            previous = model._weights_to_start_from()
            model.warm_start = self.warm_start
            models[value] = model
            if not is_done:
                break
        # One each, if two are equal.
        made = [copy.copy(models[value]) for value in penalties if value in models]
        return ModelPath([one.l1 for one in made], made, [one.certificate_ for one in made])

    @all_or_nothing
    def partial_fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        classes: ArrayLike | None = None,
        sample_weight: WeightsLike | None = None,
        *,
        update_known: bool = True,
    ) -> PPDSparseClassifier:
        r"""Learn from further samples, and add the labels of `y` that the model does not know.

        For a known label the dual variables of the samples seen before stay as they are, and those
        of the new samples are optimised: one step of block coordinate ascent on the dual of all
        samples. With :math:`w_0, b_0` the weights before and :math:`D` the Bregman distance of
        :math:`\tfrac12 \|w\|^2 + l_1 \|w\|_1`, it minimises

        .. math::
            D(w, w_0) + \tfrac12 (b - b_0)^2
            + \sum_{i \text{ new}} C \, \ell\bigl(y_i (\langle w, x_i \rangle + b)\bigr).

        Samples should be new: those that come again count again. A new label is learnt as in
        `fit`, against all samples of `X` that do not carry it, so `X` should hold samples of the
        known labels too; where these were in `fit` already, say ``update_known=False``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features, as many as in `fit`.
        y : array-like, sparse matrix, or list of label lists
            Labels in the form given to `fit`. An indicator matrix has a column for each known
            label, then one for each new label. A `class_weight` that is an array has an entry for
            each label of the model as it will be, known and new.
        classes : array-like or None, default=None
            If given, `y` may hold no other labels than these. Other estimators must be told all
            labels at the first call; here labels are added when samples of them come.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Factors of `C`, one per sample.
        update_known : bool, default=True
            False keeps the weights of known labels to the last bit, and learns new labels only.

        Returns
        -------
        PPDSparseClassifier
            Itself. On a model that is not fitted this is `fit`. `objective_` and `certificate_` are
            of the problem above and of new labels; without `update_known` those of known labels
            are as they were certified before. `trace_` tells of the labels learnt last. Tuned
            thresholds stay, probabilities do not. A file at `model_path` is not changed.
        """
        check_params(self)
        check_argument("partial_fit.update_known", update_known, Boolean())
        is_first = not self.__sklearn_is_fitted__()
        X = check_features(self, X, reset=is_first)
        name = type(self).__name__
        labels = encode_labels(y, X.shape[0], estimator_name=name, for_fit=is_first)
        if classes is not None:
            refuse_other_labels(labels.classes, classes, f"{name}.partial_fit: y")
        if is_first:
            self._fit(X, labels, sample_weight, None)
            return self
        refuse_another_form(self._label_kind, self.classes_, labels, f"{name}.partial_fit: y")
        new = unknown_labels(self.classes_, labels, f"{name}.partial_fit: y")
        X = as_precise_as(self.model_.bias.dtype, X, f"{name}.partial_fit: X")
        check_sample_weight(sample_weight, X.shape[0], estimator_name=name)
        added = self._new_labels(X, new, sample_weight) if new.n_classes else None
        if added is not None:
            self._take(in_two(self._fitted()))
        if update_known:
            self._learn_known(X, labels, sample_weight)
        if added is not None:
            self._take(join(self._fitted(), added._fitted()))
        return self

    def _new_labels(
        self, X: sp.csr_matrix, new: EncodedLabels, sample_weight: WeightsLike | None
    ) -> PPDSparseClassifier:
        added = clone(self).set_params(model_path=None)
        added.n_features_in_ = self.n_features_in_
        added._fit(X, new, sample_weight, None, known=self.classes_)
        return added

    def _learn_known(
        self, X: sp.csr_matrix, labels: EncodedLabels, sample_weight: WeightsLike | None
    ) -> None:
        """Further samples for the labels that the model has; those of weight 0 stay."""
        name = type(self).__name__
        known = known_labels(self._label_kind, self.classes_, labels)
        weights = self._weights_of_known(labels)
        data = weigh(X, known, sample_weight, weights, None, estimator_name=name)
        refuse_extreme_weights(data, self.C, estimator_name=name)
        watch = functools.partial(self._watch, title="PPD-Sparse")
        model, solution = learn_more(data, self.model_, self._settings(), watch)
        if weights is not None and self._label_kind is not LabelKind.BINARY:
            model = model.with_labels_of(self.model_, weights == 0)
        self._keep_solution(solution)
        self._set_model(model)

    @all_or_nothing
    def remove_labels(self, labels: Iterable[Hashable]) -> PPDSparseClassifier:
        """Forget labels; the others stay as they are.

        Parameters
        ----------
        labels : iterable
            Entries of `classes_`. At least two labels must be left, or one if a sample may carry
            several.

        Returns
        -------
        PPDSparseClassifier
            Itself. `objective_`, `certificate_` and `trace_` stay as they are.
        """
        check_is_fitted(self)
        subject = f"{type(self).__name__}.remove_labels"
        keep = labels_to_keep(self._label_kind, self.classes_, labels, subject)
        if not keep.all():
            self._set_model(LinearLabels(self.model_.weights[:, keep], self.model_.bias[keep]))
            before, self.classes_ = self.classes_, self.classes_[keep]
            self._keep_decision(before)
        return self

    def _fit(
        self,
        X: sp.csr_matrix,
        labels: EncodedLabels,
        sample_weight: WeightsLike | None,
        previous: tuple[np.ndarray, sp.csr_matrix, np.ndarray] | None,
        known: np.ndarray | None = None,
    ) -> bool:
        """Fit the labels given; `known` are further ones, which only count in class weights.

        False if the callback asked to stop.
        """
        name, settings = type(self).__name__, self._settings()
        asked = None if self.model_path is None else share_of_fit()
        part = asked if isinstance(asked, Part) else None
        if self.model_path is not None:
            refuse_unsavable({"classes_": labels.classes})
        data = weigh(X, labels, sample_weight, self.class_weight, known, estimator_name=name)
        refuse_extreme_weights(data, self.C, estimator_name=name)
        start = None if previous is None else matched(previous, data.labels, X.shape[1])
        journal: contextlib.AbstractContextManager[FitJournal | None] = contextlib.nullcontext()
        if self.model_path is not None:
            plan, subject = make_plan(self, data, start), f"{name}.model_path"
            journal = open_journal(self.model_path, plan, settings["seed"], subject, asked)
        with journal as parts:
            if parts is not None:
                settings["seed"] = parts.plan["seed"]
            watch = functools.partial(self._watch, title="PPD-Sparse")
            problem = PPDProblem(*data, start)
            if parts is not None and part is not None:
                solve_one_part(problem, settings, parts, part, watch)
                raise PartDone
            model, solution, is_stopped = solve_parts(problem, settings, parts, watch)
            self._take_over(labels, model, solution)
            if parts is not None:
                self.save(parts.model_path)
                self._set_model(type(self)._from_bundle(load_bundle(parts.model_path)).model_)
                if isinstance(asked, Join):
                    asked.then(parts.remove)
                elif solution.status is not Status.STOPPED:
                    parts.remove()
        return not is_stopped

    def _weights_to_start_from(self) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray] | None:
        """Labels, weights by label and biases of the last fit, if there was one."""
        if not self.__sklearn_is_fitted__():
            return None
        classes = self.classes_[1:] if self._label_kind is LabelKind.BINARY else self.classes_
        return classes, self.model_.weights.tocsc().T, self.model_.bias

    def _settings(self) -> JsonObject:
        search = self.search
        how = (
            {"search": getattr(_core.PPDSearch, search)}
            if isinstance(search, str)
            else search.for_core()
        )
        return {
            "loss": self.loss,
            "C": float(self.C),
            "l1": float(self.l1),
            "tol": float(self.tol),
            "prune": float(self.prune),
            "max_iter": min(int(self.max_iter), _MOST_SEARCHES),
            "learn_bias": self.fit_intercept != "fixed",
            **how,
            "seed": as_seed(self.random_state),
            "n_threads": as_n_threads(self.n_jobs),
        }

    def _weights_of_known(self, labels: EncodedLabels) -> np.ndarray | None:
        """Class weights of the labels that the model has, among them and those that are new."""
        new = unknown_labels(self.classes_, labels, type(self).__name__).classes
        order = order_of(self.classes_, new)
        everyone = known_labels(labels.kind, np.concatenate([self.classes_, new])[order], labels)
        name = type(self).__name__
        weights = as_label_weights(self.class_weight, everyone, estimator_name=name)
        return None if weights is None else weights[order < len(self.classes_)]

    def _take(self, both: Fitted) -> None:
        """Become what two fits found together."""
        self._set_model(LinearLabels(both.weights, both.bias))
        before, self.classes_, self.label_kind_ = self.classes_, both.classes, both.kind.name
        if len(before) != len(self.classes_):
            self.__dict__.pop("label_names_", None)
        self._keep_decision(before)
        self._keep_solution(both.solution, warns=False)

    def _fitted(self) -> Fitted:
        figures = self.objective_, self.certificate_, self.n_iter_, self.trace_
        solution = Solution(Status.STOPPED, *figures)  # a file does not say how a fit ended
        model = self.model_
        return Fitted(self._label_kind, self.classes_, model.weights, model.bias, solution)
