"""What objects are on the table? Binary features of pictures, found without a label.

    pip install '.[plot]'
    python examples/latent_pictures.py blocks blocks.png
    python examples/latent_pictures.py tabletop tabletop.png
    python examples/latent_pictures.py faces faces.png

blocks: 1,000 noisy 6 x 6 pictures, each a sum of some of four shapes; made here. tabletop: 100
photographs of a table with four objects, each there or not (Griffiths and Ghahramani 2005), and
faces: 165 photographs of 15 people (Yale), both from SUBLEARN_DATA, else ../shared/data. The first
row shows pictures, the second what features and codes make of them, below are the features.
"""

import argparse
import os
import time
from pathlib import Path

import matplotlib
import numpy as np
import scipy.io

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from sublearn.latent import LatentFeatureLasso

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
FILES = {"tabletop": "lfl_tabletop/tabletop.mat", "faces": "lfl_yale/r_yale.mat"}
#: Height, width, whether pixels are stored by row or column, colours of a picture, and K.
SHAPES = {
    "blocks": ((6, 6, "C"), "gray", "gap"),
    "tabletop": ((80, 107, "F"), "gray", 4),
    "faces": ((58, 49, "F"), "gray_r", 15),  # stored as negatives
}
SHAPES_OF_BLOCKS = """
.a.bbb
aaab.b
.a.bbb
c..ddd
cc..d.
cc..d.
"""
N_SHOWN = 8


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("pictures", choices=list(SHAPES))
    arguments.add_argument("picture", type=Path, help="PNG to write")
    options = arguments.parse_args()
    X = read(options.pictures)
    if X is None:
        print(f"no file {DATA / FILES[options.pictures]}: set SUBLEARN_DATA to where the data is")
        return
    shape, colours, n_components = SHAPES[options.pictures]

    start = time.perf_counter()
    model = LatentFeatureLasso(n_components, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    spread = float(X.std(axis=0).mean())
    print(f"{len(X)} pictures, {model.n_components_} features in {seconds:.1f} s")
    print(f"left of a pixel's spread of {spread:.3f}: {model.reconstruction_error_:.3f}")
    print("share of pictures with each:", np.round(model.codes_.mean(axis=0), 2))

    draw(model, X, shape, colours, options.picture)
    print(f"wrote {options.picture}")


def read(name):
    """Pictures in rows, or None if their file is missing."""
    if name == "blocks":
        return blocks()
    path = DATA / FILES[name]
    return np.asarray(scipy.io.loadmat(path)["pics"], dtype=float) if path.exists() else None


def blocks(n=1000, noise=0.5):
    """Four shapes in a 6 x 6 picture, as in introductions to the Indian buffet process."""
    letters = np.array([list(line) for line in SHAPES_OF_BLOCKS.split()])
    W = np.array([(letters == letter).ravel() for letter in "abcd"], dtype=float)
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, size=(n, 4))
    return Z @ W + noise * rng.normal(size=(n, 36))


def draw(model, X, shape, colours, path):
    shown = np.linspace(0, len(X) - 1, N_SHOWN).astype(int)
    fit = model.inverse_transform(model.codes_[shown])
    rows = [X[shown], fit]
    features = [model.intercept_, *model.components_]
    n_rows = 2 + -(-len(features) // N_SHOWN)
    figure, axes = plt.subplots(
        n_rows, N_SHOWN, figsize=(1.35 * N_SHOWN, 1.35 * n_rows), layout="constrained"
    )
    low, high = np.percentile(X, [1, 99])
    for ax in axes.ravel():
        ax.set_axis_off()
    for row, pictures in zip(axes, rows, strict=False):
        for ax, pixels in zip(row, pictures, strict=True):
            ax.imshow(image(pixels, shape), cmap=colours, vmin=low, vmax=high)
    for row, title in zip(axes, ("pictures", "from features", "features"), strict=False):
        row[0].text(-0.08, 0.5, title, rotation=90, ha="right", va="center", fontsize=8,
                    transform=row[0].transAxes)  # fmt: skip
    for ax, codes in zip(axes[1], model.codes_[shown], strict=True):
        ax.set_title(" ".join(str(k) for k in np.flatnonzero(codes)) or "none", fontsize=7)
    size = np.percentile(np.abs(model.components_), 99.5)
    below = axes[2:].ravel()
    below[0].imshow(image(features[0], shape), cmap=colours, vmin=low, vmax=high)
    below[0].set_title("intercept", fontsize=8)
    for k, (ax, pixels) in enumerate(zip(below[1:], features[1:], strict=False)):
        ax.imshow(image(pixels, shape), cmap="RdBu_r", vmin=-size, vmax=size)
        ax.set_title(f"feature {k}", fontsize=8)
    figure.savefig(path, dpi=150)


def image(pixels, shape):
    height, width, order = shape
    return pixels.reshape((height, width), order=order)


if __name__ == "__main__":
    main()
