"""What the sparse linear estimators share: fitting, paths, cross-validation, saving."""

from __future__ import annotations

import abc
import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import AnyOf, Fields, Floats, Number, OrAbsent, Sparse
from sublearn.io.models import storable_params
from sublearn.linear.path import CoefficientPath, L1Values, as_dtype, falling_l1s
from sublearn.linear.selection import (
    BY_FOLDS,
    CrossValidation,
    Cv,
    FoldScores,
    FoldsOrMore,
    Scorer,
    choose_l1,
    follow_grid,
    held_out_loss,
    make_folds,
    walk_path,
    warn_of_the_least_l1,
)
from sublearn.linear.targets import RowNumbers, Targets, join_traces
from sublearn.optim.concave import SHAPES, ConcavePenalty, FallingWeights
from sublearn.optim.dual_point import MOST_FREE
from sublearn.optim.linear_problem import Penalty, SparsePenalty
from sublearn.optim.linear_solve import METHODS, SOLVERS, LinearSolution, SolverSettings
from sublearn.optim.linear_solvers import LinearSolver
from sublearn.optim.scaling import (
    centre_columns,
    column_offsets,
    column_scales,
    divide_columns,
)
from sublearn.trace import Solution, Status, Trace
from sublearn.typing import LabelsLike, Matrix, MatrixLike, State, WeightsLike
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    Either,
    JobCount,
    NameOr,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    check_argument,
    check_params,
    check_sample_weight,
)
from sublearn.validation.design import (
    Design,
    check_design,
    check_new_rows,
    check_penalty_weights,
    column_extremes,
)
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

__all__ = ["SparseLinearModel"]

_MOST_WEIGHTS = 2**31  # of all outputs: the memory is taken page by page as weights are written

_LEAST_SHARE = 1e-2  # of the least l1 in the largest, where only a number of values is given
_Model = TypeVar("_Model", bound="SparseLinearModel")


class _PenaltyWeights(NameOr):
    """None, one number per feature, which is checked against the data, or weights that fall."""

    def accepts(self, value: object) -> bool:
        is_array = L1Values().accepts(value) and not is_int64(value)
        return value is None or is_array or super().accepts(value)

    def __str__(self) -> str:
        return f"an array of one number per feature, {super().__str__()}, or None"


@dataclass(frozen=True, eq=False)
class _Task:
    """What a fit solves, and what was taken from columns and divides them, if anything."""

    targets: Targets
    scales: np.ndarray | None
    offsets: np.ndarray | None

    def restore(self, found: LinearSolution) -> LinearSolution:
        """A solution for the columns as the user has them."""
        w = found.x if self.scales is None else found.x / self.scales
        shift = 0.0 if self.offsets is None else float(self.offsets @ w)
        return replace(found, x=w, intercept=found.intercept - shift)

    def rounded(self, k: int, found: LinearSolution, l1: float) -> LinearSolution:
        """Solution `k` with the figures of its weights in the type of the features.

        float32 weights of columns far from 0 can be worse than the weights that were found.
        """
        dtype = self.targets.X.dtype
        if dtype == np.float64 or self.targets.n_solves != self.targets.n_outputs:
            return found
        user = self.restore(found)
        weights = as_dtype(user.x, dtype).astype(np.float64)[None]
        intercept = as_dtype(np.array([user.intercept]), dtype).astype(np.float64)
        w, b = self._scaled(weights, intercept)
        objective = self.targets.problems[k].value(w[0], b[0]) + self.targets.penalty.value(
            w[0], l1
        )
        worse = max(objective - found.objective, 0.0)
        unit = max(abs(found.objective), np.finfo(float).tiny)
        certificate = found.certificate + worse / unit
        return replace(found, objective=objective, certificate=certificate)

    def inits(self, before: tuple[np.ndarray, np.ndarray] | None) -> list[LinearSolution] | None:
        """Earlier weights and intercepts as starting points, if they have the right shape."""
        if before is None or before[0].shape != (self.targets.n_outputs, self.n_features):
            return None
        w, b = self._scaled(before[0].astype(np.float64), before[1].astype(np.float64))
        points = zip(w, b.tolist(), strict=True)
        return [LinearSolution(Status.STOPPED, np.nan, np.inf, 0, Trace({}), *at) for at in points]

    def _scaled(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of the user's columns as those of the columns that are solved."""
        if self.offsets is not None:
            b = b + w @ self.offsets
        return (w if self.scales is None else w * self.scales), b

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.targets.X.shape[1])


