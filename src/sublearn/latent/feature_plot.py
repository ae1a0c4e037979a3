"""Latent features drawn as images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sublearn.errors import needs_extra
from sublearn.validation import Positive, check_argument
from sublearn.validation.values import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_features"]

_WHO = "LatentFeatureLasso.plot_features"


def draw_features(
    components: np.ndarray, intercept: np.ndarray, shape: tuple[int, int], axes: object,
    n_columns: int,
) -> Figure:  # fmt: skip
    """The intercept in grey, then each feature in blue (less) and red (more)."""
    with needs_extra(_WHO, "plot"):
        import matplotlib.pyplot as plt
    _check(shape, n_columns, len(intercept))
    n_images = 1 + len(components)
    if axes is None:
        n_rows = -(-n_images // n_columns)
        width = min(n_columns, n_images)
        _, axes = plt.subplots(
            n_rows, width, figsize=(1.5 * width, 1.7 * n_rows), layout="constrained", squeeze=False
        )
    places = np.asarray(axes, dtype=object).ravel()
    if len(places) < n_images:
        raise ValueError(
            f"{_WHO}: ax must have an axes for each of {n_images} images, got {len(places)}"
        )
    for ax in places:
        ax.set_axis_off()
    places[0].imshow(intercept.reshape(shape), cmap="gray")
    places[0].set_title("intercept", fontsize=8)
    size = float(np.abs(components).max(initial=0.0)) or 1.0
    for k, (ax, feature) in enumerate(zip(places[1:], components, strict=False)):
        ax.imshow(feature.reshape(shape), cmap="RdBu_r", vmin=-size, vmax=size)
        ax.set_title(str(k), fontsize=8)
    return places[0].figure


def _check(shape: tuple[int, int], n_columns: int, n_pixels: int) -> None:
    is_pair = isinstance(shape, (tuple, list)) and len(shape) == 2
    if not is_pair or not all(Positive(int).accepts(n) for n in shape):
        raise ValueError(f"{_WHO}: shape must be (height, width), got {show(shape)}")
    if shape[0] * shape[1] != n_pixels:
        raise ValueError(f"{_WHO}: shape must have {n_pixels} pixels, got {tuple(shape)}")
    check_argument(f"{_WHO}.n_columns", n_columns, Positive(int))
