"""What a fit decides before it learns (calendar, columns, blocks of leads), then its blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from sublearn.errors import ParameterError
from sublearn.execution import Hints, map_blocks, n_places_elsewhere
from sublearn.fitting.progress import Progress
from sublearn.forecast.block_model import BlockModel, BlockReport, BlockTask
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.rows import Baseline, Calendar, Embedding, auto_lags, lead_blocks
from sublearn.forecast.series import Clock, LoadSeries
from sublearn.forecast.settings import Dates, DatesLike, LoadFeatures
from sublearn.trace import Solution, Status, Trace

__all__ = ["Choices", "Plan"]

_FEWEST_ROWS = 50
_SHORT_DAY = 24  # steps of a day, fewer of which make no short blocks
_TRIED = (150, 300)  # features and relevance rows of models that lags are tried by
_Fitted = tuple[BlockModel, BlockReport]


@dataclass(frozen=True)
class Choices:
    """What the user chose; "auto" and None leave it to the series."""

    who: str  # refuses
    horizon: int
    is_recursive: bool
    features: LoadFeatures
    holidays: DatesLike | None
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
        own = self.features
        weeks = (0, 1, 4) if own.profile_weeks == "auto" else (int(own.profile_weeks),)
        if last > 7 * clock.steps_per_day:
            weeks = (0,)
        anchored = (False, True) if own.anchored == "auto" else (bool(own.anchored),)
        return tuple(Baseline(n, is_anchored) for is_anchored in anchored for n in weeks)

    def blocks(self, clock: Clock) -> list[int]:
        """Last lead of each block."""
        given = self.features.lead_blocks
        if self.is_recursive:
            if given is not None:
                raise ParameterError(
                    f"LoadFeatures.lead_blocks must be None for {self.who}.strategy='recursive', "
                    f"got {given}"
                )
            return [1]
        if given is None:
            return lead_blocks(self.horizon, clock.steps_per_day)
        blocks = sorted(set(given))
        if blocks[-1] != self.horizon:
            raise ParameterError(
                f"LoadFeatures.lead_blocks must end at horizon={self.horizon}, got {blocks[-1]}"
            )
        return blocks

    def local_at(self, last: int, day: int) -> LocalSettings:
        """Settings of a block: few hours ahead the line says most, and half the features do."""
        kernels = self.local.kernels
        if last > day // 8 or day < _SHORT_DAY:
            return self.local
        half = replace(kernels, n_components=-(-kernels.n_components // 2))
        return replace(self.local, kernels=half)

    def embedding(self, series: LoadSeries, X: np.ndarray | None) -> Embedding:
        """The columns of a row; lags are chosen by held-out error where that is asked for."""
        own, day = self.features, series.clock.steps_per_day
        hour = max(1, day // 24)
        X_lags = [hour * h for h in (0, 1, 2, 3, 6, 12, 24)]
        made = Embedding(
            self.calendar(series),
            tuple(auto_lags(day)),
            (max(1, day // 6), day, 7 * day),
            tuple(X_lags if isinstance(own.X_lags, str) else own.X_lags),
            (day, 2 * day) if isinstance(own.X_windows, str) else tuple(own.X_windows),
        )
        if not isinstance(own.lags, str):
            return replace(made, lags=tuple(sorted(set(own.lags))))
        if own.lags == "auto":
            return made
        days_alone = tuple(lag for lag in made.lags if lag <= 2 * day)
        tried = [made, replace(made, lags=days_alone), replace(made, lags=tuple(auto_lags(day, 2)))]
        return min(tried, key=lambda embedding: self._held_out_error(series, X, embedding))

    def _held_out_error(
        self, series: LoadSeries, X: np.ndarray | None, embedding: Embedding
    ) -> float:
        """Mean absolute error of a small model on the last fifth, a day or the horizon ahead."""
        y, last = series.values[:, 0], min(self.horizon, series.clock.steps_per_day)
        n_old = int(0.8 * len(y))
        settings = replace(self.local, kernels=self.local.kernels.small(*_TRIED))
        baselines = self.baselines(last, series.clock)
        task = BlockTask(
            y[:n_old], X, embedding, last, last, settings, baselines, False, (self.seed, 0),
            has_trials=len(baselines) > 1,
        )  # fmt: skip
        small, _ = BlockModel.fit(task)
        positions = np.arange(n_old, len(y))
        leads = np.full(len(positions), last)
        rows = {
            member.baseline: embedding.rows(y, X, positions, leads, member.baseline)
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
    embedding: Embedding
    blocks: list[int]

    @classmethod
    def of(cls, choices: Choices, series: LoadSeries, X: np.ndarray | None) -> Plan:
        """Decide, or refuse a series that is empty or too short."""
        empty = np.flatnonzero(np.isnan(series.values).all(axis=0))
        if len(empty):
            raise ValueError(f"{choices.who}: y must have numbers, got none in series {empty[0]}")
        blocks = choices.blocks(series.clock)
        embedding = choices.embedding(series, X)
        reach = embedding.reach(blocks[-1])
        if len(series.values) < reach + _FEWEST_ROWS:
            raise ValueError(
                f"{choices.who}: y must have at least {reach + _FEWEST_ROWS} steps for lags up to "
                f"{reach}, got {len(series.values)}"
            )
        return cls(choices, series, X, embedding, blocks)

    def fit(
        self, n_threads: int, watch: Callable[..., list[_Fitted]]
    ) -> tuple[list[list[BlockModel]], Solution]:
        """The models of each series, one for each block, and how it went.

        `watch` runs a job under the eyes of the user, as that of `FittedModel` does.
        """
        tasks = self._tasks(1 if n_places_elsewhere() else n_threads)
        progress = Progress(len(tasks), n_done=0)

        def should_stop() -> bool:
            return progress.stop_requested

        def do(task: BlockTask) -> _Fitted:
            return count(BlockModel.fit(task, should_stop))

        def count(found: _Fitted) -> _Fitted:
            block, report = found
            progress.add(
                n_done=1, objective=report.objective, gap=report.gap, nnz_primal=block.n_weights,
                nnz_dual=report.n_support, work=report.n_rows,
            )  # fmt: skip
            return found

        hints = Hints(arrived=count, asks_to_stop=should_stop)
        # Threads of BLAS would change the rounding, hence the model, with their number.
        with threadpool_limits(1, user_api="blas"):
            done = watch(
                lambda: map_blocks(do, tasks, n_threads, hints=hints), progress, may_be_left=True
            )
        n = len(self.blocks)
        models = [[found for found, _ in done[i : i + n]] for i in range(0, len(done), n)]
        return models, self._solution([report for _, report in done], progress.stop_requested)

    def _tasks(self, n_threads: int) -> list[BlockTask]:
        """What is fitted, the blocks of one series after those of another.

        Where there are more threads than blocks, the clusters of a block share them.
        """
        values, choices, day = self.series.values, self.choices, self.series.clock.steps_per_day
        n_each = max(n_threads // (len(self.blocks) * values.shape[1]), 1)
        return [
            BlockTask(
                values[:, s], self.X, self.embedding, before + 1, last, choices.local_at(last, day),
                choices.baselines(last, self.series.clock), choices.has_intervals,
                (choices.seed, s, b), n_each,
            )
            for s in range(values.shape[1])
            for b, (before, last) in enumerate(zip([0, *self.blocks], self.blocks, strict=False))
        ]  # fmt: skip

    def _solution(self, reports: list[BlockReport], was_stopped: bool) -> Solution:
        objectives = np.array([report.objective for report in reports])
        gaps = np.array([report.gap for report in reports])
        objective, gap = sum(objectives.tolist()), sum(gaps.tolist())
        certificate = gap / objective if objective > 0 else 0.0
        is_solved = certificate <= self.choices.local.tol and not was_stopped
        failure = Status.STOPPED if was_stopped else Status.MAX_ITER
        trace = {
            "seconds": [report.seconds for report in reports],
            "series": [i // len(self.blocks) for i in range(len(reports))],
            "last_lead": [self.blocks[i % len(self.blocks)] for i in range(len(reports))],
            "objective": objectives,
            "certificate": gaps / np.maximum(objectives, 1e-300),
            "n_clusters": [report.n_clusters for report in reports],
            "nnz_dual": [report.n_support for report in reports],
            "work": [report.n_rows for report in reports],
        }
        return Solution(
            status=Status.CONVERGED if is_solved else failure,
            objective=objective,
            certificate=certificate,
            n_iter=max(report.n_iter for report in reports),
            trace=Trace(trace),
        )
