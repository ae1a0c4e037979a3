"""How few labels does a record touch, and how few weights does a model need?

    pip install '.[plot]'
    python examples/active_sets.py active_sets.png

Learns 3,861 subject headings from the text of 13,000 library records that come with the package.
The first picture shows what PD-Sparse works on, pass by pass: the labels in the active set of a
record (sparse in the dual), and the labels that give a word a weight (sparse in the primal). The
second shows precision against the number of weights along a path of l1 penalties of PPD-Sparse,
each fit started from the one before.
"""

import time

import numpy as np
from pictures import (
    BLUES,
    ORANGE,
    draw_cuts,
    draw_pair,
    measure,
    read_options,
    show_precision,
    write_at,
)
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.io import load_quickstart

L1 = [2.0, 1.0, 0.3, 0.1, 0.03]


def main():
    options = read_options(__doc__, "active_sets.png", "a few records, fewer penalties")

    data = load_quickstart(n_train=1000 if options.small else None)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    train = vectorizer.fit_transform(data.train_texts), data.train_labels
    test = vectorizer.transform(data.test_texts), data.test_labels
    print(f"{train[0].shape[0]:,} records, {train[0].shape[1]:,} words")

    ranker = fit_ranker(train, test)
    path = fit_path(L1[: 2 if options.small else None], train, test)
    draw_pair(
        lambda axes: draw_active(axes, ranker),
        lambda axes: draw_path(axes, path),
        options.picture,
    )
    print(f"wrote {options.picture}")


def fit_ranker(train, test):
    start = time.perf_counter()
    model = PDSparseClassifier(l1=0.03, random_state=0).fit(*train)
    seconds = time.perf_counter() - start
    active = model.trace_["active"][-1]
    print(f"PD-Sparse: {model.n_iter_} passes, {seconds:.1f} s")
    print(f"  {describe(model, test)}  {active:.0f} labels active per record")
    return model


def fit_path(penalties, train, test):
    """Models for each l1, with their precision."""
    start = time.perf_counter()
    models = PPDSparseClassifier(n_jobs=-1, random_state=0).fit_path(*train, penalties)
    seconds = time.perf_counter() - start
    print(f"PPD-Sparse: a path of {len(models)} penalties, {seconds:.1f} s")
    for model in models:
        print(f"  l1 {model.l1:<5g} {describe(model, test)}")
    return [(model, measure(model, *test)) for model in models]


def describe(model, test):
    return f"{model.coef_.nnz:>9,} weights  {show_precision(measure(model, *test))}"


def draw_active(axes, model):
    """Labels that a record and a word have to do with in each pass, and how many there are."""
    trace, n_labels = model.trace_, len(model.classes_)
    passes = np.arange(1, model.n_iter_ + 1)
    per_word = trace["nnz_primal"] / model.n_features_in_
    for values, name, colour, side in (
        (per_word, "with a weight for a word", ORANGE, 13),
        (trace["active"], "in the active set of a record", BLUES[1], -13),
    ):
        axes.plot(passes, values, "o-", color=colour)
        write_at(axes, name, (passes[-1], values[-1]), (4, side), color=colour, ha="right")
    axes.axhline(n_labels, color="k", lw=1, ls=":")
    write_at(axes, f"all {n_labels:,} labels", (passes[-1], n_labels), (4, -9), ha="right")
    axes.set(yscale="log", xlabel="pass", ylabel="labels, mean", xticks=passes)
    axes.set_ylim(1, 2 * n_labels)
    axes.set_title("PD-Sparse: each pass touches few labels", loc="left", fontsize=11)


def draw_path(axes, path):
    """Precision against the number of weights, a point for each l1."""
    weights = [model.coef_.nnz for model, _ in path]
    draw_cuts(axes, weights, [found for _, found in path], -1, (9, 0), "left")
    for (model, found), place in zip(path, weights, strict=True):
        spot = (place, 100 * found[0])
        write_at(axes, f"{model.l1:g}", spot, (0, 12), color="0.4", ha="center")
    axes.set(xscale="log", xlabel="weights that are not zero", ylabel="precision, %")
    axes.set_ylim(0, 1.2 * axes.dataLim.y1)
    axes.margins(x=0.14)
    axes.set_title("PPD-Sparse: precision along a path of l1 (grey)", loc="left", fontsize=11)


if __name__ == "__main__":
    main()
