"""The history a forecast starts from, and what was fitted; the forecast itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sublearn.forecast.block_model import BlockModel
from sublearn.forecast.rows import Baseline, Embedding, Rows
from sublearn.forecast.series import Clock, Shape

__all__ = ["Fitted", "History"]


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
        """Gaps filled by what was a week before, or a day before: a forecast needs its lags.

        The other way round for exogenous columns, whose means stand in where neither is known.
        """
        day = self.clock.steps_per_day
        X = self.X
        if X is not None and np.isnan(X).any():
            X = _from_before(X, (day, 7 * day))
            X = np.where(np.isnan(X), _means(X), X)
        return replace(self, values=_from_before(self.values, (7 * day, day)), X=X)

    def rows(
        self, s: int, embedding: Embedding, positions: np.ndarray, leads: np.ndarray,
        baseline: Baseline,
    ) -> Rows:  # fmt: skip
        """Design rows of a series at these positions of its own clock."""
        own = positions - self.first
        return embedding.rows(self.values[:, s], self.X, own, leads, baseline, self.first)


@dataclass(frozen=True)
class Fitted:
    """All that forecasts and updates need of a fit."""

    models: list[list[BlockModel]]  # of each series, one for each block of leads
    embedding: Embedding
    shape: Shape
    history: History
    X_names: list[str] | None
    horizon: int
    is_recursive: bool  # whether a forecast of one step is fed back to itself

    @property
    def n_series(self) -> int:
        """Series that are forecast."""
        return self.history.values.shape[1]

    @property
    def n_columns(self) -> int:
        """Exogenous columns."""
        return 0 if self.history.X is None else self.history.X.shape[1]

    def trimmed(self) -> Fitted:
        """With no more history than forecasts, profiles and the next loads need."""
        weeks = max(model.profile_weeks for own in self.models for model in own)
        weeks += 2  # one to fill gaps from, one for new loads
        n_kept = self.embedding.reach(self.horizon) + weeks * 7 * self.history.clock.steps_per_day
        return replace(self, history=self.history.tail(n_kept))

    def forecast(self, history: History, ahead: int) -> np.ndarray:
        """Loads of the `ahead` steps after a history, (ahead, n_series)."""
        history = history.filled()
        one = self._recursive if self.is_recursive else self._direct
        return np.stack([one(history, s, ahead) for s in range(self.n_series)], axis=1)

    def _direct(self, history: History, s: int, ahead: int) -> np.ndarray:
        out = np.empty(ahead)
        first = 1
        for model in self.models[s]:
            leads = np.arange(first, min(model.last, ahead) + 1)
            first = model.last + 1
            if len(leads) == 0:
                break
            at = history.end + leads - 1
            made = partial(history.rows, s, self.embedding, at, leads)
            n_needed = self.embedding.reach(model.last)
            out[leads - 1] = model.forecast(_without_gaps(made, n_needed, len(history.values)))
        return out

    def _recursive(self, history: History, s: int, ahead: int) -> np.ndarray:
        one = replace(history, values=history.values[:, s : s + 1])
        (model,), n_needed = self.models[s], self.embedding.reach(1)
        out = np.empty(ahead)
        for h in range(ahead):
            at, lead = np.array([one.end]), np.array([1])
            made = partial(one.rows, 0, self.embedding, at, lead)
            out[h] = model.forecast(_without_gaps(made, n_needed, len(one.values)))[0]
            one = replace(one, values=np.append(one.values, [[out[h]]], axis=0), end=one.end + 1)
        return out

    def quantiles(
        self, values: np.ndarray, history: History, shares: Sequence[float]
    ) -> np.ndarray:
        """Loads below which these shares of loads lie, (n_shares, *values.shape).

        `values` are forecasts of shape (ahead, n_series). Where shares rise, quantiles do not fall.
        """
        order = np.argsort(shares, kind="stable")
        rising = np.asarray(shares, dtype=np.float64)[order]
        found = np.empty((len(rising), *values.shape))
        for s, own in enumerate(self.models):
            for h in range(len(values)):
                model = next((model for model in own if h < model.last), own[-1])
                phase = (history.end + h) % history.clock.steps_per_day
                away = np.maximum.accumulate(model.distances(phase, rising))
                # A forecast fed back to itself h times errs as a sum of h steps, if not alike.
                widening = np.sqrt(h + 1.0) if self.is_recursive else 1.0
                found[order, h, s] = values[h, s] + widening * away
        return found

    def updated(self, history: History, n_new: int) -> Fitted:
        """After the last `n_new` loads of a history."""
        positions = np.arange(history.end - n_new, history.end)
        models = []
        for s, own in enumerate(self.models):
            loads = history.values[positions - history.first, s]
            known = np.isfinite(loads)
            at, loads = positions[known], loads[known]
            phases = at % history.clock.steps_per_day
            ahead = (
                at - (history.end - n_new) + 1
            )  # leads of a forecast that was made when none was known
            updated = []
            for model in own:
                was_asked = (ahead >= model.first) & (ahead <= model.last)
                leads = model.first + at % (model.last - model.first + 1)
                leads = np.where(was_asked, ahead, leads)
                made = partial(history.rows, s, self.embedding, at, leads)
                updated.append(model.updated(made, loads, phases, was_asked))
            models.append(updated)
        return replace(self, models=models, history=history).trimmed()


def _from_before(values: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """Gaps filled by the value so many steps before, the first of them that is known."""
    values = values.copy()
    for t, s in np.argwhere(np.isnan(values)):
        for back in steps:
            if t >= back and np.isfinite(values[t - back, s]):
                values[t, s] = values[t - back, s]
                break
    return values


def _means(X: np.ndarray) -> np.ndarray:
    """Of the values that are known in each column; 0 where none is."""
    known = np.isfinite(X)
    sums = np.where(known, X, 0.0).sum(axis=0)
    means: np.ndarray = sums / np.maximum(known.sum(axis=0), 1)
    return means


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
