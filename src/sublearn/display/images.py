"""Rows of numbers shown as images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sublearn.display.base import Display
from sublearn.validation import Positive, check_argument
from sublearn.validation.values import show

__all__ = ["ImagesDisplay"]


class ImagesDisplay(Display):
    """A base image in grey, then others in blue (less) and red (more), all on one scale.

    Parameters
    ----------
    base : array-like of shape (n_pixels,)
        Such as an intercept.
    images : array-like of shape (n_images, n_pixels)
        Such as latent features.
    shape : (int, int)
        Height and width of an image.
    titles : sequence of str
        Of the base and of the images.
    n_columns : int, default=8
        Images in a row.
    who : str, default="ImagesDisplay"
        Whom errors name.
    """

    def __init__(
        self,
        base: np.ndarray,
        images: np.ndarray,
        shape: tuple[int, int],
        titles: Sequence[str],
        *,
        n_columns: int = 8,
        who: str = "ImagesDisplay",
    ):
        is_pair = isinstance(shape, (tuple, list)) and len(shape) == 2
        if not is_pair or not all(Positive(int).accepts(n) for n in shape):
            raise ValueError(f"{who}: shape must be (height, width), got {show(shape)}")
        if shape[0] * shape[1] != len(base):
            raise ValueError(f"{who}: shape must have {len(base)} pixels, got {tuple(shape)}")
        check_argument(f"{who}.n_columns", n_columns, Positive(int))
        self.base, self.images = np.asarray(base), np.asarray(images)
        self.shape, self.titles, self.n_columns = tuple(shape), list(titles), n_columns
        self._who = who

    def _n_panels(self) -> int:
        return 1 + len(self.images)

    def _new_axes(self) -> np.ndarray:
        import matplotlib.pyplot as plt

        width = min(self.n_columns, self._n_panels())
        n_rows = -(-self._n_panels() // width)
        size = (1.5 * width, 1.7 * n_rows)
        made = plt.subplots(n_rows, width, figsize=size, layout="constrained", squeeze=False)
        return made[1].ravel()

    def _draw(self) -> None:
        for ax in self.axes_:
            ax.set_axis_off()
        size = float(np.abs(self.images).max(initial=0.0)) or 1.0
        first, *others = self.axes_
        first.imshow(self.base.reshape(self.shape), cmap="gray")
        for ax, image in zip(others, self.images, strict=False):
            ax.imshow(image.reshape(self.shape), cmap="RdBu_r", vmin=-size, vmax=size)
        for ax, title in zip(self.axes_, self.titles, strict=False):
            ax.set_title(title, fontsize=8, loc="center")
