"""What the loads of a row are measured from: zero, a weekly profile, the last loads known.

Loads that wander from week to week are better learned as deviations from the last weeks at the
same time. Loads whose level moves within a day are better learned as what they gain or lose from
the origin of the forecast on (anchored): then the same gain on other days says most about today's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sublearn.forecast.embedding import Embedding, gather, trailing_mean

__all__ = ["Baseline", "weekly_profile"]

_OLDER = 0.5  # what a week counts beside the week after it


@dataclass(frozen=True)
class Baseline:
    """`weeks` of the profile, 0 for none; anchored rows start from the last hour known."""

    weeks: int = 0
    is_anchored: bool = False

    def columns(
        self, y: np.ndarray, embedding: Embedding, positions: np.ndarray, leads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Columns of loads measured from the baseline, and the baseline of each row's own load.

        A position may lie up to its lead behind the end of y.
        """
        base = np.zeros(len(positions))
        if self.weeks:
            week = 7 * embedding.day
            base = weekly_profile(y, positions, week, self.weeks)
            y = y - weekly_profile(y, np.arange(len(y)), week, self.weeks)
        back, origins = embedding.back(leads), positions - leads
        loads = gather(y, positions[:, None] - back)
        # The level of a week says nothing of what is gained from an hour on.
        windows = [w for w in embedding.windows if not self.is_anchored or w <= embedding.day]
        means = [trailing_mean(y, origins, window) for window in windows]
        columns = np.column_stack([loads, *means])
        if not self.is_anchored:
            return columns, base
        hour = max(1, embedding.day // 24)
        anchor = trailing_mean(y, origins, hour)
        # A load about k days old has the anchor of k days ago; recent loads and means have today's.
        days = embedding.day * np.rint(back / embedding.day).astype(np.int64)
        days = np.where(np.array(embedding.lags) < embedding.day, 0, days)
        anchors = trailing_mean(y, origins[:, None] - days, hour)
        columns[:, : back.shape[1]] -= anchors
        columns[:, back.shape[1] :] -= anchor[:, None]
        return columns, base + anchor


def weekly_profile(y: np.ndarray, positions: np.ndarray, week: int, n_weeks: int) -> np.ndarray:
    """Mean load at the same time of the last weeks that are known, newer ones counting more."""
    before = gather(y, positions[:, None] - week * np.arange(1, n_weeks + 1))
    weights = np.where(np.isfinite(before), _OLDER ** np.arange(n_weeks), 0.0)
    sums = (weights * np.nan_to_num(before)).sum(axis=1)
    total = weights.sum(axis=1)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan)
