"""The history a forecast starts from, and the forecast itself, direct or recursive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.block_model import BlockModel
from sublearn.forecast.clock import Clock
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.rows import Rows

__all__ = ["History", "forecast_history", "interval_ends", "updated_models"]


@dataclass(frozen=True)
class History:
    """The newest loads, and their exogenous columns; `end` is the position after the last load.

    X may reach beyond `end`.
    """

    values: np.ndarray  # (n, n_series)
    X: np.ndarray | None
    clock: Clock
    end: int

    @property
    def first(self) -> int:
        """Position of the first row."""
        return self.end - len(self.values)

    def with_future(self, X: np.ndarray) -> History:
        """With exogenous columns of the steps to come."""
        known = X if self.X is None else np.vstack([self.X, X])
        return replace(self, X=known)

    def followed_by(self, values: np.ndarray, X: np.ndarray | None, skipped: int) -> History:
        """With newer loads, after some steps without."""
        gap = np.full((skipped, self.values.shape[1]), np.nan)
        loads = np.vstack([self.values, gap, values])
        if X is not None and self.X is not None:
            ends = np.stack([self.X[-1], X[0]])
            shares = (np.arange(skipped) + 1)[:, None] / (skipped + 1)
            X = np.vstack([self.X, ends[0] + shares * (ends[1] - ends[0]), X])
        return History(loads, X, self.clock, self.end + skipped + len(values))

    def tail(self, n: int) -> History:
        """The last n rows."""
        X = None if self.X is None else self.X[-n:]
        return replace(self, values=self.values[-n:].copy(), X=X)

    def filled(self) -> History:
        """Gaps filled by the load a week before, or a day before: a forecast needs its lags."""
        values, day = self.values.copy(), self.clock.steps_per_day
        for t, s in np.argwhere(np.isnan(values)):
            for back in (7 * day, day):
                if t >= back and np.isfinite(values[t - back, s]):
                    values[t, s] = values[t - back, s]
                    break
        return replace(self, values=values)

    def rows(
        self, s: int, embedding: Embedding, calendar: Calendar, positions: np.ndarray,
        leads: np.ndarray, baseline: Baseline,
    ) -> Rows:  # fmt: skip
        """Design rows of a series at these positions of its own clock."""
        calendar = replace(calendar, clock=self.clock)
        return Rows.make(
            self.values[:, s], self.X, embedding, calendar, positions - self.first, leads,
            baseline, self.first,
        )  # fmt: skip

    def to_state(self) -> dict[str, Any]:
        """Arrays and JSON values by name."""
        state: dict[str, Any] = {"values": self.values, "end": self.end}
        if self.X is not None:
            state["X"] = self.X
        return state | {"clock": self.clock.to_state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> History:
        """Inverse of `to_state`."""
        return cls(state["values"], state.get("X"), Clock(**state["clock"]), state["end"])


def forecast_history(
    history: History,
    models: list[list[BlockModel]],
    embedding: Embedding,
    calendar: Calendar,
    ahead: int,
    *,
    is_recursive: bool,
) -> np.ndarray:
    """Loads of the `ahead` steps after the history, (ahead, n_series)."""
    history = history.filled()
    forecast = _recursive if is_recursive else _direct
    found = [forecast(history, s, own, embedding, calendar, ahead) for s, own in enumerate(models)]
    return np.stack(found, axis=1)


def _direct(
    history: History, s: int, own: list[BlockModel], embedding: Embedding, calendar: Calendar,
    ahead: int,
) -> np.ndarray:  # fmt: skip
    out = np.empty(ahead)
    first = 1
    for model in own:
        leads = np.arange(first, min(model.last, ahead) + 1)
        first = model.last + 1
        if len(leads) == 0:
            break
        at = history.end + leads - 1
        made = partial(history.rows, s, embedding, calendar, at, leads)
        n_needed = embedding.reach(model.last)
        out[leads - 1] = model.forecast(_without_gaps(made, n_needed, len(history.values)))
    return out


def _recursive(
    history: History, s: int, own: list[BlockModel], embedding: Embedding, calendar: Calendar,
    ahead: int,
) -> np.ndarray:  # fmt: skip
    one = replace(history, values=history.values[:, s : s + 1])
    out = np.empty(ahead)
    for h in range(ahead):
        at, lead = np.array([one.end]), np.array([1])
        made = partial(one.rows, 0, embedding, calendar, at, lead)
        out[h] = own[0].forecast(_without_gaps(made, embedding.reach(1), len(one.values)))[0]
        one = replace(one, values=np.append(one.values, [[out[h]]], axis=0), end=one.end + 1)
    return out


def _without_gaps(
    rows_of: Callable[[Baseline], Rows], n_needed: int, n_known: int
) -> Callable[[Baseline], Rows]:
    def checked(baseline: Baseline) -> Rows:
        rows = rows_of(baseline)
        if not rows.usable.all():
            got = "gaps that no load a week or a day before can fill"
            if n_known < n_needed:
                got = f"{n_known} steps"
            raise ValueError(
                f"the history must hold the last {n_needed} loads to forecast from it, got {got}"
            )
        return rows

    return checked


def interval_ends(
    values: np.ndarray,
    history: History,
    models: list[list[BlockModel]],
    coverage: float,
    *,
    is_recursive: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends around forecasts of shape (ahead, n_series)."""
    lower, upper = values.copy(), values.copy()
    for s, own in enumerate(models):
        for h in range(len(values)):
            model = next((model for model in own if h < model.last), own[-1])
            phase = (history.end + h) % history.clock.steps_per_day
            below, above = model.interval(phase, coverage)
            # A forecast fed back to itself h times errs as a sum of h steps, if not alike.
            widening = np.sqrt(h + 1.0) if is_recursive else 1.0
            lower[h, s] += widening * below
            upper[h, s] += widening * above
    return lower, upper


def updated_models(
    history: History,
    models: list[list[BlockModel]],
    embedding: Embedding,
    calendar: Calendar,
    n_new: int,
    settings: LocalSettings,
) -> list[list[BlockModel]]:
    """The models after the last `n_new` loads of the history."""
    positions = np.arange(history.end - n_new, history.end)
    out = []
    for s, own in enumerate(models):
        loads = history.values[positions - history.first, s]
        known = np.isfinite(loads)
        at, loads = positions[known], loads[known]
        updated = []
        for model in own:
            leads = model.first + at % (model.last - model.first + 1)
            made = partial(history.rows, s, embedding, calendar, at, leads)
            phases = at % history.clock.steps_per_day
            updated.append(model.updated(made, loads, phases, settings))
        out.append(updated)
    return out
