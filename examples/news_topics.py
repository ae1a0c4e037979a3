"""Topics of news that agree with their taxonomy: HML on RCV1.

    pip install '.[plot]'
    python examples/news_topics.py news_topics.png

2,316 stories of Reuters and the tree of 103 topics (SUBLEARN_DATA/rcv1_dev, else ../shared/data). A
sparse model for each topic scores the stories; the hierarchical projection turns scores into sets
that contain every ancestor, with weights learned for F1 on held-out stories. Left: how F1 rose
while the weights were learned. Right: F1 by level, beside cutting scores at 0.5.
"""

import numpy as np
from pictures import BLUES, draw_pair, read_options
from taxonomy_rows import draw_levels, is_missing, read_news

from sublearn.hierarchy import HierarchicalMultilabelClassifier, leaf_reduce, root_map
from sublearn.metrics import f1_by_level, f1_samples


def main():
    options = read_options(__doc__, "news_topics.png", "600 stories")
    if is_missing("rcv1_dev"):
        return
    taxonomy, X, topics = read_news(600 if options.small else None)
    n = int(0.7 * X.shape[0])
    model = HierarchicalMultilabelClassifier(taxonomy, l1=1e-4, n_jobs=-1, random_state=0)
    model.fit(X[:n], topics[:n])
    truth = taxonomy.encode(topics[n:]).toarray()
    u = model.label_scores(X[n:])
    found = {
        "flat": u >= 0.5,
        "Leaf Reduce": leaf_reduce(u, taxonomy, 0.5),
        "Root Map": root_map(u, taxonomy, 0.5),
        "HML": taxonomy.encode(model.predict(X[n:])).toarray(),
    }
    for name, sets in found.items():
        agrees = "agrees" if taxonomy.is_consistent(sets) else "does not agree"
        print(f"{name:12} F1 {100 * f1_samples(truth, sets):.1f}, {agrees} with the taxonomy")
    levels = {name: f1_by_level(truth, sets, taxonomy).micro for name, sets in found.items()}
    draw_pair(
        lambda axes: draw_trace(axes, model.trace_),
        lambda axes: draw_levels(axes, levels),
        options.picture,
    )
    print(f"wrote {options.picture}")


def draw_trace(axes, trace):
    names = {0: "one weight", 1: "levels", 2: "labels", 3: "derivative-free"}
    axes.plot(trace["n_evaluations"], 100 * trace["score"], color="0.7", zorder=1)
    for stage, name in names.items():
        at = trace["stage"] == stage
        colour = [*BLUES, "#d95f02"][stage]
        axes.scatter(trace["n_evaluations"][at], 100 * trace["score"][at], c=colour, label=name)
    axes.set_xlabel("evaluations of the metric")
    axes.set_ylabel("F1 on held-out stories, percent")
    axes.set_ylim(bottom=np.floor(100 * trace["score"].min()) - 1)
    axes.legend(frameon=False, title="what was learned")


if __name__ == "__main__":
    main()
