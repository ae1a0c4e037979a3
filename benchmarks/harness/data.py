"""Real data: where it lies, and how each set becomes a train/test split.

The directory is the command line's ``--data``, else the variable SUBLEARN_DATA, else a folder
``shared/data`` beside the repository; below it, one folder per set. All rows are kept, also test
rows without features or labels. Features are float32, rows of unit length unless said otherwise.
"""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from harness.problem import Problem, Split, truth_of
from harness.synthetic import unit_rows

__all__ = [
    "data_directory",
    "mulan",
    "one_hot",
    "svmlight_files",
    "svmlight_random_half",
    "tagged_texts",
    "unit_split",
    "words_by_language",
    "xmc",
]

_DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data"


def data_directory(given: str | None = None) -> Path:
    """The directory of real data; it need not exist as long as no real problem is asked for."""
    return Path(given or os.environ.get("SUBLEARN_DATA") or _DEFAULT)


def mulan(
    name: str, stem: str | None = None, suffix: str = "", *, title: str = "", is_raw: bool = False
) -> Problem:
    """A Mulan set with its official split: ``stem-train.arff.xz``, ``stem-test.arff.xz``.

    `is_raw` keeps the rows as they are stored, under another `title`.
    """
    stem = stem or name

    def load(directory: Path, seed: int) -> Split:
        from sublearn.io import load_arff

        folder = _existing(directory / name)
        parts = [
            load_arff(folder / f"{stem}-{part}{suffix}.arff.xz", labels=folder / f"{stem}.xml")
            for part in ("train", "test")
        ]
        (X, Y), (X_test, Y_test) = parts
        return unit_split(X, Y, X_test, Y_test, is_raw=is_raw)

    note = f"official split, {'rows as stored' if is_raw else 'unit rows'}"
    return Problem(title or name, load, note)


def xmc(name: str) -> Problem:
    """A set in the Extreme Classification repository's format, with its split; rows as stored."""

    def load(directory: Path, seed: int) -> Split:
        from sublearn.io import load_xmc

        folder = _existing(directory / name)
        parts = [load_xmc(folder / f"{name}_{part}.xmc.txt.xz") for part in ("train", "test")]
        (X, Y), (X_test, Y_test) = parts
        return unit_split(X, Y, X_test, Y_test)

    return Problem(name, load, "official split, unit tf-idf rows")


def svmlight_files(name: str, train: str, test: str) -> Problem:
    """A multiclass LIBSVM set in two files; classes are the values found in either."""

    def load(directory: Path, seed: int) -> Split:
        from sklearn.datasets import load_svmlight_files

        folder = _existing(directory / name)
        with lzma.open(folder / train) as first, lzma.open(folder / test) as second:
            X, y, X_test, y_test = load_svmlight_files([first, second])
        classes = np.unique(np.concatenate([y, y_test]))
        indicators = [one_hot(np.searchsorted(classes, part), len(classes)) for part in (y, y_test)]
        return unit_split(X, indicators[0], X_test, indicators[1])

    return Problem(name, load, f"train {train}, test {test}, unit rows")


def svmlight_random_half(name: str) -> Problem:
    """A multilabel LIBSVM set without a split of its own: a random half each, drawn by the seed."""

    def load(directory: Path, seed: int) -> Split:
        from sklearn.datasets import load_svmlight_file

        folder = _existing(directory / name)
        with lzma.open(folder / f"{name}.svm.xz") as file:
            X, labels = load_svmlight_file(file, multilabel=True)
        Y = _indicator(labels)
        order = np.random.default_rng(seed).permutation(X.shape[0])
        train, test = np.array_split(order, 2)
        return unit_split(X[train], Y[train], X[test], Y[test])

    return Problem(name, load, "random halves drawn by the seed, unit rows")


