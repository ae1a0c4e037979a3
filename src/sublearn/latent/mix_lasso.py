"""Mixed regression by MixLasso, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import (
    Fields,
    Floats,
    Integers,
    Number,
    OrAbsent,
    Parts,
    Record,
    Size,
    take_parts,
)
from sublearn.latent.missing import GaussianFill, read_rows
from sublearn.latent.mix_features import FeatureMap, Kernel, LinearMap, make_map, restore_map
from sublearn.latent.mix_gate import Gate, make_gate, restore_gate
from sublearn.latent.mix_program import MixtureProgram, Path
from sublearn.latent.mix_refinement import GeneralRefiner, MixtureSearch, Refiner, StandardRefiner
from sublearn.latent.mixture import FittedMixture, Mixture, MixtureProblem
from sublearn.latent.stored_part import StoredPart
from sublearn.trace import Callback
from sublearn.typing import LabelsLike, MatrixLike, Seed, State
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    NonNegative,
    OneOf,
    Positive,
    Rule,
    SettingsOf,
    as_n_threads,
    as_seed,
    check_params,
)
from sublearn.validation.design import check_targets

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

__all__ = ["MixLassoRegressor"]

_L1_SHARES = (0.5, 0.25, 0.12)  # where the program is solved if no share is given
_MOST_GENERAL = 10  # components of a generalised mixture: 1,024 subsets
_LARGEST = 1e100  # of entries of X: sums of their squares stay finite


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
    kernel : Kernel or None, default=None
        Space of the functions; None is linear functions.
    fit_intercept : bool, default=True
        Give each component a constant, which counts as a feature.
    l2 : float, default=1e-10
        Weight of half the squared norm of a component in its final fit, next to the mean loss. The
        norm is that of standardised columns, or of the kernel's space; a wide kernel space ("rbf")
        needs more, 1e-3 say.
    search : MixtureSearch or None, default=None
        At which weight the program is solved, how many starts are refined, and by which EM.
    missing : {"refuse", "mask"}, default="refuse"
        Whether NaN in `X` is an error or an entry to leave out: it then has the mean that the
        row's other entries let one expect, all columns taken as jointly normal.
    max_components : int, default=6
        Largest K that "auto" tries.
    gate : Gate or None, default=None
        How `predict` weighs components for a new row; None is by its neighbours in the data.
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
        pays. Only for standard mixtures and soft EM; `codes_` says what they would be.
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

    _kind: ClassVar[str] = "row_numbers"

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Either(Positive(int), OneOf("auto")),
        "mixture": OneOf("standard", "generalised"),
        "kernel": SettingsOf(Kernel),
        "fit_intercept": Boolean(),
        "l2": NonNegative(float),
        "search": SettingsOf(MixtureSearch),
        "missing": OneOf("refuse", "mask"),
        "max_components": Positive(int),
        "gate": SettingsOf(Gate),
        "tol": Positive(float),
        "max_iter": Positive(int),
        **RUN_RULES,
    }

    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        **{name: f"kernel.{name}" for name in ("gamma", "degree", "coef0", "n_basis")},
        **{name: f"search.{name}" for name in ("refine", "n_starts")},
        "l1": "search.l1_share",
        "n_neighbors": "gate.n_neighbors",
    }

    coef_: np.ndarray
    intercept_: np.ndarray
    criteria_: dict[int, float]
    _fill: GaussianFill | None
    _gate_map: FeatureMap | None

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        mixture: str = "standard",
        kernel: Kernel | None = None,
        fit_intercept: bool = True,
        l2: float = 1e-10,
        search: MixtureSearch | None = None,
        missing: str = "refuse",
        max_components: int = 6,
        gate: Gate | None = None,
        tol: float = 0.1,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.n_components = n_components
        self.mixture = mixture
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.l2 = l2
        self.search = search
        self.missing = missing
        self.max_components = max_components
        self.gate = gate
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, X: MatrixLike, y: LabelsLike) -> MixLassoRegressor:
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
        X = self._check(X, reset=True)
        y = check_targets(y, len(X), estimator_name=type(self).__name__)
        sizes = self._sizes(len(X))
        seed = as_seed(self.random_state)
        progress = Progress(len(sizes), n_done=0)
        self._map = make_map(Kernel.of(self.kernel), X, bool(self.fit_intercept), seed)
        self._gate_map = None if self._is_precomputed else LinearMap.of(X, True)
        problem = MixtureProblem(
            self._map.features(X), y, self.mixture == "standard", float(self.l2)
        )
        with threadpool_limits(1, user_api="blas"):  # so that sums do not depend on its threads
            path, refiner, mixture, criteria = self._watch(
                lambda: self._solve(problem, sizes, seed, progress), progress, may_be_left=True
            )
        for old in ("coef_", "intercept_", "labels_", "criteria_"):  # of another fit
            self.__dict__.pop(old, None)
        self._keep_solution(path.solution(progress.stop_requested))
        self.l1_ = np.array([point.l1 for point in path.points])
        if isinstance(self.n_components, str):
            self.criteria_ = criteria
        self._keep_mixture(mixture, refiner, X)
        return self

    def predict(self, X: MatrixLike) -> np.ndarray:
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

    def predict_components(self, X: MatrixLike) -> np.ndarray:
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

    def predict_codes(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.input_tags.pairwise = self._is_precomputed
        tags.regressor_tags.poor_score = True  # one function is not what it looks for
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Kernel) and self.kernel.kind == "precomputed"

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

    def _check_new(self, X: MatrixLike) -> np.ndarray:
        check_is_fitted(self)
        return self._check(X, reset=False)

    def _check(self, X: MatrixLike, reset: bool) -> np.ndarray:
        """Rows without NaN, as a dense array."""
        # What was fitted decides about new rows, not what `set_params` said since.
        has_gaps = self.missing == "mask" if reset else self._fill is not None
        if has_gaps and self._is_precomputed:
            raise ParameterError(
                f"{type(self).__name__}.missing must be 'refuse' for a precomputed kernel, "
                "got 'mask'"
            )
        X = read_rows(self, X, reset=reset, allows_nan=has_gaps, most=_LARGEST)
        if reset:
            self._fill = GaussianFill.of(X) if has_gaps else None
        return X if self._fill is None else self._fill(X)

    # --- solving -------------------------------------------------------------------------------

    def _solve(
        self, problem: MixtureProblem, sizes: list[int], seed: int, progress: Progress
    ) -> tuple[Path, Refiner, Mixture, dict[int, float]]:
        search = MixtureSearch.of(self.search)
        program = MixtureProgram(
            problem.features, problem.targets, seed=seed, n_jobs=as_n_threads(self.n_jobs),
            progress=progress,
        )  # fmt: skip
        shares = _L1_SHARES if search.l1_share is None else (float(search.l1_share),)
        path = Path(program, shares, tol=float(self.tol), max_iter=int(self.max_iter))
        n_starts = search.n_starts_for(problem.features, sizes[-1])
        kind = GeneralRefiner if self.mixture == "generalised" else StandardRefiner
        refiner = kind(problem, search, n_starts, seed, progress)
        return path, refiner, *refiner.select(path, sizes)

    def _keep_mixture(self, mixture: Mixture, refiner: Refiner, X: np.ndarray) -> None:
        problem, fitted = refiner.problem, refiner.fitted(mixture)
        self._fitted = fitted
        self.n_components_ = mixture.size
        self.outlier_share_ = float(mixture.outliers)
        self.component_weights_ = fitted.weights
        if isinstance(self._map, LinearMap):
            coef, constants = self._map.coef_and_intercept(fitted.weights)
            self.coef_, self.intercept_ = coef.astype(X.dtype), constants.astype(X.dtype)
        self.codes_ = fitted.codes(problem.features, problem.y)
        self.shares_ = self.codes_.mean(axis=0)
        self.noise_ = fitted.noise(problem.features, problem.y, self.codes_)
        if self.mixture == "standard":
            self.labels_ = self.codes_.argmax(axis=1)
        self._gate = make_gate(Gate.of(self.gate), self._gate_rows(X), self.codes_)

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

    def _to_bundle(self) -> State:
        state = super()._to_bundle()
        if hasattr(self, "criteria_"):
            state["criteria_"] = {str(size): value for size, value in self.criteria_.items()}
        parts: dict[str, StoredPart | None] = {
            "map": self._map, "gate": self._gate, "gate_map": self._gate_map,
            "fitted": self._fitted, "fill": self._fill,
        }  # fmt: skip
        for part, values in parts.items():
            if values is not None:
                state |= {f"{part}.{name}": value for name, value in values.state().items()}
        return state

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        """In files of earlier versions kernel and gate are names, with their settings beside."""
        named = {
            name: {"kind": stored[name]}
            for name in ("kernel", "gate")
            if isinstance(stored.get(name), str)
        }
        return super()._current_params({**named, **stored, **named})  # settings join them

    def _fields(self) -> Fields:
        coefficients = {
            "coef_": Floats("components", "features"),
            "intercept_": Floats("components"),
        }
        return super()._fields() | {
            "n_components_": Size("components", low=1),
            **(coefficients if Kernel.of(self.kernel).kind == "linear" else {}),
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

    def _restore(self, state: State) -> None:
        if "criteria_" in state:
            self.criteria_ = {int(k): value for k, value in state.pop("criteria_").items()}
        sizes = {"features": state["n_features_in_"], "components": state["n_components_"]}
        self._map = restore_map(Kernel.of(self.kernel).kind, take_parts(state, "map."), sizes)
        sizes["inner"] = self._map.n_columns
        gate_map, fill = take_parts(state, "gate_map."), take_parts(state, "fill.")
        self._gate_map = LinearMap.restored(gate_map, sizes) if gate_map else None
        gate_columns = (self._gate_map or self._map).n_columns
        self._gate = restore_gate(take_parts(state, "gate."), sizes | {"columns": gate_columns})
        self._fill = GaussianFill.restored(fill, sizes) if fill else None
        self._fitted = FittedMixture.restored(take_parts(state, "fitted."), sizes)
        super()._restore(state)
