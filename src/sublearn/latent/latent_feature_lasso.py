"""Which binary features do rows have? The Latent Feature Lasso as a transformer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import (
    AnyOf,
    Fields,
    Floats,
    Integers,
    Number,
    OrAbsent,
    TraceTable,
    take_parts,
)
from sublearn.latent.codes import best_codes
from sublearn.latent.factorisation import Factoriser
from sublearn.latent.feature_count import (
    error_beyond_axes,
    fewest_bits,
    gains_by_size,
    held_out_errors,
    largest_fall,
)
from sublearn.latent.feature_learning import (
    FeatureLearner,
    LearningSettings,
    facing_a_small_intercept,
)
from sublearn.latent.lasso_problem import LassoFit, LatentFeaturePath, share_or_values
from sublearn.latent.missing import read_rows
from sublearn.trace import Callback, Status
from sublearn.typing import MatrixLike, Seed, State
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_params,
)
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from sublearn.display import ImagesDisplay
    from sublearn.display.base import AxesLike

__all__ = ["LatentFeatureLasso"]

_LARGEST = 1e70  # sums of squares of squares stay finite
_Result = TypeVar("_Result")
_FILLS = 20  # rounds between the codes of rows with missing entries and these entries


class LatentFeatureLasso(
    FittedModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Binary latent features: every row is an intercept plus a sum of some of K features.

    Finds :math:`X \approx 1 b^T + Z W` with :math:`Z \in \{0,1\}^{N \times K}`, in two stages.
    First the convex problem (6) of the paper [1]_, over all :math:`2^N` binary columns z at once,

    .. math::
        \min_{c \ge 0}\ \min_{b, W}\ \tfrac{1}{2N} \|X - 1 b^T - Z W\|_F^2
        + \tfrac{l_2}{2} \sum_k \frac{\|W_k\|^2}{c_k} + l_1 \sum_k c_k .

    Each step searches for columns of steepest descent, a Boolean quadratic problem, and then
    corrects all weights; a semidefinite bound on the best column that exists gives the certificate.
    Then K columns are taken and refined by alternating least squares and exchanges.

    Parameters
    ----------
    n_components : int, "bic", "gap" or "cv", default="bic"
        K. "bic": the fewest bits for codes, features and errors together. "gap": after which
        feature the next one gains least, compared with it; for features that surely exist. "cv":
        by the error of held-out entries.
    l1 : float or None, default=None
        Weight of the atomic norm (lambda in the paper); None is 0.1 of the least weight at which
        no feature is left next to an intercept, also without `fit_intercept`. Only the product of
        `l1` and `l2` matters for the features.
    l2 : float, default=1.0
        Weight of the squared features (tau in the paper).
    fit_intercept : bool, default=True
        Fit b, without a penalty. Without it a column of ones takes the first place, and one of the
        K, wherever the data have a mean.
    refine : bool, default=True
        Improve the K columns by alternating minimisation and exchanges. False is the paper's
        rounding: the K largest, then least squares.
    span_atoms : bool, default=True
        Offer the convex problem binary vectors close to the span of the data's leading axes, too.
        False leaves it the columns of steepest descent, as algorithm 1 of the paper does; with
        ``refine=False`` and ``fit_intercept=False`` it is all of that algorithm.
    n_exchanges : int, default=20
        Attempts to replace a feature by a better one, at most.
    missing : {"refuse", "mask"}, default="refuse"
        Whether NaN in `X` is an error or an entry to leave out.
    max_components : int, default=50
        Largest K that "bic", "gap" and "cv" may choose.
    violation_tol : float, default=0.05
        The convex stage ends when no column found violates optimality by more than this share of
        `l1`. The certificate is computed once, at the end.
    max_iter : int, default=50
        Limit of its steps.
    n_jobs : int or None, default=None
        Threads of the search; None means 1, -1 all processors. The result does not depend on it.
        BLAS is held to one thread.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the search.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit, which then keeps what was reached.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        W, the feature that explains most first; of the dtype of `X`.
    intercept_ : ndarray of shape (n_features,)
        b. A feature and its complement are one feature with another intercept: those are taken
        that leave b smallest. Zeros without `fit_intercept`.
    codes_ : ndarray of int8, shape (n_samples, n_components_)
        Z of the training rows.
    n_components_ : int
        K. Fewer than asked for if these already leave no error.
    reconstruction_error_ : float
        Root mean square of what is left of the training data.
    atom_scores_ : ndarray
        Size of the feature of each column with weight in the convex problem, largest first.
    atom_weights_ : ndarray
        Their c.
    l1_ : float
        The weight used.
    objective_ : float
        Value of the convex problem.
    certificate_ : float
        The convex objective is at most this share of itself above its optimum. Part of it is the
        gap of the semidefinite relaxation, which more iterations do not close.
    n_iter_ : int
        Steps of the convex stage.
    trace_ : Trace
        One row per step: seconds, objective, certificate (in the last row), violation (of the best
        column found; 1 is optimal), n_atoms.
    gains_ : ndarray
        With `n_components` "bic" or "gap": by how much the squared error along the axes above
        noise falls with 1, 2, ... features; last, what is left.
    cv_results_ : dict
        With `n_components="cv"`: "n_components", "mean_error" and "errors" (folds in columns).
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    Under the conditions of theorem 4 in the paper, which
    :func:`~sublearn.latent.check_identifiability` checks, the binary vectors in the span of the
    data are the features: hence `span_atoms`. Up to 16 columns of one search enter the convex
    problem together, and Newton steps correct their weights; algorithm 1 takes one column and
    gradient steps (9), to the same optimum. A sparse `X` is made dense, as the residual is.

    References
    ----------
    .. [1] I. Yen, W.-C. Lee, S.-E. Chang, A. Suggala, S.-D. Lin, P. Ravikumar, "Latent Feature
       Lasso", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.latent import LatentFeatureLasso
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.integers(0, 2, size=(60, 3))
    >>> W = np.array([[3.0, 0, 0, 1], [0, 2, 0, 1], [0, 0, 4, 1]])
    >>> model = LatentFeatureLasso(random_state=0).fit(Z @ W + 5.0)
    >>> model.n_components_
    3
    >>> np.abs(np.round(model.components_, 6)).tolist()
    [[0.0, 0.0, 4.0, 1.0], [3.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, 1.0]]
    """

    _kind: ClassVar[str] = "row_codes"

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Either(Positive(int), OneOf("bic", "gap", "cv")),
        "l1": OrNone(Positive(float)),
        "l2": Positive(float),
        "fit_intercept": Boolean(),
        "refine": Boolean(),
        "span_atoms": Boolean(),
        "n_exchanges": NonNegative(int),
        "missing": OneOf("refuse", "mask"),
        "max_components": Positive(int),
        "violation_tol": Positive(float),
        "max_iter": Positive(int),
        **RUN_RULES,
    }

    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {"tol": "violation_tol"}

    components_: np.ndarray
    intercept_: np.ndarray
    codes_: np.ndarray
    reconstruction_error_: float
    atom_scores_: np.ndarray
    atom_weights_: np.ndarray
    l1_: float
    gains_: np.ndarray
    cv_results_: dict[str, np.ndarray]

    def __init__(
        self,
        n_components: int | str = "bic",
        *,
        l1: float | None = None,
        l2: float = 1.0,
        fit_intercept: bool = True,
        refine: bool = True,
        span_atoms: bool = True,
        n_exchanges: int = 20,
        missing: str = "refuse",
        max_components: int = 50,
        violation_tol: float = 0.05,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.n_components = n_components
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.refine = refine
        self.span_atoms = span_atoms
        self.n_exchanges = n_exchanges
        self.missing = missing
        self.max_components = max_components
        self.violation_tol = violation_tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, X: MatrixLike, y: object = None) -> LatentFeatureLasso:
        """Find features and the codes of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : ignored
            For pipelines.

        Returns
        -------
        LatentFeatureLasso
            Itself, fitted.
        """
        check_params(self)
        X = self._check(X, reset=True)
        for name in ("cv_results_", "gains_"):  # of another fit
            self.__dict__.pop(name, None)
        progress = Progress(int(self.max_iter), n_done=0)
        fit, learned = self._run(lambda: self._learn(X, progress), progress)
        self.__dict__.update(learned)
        self._keep_solution(fit, warns=False)
        self._warn(fit.status, progress.stop_requested)
        return self

    def fit_path(
        self, X: MatrixLike, *, l1s: int | ArrayLike = 8, ratio: float = 0.05
    ) -> LatentFeaturePath:
        """Solve the convex problem along falling l1, each time from the solution before.

        Columns, weights and the vectors of the search pass from one weight to the next. The
        estimator itself stays as it is, fitted or not; its `n_components` and `l1` are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        l1s : int or array-like, default=8
            The weights, in any order; a number takes so many of equal ratio from just below the
            least one at which no column has weight.
        ratio : float, default=0.05
            The last over that least one.

        Returns
        -------
        LatentFeaturePath
            Shorter if the callback asks to stop.

        Examples
        --------
        >>> import numpy as np
        >>> from sublearn.latent import LatentFeatureLasso
        >>> rng = np.random.default_rng(0)
        >>> X = rng.integers(0, 2, size=(60, 3)) @ rng.normal(size=(3, 8))
        >>> path = LatentFeatureLasso(random_state=0).fit_path(X, l1s=4)
        >>> bool((np.diff(path.l1s) < 0).all()), bool((np.diff(path.objectives) < 0).all())
        (True, True)
        """
        check_params(self)
        weights, are_shares = share_or_values(l1s, ratio)
        data, is_missing = _filled(clone(self)._check(X, reset=True))
        progress = Progress(len(weights) * int(self.max_iter), n_done=0)

        def follow() -> LatentFeaturePath:
            learner = FeatureLearner(data, self._settings(), progress, is_missing)
            # Of data that do not vary every weight does the same.
            values = (learner.largest_l1 or 1.0) * weights if are_shares else weights
            return LatentFeaturePath.of(values, learner.follow(values, learner.span_atoms(None)))

        return self._run(follow, progress)

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Codes of rows: the features whose sum is closest to each.

        All :math:`2^K` codes are compared up to K = 14. With more features, codes descend by
        flips of one and of two features from two starts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is left out with `missing="mask"`.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        X = self._check(X, reset=False).astype(np.float64)
        W, b = self.components_.astype(np.float64), self.intercept_.astype(np.float64)
        gram, is_missing = W @ W.T, np.isnan(X)
        Z = best_codes((np.where(is_missing, b, X) - b) @ W.T, gram)
        for _ in range(_FILLS if is_missing.any() else 0):
            X = np.where(is_missing, b + Z @ W, X)
            before, Z = Z, best_codes((X - b) @ W.T, gram)
            if np.array_equal(before, Z):
                break
        return Z

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Rows from codes: intercept plus the sum of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_components_)
            Codes.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        name = f"{type(self).__name__}.inverse_transform"
        codes = np.asarray(check_sparse(X, f"{name}: X").toarray() if sp.issparse(X) else X)
        if codes.ndim != 2 or codes.shape[1] != self.n_components_:
            raise ValueError(
                f"{name}: X must have {self.n_components_} columns, got shape {codes.shape}"
            )
        if codes.dtype.kind not in "biuf" or not np.isfinite(codes).all():
            raise ValueError(f"{name}: X must hold finite numbers, got {show(X)}")
        return codes.astype(self.components_.dtype) @ self.components_ + self.intercept_

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Minus the mean square of what codes and features leave of `X`: larger is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            For pipelines.

        Returns
        -------
        float
        """
        rows = self._check(X, reset=False)
        left = rows - self.inverse_transform(self.transform(X))
        return -float(np.nanmean(np.square(left, dtype=np.float64)))

    def plot_features(
        self, shape: tuple[int, int], *, ax: AxesLike = None, n_columns: int = 8
    ) -> ImagesDisplay:
        """Draw features as images, the intercept first; needs matplotlib.

        Parameters
        ----------
        shape : (int, int)
            Height and width; their product is the number of features of the data.
        ax : array of matplotlib axes, optional
            One for each image; made here by default.
        n_columns : int, default=8
            Images in a row.

        Returns
        -------
        ImagesDisplay
        """
        from sublearn.display import ImagesDisplay

        check_is_fitted(self)
        titles = ["intercept", *map(str, range(self.n_components_))]
        display = ImagesDisplay(
            self.intercept_, self.components_, shape, titles, n_columns=n_columns,
            who="LatentFeatureLasso.plot_features",
        )  # fmt: skip
        return display.plot(ax)

    @property
    def n_components_(self) -> int:
        """K."""
        return len(self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.transformer_tags.preserves_dtype = []  # codes are int8
        return tags

    # --- learning ------------------------------------------------------------------------------

    def _check(self, X: MatrixLike, reset: bool) -> np.ndarray:
        return read_rows(self, X, reset=reset, allows_nan=self.missing == "mask", most=_LARGEST)

    def _settings(self) -> LearningSettings:
        return LearningSettings(
            l1=None if self.l1 is None else float(self.l1),
            l2=float(self.l2),
            has_intercept=bool(self.fit_intercept),
            violation_tol=float(self.violation_tol),
            max_iter=int(self.max_iter),
            n_exchanges=int(self.n_exchanges),
            does_refine=bool(self.refine),
            seed=as_seed(self.random_state) % 2**62,
            n_threads=as_n_threads(self.n_jobs),
            offers_span=bool(self.span_atoms),
        )

    def _run(self, job: Callable[[], _Result], progress: Progress) -> _Result:
        # Threads of BLAS would change the rounding, hence the result, with their number.
        with threadpool_limits(1, user_api="blas"):
            return self._watch(job, progress, may_be_left=True)

    def _learn(self, X: np.ndarray, progress: Progress) -> tuple[LassoFit, State]:
        """The solution of the convex problem, and the fitted attributes beside it."""
        settings, (data, is_missing) = self._settings(), _filled(X)
        learned: State = {}
        size = self.n_components
        if size == "cv":
            folds = held_out_errors(data, settings, progress, int(self.max_components))
            size = int(folds["n_components"][int(np.argmin(folds["mean_error"]))])
            learned["cv_results_"] = folds
        learner = FeatureLearner(data, settings, progress, is_missing)
        offered = learner.span_atoms(None if isinstance(size, str) else int(size))
        fit = learner.lasso(offered)
        if isinstance(size, str):
            gains, beyond = self._gains(learner, fit, offered)
            is_gap, learned["gains_"] = size == "gap", gains
            size = largest_fall(gains) if is_gap else fewest_bits(gains, beyond, data.shape)
            size = max(size, 0 if self.fit_intercept else 1)
        Z = learner.factorise(fit, offered, int(size)).Z
        factoriser = learner.factoriser
        if factoriser.X.shape != data.shape:  # a triangular factor stood for wide data
            factoriser = Factoriser(data, settings.has_intercept, progress)
        model = factoriser.fitted(Z)
        if self.fit_intercept:
            model = facing_a_small_intercept(model)
        sizes = np.einsum("kd,kd->k", model.W, model.W) * model.Z.var(axis=0)
        order = np.argsort(-sizes, kind="stable")
        n_entries = data.size if is_missing is None else int((~is_missing).sum())
        return fit, learned | {
            "codes_": np.ascontiguousarray(model.Z[:, order]),
            "intercept_": model.b.astype(X.dtype),
            "reconstruction_error_": float(np.sqrt(model.error / n_entries)),
            "atom_scores_": fit.scores,
            "atom_weights_": fit.c,
            "l1_": learner.l1,
            "components_": model.W[order].astype(X.dtype),
        }

    def _gains(
        self, learner: FeatureLearner, fit: LassoFit, offered: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Gains, and the error that they leave out.

        Without an intercept a column of ones hides the gap: ask the problem that has one.
        """
        if not self.fit_intercept:
            settings = replace(learner.settings, has_intercept=True)
            learner = FeatureLearner(learner.X, settings, learner.progress)
            offered = learner.span_atoms(None)
            fit = learner.lasso(offered, certify=False)
        known = np.vstack([fit.Z.T, offered])
        gains = gains_by_size(learner, known, int(self.max_components))
        return gains, error_beyond_axes(learner)

    def _warn(self, status: Status, was_stopped: bool) -> None:
        if status is not Status.CONVERGED:
            why = Status.STOPPED if was_stopped else "the limit of steps or columns was reached"
            violation = self.trace_["violation"][-1] - 1.0 if len(self.trace_) else np.inf
            warnings.warn(
                f"{type(self).__name__}: {why}; the best column found violates optimality by "
                f"{violation:.3g} of l1, asked for violation_tol={self.violation_tol:g} "
                f"(n_iter={self.n_iter_})",
                ConvergenceWarning,
                stacklevel=3,
            )
        n_asked = 0 if isinstance(self.n_components, str) else self.n_components
        if self.n_components_ < n_asked and not was_stopped:
            warnings.warn(
                f"{type(self).__name__}: {self.n_components_} features leave no error; "
                f"n_components={self.n_components} asks for more",
                UserWarning,
                stacklevel=3,
            )

    # --- files ---------------------------------------------------------------------------------

    _STORED = (
        "components_", "intercept_", "codes_", "reconstruction_error_", "atom_scores_",
        "atom_weights_", "l1_", "gains_",
    )  # fmt: skip

    def _to_bundle(self) -> State:
        folds = getattr(self, "cv_results_", {})
        return super()._to_bundle() | {f"cv_results_.{k}": v for k, v in folds.items()}

    def _fields(self) -> Fields:
        return super()._fields() | {
            "components_": Floats("components", "features", finite=True),
            "intercept_": Floats("features", finite=True),
            "codes_": Integers(None, "components", high=2),
            "atom_scores_": Floats("atoms"),
            "atom_weights_": Floats("atoms"),
            "gains_": OrAbsent(Floats(None)),
            "reconstruction_error_": Number(),
            "l1_": Number(),
            "trace_": OrAbsent(TraceTable()),  # models that earlier versions wrote have none
            "cv_results_.*": AnyOf(Integers(None, low=None), Floats(None), Floats(None, None)),
        }

    def _restore(self, state: State) -> None:
        folds = take_parts(state, "cv_results_.")
        if folds:
            self.cv_results_ = folds
        super()._restore(state)


def _filled(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Data as float64 with the columns' means where entries are missing, and where that is."""
    data, is_missing = X.astype(np.float64), np.isnan(X)
    if not is_missing.any():
        return data, None
    return np.where(is_missing, np.nanmean(data, axis=0), data), is_missing
