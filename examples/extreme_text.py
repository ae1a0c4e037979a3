"""Subject headings for library records: how sparse may a model be before it forgets?

    python examples/extreme_text.py headings.png

Learns 3,861 headings from the raw text of 13,000 records for several weights of the l1 penalty, and
draws two pictures: precision against the size of the model, and how many of the training records
each heading's classifier really looked at.
"""

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.extreme import PPDSparseClassifier
from sublearn.io import load_quickstart
from sublearn.metrics import precision_at_k

CUTS = [1, 3, 5]
L1 = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
BLUES = ["#08306b", "#2171b5", "#6baed6"]
ORANGE = "#d95f02"


@dataclass
class Run:
    """What one fit gave."""

    l1: float
    model: PPDSparseClassifier
    precision: np.ndarray
    megabytes: float
    seconds: float


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("picture", type=Path, help="PNG file to write")
    arguments.add_argument("--small", action="store_true", help="a few records, two penalties")
    options = arguments.parse_args()

    data = load_quickstart(n_train=1000 if options.small else None)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X = vectorizer.fit_transform(data.train_texts)
    X_test = vectorizer.transform(data.test_texts)
    print(f"{X.shape[0]:,} records, {X.shape[1]:,} words")

    runs = []
    for l1 in L1[2:4] if options.small else L1:
        runs.append(fit_and_measure(l1, X, data.train_labels, X_test, data.test_labels))
        report(runs[-1])
    draw(runs, data.train_labels, options.picture)
    print(f"wrote {options.picture}")


def fit_and_measure(l1, X, labels, X_test, test_labels):
    start = time.perf_counter()
    model = PPDSparseClassifier(l1=l1, n_jobs=-1, random_state=0).fit(X, labels)
    seconds = time.perf_counter() - start
    ranked, _ = model.predict_top_k(X_test, max(CUTS))
    precision = precision_at_k(test_labels, ranked, CUTS)
    return Run(l1, model, precision, size_on_disk(model), seconds)


def size_on_disk(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return os.path.getsize(path) / 1e6


def report(run):
    precision = "  ".join(f"P@{k} {100 * p:4.1f}" for k, p in zip(CUTS, run.precision, strict=True))
    print(f"l1 {run.l1:<6g} {run.seconds:5.1f} s  {run.megabytes:6.2f} MB  {precision}")


def draw(runs, labels, path):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    draw_precision(left, runs)
    best = max(runs, key=lambda run: run.precision[0])
    draw_active_rows(right, best, labels)
    figure.savefig(path, dpi=150)


def draw_precision(axes, runs):
    l1 = [run.l1 for run in runs]
    for i, (k, colour) in enumerate(zip(CUTS, BLUES, strict=True)):
        values = [100 * run.precision[i] for run in runs]
        axes.plot(l1, values, "o-", color=colour, label=f"P@{k}")
        axes.annotate(f"P@{k}", (l1[0], values[0]), xytext=(-8, 0), textcoords="offset points",
                      ha="right", va="center", color=colour)  # fmt: skip
    axes.set(xscale="log", ylim=(0, None), xlabel="weight of the l1 penalty", ylabel="precision, %")
    axes.set_title("A smaller model costs little precision", loc="left", fontsize=11)
    axes.margins(x=0.14)
    size = axes.twinx()
    size.spines["right"].set_visible(True)
    size.spines["right"].set_color(ORANGE)
    size.plot(l1, [run.megabytes for run in runs], "s--", color=ORANGE)
    size.set_ylabel("model on disk, MB", color=ORANGE)
    size.set(yscale="log")
    size.tick_params(axis="y", colors=ORANGE)


def draw_active_rows(axes, run, labels):
    n_positive = count_rows(labels, run.model.classes_)
    n_active = run.model.trace_["nnz_dual"]
    n_rows = len(labels)
    edges = np.geomspace(1, max(n_active.max(), n_positive.max()) + 1, 30)
    axes.hist(n_positive, edges, color="0.75", label="records that carry the heading")
    axes.hist(n_active, edges, color=BLUES[1], alpha=0.75, label="records its classifier rests on")
    axes.axvline(n_rows, color="k", lw=1, ls=":")
    axes.annotate(f"all {n_rows:,}", (n_rows, 1), xycoords=("data", "axes fraction"), ha="right",
                  va="top", xytext=(-4, 0), textcoords="offset points")  # fmt: skip
    axes.set(xscale="log", xlabel="records", ylabel="headings")
    axes.set_title(f"Each heading needs few records (l1 = {run.l1:g})", loc="left", fontsize=11)
    axes.legend(frameon=False)


def count_rows(labels, classes):
    position = {name: k for k, name in enumerate(classes.tolist())}
    ids = [position[name] for names in labels for name in names]
    return np.bincount(ids, minlength=len(classes))


if __name__ == "__main__":
    main()
