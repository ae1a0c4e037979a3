"""How far forecasts err: residuals of rows that a model has not seen, and levels that learn.

Split conformal: if the next residual is like n known ones, the k-th smallest of them exceeds it
with probability k / (n + 1). Loads are not that regular. Seasons change how hard they are to
forecast, so `update` lets new residuals take the place of the oldest, and the level that is looked
up for a share learns from the new rows (adaptive conformal inference, Gibbs and Candes 2021):

    level(share) += rate (share - share of the new residuals below the quantile at level(share))

These steps telescope: after T updates the mean share of residuals below the quantile differs from
the one asked for by (level(T) - level(0)) / (rate T), whatever the series does. Levels may leave
[0, 1] for that, where the widest quantile stands for them: to cut them off there would forget
misses, and cover too little.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["SHARES", "Residuals", "conformal_level"]

_FEWEST_ALIKE = 40  # residuals at one time of day, to take that time's alone
_RATE, _MOST_RATE = 0.01, 0.1  # of a level, for each new row and for all of an update
#: Shares whose levels are learned; others lie between.
SHARES = (0.005, 0.01, 0.025, *(0.05 * i for i in range(1, 20)), 0.975, 0.99, 0.995)


@dataclass(frozen=True)
class Residuals:
    """Truth minus forecast, newest last, the times of day of the rows, and the level of SHARES."""

    values: np.ndarray
    phases: np.ndarray
    levels: np.ndarray = field(default_factory=lambda: np.array(SHARES))

    def __len__(self) -> int:
        return len(self.values)

    def followed_by(
        self, values: np.ndarray, phases: np.ndarray, was_asked: np.ndarray | None = None
    ) -> Residuals:
        """With newer ones, as many of all as before, and levels that have learned from them.

        Levels learn from rows that a forecast was asked of, if that is known of any.
        """
        if len(self) == 0:
            return self
        both = np.append(self.values, values), np.append(self.phases, phases)
        learned = np.full(len(values), True) if was_asked is None else was_asked
        learned = learned if learned.any() else ~learned
        levels = self._learned(values[learned], phases[learned])
        return Residuals(both[0][-len(self) :], both[1][-len(self) :], levels)

    def _learned(self, values: np.ndarray, phases: np.ndarray) -> np.ndarray:
        """Levels after one step, by the mean over the new rows: one forecast had these levels."""
        shares = np.array(SHARES)
        is_upper, is_below = shares >= 0.5, np.zeros(len(shares))
        for value, phase in zip(values, phases, strict=True):
            known = self._alike(phase)
            n_less, n_up_to = int((known < value).sum()), int((known <= value).sum())
            in_use = np.clip((len(known) + 1) * self.levels, 1, len(known))  # as they are rounded
            is_below += np.where(is_upper, n_less < in_use, n_up_to + 1 <= in_use)
        n = max(len(values), 1)
        step = min(_RATE * n, _MOST_RATE) * (shares - is_below / n)
        return np.clip(self.levels + step, -1.0, 2.0)

    def quantiles(self, phase: int, shares: np.ndarray) -> np.ndarray:
        """What shares of residuals at this time of day lie below; they rise with the shares.

        Each is moved out by one residual of n + 1, away from the median.
        """
        known = np.maximum.accumulate(np.clip(self.levels, 0.0, 1.0))
        levels = np.interp(shares, [0.0, *SHARES, 1.0], [0.0, *known, 1.0])
        alike = self._alike(phase)
        return np.array(
            [
                conformal_level(alike, level)
                if share >= 0.5
                else -conformal_level(-alike, 1.0 - level)
                for share, level in zip(shares, levels, strict=True)
            ]
        )

    def _alike(self, phase: int) -> np.ndarray:
        alike = self.values[self.phases == phase]
        return alike if len(alike) >= _FEWEST_ALIKE else self.values


def conformal_level(residuals: np.ndarray, share: float) -> float:
    """What a new residual exceeds with probability 1 - share at most, if it is like the others.

    >>> conformal_level(np.arange(1.0, 10.0), 0.8)
    8.0
    """
    n = len(residuals)
    rank = min(max(int(np.ceil((n + 1) * share - 1e-9)), 1), n)
    return float(np.sort(residuals)[rank - 1])
