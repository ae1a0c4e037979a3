"""Learn a distance between pictures of digits whose light comes from anywhere, and look at it.

    pip install '.[plot]'
    python examples/digit_metric.py digit_metric.png

The digits that come with scikit-learn, 8 x 8 pixels, each under a slope of light of its own that is
stronger than the ink. The nearest picture by pixels is one in the same light. A linear map and a
point for each digit are learnt by neighbourhood component analysis, softmax of -|f(x) - w|^2
(`loss="nca"`). The measure, recall@1: of the test pictures, how often is the nearest other one of
the same digit?
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from pictures import BLUES, ORANGE, read_options
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from sublearn.embed import EmbeddingExtremeClassifier

N_TRAIN = 1200
SIZES = (2, 4, 8, 16)
LOSSES = {"nca": "distances, NCA", "metric_triplet": "distances, triplets"}
COLORS = plt.get_cmap("tab10")


def main():
    options = read_options(__doc__, "digit_metric.png", "two sizes and few epochs")
    X, y = digits_in_any_light()
    sizes, n_epochs = (SIZES[1:3], 20) if options.small else (SIZES, 100)
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    found = {"pixels": [recall_at_1(X[test], y[test])] * len(sizes)}
    found["principal components"] = [
        recall_at_1(PCA(size).fit(X[train]).transform(X[test]), y[test]) for size in sizes
    ]
    for loss, name in LOSSES.items():
        models = [fit(loss, size, n_epochs, X[train], y[train]) for size in sizes]
        found[name] = [recall_at_1(model.embed(X[test]), y[test]) for model in models]
        if loss == "nca":
            shown = models[-2]
    for name, shares in found.items():
        print(f"{name:22}" + "  ".join(f"{100 * share:5.1f}" for share in shares))
    draw(sizes, found, X[test], shown, y[test], options.picture)
    return 0


def digits_in_any_light():
    """Rows of 64 pixels around their mean, and digits."""
    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.data))
    across, down = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8))
    slopes = rng.normal(size=(len(order), 2)) @ np.stack([across.ravel(), down.ravel()])
    X = data.data[order] / 16 + slopes
    return X - X[:N_TRAIN].mean(axis=0), data.target[order]


def fit(loss, size, n_epochs, X, y):
    model = EmbeddingExtremeClassifier(
        size, loss=loss, gradient="exact", max_iter=n_epochs, batch_size=32, random_state=0
    )
    return model.fit(X, y)


def recall_at_1(rows, y):
    """Share of rows whose nearest other row has the same label."""
    return float(np.mean(y[nearest(rows)] == y))


def nearest(rows):
    squares = np.square(rows).sum(axis=1)
    distances = squares[:, None] + squares - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)


def draw(sizes, found, X, model, y, picture):
    figure = plt.figure(figsize=(12, 7.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[5, 4])
    axes = above.subplots(1, 3)
    draw_recall(axes[0], sizes, found)
    vectors = model.embed(X)
    draw_plane(axes[1], X, y, "by pixels: light")
    draw_plane(axes[2], vectors, y, f"by {vectors.shape[1]} learnt numbers: digits", legend=True)
    draw_neighbours(below, X, vectors, y)
    figure.savefig(picture, dpi=150)
    print(f"wrote {picture}")


def draw_recall(ax, sizes, found):
    colors = ["#777777", ORANGE, BLUES[0], BLUES[2]]
    styles = [":", "--", "-", "-"]
    for (name, shares), color, style in zip(found.items(), colors, styles, strict=True):
        ax.plot(sizes, [100 * s for s in shares], style, marker="o", ms=4, color=color, label=name)
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel("numbers for a picture (pixels: 64)")
    ax.set_ylabel("nearest picture shows the same digit, %")
    ax.set_ylim(0, 100)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)


def draw_plane(ax, rows, y, title, *, legend=False):
    """Test pictures in the plane of their largest spread."""
    plane = PCA(2).fit_transform(rows)
    for digit in range(10):
        ax.scatter(*plane[y == digit].T, s=8, color=COLORS(digit), label=str(digit))
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    if legend:
        ax.legend(
            frameon=False, fontsize=7, markerscale=2, loc="center left", bbox_to_anchor=(1, 0.5)
        )


def draw_neighbours(figure, X, vectors, y, n_shown=10):
    """Test pictures over their nearest ones, by pixels and by the learnt distance."""
    some = [int(np.flatnonzero(y == digit)[3]) for digit in range(n_shown)]
    rows = {"picture": np.array(some)}
    rows["nearest by pixels"] = nearest(X)[some]
    rows["nearest as learnt"] = nearest(vectors)[some]
    axes = figure.subplots(3, n_shown)
    for line, (name, ids) in zip(axes, rows.items(), strict=True):
        for ax, own, other in zip(line, some, ids, strict=True):
            ax.imshow(X[other].reshape(8, 8), cmap="gray")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_xlabel(str(y[other]), fontsize=8, labelpad=1)
            is_right = y[own] == y[other]
            for side in ax.spines.values():
                side.set(color=BLUES[1] if is_right else ORANGE, linewidth=2)
        line[0].set_ylabel(name, fontsize=9, rotation=0, ha="right", va="center")


if __name__ == "__main__":
    sys.exit(main())
