"""Rows that a block of leads learns and forecasts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.embedding import Calendar, Embedding

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """Design rows at positions of a series, and what is added to a forecast of them."""

    design: np.ndarray
    base: np.ndarray

    @classmethod
    def make(
        cls, y: np.ndarray, X: np.ndarray | None, embedding: Embedding, calendar: Calendar,
        positions: np.ndarray, leads: np.ndarray, baseline: Baseline, first_position: int = 0,
    ) -> Rows:  # fmt: skip
        """Loads in a row, and the target, are measured from the baseline.

        `positions` index y, whose first value stands at `first_position` of the clock.
        """
        loads, base = baseline.columns(y, embedding, positions, leads)
        parts = [loads, leads[:, None].astype(np.float64)]
        if X is not None:
            parts.append(embedding.exogenous(X, positions))
        parts.append(calendar.columns(positions + first_position))
        return cls(np.hstack(parts), base)

    @property
    def usable(self) -> np.ndarray:
        """True for rows without a gap."""
        found: np.ndarray = np.isfinite(self.design).all(axis=1) & np.isfinite(self.base)
        return found

    def only(self, chosen: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(self.design[chosen], self.base[chosen])
