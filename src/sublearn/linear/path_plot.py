"""A picture of a coefficient path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sublearn.linear.path import CoefficientPath

__all__ = ["draw_path"]


def draw_path(path: CoefficientPath, ax: Axes | None, n_names: int, position: int) -> Axes:
    """Weights against l1; the `n_names` largest of the last l1 in colour, the others in grey."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        message = "CoefficientPath.plot needs matplotlib: pip install sublearn[plot]"
        raise ImportError(message) from error
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    coefs = path.coefs[position] if isinstance(path.coefs, list) else path.coefs
    support = np.unique(coefs.indices)
    weights = coefs[:, support].toarray()  # (n_l1s, n_ever_used)
    order = np.argsort(-np.abs(weights[-1]), kind="stable")
    named, others = order[:n_names], order[n_names:]
    ax.plot(path.l1s, weights[:, others], color="0.8", lw=0.7)
    colours = plt.get_cmap("tab10")
    for rank, k in enumerate(named):
        colour = colours(rank % 10)
        ax.plot(path.l1s, weights[:, k], color=colour, lw=1.6, label=_name(path, support[k]))
    ax.axhline(0.0, color="k", lw=0.6)
    ax.set(xscale="log", xlabel="l1", ylabel="weight")
    ax.set_xlim(path.l1s[0], path.l1s[-1]) if len(path) > 1 else None
    if len(named):
        ax.legend(loc="upper left", fontsize=8, frameon=False)
    return ax


def _name(path: CoefficientPath, feature: int) -> str:
    return str(feature) if path.feature_names is None else str(path.feature_names[feature])
