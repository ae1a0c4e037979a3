"""Which components a new row has: from its neighbours, a classifier, or the shares of all rows."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from sublearn.io.fields import Fields, Floats
from sublearn.latent.stored_part import StoredPart
from sublearn.typing import State
from sublearn.validation import OneOf, Positive, Rule, Settings

__all__ = ["FittedGate", "Gate", "make_gate", "restore_gate"]


@dataclass(frozen=True)
class Gate(Settings):
    """How :meth:`MixLassoRegressor.predict` weighs components for a new row.

    Parameters
    ----------
    kind : {"neighbours", "classifier", "shares"}, default="neighbours"
        By the mean of its neighbours in the data, by logistic regression, or by the shares of all
        rows.
    n_neighbors : int, default=10
        How many neighbours.
    """

    kind: str = "neighbours"
    n_neighbors: int = 10

    _rules: ClassVar[Mapping[str, Rule]] = {
        "kind": OneOf("neighbours", "classifier", "shares"),
        "n_neighbors": Positive(int),
    }


class FittedGate(StoredPart, abc.ABC):
    """A gate that knows the rows of the fit; `codes` are theirs, or those that occur."""

    codes: np.ndarray

    def state(self) -> State:
        """What a saved model keeps."""
        kind = next(name for name, cls in _GATES.items() if isinstance(self, cls))
        return {"kind": kind, **super().state()}

    @abc.abstractmethod
    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each component for each row."""


@dataclass(frozen=True)
class _NeighbourGate(FittedGate):
    """The mean of the nearest rows' codes."""

    rows: np.ndarray
    codes: np.ndarray
    n_neighbors: int

    FIELDS: ClassVar[Fields] = {
        "rows": Floats("rows", "columns", finite=True),
        "codes": Floats("rows", "components"),
        "n_neighbors": Positive(int),
    }

    def weights(self, rows: np.ndarray) -> np.ndarray:
        n_neighbors = min(self.n_neighbors, len(self.rows))
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(self.rows)
        nearest = search.kneighbors(rows, return_distance=False)
        return self.codes[nearest].mean(axis=1)


@dataclass(frozen=True)
class _ClassifierGate(FittedGate):
    """Multinomial logistic regression on the codes that occur."""

    weights_: np.ndarray  # (n_columns + 1, n_codes), the last row constants
    codes: np.ndarray  # (n_codes, n_components)

    FIELDS: ClassVar[Fields] = {
        "weights_": Floats("columns+1", "codes"),
        "codes": Floats("codes", "components"),
    }

    def weights(self, rows: np.ndarray) -> np.ndarray:
        return softmax(rows @ self.weights_[:-1] + self.weights_[-1], axis=1) @ self.codes


@dataclass(frozen=True)
class _ShareGate(FittedGate):
    """The mean code, for every row."""

    codes: np.ndarray  # (1, n_components)

    FIELDS: ClassVar[Fields] = {"codes": Floats(1, "components")}

    def weights(self, rows: np.ndarray) -> np.ndarray:
        return np.repeat(self.codes, len(rows), axis=0)


_GATES: dict[str, type[FittedGate]] = {
    "neighbours": _NeighbourGate,
    "classifier": _ClassifierGate,
    "shares": _ShareGate,
}


def make_gate(gate: Gate, rows: np.ndarray, codes: np.ndarray) -> FittedGate:
    """A gate from the rows of the fit and their codes."""
    if gate.kind == "neighbours":
        return _NeighbourGate(rows, codes, int(gate.n_neighbors))
    patterns, which = np.unique(np.round(codes), axis=0, return_inverse=True)
    if gate.kind == "shares" or len(patterns) == 1:
        return _ShareGate(codes.mean(axis=0, keepdims=True))
    model = LogisticRegression(max_iter=1000).fit(rows, which.ravel())
    table = np.vstack([model.coef_.T, model.intercept_])
    if len(patterns) == 2:  # one score for two classes
        table = np.hstack([np.zeros_like(table), table])
    return _ClassifierGate(table, patterns)


def restore_gate(state: State, sizes: Mapping[str, int]) -> FittedGate:
    """Inverse of `state`, for ``sizes["components"]`` and rows of ``sizes["columns"]``."""
    kind = state.pop("kind", None)
    if not isinstance(kind, str) or kind not in _GATES:
        raise ValueError(f"gate.kind must be {OneOf(*_GATES)}, got {kind!r}")
    gate = _GATES[kind].restored(state, sizes)
    if len(gate.codes) == 0:
        raise ValueError("gate.codes must have at least one row, got none")
    return gate
