"""Weights along falling values of l1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import GREY, PALE, colour, shortened, spread

__all__ = ["PathDisplay"]

_MOST_DASHES = ("-", "--", ":", "-.")


class PathDisplay(Display):
    """A line for each feature, the strongest ones with their names beside their ends.

    Parameters
    ----------
    l1s : array-like of shape (n_l1s,)
        Values, the largest first.
    weights : array-like of shape (n_l1s, n_features)
        Of features that have a weight somewhere.
    names : sequence
        Of these features.
    n_names : int, default=10
        How many of the features that are largest at the end get a colour and their name.
    chosen : float, optional
        A value of l1 to mark.
    """

    def __init__(
        self,
        l1s: np.ndarray,
        weights: np.ndarray,
        names: Sequence[object],
        *,
        n_names: int = 10,
        chosen: float | None = None,
    ):
        self.l1s, self.weights = np.asarray(l1s), np.asarray(weights)
        self.names, self.n_names, self.chosen = list(names), n_names, chosen

    def _size(self) -> tuple[float, float]:
        return 8.0, 4.8

    def _draw(self) -> None:
        ax, weights = self.ax_, self.weights
        order = np.argsort(-np.abs(weights[-1]), kind="stable")
        named, others = order[: self.n_names], order[self.n_names :]
        ax.plot(self.l1s, weights[:, others], color=PALE, lw=0.7)
        for rank, k in enumerate(named):
            dashes = _MOST_DASHES[rank // 8 % len(_MOST_DASHES)]
            label = str(self.names[k])
            ax.plot(self.l1s, weights[:, k], color=colour(rank), ls=dashes, label=label)
        ax.axhline(0.0, color=GREY, lw=0.8)
        ax.set(xscale="log", xlabel="l1 (the penalty falls from left to right)", ylabel="weight")
        if len(self.l1s) > 1:
            ax.set_xlim(self.l1s[0], self.l1s[-1])
        if self.chosen is not None:
            ax.axvline(self.chosen, color=GREY, lw=1, ls="--")
            place = (self.chosen, 0.99)
            ax.annotate(
                f" l1={self.chosen:.3g}", place, xycoords=("data", "axes fraction"), va="top",
                fontsize=9, color=GREY,
            )  # fmt: skip
        self._name(named)

    def _name(self, named: np.ndarray) -> None:
        """Names to the right of the last values, apart from each other."""
        if not len(named):
            return
        ends = self.weights[-1, named]
        low, high = self.ax_.get_ylim()
        places = spread(ends, 0.045 * (high - low))
        for rank, (k, place) in enumerate(zip(named, places, strict=True)):
            self.ax_.annotate(
                shortened(self.names[k], 24), (self.l1s[-1], place), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=9, color=colour(rank),
                annotation_clip=False,
            )  # fmt: skip
