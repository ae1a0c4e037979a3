"""Forecasts with bands, beside the loads that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import COLOURS, INK, PALE, dated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["BacktestDisplay", "ForecastDisplay"]


class ForecastDisplay(Display):
    """One series: its forecast, an interval around it, and the loads that came.

    Parameters
    ----------
    when : array-like of shape (n_steps,)
        Times, or positions.
    forecast : array-like of shape (n_steps,)
        Of these times.
    interval : pair of array-like of shape (n_steps,), optional
        Lower and upper ends.
    truth : array-like of shape (n_steps,), optional
        Loads that came.
    coverage : float, default=0.9
        That the interval was asked for.
    name : str, default="load"
        Of the series, with its unit.
    """

    def __init__(
        self,
        when: ArrayLike,
        forecast: ArrayLike,
        *,
        interval: tuple[ArrayLike, ArrayLike] | None = None,
        truth: ArrayLike | None = None,
        coverage: float = 0.9,
        name: str = "load",
    ):
        self.when, self.forecast = np.asarray(when), np.asarray(forecast, dtype=np.float64)
        self.interval = (
            None if interval is None else (np.asarray(interval[0]), np.asarray(interval[1]))
        )
        self.truth = None if truth is None else np.asarray(truth, dtype=np.float64)
        if self.truth is not None and len(self.truth) != len(self.forecast):
            raise ValueError(f"truth must have {len(self.forecast)} rows, got {len(self.truth)}")
        self.coverage, self.name = coverage, name

    def _size(self) -> tuple[float, float]:
        return 9.0, 4.0

    def _draw(self) -> None:
        ax, has_legend = self.ax_, self.ax_.get_legend() is not None
        _draw_band(ax, self.when, self.forecast, self.interval, self.coverage, not has_legend)
        if self.truth is not None:
            label = None if has_legend else "load"
            ax.plot(self.when, self.truth, color=INK, lw=1.1, label=label)
        _finish(ax, self.when, self.name)


class BacktestDisplay(Display):
    """Forecasts from many origins beside the loads that came, and the error of each lead.

    Parameters
    ----------
    times : array-like of shape (n_origins, horizon)
        Of the forecasts.
    truth, forecast, lower, upper : array-like of shape (n_origins, horizon)
        One series.
    leads : mapping with `lead` and `mape`
        The error in percent of the load, by lead.
    scores : mapping with `mape` and `coverage`
        Over everything.
    coverage : float
        That the intervals were asked for.
    """

    def __init__(
        self,
        times: np.ndarray,
        truth: np.ndarray,
        forecast: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        *,
        leads: Mapping[str, np.ndarray],
        scores: Mapping[str, float],
        coverage: float,
    ):
        self.times, self.truth, self.forecast = times, truth, forecast
        self.lower, self.upper, self.coverage = lower, upper, coverage
        self.leads, self.scores = leads, scores

    def _n_panels(self) -> int:
        return 2

    def _new_axes(self) -> np.ndarray:
        import matplotlib.pyplot as plt

        made = plt.subplots(1, 2, width_ratios=[3, 1], layout="constrained", figsize=(12, 3.6))
        return made[1]

    def _draw(self) -> None:
        series, leads = self.axes_[:2]
        parts = zip(self.times, self.forecast, self.lower, self.upper, self.truth, strict=True)
        for i, (when, forecast, low, high, truth) in enumerate(parts):
            _draw_band(series, when, forecast, (low, high), self.coverage, i == 0)
            series.plot(when, truth, color=INK, lw=1, label=None if i else "load")
        _finish(series, self.times, "load")
        leads.plot(self.leads["lead"], self.leads["mape"], color=COLOURS[0], marker="o", ms=3)
        leads.set_ylim(bottom=0)
        leads.set_xlim(0, 1.04 * self.leads["lead"][-1])
        leads.set(xlabel="lead, steps", ylabel="error, % of load")
        found = self.scores
        leads.set_title(f"error {found['mape']:.2f} %, {found['coverage']:.1%} inside", fontsize=10)


def _draw_band(
    ax: Axes,
    when: np.ndarray,
    forecast: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None,
    coverage: float,
    is_named: bool,
) -> None:
    if interval is not None:
        label = f"{coverage:.0%} interval" if is_named else None
        low, high = interval
        ax.fill_between(when, low, high, color=COLOURS[0], alpha=0.22, lw=0, label=label)
    ax.plot(when, forecast, color=COLOURS[0], label="forecast" if is_named else None)


def _finish(ax: Axes, when: np.ndarray, name: str) -> None:
    ax.set_ylabel(name)
    if np.asarray(when).dtype.kind == "M":
        dated(ax, when)
    else:
        ax.set_xlabel("step")
    ax.grid(axis="y", color=PALE, lw=0.5)
    ax.set_axisbelow(True)
    ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
