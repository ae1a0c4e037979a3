"""How good sets of labels are, from counts alone, so that changing a few is cheap to judge.

The rows are cut into groups. Every metric comes as a vector: its value on all rows, then its value
without each of the groups. A gain that vanishes without one tenth of the rows is no gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sublearn import _core

__all__ = ["METRICS", "HitCounts", "RowGroups", "count_sets"]


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Consecutive rows; group g is first[g] .. first[g + 1] - 1."""

    first: np.ndarray

    @classmethod
    def make(cls, n_rows: int, n_groups: int = 10) -> RowGroups:
        """Groups of nearly one size."""
        n_groups = max(1, min(n_groups, n_rows))
        return cls(np.linspace(0, n_rows, n_groups + 1).astype(np.int64))

    def take(self, rows: np.ndarray) -> RowGroups:
        """The groups of some rows, in order."""
        return RowGroups(np.searchsorted(rows, self.first).astype(np.int64))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over all rows and over all but each group."""
        return leave_out(np.add.reduceat(values, self.first[:-1], axis=0))


def leave_out(by_group: np.ndarray) -> np.ndarray:
    """The total over groups, then the totals without each of them."""
    total = by_group.sum(axis=0)
    if len(by_group) == 1:
        return total[None]
    return np.concatenate([total[None], total[None] - by_group])


@dataclass(frozen=True, eq=False)
class HitCounts:
    """Counts of predicted sets, as `_core.count_hits` returns them."""

    row_hits: np.ndarray
    row_sizes: np.ndarray
    label_hits: np.ndarray
    label_sizes: np.ndarray

    def replace(
        self, old: HitCounts, new: HitCounts, rows: np.ndarray, columns: np.ndarray
    ) -> HitCounts:
        """The counts after the sets of some labels on some rows changed from `old` to `new`."""
        row_hits, row_sizes = self.row_hits.copy(), self.row_sizes.copy()
        row_hits[rows] += new.row_hits - old.row_hits
        row_sizes[rows] += new.row_sizes - old.row_sizes
        label_hits, label_sizes = self.label_hits.copy(), self.label_sizes.copy()
        label_hits[:, columns] += new.label_hits - old.label_hits
        label_sizes[:, columns] += new.label_sizes - old.label_sizes
        return HitCounts(row_hits, row_sizes, label_hits, label_sizes)


def count_sets(on: np.ndarray, truth: np.ndarray, groups: RowGroups) -> HitCounts:
    """Counts of the sets `on` beside the true ones."""
    return HitCounts(*_core.count_hits(on, truth, groups.first))


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the true sets before anything is predicted."""

    row_sizes: np.ndarray
    label_sizes: np.ndarray  # (n_groups, n_labels)
    groups: RowGroups

    @classmethod
    def of(cls, truth: np.ndarray, groups: RowGroups) -> Truth:
        """Counts of the true sets."""
        counts = count_sets(truth, truth, groups)
        return cls(counts.row_sizes, counts.label_sizes, groups)

    @property
    def n_rows(self) -> np.ndarray:
        """Rows, and rows without each group."""
        return leave_out(np.diff(self.groups.first)).astype(np.float64)


def _f1_samples(found: HitCounts, true: Truth) -> np.ndarray:
    scores = 2 * found.row_hits / np.maximum(1, found.row_sizes + true.row_sizes)
    return true.groups.sums(scores) / true.n_rows


def _jaccard(found: HitCounts, true: Truth) -> np.ndarray:
    union = found.row_sizes + true.row_sizes - found.row_hits
    return true.groups.sums(found.row_hits / np.maximum(1, union)) / true.n_rows


def _hamming(found: HitCounts, true: Truth) -> np.ndarray:
    wrong = found.row_sizes + true.row_sizes - 2 * found.row_hits
    n_labels = true.label_sizes.shape[1]
    return 1 - true.groups.sums(wrong.astype(np.float64)) / (true.n_rows * n_labels)


def _f1_micro(found: HitCounts, true: Truth) -> np.ndarray:
    hits = true.groups.sums(found.row_hits)
    sizes = true.groups.sums(found.row_sizes + true.row_sizes)
    return 2 * hits / np.maximum(1, sizes)


def _f1_macro(found: HitCounts, true: Truth) -> np.ndarray:
    sizes = leave_out(found.label_sizes + true.label_sizes)
    return (2 * leave_out(found.label_hits) / np.maximum(1, sizes)).mean(axis=1)


#: What `metric` may be; all are better when larger ("hamming" is 1 minus the loss).
METRICS: dict[str, Callable[[HitCounts, Truth], np.ndarray]] = {
    "f1_samples": _f1_samples,
    "f1_micro": _f1_micro,
    "f1_macro": _f1_macro,
    "jaccard": _jaccard,
    "hamming": _hamming,
}
