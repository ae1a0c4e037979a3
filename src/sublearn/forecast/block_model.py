"""One series and one block of leads: standardised rows, local models, held-out residuals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.calibration import Residuals, conformal_level
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.local_models import LocalModels, LocalSettings
from sublearn.forecast.rows import Rows

__all__ = ["BlockModel", "BlockReport", "BlockTask"]

#: The end of a series, for the intervals: a tenth, but up to a quarter to have four weeks.
_HELD_OUT, _MOST_HELD_OUT, _HELD_OUT_DAYS = 0.1, 0.25, 28
_ENOUGH_ROWS = 6000  # a shorter series gives rows of up to three leads for each of its times
_SMALL: dict[str, Any] = {"n_clusters": 1, "n_components": 120}  # models to compare
_SMALL_ROWS = 250  # at most, for their scales
_RIDGE = 1e-3  # of the mean square of a column


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
    baselines: tuple[Baseline, ...]  # of several, the best by held-out error
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
class BlockModel:
    """Fitted. With the quantile loss, `quantile` is the share that held-out residuals level.

    The local models are those of what a linear model leaves: a Gaussian kernel falls back to the
    mean far from its rows, where loads go on rising or falling with their lags.
    """

    first: int
    last: int
    baseline: Baseline
    centre: np.ndarray
    spread: np.ndarray
    y_centre: float
    y_spread: float
    line: np.ndarray
    models: LocalModels
    residuals: Residuals
    quantile: float | None

    @classmethod
    def fit(
        cls, task: BlockTask, should_stop: Callable[[], bool] = lambda: False
    ) -> tuple[BlockModel, BlockReport]:
        """Fit to the older rows, keep residuals of the newest, fit to all."""
        start = time.perf_counter()
        rng = np.random.default_rng(task.seed)
        baseline = task.baselines[0]
        if len(task.baselines) > 1:
            baseline = min(task.baselines, key=lambda option: _held_out_error(task, option))
        positions, leads = _drawn(task, rng)
        rows = Rows.make(task.y, task.X, task.embedding, task.calendar, positions, leads, baseline)
        usable = rows.usable
        design, positions = rows.design[usable], positions[usable]
        target = task.y[positions] - rows.base[usable]
        centre, spread = design.mean(axis=0), _spread(design)
        y_centre = float(target.mean())
        Z, z = (design - centre) / spread, target - y_centre
        line = _ridge(Z, z)
        z -= Z @ line
        y_spread = float(_spread(z[:, None])[0])
        z, line = z / y_spread, line / y_spread
        settings = _in_spreads(task, float(np.abs(task.y[positions]).mean()) / y_spread)
        quantile = task.settings.loss.share_below
        n_old = len(z)
        if task.has_intervals or quantile is not None:
            n_old = int(np.searchsorted(positions, len(task.y) - _n_held_out(task)))
        models, training = LocalModels.fit(Z[:n_old], z[:n_old], settings, rng, should_stop)
        residuals = Residuals.none()
        if n_old < len(z):
            values = (z[n_old:] - models.predict(Z[n_old:])) * y_spread
            phases = positions[n_old:] % task.calendar.clock.steps_per_day
            residuals = Residuals(values, phases)
            models, training = models.refit(Z, z, settings, rng, should_stop)
        model = cls(
            task.first, task.last, baseline, centre, spread, y_centre, y_spread, line, models,
            residuals, quantile,
        )  # fmt: skip
        report = BlockReport(
            time.perf_counter() - start, training.objective, training.gap, training.n_iter,
            len(models.weights), len(z), sum(fit.n_support for fit in training.fits),
        )  # fmt: skip
        return model, report

    @property
    def has_intervals(self) -> bool:
        """Whether rows were held out."""
        return len(self.residuals) > 0

    @property
    def shift(self) -> float:
        """Added to forecasts so that the asked share of held-out loads lies below them."""
        if self.quantile is None or not self.has_intervals:
            return 0.0
        return conformal_level(self.residuals.values, self.quantile)

    def forecast(self, rows: Rows) -> np.ndarray:
        """Loads of design rows."""
        return self._unshifted(rows) + self.shift

    def updated(
        self, rows: Rows, loads: np.ndarray, phases: np.ndarray, settings: LocalSettings
    ) -> BlockModel:
        """After one online pass over new rows, whose residuals take the place of the oldest."""
        if len(loads) == 0:
            return self
        Z = (rows.design - self.centre) / self.spread
        z = (loads - rows.base - self.y_centre) / self.y_spread - Z @ self.line
        residuals = self.residuals.followed_by(loads - self._unshifted(rows), phases)
        return replace(self, models=self.models.update(Z, z, settings), residuals=residuals)

    def interval(self, phase: int, coverage: float) -> tuple[float, float]:
        """Distances below and above a forecast at this time of day that hold the truth so often."""
        below, above = self.residuals.interval(phase, coverage)
        return below - self.shift, above - self.shift

    def _unshifted(self, rows: Rows) -> np.ndarray:
        Z = (rows.design - self.centre) / self.spread
        deviation = (self.models.predict(Z) + Z @ self.line) * self.y_spread + self.y_centre
        return deviation + rows.base

    def to_state(self) -> dict[str, Any]:
        """Arrays and numbers by name."""
        own = {k: v for k, v in vars(self).items() if k not in ("models", "baseline", "residuals")}
        own |= {"baseline": vars(self.baseline), "residuals": self.residuals.values}
        own["phases"] = self.residuals.phases
        return own | {f"models.{k}": v for k, v in self.models.to_state().items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BlockModel:
        """Inverse of `to_state`."""
        prefix = "models."
        parts = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        own = {k: v for k, v in state.items() if not k.startswith(prefix)}
        own["baseline"] = Baseline(**own["baseline"])
        own["residuals"] = Residuals(own["residuals"], own.pop("phases"))
        return cls(**own, models=LocalModels.from_state(parts))


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


def _n_held_out(task: BlockTask) -> int:
    """Steps at the end of the series."""
    four_weeks = _HELD_OUT_DAYS * task.calendar.clock.steps_per_day
    n = len(task.y)
    return int(max(_HELD_OUT * n, min(_MOST_HELD_OUT * n, four_weeks)))


def _drawn(task: BlockTask, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Times with a load, oldest first, each with one to three random leads of the block."""
    known = np.flatnonzero(np.isfinite(task.y))
    n_leads = task.last - task.first + 1
    n_each = min(max(_ENOUGH_ROWS // max(len(known), 1), 1), 3, n_leads)
    positions = np.repeat(known, n_each)
    return positions, rng.integers(task.first, task.last + 1, len(positions))


def _held_out_error(task: BlockTask, baseline: Baseline) -> float:
    """Mean absolute error on the last fifth of the series of a small model with this baseline."""
    if baseline.weeks * 7 * task.calendar.clock.steps_per_day > len(task.y) // 3:
        return np.inf
    n_old = int(0.8 * len(task.y))
    n_rows = min(_SMALL_ROWS, task.settings.relevance_rows)
    settings = replace(task.settings, relevance_rows=n_rows, **_SMALL)
    small = replace(
        task, y=task.y[:n_old], settings=settings, baselines=(baseline,), has_intervals=False
    )
    try:
        model, _ = BlockModel.fit(small)
    except ValueError:  # no row without a gap
        return np.inf
    positions = n_old + np.flatnonzero(np.isfinite(task.y[n_old:]))
    leads = np.random.default_rng(task.seed).integers(task.first, task.last + 1, len(positions))
    rows = Rows.make(task.y, task.X, task.embedding, task.calendar, positions, leads, baseline)
    usable = rows.usable
    return float(np.abs(model.forecast(rows.only(usable)) - task.y[positions[usable]]).mean())
