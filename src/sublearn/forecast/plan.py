"""What a forecaster's parameters and its series say: settings, calendar, leads, columns.

Functions of a `LoadForecaster`, which holds the parameters, and of the series it is fitted to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sublearn.errors import ParameterError
from sublearn.forecast.baseline import Baseline
from sublearn.forecast.block_model import BlockModel, BlockTask
from sublearn.forecast.clock import Clock
from sublearn.forecast.embedding import Calendar, Embedding, auto_lags, lead_blocks
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.rows import Rows
from sublearn.forecast.rules import Dates
from sublearn.forecast.series import LoadSeries
from sublearn.forecast.tube_loss import TubeLoss

__all__ = [
    "baselines_of",
    "blocks_of",
    "calendar_of",
    "embedding_of",
    "refuse_empty",
    "refuse_short",
    "settings_of",
]

_FEWEST_ROWS = 50


def settings_of(model: Any) -> LocalSettings:
    """Of the local models."""
    if model.loss == "quantile":
        loss = TubeLoss.quantile(float(model.quantile))
    else:
        loss = TubeLoss.shifted(float(model.epsilon), float(model.eta))
    return LocalSettings(
        loss, None if model.C is None else float(model.C), model.n_clusters, model.clustering,
        model.kernel_map, int(model.n_components), relevance_rows=int(model.relevance_rows),
        solver=model.solver, tol=float(model.tol),
        max_iter=int(model.max_iter),
    )  # fmt: skip


def calendar_of(model: Any, series: LoadSeries) -> Calendar:
    """Weekdays from two weeks on, the time of year from a year on."""
    clock, n_days = series.clock, len(series.values) / series.clock.steps_per_day
    if model.holidays is not None and not clock.has_dates:
        raise ParameterError(
            f"{type(model).__name__}.holidays must be None for a series without times"
        )
    days = () if model.holidays is None else tuple(Dates.days(model.holidays))
    return Calendar(clock, n_days >= 14, clock.has_dates and n_days >= 365, days)


def baselines_of(model: Any, last: int, clock: Clock) -> tuple[Baseline, ...]:
    """What loads of a block may be measured from; a weekly profile needs leads up to a week."""
    weeks = (0, 1, 4) if model.profile_weeks == "auto" else (int(model.profile_weeks),)
    if last > 7 * clock.steps_per_day:
        weeks = (0,)
    anchored = (False, True) if model.anchored == "auto" else (bool(model.anchored),)
    return tuple(Baseline(n, is_anchored) for is_anchored in anchored for n in weeks)


def blocks_of(model: Any, clock: Clock) -> list[int]:
    """Last lead of each block."""
    horizon = int(model.horizon)
    if model.strategy == "recursive":
        return [1]
    if model.lead_blocks is None:
        return lead_blocks(horizon, clock.steps_per_day)
    blocks = sorted({int(last) for last in model.lead_blocks})
    if blocks[-1] != horizon:
        raise ParameterError(
            f"{type(model).__name__}.lead_blocks must end at horizon={horizon}, got {blocks[-1]}"
        )
    return blocks


def embedding_of(
    model: Any, series: LoadSeries, X: np.ndarray | None, calendar: Calendar, seed: int
) -> Embedding:
    """The columns of a row; lags are chosen by held-out error where that is asked for."""
    day = series.clock.steps_per_day
    hour = max(1, day // 24)
    X_lags = [hour * h for h in (0, 1, 2, 3, 6, 12, 24)]
    X_windows = [day, 2 * day]
    made = Embedding(
        tuple(auto_lags(day)),
        day,
        (max(1, day // 6), day, 7 * day),
        tuple(X_lags if isinstance(model.X_lags, str) else model.X_lags),
        tuple(X_windows if isinstance(model.X_windows, str) else model.X_windows),
    )
    if not isinstance(model.lags, str):
        return replace(made, lags=tuple(sorted({int(lag) for lag in model.lags})))
    if model.lags == "auto":
        return made
    days_alone = tuple(lag for lag in made.lags if lag <= 2 * day)
    tried = [made, replace(made, lags=days_alone), replace(made, lags=tuple(auto_lags(day, 2)))]
    return min(tried, key=lambda e: _held_out_error(model, series, X, e, calendar, seed))


def _held_out_error(
    model: Any,
    series: LoadSeries,
    X: np.ndarray | None,
    embedding: Embedding,
    calendar: Calendar,
    seed: int,
) -> float:
    """Mean absolute error of a small model on the last fifth, a day or the horizon ahead."""
    y, last = series.values[:, 0], min(int(model.horizon), series.clock.steps_per_day)
    n_old = int(0.8 * len(y))
    settings = replace(settings_of(model), n_clusters=1, n_components=150)
    settings = replace(settings, relevance_rows=min(300, settings.relevance_rows))
    baselines = baselines_of(model, last, series.clock)
    task = BlockTask(
        y[:n_old], X, embedding, calendar, last, last, settings, baselines, False, (seed, 0)
    )
    small, _ = BlockModel.fit(replace(task, is_hurried=len(baselines) == 1))
    positions = np.arange(n_old, len(y))
    leads = np.full(len(positions), last)
    rows = {
        member.baseline: Rows.make(y, X, embedding, calendar, positions, leads, member.baseline)
        for member in small.members
    }
    usable = np.logical_and.reduce([own.usable for own in rows.values()])
    usable &= np.isfinite(y[positions])
    forecast = small.forecast(lambda baseline: rows[baseline].only(usable))
    return float(np.abs(forecast - y[positions[usable]]).mean())


def refuse_empty(model: Any, series: LoadSeries) -> None:
    """A series without a single load."""
    empty = np.flatnonzero(np.isnan(series.values).all(axis=0))
    if len(empty):
        raise ValueError(
            f"{type(model).__name__}: y must have numbers, got none in series {empty[0]}"
        )


def refuse_short(model: Any, series: LoadSeries, embedding: Embedding, blocks: list[int]) -> None:
    """A series that leaves too few rows beside its lags."""
    reach = embedding.reach(blocks[-1])
    needed = reach + _FEWEST_ROWS
    if len(series.values) < needed:
        raise ValueError(
            f"{type(model).__name__}: y must have at least {needed} steps for lags up to "
            f"{reach}, got {len(series.values)}"
        )
