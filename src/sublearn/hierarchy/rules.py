"""Rules for parameters that only estimators over a taxonomy have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sublearn.hierarchy.cost_model import NODE_SOLVERS
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.validation import Rule
from sublearn.validation.values import is_finite_number

__all__ = ["HasScores", "IsNumbers", "IsTaxonomy", "SolverNames", "Thresholds"]


class IsTaxonomy(Rule):
    """A taxonomy, or None."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or isinstance(value, Taxonomy)

    def __str__(self) -> str:
        return "a Taxonomy or None"


class IsNumbers(Rule):
    """A number, or numbers; how many and of which sign is checked against the taxonomy."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)) or value is None:
            return False
        return is_finite_number(value) or np.ndim(value) == 1

    def __str__(self) -> str:
        return "a number or an array of one number per label"


class HasScores(Rule):
    """An estimator whose classes have scores, or None."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        if value is None:
            return True
        has_scores = hasattr(value, "predict_proba") or hasattr(value, "decision_function")
        return hasattr(value, "fit") and has_scores and not isinstance(value, type)

    def __str__(self) -> str:
        return "an estimator with fit and with predict_proba or decision_function, or None"


class SolverNames(Rule):
    """A solver, or one for each level."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, str):
            return value in NODE_SOLVERS
        is_list = isinstance(value, (list, tuple)) and len(value) > 0
        return is_list and all(isinstance(v, str) and v in NODE_SOLVERS for v in value)

    def __str__(self) -> str:
        return f"one of {', '.join(NODE_SOLVERS)}, or a list of them for the levels from the top"


class Thresholds(Rule):
    """A probability, or a mapping from labels to probabilities."""

    def accepts(self, value: Any) -> bool:
        """Whether `value` obeys the rule."""
        numbers = value.values() if isinstance(value, Mapping) else [value]
        return all(is_finite_number(v) and 0 <= v <= 1 for v in numbers)

    def __str__(self) -> str:
        return "a number from 0 to 1 or a mapping from labels to such numbers"
