"""Sparse logistic regression as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from sublearn.errors import ParameterError
from sublearn.fitting.label_weights import as_label_weights
from sublearn.fitting.labels import best_labels
from sublearn.io.fields import Fields, Labels
from sublearn.linear.model import SparseLinearModel
from sublearn.linear.selection import Cv
from sublearn.linear.targets import ClassTargets, RowNumbers, Targets, log_probabilities
from sublearn.optim.concave import FallingWeights
from sublearn.optim.dual_point import MOST_FREE
from sublearn.optim.linear_problem import SparsePenalty
from sublearn.trace import Callback
from sublearn.typing import ClassWeightLike, LabelsLike, Matrix, MatrixLike, State, WeightsLike
from sublearn.validation import Boolean, ClassWeight, OneOf, Rule, encode_labels
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SparseLogisticRegression"]


class SparseLogisticRegression(ClassifierMixin, SparseLinearModel):
    r"""Logistic regression under an l1 penalty.

    For two classes, :math:`y_i \in \{-1, 1\}`, minimises

    .. math::
        \sum_i s_i \log\bigl(1 + e^{-y_i (\langle x_i, w \rangle + b)}\bigr)
        + l_1 \sum_j c_j |w_j| + \tfrac{l_2}{2} \|w\|^2

    where :math:`s_i` are the weights of samples times those of classes, divided by their sum, so
    that the loss is a mean and `l1` does not depend on the number of samples. Features whose weight
    is not zero, and those that violate optimality most, form a small active set; full gradients are
    taken only to extend the set, to rule features out for good, and to certify.

    More than two classes are learned one against the rest, or together.

    Parameters
    ----------
    l1 : float, "cv" or "cv_1se", default=0.001
        Weight of the l1 penalty; from :meth:`l1_max` on all weights are zero. "cv" chooses it by
        cross-validation along a path, "cv_1se" then takes the largest value whose mean score is
        within one standard error of the best. In the literature: :math:`\lambda`.
    l2 : float, default=0.0
        Weight of half the squared norm; with both this is the elastic net.
    multinomial : bool, default=False
        Learn more than two classes together, under the loss
        :math:`\log \sum_k e^{z_{ik}} - z_{i y_i}`, so that probabilities are the softmax of the
        scores and, with an intercept, their means over the samples are the shares of the classes.
        False learns each against the rest, as problems of their own, several times faster. The
        certificate is a duality gap in both cases. Two classes are one problem in either case.
    fit_intercept : bool, default=True
        Whether to learn :math:`b`, which no penalty touches.
    class_weight : "balanced", mapping, array-like or None, default=None
        Weights of classes, beside `sample_weight`. "balanced" is n_samples / (n_classes * count);
        classes that a mapping leaves out have weight 1.
    penalty_weights : array-like of shape (n_features,), {"mcp", "scad"}, FallingWeights or None, \
            default=None
        :math:`c_j`, by which `l1` is multiplied for each feature. 0 leaves a feature free of l1.
        "mcp" and "scad" let each fall to 0 as its :math:`|w_j|` grows, so that large weights are
        not pulled towards 0; ``FallingWeights(shape, gamma)`` of :mod:`sublearn.linear` says how
        soon. That penalty is concave: `certificate_` is then the gap of the convex problem that
        touches the objective at the weights. It certifies a stationary point, which need not be
        the global optimum.
    solver : {"auto", "newton", "lhac", "cd1", "interior_point"}, default="auto"
        The method inside the active set: "newton", proximal Newton steps by coordinate descent, or
        "lhac", whose Hessian is of low rank. "auto" is "newton", and LHAC where that stalls. Two
        more work on all features at once, so that they can judge the others: "cd1", first-order
        stochastic coordinate descent, and "interior_point", Newton's method on a log barrier.
        These two need a penalty on every feature. With `multinomial` only "auto" and "lhac",
        which are then the same.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int or None, default=None
        Limit on the rounds: a full gradient and the steps in an active set that follow it; with
        "cd1" on passes over all features, with "interior_point" on Newton steps. None is 100
        rounds, 10,000 passes or 200 steps.
    cv : int, splitter or iterable, default=5
        Folds of ``l1="cv"``: a number of stratified ones, the same in every fit, an object with a
        method `split`, or pairs of training and held-out rows.
    l1s : int or array-like, default=50
        Values that ``l1="cv"`` tries: so many from `l1_max` to a hundredth of it, or these. If
        the least is the best, a warning says so.
    warm_start : bool, default=False
        Start from the weights of the last fit if they have the same shape.
    n_jobs : int or None, default=None
        Threads: for classes, folds and gradients. None means 1, -1 all processors. The model does
        not depend on it.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, of the second class if there are two.
    sparse_coef_ : csr_matrix
        The same, without the zeros.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    l1_ : float
        The l1 that was used.
    l1_path_, cv_scores_ : ndarray of shape (n_l1s,) and (n_l1s, n_folds)
        With ``l1="cv"``: values tried, largest first, and minus their mean loss on each fold.
    objective_ : float
        Value of the objective at the weights found, summed over classes that are learned apart.
    certificate_ : float
        Duality gap divided by the objective: the weights are at most this far from optimal. The
        largest of classes that are learned apart.
    n_iter_ : int
        Rounds, passes or steps as in `max_iter`; the most that a class took.
    trace_ : Trace
        One row per round. Columns seconds, objective, certificate, violation, nnz_primal, n_kept
        (features not ruled out), n_active (size of the active set), n_passes (of coordinate
        descent), work (entries of X looked at so far), and output (position of the class) if there
        are several.
        "cd1" and "interior_point" have no n_kept and n_active; n_passes counts their iterations.
        With `multinomial` there is no n_kept, work and output.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    See Also
    --------
    sublearn.extreme.PPDSparseClassifier : For very many labels.

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.
    .. [2] E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap Safe Screening Rules for Sparsity
       Enforcing Penalties", JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.linear import SparseLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> model = SparseLogisticRegression(l1=0.1).fit(X, X[:, 3] - X[:, 7] > 0)
    >>> model.sparse_coef_.indices.tolist(), model.certificate_ <= 1e-6
    ([3, 7], True)
    """

    _kind: ClassVar[str] = "row_labels"

    _rules: ClassVar[dict[str, Rule]] = SparseLinearModel._rules | {
        "multinomial": Boolean(),
        "class_weight": ClassWeight("balanced"),
    }
    _FORMER_PARAMS: ClassVar = SparseLinearModel._FORMER_PARAMS | {"multi_class": "multinomial"}
    _FORMER_VALUES: ClassVar = {"multinomial": {"ovr": False, "multinomial": True}}

    classes_: np.ndarray

    def __init__(
        self,
        l1: float | str = 0.001,
        *,
        l2: float = 0.0,
        multinomial: bool = False,
        fit_intercept: bool = True,
        class_weight: ClassWeightLike = None,
        penalty_weights: WeightsLike | str | FallingWeights | None = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        cv: Cv = 5,
        l1s: ArrayLike = 50,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.l1, self.l2, self.penalty_weights = l1, l2, penalty_weights
        self.multinomial, self.class_weight = multinomial, class_weight
        self.fit_intercept, self.warm_start = fit_intercept, warm_start
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.cv, self.l1s = cv, l1s
        self.n_jobs, self.verbose, self.callback = n_jobs, verbose, callback

    def _read_targets(
        self, X: Matrix, y: LabelsLike, rows: RowNumbers, penalty: SparsePenalty
    ) -> Targets:
        name = type(self).__name__
        labels = encode_labels(y, X.shape[0], estimator_name=name)
        if labels.kind.is_multilabel:
            raise ValueError(
                f"{name}: y must have one label per sample, got {labels.kind.value}; "
                "sublearn.extreme is for several"
            )
        if labels.n_classes > 2 and self.multinomial:
            self._refuse_what_joint_classes_cannot(labels.n_classes)
            if rows.offsets is not None:
                raise ValueError(
                    f"{name}: offset must be None for more than two classes with multinomial=True"
                )
        codes = labels.to_csr().indices
        weights = as_label_weights(self.class_weight, labels, estimator_name=name)
        if weights is not None:
            rows = replace(rows, weights=rows.weights * weights[codes])
        self.classes_ = labels.classes
        alive = np.bincount(codes, rows.weights > 0, minlength=labels.n_classes) > 0
        if not alive.all():
            raise ValueError(
                f"{name}: sample_weight and class_weight must leave rows of every class, "
                f"got none of {show(labels.classes[~alive][0])}"
            )
        return ClassTargets(
            X, codes, rows, bool(self.fit_intercept), penalty, self._settings,
            labels.n_classes, bool(self.multinomial),
        )  # fmt: skip

    def _refuse_what_joint_classes_cannot(self, n_classes: int) -> None:
        name, at = type(self).__name__, "with multinomial=True"
        allowed = OneOf("auto", "lhac")
        if not allowed.accepts(self.solver):
            raise ParameterError(
                f"{name}.solver must be {allowed} for more than two classes {at}, "
                f"got {self.solver!r}"
            )
        if isinstance(self.penalty_weights, (str, FallingWeights)):
            raise ParameterError(
                f"{name}.penalty_weights must be numbers or None for more than two classes {at}, "
                f"got {show(self.penalty_weights)}"
            )
        free = np.equal(self.penalty_weights, 0) if self.penalty_weights is not None else []
        n_free = np.count_nonzero(free) if self.l2 == 0 else 0
        if n_free * n_classes > MOST_FREE:
            raise ParameterError(
                f"{name}.penalty_weights must leave at most {MOST_FREE // n_classes} features "
                f"unpenalised for {n_classes} classes {at} where l2 is 0, got {n_free}"
            )

    def _fields(self) -> Fields:
        return super()._fields() | {"classes_": Labels("classes")}

    def _restore(self, state: State) -> None:
        n_classes, n_outputs = len(state["classes_"]), state["weights"].shape[0]
        if n_classes < 2 or n_outputs != (1 if n_classes == 2 else n_classes):
            raise ValueError(
                f"weights must have a row for each of {n_classes} classes_, one for two of them, "
                f"got {n_outputs}"
            )
        super()._restore(state)

    @property
    def _is_joint(self) -> bool:
        return bool(self.multinomial)

    def _answers(self, y: np.ndarray) -> np.ndarray:
        return self.classes_[y]

    def _set_weights(self, weights: np.ndarray, intercepts: np.ndarray) -> None:
        self.coef_, self.intercept_ = weights, intercepts

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores: log odds of the second class, or of each class against the rest.

        With `multinomial` differences of two classes are their log odds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The most probable class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        best = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(np.intp)]

    def predict_top_k(self, X: MatrixLike, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best classes of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            How many; all classes if there are fewer.

        Returns
        -------
        labels, scores : ndarray of shape (n_samples, k)
            The first of two classes has the negated score of the second.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        return best_labels(self.classes_, scores, k)

    def predict_proba_top_k(self, X: MatrixLike, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best classes of each sample, best first, and their probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        k : int, default=5
            How many; all classes if there are fewer.

        Returns
        -------
        labels, probabilities : ndarray of shape (n_samples, k)
            Those of `predict_top_k`, with entries of `predict_proba`.
        """
        logs = self.predict_log_proba(X)  # in the order of the scores, whatever rounds to 0 or 1
        return best_labels(self.classes_, logs, k, np.exp(logs))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of the probabilities, finite also where a probability rounds to zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return log_probabilities(self._scores(X), bool(self.multinomial))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes.

        With more than two classes, each class's own probability against the rest is divided by the
        sum of all, or, with `multinomial`, they are the softmax of the scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))
