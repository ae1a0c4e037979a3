"""What all displays share: they draw on axes that are given, or on a new figure."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from sublearn.display.style import pyplot, styled
from sublearn.validation.values import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AxesLike", "Display"]

#: One axes, or as many as a display has panels; None makes a figure.
AxesLike: TypeAlias = "Axes | Sequence[Axes] | np.ndarray | None"
_Self = TypeVar("_Self", bound="Display")


class Display(abc.ABC):
    """A picture that can be drawn, and drawn again elsewhere.

    `plot` sets

    - `figure_`: the matplotlib figure, whose `savefig` writes a file;
    - `axes_`: an array of the axes that were drawn on;
    - `ax_`: the first of them.
    """

    figure_: Figure
    ax_: Axes
    axes_: np.ndarray

    #: Who is named where matplotlib is missing; set by the method that makes a display.
    _who: str = ""
    _is_new: bool  # whether the figure was made for it

    def plot(self: _Self, ax: AxesLike = None) -> _Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, or a sequence of one for each panel, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Display
            Itself.
        """
        plt = pyplot(self._who or f"{type(self).__name__}.plot")
        with styled(plt):
            self._is_new = ax is None
            self.axes_ = self._new_axes() if ax is None else self._given_axes(ax)
            self.ax_ = self.axes_[0]
            self.figure_ = cast("Figure", self.ax_.figure)
            self._draw()
        return self

    def called_by(self: _Self, who: str) -> _Self:
        """The method of a result or estimator that errors are to name."""
        self._who = who
        return self

    @abc.abstractmethod
    def _draw(self) -> None:
        """Draw on `axes_`."""

    def _n_panels(self) -> int:
        return 1

    def _size(self) -> tuple[float, float]:
        """Inches of a new figure."""
        return 7.0, 4.2

    def _new_axes(self) -> np.ndarray:
        import matplotlib.pyplot as plt

        made = plt.subplots(
            1, self._n_panels(), figsize=self._size(), layout="constrained", squeeze=False
        )
        return made[1].ravel()

    def _given_axes(self, ax: AxesLike) -> np.ndarray:
        from matplotlib.axes import Axes

        given = [ax] if isinstance(ax, Axes) else np.ravel(np.asarray(ax, dtype=object)).tolist()
        n_panels = self._n_panels()
        if len(given) < n_panels or not all(isinstance(one, Axes) for one in given):
            what = "a matplotlib axes" if n_panels == 1 else f"{n_panels} matplotlib axes"
            got = f"{len(given)}" if all(isinstance(one, Axes) for one in given) else show(ax)
            raise ValueError(f"{type(self).__name__}.ax must be {what}, got {got}")
        return np.array(given, dtype=object)
