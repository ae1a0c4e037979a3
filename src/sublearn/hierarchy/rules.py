"""Rules for parameters that only estimators over a taxonomy have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sublearn.hierarchy.cost_model import NODE_SOLVERS
from sublearn.validation import Rule
from sublearn.validation.values import is_finite_number

__all__ = ["HasScores", "IsWeights", "SolverNames", "Thresholds"]


class IsWeights(Rule):
    """A non-negative number, or several; how many is checked against the taxonomy."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        try:
            numbers = np.asarray(value)
        except ValueError:  # rows of several lengths
            return False
        is_numeric = numbers.dtype.kind in "iuf" and numbers.ndim < 2
        return is_numeric and bool(np.isfinite(numbers).all() and (numbers >= 0).all())

    def __str__(self) -> str:
        return "a non-negative number or an array of one for each label"


class HasScores(Rule):
    """An estimator whose classes have scores, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None:
            return True
        has_scores = hasattr(value, "predict_proba") or hasattr(value, "decision_function")
        return hasattr(value, "fit") and has_scores and not isinstance(value, type)

    def __str__(self) -> str:
        return "an estimator with fit and with predict_proba or decision_function, or None"


class SolverNames(Rule):
    """A solver, or one for each level."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        names = value if isinstance(value, (list, tuple)) else [value]
        return len(names) > 0 and all(isinstance(v, str) and v in NODE_SOLVERS for v in names)

    def __str__(self) -> str:
        return f"one of {', '.join(NODE_SOLVERS)}, or a list of them for the levels from the top"


class Thresholds(Rule):
    """A probability, or a mapping from labels to probabilities."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        numbers = value.values() if isinstance(value, Mapping) else [value]
        return all(is_finite_number(v) and 0 <= v <= 1 for v in numbers)

    def __str__(self) -> str:
        return "a number from 0 to 1 or a mapping from labels to such numbers"
