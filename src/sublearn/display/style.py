"""The look of all pictures: colours that colour-blind readers tell apart, quiet axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from sublearn.errors import needs_extra

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "GREY",
    "INK",
    "MINUS",
    "PALE",
    "PLUS",
    "colour",
    "dated",
    "pyplot",
    "shortened",
    "spread",
    "styled",
    "telling_limits",
    "timed",
]

#: Of series in turn: blue, orange, green, pink, ochre, violet, sky, grey. The charts of the
#: benchmarks have the same ones.
COLOURS = (
    "#0072b2", "#c04f00", "#00815e", "#b45791", "#8a6d00", "#7a5af0", "#2a93d0", "#606060",
)  # fmt: skip
PLUS, MINUS = COLOURS[0], COLOURS[1]  # what speaks for something, and against it
INK, GREY, PALE = "#1c1c1c", "#8a8a8a", "#d9d9d9"

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.dpi": 110,
    "savefig.dpi": 150,
}


def colour(n: int) -> str:
    """The colour of series n."""
    return COLOURS[n % len(COLOURS)]


def pyplot(who: str) -> ModuleType:
    """matplotlib.pyplot; where it is missing, the error names the caller and the extra."""
    with needs_extra(who, "plot"):
        import matplotlib.pyplot as plt
    return plt


@contextmanager
def styled(plt: ModuleType) -> Iterator[None]:
    """Figures that are made and drawn on within this have the look of the library."""
    with plt.rc_context(_STYLE):
        yield


def dated(ax: Axes, when: np.ndarray) -> None:
    """Short dates below an axis of times; other values keep their ticks."""
    if np.asarray(when).dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def timed(seconds: np.ndarray) -> tuple[np.ndarray, str]:
    """Times in a unit that makes numbers one can read, and its name.

    >>> timed(np.array([0.0, 0.0042]))
    (array([0. , 4.2]), 'milliseconds')
    """
    most = float(np.max(seconds, initial=0.0))
    for size, name in ((1e-3, "microseconds"), (1.0, "milliseconds"), (300.0, "seconds")):
        if most < size:
            scale = {"microseconds": 1e6, "milliseconds": 1e3, "seconds": 1.0}[name]
            return np.asarray(seconds) * scale, name
    return np.asarray(seconds) / 60, "minutes"


def telling_limits(values: np.ndarray) -> tuple[float, float] | None:
    """Ends of an axis that leaves first guesses out which would hide everything else.

    None if all values can be shown.
    """
    known = values[np.isfinite(values)]
    if len(known) < 8:
        return None
    low, high = np.quantile(known, [0.1, 0.9])
    room = 0.25 * (high - low)
    if room <= 0 or np.ptp(known) <= 6 * room:
        return None
    return max(known.min() - 0.05 * room, low - room), min(known.max() + 0.05 * room, high + room)


def shortened(text: object, longest: int = 34) -> str:
    """A name that fits beside an axis.

    >>> shortened("agricultural machinery", 12)
    'agricultura…'
    """
    name = str(text)
    return name if len(name) <= longest else name[: longest - 1] + "…"


def spread(values: np.ndarray, gap: float) -> np.ndarray:
    """Places near `values`, in their order, at least `gap` apart: names must not overlap.

    >>> spread(np.array([0.0, 5.0, 0.1]), 1.0)
    array([-0.45,  5.  ,  0.55])
    """
    order = np.argsort(values, kind="stable")
    groups: list[tuple[float, int]] = []  # middles and sizes of runs that touch
    for value in np.asarray(values, dtype=np.float64)[order].tolist():
        groups.append((value, 1))
        while len(groups) > 1 and _touch(groups[-2], groups[-1], gap):
            (low, n_low), (high, n_high) = groups[-2:]
            n_both = n_low + n_high
            groups[-2:] = [((low * n_low + high * n_high) / n_both, n_both)]
    places = np.empty(len(order))
    runs = [middle + gap * (np.arange(n) - (n - 1) / 2) for middle, n in groups]
    places[order] = np.concatenate(runs) if runs else []
    return places


def _touch(below: tuple[float, int], above: tuple[float, int], gap: float) -> bool:
    return above[0] - below[0] < gap * (below[1] + above[1]) / 2
