"""What a fit by labels takes on many cores: blocks dealt out one by one, from measured costs.

The seconds of a block of labels are taken to be ``a (N / N0)^p + b positives``: every label meets
rows that do not carry it, and each of its own rows. `a`, `b` and `p` are fitted to blocks that were
timed one by one; the rest is a simulation of the scheduler.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["BlockCosts", "Machines", "power_law_counts", "run_time"]


@dataclass(frozen=True)
class BlockCosts:
    """Seconds of a block of labels on N rows with so many positives."""

    fixed: float  # at `n_rows` rows
    n_rows: int
    exponent: float
    per_positive: float

    @classmethod
    def fit(
        cls, sizes: Sequence[int], positives: Sequence[np.ndarray], seconds: Sequence[np.ndarray]
    ) -> BlockCosts:
        """From blocks timed at several numbers of rows."""
        lines = [np.polyfit(p, s, 1) for p, s in zip(positives, seconds, strict=True)]
        slope = float(np.median([max(line[0], 0.0) for line in lines]))
        rests = [max(float(np.mean(s - slope * p)), 1e-9)
                 for p, s in zip(positives, seconds, strict=True)]  # fmt: skip
        exponent = float(np.polyfit(np.log(sizes), np.log(rests), 1)[0])
        return cls(rests[-1], sizes[-1], exponent, slope)

    def seconds(self, n_rows: int, positives: np.ndarray) -> np.ndarray:
        """Of blocks with these numbers of positives."""
        fixed = self.fixed * (n_rows / self.n_rows) ** self.exponent
        return fixed + self.per_positive * positives


@dataclass(frozen=True)
class Machines:
    """Cores, and what they cost beside the work."""

    n_cores: int
    seconds_per_task: float  # of the client and the scheduler, one task after the other
    cores_per_machine: int = 16
    bytes_per_second: float = 1.25e9  # into a machine; ten gigabits


def power_law_counts(n_labels: int, total: float, power: float) -> np.ndarray:
    """Positives of labels, most first."""
    shares = np.arange(1, n_labels + 1, dtype=np.float64) ** -power
    return np.maximum(total * shares / shares.sum(), 1.0)


def run_time(
    seconds: np.ndarray, machines: Machines, blocks_per_task: int, n_bytes: float
) -> float:
    """Seconds until the last task ends: files first, then tasks, the longest first.

    Tasks are dealt out one after the other, since one scheduler deals them.
    """
    starts = np.arange(0, len(seconds), blocks_per_task)
    tasks = np.add.reduceat(seconds, starts)
    free = [n_bytes / machines.bytes_per_second] * machines.n_cores
    dealt = 0.0
    for task in tasks:
        dealt += machines.seconds_per_task
        begin = max(heapq.heappop(free), dealt)
        heapq.heappush(free, begin + float(task))
    return max(free)
