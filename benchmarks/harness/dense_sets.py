"""Dense rows as users bring them: of any length, far from zero, with columns of different scales.

`TUNED` were looked at while the defaults of the last layers were chosen. `JUDGED` were named here
before, and measured once afterwards.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from harness.output_layers import LayerData, faces, one_label, yso
from harness.text_layers import languages
from sublearn.io import load_hmc

__all__ = ["JUDGED", "TUNED", "DenseSet"]

DenseSet = Callable[[Path], LayerData]


def _split(X: np.ndarray, y: np.ndarray, n_test: int, n_train: int = 10**9) -> LayerData:
    """Rows in a random order, the first of them asked; labels that are not learnt go."""
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:n_test], order[n_test : n_test + n_train]
    known = np.unique(y[train])
    test = test[np.isin(y[test], known)]
    ids = [np.searchsorted(known, y[part]) for part in (train, test)]
    rows = [np.ascontiguousarray(X[part], dtype=np.float32) for part in (train, test)]
    labels = [one_label(part, len(known)) for part in ids]
    return LayerData(rows[0], labels[0], rows[1], labels[1])


def gaussians(
    directory: Path, n_labels: int, dim: int, *, length: float = 0.0, far: float = 0.0
) -> LayerData:
    """Classes around random points; rows of one length, or with a shift and scales of columns."""
    rng = np.random.default_rng(n_labels)
    y = np.concatenate([np.arange(n_labels), rng.integers(n_labels, size=5 * n_labels)])
    X = rng.normal(size=(n_labels, dim))[y] + 0.7 * rng.normal(size=(len(y), dim))
    if length:
        X *= length / np.linalg.norm(X, axis=1, keepdims=True)
    if far:
        X = (X + far * rng.normal(size=dim)) * 10 ** rng.uniform(-1, 1, size=dim)
    return _split(X, y, 2000)


def mnist(directory: Path) -> LayerData:
    """Pixels from 0 to 255."""
    parts = []
    for name, skip in (("train-images-idx3", 16), ("train-labels-idx1", 8)):
        with lzma.open(directory / "mnist" / f"{name}-ubyte.xz") as file:
            parts.append(np.frombuffer(file.read(), dtype=np.uint8)[skip:])
    return _split(parts[0].reshape(-1, 784)[:12_000], parts[1][:12_000], 2000)


def letters(directory: Path) -> LayerData:
    """Handwritten letters of 128 pixels, 0 or 1."""
    with lzma.open(directory / "ocr_letters" / "letter.data.xz", "rt") as file:
        rows = [line.split("\t") for line in file]
    X = np.array([row[6:134] for row in rows], dtype=np.float32)
    return _split(X, np.array([row[1] for row in rows]), 2000, 12_000)


def chinese(directory: Path) -> LayerData:
    """Chinese characters by 85 numbers, two or three rows for most."""
    with lzma.open(directory / "chinese_ocr" / "data.fea.test.xz", "rt") as file:
        text = "".join(line for line in file if line.strip())
    X, y = load_svmlight_file(BytesIO(text.encode()))
    return _split(X.toarray(), y, 400)


def imclef(directory: Path) -> LayerData:
    """X-ray pictures by 80 numbers; the deepest labels."""
    found = load_hmc(directory / "hmc_imclef07a" / "imclef07a_train.arff.xz")
    return _split(found.X, np.array([max(row, key=len) for row in found.labels]), 2000)


def swadesh(directory: Path) -> LayerData:
    """Words of 2,111 languages by singular vectors of their letters, not scaled to one length."""
    data = languages(directory, 20_000)
    model = TruncatedSVD(128, random_state=0).fit(data.X)
    rows = [model.transform(part).astype(np.float32) for part in (data.X, data.X_test)]
    return LayerData(rows[0], data.Y, rows[1], data.Y_test)


def news(directory: Path) -> LayerData:
    """Newsgroups by 100 singular vectors of their words."""
    with lzma.open(directory / "20news" / "20news_bydate_train.tsv.xz", "rt") as file:
        rows = [line.split("\t", 2) for line in file]
    words = TfidfVectorizer(min_df=3, sublinear_tf=True).fit_transform([row[2] for row in rows])
    X = TruncatedSVD(100, random_state=0).fit_transform(sp.csr_matrix(words))
    return _split(X, np.array([row[0] for row in rows]), 2000)


TUNED: dict[str, DenseSet] = {
    "gaussians of length 10": partial(gaussians, n_labels=5_000, dim=64, length=10.0),
    "mnist": mnist,
    "yso_en": partial(yso, n_rows=12_000),
    "ocr_letters": letters,
    "panlex_swadesh110": swadesh,
}
JUDGED: dict[str, DenseSet] = {
    "faces": lambda directory: faces(8_000, 40_000, 1),
    "gaussians far from 0": partial(gaussians, n_labels=2_000, dim=48, far=3.0),
    "hmc_imclef07a": imclef,
    "20news": news,
    "chinese_ocr": chinese,
}
