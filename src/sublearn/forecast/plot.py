"""A forecast with its interval, against the truth where it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.errors import needs_extra
from sublearn.forecast.series import LoadsLike
from sublearn.validation import Interval, check_argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sublearn.forecast.forecaster import LoadForecaster

__all__ = ["plot_forecast"]


def plot_forecast(
    model: LoadForecaster,
    horizon: int | None = None,
    X: LoadsLike | None = None,
    *,
    y: LoadsLike | None = None,
    truth: LoadsLike | None = None,
    coverage: float = 0.9,
    series: int = 0,
    color: str = "C0",
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted forecaster's next steps with matplotlib.

    Parameters
    ----------
    model : LoadForecaster
        Fitted.
    horizon, X, y
        As for `LoadForecaster.predict`.
    truth : array-like, optional
        Loads that came, drawn over the forecast.
    coverage : float, default=0.9
        Of the shaded interval, where the model was fitted with intervals.
    series : int, default=0
        Which series, counted from 0.
    color : str, default="C0"
        Of forecast and interval.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    with needs_extra("plot_forecast", "plot"):
        import matplotlib.pyplot as plt
    check_is_fitted(model)
    check_argument("plot_forecast.series", series, Interval(int, 0, model.n_series_in_ - 1))
    forecast = model.predict(horizon, X, y=y)
    loads = None if truth is None else _column(truth, series)
    if loads is not None and len(loads) != len(forecast):
        raise ValueError(f"truth must have {len(forecast)} rows, got {len(loads)}")
    ax = plt.subplots(figsize=(9, 4))[1] if ax is None else ax
    when = getattr(forecast, "index", np.arange(len(forecast)))
    if model.intervals:
        low, high = model.predict_interval(horizon, X, coverage=coverage, y=y)
        ends = (_column(low, series), _column(high, series))
        label = f"{coverage:.0%} interval"
        ax.fill_between(when, *ends, color=color, alpha=0.25, lw=0, label=label)
    ax.plot(when, _column(forecast, series), color=color, label="forecast")
    if loads is not None:
        ax.plot(when, loads, color="black", lw=1, label="load")
    ax.set_ylabel("load")
    ax.legend(frameon=False)
    return ax


def _column(values: LoadsLike, series: int) -> np.ndarray:
    table = np.asarray(values, dtype=np.float64)
    return table if table.ndim == 1 else table[:, series]
