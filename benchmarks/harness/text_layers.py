"""Sparse rows with very many labels for networks with a hidden layer, and fastText on them."""

from __future__ import annotations

import lzma
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.io import load_xmc

__all__ = ["TextData", "fasttext_labels", "languages", "records"]

_LABEL = "__label__"


@dataclass(frozen=True)
class TextData:
    """Sparse rows with their labels, to learn from and to test."""

    X: sp.csr_matrix
    Y: sp.csr_matrix
    X_test: sp.csr_matrix
    Y_test: sp.csr_matrix


def records(directory: Path, n_rows: int) -> TextData:
    """Library records of `yso_en`, weighted words and 20,578 labels."""
    X, Y = load_xmc(directory / "yso_en" / "yso_en_train.xmc.txt.xz")
    X_test, Y_test = load_xmc(directory / "yso_en" / "yso_en_test.xmc.txt.xz")
    parts = (X[:n_rows], Y[:n_rows], X_test[:2000], Y_test[:2000])
    return TextData(*(sp.csr_matrix(part) for part in parts))


def languages(directory: Path, n_rows: int) -> TextData:
    """Words of `panlex_swadesh110` by their letters, up to four in a row; concepts are split."""
    with lzma.open(directory / "panlex_swadesh110" / "words.tsv.xz", "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    names, concepts, words = (np.array(column) for column in zip(*rows, strict=True))
    labels = np.unique(names, return_inverse=True)[1]
    is_test = concepts.astype(np.int64) % 10 == 0
    rng = np.random.default_rng(0)
    train = rng.permutation(np.flatnonzero(~is_test))[:n_rows]
    test = rng.permutation(np.flatnonzero(is_test))[:2000]
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), min_df=3, sublinear_tf=True, dtype=np.float32
    )
    X, X_test = letters.fit_transform(words[train]), letters.transform(words[test])
    size = int(labels.max()) + 1
    return TextData(X, _one_label(labels[train], size), X_test, _one_label(labels[test], size))


def fasttext_labels(
    data: TextData, n_components: int, n_epochs: int, loss: str, seed: int
) -> tuple[np.ndarray, float]:
    """The best five labels of the test rows, and CPU seconds of training.

    fastText reads words: a row becomes the names of its features, without their weights.
    """
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        with path.open("w") as file:
            for row in range(data.X.shape[0]):
                own = data.Y.indices[data.Y.indptr[row] : data.Y.indptr[row + 1]].tolist()
                names = " ".join(f"{_LABEL}{label}" for label in own)
                file.write(f"{names} {_words(data.X, row)}\n")
        start = time.process_time()
        model = fasttext.train_supervised(
            str(path), loss=loss, lr=0.5, epoch=n_epochs, dim=n_components, minCount=1, thread=1,
            seed=seed, verbose=0,
        )  # fmt: skip
        seconds = time.process_time() - start
    best = np.full((data.X_test.shape[0], 5), -1, dtype=np.int64)
    for row in range(len(best)):
        # The function below its Python one, which does not run with NumPy 2.
        found = model.f.predict(f"{_words(data.X_test, row)}\n", 5, 0.0, "strict")
        best[row, : len(found)] = [int(name.removeprefix(_LABEL)) for _, name in found]
    return best, seconds


def _words(X: sp.csr_matrix, row: int) -> str:
    return " ".join(f"f{j}" for j in X.indices[X.indptr[row] : X.indptr[row + 1]].tolist())


def _one_label(labels: np.ndarray, n_labels: int) -> sp.csr_matrix:
    ones = np.ones(len(labels), dtype=np.float32)
    return sp.csr_matrix((ones, labels, np.arange(len(labels) + 1)), (len(labels), n_labels))
