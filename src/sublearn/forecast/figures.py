"""How good forecasts and their intervals were, as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import d2_pinball_score, mean_pinball_loss

__all__ = ["d2_pinball", "figures_of"]


def d2_pinball(truth: np.ndarray, forecast: np.ndarray, share: float = 0.5) -> float:
    """1 minus the pinball loss of forecasts over that of the best constant, mean over columns.

    NaN in the truth are left out.
    """
    truth, forecast = (values.reshape(len(values), -1) for values in (truth, forecast))
    scores = []
    for own, found in zip(truth.T, forecast.T, strict=True):
        known = np.isfinite(own)
        scores.append(d2_pinball_score(own[known], found[known], alpha=share))
    return float(np.mean(scores))


def figures_of(parts: Sequence[np.ndarray], coverage: float) -> dict[str, float]:
    """Mean figures over loads that are known (NaN are not).

    `parts` are loads, forecasts, lower and upper ends, all of one shape. `mape` is the error in
    percent of the loads, weighted by them; `pinball` is the mean loss of both ends of the interval,
    `width` in percent of the loads.
    """
    known = np.isfinite(parts[0])
    y, f, low, high = (values[known] for values in parts)
    size, beyond = float(np.abs(y).sum()) or 1.0, (1.0 - coverage) / 2.0
    pinball = [
        mean_pinball_loss(y, low, alpha=beyond),
        mean_pinball_loss(y, high, alpha=1 - beyond),
    ]
    return {
        "mae": float(np.abs(y - f).mean()),
        "rmse": float(np.sqrt(((y - f) ** 2).mean())),
        "mape": 100 * float(np.abs(y - f).sum()) / size,
        "bias": 100 * float((f - y).sum()) / size,
        "coverage": float(((low <= y) & (y <= high)).mean()),
        "width": 100 * float((high - low).sum()) / size,
        "pinball": float(np.mean(pinball)),
    }
