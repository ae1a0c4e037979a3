"""How a fit went: objective, certificate and what else its trace has, over time or passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.display.base import AxesLike, Display
from sublearn.display.style import GREY, PALE, colour, telling_limits, timed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator
    from sklearn.base import BaseEstimator

__all__ = ["TraceDisplay"]

#: Columns that say most, the first ones first, and how they are called below a picture.
_TELLING = {
    "objective": "objective",
    "primal": "objective",
    "score": "score",
    "certificate": "certificate (relative gap)",
    "bound": "bound",
    "relaxed_value": "relaxed value",
    "criterion": "criterion",
    "held_out": "score on held-out rows",
    "error": "error",
    "violation": "violation of optimality",
}
_UNITS = {"labels": "labels finished", "n_iter": "iterations"}
_FALLING = ("certificate", "violation", "gap")  # to zero: on a logarithmic axis
_MOST_NAMED = 8


class TraceDisplay(Display):
    """Columns of a trace, a panel for each.

    Parameters
    ----------
    columns : mapping of str to array-like
        The trace. A column `output` splits rows into a line for each value.
    x : str, optional
        Column along which is drawn; by default `seconds`, else the number of the row.
    y : sequence of str, optional
        Columns to draw; by default the two that say most.
    tol : float, optional
        Where the certificate ends the fit, as a line.
    title : str, default=""
        Over the first panel.
    """

    def __init__(
        self,
        columns: Mapping[str, object],
        *,
        x: str | None = None,
        y: Sequence[str] | None = None,
        tol: float | None = None,
        title: str = "",
    ):
        self.columns = {name: np.asarray(values) for name, values in columns.items()}
        if not len(next(iter(self.columns.values()), ())):
            raise ValueError("the trace has no rows, so there is nothing to plot")
        self.x = x or ("seconds" if "seconds" in self.columns else None)
        given = [y] if isinstance(y, str) else y
        self.y = self._most_telling() if given is None else list(given)
        for name in [*self.y, *([] if self.x is None else [self.x])]:
            if name not in self.columns:
                known = ", ".join(self.columns)
                raise ValueError(f"no column {name!r} to plot; the trace has {known}")
        self.tol, self.title = tol, title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        x: str | None = None,
        y: Sequence[str] | None = None,
        ax: AxesLike = None,
    ) -> TraceDisplay:
        """Draw `trace_` of a fitted estimator, its tolerance, and its name.

        Parameters
        ----------
        estimator : fitted estimator
            Of this library.
        x, y : str and sequence of str, optional
            Columns; see the class.
        ax : sequence of matplotlib axes, optional
            One for each panel.

        Returns
        -------
        TraceDisplay
        """
        check_is_fitted(estimator)
        trace, name = estimator.trace_, type(estimator).__name__
        columns = {column: trace[column] for column in trace.columns}
        tol = getattr(estimator, "tol", None)
        line = float(tol) if isinstance(tol, (int, float)) and tol > 0 else None
        display = cls(columns, x=x, y=y, tol=line, title=name)
        return display.plot(ax)

    def _most_telling(self) -> list[str]:
        known = [name for name in _TELLING if name in self.columns and self._says_something(name)]
        beside = {self.x, "seconds", "output"}
        others = [name for name in self.columns if name not in {*known, *beside}]
        return [*known, *others][:2]

    def _says_something(self, name: str) -> bool:
        values = self.columns[name]
        return values.dtype.kind in "iufb" and bool(np.isfinite(values).any())

    def _n_panels(self) -> int:
        return len(self.y)

    def _size(self) -> tuple[float, float]:
        return (7.0, 4.0) if len(self.y) == 1 else (5.2 * len(self.y), 3.8)

    def _draw(self) -> None:
        for n, (ax, name) in enumerate(zip(self.axes_, self.y, strict=False)):
            self._draw_column(ax, name, n)
            ax.set_xlabel(self._along()[1])
            so_far = " of the labels finished" if "labels" in self.columns else ""
            ax.set_ylabel(_TELLING.get(name, name) + (so_far if name == "objective" else ""))
        if self.title:
            self.ax_.set_title(self.title)

    def _along(self) -> tuple[np.ndarray, str]:
        """What is drawn along, and how it is called."""
        if self.x is None:
            return np.arange(len(self.columns[self.y[0]])), "row of the trace"
        if self.x == "seconds":
            return timed(self.columns[self.x])
        return self.columns[self.x], _UNITS.get(self.x, self.x)

    def _draw_column(self, ax: Axes, name: str, n: int) -> None:
        values = self.columns[name].astype(np.float64)
        along = self._along()[0]
        is_log = name in _FALLING and bool((values[np.isfinite(values)] > 0).any())
        values = np.where(np.isfinite(values) & ((values > 0) | (not is_log)), values, np.nan)
        outputs = self.columns.get("output", np.zeros(len(values)))
        owners = np.unique(outputs)
        for k, owner in enumerate(owners):
            rows = outputs == owner
            is_in_order = bool((np.diff(along[rows]) >= 0).all())
            mark = "o" if rows.sum() <= 60 or not is_in_order else ""
            shade = colour(n if len(owners) == 1 else k) if len(owners) <= _MOST_NAMED else GREY
            label = f"output {owner:g}" if 1 < len(owners) <= _MOST_NAMED else None
            ax.plot(
                along[rows],
                values[rows],
                color=shade,
                marker=mark,
                ms=3.5,
                label=label,
                ls="-" if is_in_order else "",
            )
        if is_log:
            ax.set_yscale("log")
        elif (limits := telling_limits(values)) is not None:
            ax.set_ylim(*limits)
        if name == "certificate" and self.tol is not None:
            ax.axhline(self.tol, color=GREY, lw=1, ls="--", label=f"tol={self.tol:g}")
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        ax.xaxis.set_major_locator(_locator())
        ax.grid(axis="y", color=PALE, lw=0.5)
        ax.set_axisbelow(True)


def _locator() -> Locator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)
