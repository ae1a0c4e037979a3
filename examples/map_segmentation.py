"""Regions of a noisy image: a grid of pixels whose neighbours prefer one label.

    pip install '.[plot]'
    python examples/map_segmentation.py segmentation.png

An image of four regions is made and buried in noise. Each pixel alone can only take the nearest
grey level; with a Potts factor between neighbours, weaker where the image has an edge, the most
probable labelling of all pixels together is close to the truth. Nothing is learned here: levels,
noise and the strength of the factors are given.
"""

import time

import numpy as np
from map_pictures import best_alone, plt, show_result
from pictures import read_options

from sublearn.graph import FactorGraph, plot_map, potts, solve_map

LEVELS = np.array([0.1, 0.4, 0.65, 0.9])
NOISE = 0.25
NAMES = ["lake", "hills", "sun", "sky"]
COLOURS = ["#2171b5", "#7fa650", "#ffc425", "#d6e8f5"]


def main():
    options = read_options(__doc__, "segmentation.png", "24 x 32 pixels instead of 72 x 96")
    height, width = (24, 32) if options.small else (72, 96)
    rng = np.random.default_rng(0)
    truth = make_regions(height, width)
    image = LEVELS[truth] + NOISE * rng.normal(size=truth.shape)

    unary = -((image[:, :, None] - LEVELS) ** 2) / (2 * NOISE**2)
    weights = [np.exp(-(np.diff(smooth(image), axis=axis) ** 2) / 0.02) + 0.2 for axis in (1, 0)]
    graph = FactorGraph.grid(unary, potts(len(LEVELS), 1.6), weights)
    start = time.perf_counter()
    result = solve_map(graph, time_limit=10.0, random_state=0)
    show_result(f"{height} x {width} pixels", result, time.perf_counter() - start)

    alone = best_alone(graph)
    for name, labels in (("each pixel alone", alone), ("all together", result.assignment)):
        print(f"{name}: {np.mean(labels == truth.ravel()):.1%} of the pixels right")
    draw(image, alone, result.assignment, graph, options.picture)
    print(f"wrote {options.picture}")


def make_regions(height, width):
    """Sky, hills, a lake and a sun."""
    y, x = np.mgrid[:height, :width] / np.array([height, width])[:, None, None]
    labels = np.full((height, width), 3)
    labels[y > 0.5 + 0.12 * np.sin(7 * x)] = 1
    labels[(x - 0.6) ** 2 / 0.1 + (y - 0.85) ** 2 / 0.015 < 1] = 0
    labels[(x - 0.2) ** 2 + (y - 0.22) ** 2 < 0.013] = 2
    return labels


def smooth(image):
    """Means of 3 x 3 pixels, so that noise is not taken for an edge."""
    padded = np.pad(image, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    return windows.mean(axis=(2, 3))


def draw(image, alone, together, graph, path):
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
    axes[0].imshow(image, cmap="gray", interpolation="nearest")
    axes[0].set(xticks=[], yticks=[], title="What is seen")
    for ax, labels, title in (
        (axes[1], alone, "Each pixel alone"),
        (axes[2], together, "Most probable labelling"),
    ):
        plot_map(graph, labels, label_names=NAMES, colours=COLOURS, ax=ax)
        ax.set_title(title)
    axes[1].get_legend().remove()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
