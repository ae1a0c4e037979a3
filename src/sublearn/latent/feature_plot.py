"""Latent features drawn as images."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["draw_features"]


def draw_features(
    components: np.ndarray, intercept: np.ndarray, shape: tuple[int, int], axes: Any, n_columns: int
) -> Any:
    """The intercept in grey, then each feature in blue (less) and red (more)."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "LatentFeatureLasso.plot_features needs matplotlib: pip install sublearn[plot]"
        ) from error
    if int(np.prod(shape)) != len(intercept):
        raise ValueError(
            f"LatentFeatureLasso.plot_features: shape must have {len(intercept)} pixels, "
            f"got {shape}"
        )
    n_images = 1 + len(components)
    if axes is None:
        n_rows = -(-n_images // n_columns)
        width = min(n_columns, n_images)
        _, axes = plt.subplots(
            n_rows, width, figsize=(1.5 * width, 1.7 * n_rows), layout="constrained", squeeze=False
        )
    axes = np.ravel(axes)
    for ax in axes:
        ax.set_axis_off()
    axes[0].imshow(intercept.reshape(shape), cmap="gray")
    axes[0].set_title("intercept", fontsize=8)
    size = float(np.abs(components).max(initial=0.0)) or 1.0
    for k, (ax, feature) in enumerate(zip(axes[1:], components, strict=False)):
        ax.imshow(feature.reshape(shape), cmap="RdBu_r", vmin=-size, vmax=size)
        ax.set_title(str(k), fontsize=8)
    return axes[0].figure
