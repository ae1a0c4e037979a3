"""What benchmarks/defaults.py asks: training rows, test rows, and rivals that need an adaptor."""

from __future__ import annotations

import functools
import lzma
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.svm import LinearSVC

from harness.bench import Bench
from harness.chains import PROBLEMS, Split, blocks, encoded
from harness.data import mulan, svmlight_random_half
from harness.taxonomies import TAXONOMIES, Rows, load_rows, stories

__all__ = [
    "Crfsuite",
    "FlatLabels",
    "FlatPath",
    "Task",
    "chain_rows",
    "label_rows",
    "path_rows",
    "table_rows",
    "text_rows",
    "tree_rows",
]

_MOST_ROWS, _MOST_LABELS, _MOST_TOKENS = 4_000, 200, 60_000


@dataclass(frozen=True, eq=False)
class Task:
    """Training rows, test rows, more that `fit` takes, and what a model must know beforehand."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    more: dict[str, Any] = field(default_factory=dict)
    about: Any = None


# --- tables ---------------------------------------------------------------------------------------


def table_rows(name: str, bench: Bench) -> Task:
    """A set of scikit-learn, or of those of `linear.py`, scaled by its training rows."""
    loaders: dict[str, Callable[[], tuple[Any, Any]]] = {
        "breast_cancer": functools.partial(datasets.load_breast_cancer, return_X_y=True),
        "wine": functools.partial(datasets.load_wine, return_X_y=True),
        "iris": functools.partial(datasets.load_iris, return_X_y=True),
        "digits": functools.partial(datasets.load_digits, return_X_y=True),
        "diabetes": functools.partial(datasets.load_diabetes, return_X_y=True),
        "linnerud": lambda: _first_target(*datasets.load_linnerud(return_X_y=True)),
        "friedman1": functools.partial(datasets.make_friedman1, 500, 50, noise=1.0, random_state=0),
        "friedman2": functools.partial(datasets.make_friedman2, 500, noise=50.0, random_state=0),
        "sparse_uncorrelated": functools.partial(
            datasets.make_sparse_uncorrelated, 400, 100, random_state=0
        ),
    }
    X, y = loaders[name]() if name in loaders else _of_linear(name, bench)
    parts = train_test_split(X[:_MOST_ROWS], y[:_MOST_ROWS], test_size=0.3, random_state=bench.seed)
    if sp.issparse(X):
        return Task(parts[0], parts[2], parts[1], parts[3])
    scaler = StandardScaler().fit(parts[0])
    return Task(scaler.transform(parts[0]), parts[2], scaler.transform(parts[1]), parts[3])


def _of_linear(name: str, bench: Bench) -> tuple[Any, Any]:
    from linear import SETS  # the script, which has rivals of its own to import

    return SETS[name][1](bench.data, bench.seed)


def _first_target(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X, Y[:, 0]


def label_rows(name: str, bench: Bench) -> Task:
    """Rows of several labels each."""
    problems = {
        "reutersk500": svmlight_random_half("reutersk500"),
        "corel5k": mulan("corel5k", suffix="-sparse"),
        "tmc2007_500": mulan("tmc2007_500", "tmc2007-500"),
    }
    split = (problems.get(name) or mulan(name)).load(bench.data, bench.seed)
    n = _MOST_ROWS
    return Task(
        split.train["X"][:n], split.train["Y"][:n], split.test["X"][:n], split.truth["Y"][:n]
    )


# --- texts ----------------------------------------------------------------------------------------


def text_rows(name: str, bench: Bench) -> Task:
    """Texts and the most frequent labels of each; texts with none of those are left out."""
    pairs = list(_TEXTS[name](bench.data))
    counts: dict[str, int] = {}
    for _, labels in pairs:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    kept = set(sorted(counts, key=lambda label: (-counts[label], label))[:_MOST_LABELS])
    pairs = [(text, own) for text, labels in pairs if (own := kept.intersection(labels))]
    pairs = [pairs[i] for i in np.random.default_rng(bench.seed).permutation(len(pairs))]
    pairs = pairs[: 2 * _MOST_ROWS]
    texts, Y = [text for text, _ in pairs], MultiLabelBinarizer(classes=sorted(kept))
    coded, half = Y.fit_transform([own for _, own in pairs]), len(pairs) // 2
    return Task(texts[:half], coded[:half], texts[half:], coded[half:])


def _lines(path: Path) -> Iterator[list[str]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


def _news(directory: Path) -> Iterator[tuple[str, list[str]]]:
    for group, _, subject, body in _lines(directory / "20news" / "20news_bydate_train.tsv.xz"):
        yield f"{subject} {body}", [group]


def _titles(directory: Path) -> Iterator[tuple[str, list[str]]]:
    for labels, title in islice(_lines(directory / "yso_fi" / "yso_fi_train.tsv.xz"), 40_000):
        yield title, labels.split("|")


def _records(language: str) -> Callable[[Path], Iterator[tuple[str, list[str]]]]:
    def read(directory: Path) -> Iterator[tuple[str, list[str]]]:
        lines = _lines(directory / "gnd" / "gnd_train.tsv.xz")
        chosen = (line for line in lines if line[0] == language and line[1])
        for _, subjects, _, text in islice(chosen, 20_000):
            yield text, subjects.split("|")

    return read


def _genres(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Pieces of ten sentences; the genre stands before the file's own text."""
    genre, piece = "", []
    for block in blocks(directory / "brown" / "brown.conll.xz"):
        if block[0].startswith("# file"):
            genre, piece, block = block[0].split()[-1], [], block[1:]
        piece.append(" ".join(line.split("\t")[0] for line in block))
        if len(piece) == 10:
            yield " ".join(piece), [genre]
            piece = []


