"""Which tags of bookmarks belong together, beyond what their pages say?

    pip install '.[plot]'
    python examples/label_network.py label_network.png

Bibtex entries with 1,836 words and 159 tags (SUBLEARN_DATA/bibtex, else ../shared/data). A
structural SVM learns a weight for each word and tag, and one for each of the 12,561 pairs of tags.
The picture shows the pairs of largest weight: blue for tags that come together more often than
their words explain, orange for tags that keep away from each other. Printed below it: how often
the whole set of tags is right, with pairs and without.
"""

import os
import time
from pathlib import Path

import numpy as np
from pictures import read_options
from sklearn.metrics import hamming_loss
from sklearn.preprocessing import Normalizer

from sublearn.display import NetworkDisplay
from sublearn.io import load_arff
from sublearn.structured import PairwiseMultilabelSVM

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
LEGEND = {
    "in 3 % of the entries or more": "#fdbf6f",
    "in 1 % to 3 %": "#fff2cc",
    "rarer": "#e0e0e0",
}
N_LINKS = 70


def main():
    options = read_options(__doc__, "label_network.png", "1,000 entries instead of 4,880")
    folder = DATA / "bibtex"
    if not folder.exists():
        print(f"no folder {folder}: set SUBLEARN_DATA to where the data is")
        return
    train, test = (
        load_arff(folder / f"bibtex-{part}.arff.xz", labels=folder / "bibtex.xml")
        for part in ("train", "test")
    )
    n_rows = 1000 if options.small else train.X.shape[0]
    X, Y = Normalizer().fit_transform(train.X[:n_rows]), train.Y[:n_rows]
    X_test = Normalizer().fit_transform(test.X)
    models = {}
    for pairs in ("none", "all"):
        start = time.perf_counter()
        models[pairs] = PairwiseMultilabelSVM(pairs=pairs, tol=0.05, random_state=0).fit(X, Y)
        seconds = time.perf_counter() - start
        report(pairs, models[pairs], X_test, test.Y, seconds)
    draw(models["all"], Y, list(train.label_names), options.picture)
    print(f"wrote {options.picture}")


def report(pairs, model, X, Y, seconds):
    print(
        f"pairs={pairs!r}: {seconds:.1f} s, {model.n_iter_} passes, gap {model.certificate_:.1%}; "
        f"whole sets right {model.score(X, Y):.1%}, "
        f"Hamming loss {hamming_loss(Y, model.predict(X)):.5f}"
    )


def draw(model, Y, names, picture):
    V = model.interactions_.toarray().astype(np.float64)
    share = np.asarray(Y.mean(axis=0)).ravel()
    colours = np.array(list(LEGEND.values()))[2 - (share >= 0.01).astype(int) - (share >= 0.03)]
    display = NetworkDisplay.from_matrix(
        V, n_links=N_LINKS, names=[name.removeprefix("TAG_") for name in names], with_pairs=False,
        colours=colours, legend=LEGEND, signs=("seen together", "avoid each other"),
        title=f"The strongest pair weights of {len(names)} tags",
    )  # fmt: skip
    display.plot().figure_.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
