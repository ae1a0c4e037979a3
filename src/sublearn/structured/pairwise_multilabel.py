"""Several labels per sample, with a learnt weight for every pair of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.execution import all_or_nothing
from sublearn.fitting.labels import LabelClassifier
from sublearn.fitting.progress import Progress
from sublearn.io.fields import Fields, Floats, Sparse
from sublearn.structured.model import append_columns
from sublearn.structured.pairwise_learning import PairWeights, run_passes
from sublearn.trace import Callback, Solution
from sublearn.typing import LabelsLike, MatrixLike, Seed
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    EncodedLabels,
    LabelKind,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_features,
    check_params,
    decode_predictions,
    encode_labels,
)

if TYPE_CHECKING:
    from sublearn.validation.labels import DecodedLabels

__all__ = ["PairwiseMultilabelSVM"]

_MOST_SCORES = 2**22  # scores of a block of samples that is decoded at once: 32 MB
_MOST_PROGRAMS = 1000  # of the branch and bound of one sample


class PairwiseMultilabelSVM(LabelClassifier, BaseEstimator):
    r"""Structural SVM over sets of labels, with a weight for every pair of labels.

    A set of labels :math:`y \in \{0, 1\}^K` scores

    .. math:: f(x, y) = \sum_k y_k (w_k^\top x + b_k) + \sum_{k < l} V_{kl}\, y_k y_l,

    and the sample's own set :math:`t_i` must score above every other set by the number of labels
    in which they differ. Minimises (equation 1 of [1]_)

    .. math::
        \tfrac12 \|W\|^2 + \tfrac12 \|b\|^2 + \tfrac{\gamma}{2} \sum_{k<l} V_{kl}^2
        + C \sum_i \max_y \bigl[f(x_i, y) - f(x_i, t_i) + |y - t_i|_1\bigr]

    with the maximum relaxed to a linear program (5): an upper bound of the loss, and equal to it
    for most samples of a fitted model. A sample touches its own labels, the few that it
    confuses with them, and pairs of these: labels are found through their scores and the weights
    of their pairs (search), the dual is maximised over the labels of one sample at a time, with a
    multiplier for each of its pairs that has a weight (correct), and labels that are back at zero
    leave (shrink).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss. Rows of length one are assumed by the default; rows ten times as long
        ask for a hundredth.
    pair_penalty : float, default=1.0
        Weight of the squares of pair weights, :math:`\gamma`; larger makes labels less dependent.
    pairs : {"all", "none"}, default="all"
        "none" has no pair weights: one support vector machine for each label.
    fit_intercept : bool, default=True
        Learn the biases b; without them a label without features scores zero.
    tol : float, default=0.01
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int, default=100
        Limit on the passes over the samples.
    evaluate_every : int, default=5
        Passes between two evaluations of the objective, which solve a linear program for each
        sample.
    n_jobs : int or None, default=None
        Threads for evaluations and prediction; None means 1, -1 all processors. Samples are visited
        one after another. The model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Order of the samples. The same seed gives the same model.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then the best one that was evaluated, or what was reached.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, or column numbers if `Y` was an indicator matrix.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights W.
    intercept_ : ndarray of shape (n_classes,)
        Biases b.
    interactions_ : csr_matrix of shape (n_classes, n_classes)
        Pair weights V, symmetric, with an empty diagonal: positive for labels that belong together
        beyond what their features say.
    objective_ : float
        Value of the objective, with the relaxed loss; an upper bound of it where samples have more
        than 2,000 pairs of undecided labels. NaN if the callback stopped the fit before
        the first evaluation.
    certificate_ : float
        Upper bound on how far `objective_` is above the optimum, divided by it.
    n_iter_ : int
        Passes over the samples.
    trace_ : Trace
        One row per pass. Columns seconds, objective and dual (the best so far), certificate,
        nnz_primal, nnz_dual, work, evaluated, active_labels, active_pairs (pairs of labels with a
        multiplier), both over all samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    Labels may also be one per sample (1-D): the best set of one label is then predicted, for which
    pair weights do not matter.

    The dual is over shares :math:`p_{ik}` of labels and :math:`q_{ikl}` of pairs with
    :math:`\max(0, p_k + p_l - 1) \le q_{kl} \le \min(p_k, p_l)`; it is feasible at all times, so
    `certificate_` is a duality gap and no estimate.

    References
    ----------
    .. [1] I. E.-H. Yen, X. Huang, K. Zhong, R. Zhang, P. Ravikumar, I. Dhillon, "Dual Decomposed
       Learning with Factorwise Oracles for Structural SVMs of Large Output Domain", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.structured import PairwiseMultilabelSVM
    >>> X = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
    >>> Y = [["cat", "pet"], ["cat", "pet"], ["car"], ["car"]]
    >>> model = PairwiseMultilabelSVM(C=10.0, random_state=0).fit(X, Y)
    >>> model.predict(X)
    [['cat', 'pet'], ['cat', 'pet'], ['car'], ['car']]
    """

    _kind: ClassVar[str] = "row_label_sets"

    _rules: ClassVar[dict[str, Rule]] = {
        "C": Positive(float),
        "pair_penalty": Positive(float),
        "pairs": OneOf("all", "none"),
        "fit_intercept": Boolean(),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "evaluate_every": Positive(int),
        **RUN_RULES,
    }

    intercept_: np.ndarray
    interactions_: sp.csr_matrix

    def __init__(
        self,
        C: float = 1.0,
        *,
        pair_penalty: float = 1.0,
        pairs: str = "all",
        fit_intercept: bool = True,
        tol: float = 0.01,
        max_iter: int = 100,
        evaluate_every: int = 5,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.pair_penalty = pair_penalty
        self.pairs = pairs
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.evaluate_every = evaluate_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, X: MatrixLike, y: LabelsLike) -> PairwiseMultilabelSVM:
        """Learn the weights of labels and of pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. A dense matrix is stored as a sparse one during the fit.
        y : array-like, sparse matrix, or list of label lists
            Labels: an indicator matrix of shape (n_samples, n_labels), for each sample a list of
            its labels, or one label per sample (1-D).

        Returns
        -------
        PairwiseMultilabelSVM
            Itself, fitted.
        """
        check_params(self)
        X = check_features(self, X, reset=True)
        labels = encode_labels(y, X.shape[0], estimator_name=type(self).__name__)
        weights, solution = self._learn(X, labels)
        self._keep_solution(solution)
        self._take_over(labels, weights)
        return self

    def _learn(self, X: sp.csr_matrix, labels: EncodedLabels) -> tuple[PairWeights, Solution]:
        at_zero = float(self.C) * labels.n_samples * labels.n_classes  # every label wrong
        progress = Progress(int(self.max_iter), n_done=0, objective=at_zero, gap=at_zero)
        settings = _core.PairwiseSettings()
        settings.C, settings.gamma = float(self.C), float(self.pair_penalty)
        settings.has_pairs = self.pairs == "all"
        settings.seed, settings.n_threads = as_seed(self.random_state), as_n_threads(self.n_jobs)

        def job() -> tuple[PairWeights, Solution]:
            rows = append_columns(X, np.ones(X.shape[0])) if self.fit_intercept else X
            arrays = (rows.indptr, rows.indices, rows.data, rows.shape[1])
            labelled = _core.labelled_rows(*arrays, labels.indptr, labels.rows)
            learner = _core.pairwise_learner(labelled, settings)
            limits = (float(self.tol), int(self.max_iter), int(self.evaluate_every))
            return run_passes(learner, labels.n_classes, settings.has_pairs, *limits, progress)

        return self._watch(job, progress)

    def _take_over(self, labels: EncodedLabels, weights: PairWeights) -> None:
        self._keep_labels(labels)
        features = weights.features
        self.intercept_ = np.zeros(labels.n_classes, dtype=features.dtype)
        if self.fit_intercept:
            self.intercept_ += features[-1].toarray()[0]
            features = features[:-1]
        self.weights_ = features
        self.interactions_ = weights.pairs

    @property
    def coef_(self) -> sp.csc_matrix:
        """Weights of shape (n_classes, n_features): a view of the model's own arrays."""
        check_is_fitted(self)
        return self.weights_.T

    def predict(self, X: MatrixLike) -> DecodedLabels:
        """The best set of labels of each sample, pairs included; of one label if `y` was 1-D.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, sparse matrix or list of lists
            In the form in which `fit` got the labels.
        """
        return self.predict_with_bounds(X)[0]

    def predict_with_bounds(self, X: MatrixLike) -> tuple[DecodedLabels, np.ndarray, np.ndarray]:
        """The sets of `predict`, their scores, and what no set can exceed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray, sparse matrix or list of lists
            As `predict` gives them.
        scores : ndarray of shape (n_samples,)
            f(x, y) of each set.
        bounds : ndarray of shape (n_samples,)
            Equal to the score where the set is proven to be the best.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False)
        kind = self._label_kind
        n_block = max(1, _MOST_SCORES // len(self.classes_))
        blocks = [X[at : at + n_block] for at in range(0, X.shape[0], n_block)]
        decode = self._best_sets if kind.is_multilabel else self._best_labels
        sets, scores, bounds = zip(*(decode(block) for block in blocks), strict=True)
        predicted = decode_predictions(kind, self.classes_, sp.vstack(sets, format="csr"))
        return predicted, np.concatenate(scores), np.concatenate(bounds)

    def _label_scores(self, X: sp.csr_matrix) -> np.ndarray:
        scores = (X @ self.weights_).toarray().astype(np.float64, copy=False)
        return scores + self.intercept_

    def _best_sets(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
        pairs = self.interactions_
        indptr, labels, scores, bounds = _core.best_label_sets(
            self._label_scores(X),
            pairs.indptr.astype(np.int64, copy=False),
            pairs.indices.astype(np.int64, copy=False),
            pairs.data.astype(np.float64, copy=False),
            _MOST_PROGRAMS,
            as_n_threads(self.n_jobs),
        )
        ones = np.ones(len(labels), dtype=bool)
        shape = (X.shape[0], len(self.classes_))
        return sp.csr_matrix((ones, labels, indptr), shape=shape), scores, bounds

    def _best_labels(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
        label_scores = self._label_scores(X)
        best = label_scores.argmax(axis=1)
        ones, rows = np.ones(len(best), dtype=bool), np.arange(len(best))
        scores = label_scores[rows, best]
        return sp.csr_matrix((ones, (rows, best)), shape=label_scores.shape), scores, scores

    _STORED = (*LabelClassifier._STORED, "weights_", "intercept_", "interactions_")

    def _fields(self) -> Fields:
        return super()._fields() | {
            "label_kind_": OneOf(*(kind.name for kind in LabelKind if kind.is_multilabel)),
            "weights_": Sparse("features", "classes", finite=True),
            "intercept_": Floats("classes", finite=True),
            "interactions_": Sparse("classes", "classes", finite=True),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
