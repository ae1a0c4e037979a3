"""Rows that a block of leads learns and forecasts from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.embedding import Calendar, Embedding

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """Design rows, what is added to a forecast of them, and their times of day in [0, 1).

    The first `n_loads` columns are in units of the load. The first `n_varying`, loads and exogenous
    ones, may have a linear coefficient for each time of day. `linear` are the columns that have one
    at all: a weekly profile knows the day and the week already, and on a few weeks their columns
    would only fit its errors.
    """

    design: np.ndarray
    base: np.ndarray
    times: np.ndarray
    n_loads: int
    n_varying: int
    linear: np.ndarray

    @classmethod
    def make(
        cls, y: np.ndarray, X: np.ndarray | None, embedding: Embedding, calendar: Calendar,
        positions: np.ndarray, leads: np.ndarray, baseline: Baseline, first_position: int = 0,
    ) -> Rows:  # fmt: skip
        """Loads in a row, and the target, are measured from the baseline.

        `positions` index y, whose first value stands at `first_position` of the clock.
        """
        loads, base = baseline.columns(y, embedding, positions, leads)
        parts = [loads]
        if X is not None:
            parts.append(embedding.exogenous(X, positions))
        n_varying = sum(part.shape[1] for part in parts)
        parts += [leads[:, None].astype(np.float64), calendar.columns(positions + first_position)]
        design = np.hstack(parts)
        linear = np.ones(design.shape[1], dtype=bool)
        if baseline.weeks:
            linear[n_varying + 1 : n_varying + 1 + calendar.n_of_week] = False
        times = calendar.times_of_day(positions + first_position)
        return cls(design, base, times, loads.shape[1], n_varying, linear)

    @property
    def usable(self) -> np.ndarray:
        """True for rows without a gap."""
        found: np.ndarray = np.isfinite(self.design).all(axis=1) & np.isfinite(self.base)
        return found

    def only(self, chosen: np.ndarray) -> Rows:
        """Some of the rows."""
        return replace(
            self, design=self.design[chosen], base=self.base[chosen], times=self.times[chosen]
        )
