"""What a fit decides before it learns: calendar, columns, blocks of leads, tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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

__all__ = ["Choices", "Plan"]

_FEWEST_ROWS = 50


@dataclass(frozen=True)
class Choices:
    """What the user chose; "auto" and None leave it to the series."""

    who: str  # refuses
    horizon: int
    is_recursive: bool
    lags: str | Sequence[int]
    lead_blocks: Sequence[int] | None
    profile_weeks: str | int
    anchored: str | bool
    X_lags: str | Sequence[int]
    X_windows: str | Sequence[int]
    holidays: Collection[Any] | None
    has_intervals: bool
    local: LocalSettings
    seed: int

    def calendar(self, series: LoadSeries) -> Calendar:
        """Weekdays from two weeks on, the time of year from a year on."""
        clock, n_days = series.clock, len(series.values) / series.clock.steps_per_day
        if self.holidays is not None and not clock.has_dates:
            raise ParameterError(f"{self.who}.holidays must be None for a series without times")
        days = () if self.holidays is None else tuple(Dates.days(self.holidays))
        return Calendar(clock, n_days >= 14, clock.has_dates and n_days >= 365, days)

    def baselines(self, last: int, clock: Clock) -> tuple[Baseline, ...]:
        """What loads of a block may be measured from; a weekly profile needs leads up to a week."""
        weeks = (0, 1, 4) if self.profile_weeks == "auto" else (int(self.profile_weeks),)
        if last > 7 * clock.steps_per_day:
            weeks = (0,)
        anchored = (False, True) if self.anchored == "auto" else (bool(self.anchored),)
        return tuple(Baseline(n, is_anchored) for is_anchored in anchored for n in weeks)

    def blocks(self, clock: Clock) -> list[int]:
        """Last lead of each block."""
        if self.is_recursive:
            return [1]
        if self.lead_blocks is None:
            return lead_blocks(self.horizon, clock.steps_per_day)
        blocks = sorted({int(last) for last in self.lead_blocks})
        if blocks[-1] != self.horizon:
            raise ParameterError(
                f"{self.who}.lead_blocks must end at horizon={self.horizon}, got {blocks[-1]}"
            )
        return blocks

    def embedding(self, series: LoadSeries, X: np.ndarray | None, calendar: Calendar) -> Embedding:
        """The columns of a row; lags are chosen by held-out error where that is asked for."""
        day = series.clock.steps_per_day
        hour = max(1, day // 24)
        X_lags = [hour * h for h in (0, 1, 2, 3, 6, 12, 24)]
        X_windows = [day, 2 * day]
        made = Embedding(
            tuple(auto_lags(day)),
            day,
            (max(1, day // 6), day, 7 * day),
            tuple(X_lags if isinstance(self.X_lags, str) else self.X_lags),
            tuple(X_windows if isinstance(self.X_windows, str) else self.X_windows),
        )
        if not isinstance(self.lags, str):
            return replace(made, lags=tuple(sorted({int(lag) for lag in self.lags})))
        if self.lags == "auto":
            return made
        days_alone = tuple(lag for lag in made.lags if lag <= 2 * day)
        tried = [made, replace(made, lags=days_alone), replace(made, lags=tuple(auto_lags(day, 2)))]
        return min(tried, key=lambda e: self._held_out_error(series, X, e, calendar))

    def _held_out_error(
        self, series: LoadSeries, X: np.ndarray | None, embedding: Embedding, calendar: Calendar
    ) -> float:
        """Mean absolute error of a small model on the last fifth, a day or the horizon ahead."""
        y, last = series.values[:, 0], min(self.horizon, series.clock.steps_per_day)
        n_old = int(0.8 * len(y))
        n_rows = min(300, self.local.relevance_rows)
        settings = replace(self.local, n_clusters=1, n_components=150, relevance_rows=n_rows)
        baselines = self.baselines(last, series.clock)
        task = BlockTask(
            y[:n_old], X, embedding, calendar, last, last, settings, baselines, False,
            (self.seed, 0), is_hurried=len(baselines) == 1,
        )  # fmt: skip
        small, _ = BlockModel.fit(task)
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


@dataclass(frozen=True)
class Plan:
    """The choices made, for one series or several; `blocks` are the last leads of blocks."""

    choices: Choices
    series: LoadSeries
    X: np.ndarray | None
    calendar: Calendar
    embedding: Embedding
    blocks: list[int]

    @classmethod
    def of(cls, choices: Choices, series: LoadSeries, X: np.ndarray | None) -> Plan:
        """Decide, or refuse a series that is empty or too short."""
        calendar = choices.calendar(series)
        empty = np.flatnonzero(np.isnan(series.values).all(axis=0))
        if len(empty):
            raise ValueError(f"{choices.who}: y must have numbers, got none in series {empty[0]}")
        embedding = choices.embedding(series, X, calendar)
        blocks = choices.blocks(series.clock)
        reach = embedding.reach(blocks[-1])
        if len(series.values) < reach + _FEWEST_ROWS:
            raise ValueError(
                f"{choices.who}: y must have at least {reach + _FEWEST_ROWS} steps for lags up to "
                f"{reach}, got {len(series.values)}"
            )
        return cls(choices, series, X, calendar, embedding, blocks)

    def tasks(self, n_threads: int) -> list[BlockTask]:
        """What is fitted, the blocks of one series after those of another.

        Where there are more threads than blocks, the clusters of a block share them.
        """
        values, choices = self.series.values, self.choices
        n_each = max(n_threads // (len(self.blocks) * values.shape[1]), 1)
        settings = replace(choices.local, n_threads=n_each)
        return [
            BlockTask(
                values[:, s], self.X, self.embedding, self.calendar, before + 1, last, settings,
                choices.baselines(last, self.series.clock), choices.has_intervals,
                (choices.seed, s, b),
            )
            for s in range(values.shape[1])
            for b, (before, last) in enumerate(zip([0, *self.blocks], self.blocks, strict=False))
        ]  # fmt: skip
