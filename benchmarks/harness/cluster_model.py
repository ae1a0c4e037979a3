"""What a fit by labels takes on many cores: blocks dealt out one by one, from measured costs.

The matrix entries that a block of labels visits are taken to be ``(a + c N) positives^q`` for N
rows, with a and c not negative: searches read the lists of features, which grow with N. They are
counted, so that nothing else on the machine disturbs them, and turned into seconds by the CPU time
of the same blocks. The rest is a simulation of the scheduler.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

__all__ = ["BlockCosts", "Machines", "power_law_counts", "run_time"]


@dataclass(frozen=True)
class BlockCosts:
    """Seconds of a block of labels on N rows with so many positives."""

    fixed: float  # entries, for one positive
    per_row: float
    power: float
    seconds_per_entry: float

    @classmethod
    def fit(cls, n_rows: np.ndarray, positives: np.ndarray, work: np.ndarray,
            seconds: np.ndarray) -> BlockCosts:  # fmt: skip
        """From blocks solved one by one; each array has an entry for each block."""
        logs = np.column_stack([np.ones(len(work)), np.log(n_rows), np.log(positives)])
        power = float(np.linalg.lstsq(logs, np.log(work), rcond=None)[0][2])
        shape = positives**power
        # Errors grow with the root of the work: neither the largest blocks nor the smallest rule.
        weights = work**-0.5
        design = np.column_stack([shape, shape * n_rows])
        found = nnls(design * weights[:, None], work * weights)[0]
        fixed, per_row = found * (work.sum() / (design @ found).sum())  # totals are what is asked
        return cls(float(fixed), float(per_row), power, float(seconds.sum() / work.sum()))

    def seconds(self, n_rows: int, positives: np.ndarray) -> np.ndarray:
        """Of blocks with these numbers of positives."""
        entries = (self.fixed + self.per_row * n_rows) * positives**self.power
        return self.seconds_per_entry * entries

    def __str__(self) -> str:
        entries = f"({self.fixed:.3g} + {self.per_row:.3g} N) positives^{self.power:.2f}"
        return f"{entries} entries at {1e9 * self.seconds_per_entry:.2f} ns"


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


def run_time(seconds: np.ndarray, machines: Machines, n_bytes: float) -> float:
    """Seconds until the last task ends: files first, then tasks in the order of the blocks.

    Tasks are dealt out one after the other, since one scheduler deals them. They are cut as the
    library does: 16 of equal cost for each core, of at most 64 blocks.
    """
    share = seconds.sum() / (16 * machines.n_cores)
    free = [n_bytes / machines.bytes_per_second] * machines.n_cores
    dealt = task = 0.0
    n_blocks = 0
    for i, block in enumerate(seconds.tolist()):
        task, n_blocks = task + block, n_blocks + 1
        if task >= share or n_blocks == 64 or i == len(seconds) - 1:
            dealt += machines.seconds_per_task
            heapq.heappush(free, max(heapq.heappop(free), dealt) + task)
            task, n_blocks = 0.0, 0
    return max(free)
