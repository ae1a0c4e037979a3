"""Which components a new row has: from its neighbours, a classifier, or the shares of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from sublearn.io.fields import Floats, check_fields
from sublearn.validation import OneOf, Positive

__all__ = ["ClassifierGate", "NeighbourGate", "ShareGate", "make_gate", "restore_gate"]


@dataclass(frozen=True)
class NeighbourGate:
    """The mean of the nearest rows' codes."""

    rows: np.ndarray
    codes: np.ndarray
    n_neighbors: int

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each component for each row."""
        n_neighbors = min(self.n_neighbors, len(self.rows))
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(self.rows)
        nearest = search.kneighbors(rows, return_distance=False)
        return self.codes[nearest].mean(axis=1)


@dataclass(frozen=True)
class ClassifierGate:
    """Multinomial logistic regression on the codes that occur."""

    weights_: np.ndarray  # (n_columns + 1, n_codes), the last row constants
    codes: np.ndarray  # (n_codes, n_components)

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each component for each row."""
        scores = rows @ self.weights_[:-1] + self.weights_[-1]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (chances / chances.sum(axis=1, keepdims=True)) @ self.codes


@dataclass(frozen=True)
class ShareGate:
    """The mean code, for every row."""

    codes: np.ndarray  # (1, n_components)

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each component for each row."""
        return np.repeat(self.codes, len(rows), axis=0)


_FIELDS: dict[str, dict[str, Any]] = {
    "neighbours": {
        "rows": Floats("rows", "columns", finite=True),
        "codes": Floats("rows", "components"),
        "n_neighbors": Positive(int),
    },
    "classifier": {
        "weights_": Floats("columns+1", "codes"),
        "codes": Floats("codes", "components"),
    },
    "shares": {"codes": Floats(1, "components")},
}
_GATES = {"neighbours": NeighbourGate, "classifier": ClassifierGate, "shares": ShareGate}


def make_gate(kind: str, rows: np.ndarray, codes: np.ndarray, n_neighbors: int) -> Any:
    """A gate from the rows of the fit and their codes."""
    if kind == "neighbours":
        return NeighbourGate(rows, codes, n_neighbors)
    patterns, which = np.unique(np.round(codes), axis=0, return_inverse=True)
    if kind == "shares" or len(patterns) == 1:
        return ShareGate(codes.mean(axis=0, keepdims=True))
    model = LogisticRegression(max_iter=1000).fit(rows, which.ravel())
    table = np.vstack([model.coef_.T, model.intercept_])
    if len(patterns) == 2:  # one score for two classes
        table = np.hstack([np.zeros_like(table), table])
    return ClassifierGate(table, patterns)


def gate_state(gate: Any) -> dict[str, Any]:
    """What a saved model keeps."""
    kind = next(name for name, cls in _GATES.items() if isinstance(gate, cls))
    return {"kind": kind, **vars(gate)}


def restore_gate(state: dict[str, Any], sizes: Mapping[str, int]) -> Any:
    """Inverse of `gate_state`, for ``sizes["components"]`` and rows of ``sizes["columns"]``."""
    kind = state.pop("kind", None)
    if not isinstance(kind, str) or kind not in _GATES:
        raise ValueError(f"gate.kind must be {OneOf(*_GATES)}, got {kind!r}")
    found = check_fields(state, _FIELDS[kind], sizes)
    if kind == "neighbours" and found["rows"] == 0:
        raise ValueError("gate.rows must have at least one row, got none")
    return _GATES[kind](**state)
