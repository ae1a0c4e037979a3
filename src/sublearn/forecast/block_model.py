"""One series and one block of leads: the best models by held-out error, and their residuals.

Which baselines a block is learned from, small models tell, tried on the last fifth of the series.

A model errs more on new rows than on its own. Quantiles of residuals of rows that it has not seen
say how far (`residuals`): they give intervals, and the level of a quantile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from sublearn.execution import map_blocks
from sublearn.forecast.local_models import Learner, LocalSettings
from sublearn.forecast.member import Member
from sublearn.forecast.residuals import SHARES, Residuals, conformal_level
from sublearn.forecast.rows import Baseline, Embedding, Rows
from sublearn.forecast.tube_regression import Fit, TubeLoss
from sublearn.io.fields import Fields, Floats, Integers, OrAbsent, Parts, check_fields, take_parts
from sublearn.typing import State
from sublearn.validation import Interval, OrNone, Positive

__all__ = ["BlockModel", "BlockReport", "BlockTask"]

#: The end of a series, for the intervals: a tenth, but up to a quarter to have four weeks.
_HELD_OUT, _MOST_HELD_OUT, _HELD_OUT_DAYS = 0.1, 0.25, 28
_FEWEST_ROWS = 8  # without a gap, to fit anything
_ENOUGH_ROWS = 6000  # a shorter series gives rows of up to three leads for each of its times

#: Features and relevance rows: of models that are tried, of those after a wish to stop.
_TRIED, _HURRIED = (120, 150), (50, 100)
_HURRIED_STEPS = 5  # of the solver
_LOOSER = 10.0  # times `tol`, for fits that only tell how far forecasts err
_MOST_TRIED_ROWS = 2000  # to learn from, and half as many to judge by
_SMALL_SHARE = 0.25  # local models that count less stay as small as they were tried
_NEAR = 1.25  # a second model whose error is within this of the best one's is averaged with it,
_SHORT = 10000  # on series up to this length: longer ones gain little and pay twice

_FIELDS: Fields = {
    "first": Positive(int),
    "last": Positive(int),
    "weights": Floats("members", bits=64),
    "quantile": OrNone(Interval(float, 0, 1)),
    "residuals": Floats("residuals", bits=64),
    "phases": Integers("residuals"),
    "levels": OrAbsent(Floats(len(SHARES), bits=64)),
    "member*": Parts(),
}


def never() -> bool:
    """For fits that no one stops."""
    return False


@dataclass(frozen=True)
class BlockTask:
    """What is to be fitted: a series (one column), leads from `first` to `last`, and how.

    The tube of the settings' loss is in shares of the mean load.
    """

    y: np.ndarray
    X: np.ndarray | None
    embedding: Embedding
    first: int
    last: int
    settings: LocalSettings
    baselines: tuple[Baseline, ...]
    has_intervals: bool
    seed: tuple[int, ...]  # of the fit, and the numbers of series and block
    n_threads: int = 1
    has_trials: bool = True

    def rows(self, positions: np.ndarray, leads: np.ndarray, baseline: Baseline) -> Rows:
        """Rows of the series."""
        return self.embedding.rows(self.y, self.X, positions, leads, baseline)

    def learner(self, should_stop: Callable[[], bool]) -> Learner:
        """With random numbers from their beginning."""
        rng, day = np.random.default_rng(self.seed), self.embedding.day
        return Learner(self.settings, rng, should_stop, self.n_threads, day)

    def drawn(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Times with a load, oldest first, each with one to three random leads of the block."""
        known = np.flatnonzero(np.isfinite(self.y))
        n_leads = self.last - self.first + 1
        n_each = min(max(_ENOUGH_ROWS // max(len(known), 1), 1), 3, n_leads)
        positions = np.repeat(known, n_each)
        return positions, rng.integers(self.first, self.last + 1, len(positions))

    def hurried(self) -> BlockTask:
        """With a small model and no residuals, for who has asked to stop."""
        kernels = self.settings.kernels.small(*_HURRIED)
        settings = replace(self.settings, kernels=kernels, max_iter=_HURRIED_STEPS)
        return replace(self, settings=settings, has_intervals=False)

    @property
    def needs_trials(self) -> bool:
        """Whether baselines are open, or how much of the local models to believe beside a line."""
        return self.has_trials and (self.settings.kernels.line or len(self.baselines) > 1)

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

    @classmethod
    def of(cls, fits: list[list[Fit]], n_rows: int, seconds: float) -> BlockReport:
        """Sums over the clusters of all members."""
        every = [fit for own in fits for fit in own]
        return cls(
            seconds,
            sum(sum(fit.objective for fit in own) for own in fits),
            sum(sum(fit.gap for fit in own) for own in fits),
            max(fit.n_iter for fit in every),
            len(every),
            n_rows,
            sum(fit.n_support for fit in every),
        )


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
        has_trials = task.needs_trials and not should_stop()
        chosen = _choose(task, should_stop) if has_trials else [Candidate(task.baselines[0])]
        if should_stop():
            task, chosen = task.hurried(), [replace(chosen[0], weight=1.0)]
        learner = task.learner(should_stop)
        positions, leads = task.drawn(learner.rng)
        rows = [task.rows(positions, leads, candidate.baseline) for candidate in chosen]
        usable = _usable(rows)
        if usable.sum() < _FEWEST_ROWS:
            raise ValueError(
                f"y must leave at least {_FEWEST_ROWS} steps whose lags are no gaps, got "
                f"{usable.sum()} in series {task.seed[1]}"
            )
        positions = positions[usable]
        loads = task.y[positions]
        n_old = int(np.searchsorted(positions, len(task.y) - task.n_held_out))
        n_old = n_old if n_old > 1 else len(loads)
        found = [
            candidate.fit(own.only(usable), loads, n_old, learner)
            for candidate, own in zip(chosen, rows, strict=True)
        ]
        weights = np.array([candidate.weight for candidate in chosen])
        ahead = np.zeros(len(loads) - n_old)
        for weight, (_, _, forecast) in zip(weights, found, strict=True):
            ahead += weight * forecast
        phases = positions[n_old:] % task.embedding.day
        model = cls(
            task.first, task.last, [member for member, _, _ in found], weights,
            Residuals(loads[n_old:] - ahead, phases), task.settings.loss.share_below,
        )  # fmt: skip
        fits = [own for _, own, _ in found]
        return model, BlockReport.of(fits, len(loads), time.perf_counter() - start)

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
        was_asked: np.ndarray,
    ) -> BlockModel:  # fmt: skip
        """After one online pass over new rows, whose residuals take the place of the oldest."""
        rows = self._rows(rows_of)
        usable = _usable(rows)
        if not usable.any():
            return self
        rows, loads = [own.only(usable) for own in rows], loads[usable]
        members = [
            member.updated(own, loads) for member, own in zip(self.members, rows, strict=True)
        ]
        residuals = self.residuals.followed_by(
            loads - self._unshifted(rows), phases[usable], was_asked[usable]
        )
        return replace(self, members=members, residuals=residuals)

    def distances(self, phase: int, shares: np.ndarray) -> np.ndarray:
        """What is added to a forecast at this time of day to have these shares of loads below."""
        return self.residuals.quantiles(phase, shares) - self.shift

    def to_state(self) -> State:
        """Arrays and numbers by name."""
        state: State = {"first": self.first, "last": self.last, "weights": self.weights}
        state |= {"quantile": self.quantile, "residuals": self.residuals.values}
        state |= {"phases": self.residuals.phases, "levels": self.residuals.levels}
        for i, member in enumerate(self.members):
            state |= {f"member{i}/{k}": v for k, v in member.to_state().items()}
        return state

    @classmethod
    def from_state(cls, state: State) -> BlockModel:
        """Inverse of `to_state`."""
        check_fields(state, _FIELDS)
        own = {k: v for k, v in state.items() if "/" not in k}
        levels = own.pop("levels", np.array(SHARES))  # earlier files have none
        own["residuals"] = Residuals(own["residuals"], own.pop("phases"), levels)
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


# --- trials -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A baseline, how much of its local models to believe, its weight among those chosen."""

    baseline: Baseline
    share: float = 1.0
    error: float = np.inf
    weight: float = 1.0

    def fit(
        self, rows: Rows, loads: np.ndarray, n_old: int, learner: Learner
    ) -> tuple[Member, list[Fit], np.ndarray]:
        """A model of all rows, and forecasts of those from `n_old` on by a model of the others."""
        if self.share < _SMALL_SHARE:
            learner = learner.using(kernels=learner.settings.kernels.small(*_TRIED))
        old, new = np.arange(n_old), np.arange(n_old, len(loads))
        first = learner if len(new) == 0 else learner.using(tol=_LOOSER * learner.settings.tol)
        member, fits = Member.fit(rows.only(old), loads[old], self.baseline, self.share, first)
        if len(new) == 0:
            return member, fits, np.empty(0)
        forecast = member.forecast(rows.only(new))
        member, fits = member.refit(rows, loads, learner)
        return member, fits, forecast


def _choose(task: BlockTask, should_stop: Callable[[], bool]) -> list[Candidate]:
    """The best candidate, with the second if it comes near, weighted by inverse squared errors.

    After a wish to stop no more are tried.
    """

    def attempt(option: Baseline) -> Candidate | None:
        is_needed = option == task.baselines[0] or not should_stop()
        return _try(task, option, should_stop) if is_needed else None

    found = map_blocks(attempt, task.baselines, task.n_threads, stay_here=True)
    tried = sorted((c for c in found if c is not None), key=lambda c: c.error)
    best = tried[:1]
    if len(task.y) <= _SHORT and 0.0 < tried[0].error < np.inf:
        best += [c for c in tried[1:2] if c.error <= _NEAR * tried[0].error]
    if len(best) == 1:
        return best
    weights = np.array([(tried[0].error / c.error) ** 2 for c in best])
    shares = weights / weights.sum()
    return [replace(c, weight=float(w)) for c, w in zip(best, shares, strict=True)]


def _try(task: BlockTask, baseline: Baseline, should_stop: Callable[[], bool]) -> Candidate:
    """Mean absolute error of a small model, with the share of its local part that is best."""
    if baseline.weeks * 7 * task.embedding.day > len(task.y) // 3:
        return Candidate(baseline)
    learner = task.learner(should_stop)
    rng, settings = learner.rng, task.settings
    positions, leads = task.drawn(rng)
    chosen = _sample(np.arange(len(positions)), 8 * _MOST_TRIED_ROWS, rng)
    positions, leads = positions[chosen], leads[chosen]
    rows = task.rows(positions, leads, baseline)
    n_old = int(np.searchsorted(positions, int(0.8 * len(task.y))))
    usable = np.flatnonzero(rows.usable)
    old = _sample(usable[usable < n_old], _MOST_TRIED_ROWS, rng)
    new = _sample(usable[usable >= n_old], _MOST_TRIED_ROWS // 2, rng)
    if len(old) < _FEWEST_ROWS or len(new) == 0:
        return Candidate(baseline)
    loads = task.y[positions]
    # How well another quantile fits, an error cannot say.
    loss = settings.loss if settings.loss.share_below is None else TubeLoss.quantile(0.5)
    small_kernels, tol = settings.kernels.small(*_TRIED), _LOOSER * settings.tol
    learner = learner.using(kernels=small_kernels, loss=loss, tol=tol)
    small, _ = Member.fit(rows.only(old), loads[old], baseline, 1.0, learner)
    linear, local = small.parts(rows.only(new))
    left, power = loads[new] - linear, float(local @ local)
    share = min(max(float(local @ left) / power, 0.0), 1.0) if power > 0 else 0.0
    share = share if settings.kernels.line else 1.0
    return Candidate(baseline, share, float(np.abs(left - share * local).mean()))


def _sample(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Some of the rows, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _usable(rows: Iterable[Rows]) -> np.ndarray:
    """True where no baseline has a gap."""
    found: np.ndarray = np.logical_and.reduce([own.usable for own in rows])
    return found
