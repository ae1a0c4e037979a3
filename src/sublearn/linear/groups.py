"""Linear models whose features enter in groups, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sublearn.linear.logistic import SparseLogisticRegression
from sublearn.linear.model import SparseLinearModel
from sublearn.linear.regression import SparseLinearRegression
from sublearn.linear.selection import BY_FOLDS, Cv
from sublearn.optim.group_penalty import (
    FeatureGroups,
    GroupPenalty,
    check_group_weights,
    read_groups,
)
from sublearn.optim.linear_problem import SparsePenalty
from sublearn.optim.row_losses import Huber
from sublearn.trace import Callback
from sublearn.typing import ClassWeightLike, State, WeightsLike
from sublearn.validation import ClassWeight, Either, Interval, NameOr, OneOf, Positive, Rule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["GroupLinearRegression", "GroupLogisticRegression"]

_NOT_OURS = {"penalty_weights", "solver"}  # of other linear models


class _GroupsOrNone(Rule):
    """None, ids of groups, or lists of features; what is in them is checked against the data."""

    def accepts(self, value: object) -> bool:
        if value is None:
            return True
        is_array = hasattr(value, "__array__") and np.ndim(np.asarray(value)) == 1
        is_listed = isinstance(value, (list, tuple)) or is_array
        return is_listed and isinstance(value, Sized) and len(value) > 0

    def __str__(self) -> str:
        return "an id of a group for each feature, a list of lists of features or None"


class _WeightsOrNone(_GroupsOrNone):
    """None, or numbers that are checked against the groups."""

    def __str__(self) -> str:
        return "an array of one number per group or None"


class GroupedFeatures(SparseLinearModel):
    """What estimators with a penalty on groups have in place of one on features."""

    _rules: ClassVar[dict[str, Rule]] = {
        name: rule for name, rule in SparseLinearModel._rules.items() if name not in _NOT_OURS
    } | {
        "l1": Either(Positive(float), *map(OneOf, BY_FOLDS)),
        "feature_groups": _GroupsOrNone(),
        "group_weights": _WeightsOrNone(),
        "within_share": Interval(float, 0, 1, "left"),
    }
    #: Parameters that other linear models have.
    solver = "newton"
    penalty_weights = None
    positive = False
    multinomial = False

    feature_groups: FeatureGroups
    group_weights: WeightsLike | None
    within_share: float

    @property
    def _is_divisible(self) -> bool:
        return False

    def _read_penalty(self, n_features: int) -> SparsePenalty:
        name = type(self).__name__
        self._groups = read_groups(self.feature_groups, n_features, f"{name}.feature_groups")
        weights = check_group_weights(self.group_weights, self._groups, f"{name}.group_weights")
        return GroupPenalty(self._groups, weights, float(self.within_share), float(self.l2))

    @property
    def group_norms_(self) -> np.ndarray:
        """Norms of the weights of each group, of shape (n_groups,) or (n_classes, n_groups)."""
        norms = self._groups.norms(np.asarray(self.coef_))
        return norms[0] if norms.ndim == 2 and len(norms) == 1 else norms

    def _stored_params(self) -> State:
        params = super()._stored_params()
        if self.feature_groups is not None:
            listed = [np.asarray(one).tolist() for one in self.feature_groups]
            params["feature_groups"] = listed
        return params

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._read_penalty(np.shape(self.coef_)[-1])


class GroupLinearRegression(GroupedFeatures, SparseLinearRegression):
    r"""Linear regression whose features enter in groups: group lasso, sparse-group lasso.

    Minimises

    .. math::
        \sum_i s_i f(\langle x_i, w \rangle + b; y_i)
        + l_1 \Bigl((1 - \alpha) \sum_g c_g \|w_g\|_2 + \alpha \|w\|_1\Bigr)
        + \tfrac{l_2}{2} \|w\|^2

    where :math:`s_i` are the weights of samples, divided by their sum, :math:`w_g` the weights of
    a group of features, and :math:`f` a loss of :class:`SparseLinearRegression`. The weights of a
    group are all 0, or, for :math:`\alpha = 0`, all different from 0. The columns that stand for
    one categorical feature, the lags of one series or the genes of one pathway are such groups.

    Parameters
    ----------
    l1 : float, "cv" or "cv_1se", default=0.01
        Weight of the penalty; from :meth:`l1_max` on all weights are zero. "cv" chooses it by
        cross-validation along a path, "cv_1se" then takes the largest value whose mean score is
        within one standard error of the best. In the literature: :math:`\lambda`.
    feature_groups : array-like or None, default=None
        The group of each feature, an integer or a string; or a list of lists of the positions of
        the features of each group. Groups do not overlap and hold every feature. None makes each
        feature a group of its own, which is the lasso.
    group_weights : array-like of shape (n_groups,) or None, default=None
        :math:`c_g`, above 0, in the order of the lists or of the sorted ids. None is the square
        root of the size of each group, so that large groups do not enter for their size alone.
    within_share : float, default=0.0
        :math:`\alpha`, at least 0 and below 1: the share of `l1` that single weights bear. Above 0
        weights within a group may be 0 as well (sparse-group lasso).
    l2 : float, default=0.0
        Weight of half the squared norm.
    loss : {"squared", "huber", "poisson"} or Huber, default="squared"
        :math:`f`.
    fit_intercept : bool, default=True
        Whether to learn :math:`b`, which no penalty touches.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int or None, default=None
        Limit on the rounds: a full gradient and the steps in an active set of groups that follow
        it. None is 100.
    cv : int, splitter or iterable, default=5
        Folds of ``l1="cv"``: a number of shuffled ones, the same in every fit, an object with a
        method `split`, or pairs of training and held-out rows.
    l1s : int or array-like, default=50
        Values that ``l1="cv"`` tries: so many from `l1_max` to a hundredth of it, or these. If
        the least is the best, a warning says so.
    warm_start : bool, default=False
        Start from the weights of the last fit if they have the same shape.
    n_jobs : int or None, default=None
        Threads: for folds and gradients. None means 1, -1 all processors. The model does not
        depend on it.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    sparse_coef_ : csr_matrix of shape (1, n_features)
        The same, without the zeros.
    group_norms_ : ndarray of shape (n_groups,)
        Norms of the weights of each group, in the order of `group_weights`; 0 for a group that is
        left out.
    intercept_ : float
        Intercept.
    l1_ : float
        The l1 that was used.
    l1_path_, cv_scores_ : ndarray of shape (n_l1s,) and (n_l1s, n_folds)
        With ``l1="cv"``: values tried, largest first, and minus their mean loss on each fold.
    objective_ : float
        Value of the objective at the weights found.
    certificate_ : float
        Duality gap divided by the objective: the weights are at most this far from optimal.
    n_iter_ : int
        Rounds.
    trace_ : Trace
        One row per round. Columns seconds, objective, certificate, violation, nnz_primal, n_kept
        and n_active, all three in groups, n_passes (of descent over groups), work (entries of X
        looked at so far).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    References
    ----------
    .. [1] M. Yuan, Y. Lin, "Model Selection and Estimation in Regression with Grouped Variables",
       JRSS B 68, 2006.
    .. [2] N. Simon, J. Friedman, T. Hastie, R. Tibshirani, "A Sparse-Group Lasso", JCGS 22, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.linear import GroupLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 12))
    >>> model = GroupLinearRegression(l1=0.2, feature_groups=[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    >>> model.fit(X, X[:, 3] + X[:, 4] - X[:, 5]).group_norms_.round(1)
    array([0. , 1.4, 0. , 0. ])
    """

    _rules: ClassVar[dict[str, Rule]] = GroupedFeatures._rules | {
        "loss": NameOr(Huber, ("squared", "huber", "poisson")),
    }

    def __init__(
        self,
        l1: float | str = 0.01,
        *,
        feature_groups: FeatureGroups = None,
        group_weights: WeightsLike | None = None,
        within_share: float = 0.0,
        l2: float = 0.0,
        loss: str | Huber = "squared",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int | None = None,
        cv: Cv = 5,
        l1s: ArrayLike = 50,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.l1, self.l2, self.loss, self.fit_intercept = l1, l2, loss, fit_intercept
        self.feature_groups, self.group_weights = feature_groups, group_weights
        self.within_share = within_share
        self.tol, self.max_iter, self.warm_start = tol, max_iter, warm_start
        self.cv, self.l1s = cv, l1s
        self.n_jobs, self.verbose, self.callback = n_jobs, verbose, callback


class GroupLogisticRegression(GroupedFeatures, SparseLogisticRegression):
    r"""Logistic regression whose features enter in groups.

    For two classes, :math:`y_i \in \{-1, 1\}`, minimises

    .. math::
        \sum_i s_i \log\bigl(1 + e^{-y_i (\langle x_i, w \rangle + b)}\bigr)
        + l_1 \Bigl((1 - \alpha) \sum_g c_g \|w_g\|_2 + \alpha \|w\|_1\Bigr)
        + \tfrac{l_2}{2} \|w\|^2

    where :math:`s_i` are the weights of samples times those of classes, divided by their sum, and
    :math:`w_g` the weights of a group of features, which are all 0 or, for :math:`\alpha = 0`, all
    different from 0. More than two classes are learned one against the rest.

    Parameters
    ----------
    l1 : float, "cv" or "cv_1se", default=0.01
        Weight of the penalty; from :meth:`l1_max` on all weights are zero. "cv" chooses it by
        cross-validation along a path, "cv_1se" then takes the largest value whose mean score is
        within one standard error of the best. In the literature: :math:`\lambda`.
    feature_groups : array-like or None, default=None
        The group of each feature, an integer or a string; or a list of lists of the positions of
        the features of each group. Groups do not overlap and hold every feature. None makes each
        feature a group of its own, which is the l1 penalty.
    group_weights : array-like of shape (n_groups,) or None, default=None
        :math:`c_g`, above 0, in the order of the lists or of the sorted ids. None is the square
        root of the size of each group, so that large groups do not enter for their size alone.
    within_share : float, default=0.0
        :math:`\alpha`, at least 0 and below 1: the share of `l1` that single weights bear. Above 0
        weights within a group may be 0 as well (sparse-group lasso).
    l2 : float, default=0.0
        Weight of half the squared norm.
    fit_intercept : bool, default=True
        Whether to learn :math:`b`, which no penalty touches.
    class_weight : "balanced", mapping, array-like or None, default=None
        Weights of classes, beside `sample_weight`. "balanced" is n_samples / (n_classes * count);
        classes that a mapping leaves out have weight 1.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int or None, default=None
        Limit on the rounds: a full gradient and the steps in an active set of groups that follow
        it. None is 100.
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
    group_norms_ : ndarray of shape (n_groups,) or (n_classes, n_groups)
        Norms of the weights of each group, in the order of `group_weights`; 0 for a group that is
        left out.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    l1_ : float
        The l1 that was used.
    l1_path_, cv_scores_ : ndarray of shape (n_l1s,) and (n_l1s, n_folds)
        With ``l1="cv"``: values tried, largest first, and minus their mean loss on each fold.
    objective_ : float
        Value of the objective at the weights found, summed over classes.
    certificate_ : float
        Duality gap divided by the objective: the weights are at most this far from optimal. The
        largest of all classes.
    n_iter_ : int
        Rounds; the most that a class took.
    trace_ : Trace
        One row per round. Columns seconds, objective, certificate, violation, nnz_primal, n_kept
        and n_active, all three in groups, n_passes (of descent over groups), work (entries of X
        looked at so far), and output (position of the class) if there are several.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    References
    ----------
    .. [1] L. Meier, S. van de Geer, P. Buehlmann, "The Group Lasso for Logistic Regression",
       JRSS B 70, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.linear import GroupLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> model = GroupLogisticRegression(l1=0.05, feature_groups=["a", "a", "b", "b", "c", "c"])
    >>> (model.fit(X, X[:, 2] - X[:, 3] > 0).group_norms_ > 0).tolist()
    [False, True, False]
    """

    _rules: ClassVar[dict[str, Rule]] = GroupedFeatures._rules | {
        "class_weight": ClassWeight("balanced"),
    }

    def __init__(
        self,
        l1: float | str = 0.01,
        *,
        feature_groups: FeatureGroups = None,
        group_weights: WeightsLike | None = None,
        within_share: float = 0.0,
        l2: float = 0.0,
        fit_intercept: bool = True,
        class_weight: ClassWeightLike = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        cv: Cv = 5,
        l1s: ArrayLike = 50,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.l1, self.l2, self.fit_intercept = l1, l2, fit_intercept
        self.feature_groups, self.group_weights = feature_groups, group_weights
        self.within_share, self.class_weight = within_share, class_weight
        self.tol, self.max_iter, self.warm_start = tol, max_iter, warm_start
        self.cv, self.l1s = cv, l1s
        self.n_jobs, self.verbose, self.callback = n_jobs, verbose, callback