def tagged_texts(name: str, column: int) -> Problem:
    """Texts with labels joined by a bar in a column of a TSV file, the text in its last.

    Tf-idf with sublinear counts, of words that two training rows have.
    """

    def load(directory: Path, seed: int) -> Split:
        from sklearn.feature_extraction.text import TfidfVectorizer

        folder = _existing(directory / name)
        (tags, texts), (tags_test, texts_test) = (
            _tags_and_texts(folder / f"{name}_{part}.tsv.xz", column) for part in ("train", "dev")
        )
        labels = {tag: k for k, tag in enumerate(sorted(set().union(*tags)))}
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
        X, X_test = words.fit_transform(texts), words.transform(texts_test)
        Y, Y_test = (_tagged(rows, labels) for rows in (tags, tags_test))
        return unit_split(X, Y, X_test, Y_test)

    return Problem(name, load, "train and dev, tf-idf of the raw texts")


def _tags_and_texts(path: Path, column: int) -> tuple[list[set[str]], list[str]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [set(row[column].split("|")) - {""} for row in rows], [row[-1] for row in rows]


def _tagged(rows: list[set[str]], labels: dict[str, int]) -> sp.csr_matrix:
    """An indicator matrix; tags that are no labels are left out."""
    known = [sorted(labels[tag] for tag in tags if tag in labels) for tags in rows]
    indptr = np.cumsum([0, *map(len, known)])
    indices = np.array([k for row in known for k in row], dtype=np.int32)
    shape = (len(rows), len(labels))
    return sp.csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=shape)


def words_by_language(name: str, file: str = "words.tsv.xz") -> Problem:
    """Tell the language of a word: rows of language, concept, word; every fifth concept is asked.

    Features are tf-idf of the word's runs of one to four characters, counted in training words.
    """

    def load(directory: Path, seed: int) -> Split:
        from sklearn.feature_extraction.text import TfidfVectorizer

        with lzma.open(_existing(directory / name) / file, "rt", encoding="utf-8") as lines:
            table = [line.rstrip("\n").split("\t") for line in lines]
        languages, concepts, words = (np.array(column) for column in zip(*table, strict=True))
        classes, y = np.unique(languages, return_inverse=True)
        is_asked = np.unique(concepts, return_inverse=True)[1] % 5 == 4
        vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(1, 4), min_df=3, sublinear_tf=True, dtype=np.float32
        )
        X, X_test = (
            vectorizer.fit_transform(words[~is_asked]),
            vectorizer.transform(words[is_asked]),
        )
        Y = one_hot(y, len(classes))
        return unit_split(X, Y[~is_asked], X_test, Y[is_asked])

    return Problem(name, load, "every fifth concept asked, tf-idf of 1 to 4 characters, unit rows")


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise FileNotFoundError(f"no data at {folder}; name its parent by --data or SUBLEARN_DATA")
    return folder


def unit_split(
    X: object, Y: object, X_test: object, Y_test: object, *, is_raw: bool = False
) -> Split:
    """Training and test rows of length one in float32, or as they are if `is_raw`."""
    rows = _float_rows if is_raw else unit_rows
    return Split(
        train={"X": rows(X), "Y": _binary(Y)},
        test={"X": rows(X_test)},
        truth=truth_of(_binary(Y), _binary(Y_test)),
    )


def _float_rows(X: object) -> sp.csr_matrix:
    return sp.csr_matrix(X, dtype=np.float32)


def _binary(Y: object) -> sp.csr_matrix:
    matrix = sp.csr_matrix(Y, dtype=np.float32)
    matrix.eliminate_zeros()
    matrix.data[:] = 1
    return matrix


def one_hot(y: np.ndarray, n_classes: int) -> sp.csr_matrix:
    """The indicator matrix of one class a row."""
    return sp.csr_matrix((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), n_classes))


def _indicator(labels: list[tuple[float, ...]]) -> sp.csr_matrix:
    columns = np.array([label for row in labels for label in row], dtype=np.int64)
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    shape = (len(labels), int(columns.max()) + 1)
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
