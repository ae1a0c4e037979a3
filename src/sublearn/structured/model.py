"""What the structured estimators share: running a fit, judging, what it leaves behind, saving."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.fitting.held_out import split_rows
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import Fields, Labels, Number, Sparse
from sublearn.metrics.names import find_positions
from sublearn.structured.learning import Passes, learn, tol_of
from sublearn.structured.problem import Problem, Weights
from sublearn.typing import Seed, State
from sublearn.validation import (
    EARLY_STOPPING,
    RUN_RULES,
    Boolean,
    Interval,
    OneOf,
    OrNone,
    Positive,
    Rule,
    SettingsOf,
    as_seed,
)
from sublearn.validation.values import show

__all__ = ["LEARNING_RULES", "StructuredModel", "append_columns"]

#: Parameters of learning that all structured estimators have.
LEARNING_RULES: dict[str, Rule] = {
    "C": Positive(float),
    "fit_intercept": Boolean(),
    "tol": OrNone(Positive(float)),
    "max_iter": Positive(int),
    "early_stopping": EARLY_STOPPING,
    "validation_fraction": Interval(float, 0, 1, "neither"),
    "average": Boolean(),
    "solver": OneOf("block_descent", "frank_wolfe"),
    "passes": SettingsOf(Passes),
    **RUN_RULES,
}


def append_columns(X: sp.csr_matrix, *columns: np.ndarray) -> sp.csr_matrix:
    """Columns behind those of the features, in their precision and with their type of indices."""
    more = sp.csr_matrix(np.column_stack(columns).astype(X.dtype))
    out = sp.hstack([X, more], format="csr")
    out.indptr, out.indices = (
        ids.astype(X.indices.dtype, copy=False) for ids in (out.indptr, out.indices)
    )
    return out


class StructuredModel(FittedModel, BaseEstimator, abc.ABC):
    """A structural SVM: subclasses read the data and decode, this class learns and remembers."""

    C: float
    fit_intercept: bool
    tol: float | None
    max_iter: int
    early_stopping: bool | int
    validation_fraction: float
    average: bool
    solver: str
    passes: Passes | None
    n_jobs: int | None
    random_state: Seed

    classes_: np.ndarray
    held_out_accuracy_: float | None
    _weights: sp.csr_matrix  # a row for each feature, then for the bias and what else was added

    _STORED = ("classes_", "held_out_accuracy_")
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        "method": "solver",
        "evaluate_every": "passes.evaluate_every",
        "rho": "passes.rho",
        "label_parts": "passes.label_parts",
    }
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {
        "solver": {"block": "block_descent", "away": "frank_wolfe"}
    }

    @abc.abstractmethod
    def _best_labels(
        self, problem: Problem, weights: Weights, monitor: _core.Monitor | None = None
    ) -> np.ndarray:
        """Labels of highest score of all nodes; without a monitor it is that of no fit."""

    @abc.abstractmethod
    def _worst_score(self, problem: Problem, weights: Weights, monitor: _core.Monitor) -> float:
        """The highest score plus mistakes of any labels, summed over samples by their weight."""

    def _learn(self, problem: Problem, held_out: Problem | None = None) -> Weights:
        """Fit, and set the attributes that tell about it."""
        seed = as_seed(self.random_state)
        if held_out is None and self.early_stopping:
            problem, held_out = self._divide(problem, seed)
        self._refuse_large_loss(problem)
        at_zero = self.C * problem.worst_loss  # where the dual bound is 0
        progress = Progress(int(self.max_iter), n_done=0, objective=at_zero, gap=at_zero)
        learnt = self._watch(lambda: learn(self, problem, held_out, seed, progress), progress)
        self._keep_solution(learnt.solution, warns=False)
        if not learnt.ended_early:
            learnt.solution.warn_unless_converged(self, tol_of(self.tol))
        self.held_out_accuracy_ = learnt.held_out
        self._use_held_out(held_out, learnt.weights)
        return learnt.weights

    def _use_held_out(self, held_out: Problem | None, weights: Weights) -> None:
        """What else a model learns from held-out samples: nothing, unless a subclass says so."""

    def _divide(self, problem: Problem, seed: int) -> tuple[Problem, Problem]:
        """Training samples and held-out ones."""
        n_samples = len(problem.n_nodes)
        if n_samples < 2:
            raise ValueError(
                f"{type(self).__name__}: X must have at least 2 samples for early_stopping, got 1"
            )
        rng = np.random.default_rng(seed)
        train, held_out = split_rows(n_samples, self.validation_fraction, rng)
        return problem.take(train), problem.take(held_out)

    def _share_right(
        self, problem: Problem, weights: Weights, monitor: _core.Monitor | None = None
    ) -> float:
        """Share of nodes with the right label; 0 if there is none."""
        found = self._best_labels(problem, weights, monitor)
        return float(np.mean(found == problem.truth)) if len(found) else 0.0

    def _refuse_large_loss(self, problem: Problem) -> None:
        # Weights reach C times the sum of a feature's values; their squares are summed up.
        largest = float(np.abs(problem.X.data).max(initial=1.0))
        if problem.features is not None:
            largest = float(np.abs(problem.features.data).max(initial=largest))
        bound = self.C * max(problem.worst_loss, len(problem.truth)) * largest
        if not bound < 1e15:
            raise ParameterError(
                f"{type(self).__name__}.C times positions times the largest feature must be "
                f"below 1e15, got {bound:g}"
            )

    def _check_costs(self, costs: ArrayLike | None) -> np.ndarray | None:
        """What `fit` got as costs of labels: a table with a row for each true one."""
        if costs is None:
            return None
        n, head = len(self.classes_), f"{type(self).__name__}: costs"
        try:
            table = np.array(costs, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{head} must be a table of numbers, got {show(costs)}") from None
        if table.shape != (n, n):
            raise ValueError(f"{head} must have shape ({n}, {n}), got {table.shape}")
        if not (np.isfinite(table).all() and (table >= 0).all()):
            raise ValueError(f"{head} must be finite and not negative, got {show(costs)}")
        if table.diagonal().any():
            raise ValueError(f"{head} must be 0 where the label is the true one")
        if not table.any():
            raise ValueError(f"{head} must have a positive entry, got zeros")
        return table

    def _codes_of(self, labels: Sequence[Hashable], argument: str) -> np.ndarray:
        """Numbers of labels, -1 for those that the fit did not see."""
        given = np.fromiter(labels, dtype=object, count=len(labels))
        head = f"{type(self).__name__}: {argument}"
        try:
            found = find_positions(self.classes_.astype(object), given, argument=head)
        except TypeError as error:
            raise ValueError(f"{head} must hold hashable labels: {error}") from None
        return found.astype(np.int32)

    @property
    def coef_(self) -> sp.csc_matrix:
        """Weights of features, a row for each label."""
        return self._weights[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        return self._extra(0) if self.fit_intercept else np.zeros(len(self.classes_))

    def _extra(self, which: int) -> np.ndarray:
        """Weights of one of the columns behind the features."""
        return self._weights[self.n_features_in_ :][[which]].toarray()[0]

    def _to_bundle(self) -> State:
        return super()._to_bundle() | {"weights": self._weights}

    def _fields(self) -> Fields:
        return super()._fields() | {
            "classes_": Labels("classes"),
            "held_out_accuracy_": Number(or_none=True),
            "weights": Sparse("rows", "classes", finite=True),
        }

    def _restore_weights(self, state: State, n_extra: int) -> None:
        """Stored weights have a row for each feature, and some for what is added to them."""
        self._weights = state.pop("weights")
        n_rows, n_features = self._weights.shape[0], state["n_features_in_"]
        if n_rows != n_features + n_extra:
            raise ValueError(f"weights must have {n_features} + {n_extra} rows, got {n_rows}")