class SparseLinearModel(FittedModel, BaseEstimator, abc.ABC):
    """A linear model under an l1 penalty; subclasses say what is learned from."""

    _rules: ClassVar[dict[str, Rule]] = {
        "l1": Either(NonNegative(float), *map(OneOf, BY_FOLDS)),
        "l2": NonNegative(float),
        "fit_intercept": Boolean(),
        "penalty_weights": _PenaltyWeights(FallingWeights, tuple(SHAPES)),
        "solver": OneOf(*SOLVERS),
        "tol": Positive(float),
        "max_iter": OrNone(Positive(int)),
        "cv": FoldsOrMore(),
        "l1s": L1Values(),
        "warm_start": Boolean(),
        "n_jobs": JobCount(),
        **WATCH_RULES,
    }
    _FORMER_PARAMS: ClassVar = {"random_state": None}

    l1: float | str
    l2: float
    fit_intercept: bool
    penalty_weights: WeightsLike | str | FallingWeights | None
    solver: str
    tol: float
    max_iter: int | None
    cv: Cv
    l1s: ArrayLike
    warm_start: bool
    n_jobs: int | None

    coef_: np.ndarray
    intercept_: float | np.ndarray

    @abc.abstractmethod
    def _read_targets(
        self, X: Matrix, y: LabelsLike, rows: RowNumbers, penalty: SparsePenalty
    ) -> Targets:
        """What is learned from, with `y` made canonical."""

    def _answers(self, y: np.ndarray) -> np.ndarray:
        """What `y` of targets stands for, as the user has it."""
        return y

    @property
    def _is_positive(self) -> bool:
        return False

    @property
    def _is_joint(self) -> bool:
        """Whether the outputs are one problem."""
        return False

    # --- learning ----------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self: _Model,
        X: MatrixLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None = None,
        *,
        groups: LabelsLike | None = None,
        offset: WeightsLike | None = None,
    ) -> _Model:
        """Learn the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. CSC matrices and dense arrays in Fortran order are used as they are, others
            are copied once.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the losses of samples, divided by their sum; zero leaves a sample out.
        groups : array-like of shape (n_samples,) or None, default=None
            With ``l1="cv"``: samples of one group are never on both sides of a fold.
        offset : array-like of shape (n_samples,) or None, default=None
            What is added to the linear prediction of each sample, known beforehand: the logarithm
            of an exposure for counts, or the score of another model. Not with `multinomial`.

        Returns
        -------
        estimator
            Itself, fitted.
        """
        before = self._earlier_weights()
        task = self._read(X, y, sample_weight, offset)
        targets, inits = task.targets, task.inits(before)
        self._forget_folds()
        if isinstance(self.l1, str):
            solutions = self._fit_by_folds(targets, self.l1, groups)
        else:
            self.l1_ = l1 = float(self.l1)
            progress = Progress.of_solves(targets.n_solves, targets.settings.max_iter)
            solutions = self._watch(
                lambda: targets.solve(l1, progress, inits), progress, may_be_left=True
            )
        solutions = [task.rounded(k, found, self.l1_) for k, found in enumerate(solutions)]
        solutions = [task.restore(found) for found in solutions]
        self._keep_figures(solutions, solutions[: targets.n_solves], targets.X.dtype)
        return self

    def fit_path(
        self,
        X: MatrixLike,
        y: LabelsLike,
        l1s: ArrayLike | None = None,
        *,
        sample_weight: WeightsLike | None = None,
    ) -> CoefficientPath:
        """Weights along falling values of l1, each fit started from the one before.

        The estimator itself stays as it is, fitted or not; its `l1` is not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Targets.
        l1s : int, array-like or None, default=None
            How many values of equal ratio from :meth:`l1_max` to a hundredth of it, or the values
            in any order; None takes the estimator's `l1s`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As for `fit`.

        Returns
        -------
        CoefficientPath
            A sequence of fitted models, with `l1s`, `coefs`, `intercepts`, `certificates`,
            `best()` and `plot()`. Shorter if the callback stopped it.
        """
        model = copy.copy(self)  # gets the names of the features
        task = model._read(X, y, sample_weight)
        targets = task.targets
        l1s = self.l1s if l1s is None else l1s
        check_argument("fit_path.l1s", l1s, L1Values())
        found = falling_l1s(targets.largest_l1(), l1s, _LEAST_SHARE, "fit_path.l1s")
        progress = Progress.of_solves(len(found) * targets.n_solves, targets.settings.max_iter)

        def job() -> CoefficientPath:
            steps = walk_path(targets, found, progress)
            restored = ([task.restore(solution) for solution in step] for step in steps)
            return CoefficientPath.gather(found, restored, targets.X.dtype, model)

        path = self._watch(job, progress, may_be_left=True)
        self._warn_of_open_gaps(path)
        return path

    def _at(
        self: _Model, l1: float, weights: np.ndarray, intercepts: np.ndarray,
        objectives: np.ndarray, certificates: np.ndarray, n_iters: np.ndarray,
    ) -> _Model:  # fmt: skip
        """A copy with the weights of one step of a path."""
        model = copy.copy(self)
        model.l1 = model.l1_ = l1
        model._forget_folds()
        objective = objectives[0] if self._is_joint else objectives.sum()
        certificate, n_iter = float(certificates.max()), int(n_iters.max())
        status = Status.CONVERGED if certificate <= self.tol else Status.STALLED
        model._keep_solution(
            Solution(status, float(objective), certificate, n_iter, Trace({})), warns=False
        )
        model._set_weights(weights, intercepts)
        return model

    def l1_max(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """The least l1 for which all penalised weights are zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As for `fit`.

        Returns
        -------
        float
        """
        return copy.copy(self)._read(X, y, sample_weight).targets.largest_l1()

    @property
    def sparse_coef_(self) -> sp.csr_matrix:
        """`coef_` as a CSR matrix; one row for a single output."""
        return sp.csr_matrix(np.atleast_2d(self.coef_))

    # --- steps of fit ------------------------------------------------------------------------

    @property
    def _settings(self) -> SolverSettings:
        n_threads = as_n_threads(self.n_jobs)
        max_iter = self._method.max_iter if self.max_iter is None else int(self.max_iter)
        return SolverSettings(self.solver, float(self.tol), max_iter, n_threads)

    @property
    def _method(self) -> LinearSolver:
        """The solver that begins."""
        return METHODS[SOLVERS[self.solver][0]]

    def _read(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None,
        offset: WeightsLike | None = None,
    ) -> _Task:  # fmt: skip
        check_params(self)
        design = check_design(self, X)
        n_rows, n_features = design.X.shape
        name = type(self).__name__
        weights = check_sample_weight(sample_weight, n_rows, estimator_name=name)
        weights = np.ones(n_rows) if weights is None else weights
        given = None if offset is None else _of_rows(offset, n_rows, f"{name}: offset")
        penalty = self._read_penalty(n_features)
        offsets = column_offsets(design) if self.fit_intercept else None
        if offsets is not None:
            centred = centre_columns(design.X, offsets)
            design = Design(centred, *column_extremes(centred))
        scales, columns = column_scales(design) if self._is_divisible else None, design.X
        if scales is not None:
            assert isinstance(penalty, Penalty)
            columns = divide_columns(columns, scales)
            penalty = replace(penalty, factors=penalty.factors / scales)
        rows = RowNumbers(weights, given)
        return _Task(self._read_targets(columns, y, rows, penalty), scales, offsets)

    @property
    def _is_divisible(self) -> bool:
        """Whether the penalty of divided columns is one of the same kind."""
        return self.l2 == 0

    def _read_penalty(self, n_features: int) -> SparsePenalty:
        name = type(self).__name__
        if self.l1 == 0 and self.l2 == 0:
            raise ParameterError(f"{name}.l1 must be positive where l2 is 0, got 0")
        if isinstance(self.penalty_weights, (str, FallingWeights)):
            return self._read_concave_penalty(self.penalty_weights, n_features)
        factors = check_penalty_weights(self.penalty_weights, n_features, estimator_name=name)
        penalty = Penalty(factors, float(self.l2), self._is_positive)
        self._refuse_what_the_solver_cannot(penalty)
        if len(penalty.free) > MOST_FREE:
            raise ParameterError(
                f"{name}.penalty_weights must leave at most {MOST_FREE} features unpenalised "
                f"where l2 is 0, got {len(penalty.free)}"
            )
        return penalty

    def _read_concave_penalty(self, given: str | FallingWeights, n_features: int) -> ConcavePenalty:
        """As weights of 0 come up on the way, it needs a solver that takes them."""
        name, at = type(self).__name__, f"for penalty_weights={show(given)}"
        if self._method.works_on_all:
            raise ParameterError(
                f"{name}.solver must be 'auto', 'newton' or 'lhac' {at}, got {self.solver!r}"
            )
        if self.l1 == 0:
            raise ParameterError(f"{name}.l1 must be positive {at}, got 0")
        falling = FallingWeights(given) if isinstance(given, str) else given
        return falling.penalty(n_features, float(self.l2), self._is_positive)

    def _refuse_what_the_solver_cannot(self, penalty: Penalty) -> None:
        name, at = type(self).__name__, f"for solver={self.solver!r}"
        if penalty.is_positive and not self._method.takes_bounds:
            raise ParameterError(f"{name}.positive must be False {at}, got True")
        if self._method.works_on_all and len(penalty.free):
            raise ParameterError(
                f"{name}.penalty_weights must be positive {at} where l2 is 0, got 0"
            )

    def _fit_by_folds(
        self, targets: Targets, rule: str, groups: LabelsLike | None
    ) -> list[LinearSolution]:
        name = type(self).__name__
        cv = self.cv if isinstance(self.cv, CrossValidation) else CrossValidation(self.cv)
        l1s = falling_l1s(targets.largest_l1(), self.l1s, _LEAST_SHARE, f"{name}.l1s")
        named = None if groups is None else column_or_1d(groups)
        if named is not None and len(named) != len(targets.y):
            raise ValueError(
                f"{name}: groups must have one entry for each of {len(targets.y)} samples, "
                f"got {len(named)}"
            )
        folds = make_folds(targets, cv.folds, name, named)
        n_solves = (len(folds) + 1) * len(l1s) * targets.n_solves
        progress = Progress.of_solves(n_solves, targets.settings.max_iter)
        score = held_out_loss if cv.scoring is None else self._scorer(cv.scoring, targets)

        def job() -> tuple[np.ndarray, np.ndarray, int, list[LinearSolution]]:
            scores_of = FoldScores(targets, folds, progress, score)
            grid, scores = follow_grid(scores_of, l1s, is_given=not is_int64(self.l1s))
            chosen = choose_l1(scores, rule)
            *_, (reached, last) = enumerate(walk_path(targets, grid[: chosen + 1], progress))
            if progress.stop_requested:  # another l1 might have been chosen
                last = [replace(found, status=Status.STOPPED) for found in last]
            return grid, scores, reached, last

        found = self._watch(job, progress, may_be_left=True)
        self.l1_path_, self.cv_scores_, reached, solutions = found
        self.l1_ = float(self.l1_path_[reached])
        warn_of_the_least_l1(name, self.l1_path_, self.cv_scores_)
        return solutions

    def _scorer(
        self, scoring: str | Scorer, targets: Targets
    ) -> Callable[[Targets, list[LinearSolution]], float]:
        """A scorer of scikit-learn's, asked about a model with the weights of a fold."""
        if targets.offsets is not None:
            raise ParameterError(
                f"{type(self).__name__}.cv must have scoring=None where fit gets an offset, "
                f"got {scoring!r}"
            )
        scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        is_weighted = bool(np.ptp(targets.weights))
        model = copy.copy(self)
        model.__dict__.pop("feature_names_in_", None)

        def score(test: Targets, found: list[LinearSolution]) -> float:
            asked = copy.copy(model)
            asked.trace_ = found[0].trace  # fitted
            asked._set_weights(
                np.array([one.x for one in found]), np.array([one.intercept for one in found])
            )
            rest = {"sample_weight": test.weights} if is_weighted else {}
            return float(scorer(asked, test.X, asked._answers(test.y), **rest))

        return score

    def _forget_folds(self) -> None:
        for name in ("cv_scores_", "l1_path_"):
            self.__dict__.pop(name, None)

    def _earlier_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)

    def _warn_of_open_gaps(self, path: CoefficientPath) -> None:
        n_open = int((path.certificates > self.tol).sum())
        if n_open:
            warnings.warn(
                f"{type(self).__name__}: {n_open} of {path.certificates.size} fits ended before "
                f"the certificate reached the tolerance; the largest is "
                f"{path.certificates.max():.3g}, asked for tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _keep_figures(
        self, solutions: list[LinearSolution], figures: list[LinearSolution], dtype: np.dtype
    ) -> None:
        """Weights of all outputs; objective and trace of the problems they were found by."""
        worst = max(solutions, key=lambda found: found.certificate)
        self._keep_solution(
            Solution(
                status=worst.status,
                objective=float(sum(found.objective for found in figures)),
                certificate=worst.certificate,
                n_iter=max(found.n_iter for found in solutions),
                trace=join_traces([found.trace for found in figures]),
            )
        )
        self._set_weights(
            as_dtype(np.array([found.x for found in solutions]), dtype),
            as_dtype(np.array([found.intercept for found in solutions]), dtype),
        )

    @abc.abstractmethod
    def _set_weights(self, weights: np.ndarray, intercepts: np.ndarray) -> None:
        """Set `coef_` and `intercept_` from arrays with a row for each output."""

    # --- prediction and saving ---------------------------------------------------------------

    def _scores(self, X: MatrixLike) -> np.ndarray:
        """<x, w> + b, of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        rows = check_new_rows(self, X)
        return np.asarray(rows @ np.atleast_2d(self.coef_).T) + self.intercept_

    def _stored_params(self) -> State:
        params = storable_params(self)
        if not is_int64(self.cv):
            del params["cv"]  # an object of another library
        return params

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        params = dict(stored)
        if params.pop("cv_rule", None) == "1se" and params.get("l1") == "cv":
            params["l1"] = "cv_1se"
        return super()._current_params(params)

    _STORED = ("l1_", "intercept_", "cv_scores_", "l1_path_", "classes_")

    def _to_bundle(self) -> State:
        return super()._to_bundle() | {"weights": self.sparse_coef_}

    def _fields(self) -> Fields:
        return super()._fields() | {
            "weights": Sparse("outputs", "features", finite=True),
            "intercept_": AnyOf(Number(), Floats("outputs")),
            "l1_": Number(),
            "l1_path_": OrAbsent(Floats("l1s")),
            "cv_scores_": OrAbsent(Floats("l1s", None)),
        }

    def _restore(self, state: State) -> None:
        sparse_weights, intercepts = state.pop("weights"), np.atleast_1d(state.pop("intercept_"))
        n_outputs, n_features = sparse_weights.shape
        if intercepts.shape != (n_outputs,):
            raise ValueError(f"intercept_ must have shape ({n_outputs},), got {intercepts.shape}")
        if n_outputs * n_features > _MOST_WEIGHTS:
            raise ValueError(
                f"weights must have at most {_MOST_WEIGHTS} cells, which coef_ has in full, "
                f"got shape {sparse_weights.shape}"
            )
        self._set_weights(sparse_weights.toarray(), intercepts)
        super()._restore(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _of_rows(values: WeightsLike, n_rows: int, name: str) -> np.ndarray:
    """One finite number for each row."""
    numbers = np.asarray(values)
    if numbers.shape != (n_rows,) or numbers.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be {n_rows} numbers, one for each sample, got {show(values)}"
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return numbers.astype(np.float64)
