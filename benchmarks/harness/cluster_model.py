"""What a fit by labels takes on many cores: blocks dealt out one by one, from measured costs.

The seconds of a block of labels are taken to be ``a N^p positives^q`` for N rows. The three numbers
are fitted to blocks that were timed one by one; the rest is a simulation of the scheduler.
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

    factor: float
    of_rows: float
    of_positives: float

    @classmethod
    def fit(
        cls, sizes: Sequence[int], positives: Sequence[np.ndarray], seconds: Sequence[np.ndarray]
    ) -> BlockCosts:
        """From blocks timed at several numbers of rows; least squares of logarithms."""
        rows = np.concatenate([np.full(len(p), n) for n, p in zip(sizes, positives, strict=True)])
        known, found = np.concatenate(positives), np.concatenate(seconds)
        A = np.column_stack([np.ones(len(rows)), np.log(rows), np.log(known)])
        _, of_rows, of_positives = np.linalg.lstsq(A, np.log(found), rcond=None)[0]
        shape = rows**of_rows * known**of_positives
        return cls(float(found.sum() / shape.sum()), float(of_rows), float(of_positives))

    def seconds(self, n_rows: int, positives: np.ndarray) -> np.ndarray:
        """Of blocks with these numbers of positives."""
        return self.factor * float(n_rows) ** self.of_rows * positives**self.of_positives

    def __str__(self) -> str:
        return f"{self.factor:.3g} s N^{self.of_rows:.2f} positives^{self.of_positives:.2f}"


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
