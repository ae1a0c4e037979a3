"""Learned on held-out stories, seen on new ones: the weights of HML, step by step.

    pip install '.[plot]'
    python examples/weight_curves.py weight_curves.png

2,316 stories of Reuters and the tree of 103 topics (SUBLEARN_DATA/rcv1_dev, else ../shared/data).
Three models of the same topics learn the weights of their groups for F1, for Jaccard similarity and
for Hamming loss. Each row of the picture is a model, and each column a metric on test stories,
after every step of the search; the metric that the model maximises is drawn on the held-out stories
as well. After figure 3.2 of Tang, "Big Data Optimization in Machine Learning", 2016.
"""

import matplotlib.pyplot as plt
import numpy as np
from pictures import BLUES, ORANGE, read_options
from taxonomy_rows import is_missing, read_news

from sublearn.hierarchy import GroupWeights, HierarchicalMultilabelClassifier, hierarchy_support
from sublearn.metrics import f1_samples, hamming_loss, jaccard_samples

METRICS = {
    "f1_samples": ("F1", f1_samples),
    "jaccard": ("Jaccard", jaccard_samples),
    "hamming": ("1 - Hamming loss", lambda truth, found: 1 - hamming_loss(truth, found)),
}


def main():
    options = read_options(__doc__, "weight_curves.png", "600 stories")
    if is_missing("rcv1_dev"):
        return
    taxonomy, X, topics = read_news(600 if options.small else None)
    n = int(0.7 * X.shape[0])
    truth = taxonomy.encode(topics[n:]).toarray()
    steps, curves = {}, {}
    for metric, (name, _) in METRICS.items():
        model = HierarchicalMultilabelClassifier(
            taxonomy,
            metric=metric,
            group_weights=GroupWeights("derivative_free", max_iter=10),
            n_jobs=-1,
            random_state=0,
        )
        model.fit(X[:n], topics[:n])
        steps[metric] = 100 * model.trace_["score"]
        curves[metric] = on_test(model, taxonomy, X[n:], truth)
        held, test = steps[metric], curves[metric][metric]
        print(f"{name:16} held out {held[0]:.2f} to {held[-1]:.2f} %", end=", ")
        print(f"test {test[0]:.2f} to {test[-1]:.2f} %")
    draw(steps, curves, options.picture)
    print(f"wrote {options.picture}")


def on_test(model, taxonomy, X, truth):
    """Every metric of the test stories, in percent, after each step of the search."""
    u = model.label_scores(X)
    if model.unit_ == "row":  # weights are shares of the norm of a story's scores
        u = u / np.linalg.norm(u, axis=1, keepdims=True)
    sets = [hierarchy_support(u, taxonomy, phi) for phi in model.phi_trace_]
    return {
        metric: 100 * np.array([value(truth, found) for found in sets])
        for metric, (_, value) in METRICS.items()
    }


def draw(steps, curves, path):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, grid = plt.subplots(3, 3, figsize=(11, 7.5), sharey="col", layout="constrained")
    for row, (learned, (name, _)) in zip(grid, METRICS.items(), strict=True):
        for axes, (metric, (title, _)) in zip(row, METRICS.items(), strict=True):
            own = metric == learned
            colour = ORANGE if own else BLUES[2]
            x = np.arange(1, len(steps[learned]) + 1)
            axes.plot(x, curves[learned][metric], color=colour, label="test")
            if own:
                axes.plot(x, steps[learned], color=BLUES[0], label="held out")
                axes.legend(frameon=False)
            axes.set_title(f"{title}, percent", fontsize=9)
        row[0].set_ylabel(f"maximised: {name}")
    for axes in grid[-1]:
        axes.set_xlabel("step of the search")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
