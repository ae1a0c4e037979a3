"""Variables and the links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.display.base import AxesLike, Display
from sublearn.display.network_layout import laid_out, parts_of
from sublearn.display.style import MINUS, PALE, PLUS, shortened
from sublearn.validation import Positive, check_argument
from sublearn.validation.values import show

if TYPE_CHECKING:
    from matplotlib.typing import ColorType
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["NetworkDisplay"]

_LETTER = 0.085  # width of one in a name, inches
_MOST_NODES = 600  # springs between more take minutes, and names could not be read


class NetworkDisplay(Display):
    """Variables with their names, a line for each link: thicker if stronger, coloured by its sign.

    Parameters
    ----------
    links : array-like of int of shape (n_links, 2)
        Pairs of variables.
    strengths : array-like of shape (n_links,)
        From -1 to 1.
    names : sequence
        Of all variables.
    colours : sequence, optional
        A matplotlib colour for each variable.
    legend : mapping of str to colour, optional
        What these colours mean.
    signs : pair of str, default=("move together", "move apart")
        What positive and negative links mean.
    title : str, default=""
        Over the picture.
    """

    def __init__(
        self,
        links: ArrayLike,
        strengths: ArrayLike,
        names: Sequence[object],
        *,
        colours: Sequence[ColorType] | None = None,
        legend: Mapping[str, ColorType] | None = None,
        signs: tuple[str, str] = ("move together", "move apart"),
        title: str = "",
    ):
        self.links = np.asarray(links, dtype=np.int64).reshape(-1, 2)
        self.strengths, self.names = np.asarray(strengths, dtype=np.float64), list(names)
        self.colours = [PALE] * len(self.names) if colours is None else list(colours)
        for what, given in (("names", self.names), ("colours", self.colours)):
            least = 1 + int(self.links.max(initial=-1))
            if len(given) < least:
                raise ValueError(
                    f"NetworkDisplay.{what} must have one for each of {least} variables, got "
                    f"{len(given)}"
                )
        self.legend, self.signs, self.title = dict(legend or {}), signs, title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        n_links: int = 60,
        names: Sequence[object] | None = None,
        ax: AxesLike = None,
        **look: Any,
    ) -> NetworkDisplay:
        """Draw the strongest partial correlations of a fitted inverse covariance matrix.

        Parameters
        ----------
        estimator : fitted estimator with `precision_`
            Such as `SparseInverseCovariance`, or scikit-learn's `GraphicalLasso`.
        n_links : int, default=60
            Most links to draw.
        names : sequence of n_features, optional
            Of the variables; by default `feature_names_in_`, or else their numbers.
        ax : matplotlib axes, optional
            Where to draw.
        **look
            `with_pairs` of :meth:`from_matrix`; `colours`, `legend`, `signs`, `title` of the class.

        Returns
        -------
        NetworkDisplay
        """
        check_is_fitted(estimator)
        partial = partial_correlations(np.asarray(estimator.precision_))
        known = getattr(estimator, "feature_names_in_", range(len(partial)))
        names = known if names is None else names
        display = cls.from_matrix(partial, n_links=n_links, names=names, **look)
        n_all = int(np.count_nonzero(np.triu(partial, k=1)))
        n_strongest = min(n_links, n_all)
        told = f"Partial correlations: the {n_strongest:,} strongest of {n_all:,} links"
        if len(display.links) < n_strongest:
            told += ", lone pairs left out"
        display.title = display.title or (told if n_all else "No variables are linked")
        return display.plot(ax)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        *,
        n_links: int = 60,
        names: Sequence[object] | None = None,
        with_pairs: bool = True,
        **look: Any,
    ) -> NetworkDisplay:
        """The strongest entries above the diagonal of a symmetric matrix, not yet drawn.

        Parameters
        ----------
        matrix : array-like of shape (n, n)
            Strengths; those beyond 1 in size make all of them smaller.
        n_links : int, default=60
            Most links to draw.
        names : sequence of n, optional
            Of the variables; their numbers by default.
        with_pairs : bool, default=True
            Draw two variables that only each other is linked to.
        **look
            `colours`, `legend`, `signs` and `title` of the class.

        Returns
        -------
        NetworkDisplay
        """
        table = np.asarray(matrix, dtype=np.float64)
        check_argument("NetworkDisplay.n_links", n_links, Positive(int))
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise ValueError(f"NetworkDisplay.matrix must be square, got shape {table.shape}")
        i, j = np.triu_indices_from(table, k=1)
        order = np.argsort(-np.abs(table[i, j]), kind="stable")[:n_links]
        order = order[table[i, j][order] != 0]
        links = np.column_stack([i[order], j[order]])
        if not with_pairs:
            parts = parts_of(links, len(table))
            links = links[np.bincount(parts)[parts[links[:, 0]]] > 2]
        strengths = table[links[:, 0], links[:, 1]]
        strengths = strengths / max(1.0, np.abs(strengths).max(initial=0.0))
        called = list(range(len(table)) if names is None else names)
        if len(called) != len(table):
            raise ValueError(f"NetworkDisplay.names must be {len(table)} names, got {show(names)}")
        return cls(links, strengths, called, **look)

    @property
    def nodes(self) -> np.ndarray:
        """The variables that have a link, by number."""
        return np.unique(self.links)

    def _layout(self, width: float) -> tuple[np.ndarray, float]:
        nodes = self.nodes
        if len(nodes) > _MOST_NODES:
            raise ValueError(
                f"NetworkDisplay.links must join at most {_MOST_NODES} variables, got {len(nodes)}"
            )
        letters = [len(shortened(self.names[node])) for node in nodes]
        widths = np.array([_LETTER * n + 0.16 for n in letters])
        if not len(nodes):
            return np.zeros((0, 2)), 1.0
        return laid_out(np.searchsorted(nodes, self.links), widths, width)

    def _width(self) -> float:
        return 8.0 if len(self.nodes) < 60 else 11.0

    def _size(self) -> tuple[float, float]:
        spots, height = self._layout(self._width())
        return max(6.0, self._reach(spots)), height + 1.3

    def _reach(self, spots: np.ndarray) -> float:
        """Where the last name ends."""
        letters = [len(shortened(self.names[node])) for node in self.nodes]
        return float((spots[:, 0] + 0.5 * _LETTER * np.array(letters)).max(initial=0.0)) + 0.4

    def _draw(self) -> None:
        ax = self.ax_
        width = self._width()
        if not self._is_new:
            width = max(3.0, ax.get_window_extent().width / ax.figure.dpi)
        spots, height = self._layout(width)
        place = {int(node): spot for node, spot in zip(self.nodes, spots, strict=True)}
        for (i, j), strength in zip(self.links.tolist(), self.strengths, strict=True):
            ends = np.array([place[i], place[j]]).T
            shade, size = (PLUS if strength > 0 else MINUS), 0.8 + 6 * abs(strength)
            ax.plot(*ends, color=shade, lw=size, alpha=0.55, zorder=1)
        for node, (x, y) in place.items():
            box = {"boxstyle": "round,pad=0.22", "fc": self.colours[node], "ec": "white", "lw": 0.8}
            name = shortened(self.names[node])
            ax.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
        ax.set(xlim=(0, self._reach(spots)), ylim=(-0.1, height + 0.2))
        ax.set_axis_off()
        ax.set_title(self.title)
        self._explain()

    def _explain(self) -> None:
        from matplotlib.lines import Line2D

        found = {True: self.strengths > 0, False: self.strengths < 0}
        shades = zip((True, False), self.signs, (PLUS, MINUS), strict=True)
        lines = [
            Line2D([], [], color=shade, lw=3, alpha=0.55, label=name)
            for is_plus, name, shade in shades
            if found[is_plus].any()
        ]
        patches = [
            Line2D([], [], marker="s", ls="", ms=9, color=shade, label=name)
            for name, shade in self.legend.items()
        ]
        handles = [*lines, *patches]
        if handles:
            widest = 0.6 + _LETTER * max(len(str(handle.get_label())) for handle in handles)
            fitting = max(1, int(self.ax_.get_window_extent().width / self.ax_.figure.dpi / widest))
            self.ax_.legend(
                handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0),
                ncols=min(fitting, len(handles)), fontsize=9,
            )  # fmt: skip


def partial_correlations(precision: np.ndarray) -> np.ndarray:
    """Of each pair of variables given all others."""
    scale = 1 / np.sqrt(np.diag(precision))
    partial = -precision * scale * scale[:, None]
    np.fill_diagonal(partial, 0.0)
    return partial
