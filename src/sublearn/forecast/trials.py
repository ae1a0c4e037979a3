"""Which baselines a block is learned from: small models, tried on the last fifth of the series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sublearn.execution import map_blocks
from sublearn.forecast.baseline import Baseline
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.member import Member, never
from sublearn.forecast.tube_loss import TubeLoss

if TYPE_CHECKING:
    from sublearn.forecast.block_model import BlockTask

__all__ = ["Candidate", "choose", "settings_for"]

_FEW_COMPONENTS, _FEW_RELEVANCE_ROWS = 120, 150  # of the small models
_MOST_ROWS = 4000  # to learn from, and half as many to judge by
_SMALL_SHARE = 0.25  # local models that count less stay as small as they were tried
_NEAR = 1.25  # a second model whose error is within this of the best one's is averaged with it,
_SHORT = 10000  # on series up to this length: longer ones gain little and pay twice


@dataclass(frozen=True)
class Candidate:
    """A baseline, how much of its local models to believe, its weight among those chosen."""

    baseline: Baseline
    share: float = 1.0
    error: float = np.inf
    weight: float = 1.0


def choose(task: BlockTask, should_stop: Callable[[], bool] = never) -> list[Candidate]:
    """The best candidate, with the second if it comes near, weighted by inverse squared errors.

    After a wish to stop no more are tried.
    """

    def attempt(option: Baseline) -> Candidate | None:
        is_needed = option == task.baselines[0] or not should_stop()
        return _try(task, option, should_stop) if is_needed else None

    found = map_blocks(attempt, task.baselines, task.settings.n_threads, stay_here=True)
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
    rng = np.random.default_rng(task.seed)
    positions, leads = task.drawn(rng)
    rows = task.rows(positions, leads, baseline)
    n_old = int(np.searchsorted(positions, int(0.8 * len(task.y))))
    usable = np.flatnonzero(rows.usable)
    old = _sample(usable[usable < n_old], _MOST_ROWS, rng)
    new = _sample(usable[usable >= n_old], _MOST_ROWS // 2, rng)
    if len(old) < 8 or len(new) == 0:
        return Candidate(baseline)
    loads = task.y[positions]
    settings = _small(task.settings)
    if settings.loss.share_below is not None:  # how well another quantile fits, an error cannot say
        settings = replace(settings, loss=TubeLoss.quantile(0.5))
    small, _ = Member.fit(rows.only(old), loads[old], baseline, 1.0, settings, rng, should_stop)
    linear, local = small.parts(rows.only(new))
    left, power = loads[new] - linear, float(local @ local)
    share = min(max(float(local @ left) / power, 0.0), 1.0) if power > 0 else 0.0
    return Candidate(baseline, share, float(np.abs(left - share * local).mean()))


def settings_for(candidate: Candidate, settings: LocalSettings) -> LocalSettings:
    """As asked for, or small where the local models count for little."""
    return settings if candidate.share >= _SMALL_SHARE else _small(settings)


def _small(settings: LocalSettings) -> LocalSettings:
    """Of local models that cost little."""
    return replace(
        settings,
        n_clusters=1,
        n_components=min(_FEW_COMPONENTS, settings.n_components),
        relevance_rows=min(_FEW_RELEVANCE_ROWS, settings.relevance_rows),
    )


def _sample(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Some of the rows, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
