r"""Scores that are negative squared distances, written as inner products.

.. math::
    -|x - w|^2 = \langle (2 x, 1, -|x|^2), (w, -|w|^2, 1) \rangle

is the augmentation of section 3.3.1 of Yen's thesis: searches by inner product then find the
nearest rows. A sum over blocks of coordinates is one of blocks of lifted ones, so that a block has
the distance in its own coordinates.
"""

from __future__ import annotations

import numpy as np

__all__ = ["METRIC_LOSSES", "BlockLift", "lifted_queries", "lifted_rows"]

#: Losses whose scores are distances.
METRIC_LOSSES = ("nca", "metric_triplet")


def lifted_rows(rows: np.ndarray) -> np.ndarray:
    """Rows (w, -|w|^2, 1)."""
    norms = -np.einsum("kd,kd->k", rows, rows)[:, None]
    return np.hstack([rows, norms, np.ones_like(norms)])


def lifted_queries(rows: np.ndarray) -> np.ndarray:
    """Rows (2x, 1, -|x|^2)."""
    norms = -np.einsum("id,id->i", rows, rows)[:, None]
    return np.hstack([2 * rows, np.ones_like(norms), norms])


class BlockLift:
    """Between one lifted row of `dim` coordinates and one that is lifted block by block."""

    def __init__(self, dim: int, n_blocks: int):
        self.dim = dim
        parts = np.array_split(np.arange(dim), min(n_blocks, dim))
        self._columns = [slice(int(part[0]), int(part[-1]) + 1) for part in parts]
        #: First column and number of coordinates of each block, in a row that is lifted in blocks.
        self.blocks = [(c.start + 2 * j, c.stop - c.start) for j, c in enumerate(self._columns)]

    @property
    def width(self) -> int:
        """Numbers of a row that is lifted in blocks."""
        return self.dim + 2 * len(self.blocks)

    def rows(self, lifted: np.ndarray) -> np.ndarray:
        """Weights."""
        return np.hstack([lifted_rows(lifted[:, part]) for part in self._columns])

    def queries(self, lifted: np.ndarray) -> np.ndarray:
        """Features."""
        return np.hstack([lifted_queries(lifted[:, part] / 2) for part in self._columns])

    def back(self, rows: np.ndarray) -> np.ndarray:
        """Weights, lifted once, from those that are lifted in blocks."""
        return lifted_rows(np.hstack([rows[:, first : first + n] for first, n in self.blocks]))

    def slopes(self, slopes: np.ndarray, lifted: np.ndarray) -> np.ndarray:
        """The gradient by x, from that by features that are lifted in blocks."""
        parts = [
            2 * slopes[:, first : first + n] - slopes[:, first + n + 1, None] * lifted[:, part]
            for (first, n), part in zip(self.blocks, self._columns, strict=True)
        ]
        return np.hstack(parts)

    def for_clusters(self, rows: np.ndarray, first: int, n: int) -> np.ndarray:
        """A block of rows without what no order depends on: the mean of -|w|^2, and the 1."""
        block = np.array(rows[:, first : first + n + 2])
        block[:, n] -= block[:, n].mean()
        block[:, n + 1] = 0
        return block
