"""What the examples of MAP inference share: where the data is, a line of figures, two pictures."""

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
BLUE, ORANGE, GREY = "#2171b5", "#d95f02", "#bdbdbd"


def find_data(name):
    """The file SUBLEARN_DATA/name, or None after a word about it."""
    path = DATA / name
    if path.exists():
        return path
    print(f"no file {path}: set SUBLEARN_DATA to where the data is")
    return None


def show_result(name, result, seconds):
    print(
        f"{name}: score {result.score:.4f}, no assignment above {result.bound:.4f} "
        f"(gap {result.gap:.1e}), {seconds:.2f} s"
    )


def two_axes(height=4.2):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15)
    return figure, axes


def draw_trace(axes, result, name):
    """How far the bound was above the best assignment at any time."""
    score, bound = result.trace["score"], result.trace["bound"]
    gap = (bound - score) / np.maximum(1.0, np.abs(score))
    axes.step(result.trace["seconds"], np.maximum(gap, 1e-9), "o-", where="post", color=BLUE, ms=3)
    axes.set(yscale="log", xlabel="seconds", ylabel="relative gap")
    axes.set_title(f"{name}: bound above best assignment", loc="left")


def best_alone(graph):
    """The label with the highest unary score of each variable."""
    return np.array([np.argmax(graph.unary(i)) for i in range(graph.n_variables)])
