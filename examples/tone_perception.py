"""Two ways to hear a tone: which one does each trial follow?

    pip install '.[plot]'
    python examples/tone_perception.py tone_perception.png

A trained musician heard a fundamental tone with stretched overtones and tuned a second tone to the
octave above it (Cohen 1980; SUBLEARN_DATA/tonedata, else ../shared/data). Some trials follow the
overtones, in others the octave is the true one. `MixLassoRegressor` gets neither the number of
these ways nor which trial is which, and sets apart the trials that follow none.
"""

import argparse
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws into files, needs no screen
import matplotlib.pyplot as plt
import numpy as np

from sublearn.latent import MixLassoRegressor, MixtureSearch

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
COLOURS = ["#2171b5", "#d95f02", "#41ab5d", "#756bb1", "#636363", "#e7298a"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("picture", type=Path, nargs="?", default="tone_perception.png")
    arguments.add_argument("--small", action="store_true", help="fewer starts")
    options = arguments.parse_args()
    if not (DATA / "tonedata").is_dir():
        print(f"no folder {DATA / 'tonedata'}: set SUBLEARN_DATA to where the data is")
        return
    stretch, tuned = np.loadtxt(DATA / "tonedata" / "tonedata.txt", skiprows=1).T

    search = MixtureSearch(n_starts=8 if options.small else None)
    model = MixLassoRegressor(search=search, random_state=0)
    model.fit(stretch[:, None], tuned)
    for size, value in model.criteria_.items():
        print(f"{size} components: criterion {value:7.1f}")
    print(f"{model.n_components_} ways, {model.outlier_share_:.0%} of the trials follow none")
    for k in range(model.n_components_):
        print(
            f"  {model.shares_[k]:.0%}: tuned = {model.intercept_[k]:.2f} "
            f"{model.coef_[k, 0]:+.2f} x stretch, noise {model.noise_[k]:.3f}"
        )
    draw(model, stretch, tuned, options.picture)
    print(f"wrote {options.picture}")


def draw(model, stretch, tuned, path):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    line = np.linspace(stretch.min(), stretch.max(), 50)
    heights = model.predict_components(line[:, None])
    for k, colour in zip(range(model.n_components_), COLOURS, strict=False):
        rows = model.labels_ == k
        axes.plot(stretch[rows], tuned[rows], "o", ms=4, alpha=0.6, color=colour)
        text = f"{model.intercept_[k]:.2f} {model.coef_[k, 0]:+.2f} x ({model.shares_[k]:.0%})"
        axes.plot(line, heights[:, k], color=colour, lw=2, label=text)
    axes.set(xlabel="stretch of the overtones", ylabel="tuned octave")
    axes.set_title("Two ways to hear an octave", loc="left")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
