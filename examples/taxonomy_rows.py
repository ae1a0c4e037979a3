"""What the examples with a taxonomy share: their data, and bars of scores by level."""

import json
import lzma
import os
from pathlib import Path

import numpy as np
from pictures import BLUES, ORANGE
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.hierarchy import Taxonomy
from sublearn.io import load_hmc

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))


def is_missing(name):
    """Whether a folder is not there; says so."""
    if (DATA / name).is_dir():
        return False
    print(f"no folder {DATA / name}: set SUBLEARN_DATA to where the data is")
    return True


def read_news(n_most):
    """Topics of RCV1, tf-idf of the documents, and the topics of each."""
    folder = DATA / "rcv1_dev"
    taxonomy = Taxonomy.from_rcv1(folder / "rcv1.taxonomy")
    with lzma.open(folder / "rcv1_dev.hierar.json.xz", "rt") as file:
        documents = [json.loads(line) for line in file][:n_most]
    words = [" ".join(document["doc_token"]) for document in documents]
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(words).tocsr()
    return taxonomy, X, [[path.split("--")[-1] for path in d["doc_label"]] for d in documents]


def read_hmc(folder, *files, step=1):
    """A taxonomy, then scaled features and labels of each file, every `step`-th row of them.

    Missing values are means.
    """
    parts = [load_hmc(DATA / folder / file) for file in files]
    mean = np.nanmean(parts[0].X, axis=0)
    deviation = np.maximum(np.nanstd(parts[0].X, axis=0), 1e-12)
    filled = [np.where(np.isnan(part.X), mean, part.X) for part in parts]
    rows = [(X[::step] - mean) / deviation for X in filled]
    labels = [part.labels[::step] for part in parts]
    return Taxonomy.from_edges(parts[0].taxonomy), *zip(rows, labels, strict=True)


def draw_levels(axes, by_method):
    """Bars of F1 for each level of a taxonomy, a colour for each method, of which four at most."""
    width = 0.8 / len(by_method)
    colours = [*BLUES, ORANGE]
    for k, (name, scores) in enumerate(by_method.items()):
        x = np.arange(len(scores)) + (k - (len(by_method) - 1) / 2) * width
        axes.bar(x, 100 * np.asarray(scores), width, label=name, color=colours[k])
    axes.set_xticks(range(len(scores)), [f"level {level}" for level in range(len(scores))])
    axes.set_ylabel("micro F1, percent")
    axes.legend(frameon=False)
