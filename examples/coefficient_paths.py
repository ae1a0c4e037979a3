"""Which words say that a record is about education, and how many are worth their place?

    pip install '.[plot]'
    python examples/coefficient_paths.py coefficient_paths.png

Learns from the text of 13,000 library records that come with the package which of them have a
subject heading on education, by sparse logistic regression along a path of falling l1. The first
picture shows the weights of words as l1 falls: the strongest words enter first. The second shows
the log loss on held-out folds along the same path, and the l1 that cross-validation takes: the
best one, and the largest one that is within a standard error of it.
"""

import argparse
import itertools
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.io import load_quickstart
from sublearn.linear import SparseLogisticRegression

SUBJECT = "education"
BLUE, ORANGE = "#2171b5", "#d95f02"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "picture", type=Path, nargs="?", default="coefficient_paths.png", help="PNG to write"
    )
    arguments.add_argument("--small", action="store_true", help="a few records, fewer penalties")
    options = arguments.parse_args()

    X, y, words = read(2000 if options.small else None)
    n_l1s = 15 if options.small else 40
    print(f"{X.shape[0]:,} records, {X.shape[1]:,} words, {y.sum():,} about {SUBJECT}")

    path = follow(X, y, n_l1s)
    model = choose(X, y, path.l1s)
    draw(path, model, words, options.picture)
    print(f"wrote {options.picture}")


def read(n_train):
    """Words of the records, and whether a heading of each names the subject."""
    data = load_quickstart(n_train=n_train)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
    X = vectorizer.fit_transform(data.train_texts).tocsc()
    y = np.array([any(SUBJECT in label for label in labels) for labels in data.train_labels])
    return X, y, vectorizer.get_feature_names_out()


def follow(X, y, n_l1s):
    start = time.perf_counter()
    path = SparseLogisticRegression(tol=1e-5).fit_path(X, y, n_l1s)
    seconds = time.perf_counter() - start
    print(f"a path of {len(path)} values of l1 in {seconds:.2f} s")
    print(f"  {path.coefs[-1].nnz} words at the end, largest gap {path.certificates.max():.1e}")
    return path


def choose(X, y, l1s):
    start = time.perf_counter()
    model = SparseLogisticRegression("cv_1se", l1s=l1s, tol=1e-5, n_jobs=-1).fit(X, y)
    print(f"five folds in {time.perf_counter() - start:.2f} s")
    print(f"  l1 {model.l1_:.2g} and {model.sparse_coef_.nnz} words are within a standard error")
    return model


def draw(path, model, words, picture):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15)
    draw_weights(left, path, model, words)
    draw_scores(right, path, model)
    figure.savefig(picture, dpi=150)


def draw_weights(axes, path, model, words):
    """Weights along the path; the words that are strongest at the chosen l1 have their names."""
    final = path.coefs[-1].toarray()[0]
    strongest = np.argsort(-np.abs(model.coef_[0]))[:10]
    used = np.unique(path.coefs.indices)
    axes.plot(path.l1s, path.coefs[:, used].toarray(), color="0.85", lw=0.7)
    colours = plt.get_cmap("tab10")
    places = spread(final[strongest], 0.045 * (final.max() - final.min()))
    for rank, (word, place) in enumerate(zip(strongest, places, strict=True)):
        weights = path.coefs[:, word].toarray()[:, 0]
        axes.plot(path.l1s, weights, color=colours(rank), lw=1.6)
        write_at(axes, words[word], (path.l1s[-1], place), (6, 0), color=colours(rank), ha="left")
    axes.axvline(model.l1_, color=ORANGE, lw=1, ls=":")
    axes.set(xscale="log", xlabel="l1", ylabel="weight", xlim=(path.l1s[0], path.l1s[-1]))
    axes.set_title(f"Words for headings on {SUBJECT}", loc="left", fontsize=11)


def spread(values, gap):
    """Places near `values`, in their order, at least `gap` apart: names must not overlap."""
    order = np.argsort(-values)
    places = values.astype(float).copy()
    for above, below in itertools.pairwise(order):
        places[below] = min(places[below], places[above] - gap)
    return places


def draw_scores(axes, path, model):
    """Held-out loss with its standard error, and the number of words, along the path."""
    losses = -model.cv_scores_
    means, errors = losses.mean(axis=1), losses.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    best, chosen = means.argmin(), int(np.flatnonzero(path.l1s == model.l1_)[0])
    axes.fill_between(path.l1s, means - errors, means + errors, color=BLUE, alpha=0.2, lw=0)
    axes.plot(path.l1s, means, color=BLUE)
    for at, name, side in ((chosen, "1se", 1), (best, "best", -1)):
        axes.plot(path.l1s[at], means[at], "o", color=ORANGE)
        text = f"{name}: {path.coefs[at].nnz} words"
        write_at(axes, text, (path.l1s[at], means[at]), (0, 22 * side), color=ORANGE, ha="center")
    axes.set(xscale="log", xlabel="l1", ylabel="log loss, held out")
    axes.set_xlim(path.l1s[0], path.l1s[-1])
    axes.margins(y=0.2)
    axes.set_title("Five folds choose l1", loc="left", fontsize=11)


def write_at(axes, text, place, offset, **style):
    axes.annotate(
        text, place, xytext=offset, textcoords="offset points", va="center",
        annotation_clip=False, **style,
    )  # fmt: skip


if __name__ == "__main__":
    main()
