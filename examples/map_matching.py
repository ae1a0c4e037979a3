"""Who is who: people of a small network found again in a large one.

    pip install '.[plot]'
    python examples/map_matching.py matching.png

A scale-free network of 1,034 people is made, and 188 of them with the ties among them are taken
out. Each of the 188 is a variable with 1,034 labels. Its unary scores compare noisy features, which
alone are often wrong; each tie is a factor that scores two labels by the inverse of their distance
in the large network. All factors share one table of a million entries, which is stored once.
The truth was planted and is used only to count what is right.
"""

import time

import numpy as np
from map_pictures import BLUE, GREY, ORANGE, best_alone, show_result, two_axes
from matplotlib.collections import LineCollection
from pictures import read_options
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from sublearn.graph import FactorGraph, dense, solve_map


def main():
    options = read_options(__doc__, "matching.png", "40 of 200 people")
    n_people, n_taken, n_ties = (200, 40, 5) if options.small else (1034, 188, 14)
    rng = np.random.default_rng(0)
    ties = scale_free(n_people, n_ties, rng)
    truth, scopes = take_out(ties, n_people, n_taken, rng)
    features = rng.normal(size=(n_people, 16))
    seen = features[truth] + 1.6 * rng.normal(size=(n_taken, 16))

    graph = FactorGraph(unary=seen @ features.T / 16)
    graph.add_factors(scopes, closeness(ties, n_people))
    print(graph)
    start = time.perf_counter()
    result = solve_map(graph, time_limit=8.0, random_state=0)
    show_result(f"{n_taken} of {n_people} people", result, time.perf_counter() - start)

    found = {"features alone": best_alone(graph), "with ties": result.assignment}
    right = {name: labels == truth for name, labels in found.items()}
    for name, is_right in right.items():
        print(f"{name}: {np.mean(is_right):.1%} of the people right")
    draw(right, scopes, options.picture)
    print(f"wrote {options.picture}")


def scale_free(n_nodes, n_ties, rng):
    """Each new node ties itself to earlier ones, the more likely the more ties they have."""
    ends = list(range(n_ties))
    ties = []
    for node in range(n_ties, n_nodes):
        chosen = set()
        while len(chosen) < n_ties:
            chosen.add(ends[rng.integers(len(ends))])
        ties += [(node, other) for other in chosen]
        ends += [node] * n_ties + list(chosen)
    return np.array(ties)


def take_out(ties, n_nodes, n_taken, rng):
    """Some of the most connected nodes in random order, and the ties among them renumbered."""
    degree = np.bincount(ties.ravel(), minlength=n_nodes)
    truth = rng.permutation(np.argsort(-degree, kind="stable")[:n_taken])
    number = np.full(n_nodes, -1)
    number[truth] = np.arange(n_taken)
    scopes = number[ties]
    return truth, scopes[(scopes >= 0).all(axis=1)]


def closeness(ties, n_nodes):
    """Inverse of the number of steps between two nodes; a node does not match two people."""
    ones = np.ones(len(ties))
    steps = shortest_path(
        coo_array((ones, ties.T), shape=(n_nodes, n_nodes)).tocsr(), directed=False, unweighted=True
    )
    np.fill_diagonal(steps, np.inf)
    return dense(1.0 / steps)


def draw(right, scopes, path):
    """The small network, people in the order of their ties."""
    figure, axes = two_axes(5.4)
    n = max(scopes.max() + 1, len(next(iter(right.values()))))
    degree = np.bincount(scopes.ravel(), minlength=n)
    rank = np.argsort(np.argsort(-degree, kind="stable"))
    angle, radius = 2.4 * rank, np.sqrt(rank + 1)  # a sunflower, the best connected inside
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    for ax, (name, is_right) in zip(axes, right.items(), strict=True):
        ties = np.stack([x[scopes], y[scopes]], axis=-1)
        ax.add_collection(LineCollection(ties, colors=GREY, linewidths=0.15, zorder=1))
        ax.scatter(x, y, 25, c=np.where(is_right, BLUE, ORANGE), zorder=2)
        ax.set_title(f"{name}: {is_right.sum()} of {n} right (blue)", loc="left")
        ax.set_axis_off()
        ax.set_aspect("equal")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
