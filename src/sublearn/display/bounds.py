"""How a score rose and its bound fell until they met."""

from __future__ import annotations

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import COLOURS, PALE, telling_limits, timed

__all__ = ["BoundDisplay"]


class BoundDisplay(Display):
    """The best score so far, an upper bound on all scores, and the gap between them.

    Parameters
    ----------
    seconds : array-like of shape (n_rows,)
        When each row was written.
    score, bound : array-like of shape (n_rows,)
        Infinite where none was known.
    title : str, default=""
        Over the picture.
    """

    def __init__(
        self, seconds: np.ndarray, score: np.ndarray, bound: np.ndarray, *, title: str = ""
    ):
        columns = (np.asarray(one, dtype=np.float64) for one in (seconds, score, bound))
        self.seconds, self.score, self.bound = columns
        if not len(self.seconds):
            raise ValueError("the trace has no rows, so there is nothing to plot")
        self.title = title

    def _draw(self) -> None:
        ax, (late, unit) = self.ax_, timed(self.seconds)
        score, bound = (np.where(np.isfinite(one), one, np.nan) for one in (self.score, self.bound))
        ax.fill_between(late, score, bound, step="post", color=PALE, lw=0, label="gap")
        mark = "o" if len(late) <= 60 else ""
        for values, shade, label in (
            (bound, COLOURS[1], "bound: no assignment scores more"),
            (score, COLOURS[0], "best score so far"),
        ):
            ax.step(late, values, where="post", color=shade, marker=mark, ms=3.5, label=label)
        limits = telling_limits(np.concatenate([score, bound]))
        if limits is not None:
            ax.set_ylim(*limits)
            is_shown = (score >= limits[0]) | (bound <= limits[1])
            k = int(np.argmax(is_shown))
            first = max(late[max(0, k - 1)], 0.7 * late[k])
        else:
            first = late[0]
        if first > 0 and late[-1] > 30 * first:
            ax.set_xscale("log")
        if late[-1] > first:
            ax.set_xlim(first, late[-1] + 0.04 * (late[-1] - first))
        ax.set(xlabel=unit, ylabel="score")
        ax.set_title(self.title)
        ax.legend(loc="best")
