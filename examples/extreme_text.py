"""Subject headings for library records: how sparse may a model be before it forgets?

    pip install '.[plot]'
    python examples/extreme_text.py headings.png

Learns 3,861 headings from the raw text of 13,000 records for several weights of the l1 penalty, and
draws two pictures: precision against the size of the model, and how many of the training records
each heading's classifier really looked at.
"""

import time
from dataclasses import dataclass

import numpy as np
from pictures import (
    BLUES,
    ORANGE,
    draw_cuts,
    draw_pair,
    measure,
    read_options,
    show_precision,
    size_on_disk,
    write_at,
)
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.extreme import PPDSparseClassifier
from sublearn.io import load_quickstart
from sublearn.validation import encode_labels

L1 = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0]


@dataclass
class Run:
    """What one fit gave."""

    l1: float
    model: PPDSparseClassifier
    precision: np.ndarray
    megabytes: float
    seconds: float


def main():
    options = read_options(__doc__, "headings.png", "a few records, two penalties")

    data = load_quickstart(n_train=1000 if options.small else None)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X = vectorizer.fit_transform(data.train_texts)
    X_test = vectorizer.transform(data.test_texts)
    print(f"{X.shape[0]:,} records, {X.shape[1]:,} words")

    runs = []
    for l1 in L1[2:4] if options.small else L1:
        runs.append(fit_and_measure(l1, X, data.train_labels, X_test, data.test_labels))
        report(runs[-1])
    best = max(runs, key=lambda run: run.precision[0])
    draw_pair(
        lambda axes: draw_precision(axes, runs),
        lambda axes: draw_support(axes, best, X, data.train_labels),
        options.picture,
    )
    print(f"wrote {options.picture}")


def fit_and_measure(l1, X, labels, X_test, test_labels):
    start = time.perf_counter()
    model = PPDSparseClassifier(l1=l1, n_jobs=-1, random_state=0).fit(X, labels)
    seconds = time.perf_counter() - start
    return Run(l1, model, measure(model, X_test, test_labels), size_on_disk(model), seconds)


def report(run):
    precision = show_precision(run.precision)
    print(f"l1 {run.l1:<6g} {run.seconds:5.1f} s  {run.megabytes:6.2f} MB  {precision}")


def draw_precision(axes, runs):
    """Precision (left scale) and the size of the file (right scale) against l1."""
    l1 = [run.l1 for run in runs]
    draw_cuts(axes, l1, [run.precision for run in runs], -1, (0, 11), "center")
    axes.set(xscale="log", ylim=(0, None), xlabel="weight of the l1 penalty", ylabel="precision, %")
    axes.set_title("Most weights can go before precision does", loc="left", fontsize=11)
    axes.margins(x=0.08)
    axes.set_ylim(0, 1.2 * axes.dataLim.y1)
    axes.set_xticks(l1, [f"{value:g}" for value in l1], minor=False)
    axes.minorticks_off()
    size = axes.twinx()
    megabytes = [run.megabytes for run in runs]
    size.plot(l1, megabytes, "s--", color=ORANGE, ms=5)
    write_at(size, "size of the model", (l1[0], megabytes[0]), (10, 6), color=ORANGE, ha="left")
    size.set(ylim=(0, 1.7 * max(megabytes)))
    size.set_ylabel("model on disk, MB", color=ORANGE)
    size.spines["right"].set(visible=True, color=ORANGE)
    size.tick_params(axis="y", colors=ORANGE)


def draw_support(axes, run, X, labels):
    """How many records carry a heading, and how many its classifier rests on."""
    has_label = encode_labels(labels, X.shape[0]).to_csr()
    n_positive = np.asarray(has_label.sum(axis=0)).ravel()
    n_active = count_active(run.model, X, has_label)
    edges = np.geomspace(n_positive.min(), 1.1 * X.shape[0], 30)
    axes.hist(n_positive, edges, color="0.72")
    axes.hist(n_active, edges, color=BLUES[1])
    axes.set(xscale="log", xlabel="records", ylabel="headings")
    axes.set_title(f"Each heading rests on few records (l1 = {run.l1:g})", loc="left", fontsize=11)
    axes.set_ylim(0, 1.2 * axes.dataLim.y1)
    axes.axvline(X.shape[0], color="k", lw=1, ls=":")
    top = axes.get_ylim()[1]
    write_at(axes, f"all {X.shape[0]:,}", (X.shape[0], 0.97 * top), (-5, 0), ha="right")
    place = (np.median(n_positive), 0.92 * top)
    write_at(axes, "carry the\nheading", place, (0, 0), color="0.45", ha="center")
    place = (np.median(n_active), 0.92 * top)
    write_at(axes, "active:\nmargin below 1", place, (0, 0), color=BLUES[1], ha="center")


def count_active(model, X, has_label, block=1000):
    """Records of each label with y * score < 1, which are those whose dual variable is not zero."""
    counts = np.zeros(has_label.shape[1], dtype=int)
    for start in range(0, X.shape[0], block):
        scores = model.decision_function(X[start : start + block])
        is_positive = has_label[start : start + block].toarray()
        counts += np.where(is_positive, scores < 1, scores > -1).sum(axis=0)
    return counts


if __name__ == "__main__":
    main()
