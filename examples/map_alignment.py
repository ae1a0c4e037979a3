"""Alignment of two images by points: which point of one belongs to which of the other?

    pip install '.[plot]'
    python examples/map_alignment.py alignment.png

A problem of the UAI competition of 2014 (SUBLEARN_DATA/uai_imagealignment, else ../shared/data):
200 points, each with 20 to 69 candidates, and factors between points that are near, with 2.5
million entries in all, that ask for a common motion. The most probable assignment often takes a
candidate that looks poor on its own.
"""

import math
import time

import numpy as np
from map_pictures import BLUE, draw_trace, find_data, show_result, two_axes
from pictures import read_options

from sublearn.graph import read_map, read_uai, solve_map


def main():
    options = read_options(__doc__, "alignment.png", "30 points instead of 200")
    problem = "imagealignment_12" if options.small else "imagealignment_14"
    path = find_data(f"uai_imagealignment/{problem}.uai.xz")
    if path is None:
        return
    graph = read_uai(path)
    print(graph)
    start = time.perf_counter()
    result = solve_map(graph, time_limit=8.0, random_state=0)
    show_result(path.name, result, time.perf_counter() - start)
    known = graph.score(read_map(path.with_suffix(".map")))
    print(f"log10: {result.score / math.log(10):.4f}; best known {known / math.log(10):.4f}")

    ranks = rank_alone(graph, result.assignment)
    print(f"{np.sum(ranks > 1)} of {len(ranks)} points do not take the candidate that looks best")
    figure, (left, right) = two_axes()
    draw_trace(left, result, problem)
    right.bar(np.arange(len(ranks)), np.sort(ranks), width=1.0, color=BLUE)
    right.set(xlabel="points, sorted", ylabel="rank of the chosen candidate")
    right.set_title("How good the choice looks on its own (1: best)", loc="left")
    figure.savefig(options.picture, dpi=150)
    print(f"wrote {options.picture}")


def rank_alone(graph, labels):
    """Rank of each label among the unary scores of its variable, from 1."""
    scores = [graph.unary(i) for i in range(graph.n_variables)]
    return np.array([1 + np.sum(s > s[x]) for s, x in zip(scores, labels, strict=True)])


if __name__ == "__main__":
    main()
