"""Codes of X-ray images, from the top of their tree to the leaves: HiClass.

    pip install '.[plot]'
    python examples/image_codes.py image_codes.png

10,000 images for training and 1,006 for testing (SUBLEARN_DATA/hmc_imclef07a, else
../shared/data). Each node of the tree of 96 codes learns to tell its children apart, on its own
rows. Left: the tree, with sizes for training rows and colours for the share of test rows that
are found. Right: F1 by level, top down, flat and by whole paths.
"""

import numpy as np
from pictures import draw_pair, read_options
from taxonomy_rows import draw_levels, is_missing, read_hmc

from sublearn.hierarchy import HierarchicalClassifier
from sublearn.metrics import f1_by_level


def main():
    options = read_options(__doc__, "image_codes.png", "every tenth image")
    if is_missing("hmc_imclef07a"):
        return
    step = 10 if options.small else 1
    files = ("imclef07a_train.arff.xz", "imclef07a_test.arff.xz")
    taxonomy, (X, codes), (X_test, codes_test) = read_hmc("hmc_imclef07a", *files, step=step)
    y, y_test = ([max(own, key=len) for own in part] for part in (codes, codes_test))
    models, levels = {}, {}
    for strategy in ("top_down", "flat", "global"):
        model = HierarchicalClassifier(taxonomy, strategy=strategy, n_jobs=-1).fit(X, y)
        models[strategy], found = model, model.predict(X_test)
        levels[strategy] = f1_by_level(y_test, found, taxonomy).micro
        right = np.mean(found == np.array(y_test))
        print(f"{strategy:9} {100 * right:.1f} % of the codes right")
    found = models["top_down"].predict(X_test)
    draw_pair(
        lambda axes: draw_tree(axes, taxonomy, models["top_down"].counts_, y_test, found),
        lambda axes: draw_levels(axes, levels),
        options.picture,
        height=7.5,
    )
    print(f"wrote {options.picture}")


def draw_tree(axes, taxonomy, counts, truth, found):
    true, predicted = (taxonomy.encode(part).toarray() for part in (truth, found))
    recall = (true & predicted).sum(axis=0) / np.maximum(1, true.sum(axis=0))
    taxonomy.plot(counts, recall, ax=axes)
    axes.set_title("training rows (size) and recall (colour)")


if __name__ == "__main__":
    main()
