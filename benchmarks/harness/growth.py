"""How cost grows with size: the exponent b of cost = a * size^b."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["exponent", "fit_exponent"]


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of the least-squares line through (log size, log cost).

    >>> round(fit_exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)


def exponent(sizes: Sequence[float], costs: Sequence[float | None]) -> float | None:
    """The same over the sizes whose cost is known and positive, None with fewer than two."""
    known = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if cost]
    return fit_exponent(*zip(*known, strict=True)) if len(known) > 1 else None
