"""Tag library records by dense vectors: what blocks and candidates of a search cost and gain.

    pip install '.[plot]'
    python examples/dense_tagger.py --small dense_tagger.png

Needs the records `yso_en` in a folder of that name, in the folder that SUBLEARN_DATA names:
yso_en_train.xmc.txt.xz and yso_en_test.xmc.txt.xz. Without them it says so and ends.

Words become vectors by the singular vectors of words and labels, records by the sum of their words.
A last layer with 20,578 labels learns from them, by searches of several sizes. The picture shows
precision against time: each line is a number of blocks B, its points numbers of candidates Q.
"""

import os
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from pictures import BLUES, ORANGE, measure, read_options, show_precision
from sklearn.utils.extmath import randomized_svd

from sublearn.embed import DenseExtremeClassifier, LabelSearch
from sublearn.io import load_xmc

N_SMALL = 5000
COLOURS = {1: ORANGE, 2: BLUES[2], 4: BLUES[1], 8: BLUES[0]}


def main():
    options = read_options(__doc__, "dense_tagger.png", f"{N_SMALL:,} records instead of 50,000")
    folder = Path(os.environ.get("SUBLEARN_DATA", "data")) / "yso_en"
    if not (folder / "yso_en_train.xmc.txt.xz").exists():
        print(f"{folder}: no records here; set SUBLEARN_DATA to the folder that has yso_en")
        return 0
    X, Y, X_test, Y_test = read(folder, N_SMALL if options.small else None)
    print(f"{X.shape[0]:,} records, {X.shape[1]} numbers each, {Y.shape[1]:,} labels")
    candidates = [16, 128] if options.small else [16, 64, 256]
    curves = {
        n_blocks: [run(X, Y, X_test, Y_test, n_blocks, count) for count in candidates]
        for n_blocks in ([1, 4] if options.small else COLOURS)
    }
    draw(curves, candidates, options.picture)
    return 0


def read(folder, n_rows, dim=128):
    """Vectors of unit length and label matrices, to learn from and to test."""
    words, Y = load_xmc(folder / "yso_en_train.xmc.txt.xz")
    words_test, Y_test = load_xmc(folder / "yso_en_test.xmc.txt.xz")
    words, Y = sp.csr_matrix(words)[:n_rows], sp.csr_matrix(Y)[:n_rows].astype(np.float32)
    of_words = 1 / np.sqrt(1 + np.asarray((words > 0).sum(axis=0)).ravel())
    of_labels = 1 / np.sqrt(np.maximum(np.asarray(Y.sum(axis=0)).ravel(), 1))
    pairs = sp.csr_matrix(sp.diags(of_words) @ (words.T @ Y) @ sp.diags(of_labels))
    vectors = randomized_svd(pairs, dim, n_iter=2, random_state=0)[0] * of_words[:, None]
    return unit(words @ vectors), Y.astype(int), unit(words_test @ vectors), sp.csr_matrix(Y_test)


def unit(rows):
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype("f4")


def run(X, Y, X_test, Y_test, n_blocks, n_candidates):
    """CPU seconds of a fit, and the precision of its five best labels."""
    model = DenseExtremeClassifier(
        gradient="mips" if n_blocks == 1 else "decomposed",
        learning_rate=0.3,
        max_iter=3,
        search=LabelSearch(n_blocks=n_blocks, n_candidates=n_candidates),
        fit_intercept=False,
        random_state=0,
    )
    start = time.process_time()
    model.fit(X, Y)
    seconds = time.process_time() - start
    found = measure(model, X_test[:2000], Y_test[:2000])
    print(
        f"B {n_blocks}  Q {n_candidates:3}  {seconds:5.1f} s  {show_precision(found)}", flush=True
    )
    return seconds, 100 * found[0]


def draw(curves, candidates, picture):
    _, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for n_blocks, points in curves.items():
        seconds, precision = np.array(points).T
        name = "plain search" if n_blocks == 1 else f"{n_blocks} blocks"
        axes.plot(seconds, precision, "o-", color=COLOURS[n_blocks], label=name)
    longest = max(curves.values(), key=lambda points: points[-1][0])
    for count, (x, y) in zip(candidates, longest, strict=True):
        axes.annotate(f"Q = {count}", (x, y), xytext=(5, -12), textcoords="offset points")
    axes.set_xlabel("CPU seconds of the fit")
    axes.set_ylabel("test records whose best label is right, %")
    axes.set_title("A last layer with 20,578 labels: blocks and candidates of the search")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    plt.savefig(picture, dpi=150)
    print(f"wrote {picture}")


if __name__ == "__main__":
    sys.exit(main())
