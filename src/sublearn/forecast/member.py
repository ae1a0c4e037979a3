"""A model of one series and one block of leads, measured from one baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.line import Line
from sublearn.forecast.local_models import LocalModels, LocalSettings, Training
from sublearn.forecast.rows import Rows
from sublearn.io.fields import Floats, Number, Parts, Record, check_fields, take_parts
from sublearn.validation import Boolean, Interval

__all__ = ["Member", "never"]

_MOST_WEEKS = 1000  # of a profile in a file


_FIELDS: dict[str, Any] = {
    "share": Number(),
    "centre": Floats("columns", bits=64),
    "spread": Floats("columns", bits=64),
    "y_centre": Number(),
    "y_spread": Number(),
    "baseline": Record({"weeks": Interval(int, 0, _MOST_WEEKS), "is_anchored": Boolean()}),
    "line.fixed": Floats("linear", bits=64),
    "line.varying": Floats("hats", "varying+1", bits=64),
    "models.*": Parts(),
}


def never() -> bool:
    """For fits that nobody stops."""
    return False


@dataclass(frozen=True)
class Member:
    """Fitted: a line, and local models of what it leaves, which count by `share`.

    On a short series whose errors hang together the local models learn some of the errors; held-out
    rows say how much of them to believe.
    """

    baseline: Baseline
    share: float
    centre: np.ndarray
    spread: np.ndarray
    y_centre: float
    y_spread: float
    line: Line
    models: LocalModels

    @classmethod
    def fit(
        cls, rows: Rows, loads: np.ndarray, baseline: Baseline, share: float,
        settings: LocalSettings, rng: np.random.Generator,
        should_stop: Callable[[], bool] = never,
    ) -> tuple[Member, Training]:  # fmt: skip
        """To rows in the order of time; the tube of the loss is in shares of the mean load."""
        target = loads - rows.base
        unit = float(np.abs(loads).mean())
        units = np.where(np.arange(rows.design.shape[1]) < rows.n_loads, unit, 1.0)
        centre, spread = rows.design.mean(axis=0), _spread(rows.design, units)
        y_centre = float(target.mean())
        Z, z = (rows.design - centre) / spread, target - y_centre
        line = Line.fit(Z[:, rows.linear], z, rows.times, rows.n_varying)
        z = _without_dust(z - line(Z[:, rows.linear], rows.times), loads)
        y_spread = float(_spread(z[:, None], unit)[0])
        settings = _in_spreads(settings, unit / y_spread)
        models, training = LocalModels.fit(Z, z / y_spread, settings, rng, should_stop)
        made = cls(baseline, share, centre, spread, y_centre, y_spread, line, models)
        return made, training

    def refit(
        self, rows: Rows, loads: np.ndarray, settings: LocalSettings, rng: np.random.Generator,
        should_stop: Callable[[], bool] = never,
    ) -> tuple[Member, Training]:  # fmt: skip
        """The same scales, features and clusters with coefficients fitted to these rows."""
        Z, z = self._standardised(rows), loads - rows.base - self.y_centre
        line = Line.fit(Z[:, rows.linear], z, rows.times, rows.n_varying)
        z = _without_dust(z - line(Z[:, rows.linear], rows.times), loads)
        settings = _in_spreads(settings, float(np.abs(loads).mean()) / self.y_spread)
        models, training = self.models.refit(Z, z / self.y_spread, settings, rng, should_stop)
        return replace(self, line=line, models=models), training

    @property
    def shift(self) -> float:
        """What a tube that is not centred (eta) adds to all forecasts."""
        loss = self.models.loss
        return -0.5 * (loss.lower + loss.upper) * self.y_spread

    def parts(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Loads by baseline and line, and what the local models would add but for their shift."""
        Z = self._standardised(rows)
        linear = rows.base + self.y_centre + self.line(Z[:, rows.linear], rows.times)
        return linear, self.models.predict(Z) * self.y_spread - self.shift

    def forecast(self, rows: Rows) -> np.ndarray:
        """Loads of rows."""
        linear, local = self.parts(rows)
        return linear + self.share * local + self.shift

    def updated(self, rows: Rows, loads: np.ndarray, settings: LocalSettings) -> Member:
        """After one online pass over new rows."""
        Z = self._standardised(rows)
        z = loads - rows.base - self.y_centre - self.line(Z[:, rows.linear], rows.times)
        return replace(self, models=self.models.update(Z, z / self.y_spread, settings))

    def to_state(self) -> dict[str, Any]:
        """Arrays and numbers by name."""
        parts = ("models", "baseline", "line")
        own = {k: v for k, v in vars(self).items() if k not in parts}
        own |= {f"line.{k}": v for k, v in vars(self.line).items()}
        own["baseline"] = vars(self.baseline)
        return own | {f"models.{k}": v for k, v in self.models.to_state().items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Member:
        """Inverse of `to_state`."""
        sizes = check_fields(state, _FIELDS)
        models, line = take_parts(state, "models."), take_parts(state, "line.")
        own = state | {"baseline": Baseline(**state["baseline"])}
        return cls(
            **own, line=Line(**line), models=LocalModels.from_state(models, sizes["columns"])
        )

    def _standardised(self, rows: Rows) -> np.ndarray:
        return (rows.design - self.centre) / self.spread


def _without_dust(left: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Zero where nothing but rounding is left to learn, which no solver could weigh."""
    return left if left.std() > 1e-9 * np.abs(loads).mean() else np.zeros_like(left)


def _spread(rows: np.ndarray, units: np.ndarray | float) -> np.ndarray:
    """Standard deviations; the unit of a column that is constant but for rounding."""
    spread = rows.std(axis=0)
    is_alive = spread > 1e-9 * (units + np.abs(rows).max(axis=0))
    return np.where(is_alive, spread, np.where(np.asarray(units) > 0, units, 1.0))


def _in_spreads(settings: LocalSettings, mean_load: float) -> LocalSettings:
    """Settings whose tube, given as shares of the mean load, is in units of the target."""
    loss = settings.loss
    tube = replace(loss, lower=loss.lower * mean_load, upper=loss.upper * mean_load)
    return replace(settings, loss=tube)
