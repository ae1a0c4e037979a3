"""What the structured estimators share: running a fit, what it leaves behind, saving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sublearn.errors import ParameterError
from sublearn.io.fields import FEATURES, FIGURES, Labels, Number, Sparse
from sublearn.io.models import SavedModel
from sublearn.metrics.names import find_positions
from sublearn.structured.learning import Learnt, PassProgress, Plan, Problem, Weights, learn
from sublearn.trace import Callback, Trace, watch
from sublearn.validation import (
    Boolean,
    CallableOrNone,
    Interval,
    JobCount,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    Verbosity,
    as_seed,
)

__all__ = ["LEARNING_RULES", "StructuredModel", "split_samples"]

#: Parameters of learning that all structured estimators have.
LEARNING_RULES: dict[str, Rule] = {
    "C": Positive(float),
    "fit_intercept": Boolean(),
    "tol": Positive(float),
    "max_iter": Positive(int),
    "evaluate_every": NonNegative(int),
    "early_stopping": Boolean(),
    "validation_fraction": Interval(float, 0, 1, "neither"),
    "n_iter_no_change": Positive(int),
    "average": Boolean(),
    "method": OneOf("block", "away"),
    "rho": OrNone(Positive(float)),
    "label_parts": Positive(int),
    "n_jobs": JobCount(),
    "random_state": RandomState(),
    "verbose": Verbosity(),
    "callback": CallableOrNone(),
}


def split_samples(n_samples: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out samples, both increasing; at least one of each."""
    n_held_out = min(max(round(fraction * n_samples), 1), n_samples - 1)
    order = np.random.default_rng(seed).permutation(n_samples)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


class StructuredModel(SavedModel, BaseEstimator):
    """A structural SVM: subclasses read the data and decode, this class learns and remembers."""

    C: float
    tol: float
    max_iter: int
    evaluate_every: int
    n_iter_no_change: int
    average: bool
    method: str
    rho: float | None
    label_parts: int
    verbose: int
    callback: Callback | None
    random_state: Any

    classes_: np.ndarray
    objective_: float
    certificate_: float
    n_iter_: int
    held_out_accuracy_: float | None
    trace_: Trace

    _STORED: ClassVar[tuple[str, ...]] = (
        "classes_", "objective_", "certificate_", "n_iter_", "n_features_in_", "held_out_accuracy_",
    )  # fmt: skip

    def _learn(
        self,
        problem: Problem,
        seed: int,
        primal: Callable[[Weights, Any], float],
        held_out: Callable[[Weights, Any], float] | None,
    ) -> Learnt:
        """Fit, and set the attributes that tell about it.

        `primal` and `held_out` get the monitor of the core beside the weights.
        """
        self._refuse_large_loss(problem)
        progress = PassProgress(self.C * len(problem.truth))
        plan = Plan(
            C=float(self.C),
            rho=None if self.rho is None else float(self.rho),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            evaluate_every=int(self.evaluate_every),
            patience=None if held_out is None else int(self.n_iter_no_change),
            average=bool(self.average),
            method=self.method,
            n_parts=int(self.label_parts),
            seed=seed,
        )
        judge = None if held_out is None else lambda w: held_out(w, progress.core)
        learnt: Learnt = watch(
            lambda: learn(problem, plan, lambda w: primal(w, progress.core), judge, progress),
            progress,
            n_total=plan.max_iter,
            callback=self.callback,
            verbose=self.verbose,
            title="GDMM",
        )
        self.objective_ = learnt.solution.objective
        self.certificate_ = learnt.solution.certificate
        self.n_iter_ = learnt.solution.n_iter
        self.trace_ = learnt.solution.trace
        self.held_out_accuracy_ = learnt.held_out
        return learnt

    def _refuse_large_loss(self, problem: Problem) -> None:
        # Weights reach C times the sum of a feature's values; their squares are summed up.
        largest = float(np.abs(problem.X.data).max(initial=1.0))
        if not self.C * len(problem.truth) * largest < 1e15:
            raise ParameterError(
                f"{type(self).__name__}.C times positions times the largest feature must be "
                f"below 1e15, got {self.C * len(problem.truth) * largest:g}"
            )

    def _seed(self) -> int:
        return as_seed(self.random_state)

    def _codes_of(self, tags: list[Any], argument: str) -> np.ndarray:
        """Numbers of tags, -1 for those that the fit did not see."""
        given = np.fromiter(tags, dtype=object, count=len(tags))
        head = f"{type(self).__name__}: {argument}"
        try:
            return find_positions(self.classes_.astype(object), given, argument=head)
        except TypeError as error:
            raise ValueError(f"{head} must hold hashable tags: {error}") from None

    def _to_bundle(self) -> dict[str, Any]:
        trace = {name: self.trace_[name].tolist() for name in self.trace_.columns}
        state = {name: getattr(self, name) for name in self._STORED} | {"trace_": trace}
        if hasattr(self, "feature_names_in_"):
            state["feature_names_in_"] = self.feature_names_in_
        return state

    def _fields(self) -> Any:
        return {
            **FEATURES,
            "classes_": Labels("classes"),
            "held_out_accuracy_": Number(or_none=True),
            "weights": Sparse("rows", "classes", finite=True),
            **FIGURES,
        }

    def _refuse_other_rows(self, state: dict[str, Any], n_extra: int) -> None:
        """Stored weights have a row for each feature, and some for what is added to them."""
        n_rows, n_features = state["weights"].shape[0], state["n_features_in_"]
        if n_rows != n_features + n_extra:
            raise ValueError(f"weights must have {n_features} + {n_extra} rows, got {n_rows}")

    def _restore(self, state: dict[str, Any]) -> None:
        self.trace_ = Trace(state.pop("trace_"))
        super()._restore(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_") and hasattr(self, "trace_")
