"""Which variables are directly related: a sparse inverse covariance matrix as an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

import numpy as np
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
from sublearn.linear.covariances import (
    check_l1,
    check_symmetric,
    extended_bic,
    log_likelihood,
    refuse_no_solution,
    scatter,
)
from sublearn.linear.path import L1Values, falling_l1s
from sublearn.linear.selection import (
    BY_FOLDS,
    Folds,
    FoldsLike,
    choose_l1,
    follow_grid,
    warn_of_the_least_l1,
)
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
from sublearn.validation.values import is_int64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from sublearn.display import NetworkDisplay
    from sublearn.display.base import AxesLike

__all__ = ["SparseInverseCovariance"]

# SciPy's own LAPACK serves the core, which is linked to none.
_core.set_lapack(*(cython_lapack.__pyx_capi__[name] for name in ("dpotrf", "dpotri")))

_MOST_INT = 2**31 - 1  # the core counts iterations with 32 bits
_FORMER_FOLDS = "cv_results_."  # heads the tables of folds in files of earlier versions
_LEAST_SHARE = 0.02  # of the least l1 in the largest, where only a number of them is given
_Result = TypeVar("_Result")
_ScoresOf: TypeAlias = Callable[[np.ndarray], list[float]]


class _L1(Rule):
    """A weight, a matrix of weights, or the wish to have one chosen."""

    def accepts(self, value: object) -> bool:
        if isinstance(value, (np.ndarray, list, tuple)):
            return True  # its shape is checked against the data
        return OneOf(*BY_FOLDS, "ebic").accepts(value) or NonNegative(float).accepts(value)

    def __str__(self) -> str:
        return "a non-negative number, a matrix of them, 'cv', 'cv_1se' or 'ebic'"


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
    l1 : float, array-like of shape (n_features, n_features), "cv", "cv_1se" or "ebic", default=0.1
        Weight of the l1 penalty, in the units of the covariance: scale columns to unit variance
        to have one weight mean the same for all. A symmetric matrix gives each entry its own.
        "cv" chooses the weight by the likelihood of held-out rows along a path, "cv_1se" then takes
        the largest one whose mean score is within one standard error of the best. "ebic" takes
        the weight of the least extended Bayesian criterion [5]_,
        :math:`-2 \log L + |E| (\log n + 2 \log p)` with |E| the number of links: one path, no
        folds, and fewer links than "cv", whose aim is prediction.
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
        Weights that "cv" and "ebic" try: so many from the least one at which the matrix is
        diagonal to 0.02 of it, or these. If the least of so many is the best they go on, at most to
        0.0004; if it is the best in the end, a warning says so.
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
        held out of each fold. With ``l1="ebic"`` one column: minus the criterion.
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
    .. [5] R. Foygel, M. Drton, "Extended Bayesian Information Criteria for Gaussian Graphical
       Models", NIPS 23, 2010.

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
        cv: FoldsLike = 5,
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
            l1 = check_l1(self.l1, S.shape, f"{type(self).__name__}.l1")
            if isinstance(l1, np.ndarray) and not self.penalise_diagonal:
                np.fill_diagonal(l1, 0.0)
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
            return log_likelihood(scatter(rows - self.location_), self.precision_)

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

    def plot(
        self, ax: AxesLike = None, *, n_links: int = 60, names: Sequence[object] | None = None
    ) -> NetworkDisplay:
        """Draw the strongest partial correlations as a network; needs matplotlib.

        Parameters are those of :meth:`sublearn.display.NetworkDisplay.from_estimator`.
        """
        from sublearn.display import NetworkDisplay

        return NetworkDisplay.from_estimator(self, n_links=n_links, names=names, ax=ax)

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
                "the rows"
            )
        return check_symmetric(rows, name)

    def _covariance_of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariance and location; the caller's array is left as it is."""
        if self.covariance == "precomputed":
            return np.ascontiguousarray(X), np.zeros(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            location = np.zeros(X.shape[1]) if self.assume_centered else X.mean(axis=0)
            S = scatter(X - location)
        if not np.isfinite(S).all():
            raise ValueError(
                f"{type(self).__name__}: X must have a finite covariance, got numbers up to "
                f"{np.abs(X).max():g}"
            )
        if not self.assume_centered:  # rounding of the mean must not make a constant vary
            still = X.max(axis=0) == X.min(axis=0)
            S[still] = S[:, still] = 0.0
        return S, location

    def _refuse_what_has_no_solution(self, S: np.ndarray, l1: float | np.ndarray) -> None:
        refuse_no_solution(S, l1, self._diagonal(l1), type(self).__name__)

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
        name = type(self).__name__
        largest = float(np.abs(S[~np.eye(len(S), dtype=bool)]).max(initial=0.0))
        path = falling_l1s(largest, self.l1s, _LEAST_SHARE, f"{name}.l1s")
        folds = list(check_cv(self.cv).split(X)) if rule in BY_FOLDS else []
        progress = Progress(max(len(folds), 1) * len(path) + 1, n_done=0)

        def job() -> tuple[State, float]:
            scored = [self._follow(X[a], X[b], progress) for a, b in folds]
            scored = scored or [self._follow_criterion(S, len(X), progress)]

            def scores_of(l1s: np.ndarray) -> np.ndarray:
                n_threads = as_n_threads(self.n_jobs)
                return np.array(
                    map_blocks(lambda one: one(l1s), scored, n_threads, stay_here=True)
                ).T

            self.l1_path_, self.cv_scores_ = follow_grid(scores_of, path, not is_int64(self.l1s))
            l1 = float(self.l1_path_[choose_l1(self.cv_scores_, rule)])
            self._refuse_what_has_no_solution(S, l1)
            found = self._solve(S, l1, None, progress)
            progress.finish_solve()
            return found, l1

        found = self._watched(job, progress)
        warn_of_the_least_l1(name, self.l1_path_, self.cv_scores_)
        return found

    def _follow(self, train: np.ndarray, test: np.ndarray, progress: Progress) -> _ScoresOf:
        """Likelihoods of held-out rows along a path."""
        S, location = self._covariance_of(train)
        held_out = scatter(test - location)
        precisions = self._solutions(S, progress)
        return lambda l1s: [log_likelihood(held_out, found) for found in precisions(l1s)]

    def _follow_criterion(self, S: np.ndarray, n_rows: int, progress: Progress) -> _ScoresOf:
        """Minus the extended Bayesian criterion along a path."""
        precisions = self._solutions(S, progress)
        return lambda l1s: [-extended_bic(S, found, n_rows) for found in precisions(l1s)]

    def _solutions(
        self, S: np.ndarray, progress: Progress
    ) -> Callable[[np.ndarray], Iterator[np.ndarray]]:
        """Solutions for falling values of l1, each the start of the next, also in a later call."""
        last: np.ndarray | None = None

        def precisions(l1s: np.ndarray) -> Iterator[np.ndarray]:
            nonlocal last
            for l1 in map(float, l1s):
                check()
                self._refuse_what_has_no_solution(S, l1)
                last = found = self._solve(S, l1, last, progress, n_threads=1)["precision"]
                progress.finish_solve()
                yield found

        return precisions

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
