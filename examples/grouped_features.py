"""Which questions of a census say who earns much, asked whole?

    pip install '.[plot]'
    python examples/grouped_features.py grouped_features.png

Needs the records `a9a` (32,561 people of the census of 1994, from the page of LIBSVM's data sets):
file a9a.xz in a folder a9a of the folder that SUBLEARN_DATA names. Without it, it says so and ends.

Each of fourteen questions is some columns of zeros and ones, one for each answer. The lasso picks
single answers; a penalty on groups picks questions. The first picture shows the norms of the
weights of each question as l1 falls: who enters first says most. The second shows the held-out
loss against the number of questions that one would have to ask, for groups and for the lasso. A
strong penalty pulls whole groups further towards zero than single answers; with more questions
groups are ahead, and leave some of the fourteen out that the lasso all asks.
"""

import lzma
import os
import time
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pictures import ORANGE, draw_pair, read_options
from sklearn.datasets import load_svmlight_file

from sublearn.linear import GroupLogisticRegression, SparseLogisticRegression

QUESTIONS = {
    "age": 5, "work class": 8, "final weight": 5, "education": 16, "years of education": 5,
    "marital status": 7, "occupation": 14, "relationship": 6, "race": 5, "sex": 2,
    "capital gain": 2, "capital loss": 2, "hours per week": 5, "native country": 41,
}  # fmt: skip
BLUE = "#2171b5"


def main():
    options = read_options(__doc__, "grouped_features.png", "a few people, fewer penalties")
    file = Path(os.environ.get("SUBLEARN_DATA", "data")) / "a9a" / "a9a.xz"
    if not file.exists():
        print(f"{file} is not there; SUBLEARN_DATA names the folder that has a9a/a9a.xz")
        return
    with lzma.open(file) as opened:
        X, y = load_svmlight_file(opened, n_features=sum(QUESTIONS.values()))
    X, y = (X[:2000], y[:2000]) if options.small else (X, y)
    train = np.arange(len(y)) % 4 > 0
    paths = follow(X[train], y[train], 10 if options.small else 40)
    draw_pair(
        partial(draw_norms, path=paths["groups"]),
        partial(draw_losses, paths=paths, X=X[~train], y=y[~train]),
        options.picture,
    )
    print(f"wrote {options.picture}")


def groups():
    return np.repeat(list(QUESTIONS), list(QUESTIONS.values()))


def follow(X, y, n_l1s):
    """Paths of both penalties."""
    models = {
        "groups": GroupLogisticRegression(feature_groups=groups(), tol=1e-5),
        "lasso": SparseLogisticRegression(tol=1e-5),
    }
    paths = {}
    for name, model in models.items():
        start = time.perf_counter()
        paths[name] = model.fit_path(X, y, n_l1s)
        print(f"{name}: a path of {len(paths[name])} values of l1 in "
              f"{time.perf_counter() - start:.2f} s")  # fmt: skip
    return paths


def norms(path):
    """Norms of the weights of each question, a row for each l1."""
    squares = path.coefs.toarray() ** 2
    ends = np.cumsum(list(QUESTIONS.values()))
    return np.sqrt([squares[:, end - n : end].sum(axis=1)
                    for n, end in zip(QUESTIONS.values(), ends, strict=True)]).T  # fmt: skip


def draw_losses(axes, paths, X, y):
    right = np.arange(len(y)), (y > 0).astype(int)
    for (name, path), colour, marker in zip(paths.items(), (BLUE, ORANGE), "os", strict=True):
        losses = [-model.predict_log_proba(X)[right].mean() for model in path]
        asked = np.count_nonzero(norms(path), axis=1)
        axes.plot(asked, losses, marker, ls="-", color=colour, ms=4, lw=1.2, label=name)
    axes.set(xlabel="questions that must be asked", ylabel="log loss, held out")
    axes.set_title("What further questions are worth", loc="left", fontsize=11)
    axes.legend(frameon=False)


def draw_norms(axes, path):
    """The questions with the largest weights have their names, apart from each other."""
    found = norms(path)
    order = np.argsort(-found[-1])
    colours, gap = plt.get_cmap("tab10"), 0.05 * found.max()
    above = np.inf
    for rank, k in enumerate(order):
        name, is_named = list(QUESTIONS)[k], rank < 8
        colour = colours(rank) if is_named else "0.8"
        axes.plot(path.l1s, found[:, k], color=colour, lw=1.6 if is_named else 0.8)
        if is_named:
            above = min(found[-1, k], above - gap)
            axes.annotate(name, (path.l1s[-1], above), xytext=(6, 0), textcoords="offset points",
                          va="center", color=colour, annotation_clip=False)  # fmt: skip
    axes.set(xscale="log", xlabel="l1", ylabel="norm of a question's weights")
    axes.set_xlim(path.l1s[0], path.l1s[-1])
    axes.set_title("Questions enter whole", loc="left", fontsize=11)


if __name__ == "__main__":
    main()
