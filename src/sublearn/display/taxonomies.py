"""A taxonomy as a tree, roots on the left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import COLOURS, PALE, shortened

__all__ = ["TaxonomyDisplay"]

_MOST_NAMES = 150  # of leaves; names of more would hide each other
_INCH_PER_LEAF = 0.17
_BEHIND_NAMES = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}


class TaxonomyDisplay(Display):
    """Labels as dots below their parents: sizes are counts, colours are scores.

    Parameters
    ----------
    levels, heights : array-like of shape (n_labels,)
        Places of the labels, from left to right and from bottom to top.
    edges : pair of array-like of int
        Parents and their children.
    names : sequence of str
        Of the labels.
    n_leaves : int
        Labels without children.
    counts, scores : ndarray of shape (n_labels,), optional
        Sizes and colours.
    """

    def __init__(
        self,
        levels: np.ndarray,
        heights: np.ndarray,
        edges: tuple[np.ndarray, np.ndarray],
        names: Sequence[str],
        *,
        n_leaves: int,
        counts: np.ndarray | None = None,
        scores: np.ndarray | None = None,
    ):
        self.levels, self.heights = np.asarray(levels, dtype=np.float64), np.asarray(heights)
        self.edges, self.names, self.n_leaves = edges, list(names), n_leaves
        self.counts, self.scores = counts, scores

    def _size(self) -> tuple[float, float]:
        return 8.0, float(np.clip(_INCH_PER_LEAF * self.n_leaves, 3, 20))

    def _draw(self) -> None:
        ax, x, y = self.ax_, self.levels, self.heights
        for p, c in zip(*self.edges, strict=True):
            middle, ends = 0.5 * (x[p] + x[c]), [y[p], y[p], y[c], y[c]]
            ax.plot([x[p], middle, middle, x[c]], ends, c=PALE, lw=0.9, zorder=1)
        sizes: float | np.ndarray = 14.0
        if self.counts is not None:
            sizes = 6 + 150 * self.counts / max(1, self.counts.max())
        shades = COLOURS[0] if self.scores is None else self.scores
        drawn = ax.scatter(x, y, s=sizes, c=shades, zorder=2)
        if self.scores is not None:
            ax.figure.colorbar(drawn, ax=ax, shrink=0.5, label="score")
        if self.n_leaves <= _MOST_NAMES:
            self._name(sizes)
        ax.set_axis_off()

    def _name(self, sizes: float | np.ndarray) -> None:
        longest = max(map(len, self.names), default=0)
        room = 0.011 * min(longest, 34) * max(1.0, np.ptp(self.levels))
        self.ax_.set_xlim(self.levels.min() - 0.05, self.levels.max() + 0.05 + room)
        beside = 3 + 0.5 * np.sqrt(np.broadcast_to(sizes, len(self.names)))  # of a marker, points
        for t, name in enumerate(self.names):
            self.ax_.annotate(
                shortened(name), (self.levels[t], self.heights[t]), xytext=(beside[t], 0),
                textcoords="offset points", va="center", fontsize=7.5, bbox=_BEHIND_NAMES,
            )  # fmt: skip
