"""How a forecaster would have done: forecasts from many origins beside the loads that came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from sublearn.errors import needs_extra
from sublearn.forecast.figures import d2_pinball, figures_of
from sublearn.forecast.series import LoadSeries, LoadsLike, check_series, exogenous_grid
from sublearn.forecast.settings import LoadFeatures
from sublearn.interruption import check
from sublearn.trace import Trace
from sublearn.validation import Interval, OrNone, Positive, Rule, check_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sublearn.forecast.forecaster import LoadForecaster

__all__ = ["Backtest", "backtest"]

_RULES: dict[str, Rule] = {
    "n_origins": Positive(int),
    "step": OrNone(Positive(int)),
    "coverage": Interval(float, 0, 1, "neither"),
    "refit_every": OrNone(Positive(int)),
}


@dataclass(frozen=True)
class Backtest:
    """Forecasts from several origins beside the loads that came; printing it shows the figures.

    Parameters
    ----------
    times : ndarray of shape (n_origins, horizon)
        Times of the forecasts as datetime64 (in UTC if the series has a zone), or positions.
    truth, forecast, lower, upper : ndarray of shape (n_origins, horizon, n_series)
        Loads, NaN in gaps; forecasts; ends of the intervals.
    coverage : float
        That the intervals were asked for.
    """

    times: np.ndarray
    truth: np.ndarray
    forecast: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    coverage: float

    @property
    def scores(self) -> dict[str, float]:
        """Figures over all origins and leads.

        mae, rmse; mape, bias, width in percent of the load; coverage of the intervals; pinball,
        the mean loss of their two ends; d2, the share of the absolute error of the best constant
        that forecasts explain.
        """
        n_series = self.truth.shape[2]
        truth, forecast = (own.reshape(-1, n_series) for own in (self.truth, self.forecast))
        return figures_of(self._parts(), self.coverage) | {"d2": d2_pinball(truth, forecast)}

    @property
    def table(self) -> Trace:
        """The figures of each lead; ``pandas.DataFrame(result.table.rows())`` makes a frame."""
        rows = []
        for lead in range(self.truth.shape[1]):
            if np.isfinite(self.truth[:, lead]).any():
                own = figures_of([values[:, lead] for values in self._parts()], self.coverage)
                rows.append({"lead": float(lead + 1), **own})
        return Trace({name: [row[name] for row in rows] for name in rows[0]})

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in self.scores.items())
        n_origins, horizon, n_series = self.truth.shape
        return f"{n_origins} origins, {horizon} leads, {n_series} series: {figures}"

    def plot(self, axes: tuple[Axes, Axes] | None = None, *, series: int = 0) -> tuple[Axes, Axes]:
        """Draw forecasts and loads, and the error of each lead.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional
            Where to draw.
        series : int, default=0
            Which series the first picture shows, counted from 0.

        Returns
        -------
        pair of matplotlib axes
        """
        with needs_extra("Backtest.plot", "plot"):
            import matplotlib.pyplot as plt
        if axes is None:
            left, right = plt.subplots(
                1, 2, width_ratios=[3, 1], layout="constrained", figsize=(12, 3.6)
            )[1]
            axes = (left, right)
        self._draw_series(axes[0], series)
        self._draw_leads(axes[1])
        return axes

    def _draw_series(self, ax: Axes, series: int) -> None:
        for i, when in enumerate(self.times):
            names = {} if i else {"band": f"{self.coverage:.0%} interval", "line": "forecast"}
            ends = self.lower[i, :, series], self.upper[i, :, series]
            ax.fill_between(when, *ends, color="C0", alpha=0.25, lw=0, label=names.get("band"))
            ax.plot(when, self.forecast[i, :, series], "C0", label=names.get("line"))
            label = None if i else "load"
            ax.plot(when, self.truth[i, :, series], "k", lw=1, label=label)
        ax.set_ylabel("load")
        if self.times.dtype.kind == "M":
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator()
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))

    def _draw_leads(self, ax: Axes) -> None:
        table, scores = self.table, self.scores
        ax.plot(table["lead"], table["mape"], "C0o-", ms=3)
        ax.set_ylim(bottom=0)
        ax.set_xlim(0, 1.04 * table["lead"][-1])
        ax.set_xlabel("lead, steps")
        ax.set_ylabel("error, % of load")
        ax.set_title(f"error {scores['mape']:.2f} %, {scores['coverage']:.1%} inside", fontsize=10)

    def _parts(self) -> tuple[np.ndarray, ...]:
        return self.truth, self.forecast, self.lower, self.upper


def backtest(
    model: LoadForecaster,
    y: LoadsLike,
    X: LoadsLike | None = None,
    *,
    n_origins: int = 28,
    step: int | None = None,
    coverage: float = 0.9,
    refit_every: int | None = None,
) -> Backtest:
    """Fit to the beginning of a series, then forecast, look at the loads that came, and go on.

    A forecast never sees loads after its origin. Exogenous columns of the hours ahead are those of
    X: measured temperatures make forecasts look better than forecast ones will.

    Parameters
    ----------
    model : LoadForecaster
        With `intervals`; it is copied, not changed.
    y, X
        As for `LoadForecaster.fit`; the last origins and what follows them are forecast.
    n_origins : int, default=28
        Number of origins.
    step : int, optional
        Steps from one origin to the next; by default the horizon, so that each load is forecast
        once.
    coverage : float, default=0.9
        Of the intervals.
    refit_every : int, optional
        Fit anew after so many origins; by default never, `update` takes the new loads in.

    Returns
    -------
    Backtest
    """
    check_arguments("backtest", locals(), _RULES)
    series = check_series(y, LoadFeatures.of(model.features).steps_per_day, "backtest.y")
    grid = None if X is None else exogenous_grid(X, series, "backtest.X")
    horizon = series.clock.day_ahead if model.horizon is None else int(model.horizon)
    step = horizon if step is None else step
    first = len(series.values) - horizon - step * (n_origins - 1)
    if first < 1:
        raise ValueError(
            f"backtest.y must have more than {horizon + step * (n_origins - 1)} steps for "
            f"{n_origins} origins, got {len(series.values)}"
        )
    parts = _Parts(series, grid)
    fitted, found = clone(model).fit(*parts(0, first)), []
    for i in range(n_origins):
        check()
        origin = first + i * step
        if i and refit_every is not None and i % refit_every == 0:
            fitted = clone(model).fit(*parts(0, origin))
        elif i:
            fitted.update(*parts(origin - step, origin))
        ahead = None if grid is None else grid[origin : origin + horizon]
        ends = fitted.predict_interval(X=ahead, coverage=coverage)
        found.append([np.asarray(own) for own in (fitted.predict(X=ahead), *ends)])
    return _result(series, horizon, first + step * np.arange(n_origins), found, coverage)


@dataclass(frozen=True)
class _Parts:
    """A series and its exogenous columns, of which parts are passed to a forecaster."""

    series: LoadSeries
    X: np.ndarray | None

    def __call__(self, begin: int, end: int) -> tuple[LoadsLike, np.ndarray | None]:
        own = self.series
        loads = own.shape.forecast(own.values[begin:end], own.clock, begin)
        return loads, None if self.X is None else self.X[begin:end]


def _result(
    series: LoadSeries, horizon: int, origins: np.ndarray, found: list[list[np.ndarray]],
    coverage: float,
) -> Backtest:  # fmt: skip
    values, clock = series.values, series.clock
    at = origins[:, None] + np.arange(horizon)
    times = (
        np.stack([clock.times(origin, horizon) for origin in origins]) if clock.has_dates else at
    )
    forecast, lower, upper = np.stack(found, axis=1).reshape(3, *at.shape, values.shape[1])
    return Backtest(times, values[at], forecast, lower, upper, coverage)
