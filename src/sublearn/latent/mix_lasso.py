"""Mixed regression by MixLasso, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.interruption import aside
from sublearn.io.fields import (
    Floats,
    Integers,
    Number,
    OrAbsent,
    Parts,
    Record,
    Size,
    check_fields,
    take_parts,
)
from sublearn.latent.missing import GaussianFill, read_rows
from sublearn.latent.mix_features import FeatureMap, LinearMap, make_kernel_map, restore_map
from sublearn.latent.mix_gate import gate_state, make_gate, restore_gate
from sublearn.latent.mix_general import GeneralRefiner
from sublearn.latent.mix_model import FittedMixture, MixtureProblem
from sublearn.latent.mix_program import MixtureProgram, Path
from sublearn.latent.mix_refinement import StandardRefiner
from sublearn.latent.mix_selection import Selection, select_size
from sublearn.trace import Callback, Solution, Status, Trace
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    OneOfOrNone,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_params,
)
from sublearn.validation.design import check_targets

__all__ = ["MixLassoRegressor"]

_PARTS = (0.5, 0.25, 0.12)  # of l1_max: where the program is solved
_MOST_GENERAL = 10  # components of a generalised mixture: 1,024 subsets
_ASYMMETRY = 1e-5  # of the largest entry of a kernel matrix, which may be of float32
_MOST_BASIS = 1000  # rows that span a kernel's functions unless n_basis says more
_LARGEST = 1e100  # of entries of X: sums of their squares stay finite
_STARTS_COST = 1e8  # operations of one step of EM in all starts


class MixLassoRegressor(RegressorMixin, FittedModel, BaseEstimator):
    r"""Regression with several functions at once, of which each row follows one, or some.

    Row i is :math:`y_i = \sum_k z_{ik} f_k(x_i)` plus noise, with unknown
    :math:`z_i \in \{0, 1\}^K`; in a standard mixture exactly one entry of it is 1. Minimises over
    all ways z to choose rows, with :math:`\Phi` the features of the functions,

    .. math::
        \frac{1}{2N} \Big\| y - \sum_{z \in \{0,1\}^N} z \circ \Phi w_z \Big\|^2
        + l_1 \sum_z \|w_z\|,

    which is convex and equals (4.25) of the paper with :math:`\tau = 2 \lambda = l_1`. Its
    solutions are rounded to K functions, which EM refines.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        K. "auto" chooses it by the Bayesian information criterion.
    mixture : {"standard", "generalised"}, default="standard"
        One component per row, or any subset of them (at most 10 components).
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="linear"
        Space of the functions. With "precomputed" X is a kernel matrix: (n, n) for `fit`, (n_new,
        n) later.
    gamma : float or None, default=None
        Factor inside "rbf" and "poly"; None is one over the number of features.
    degree : int, default=3
        Of "poly", :math:`(\gamma \langle x, x' \rangle + c_0)^d`.
    coef0 : float, default=1.0
        :math:`c_0`.
    n_basis : int or None, default=None
        Random rows that span a kernel's functions (Nystroem). None is all, or 1,000 if there are
        more.
    fit_intercept : bool, default=True
        Give each component a constant, which counts as a feature.
    l1 : float or None, default=None
        Weight of the penalty, as a part of the least weight at which no atom is active. None tries
        0.5, 0.25 and 0.12. In the paper: :math:`\lambda = l_1 / 2`, :math:`\tau = l_1`.
    l2 : float, default=1e-10
        Weight of half the squared norm of a component in its final fit, next to the mean loss. The
        norm is that of standardised columns, or of the kernel's space; a wide kernel space ("rbf")
        needs more, 1e-3 say.
    refine : {"soft", "hard"} or None, default="soft"
        EM after rounding: with shared rows, with each row given to one component, or none.
    n_starts : int or None, default=None
        Starts to refine at most; the most likely mixture is kept. The first of them are roundings
        of the solutions; then, for standard mixtures with few features, functions through random
        rows; the others are random. None is 8 to 40, more where EM is cheap.
    missing : {"refuse", "mask"}, default="refuse"
        Whether NaN in `X` is an error or an entry to leave out: it then has the mean that the
        row's other entries let one expect, all columns taken as jointly normal.
    max_components : int, default=6
        Largest K that "auto" tries.
    gate : {"neighbours", "classifier", "shares"}, default="neighbours"
        How `predict` weighs components for a new row: by the mean of its neighbours in the data,
        by logistic regression, or by the shares of all rows.
    n_neighbors : int, default=10
        Of the gate.
    tol : float, default=0.1
        The convex program ends when its duality gap is at most `tol` times the objective. Below
        0.03 to 0.1 the semidefinite bound itself is in the way.
    max_iter : int, default=50
        Searches of the program for each weight.
    n_jobs : int or None, default=None
        Threads of a search; None means 1, -1 all processors. The model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of searches, of basis rows and of random roundings.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components_, n_features)
        Weights, the largest share first; only for the linear kernel.
    intercept_ : ndarray of shape (n_components_,)
        Constants; only for the linear kernel.
    component_weights_ : ndarray of shape (n_components_, r)
        The functions in the space of features.
    n_components_ : int
        K.
    shares_ : ndarray of shape (n_components_,)
        Part of the rows that have each component.
    noise_ : ndarray of shape (n_components_,)
        Standard deviation of the residuals of each component's rows.
    codes_ : ndarray of shape (n_samples, n_components_)
        Probability that a row has each component.
    outlier_share_ : float
        Part of the rows that no component explains; at most a quarter, 0 unless setting them apart
        pays. Only for standard mixtures and ``refine="soft"``; `codes_` says what they would be.
    labels_ : ndarray of shape (n_samples,)
        The likeliest component; only for standard mixtures.
    criteria_ : dict
        With "auto": Bayesian information criterion of each size tried.
    l1_ : ndarray
        Weights at which the program was solved, for targets and columns scaled as in Notes.
    objective_ : float
        Of the last one.
    certificate_ : float
        The largest duality gap over its objective along them.
    n_iter_ : int
        Searches.
    trace_ : Trace
        One row per search. Columns seconds, l1, objective, certificate, violation, nnz_primal
        (active atoms), nnz_dual (rows with a residual).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    Columns are brought to mean 0 and variance 1. For standard mixtures the program gets the
    residual of least squares: what all rows have in common is in every component, and would take
    an atom of all ones. Sparse matrices are made dense.

    References
    ----------
    .. [1] I. E.-H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models", 2018,
       section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.latent import MixLassoRegressor
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> y = np.where(np.arange(60) % 3, 2 * x[:, 0], 1 - x[:, 0])
    >>> model = MixLassoRegressor(random_state=0).fit(x, y)
    >>> model.n_components_, model.coef_.round(3).tolist(), model.intercept_.round(3).tolist()
    (2, [[2.0], [-1.0]], [0.0, 1.0])
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Either(Positive(int), OneOf("auto")),
        "mixture": OneOf("standard", "generalised"),
        "kernel": OneOf("linear", "rbf", "poly", "precomputed"),
        "gamma": OrNone(Positive(float)),
        "degree": Positive(int),
        "coef0": NonNegative(float),
        "n_basis": OrNone(Positive(int)),
        "fit_intercept": Boolean(),
        "l1": OrNone(Interval(float, 0, 1, "neither")),
        "l2": NonNegative(float),
        "refine": OneOfOrNone("soft", "hard"),
        "n_starts": OrNone(Positive(int)),
        "missing": OneOf("refuse", "mask"),
        "max_components": Positive(int),
        "gate": OneOf("neighbours", "classifier", "shares"),
        "n_neighbors": Positive(int),
        "tol": Positive(float),
        "max_iter": Positive(int),
        **RUN_RULES,
    }

    coef_: np.ndarray
    intercept_: np.ndarray
    criteria_: dict[int, float]
    _fill: GaussianFill | None

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        mixture: str = "standard",
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_basis: int | None = None,
        fit_intercept: bool = True,
        l1: float | None = None,
        l2: float = 1e-10,
        refine: str | None = "soft",
        n_starts: int | None = None,
        missing: str = "refuse",
        max_components: int = 6,
        gate: str = "neighbours",
        n_neighbors: int = 10,
        tol: float = 0.1,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.n_components = n_components
        self.mixture = mixture
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_basis = n_basis
        self.fit_intercept = fit_intercept
        self.l1 = l1
        self.l2 = l2
        self.refine = refine
        self.n_starts = n_starts
        self.missing = missing
        self.max_components = max_components
        self.gate = gate
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> MixLassoRegressor:
        """Find the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features, or a kernel matrix.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        MixLassoRegressor
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        X = self._check(X, reset=True)
        y = check_targets(y, len(X), estimator_name=name)
        sizes = self._sizes(len(X))
        seed = as_seed(self.random_state)
        progress = Progress(len(sizes), n_done=0)
        self._map = self._make_map(X, seed)
        self._gate_map: FeatureMap | None = (
            None if self.kernel == "precomputed" else LinearMap.of(X, True)
        )
        problem = MixtureProblem(
            self._map.features(X), y, self.mixture == "standard", float(self.l2)
        )
        with threadpool_limits(1, user_api="blas"):  # so that sums do not depend on its threads
            selection, path = self._watch(
                lambda: self._solve(problem, sizes, seed, progress), progress, may_be_left=True
            )
        for old in ("coef_", "intercept_", "labels_", "criteria_"):  # of another fit
            self.__dict__.pop(old, None)
        self._keep_program(path, progress.stop_requested)
        self._keep_mixture(selection, problem, X)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets: the components, weighed by the gate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features, or kernel values with the rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._check_new(X)
        weights = self._gate.weights(self._gate_rows(X))
        return (weights * self._fitted.values(self._map.features(X))).sum(axis=1).astype(X.dtype)

    def predict_components(self, X: Any) -> np.ndarray:
        """What each component predicts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
        """
        X = self._check_new(X)
        return self._fitted.values(self._map.features(X)).astype(X.dtype)

    def predict_codes(self, X: Any, y: Any) -> np.ndarray:
        """Probability that rows with known targets have each component.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for `predict`.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
        """
        X = self._check_new(X)
        y = check_targets(y, len(X), estimator_name=type(self).__name__)
        return self._fitted.codes(self._map.features(X), y).astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.regressor_tags.poor_score = True  # one function is not what it looks for
        return tags

    # --- what comes in -------------------------------------------------------------------------

    def _sizes(self, n_rows: int) -> list[int]:
        name = type(self).__name__
        is_general = self.mixture == "generalised"
        if isinstance(self.n_components, str):
            most = min(int(self.max_components), max(1, n_rows // 5))
            return list(range(1, (min(most, _MOST_GENERAL) if is_general else most) + 1))
        if self.n_components > n_rows:
            raise ParameterError(
                f"{name}.n_components must be at most the number of samples, {n_rows}, "
                f"got {self.n_components}"
            )
        if is_general and self.n_components > _MOST_GENERAL:
            raise ParameterError(
                f"{name}.n_components must be at most {_MOST_GENERAL} for mixture='generalised', "
                f"got {self.n_components}"
            )
        return [int(self.n_components)]

    def _make_map(self, X: np.ndarray, seed: int) -> FeatureMap:
        if self.kernel == "linear":
            return LinearMap.of(X.astype(np.float64), bool(self.fit_intercept))
        if self.kernel == "precomputed":
            self._check_kernel(X)
        n_basis = min(len(X), _MOST_BASIS if self.n_basis is None else int(self.n_basis))
        draw = np.random.default_rng(seed).permutation(len(X))[:n_basis]
        chosen = np.sort(draw)
        options = self._kernel_options(X.shape[1])
        return aside(
            make_kernel_map, X, self.kernel, options, bool(self.fit_intercept), chosen,
            n_operations=10.0 * n_basis**3,
        )  # fmt: skip

    def _check_kernel(self, X: np.ndarray) -> None:
        head = f"{type(self).__name__}: X must be a symmetric matrix for kernel='precomputed'"
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"{head}, got shape {X.shape}")
        difference = float(np.abs(X - X.T).max())
        if difference > _ASYMMETRY * float(np.abs(X).max()):
            raise ValueError(f"{head}, got entries that differ by {difference:g}")

    def _kernel_options(self, n_features: int) -> dict[str, float]:
        if self.kernel == "precomputed":
            return {}
        gamma = 1 / n_features if self.gamma is None else float(self.gamma)
        if self.kernel == "rbf":
            return {"gamma": gamma}
        return {"gamma": gamma, "degree": int(self.degree), "coef0": float(self.coef0)}

    def _check_new(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._check(X, reset=False)

    def _check(self, X: Any, reset: bool) -> np.ndarray:
        """Rows without NaN, as a dense array."""
        # What was fitted decides about new rows, not what `set_params` said since.
        has_gaps = self.missing == "mask" if reset else self._fill is not None
        if has_gaps and self.kernel == "precomputed":
            raise ParameterError(
                f"{type(self).__name__}.missing must be 'refuse' for kernel='precomputed', "
                "got 'mask'"
            )
        X = read_rows(self, X, reset=reset, allows_nan=has_gaps, most=_LARGEST)
        if reset:
            self._fill = GaussianFill.of(X) if has_gaps else None
        return X if self._fill is None else self._fill(X)

    # --- solving -------------------------------------------------------------------------------

    def _solve(
        self, problem: MixtureProblem, sizes: list[int], seed: int, progress: Progress
    ) -> tuple[Selection, Path]:
        program = MixtureProgram(
            problem.features, problem.targets, seed=seed, n_jobs=as_n_threads(self.n_jobs),
            progress=progress,
        )  # fmt: skip
        parts = _PARTS if self.l1 is None else (float(self.l1),)
        path = program.path(parts, float(self.tol), int(self.max_iter))
        is_general = self.mixture == "generalised"
        refiner = (GeneralRefiner if is_general else StandardRefiner)(
            problem.features, problem.targets, l2=float(self.l2), refine=self.refine,
            n_starts=self._n_starts(problem.features, sizes[-1]), seed=seed,
            should_stop=lambda: progress.stop_requested,
        )  # fmt: skip

        def tried() -> Any:
            for size in sizes:
                yield size
                progress.add(n_done=1)

        return select_size(refiner, path, tried(), len(problem.targets)), path

    def _n_starts(self, features: np.ndarray, n_components: int) -> int:
        if self.n_starts is not None:
            return int(self.n_starts)
        cost = features.shape[0] * features.shape[1] ** 2 * n_components  # of a step of EM
        return int(np.clip(_STARTS_COST / cost, 8, 40))

    def _keep_program(self, path: Path, was_stopped: bool) -> None:
        points = path.points
        certificate = max((point.certificate for point in points), default=0.0)
        status = Status.CONVERGED if certificate <= self.tol else Status.MAX_ITER
        if status is not Status.CONVERGED and was_stopped:
            status = Status.STOPPED
        elif status is not Status.CONVERGED and all(p.n_steps < self.max_iter for p in points):
            status = Status.STALLED
        self._keep_solution(
            Solution(
                status=status,
                objective=points[-1].objective if points else 0.0,
                certificate=certificate,
                n_iter=sum(point.n_steps for point in points),
                trace=Trace(path.program.trace()),
            )
        )
        self.l1_ = np.array([point.l1 for point in points])

    def _keep_mixture(self, selection: Selection, problem: MixtureProblem, X: np.ndarray) -> None:
        if isinstance(self.n_components, str):
            self.criteria_ = selection.criteria
        fitted = self._fitted = problem.fitted(selection.mixture, self.refine != "soft")
        self.n_components_ = len(fitted.weights)
        self.outlier_share_ = float(getattr(selection.mixture, "outliers", 0.0))
        self.component_weights_ = fitted.weights
        if isinstance(self._map, LinearMap):
            coef, constants = self._map.coef_and_intercept(fitted.weights)
            self.coef_, self.intercept_ = coef.astype(X.dtype), constants.astype(X.dtype)
        self.codes_ = fitted.codes(problem.features, problem.y)
        self.shares_ = self.codes_.mean(axis=0)
        self.noise_ = fitted.noise(problem.features, problem.y, self.codes_)
        if self.mixture == "standard":
            self.labels_ = self.codes_.argmax(axis=1)
        self._gate = make_gate(self.gate, self._gate_rows(X), self.codes_, int(self.n_neighbors))

    def _gate_rows(self, X: np.ndarray) -> np.ndarray:
        """Where neighbours are near: scaled columns, or the kernel's space if there are none."""
        if self._gate_map is None:
            return self._map.features(X)
        return self._gate_map.features(X)

    # --- saving --------------------------------------------------------------------------------

    _STORED = (
        "coef_", "intercept_", "component_weights_", "shares_", "noise_", "codes_", "labels_",
        "n_components_", "outlier_share_", "l1_",
    )  # fmt: skip

    def _to_bundle(self) -> dict[str, Any]:
        state = super()._to_bundle()
        if hasattr(self, "criteria_"):
            state["criteria_"] = {str(size): value for size, value in self.criteria_.items()}
        parts = {"map": self._map.state(), "gate": gate_state(self._gate)}
        parts["fitted"] = vars(self._fitted)
        if self._gate_map is not None:
            parts["gate_map"] = self._gate_map.state()
        if self._fill is not None:
            parts["fill"] = vars(self._fill)
        for part, values in parts.items():
            state |= {f"{part}.{name}": value for name, value in values.items()}
        return state

    def _fields(self) -> Any:
        coefficients = {
            "coef_": Floats("components", "features"),
            "intercept_": Floats("components"),
        }
        return super()._fields() | {
            "n_components_": Size("components", low=1),
            **(coefficients if self.kernel == "linear" else {}),
            "component_weights_": Floats("components", "inner"),
            "codes_": Floats("samples", "components"),
            "labels_": OrAbsent(Integers("samples", high="components")),
            "shares_": Floats("components"),
            "noise_": Floats("components"),
            "outlier_share_": Number(),
            "l1_": Floats(None),
            "criteria_": OrAbsent(Record({"*": Number()})),
            **{f"{part}.*": Parts() for part in ("map", "gate", "gate_map", "fitted", "fill")},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        if "criteria_" in state:
            self.criteria_ = {int(k): value for k, value in state.pop("criteria_").items()}
        sizes = {"features": state["n_features_in_"], "components": state["n_components_"]}
        self._map = restore_map(self.kernel, take_parts(state, "map."), sizes)
        sizes["inner"] = self._map.n_columns
        gate_map, fill = take_parts(state, "gate_map."), take_parts(state, "fill.")
        self._gate_map = restore_map("linear", gate_map, sizes) if gate_map else None
        gate_columns = (self._gate_map or self._map).n_columns
        self._gate = restore_gate(take_parts(state, "gate."), sizes | {"columns": gate_columns})
        if fill:
            check_fields(fill, GaussianFill.FIELDS, sizes)
        self._fill = GaussianFill(**fill) if fill else None
        fitted = take_parts(state, "fitted.")
        check_fields(fitted, FittedMixture.FIELDS, sizes)
        self._fitted = FittedMixture(**fitted)
        super()._restore(state)
