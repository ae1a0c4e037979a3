"""A network drawn so that every label can be read: for the examples beside it.

Each connected part is laid out by springs, its labels are pushed apart, and the parts are set side
by side in shelves, the largest first. Lengths are inches of the picture.
"""

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

POSITIVE, NEGATIVE = "#2171b5", "#d95f02"
EDGE = 0.85  # the length at which a spring is at rest
LETTER, LINE = 0.085, 0.24  # width of a letter, height of a label
MARGIN = 0.35


def partial_correlations(precision):
    """Of each pair of variables given all others."""
    scale = 1 / np.sqrt(np.diag(precision))
    partial = -precision * scale * scale[:, None]
    np.fill_diagonal(partial, 0.0)
    return partial


def strongest_links(partial, n_links):
    """Pairs (i, j), i < j, of the largest partial correlations, strongest first."""
    i, j = np.triu_indices_from(partial, k=1)
    order = np.argsort(-np.abs(partial[i, j]), kind="stable")[:n_links]
    order = order[partial[i, j][order] != 0]
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def without_pairs(links):
    """The links of parts that have three variables or more."""
    n = 1 + max(max(link) for link in links)
    graph = coo_matrix((np.ones(len(links)), np.array(links).T), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels)
    return [link for link in links if sizes[labels[link[0]]] > 2]


def draw_network(partial, links, names, colours, legend, title, picture, width=20.0):
    """Write the picture; `colours` gives one to each variable, `legend` names them."""
    nodes = sorted({node for link in links for node in link})
    place = {node: k for k, node in enumerate(nodes)}
    pairs = np.array([(place[i], place[j]) for i, j in links])
    widths = np.array([LETTER * len(names[node]) + 0.16 for node in nodes])
    spots, height = _place_all(pairs, widths, width)
    figure = plt.figure(figsize=(width, height + 1.3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(-0.5, height + 0.8))
    axes.axis("off")
    for (i, j), (a, b) in zip(links, pairs, strict=True):
        strength = abs(partial[i, j])
        colour = POSITIVE if partial[i, j] > 0 else NEGATIVE
        axes.plot(*spots[[a, b]].T, color=colour, lw=0.8 + 6 * strength, alpha=0.55, zorder=1)
    for node, (x, y) in zip(nodes, spots, strict=True):
        box = {"boxstyle": "round,pad=0.22", "fc": colours[node], "ec": "white", "lw": 0.8}
        axes.text(x, y, names[node], ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    axes.text(0.2, height + 0.45, title, fontsize=13, va="center")
    signs = [Line2D([], [], color=c, lw=3, alpha=0.55) for c in (POSITIVE, NEGATIVE)]
    patches = [Line2D([], [], marker="s", ls="", ms=9, color=c) for c in legend.values()]
    axes.legend(
        [*signs, *patches], ["move together", "move apart", *legend], loc="lower center",
        ncols=min(7, len(legend) + 2), frameon=False, fontsize=9, bbox_to_anchor=(0.5, 0.0),
    )  # fmt: skip
    figure.savefig(picture, dpi=110)
    plt.close(figure)


def _place_all(pairs, widths, total_width):
    n = len(widths)
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    parts = sorted((np.flatnonzero(labels == k) for k in set(labels)), key=len, reverse=True)
    spots = np.zeros((n, 2))
    x, y, shelf = 0.0, 0.0, 0.0
    for part in parts:
        inside = np.isin(pairs[:, 0], part)
        local = np.searchsorted(part, pairs[inside])
        own = _place_part(local, widths[part], total_width)
        size = (own + widths[part][:, None] * [0.5, 0]).max(axis=0) + MARGIN
        if x + size[0] > total_width and x > 0:
            x, y, shelf = 0.0, y + shelf, 0.0
        spots[part] = own + np.array([x, y])
        x, shelf = x + size[0], max(shelf, size[1])
    height = y + shelf
    spots[:, 1] = height - spots[:, 1]  # the largest part on top
    return spots, height


def _place_part(pairs, widths, total_width):
    spots = _springs(pairs, len(widths))
    # Along the longest direction first: pictures are wider than high.
    spots = (spots - spots.mean(axis=0)) @ np.linalg.svd(spots - spots.mean(axis=0))[2].T
    spots = _pushed_apart(spots, widths)
    low = (spots - np.column_stack([widths / 2, np.zeros(len(widths))])).min(axis=0)
    spots = spots - low + MARGIN
    reach = (spots[:, 0] + widths / 2).max() + MARGIN
    if reach > total_width:  # too wide for the page: squeezed, and pushed apart again
        spots[:, 0] *= (total_width - 1) / reach
        spots = _pushed_apart(spots, widths)
        spots -= (spots - np.column_stack([widths / 2, np.zeros(len(widths))])).min(axis=0) - MARGIN
    return spots


def _springs(pairs, n, n_steps=600):
    """Fruchterman and Reingold's forces, cooled down."""
    spots = np.random.default_rng(0).normal(size=(n, 2)) * np.sqrt(n) * EDGE / 2
    for step in range(n_steps):
        difference = spots[:, None] - spots
        distance = np.maximum(np.linalg.norm(difference, axis=2), 1e-3)
        force = (difference * (EDGE / distance)[:, :, None] ** 2).sum(axis=1)
        pull = spots[pairs[:, 0]] - spots[pairs[:, 1]]
        pull *= np.linalg.norm(pull, axis=1)[:, None] / EDGE
        np.add.at(force, pairs[:, 0], -pull)
        np.add.at(force, pairs[:, 1], pull)
        length = np.maximum(np.linalg.norm(force, axis=1), 1e-9)[:, None]
        spots = spots + force / length * np.minimum(length, 0.3 * (1 - step / n_steps))
    return spots


def _pushed_apart(spots, widths, n_steps=400):
    """Moves labels that overlap away from each other along the shorter way."""
    spots = spots.copy()
    for _ in range(n_steps):
        dx, dy = (spots[:, None] - spots).transpose(2, 0, 1)
        over_x = (widths[:, None] + widths) / 2 + 0.12 - np.abs(dx)
        over_y = LINE + 0.08 - np.abs(dy)
        over = (over_x > 0) & (over_y > 0) & ~np.eye(len(spots), dtype=bool)
        if not over.any():
            break
        ahead = np.sign(dx + 1e-9 * np.subtract.outer(range(len(spots)), range(len(spots))))
        above = np.sign(dy + 1e-9 * np.subtract.outer(range(len(spots)), range(len(spots))))
        sideways = over & (over_x < over_y)
        spots[:, 0] += 0.3 * (np.where(sideways, over_x, 0) * ahead).sum(axis=1)
        spots[:, 1] += 0.3 * (np.where(over & ~sideways, over_y, 0) * above).sum(axis=1)
    return spots
