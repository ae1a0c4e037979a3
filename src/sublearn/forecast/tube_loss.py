"""The losses of a load forecast: zero inside a tube around it, rising with a slope on each side.

For a residual r = y - f,

    l(r) = upper_slope * max(0, r - upper) + lower_slope * max(0, lower - r),     lower <= upper.

The shifted epsilon-insensitive loss (2.4.30) has the tube [-(epsilon + eta), epsilon - eta] and
both slopes 1; the quantile loss has an empty tube and the slopes q and 1 - q.

Here is all that a forecast is judged by. The core has the slope once more, since algorithm 8 asks
for it row by row (losses/tube.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["TubeLoss"]


@dataclass(frozen=True)
class TubeLoss:
    """A piecewise linear loss of the residual."""

    lower: float
    upper: float
    lower_slope: float = 1.0
    upper_slope: float = 1.0
    share_below: float | None = None  # of a quantile loss: the quantile

    @classmethod
    def shifted(cls, epsilon: float, eta: float) -> TubeLoss:
        """Equation (2.4.32): too low costs from epsilon - eta on, too high from epsilon + eta."""
        return cls(-(epsilon + eta), epsilon - eta)

    @classmethod
    def quantile(cls, q: float) -> TubeLoss:
        """Its minimiser leaves a share q of the truth below the forecast."""
        return cls(0.0, 0.0, 1.0 - q, q, q)

    def values(self, r: np.ndarray) -> np.ndarray:
        """Loss of each residual."""
        return self.upper_slope * np.maximum(r - self.upper, 0.0) + self.lower_slope * np.maximum(
            self.lower - r, 0.0
        )

    def conjugate(self, a: np.ndarray) -> np.ndarray:
        """sup over r of a r - l(r), for a in [-lower_slope, upper_slope]."""
        return np.where(a > 0, a * self.upper, a * self.lower)

    def slopes(self, r: np.ndarray) -> np.ndarray:
        """A subgradient at each residual; 0 in the tube and on its border."""
        return self.upper_slope * (r > self.upper) - self.lower_slope * (r < self.lower)
