"""What the examples share: options, precision of a model, its size, and how a picture looks."""

import argparse
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt

from sublearn.metrics import precision_at_k

CUTS = [1, 3, 5]
BLUES = ["#08306b", "#2171b5", "#6baed6"]
ORANGE = "#d95f02"


def read_options(doc, picture, small):
    arguments = argparse.ArgumentParser(description=doc.splitlines()[0])
    arguments.add_argument("picture", type=Path, nargs="?", default=picture, help="PNG to write")
    arguments.add_argument("--small", action="store_true", help=small)
    return arguments.parse_args()


def measure(model, X, labels):
    """Precision of the best labels at each of `CUTS`."""
    ranked, _ = model.predict_top_k(X, max(CUTS))
    return precision_at_k(labels, ranked, CUTS)


def show_precision(found):
    return "  ".join(f"P@{k} {100 * p:4.1f}" for k, p in zip(CUTS, found, strict=True))


def size_on_disk(model):
    """Megabytes of the saved model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.stat().st_size / 1e6


def draw_pair(draw_left, draw_right, path, height=4.4):
    """Two pictures side by side; each function gets its axes."""
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15)
    draw_left(left)
    draw_right(right)
    figure.savefig(path, dpi=150)


def draw_cuts(axes, x, precisions, at, offset, ha):
    """A line of precision for each of `CUTS`, its name beside point number `at`."""
    for i, (k, colour) in enumerate(zip(CUTS, BLUES, strict=True)):
        values = [100 * found[i] for found in precisions]
        axes.plot(x, values, "o-", color=colour)
        write_at(axes, f"P@{k}", (x[at], values[at]), offset, color=colour, ha=ha)


def write_at(axes, text, place, offset, **style):
    axes.annotate(text, place, xytext=offset, textcoords="offset points", va="center", **style)
