"""Labels of a document that are chosen together instead of one by one.

    pip install '.[plot]'
    python examples/map_multilabel.py multilabel.png

One document of EUR-Lex under a learned model with a score for each of 405 labels and for each of
the 81,810 pairs of them (SUBLEARN_DATA/uai_eurlex_multilabel, else ../shared/data). Chosen one by
one, a label is taken if its own score is positive; the most probable set takes the pairs into
account.
"""

import time

import numpy as np
from map_pictures import BLUE, GREY, best_alone, draw_trace, find_data, show_result, two_axes
from pictures import read_options

from sublearn.graph import read_uai, solve_map


def main():
    options = read_options(__doc__, "multilabel.png", "two seconds instead of fifteen")
    path = find_data("uai_eurlex_multilabel/eurlex_subtest.uai.xz")
    if path is None:
        return
    graph = read_uai(path)
    print(graph)
    start = time.perf_counter()
    result = solve_map(graph, time_limit=2.0 if options.small else 15.0)
    show_result(path.name, result, time.perf_counter() - start)

    alone, together = best_alone(graph), result.assignment
    print(f"one by one: {alone.sum()} labels, score {graph.score(alone):.4f}")
    print(f"together:   {together.sum()} labels, score {graph.score(together):.4f}")
    draw(graph, alone, together, result, options.picture)
    print(f"wrote {options.picture}")


def draw(graph, alone, together, result, path):
    figure, (left, right) = two_axes()
    for_label = np.array([np.diff(graph.unary(i))[0] for i in range(graph.n_variables)])
    shown = np.flatnonzero((alone == 1) | (together == 1))
    shown = shown[np.argsort(-for_label[shown], kind="stable")][:30]
    colours = np.where(together[shown] == 1, BLUE, GREY)
    left.barh([str(k) for k in shown], for_label[shown], color=colours)
    left.invert_yaxis()
    left.set(xlabel="score of the label alone", ylabel="label")
    left.set_title("Labels that are in the best set (blue)", loc="left")
    draw_trace(right, result)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
