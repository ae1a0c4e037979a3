"""What trimming left of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import COLOURS, GREY, INK, PALE, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LayersDisplay", "TrimDisplay"]


class LayersDisplay(Display):
    """Weights of each layer before and after, on a logarithmic axis.

    Parameters
    ----------
    names : sequence of str
        Of the layers.
    n_before, n_after : sequence of int
        Weights.
    title : str, default=""
        Over the picture.
    """

    def __init__(
        self, names: Sequence[str], n_before: Sequence[int], n_after: Sequence[int], *,
        title: str = "",
    ):  # fmt: skip
        self.names, self.title = list(names), title
        self.n_before, self.n_after = np.asarray(n_before), np.asarray(n_after)

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.2 + 0.5 * len(self.names)

    def _draw(self) -> None:
        ax, at = self.ax_, np.arange(len(self.names))
        ax.barh(at, self.n_before, color=PALE, label="before", height=0.75)
        ax.barh(at, self.n_after, color=COLOURS[0], label="left", height=0.75)
        ax.set_xscale("log")
        most = max(2, int(self.n_before.max(initial=2)))
        ax.set_xlim(1, most**1.35)
        for place, before, after in zip(at, self.n_before, self.n_after, strict=True):
            ax.annotate(
                f"{after:,} of {before:,}", (before, place), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize=8, color=INK,
            )  # fmt: skip
        ax.set_yticks(at, [shortened(name) for name in self.names])
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        ax.set_xlabel("weights")
        ax.set_title(self.title)
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)


class TrimDisplay(Display):
    """The layers, what the search for a penalty saw, and how much smaller and faster it became.

    Parameters
    ----------
    layers : LayersDisplay
        The first panel.
    search : mapping with `n_weights`, `criterion` and `is_accepted`
        A row for each penalty that was tried.
    kept : (int, float)
        Weights and criterion of what was returned.
    given : float
        Criterion of the network given.
    criterion : str
        What it is called, and of which samples it is.
    gains : mapping of str to float
        By what, how many times less than the network given.
    change : str, default=""
        What became of the error.
    """

    def __init__(
        self,
        layers: LayersDisplay,
        search: Mapping[str, Any],
        *,
        kept: tuple[int, float],
        given: float,
        criterion: str,
        gains: Mapping[str, float],
        change: str = "",
    ):
        self.layers = layers
        self.search = {name: np.asarray(values) for name, values in search.items()}
        self.kept, self.given, self.criterion = kept, given, criterion
        self.gains, self.change = dict(gains), change

    def _n_panels(self) -> int:
        return 3

    def _size(self) -> tuple[float, float]:
        return 15.0, max(3.4, 1.2 + 0.5 * len(self.layers.names))

    def _draw(self) -> None:
        self.layers.plot(self.axes_[0])
        self._draw_search(self.axes_[1])
        self._draw_gains(self.axes_[2])

    def _draw_search(self, ax: Axes) -> None:
        from matplotlib.ticker import NullFormatter

        is_kept = self.search["is_accepted"] == 1
        kinds = ((is_kept, "o-", "allowed", 0), (~is_kept, "x", "not allowed", 1))
        for is_shown, mark, label, n in kinds:
            sizes, values = (self.search[key][is_shown] for key in ("n_weights", "criterion"))
            ax.plot(sizes, values, mark, color=COLOURS[n], label=label)
        ax.plot(*([value] for value in self.kept), "*", ms=12, color=INK, label="returned")
        ax.axhline(self.given, color=GREY, lw=1, label="network given")
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())  # its labels overlap
        ax.set(xlabel="weights", ylabel=self.criterion)
        ax.set_title("The search")
        ax.legend(fontsize=8)

    def _draw_gains(self, ax: Axes) -> None:
        at, times = np.arange(len(self.gains)), [min(r, 1e9) for r in self.gains.values()]
        ax.barh(at, times, color=COLOURS[0])
        for place, ratio in zip(at, times, strict=True):
            ax.annotate(f" {ratio:,.1f}", (ratio, place), va="center", fontsize=8)
        ax.set_xscale("log")
        ax.set_xlim(min(0.5, *times), 4 * max(times))  # room for the text
        ax.axvline(1.0, color=GREY, lw=1)
        ax.set_yticks(at, list(self.gains))
        ax.invert_yaxis()
        ax.set_xlabel("times less than the network given")
        ax.set_title(self.change, fontsize=10)
