"""How a forecaster would have done: forecasts from many origins beside the loads that came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from sublearn.forecast.figures import d2_pinball, figures_of
from sublearn.forecast.series import LoadSeries, LoadsLike, check_series, exogenous_grid
from sublearn.forecast.settings import LoadFeatures
from sublearn.interruption import check
from sublearn.trace import Trace
from sublearn.validation import Interval, OrNone, Positive, Rule, check_argument, check_arguments

if TYPE_CHECKING:
    from sublearn.display import BacktestDisplay
    from sublearn.display.base import AxesLike
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

    def plot(self, ax: AxesLike = None, *, series: int = 0) -> BacktestDisplay:
        """Draw forecasts and loads, and the error of each lead; needs matplotlib.

        Parameters
        ----------
        ax : pair of matplotlib axes, optional
            Where to draw.
        series : int, default=0
            Which series the first picture shows, counted from 0.

        Returns
        -------
        BacktestDisplay
        """
        from sublearn.display import BacktestDisplay

        last = self.truth.shape[2] - 1
        check_argument("Backtest.plot.series", series, Interval(int, 0, last))
        table = self.table
        display = BacktestDisplay(
            self.times, *(part[:, :, series] for part in self._parts()),
            leads={name: table[name] for name in ("lead", "mape")}, scores=self.scores,
            coverage=self.coverage,
        )  # fmt: skip
        return display.called_by("Backtest.plot").plot(ax)

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
