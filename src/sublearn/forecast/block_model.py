"""One series and one block of leads: the best models by held-out error, and their residuals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sublearn.forecast.baseline import Baseline
from sublearn.forecast.calibration import Residuals, conformal_level
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.local_models import LocalSettings, Training
from sublearn.forecast.member import Member, never
from sublearn.forecast.rows import Rows
from sublearn.forecast.trials import Candidate, choose, settings_for
from sublearn.io.fields import Floats, Integers, Parts, check_fields, take_parts
from sublearn.validation import Interval, OrNone, Positive

__all__ = ["BlockModel", "BlockReport", "BlockTask"]

#: The end of a series, for the intervals: a tenth, but up to a quarter to have four weeks.
_HELD_OUT, _MOST_HELD_OUT, _HELD_OUT_DAYS = 0.1, 0.25, 28
#: Settings of the small model that a block gets after a wish to stop.
_HURRIED: dict[str, Any] = {
    "relevance_rows": 100,
    "n_clusters": 1,
    "n_components": 50,
    "max_iter": 5,
}
_FEWEST_ROWS = 8  # without a gap, to fit anything
_ENOUGH_ROWS = 6000  # a shorter series gives rows of up to three leads for each of its times


_FIELDS: dict[str, Any] = {
    "first": Positive(int),
    "last": Positive(int),
    "weights": Floats("members", bits=64),
    "quantile": OrNone(Interval(float, 0, 1)),
    "residuals": Floats("residuals", bits=64),
    "phases": Integers("residuals"),
    "member*": Parts(),
}


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
    baselines: tuple[Baseline, ...]
    has_intervals: bool
    seed: tuple[int, ...]  # of the fit, and the numbers of series and block
    is_hurried: bool = False  # without trials

    def rows(self, positions: np.ndarray, leads: np.ndarray, baseline: Baseline) -> Rows:
        """Rows of the series."""
        return Rows.make(self.y, self.X, self.embedding, self.calendar, positions, leads, baseline)

    def drawn(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Times with a load, oldest first, each with one to three random leads of the block."""
        known = np.flatnonzero(np.isfinite(self.y))
        n_leads = self.last - self.first + 1
        n_each = min(max(_ENOUGH_ROWS // max(len(known), 1), 1), 3, n_leads)
        positions = np.repeat(known, n_each)
        return positions, rng.integers(self.first, self.last + 1, len(positions))

    def hurried(self) -> BlockTask:
        """With a small model and no residuals, for who has asked to stop."""
        return replace(self, settings=replace(self.settings, **_HURRIED), has_intervals=False)

    @property
    def n_held_out(self) -> int:
        """Steps at the end of the series that a first fit does not see."""
        if not self.has_intervals and self.settings.loss.share_below is None:
            return 0
        n, four_weeks = len(self.y), _HELD_OUT_DAYS * self.embedding.day
        return int(max(_HELD_OUT * n, min(_MOST_HELD_OUT * n, four_weeks)))


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
    """Fitted. With the quantile loss, `quantile` is the share that held-out residuals level."""

    first: int
    last: int
    members: list[Member]
    weights: np.ndarray
    residuals: Residuals
    quantile: float | None

    @classmethod
    def fit(
        cls, task: BlockTask, should_stop: Callable[[], bool] = never
    ) -> tuple[BlockModel, BlockReport]:
        """Fit to the older rows, keep residuals of the newest, fit to all."""
        start = time.perf_counter()
        rng = np.random.default_rng(task.seed)
        has_trials = not (task.is_hurried or should_stop())
        chosen = choose(task, should_stop) if has_trials else [Candidate(task.baselines[0])]
        if should_stop():
            task, chosen = task.hurried(), [replace(chosen[0], weight=1.0)]
        weights = np.array([candidate.weight for candidate in chosen])
        positions, leads = task.drawn(rng)
        rows = [task.rows(positions, leads, candidate.baseline) for candidate in chosen]
        usable = np.logical_and.reduce([own.usable for own in rows])
        if usable.sum() < _FEWEST_ROWS:
            raise ValueError(
                f"y must leave at least {_FEWEST_ROWS} steps whose lags are no gaps, got "
                f"{usable.sum()} in series {task.seed[1]}"
            )
        positions = positions[usable]
        loads = task.y[positions]
        n_old = int(np.searchsorted(positions, len(task.y) - task.n_held_out))
        n_old = n_old if n_old > 1 else len(loads)
        members, trainings, ahead = [], [], np.zeros(len(loads) - n_old)
        for candidate, weight, own in zip(chosen, weights, rows, strict=True):
            member, training, forecast = _fit_member(
                own.only(usable), loads, n_old, candidate, task, rng, should_stop
            )
            members.append(member)
            trainings.append(training)
            ahead += weight * forecast
        phases = positions[n_old:] % task.embedding.day
        residuals = Residuals(loads[n_old:] - ahead, phases)
        quantile = task.settings.loss.share_below
        model = cls(task.first, task.last, members, weights, residuals, quantile)
        return model, _report(model, trainings, len(loads), time.perf_counter() - start)

    @property
    def profile_weeks(self) -> int:
        """Longest profile of a member."""
        return max(member.baseline.weeks for member in self.members)

    @property
    def n_weights(self) -> int:
        """Coefficients of all local models."""
        return sum(len(w) for member in self.members for w in member.models.weights)

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

    def forecast(self, rows_of: Callable[[Baseline], Rows]) -> np.ndarray:
        """Loads; `rows_of` makes the rows, measured from a baseline."""
        return self._unshifted(self._rows(rows_of)) + self.shift

    def updated(
        self, rows_of: Callable[[Baseline], Rows], loads: np.ndarray, phases: np.ndarray,
        settings: LocalSettings,
    ) -> BlockModel:  # fmt: skip
        """After one online pass over new rows, whose residuals take the place of the oldest."""
        rows = self._rows(rows_of)
        usable = np.logical_and.reduce([own.usable for own in rows])
        if not usable.any():
            return self
        rows, loads = [own.only(usable) for own in rows], loads[usable]
        members = [
            member.updated(own, loads, settings)
            for member, own in zip(self.members, rows, strict=True)
        ]
        residuals = self.residuals.followed_by(loads - self._unshifted(rows), phases[usable])
        return replace(self, members=members, residuals=residuals)

    def interval(self, phase: int, coverage: float) -> tuple[float, float]:
        """Distances below and above a forecast at this time of day that hold the truth so often."""
        below, above = self.residuals.interval(phase, coverage)
        return below - self.shift, above - self.shift

    def to_state(self) -> dict[str, Any]:
        """Arrays and numbers by name."""
        state: dict[str, Any] = {"first": self.first, "last": self.last, "weights": self.weights}
        state |= {"quantile": self.quantile, "residuals": self.residuals.values}
        state["phases"] = self.residuals.phases
        for i, member in enumerate(self.members):
            state |= {f"member{i}/{k}": v for k, v in member.to_state().items()}
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BlockModel:
        """Inverse of `to_state`."""
        check_fields(state, _FIELDS)
        own = {k: v for k, v in state.items() if "/" not in k}
        own["residuals"] = Residuals(own["residuals"], own.pop("phases"))
        n_members = len(own["weights"])
        if n_members == 0:
            raise ValueError("weights must have at least one member, got none")
        members = [Member.from_state(take_parts(state, f"member{i}/")) for i in range(n_members)]
        return cls(**own, members=members)

    def _rows(self, rows_of: Callable[[Baseline], Rows]) -> list[Rows]:
        return [rows_of(member.baseline) for member in self.members]

    def _unshifted(self, rows: list[Rows]) -> np.ndarray:
        found = [member.forecast(own) for member, own in zip(self.members, rows, strict=True)]
        return np.asarray(self.weights @ np.stack(found))


def _fit_member(
    rows: Rows, loads: np.ndarray, n_old: int, candidate: Candidate, task: BlockTask,
    rng: np.random.Generator, should_stop: Callable[[], bool],
) -> tuple[Member, Training, np.ndarray]:  # fmt: skip
    """A model of all rows, and forecasts of those from `n_old` on by a model of the others."""
    settings = settings_for(candidate, task.settings)
    old, new = np.arange(n_old), np.arange(n_old, len(loads))
    member, training = Member.fit(
        rows.only(old), loads[old], candidate.baseline, candidate.share, settings, rng, should_stop
    )
    if len(new) == 0:
        return member, training, np.empty(0)
    forecast = member.forecast(rows.only(new))
    member, training = member.refit(rows, loads, settings, rng, should_stop)
    return member, training, forecast


def _report(
    model: BlockModel, trainings: list[Training], n_rows: int, seconds: float
) -> BlockReport:
    return BlockReport(
        seconds,
        sum(training.objective for training in trainings),
        sum(training.gap for training in trainings),
        max(training.n_iter for training in trainings),
        sum(len(member.models.weights) for member in model.members),
        n_rows,
        sum(fit.n_support for training in trainings for fit in training.fits),
    )
