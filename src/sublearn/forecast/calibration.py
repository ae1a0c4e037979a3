"""Residuals of rows that a model had not learned from: intervals, and the level of a quantile.

A model errs more on new rows than on its own. Quantiles of residuals it has not seen (split
conformal) say how far, and as `update` brings new ones the oldest go, so that intervals follow a
series that becomes harder or easier to forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Residuals", "conformal", "conformal_level"]

_FEWEST_ALIKE = 40  # residuals at one time of day, to take that time's alone


@dataclass(frozen=True)
class Residuals:
    """Truth minus forecast, newest last, and the times of day of the rows."""

    values: np.ndarray
    phases: np.ndarray

    @classmethod
    def none(cls) -> Residuals:
        """Of a model that kept no rows back."""
        return cls(np.empty(0), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.values)

    def followed_by(self, values: np.ndarray, phases: np.ndarray) -> Residuals:
        """With newer ones, as many of all as before."""
        if len(self) == 0:
            return self
        both = np.append(self.values, values), np.append(self.phases, phases)
        return Residuals(both[0][-len(self) :], both[1][-len(self) :])

    def interval(self, phase: int, coverage: float) -> tuple[float, float]:
        """Distances below and above a forecast at this time of day that hold the truth so often."""
        alike = self.values[self.phases == phase]
        return conformal(alike if len(alike) >= _FEWEST_ALIKE else self.values, coverage)


def conformal(residuals: np.ndarray, coverage: float) -> tuple[float, float]:
    """Quantiles (1 - coverage) / 2 from either end, each moved out by one residual of n + 1."""
    beyond = (1.0 - coverage) / 2.0
    return -conformal_level(-residuals, 1.0 - beyond), conformal_level(residuals, 1.0 - beyond)


def conformal_level(residuals: np.ndarray, share: float) -> float:
    """What a new residual exceeds with probability 1 - share at most, if it is like the others.

    >>> conformal_level(np.arange(1.0, 10.0), 0.8)
    8.0
    """
    n = len(residuals)
    rank = min(max(int(np.ceil((n + 1) * share - 1e-9)), 1), n)
    return float(np.sort(residuals)[rank - 1])
