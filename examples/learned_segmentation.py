"""Segmentation that learns how much neighbours count: petals of a flower, seen through noise.

    pip install '.[plot]'
    python examples/learned_segmentation.py petals.png

The picture is `flower.jpg` of scikit-learn. The truth is what its clean colours say: pixels with
more red than blue are petals. The models see it small and with much noise. Tiles of the left part
are learnt, the right part is to be segmented. Pixels have their noisy colour; pairs of neighbours
have features as well: how unlike their smoothed colours are. Three models: pixels alone, pairs with
a table, pairs with features. The picture shows what each of them finds.
"""

import numpy as np
from map_pictures import plt
from pictures import read_options
from scipy.ndimage import gaussian_filter, median_filter
from sklearn.datasets import load_sample_image

from sublearn.structured import Passes, Sample, StructuralSVM

NOISE = 0.35
TILE = 20  # pixels
MODELS = ("pixels alone", "pairs", "pairs with features")


def main():
    options = read_options(__doc__, "petals.png", "a smaller picture and fewer passes")
    step = 6 if options.small else 4
    clean = load_sample_image("flower.jpg").astype(float)[::step, ::step] / 255
    truth = petals(clean)
    noisy = clean + NOISE * np.random.default_rng(0).normal(size=clean.shape)
    middle = truth.shape[1] // 2
    found = {}
    for name in MODELS:
        tiles = [
            (slice(y, y + TILE), slice(x, x + TILE))
            for y in range(0, truth.shape[0] - TILE + 1, TILE)
            for x in range(0, middle - TILE + 1, TILE)
        ]
        model = StructuralSVM(
            C=0.1, max_iter=10 if options.small else 60, random_state=0, n_jobs=1,
            passes=Passes(evaluate_every=0),
        )  # fmt: skip
        X = [as_sample(noisy, part, name) for part in tiles]
        model.fit(X, [truth[part] for part in tiles])
        asked = (slice(None), slice(middle, None))
        (labels,) = model.predict([as_sample(noisy, asked, name)])
        found[name] = np.array(labels).reshape(truth[asked].shape)
        right = np.mean(found[name] == truth[asked])
        print(f"{name}: {100 * right:.1f} % of pixels right, {model.trace_['seconds'][-1]:.1f} s")
    draw(clean, noisy, truth, found, middle, options.picture)
    print(f"wrote {options.picture}")


def petals(clean):
    """1 where red is stronger than blue, without single pixels."""
    return median_filter((clean[..., 0] - clean[..., 2] > 0.1).astype(int), 3)


def as_sample(noisy, part, name):
    """A grid of a part of the picture; its edges as the model's name says."""
    colours = noisy[part] - 0.5
    grid = Sample.grid(np.dstack([colours, colours**2]))
    if name == MODELS[0]:
        return Sample(grid.features)
    if name == MODELS[1]:
        return grid
    smooth = gaussian_filter(noisy, (1.5, 1.5, 0))[part].reshape(-1, 3)
    unlike = {
        kind: np.abs(np.diff(smooth[np.asarray(pairs)], axis=1)).sum(axis=2)
        for kind, pairs in grid.edges.items()
    }
    return Sample(grid.features, grid.edges, edge_features=unlike)


def draw(clean, noisy, truth, found, middle, path):
    figure, axes = plt.subplots(2, 3, figsize=(11, 9), layout="constrained")
    shown = np.clip(noisy, 0, 1)
    axes[0, 0].imshow(clean[:, middle:])
    axes[0, 0].set_title("clean", loc="left")
    axes[0, 1].imshow(shown[:, middle:])
    axes[0, 1].set_title("what the models see", loc="left")
    axes[0, 2].imshow(truth[:, middle:], cmap="Oranges", vmin=0, vmax=1.3)
    axes[0, 2].set_title("truth", loc="left")
    for axis, (name, labels) in zip(axes[1], found.items(), strict=True):
        right = np.mean(labels == truth[:, middle:])
        axis.imshow(labels, cmap="Oranges", vmin=0, vmax=1.3)
        axis.set_title(f"{name}: {100 * right:.1f} % right", loc="left")
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
