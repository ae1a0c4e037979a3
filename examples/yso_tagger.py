"""From raw text to a tagger with 20,578 subjects: how small may it be, and can one trust it?

    pip install '.[plot]'
    python examples/yso_tagger.py --small tagger.png

Needs the records `yso_en` (library records with subjects of the General Finnish Ontology): files
yso_en_train.raw.tsv.xz and yso_en_test.raw.tsv.xz, a text, a tab and its subjects on each line, in
a folder yso_en of the folder that SUBLEARN_DATA names. Without them it takes the records of
`sublearn.datasets.fetch_yso`, or says how to download these.

A tenth of the training records is held out to turn scores into probabilities. The first picture
shows precision against the size of the saved model along a path of l1 penalties, the second how
often suggestions of a given probability are right.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pictures import (
    BLUES,
    CUTS,
    ORANGE,
    draw_cuts,
    draw_pair,
    measure,
    read_options,
    show_precision,
    size_on_disk,
    write_at,
)
from scipy.special import expit

from sublearn.datasets import fetch_yso
from sublearn.errors import DownloadError
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.io import load_texts
from sublearn.metrics import expected_calibration_error, reliability_curve

L1 = [0.1, 0.3, 1.0, 2.0]
N_SMALL, N_TRAIN, N_TEST = 8_000, 50_000, 10_000


@dataclass
class Run:
    """What one fit gave."""

    l1: float
    tagger: TextTagger
    precision: np.ndarray
    megabytes: float
    seconds: float


def main():
    few = f"{N_SMALL:,} records instead of 50,000"
    options = read_options(__doc__, "yso_tagger.png", few)

    texts, labels = read("train", N_SMALL if options.small else N_TRAIN)
    test = read("test", 2000 if options.small else N_TEST)
    n_held_out = len(texts) // 10
    train = texts[n_held_out:], labels[n_held_out:]
    held_out = texts[:n_held_out], labels[:n_held_out]
    counts = len(train[0]), n_held_out, len(test[0])
    print("{:,} records to learn from, {:,} to calibrate, {:,} to test".format(*counts))

    runs = []
    for l1 in L1:
        runs.append(fit_and_measure(l1, train, test))
        report(runs[-1])
    best = max(runs, key=lambda run: measure(run.tagger, *held_out)[0])  # not by the test records
    best.tagger.calibrate(*held_out)
    draw_pair(
        lambda axes: draw_path(axes, runs),
        lambda axes: draw_reliability(axes, best, test),
        options.picture,
        height=4.6,
    )
    explain(best.tagger, test)
    print(f"wrote {options.picture}")


def read(part, n):
    """Texts and subjects: from SUBLEARN_DATA, or those that were downloaded."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("SUBLEARN_DATA", beside)) / "yso_en" / f"yso_en_{part}.raw.tsv.xz"
    if path.is_file():
        data = load_texts(path, columns="text,labels", separator=" ")
        return data.texts[:n], data.labels[:n]
    try:
        records = fetch_yso("en", subset=part, download_if_missing=False)
    except DownloadError:
        sys.exit(
            f"no file {path}: set SUBLEARN_DATA to where the records are, or download more "
            "of their source by `sublearn datasets yso-en`, in Python "
            'sublearn.datasets.fetch_yso("en")'
        )
    chosen = [i for i, own in enumerate(records.y) if len(own) > 1][:n]  # librarians give several
    return [records.X[i] for i in chosen], [records.y[i] for i in chosen]


def fit_and_measure(l1, train, test):
    start = time.perf_counter()
    classifier = PPDSparseClassifier(l1=l1, n_jobs=-1, random_state=0)
    tagger = TextTagger(classifier, min_df=2).fit(*train)
    seconds = time.perf_counter() - start
    return Run(l1, tagger, measure(tagger, *test), size_on_disk(tagger), seconds)


def report(run):
    precision = show_precision(run.precision)
    print(f"l1 {run.l1:<6g} {run.seconds:5.1f} s  {run.megabytes:6.2f} MB  {precision}")


def explain(tagger, test):
    """The best subject of the first test record, and the words that led to it."""
    label = tagger.predict_top_k(test[0][:1], 1)[0][0, 0]
    print(
        f"\n{test[0][0]}\nsubjects: {' '.join(test[1][0])}\n{tagger.explain(test[0][0], label)}\n"
    )


def draw_path(axes, runs):
    """Precision against the size of the file, a point for each l1."""
    size = [run.megabytes for run in runs]
    draw_cuts(axes, size, [run.precision for run in runs], 0, (9, 0), "left")
    for run, place in zip(runs, size, strict=True):
        top = 100 * run.precision[0]
        write_at(axes, f"l1 {run.l1:g}", (place, top), (0, 12), color="0.4", ha="center")
    axes.set(xscale="log", xlabel="model on disk, MB", ylabel="precision, %")
    axes.set_ylim(0, 1.25 * axes.dataLim.y1)
    axes.margins(x=0.14)
    axes.set_xticks(size, [f"{megabytes:.1f}" for megabytes in size])
    axes.minorticks_off()
    axes.set_title("Precision along the path of l1", loc="left", fontsize=11)


def draw_reliability(axes, run, test):
    """Share of right suggestions against their probability, and the same for bare scores."""
    texts, labels = test
    ranked, probability = run.tagger.predict_proba_top_k(texts, max(CUTS))
    _, scores = run.tagger.predict_top_k(texts, max(CUTS))
    axes.plot([0, 100], [0, 100], color="0.75", lw=1)
    for values, name, colour, marker in (
        (expit(scores), "logistic of the score", ORANGE, "s"),
        (probability, "calibrated", BLUES[1], "o"),
    ):
        curve = reliability_curve(labels, ranked, values, n_bins=12)
        error = expected_calibration_error(labels, ranked, values)
        shown = curve.counts >= 20
        area = 12 + 240 * curve.counts[shown] / curve.counts.sum()
        axes.plot(100 * curve.predicted[shown], 100 * curve.observed[shown], "-", color=colour)
        axes.scatter(
            100 * curve.predicted[shown], 100 * curve.observed[shown], area, color=colour,
            marker=marker, label=f"{name}: error {100 * error:.1f} %",
        )  # fmt: skip
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    axes.set(xlabel="probability of a suggestion, %", ylabel="suggestions that are right, %")
    axes.set_title(f"The five best suggestions (l1 = {run.l1:g})", loc="left", fontsize=11)
    legend = axes.legend(loc="upper left", frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([36])


if __name__ == "__main__":
    sys.exit(main())
