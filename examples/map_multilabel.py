"""Labels of a document that are chosen together instead of one by one.

    pip install '.[plot]'
    python examples/map_multilabel.py multilabel.png

One document of EUR-Lex under a learned model with a score for each of 405 labels and for each of
the 81,810 pairs of them (SUBLEARN_DATA/uai_eurlex_multilabel, else ../shared/data). One by one, a
label is taken if its own score is positive; the most probable set also counts the pairs, nearly all
of which speak against each other. As it stands the document gets one label either way. When
every label is made easier to take, by a bonus, the ways part. Each bonus changes unary scores only:
the graph keeps its tables, and the last set is where the next search starts.
"""

import time

import numpy as np
from map_pictures import BLUE, ORANGE, find_data, show_result, two_axes
from pictures import read_options

from sublearn.graph import read_uai, solve_map


def main():
    options = read_options(__doc__, "multilabel.png", "four bonuses instead of nine")
    path = find_data("uai_eurlex_multilabel/eurlex_subtest.uai.xz")
    if path is None:
        return
    graph = read_uai(path)
    print(graph)
    own = np.array([np.diff(graph.unary(i))[0] for i in range(graph.n_variables)])
    bonuses = np.linspace(0.0, 1.5, 4) if options.small else np.linspace(0.0, 2.0, 9)
    rows, result = [], None
    for bonus in bonuses:
        graph.set_unary(np.column_stack([np.zeros_like(own), own + bonus]))
        alone = (own + bonus > 0).astype(int)
        start = time.perf_counter()
        result = solve_map(graph, time_limit=3.0, random_state=0, init=result)
        name = f"bonus {bonus:.2f}, {alone.sum()} one by one, {result.assignment.sum()} together"
        show_result(name, result, time.perf_counter() - start)
        rows.append((alone.sum(), result.assignment.sum(), graph.score(alone), result.score))
    draw(bonuses, np.array(rows), options.picture)
    print(f"wrote {options.picture}")


def draw(bonuses, rows, path):
    figure, axes = two_axes()
    pairs = ((rows[:, :2], "labels taken"), (rows[:, 2:], "score of the set"))
    for ax, (values, name) in zip(axes, pairs, strict=True):
        ax.plot(bonuses, values[:, 0], "o-", color=ORANGE, label="one by one")
        ax.plot(bonuses, values[:, 1], "o-", color=BLUE, label="together")
        ax.set(xlabel="bonus of every label", ylabel=name)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
