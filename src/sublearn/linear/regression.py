"""Sparse linear regression as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from sublearn.errors import ParameterError
from sublearn.io.fields import Fields, Sparse
from sublearn.linear.model import SparseLinearModel
from sublearn.linear.selection import Cv
from sublearn.linear.targets import NumberTargets, RowNumbers, Targets
from sublearn.optim.concave import ConcavePenalty, FallingWeights
from sublearn.optim.linear_problem import SparsePenalty
from sublearn.optim.row_losses import Huber, KinkedLoss, Loss, Poisson, Quantile, Squared
from sublearn.trace import Callback
from sublearn.typing import LabelsLike, Matrix, MatrixLike, WeightsLike
from sublearn.validation import Boolean, NameOr, Rule, check_sample_weight
from sublearn.validation.design import check_targets, says_if_vanishing
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SparseLinearRegression"]


_LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
}


class SparseLinearRegression(RegressorMixin, SparseLinearModel):
    r"""Linear regression under an l1 penalty: lasso, elastic net, Huber, quantile, Poisson.

    Minimises

    .. math::
        \sum_i s_i f(\langle x_i, w \rangle + b; y_i)
        + l_1 \sum_j c_j |w_j| + \tfrac{l_2}{2} \|w\|^2

    where :math:`s_i` are the weights of samples, divided by their sum, and :math:`f` is

    - "squared": :math:`\tfrac12 (z - y)^2`;
    - "huber": the same for :math:`|z - y| \le \delta`, and
      :math:`\delta |z - y| - \tfrac12 \delta^2` beyond, so that single wild targets count little;
    - "quantile": :math:`\max(\tau (y - z), (1 - \tau) (z - y))`, so that a share :math:`\tau` of
      the targets lies below their predictions;
    - "poisson": :math:`e^z - y z + y \log y - y`, half of the Poisson deviance for the mean
      :math:`e^z`.

    Parameters
    ----------
    l1 : float, "cv" or "cv_1se", default=0.01
        Weight of the l1 penalty; from :meth:`l1_max` on all weights are zero. "cv" chooses it by
        cross-validation along a path, "cv_1se" then takes the largest value whose mean score is
        within one standard error of the best. In the literature: :math:`\lambda`.
    l2 : float, default=0.0
        Weight of half the squared norm; with both this is the elastic net.
    loss : {"squared", "huber", "quantile", "poisson"}, Huber or Quantile, default="squared"
        :math:`f`. ``Huber(delta)`` of :mod:`sublearn.linear` has another :math:`\delta` than 1.35,
        in the unit of `y`; ``Quantile(level)`` another :math:`\tau` than 0.5, the median. The
        kink of "quantile" is approached by ever narrower parabolas, and the certificate is that of
        the loss itself; it needs a penalty on every feature.
    positive : bool, default=False
        Whether weights must not be negative.
    fit_intercept : bool, default=True
        Whether to learn :math:`b`, which no penalty touches.
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
        stochastic coordinate descent (not for "poisson"), and "interior_point", Newton's method on
        a log barrier (not with `positive`). These two need a penalty on every feature.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most `tol` times the objective.
    max_iter : int or None, default=None
        Limit on the rounds: a full gradient and the steps in an active set that follow it; with
        "cd1" on passes over all features, with "interior_point" on Newton steps. None is 100
        rounds, 10,000 passes or 200 steps.
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
        Rounds, passes or steps as in `max_iter`.
    trace_ : Trace
        One row per round. Columns seconds, objective, certificate, violation, nnz_primal, n_kept
        (features not ruled out), n_active (size of the active set), n_passes (of coordinate
        descent), work (entries of X looked at so far). "cd1" and "interior_point" have no
        n_kept and n_active; n_passes counts their iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    References
    ----------
    .. [1] E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap Safe Screening Rules for Sparsity
       Enforcing Penalties", JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.linear import SparseLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> model = SparseLinearRegression(l1=0.1).fit(X, 2 * X[:, 3] - X[:, 7])
    >>> model.sparse_coef_.indices.tolist(), model.certificate_ <= 1e-6
    ([3, 7], True)
    """

    _kind: ClassVar[str] = "row_numbers"

    _rules: ClassVar[dict[str, Rule]] = SparseLinearModel._rules | {
        "loss": NameOr(Huber, tuple(_LOSSES), (Quantile,)),
        "positive": Boolean(),
    }

    def __init__(
        self,
        l1: float | str = 0.01,
        *,
        l2: float = 0.0,
        loss: str | Huber | Quantile = "squared",
        positive: bool = False,
        fit_intercept: bool = True,
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
        self.loss, self.positive = loss, positive
        self.fit_intercept, self.warm_start = fit_intercept, warm_start
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.cv, self.l1s = cv, l1s
        self.n_jobs, self.verbose, self.callback = n_jobs, verbose, callback

    @property
    def _is_positive(self) -> bool:
        return bool(self.positive)

    @property
    def _loss(self) -> Loss:
        if isinstance(self.loss, (Huber, Quantile)):
            return self.loss
        return _LOSSES[self.loss]()

    def _read_targets(
        self, X: Matrix, y: LabelsLike, rows: RowNumbers, penalty: SparsePenalty
    ) -> Targets:
        name = type(self).__name__
        if self.loss == "poisson" and self._method.needs_bounded_curvature:
            raise ParameterError(
                f"{name}.loss must have a bounded curvature for solver={self.solver!r}, "
                "got 'poisson'"
            )
        if isinstance(self._loss, KinkedLoss) and isinstance(penalty, ConcavePenalty):
            raise ParameterError(
                f"{name}.penalty_weights must be numbers or None for loss='quantile', "
                f"got {show(self.penalty_weights)}"
            )
        if isinstance(self._loss, KinkedLoss) and len(penalty.free):
            raise ParameterError(
                f"{name}.penalty_weights must be positive for loss='quantile' where l2 is 0, got 0"
            )
        numbers = check_targets(y, X.shape[0], estimator_name=name)
        if self.loss == "poisson":
            _refuse_other_than_counts(numbers[rows.weights > 0], name)
        elif must := says_if_vanishing(numbers):
            raise ValueError(f"{name}: y must {must}, got {np.abs(numbers).max():g}")
        return NumberTargets(
            X, numbers, rows, bool(self.fit_intercept), penalty, self._settings, self._loss
        )

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        params = dict(stored)
        delta = params.pop("huber_delta", None)
        if delta is not None and params.get("loss") == "huber":
            params["loss"] = {"delta": delta}
        return super()._current_params(params)

    def _fields(self) -> Fields:
        return super()._fields() | {"weights": Sparse(1, "features", finite=True)}

    def _set_weights(self, weights: np.ndarray, intercepts: np.ndarray) -> None:
        self.coef_, self.intercept_ = weights[0], float(intercepts[0])

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predicted targets; for the Poisson loss their means, exp of the linear prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Means beyond the largest number of their type are that number.
        """
        z = self._scores(X)[:, 0]
        if self.loss != "poisson":
            return z
        return np.exp(np.minimum(z, np.log(np.finfo(z.dtype).max)))

    def score(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """R2, the share of the variance explained, or D2, that of the loss.

        D2 is for the Poisson loss, whose loss is half of the deviance, and for "quantile".

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            True targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of samples.

        Returns
        -------
        float
            1 at best, 0 for a model that always predicts the mean of `y`, for "quantile" its
            quantile, and below if it is worse.
            Where all of `y` are one number, 1 if that is predicted exactly and else 0.
        """
        loss = self._loss
        if isinstance(loss, (Squared, Huber)):
            return float(super().score(X, y, sample_weight))
        z, name = self._scores(X)[:, 0].astype(np.float64), type(self).__name__
        numbers = check_targets(y, len(z), estimator_name=name)
        weights = check_sample_weight(sample_weight, len(z), estimator_name=name)
        weights = np.ones(len(z)) if weights is None else weights
        z, numbers, weights = (part[weights > 0] for part in (z, numbers, weights))
        if self.loss == "poisson":
            _refuse_negative(numbers, name)
        found = max(float(np.average(loss.value(z, numbers), weights=weights)), 0.0)
        if numbers.min() == numbers.max():
            return float(found == 0)
        best = np.full_like(z, loss.best_constant(numbers, weights / weights.sum()))
        return 1 - found / float(np.average(loss.value(best, numbers), weights=weights))


def _refuse_negative(y: np.ndarray, name: str) -> None:
    if (y < 0).any():
        raise ValueError(f"{name}: y must not be negative for loss='poisson', got {y.min():g}")


def _refuse_other_than_counts(y: np.ndarray, name: str) -> None:
    _refuse_negative(y, name)
    if not y.any():
        raise ValueError(f"{name}: y must have a positive entry for loss='poisson', got zeros only")
