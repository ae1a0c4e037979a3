"""Which variables are directly related: a sparse inverse covariance matrix as an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import cython_lapack
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_array, check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing, map_blocks
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.interruption import aside, check
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
from sublearn.linear.path import L1Values, falling_l1s
from sublearn.linear.selection import BY_FOLDS, Cv, Fold, Folds, choose_l1, warn_of_the_least_l1
from sublearn.trace import Callback, Solution, Status, Trace
from sublearn.typing import MatrixLike, State
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    JobCount,
    NonNegative,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    check_argument,
    check_params,
)
from sublearn.validation.features import validate_numbers
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

__all__ = ["SparseInverseCovariance"]

# SciPy's own LAPACK serves the core, which is linked to none.
_core.set_lapack(*(cython_lapack.__pyx_capi__[name] for name in ("dpotrf", "dpotri")))

_MOST_INT = 2**31 - 1  # the core counts iterations with 32 bits
_FORMER_FOLDS = "cv_results_."  # heads the tables of folds in files of earlier versions
_LEAST_SHARE = 0.02  # of the least l1 in the largest, where only a number of them is given
_ASYMMETRY = 1e-8  # of a covariance matrix, as a correlation: what rounding may leave
_LEAST_VARIANCE = 1e-300  # its inverse is a number, with room for sums
_INDEFINITE = 1e-8  # the same for a negative eigenvalue, for each variable
_Result = TypeVar("_Result")


class _L1(Rule):
    """A weight, a matrix of weights, or the wish to have one chosen."""

    def accepts(self, value: object) -> bool:
        if isinstance(value, (np.ndarray, list, tuple)):
            return True  # its shape is checked against the data
        return OneOf(*BY_FOLDS).accepts(value) or NonNegative(float).accepts(value)

    def __str__(self) -> str:
        return "a non-negative number, a matrix of them, 'cv' or 'cv_1se'"


class SparseInverseCovariance(FittedModel, BaseEstimator):
    r"""Gaussian graphical model: an inverse covariance matrix with few entries.

    With :math:`S` the covariance of the data, minimises over positive definite :math:`X`

    .. math::
        -\log\det X + \operatorname{tr}(S X) + l_1 \sum_{i \ne j} |X_{ij}|.

    A zero :math:`X_{ij}` says that variables i and j are independent given all others. Variables
    whose :math:`|S_{ij}| > l_1` do not link them, directly or by others, fall into blocks that are
    solved apart [2]_ [3]_.

    Parameters
    ----------
    l1 : float, array-like of shape (n_features, n_features), "cv" or "cv_1se", default=0.1
        Weight of the l1 penalty, in the units of the covariance: scale columns to unit variance
        to have one weight mean the same for all. A symmetric matrix gives each entry its own.
        "cv" chooses the weight by the likelihood of held-out rows along a path, "cv_1se" then takes
        the largest one whose mean score is within one standard error of the best.
    assume_centered : bool, default=False
        Do not subtract the means.
    covariance : {"data", "precomputed"}, default="data"
        Whether `fit` gets rows of data or a covariance matrix.
    penalise_diagonal : bool, default=False
        Let the sum run over the diagonal too.
    solver : {"auto", "newton", "lhac"}, default="auto"
        "newton": sweeps over the columns of the dual [4]_ while they pay, then proximal Newton with
        coordinate descent on the active entries, in the manner of QUIC [1]_. "lhac":
        :func:`sublearn.optim.lhac`. "auto" is "newton".
    tol : float, default=1e-4
        The fit ends when the duality gap is at most `tol` times the larger of the objective's
        size and the number of features. (The units of the data shift the objective, which may be
        zero.)
    max_iter : int, default=1000
        Limit of the iterations of each block.
    cv : int, splitter or iterable, default=5
        Folds of ``l1="cv"``: a number of them, of consecutive rows, an object with a method
        `split`, or pairs of training and held-out rows.
    l1s : int or array-like, default=12
        Weights that ``l1="cv"`` tries: so many from the least one at which the matrix is diagonal
        to 0.02 of it, or these. If the least is the best, a warning says so.
    n_jobs : int or None, default=None
        Threads for blocks and, with `l1="cv"`, for folds; None means 1, -1 all processors. The
        result does not depend on it. BLAS is held to one thread until the fit is done.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit, which then keeps what was reached.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        The minimiser, float64.
    covariance_ : ndarray of shape (n_features, n_features)
        Its inverse.
    location_ : ndarray of shape (n_features,)
        Means of the columns; zeros if they were not subtracted.
    l1_ : float or ndarray
        The weights used.
    labels_of_blocks_ : ndarray of shape (n_features,)
        Block of each variable.
    n_blocks_ : int
        Number of blocks.
    objective_ : float
        Value of the objective.
    certificate_ : float
        Duality gap over the larger of the objective's size and the number of features: the
        objective is at most this far above the optimum.
    n_iter_ : int
        Iterations of the block that took most.
    trace_ : Trace
        One row per iteration of a block, all columns but `block` and `n_active` over all blocks:
        seconds, objective, certificate, nnz_primal, block, n_active (entries of the triangle that
        may move), work (entries visited).
    l1_path_, cv_scores_ : ndarray of shape (n_l1s,) and (n_l1s, n_folds)
        With ``l1="cv"``: weights tried, largest first, and the mean log-likelihoods of the rows
        held out of each fold.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    The dual is :math:`\max \log\det W + p` over positive definite :math:`W` with
    :math:`|W_{ij} - S_{ij}| \le l_1` off the diagonal and :math:`W_{ii} = S_{ii}`. The gap is that
    of :math:`X^{-1}`, its diagonal scaled and its other entries clipped to fit.

    References
    ----------
    .. [1] C.-J. Hsieh, M. Sustik, I. Dhillon, P. Ravikumar, "QUIC: Quadratic Approximation for
       Sparse Inverse Covariance Estimation", JMLR 15, 2014.
    .. [2] D. Witten, J. Friedman, N. Simon, "New Insights and Faster Computations for the Graphical
       Lasso", JCGS 20, 2011.
    .. [3] R. Mazumder, T. Hastie, "Exact Covariance Thresholding into Connected Components for
       Large-Scale Graphical Lasso", JMLR 13, 2012.
    .. [4] J. Friedman, T. Hastie, R. Tibshirani, "Sparse Inverse Covariance Estimation with the
       Graphical Lasso", Biostatistics 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.linear import SparseInverseCovariance
    >>> chain = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    >>> S = np.linalg.inv(chain)
    >>> model = SparseInverseCovariance(l1=0.01, covariance="precomputed", tol=1e-9).fit(S)
    >>> (model.precision_ != 0).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """

    _kind: ClassVar[str] = "row_likelihoods"

    _rules: ClassVar[dict[str, Rule]] = {
        "l1": _L1(),
        "assume_centered": Boolean(),
        "covariance": OneOf("data", "precomputed"),
        "penalise_diagonal": Boolean(),
        "solver": OneOf("auto", "newton", "lhac"),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "cv": Folds(),
        "l1s": L1Values(),
        "n_jobs": JobCount(),
        **WATCH_RULES,
    }
    _FORMER_PARAMS: ClassVar = {"path_length": "l1s", "path_end": None}

    precision_: np.ndarray
    covariance_: np.ndarray
    location_: np.ndarray
    l1_: float | np.ndarray
    labels_of_blocks_: np.ndarray
    l1_path_: np.ndarray
    cv_scores_: np.ndarray

    def __init__(
        self,
        l1: ArrayLike = 0.1,
        *,
        assume_centered: bool = False,
        covariance: str = "data",
        penalise_diagonal: bool = False,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: Cv = 5,
        l1s: ArrayLike = 12,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.l1, self.penalise_diagonal = l1, penalise_diagonal
        self.covariance, self.assume_centered = covariance, assume_centered
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.cv, self.l1s = cv, l1s
        self.n_jobs, self.verbose, self.callback = n_jobs, verbose, callback

    @all_or_nothing
    def fit(self, X: MatrixLike, y: object = None) -> SparseInverseCovariance:
        """Estimate the inverse covariance matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data, or a covariance matrix if `covariance` is "precomputed".
        y : ignored
            For pipelines.

        Returns
        -------
        SparseInverseCovariance
            Itself, fitted.
        """
        check_params(self)
        rows = self._check(X)
        for name in ("l1_path_", "cv_scores_"):
            self.__dict__.pop(name, None)  # of another fit
        S, location = self._covariance_of(rows)
        l1: float | np.ndarray
        if isinstance(self.l1, str):
            found, l1 = self._choose_and_solve(rows, S, self.l1)
        else:
            l1 = self._given_l1(S, self.l1)
            self._refuse_what_has_no_solution(S, l1)
            progress = Progress(int(self.max_iter))
            found = self._watched(lambda: self._solve(S, l1, None, progress), progress)
        self._keep(found, l1, location)
        return self

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Mean log-likelihood of rows under the fitted Gaussian.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data, also if the model was fitted to a covariance matrix.
        y : ignored
            For pipelines.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows = validate_numbers(self, X, reset=False, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return _log_likelihood(_scatter(rows - self.location_), self.precision_)

    def mahalanobis(self, X: MatrixLike) -> np.ndarray:
        """Squared Mahalanobis distances of rows from the location; large ones are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data, also if the model was fitted to a covariance matrix.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = validate_numbers(self, X, reset=False, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            centered = rows - self.location_
            n_operations = float(centered.size) * centered.shape[1]
            weighted = aside(np.matmul, centered, self.precision_, n_operations=n_operations)
            return np.maximum((weighted * centered).sum(axis=1), 0.0)

    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: str = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """How far `covariance_` is from another covariance matrix.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            The other matrix.
        norm : {"frobenius", "spectral"}, default="frobenius"
            Of the difference: the root of its sum of squares, or its largest singular value.
        scaling : bool, default=True
            Divide the squared norm by the number of features.
        squared : bool, default=True
            Return the squared norm rather than the norm.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        name = f"{type(self).__name__}.error_norm"
        check_argument(f"{name}.norm", norm, OneOf("frobenius", "spectral"))
        other = check_array(comp_cov, dtype=np.float64, input_name="comp_cov")
        if other.shape != self.covariance_.shape:
            raise ParameterError(
                f"{name}.comp_cov must be a matrix of shape {self.covariance_.shape}, "
                f"got shape {other.shape}"
            )
        difference = other - self.covariance_
        found = float(np.linalg.norm(difference, "fro" if norm == "frobenius" else 2))
        found /= math.sqrt(len(other)) if scaling else 1.0
        return found**2 if squared else found

    @property
    def sparse_precision_(self) -> sp.csr_matrix:
        """`precision_` without its zeros."""
        check_is_fitted(self)
        return sp.csr_matrix(self.precision_)

    @property
    def n_blocks_(self) -> int:
        """Number of blocks."""
        check_is_fitted(self)
        return int(self.labels_of_blocks_.max()) + 1

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.covariance == "precomputed"
        return tags

    # --- what comes in -------------------------------------------------------------------------

    def _check(self, X: MatrixLike) -> np.ndarray:
        is_data = self.covariance == "data"
        n_least = 2 if is_data and not self.assume_centered else 1
        rows = validate_numbers(self, X, reset=True, dtype=np.float64, ensure_min_samples=n_least)
        if is_data:
            return rows
        name = type(self).__name__
        if isinstance(self.l1, str):
            raise ParameterError(
                f"{name}.l1 must be a weight where covariance='precomputed': {self.l1!r} needs "
                "rows to hold out"
            )
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"{name}: X must be a square covariance matrix, got shape {rows.shape}"
            )
        return self._symmetric(rows)

    def _symmetric(self, S: np.ndarray) -> np.ndarray:
        name = type(self).__name__
        negative = np.flatnonzero(S.diagonal() < 0)
        if len(negative):
            raise ValueError(
                f"{name}: X must be a covariance matrix, got the variance "
                f"{S[negative[0], negative[0]]:g} of variable {negative[0]}"
            )
        scale = np.sqrt(S.diagonal())
        difference = np.abs(S - S.T) - _ASYMMETRY * np.outer(scale, scale)
        if (difference > 0).any():
            i, j = np.unravel_index(np.argmax(difference), S.shape)
            raise ValueError(
                f"{name}: X must be symmetric as a covariance matrix is, got {S[i, j]:g} in row "
                f"{i}, column {j} and {S[j, i]:g} the other way round"
            )
        S = 0.5 * (S + S.T)
        if _least_eigenvalue_below(_correlation(S), -_INDEFINITE * len(S)):
            raise ValueError(
                f"{name}: X must be positive semidefinite as a covariance matrix is, got a "
                "matrix with a negative eigenvalue"
            )
        return S

    def _covariance_of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariance and location; the caller's array is left as it is."""
        if self.covariance == "precomputed":
            return np.ascontiguousarray(X), np.zeros(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            location = np.zeros(X.shape[1]) if self.assume_centered else X.mean(axis=0)
            S = _scatter(X - location)
        if not np.isfinite(S).all():
            raise ValueError(
                f"{type(self).__name__}: X must have a finite covariance, got numbers up to "
                f"{np.abs(X).max():g}"
            )
        if not self.assume_centered:  # rounding of the mean must not make a constant vary
            still = X.max(axis=0) == X.min(axis=0)
            S[still] = S[:, still] = 0.0
        return S, location

    def _given_l1(self, S: np.ndarray, l1: ArrayLike) -> float | np.ndarray:
        if isinstance(l1, (int, float, np.number)):
            return float(l1)
        name = f"{type(self).__name__}.l1"
        try:
            weights = np.array(l1, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{name} must be numbers, got {show(l1)}") from error
        if weights.shape != S.shape:
            raise ParameterError(
                f"{name} must be a number or a matrix of shape {S.shape}, got shape {weights.shape}"
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ParameterError(f"{name} must hold finite numbers that are not negative")
        if not np.array_equal(weights, weights.T):
            raise ParameterError(f"{name} must be a symmetric matrix")
        if not self.penalise_diagonal:
            np.fill_diagonal(weights, 0.0)
        return weights

    def _refuse_what_has_no_solution(self, S: np.ndarray, l1: float | np.ndarray) -> None:
        """Without a positive definite matrix in the dual's box the objective has no minimum."""
        name = type(self).__name__
        free = np.flatnonzero(S.diagonal() + self._diagonal(l1) <= 0)
        if len(free):
            raise ValueError(
                f"{name}: X must have variables that vary unless penalise_diagonal is set, got "
                f"variable {free[0]} with variance 0"
            )
        least = float((S.diagonal() + self._diagonal(l1)).min())
        if least < _LEAST_VARIANCE:
            raise ValueError(
                f"{name}: X must have variances of at least {_LEAST_VARIANCE:g}, got {least:g}; "
                "scale its columns"
            )
        off = l1 if isinstance(l1, float) else l1[~np.eye(len(S), dtype=bool)].max(initial=0.0)
        if off > 0 or len(S) == 1:
            return
        shifted = S + np.diag(np.broadcast_to(self._diagonal(l1), len(S)))
        if _least_eigenvalue_below(_correlation(shifted), 1e-12 * len(S)):
            raise ValueError(
                f"{name}.l1 must be positive where the covariance matrix is singular, got 0"
            )

    def _diagonal(self, l1: float | np.ndarray) -> float | np.ndarray:
        if isinstance(l1, np.ndarray):
            return l1.diagonal()
        return l1 if self.penalise_diagonal else 0.0

    # --- solving -------------------------------------------------------------------------------

    def _watched(self, job: Callable[[], _Result], progress: Progress) -> _Result:
        # Threads of BLAS would change the rounding, hence the result, with their number; on small
        # blocks they cost ten times what they save.
        with threadpool_limits(1, user_api="blas"):
            return self._watch(job, progress, may_be_left=True)

    def _solve(
        self, S: np.ndarray, l1: float | np.ndarray, init: np.ndarray | None, progress: Progress,
        n_threads: int | None = None,
    ) -> State:  # fmt: skip
        settings = _core.InverseCovarianceSettings()
        method = "newton" if self.solver == "auto" else self.solver
        settings.method = _core.InverseMethod[method]
        settings.tol = float(self.tol)
        settings.max_iter = min(int(self.max_iter), _MOST_INT)
        settings.n_threads = n_threads or as_n_threads(self.n_jobs)
        rest = init, settings, progress.core
        if isinstance(l1, np.ndarray):
            return _core.fit_inverse_covariance(S, l1, *rest)
        return _core.fit_inverse_covariance(S, l1, float(self._diagonal(l1)), *rest)

    def _keep(self, found: State, l1: float | np.ndarray, location: np.ndarray) -> None:
        columns = dict(found["iterations"])
        gap = columns.pop("gap")
        columns["certificate"] = gap / np.maximum(np.abs(columns["objective"]), len(location))
        self._keep_solution(
            Solution(
                status=Status.of(found["status"]),
                objective=float(found["objective"]),
                certificate=float(found["certificate"]),
                n_iter=int(found["n_iter"]),
                trace=Trace(columns),
            )
        )
        self.precision_ = found["precision"]
        self.covariance_ = found["covariance"]
        self.location_ = location
        self.l1_ = l1
        self.labels_of_blocks_ = found["labels"]

    # --- choosing l1 ---------------------------------------------------------------------------

    def _choose_and_solve(self, X: np.ndarray, S: np.ndarray, rule: str) -> tuple[State, float]:
        largest = float(np.abs(S[~np.eye(len(S), dtype=bool)]).max(initial=0.0))
        path = falling_l1s(largest, self.l1s, _LEAST_SHARE, f"{type(self).__name__}.l1s")
        folds = list(check_cv(self.cv).split(X))
        progress = Progress(len(folds) * len(path) + 1, n_done=0)
        n_threads = as_n_threads(self.n_jobs)

        def job() -> tuple[State, float]:
            scores = map_blocks(
                lambda fold: self._follow(X, fold, path, progress), folds, n_threads, stay_here=True
            )
            self.l1_path_, self.cv_scores_ = path, np.array(scores).T
            l1 = float(path[choose_l1(self.cv_scores_, rule)])
            self._refuse_what_has_no_solution(S, l1)
            found = self._solve(S, l1, None, progress)
            progress.finish_solve()
            return found, l1

        found = self._watched(job, progress)
        warn_of_the_least_l1(type(self).__name__, self.l1_path_, self.cv_scores_)
        return found

    def _follow(
        self, X: np.ndarray, fold: Fold, path: np.ndarray, progress: Progress
    ) -> list[float]:
        """Held-out scores along the path, each solution the start of the next."""
        train, test = X[fold[0]], X[fold[1]]
        S, location = self._covariance_of(train)
        held_out = _scatter(test - location)
        init, scores = None, []
        for l1 in path:
            check()
            self._refuse_what_has_no_solution(S, float(l1))
            init = self._solve(S, float(l1), init, progress, n_threads=1)["precision"]
            scores.append(_log_likelihood(held_out, init))
            progress.finish_solve()
        return scores

    _STORED = (
        "precision_", "covariance_", "location_", "labels_of_blocks_", "l1_", "l1_path_",
        "cv_scores_",
    )  # fmt: skip

    def _fields(self) -> Fields:
        square = Floats("features", "features", finite=True)
        return super()._fields() | {
            "precision_": square,
            "covariance_": square,
            "location_": Floats("features", finite=True),
            "labels_of_blocks_": Integers("features", high="features"),
            "l1_": AnyOf(Number(), square),
            "l1_path_": OrAbsent(Floats("l1s")),
            "cv_scores_": OrAbsent(Floats("l1s", None)),
            # Of models that earlier versions wrote:
            "trace_": OrAbsent(TraceTable()),
            f"{_FORMER_FOLDS}*": AnyOf(Floats(None), Floats(None, None)),
        }

    def _restore(self, state: State) -> None:
        folds = take_parts(state, _FORMER_FOLDS)
        if folds:
            state = state | {"l1_path_": folds["l1"], "cv_scores_": folds["scores"]}
        super()._restore(state)


def _scatter(centered: np.ndarray) -> np.ndarray:
    n_operations = float(centered.size) * centered.shape[1]
    return aside(np.matmul, centered.T, centered, n_operations=n_operations) / len(centered)


def _correlation(S: np.ndarray) -> np.ndarray:
    """S scaled to a unit diagonal; a variable without variance keeps its row as it is."""
    scale = np.sqrt(S.diagonal())
    scale[scale == 0] = 1.0
    return S / scale / scale[:, None]


def _least_eigenvalue_below(A: np.ndarray, level: float) -> bool:
    """Whether A - level I has no Cholesky factor."""
    shifted = A - level * np.eye(len(A))
    try:
        aside(np.linalg.cholesky, shifted, n_operations=float(len(A)) ** 3 / 3)
    except scipy.linalg.LinAlgError:
        return True
    return False


def _log_likelihood(S: np.ndarray, precision: np.ndarray) -> float:
    """Mean over rows whose second moments about the location are S."""
    log_det = np.linalg.slogdet(precision)[1]
    constant = len(S) * np.log(2 * np.pi)
    return float(0.5 * (log_det - (S * precision).sum() - constant))
