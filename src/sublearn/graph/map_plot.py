"""A picture of an assignment of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sublearn.errors import needs_extra
from sublearn.graph.factor_graph import FactorGraph
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

    from sublearn.graph.map import MapResult

__all__ = ["plot_map"]

_MAX_LEGEND = 24


def plot_map(
    graph: FactorGraph | tuple[int, int],
    assignment: MapResult | ArrayLike,
    *,
    image: ArrayLike | None = None,
    label_names: Sequence[str] | None = None,
    colours: Sequence[ColorType] | None = None,
    alpha: float = 0.55,
    ax: Axes | None = None,
) -> Axes:
    """Draw the labels of a grid as an image, with a legend of the labels that occur.

    Parameters
    ----------
    graph : FactorGraph made by `FactorGraph.grid`, or (height, width)
    assignment : array-like of int of shape (height * width,), or MapResult
        Labels by rows.
    image : array-like of shape (height, width) or (height, width, 3), optional
        What is under the labels, which are then transparent.
    label_names : sequence of str, optional
        Names for the legend; by default the labels' numbers.
    colours : sequence of matplotlib colours, optional
        One for each label.
    alpha : float, default=0.55
        How much the labels hide the image.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    height, width = _shape_of(graph)
    labels = _as_labels(assignment, height, width)
    n_labels = int(labels.max()) + 1
    names = label_names or [str(k) for k in range(n_labels)]
    for what, given in (("label_names", names), ("colours", colours or names)):
        if len(given) < n_labels:
            raise ValueError(
                f"plot_map.{what} must have one for each of {n_labels} labels, got {len(given)}"
            )
    picture = None if image is None else _as_image(image, height, width)
    with needs_extra("plot_map", "plot"):
        import matplotlib.pyplot as plt
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    palette = np.array([to_rgb(c) for c in colours]) if colours else _colours(n_labels, plt)
    if picture is not None:
        ax.imshow(picture, cmap="gray", interpolation="nearest")
    ax.imshow(palette[labels], alpha=1.0 if picture is None else alpha, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    patches = [Patch(color=palette[k], label=names[k]) for k in np.unique(labels)[:_MAX_LEGEND]]
    ax.legend(handles=patches, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return ax


def _shape_of(graph: FactorGraph | tuple[int, int]) -> tuple[int, int]:
    shape = graph.grid_shape if isinstance(graph, FactorGraph) else graph
    if shape is None:
        raise ValueError(
            "plot_map.graph must be made by FactorGraph.grid or be (height, width), got another "
            "graph"
        )
    is_pair = isinstance(shape, tuple) and len(shape) == 2
    if not is_pair or not all(is_int64(size) and size > 0 for size in shape):
        raise ValueError(f"plot_map.graph must be a grid or (height, width), got {show(graph)}")
    return int(shape[0]), int(shape[1])


def _as_labels(assignment: MapResult | ArrayLike, height: int, width: int) -> np.ndarray:
    labels = np.asarray(getattr(assignment, "assignment", assignment))
    if labels.size != height * width or labels.dtype.kind not in "iu":
        raise ValueError(
            f"plot_map.assignment must be {height * width} integers for a grid of {height} x "
            f"{width}, got shape {labels.shape} and dtype {labels.dtype}"
        )
    if labels.min() < 0:
        raise ValueError(f"plot_map.assignment must not be negative, got {labels.min()}")
    return labels.reshape(height, width)


def _as_image(image: ArrayLike, height: int, width: int) -> np.ndarray:
    picture = np.asarray(image)
    if picture.shape[:2] != (height, width) or picture.ndim not in (2, 3):
        raise ValueError(
            f"plot_map.image must have shape ({height}, {width}) or ({height}, {width}, 3), got "
            f"{picture.shape}"
        )
    return picture


def _colours(n_labels: int, plt: ModuleType) -> np.ndarray:
    """Red, green and blue of each label: distinct ones for a few, a range of colours for many."""
    if n_labels <= 20:
        return plt.get_cmap("tab10" if n_labels <= 10 else "tab20")(np.arange(n_labels))[:, :3]
    return plt.get_cmap("turbo")(np.linspace(0.0, 1.0, n_labels))[:, :3]
