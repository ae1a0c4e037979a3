"""Places of the variables of a network, so that every name can be read. Lengths are in inches.

Each connected part is laid out by springs, its names are pushed apart, and the parts are set side
by side in shelves, the largest first.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

__all__ = ["laid_out", "parts_of"]

_EDGE = 0.85  # the length at which a spring is at rest
_LINE = 0.24  # height of a name
_MARGIN = 0.35


def parts_of(pairs: np.ndarray, n: int) -> np.ndarray:
    """The number of the connected part of each of `n` variables."""
    graph = coo_matrix((np.ones(len(pairs)), tuple(np.reshape(pairs, (-1, 2)).T)), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def laid_out(pairs: np.ndarray, widths: np.ndarray, total_width: float) -> tuple[np.ndarray, float]:
    """Places of shape (n, 2) within `total_width`, and the height that they need."""
    labels = parts_of(pairs, len(widths))
    parts = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    spots = np.zeros((len(widths), 2))
    x, y, shelf = 0.0, 0.0, 0.0
    for part in sorted(parts, key=len, reverse=True):
        inside = np.isin(pairs[:, 0], part)
        own = _part(np.searchsorted(part, pairs[inside]), widths[part], total_width)
        size = (own + widths[part][:, None] * np.array([0.5, 0])).max(axis=0) + _MARGIN
        if x + size[0] > total_width and x > 0:
            x, y, shelf = 0.0, y + shelf, 0.0
        spots[part] = own + np.array([x, y])
        x, shelf = x + size[0], max(shelf, size[1])
    height = y + shelf
    spots[:, 1] = height - spots[:, 1]  # the largest part on top
    return spots, height


def _part(pairs: np.ndarray, widths: np.ndarray, total_width: float) -> np.ndarray:
    """A connected part, its left and lower edge a margin away from zero."""
    spots = _springs(pairs, len(widths))
    spots = spots - spots.mean(axis=0)
    # Along the longest direction first: pictures are wider than high.
    spots = _pushed_apart(spots @ np.linalg.svd(spots)[2].T, widths)
    spots = _to_corner(spots, widths)
    reach = (spots[:, 0] + widths / 2).max() + _MARGIN
    if reach > total_width:  # too wide for the page: squeezed, and pushed apart again
        spots *= (total_width - 1) / reach
        spots = _to_corner(_pushed_apart(spots, widths), widths)
    return spots


def _to_corner(spots: np.ndarray, widths: np.ndarray) -> np.ndarray:
    low = (spots - np.column_stack([widths / 2, np.zeros(len(widths))])).min(axis=0)
    return spots - low + _MARGIN


def _springs(pairs: np.ndarray, n: int, n_steps: int = 600) -> np.ndarray:
    """Fruchterman and Reingold's forces, cooled down."""
    spots = np.random.default_rng(0).normal(size=(n, 2)) * np.sqrt(n) * _EDGE / 2
    for step in range(n_steps):
        difference = spots[:, None] - spots
        distance = np.maximum(np.linalg.norm(difference, axis=2), 1e-3)
        force = (difference * (_EDGE / distance)[:, :, None] ** 2).sum(axis=1)
        pull = spots[pairs[:, 0]] - spots[pairs[:, 1]]
        pull = pull * np.linalg.norm(pull, axis=1)[:, None] / _EDGE
        np.add.at(force, pairs[:, 0], -pull)
        np.add.at(force, pairs[:, 1], pull)
        length = np.maximum(np.linalg.norm(force, axis=1), 1e-9)[:, None]
        spots = spots + force / length * np.minimum(length, 0.3 * (1 - step / n_steps))
    return spots


def _pushed_apart(spots: np.ndarray, widths: np.ndarray, n_steps: int = 400) -> np.ndarray:
    """Moves names that overlap away from each other along the shorter way."""
    spots, n = spots.copy(), len(spots)
    later = 1e-9 * np.subtract.outer(np.arange(n), np.arange(n))
    for _ in range(n_steps):
        dx, dy = (spots[:, None] - spots).transpose(2, 0, 1)
        over_x = (widths[:, None] + widths) / 2 + 0.12 - np.abs(dx)
        over_y = _LINE + 0.08 - np.abs(dy)
        over = (over_x > 0) & (over_y > 0) & ~np.eye(n, dtype=bool)
        if not over.any():
            break
        sideways = over & (over_x < over_y)
        spots[:, 0] += 0.3 * (np.where(sideways, over_x, 0) * np.sign(dx + later)).sum(axis=1)
        above = over & ~sideways
        spots[:, 1] += 0.3 * (np.where(above, over_y, 0) * np.sign(dy + later)).sum(axis=1)
    return spots
