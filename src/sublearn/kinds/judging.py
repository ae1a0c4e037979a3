"""Measures as functions of sums over items, and how sure they are: resampled intervals.

Every measure here is a function of sums over items (a mean, a quotient of sums, a root of one).
A resample draws as many items as there are, with replacement; its sums are those of all items
weighted by how often each was drawn. An interval holds the middle 95 % of the values of a measure
over the resamples (the percentile bootstrap). Two models on the same items are compared on the
same resamples, so that what makes an item hard for both does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from sublearn.typing import JsonObject

__all__ = ["Comparison", "Judgement", "Measure", "compare", "intervals", "mean", "quotient"]

_MOST_GROUPS = 5000  # items are resampled in so many groups where they are more
_N_RESAMPLES = 1000


@dataclass(frozen=True)
class Measure:
    """A function of sums over items.

    Parameters
    ----------
    parts : ndarray of shape (n_items, n_parts)
        What is summed.
    combine : callable
        From sums of shape (n, n_parts) to values of shape (n,).
    is_share : bool
        Whether people read it in percent.
    is_better_high : bool or None
        Whether larger is better; None for what is neither.
    """

    parts: np.ndarray
    combine: Callable[[np.ndarray], np.ndarray]
    is_share: bool = True
    is_better_high: bool | None = True

    @property
    def value(self) -> float:
        """Over all items, each once."""
        return float(self.combine(self.parts.sum(axis=0, keepdims=True))[0])


@dataclass(frozen=True)
class Judgement:
    """Measures by name, and facts such as the number of rows.

    `cuts` are the numbers k of names that end in ``@k``; `sketches` hold what a page draws.
    """

    title: str
    facts: JsonObject
    measures: Mapping[str, Measure]
    sketches: Mapping[str, object] = field(default_factory=dict)

    def figures(self) -> JsonObject:
        """Facts and values, for JSON."""
        values = {name: one.value for name, one in self.measures.items()}
        return self.facts | {k: v if np.isfinite(v) else None for k, v in values.items()}


@dataclass(frozen=True)
class Comparison:
    """The difference of a measure between two models on the same items, with its interval."""

    difference: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def mean(values: np.ndarray, *, is_share: bool = True, is_better_high: bool = True) -> Measure:
    """The mean over items."""
    values = np.asarray(values, dtype=np.float64)
    return quotient(values, np.ones(len(values)), is_share=is_share, is_better_high=is_better_high)


def quotient(
    above: np.ndarray,
    below: np.ndarray,
    *,
    is_share: bool = True,
    is_better_high: bool | None = True,
) -> Measure:
    """One sum over another; 0 where there is nothing to divide by."""
    parts = np.stack([above, below], axis=1).astype(np.float64)
    return Measure(parts, _quotient, is_share, is_better_high)


def _quotient(sums: np.ndarray) -> np.ndarray:
    return np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(sums)), where=sums[:, 1] > 0)


def intervals(measures: Mapping[str, Measure], *, seed: int = 0) -> dict[str, tuple[float, float]]:
    """The middle 95 % of each measure over resamples of the items."""
    values = _resample(measures, seed)
    return {name: _middle(found) for name, found in values.items()}


def compare(
    own: Mapping[str, Measure], others: Mapping[str, Measure], *, seed: int = 0
) -> dict[str, Comparison]:
    """Differences, own less other, of the measures that both have, on the same resamples.

    Raises
    ------
    ValueError
        If the measures are of another number of items.
    """
    common = [name for name in own if name in others]
    sizes = {len(m[name].parts) for name in common for m in (own, others)}
    if len(sizes) > 1:
        raise ValueError(f"both models must be judged on the same items, got {sorted(sizes)}")
    left, right = (_resample({n: m[n] for n in common}, seed) for m in (own, others))
    return {
        name: Comparison(own[name].value - others[name].value, *_middle(left[name] - right[name]))
        for name in common
    }


def _middle(values: np.ndarray) -> tuple[float, float]:
    low, high = np.nanquantile(values, [0.025, 0.975]) if np.isfinite(values).any() else (0.0, 0.0)
    return float(low), float(high)


def _resample(measures: Mapping[str, Measure], seed: int) -> dict[str, np.ndarray]:
    """Values of each measure over the resamples; the same draws for the same number of items."""
    found: dict[str, np.ndarray] = {}
    draws: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for name, measure in measures.items():
        n = len(measure.parts)
        if n not in draws:
            draws[n] = _draw(n, np.random.default_rng(seed))
        groups, counts = draws[n]
        sums = np.stack(
            [np.bincount(groups, column, counts.shape[1]) for column in measure.parts.T], axis=1
        )
        found[name] = measure.combine(counts @ sums)
    return found


def _draw(n_items: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The group of each item, and how often each resample has drawn each group."""
    n_groups = min(n_items, _MOST_GROUPS)
    groups = rng.permutation(n_items) % n_groups if n_items > n_groups else np.arange(n_items)
    drawn = rng.integers(0, n_groups, (_N_RESAMPLES, n_groups))
    keys = drawn + n_groups * np.arange(_N_RESAMPLES)[:, None]
    counts = np.bincount(keys.ravel(), minlength=_N_RESAMPLES * n_groups)
    return groups, counts.reshape(_N_RESAMPLES, n_groups).astype(np.float64)
