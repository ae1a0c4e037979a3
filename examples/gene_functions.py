"""Functions of yeast genes in a catalogue of 499: which weights does the projection learn?

    pip install '.[plot]'
    python examples/gene_functions.py gene_functions.png

2,476 genes for training and 1,281 for testing, 77 measurements of each (SUBLEARN_DATA/
hmc_cellcycle_fun, else ../shared/data). The measurements say little, so a score above 0.5 is rare
and cutting there finds next to nothing. Left: the learned weights by level. Right: precision and
recall of the sets, for thresholds on the scores and for HML.
"""

import numpy as np
from pictures import ORANGE, draw_pair, read_options
from taxonomy_rows import is_missing, read_hmc

from sublearn.hierarchy import HierarchicalMultilabelClassifier, leaf_reduce
from sublearn.metrics import f1_samples


def main():
    options = read_options(__doc__, "gene_functions.png", "every eighth gene")
    if is_missing("hmc_cellcycle_fun"):
        return
    files = [f"cellcycle_fun.{part}.arff.xz" for part in ("train", "valid", "test")]
    step = 8 if options.small else 1
    taxonomy, train, valid, test = read_hmc("hmc_cellcycle_fun", *files, step=step)
    X, functions = np.vstack([train[0], valid[0]]), train[1] + valid[1]
    model = HierarchicalMultilabelClassifier(
        taxonomy, l1=3e-3, n_jobs=-1, random_state=0, cv=2 if options.small else 4
    )
    model.fit(X, functions)
    truth, u = taxonomy.encode(test[1]).toarray(), model.label_scores(test[0])
    own = taxonomy.encode(model.predict(test[0])).toarray()
    print(f"F1 of HML {100 * f1_samples(truth, own):.1f}, of cutting at 0.5 "
          f"{100 * f1_samples(truth, u >= 0.5):.1f}")  # fmt: skip
    grid = np.linspace(0.03, 0.6, 30)
    curve = [rates(truth, leaf_reduce(u, taxonomy, phi)) for phi in grid]
    draw_pair(
        lambda axes: draw_weights(axes, taxonomy, model.phi_),
        lambda axes: draw_rates(axes, curve, rates(truth, own)),
        options.picture,
    )
    print(f"wrote {options.picture}")


def rates(truth, found):
    """Mean precision and recall of the sets, in percent."""
    hits = (truth & found).sum(axis=1)
    sizes = [np.maximum(1, part.sum(axis=1)) for part in (found, truth)]
    return [100 * float((hits / size).mean()) for size in sizes]


def draw_weights(axes, taxonomy, phi):
    rng = np.random.default_rng(0)
    axes.scatter(taxonomy.levels + rng.uniform(-0.2, 0.2, len(phi)), phi, s=8, alpha=0.6)
    axes.set_xlabel("level")
    axes.set_ylabel("weight of a label's group")


def draw_rates(axes, curve, own):
    axes.plot(*zip(*curve, strict=True), ".-", color="0.6", label="Leaf Reduce, by threshold")
    axes.plot(*own, "o", color=ORANGE, label="HML")
    axes.set_xlabel("precision, percent")
    axes.set_ylabel("recall, percent")
    axes.legend(frameon=False)


if __name__ == "__main__":
    main()