def _topics(directory: Path) -> Iterator[tuple[str, list[str]]]:
    for _, topics, body in stories(directory):
        yield body, topics


_TEXTS: dict[str, Callable[[Path], Iterable[tuple[str, list[str]]]]] = {
    "20news": _news,
    "yso_fi titles": _titles,
    "gnd German": _records("de"),
    "gnd English": _records("en"),
    "brown genres": _genres,
    "reuters topics": _topics,
}


# --- sequences ------------------------------------------------------------------------------------


def chain_rows(name: str, bench: Bench) -> Task:
    """Tokens one below the other, the first 60,000 of each part."""
    split = (
        _TAGS[name](bench.data) if name in _TAGS else _problem(name.replace(" fold ", "/"), bench)
    )
    train, test = split.train.head(_MOST_TOKENS), split.test.head(_MOST_TOKENS)
    more = {"lengths": train.lengths}
    return Task(train.X, train.y, test.X, test.y, more, (split.n_labels, test.lengths))


def _problem(name: str, bench: Bench) -> Split:
    return next(problem for problem in PROBLEMS if problem.name == name).open(bench.data)


def _parts_of_speech(directory: Path) -> Split:
    files = (directory / "conll2000" / f"{part}.txt.xz" for part in ("train", "test"))
    return encoded(*([[line.split()[:2] for line in b] for b in blocks(file)] for file in files))


def _universal_tags(directory: Path) -> Split:
    folder = directory / "ud_english_ewt"
    files = (folder / f"en_ewt-ud-{part}.conllu.xz" for part in ("train", "test"))
    return encoded(*([list(_words(block)) for block in blocks(file)] for file in files))


def _words(block: list[str]) -> Iterator[list[str]]:
    for line in block:
        row = line.split("\t")
        if row[0].isdigit():
            yield [row[1], row[3]]


_TAGS: dict[str, Callable[[Path], Split]] = {
    "conll2000 parts of speech": _parts_of_speech,
    "ewt universal tags": _universal_tags,
}


class Crfsuite:
    """python-crfsuite as it comes: L-BFGS until it has converged."""

    def __init__(self, task: Task) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def fit(self, X: sp.csr_matrix, y: np.ndarray, lengths: np.ndarray) -> Crfsuite:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False)
        begin = 0
        for items, length in zip(self._items(X, lengths), lengths, strict=True):
            trainer.append(items, [str(tag) for tag in y[begin : begin + length]])
            begin += length
        trainer.train(self._path)
        return self

    def predict(self, X: sp.csr_matrix, lengths: np.ndarray) -> np.ndarray:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(self._path)
        return np.array([int(tag) for part in self._items(X, lengths) for tag in tagger.tag(part)])

    @property
    def _path(self) -> str:
        return str(Path(self._folder.name) / "crf.model")

    @staticmethod
    def _items(X: sp.csr_matrix, lengths: np.ndarray) -> Iterator[Any]:
        import pycrfsuite

        begin = 0
        for length in lengths:
            part = [
                {str(j): float(v) for j, v in zip(row.indices, row.data, strict=True)}
                for row in (X[i] for i in range(begin, begin + length))
            ]
            yield pycrfsuite.ItemSequence(part)
            begin += length


# --- taxonomies -----------------------------------------------------------------------------------


def tree_rows(name: str, bench: Bench) -> Task:
    """Labels with their ancestors, as indicators."""
    rows = TAXONOMIES[name](bench.data)
    return _tree_task(rows, rows.Y, rows.Y_test)


def path_rows(name: str, bench: Bench) -> Task:
    """The label at the end of each row's one path, by name."""
    rows = load_rows(bench.data, name, is_single=True)
    names = rows.taxonomy.names
    return _tree_task(rows, names[rows.ends[0]], rows.Y_test)


def _tree_task(rows: Rows, y: Any, truth: Any) -> Task:
    n = _MOST_ROWS
    return Task(rows.X[:n], y[:n], rows.X_test[:n], truth[:n], about=rows.taxonomy)


class FlatPath:
    """One-versus-rest over the ends of paths."""

    def __init__(self, task: Task) -> None:
        self._model = LinearSVC()

    def fit(self, X: Any, y: np.ndarray) -> FlatPath:
        self._names, codes = np.unique(y, return_inverse=True)
        self._model.fit(X, codes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._names[self._model.predict(X)]


class FlatLabels:
    """One-versus-rest over all labels, which knows of no taxonomy."""

    def __init__(self, task: Task) -> None:
        self._model = OneVsRestClassifier(LinearSVC())

    def fit(self, X: Any, y: Any) -> FlatLabels:
        self._seen = np.flatnonzero(np.diff(sp.csc_matrix(y).indptr))
        self._n = y.shape[1]
        self._model.fit(X, sp.csr_matrix(y, dtype=int)[:, self._seen])
        return self

    def predict(self, X: Any) -> sp.csr_matrix:
        found = sp.coo_matrix(self._model.predict(X))
        at = (found.row, self._seen[found.col])
        return sp.csr_matrix((found.data.astype(bool), at), shape=(X.shape[0], self._n))
