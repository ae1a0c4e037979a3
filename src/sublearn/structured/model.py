"""What the structured estimators share: running a fit, what it leaves behind, saving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sublearn.errors import ParameterError
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import Labels, Number, Sparse
from sublearn.metrics.names import find_positions
from sublearn.structured.learning import Learnt, Plan, Problem, Weights, learn
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_seed,
)

__all__ = ["LEARNING_RULES", "StructuredModel"]

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
    **RUN_RULES,
}


class StructuredModel(FittedModel, BaseEstimator):
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
    random_state: Any

    classes_: np.ndarray
    held_out_accuracy_: float | None

    _STORED = ("classes_", "held_out_accuracy_")

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
        at_zero = self.C * len(problem.truth)  # where the dual bound is 0
        progress = Progress(plan.max_iter, n_done=0, objective=at_zero, gap=at_zero)
        judge = None if held_out is None else lambda w: held_out(w, progress.core)
        learnt = self._watch(
            lambda: learn(problem, plan, lambda w: primal(w, progress.core), judge, progress),
            progress,
        )
        self._keep_solution(learnt.solution, warns=not learnt.ended_early)
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

    def _fields(self) -> Any:
        return super()._fields() | {
            "classes_": Labels("classes"),
            "held_out_accuracy_": Number(or_none=True),
            "weights": Sparse("rows", "classes", finite=True),
        }

    def _refuse_other_rows(self, state: dict[str, Any], n_extra: int) -> None:
        """Stored weights have a row for each feature, and some for what is added to them."""
        n_rows, n_features = state["weights"].shape[0], state["n_features_in_"]
        if n_rows != n_features + n_extra:
            raise ValueError(f"weights must have {n_features} + {n_extra} rows, got {n_rows}")
