"""One series and one block of leads: standardised rows, local models, held-out residuals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sublearn.forecast.embedding import Calendar, Embedding, weekly_profile
from sublearn.forecast.local_models import LocalModels, LocalSettings

__all__ = ["BlockModel", "BlockReport", "BlockTask", "Rows", "conformal"]

_HELD_OUT = 0.1  # of the rows, the last ones, for the intervals
_PROFILES = (0, 1, 4)  # weeks: loads as they are, or as deviations from a moving weekly profile
_ENOUGH_ROWS = 6000  # a shorter series gives rows of up to three leads for each of its times
_SMALL: dict[str, Any] = {"n_clusters": 1, "n_components": 120}  # models to compare
_SMALL_ROWS = 250  # at most, for their scales
_RIDGE = 1e-3  # of the mean square of a column
_FEWEST_ALIKE = 40  # residuals at one time of day, to take that time's alone


@dataclass(frozen=True)
class BlockTask:
    """What is to be fitted: a series (one column), leads from `first` to `last`, and how.

    The tube of the settings' loss is in shares of the mean load.
    """

    y: np.ndarray
    X: np.ndarray | None
    embedding: Embedding
    calendar: Calendar
    first: int
    last: int
    settings: LocalSettings
    profile_weeks: int | None  # None: the best of `_PROFILES` by held-out error
    has_intervals: bool
    seed: tuple[int, ...]


@dataclass(frozen=True)
class BlockReport:
    """How it went."""

    seconds: float
    objective: float
    gap: float
    n_iter: int
    n_clusters: int
    n_rows: int
    n_support: int


@dataclass(frozen=True)
class Rows:
    """Design rows at positions of a series, and what is added to a forecast of them."""

    design: np.ndarray
    profile: np.ndarray

    @classmethod
    def make(
        cls, y: np.ndarray, X: np.ndarray | None, embedding: Embedding, calendar: Calendar,
        positions: np.ndarray, leads: np.ndarray, profile_weeks: int, first_position: int = 0,
    ) -> Rows:  # fmt: skip
        """With a profile the loads in a row are deviations from it, and so is the target.

        `positions` index y, whose first value stands at `first_position` of the clock.
        """
        profile = np.zeros(len(positions))
        if profile_weeks:
            week = 7 * calendar.clock.steps_per_day
            profile = weekly_profile(y, positions, week, profile_weeks)
            y = y - weekly_profile(y, np.arange(len(y)), week, profile_weeks)
        columns = embedding.columns(y, X, positions, leads)
        return cls(np.hstack([columns, calendar.columns(positions + first_position)]), profile)

    @property
    def usable(self) -> np.ndarray:
        """Rows without a gap."""
        found: np.ndarray = np.isfinite(self.design).all(axis=1) & np.isfinite(self.profile)
        return found


@dataclass(frozen=True)
class BlockModel:
    """Fitted; residuals are truth minus forecast of held-out rows, phases their times of day.

    The local models are those of what a linear model leaves: a Gaussian kernel falls back to the
    mean far from its rows, where loads go on rising or falling with their lags.
    """

    first: int
    last: int
    profile_weeks: int
    centre: np.ndarray
    spread: np.ndarray
    y_centre: float
    y_spread: float
    line: np.ndarray
    models: LocalModels
    residuals: np.ndarray
    residual_phases: np.ndarray

    @classmethod
    def fit(
        cls, task: BlockTask, should_stop: Callable[[], bool] = lambda: False
    ) -> tuple[BlockModel, BlockReport]:
        """Fit to the older rows, keep residuals of the newest, fit to all."""
        start = time.perf_counter()
        rng = np.random.default_rng(task.seed)
        weeks = task.profile_weeks
        if weeks is None:
            weeks = min(_PROFILES, key=lambda option: _held_out_error(task, option))
        positions, leads = _drawn(task, rng)
        rows = Rows.make(task.y, task.X, task.embedding, task.calendar, positions, leads, weeks)
        usable = rows.usable
        design, positions = rows.design[usable], positions[usable]
        target = task.y[positions] - rows.profile[usable]
        centre, spread = design.mean(axis=0), _spread(design)
        y_centre = float(target.mean())
        Z, z = (design - centre) / spread, target - y_centre
        line = _ridge(Z, z)
        z -= Z @ line
        y_spread = float(_spread(z[:, None])[0])
        z, line = z / y_spread, line / y_spread
        settings = _in_spreads(task, float(np.abs(task.y[positions]).mean()) / y_spread)
        n_old = len(z) - int(_HELD_OUT * len(z)) if task.has_intervals else len(z)
        models, training = LocalModels.fit(Z[:n_old], z[:n_old], settings, rng, should_stop)
        residuals, phases = np.empty(0), np.empty(0, dtype=np.int64)
        if n_old < len(z):
            residuals = (z[n_old:] - models.predict(Z[n_old:])) * y_spread
            phases = positions[n_old:] % task.calendar.clock.steps_per_day
            models, training = models.refit(Z, z, settings, rng, should_stop)
        model = cls(
            task.first, task.last, weeks, centre, spread, y_centre, y_spread, line, models,
            residuals, phases,
        )  # fmt: skip
        report = BlockReport(
            time.perf_counter() - start, training.objective, training.gap, training.n_iter,
            len(models.weights), len(z), sum(fit.n_support for fit in training.fits),
        )  # fmt: skip
        return model, report

    def forecast(self, rows: Rows) -> np.ndarray:
        """Loads of design rows."""
        Z = (rows.design - self.centre) / self.spread
        deviation = (self.models.predict(Z) + Z @ self.line) * self.y_spread + self.y_centre
        return deviation + rows.profile

    def updated(self, rows: Rows, loads: np.ndarray, settings: LocalSettings) -> BlockModel:
        """After one online pass over new rows."""
        Z = (rows.design - self.centre) / self.spread
        z = (loads - rows.profile - self.y_centre) / self.y_spread - Z @ self.line
        return replace(self, models=self.models.update(Z, z, settings))

    def interval(self, phase: int, coverage: float) -> tuple[float, float]:
        """Distances below and above a forecast at this time of day that hold the truth so often."""
        alike = self.residuals[self.residual_phases == phase]
        residuals = alike if len(alike) >= _FEWEST_ALIKE else self.residuals
        return conformal(residuals, coverage)

    def to_state(self) -> dict[str, Any]:
        """Arrays and numbers by name."""
        own = {k: v for k, v in vars(self).items() if k != "models"}
        return own | {f"models.{k}": v for k, v in self.models.to_state().items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BlockModel:
        """Inverse of `to_state`."""
        prefix = "models."
        parts = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        own = {k: v for k, v in state.items() if not k.startswith(prefix)}
        return cls(**own, models=LocalModels.from_state(parts))


def conformal(residuals: np.ndarray, coverage: float) -> tuple[float, float]:
    """Quantiles (1 - coverage) / 2 from either end, each moved out by one residual of n + 1."""
    ordered = np.sort(residuals)
    n = len(ordered)
    k = int(np.floor((n + 1) * (1.0 - coverage) / 2.0))
    k = min(max(k, 1), (n + 1) // 2)
    return float(ordered[k - 1]), float(ordered[n - k])


def _spread(rows: np.ndarray) -> np.ndarray:
    """Standard deviations; 1 for a constant column."""
    spread = rows.std(axis=0)
    return np.where(spread > 1e-9 * (1.0 + np.abs(rows).max(axis=0)), spread, 1.0)


def _ridge(Z: np.ndarray, z: np.ndarray) -> np.ndarray:
    """A linear model of the standardised target, nearly least squares."""
    gram = Z.T @ Z
    gram.flat[:: len(gram) + 1] += _RIDGE * len(Z)
    return np.linalg.solve(gram, Z.T @ z)


def _in_spreads(task: BlockTask, mean_load: float) -> LocalSettings:
    """Settings whose tube, given as shares of the mean load, is in units of the target."""
    loss = task.settings.loss
    tube = replace(loss, lower=loss.lower * mean_load, upper=loss.upper * mean_load)
    return replace(task.settings, loss=tube)


def _drawn(task: BlockTask, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Times with a load, oldest first, each with one to three random leads of the block."""
    known = np.flatnonzero(np.isfinite(task.y))
    n_leads = task.last - task.first + 1
    n_each = min(max(_ENOUGH_ROWS // max(len(known), 1), 1), 3, n_leads)
    positions = np.repeat(known, n_each)
    return positions, rng.integers(task.first, task.last + 1, len(positions))


def _held_out_error(task: BlockTask, weeks: int) -> float:
    """Mean absolute error on the last fifth of the series of a small model with this profile."""
    if weeks * 7 * task.calendar.clock.steps_per_day > len(task.y) // 3:
        return np.inf
    n_old = int(0.8 * len(task.y))
    n_rows = min(_SMALL_ROWS, task.settings.relevance_rows)
    settings = replace(task.settings, relevance_rows=n_rows, **_SMALL)
    small = replace(
        task, y=task.y[:n_old], settings=settings, profile_weeks=weeks, has_intervals=False
    )
    try:
        model, _ = BlockModel.fit(small)
    except ValueError:  # no row without a gap
        return np.inf
    positions = n_old + np.flatnonzero(np.isfinite(task.y[n_old:]))
    leads = np.random.default_rng(task.seed).integers(task.first, task.last + 1, len(positions))
    rows = Rows.make(task.y, task.X, task.embedding, task.calendar, positions, leads, weeks)
    usable = rows.usable
    kept = Rows(rows.design[usable], rows.profile[usable])
    return float(np.abs(model.forecast(kept) - task.y[positions[usable]]).mean())
