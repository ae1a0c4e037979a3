"""Sequences with tags for benchmarks/structured.py: readers, features, splits.

All entrants get one matrix with a row for each token: binary features of words made by one
function, or the features that come with the data. Column 0 is 1 everywhere, so that biases are
weights like others and everybody has the same model.
"""

from __future__ import annotations

import functools
import heapq
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "N_FOLDS",
    "PROBLEMS",
    "ChainProblem",
    "Chains",
    "Split",
    "blocks",
    "encoded",
    "features",
    "primal",
    "split_tags",
]

#: A sentence: for each token its columns, the tag last.
Sentence = list[list[str]]


@dataclass(frozen=True, eq=False)
class Chains:
    """Tokens one below the other; tags that training lacks are -1 and count as mistakes."""

    X: sp.csr_matrix
    y: np.ndarray
    lengths: np.ndarray

    @property
    def n_tokens(self) -> int:
        return len(self.y)

    def take(self, sequences: Any) -> Chains:
        """These sequences, in this order."""
        chosen = np.arange(len(self.lengths))[sequences]
        ends = np.cumsum(self.lengths)
        rows = [np.arange(ends[i] - self.lengths[i], ends[i]) for i in chosen]
        tokens = np.concatenate([*rows, np.zeros(0, int)]).astype(np.int64)
        return Chains(self.X[tokens], self.y[tokens], self.lengths[chosen])

    def head(self, n_tokens: int | None) -> Chains:
        """The first sequences, with at most this many tokens (and one sequence at least)."""
        if n_tokens is None or n_tokens >= self.n_tokens:
            return self
        n = int(np.searchsorted(np.cumsum(self.lengths), n_tokens, side="right"))
        return self.take(slice(max(n, 1)))


@dataclass(frozen=True, eq=False)
class Split:
    """What is learnt, and what is asked."""

    train: Chains
    test: Chains
    n_labels: int

    def inner(self, every: int = 5) -> Split:
        """Training sequences alone: every fifth is asked. For choosing parameters."""
        is_asked = np.arange(len(self.train.lengths)) % every == every - 1
        train, test = self.train.take(~is_asked), self.train.take(is_asked)
        classes, codes = np.unique(train.y, return_inverse=True)
        known = np.full(self.n_labels, -1)
        known[classes] = np.arange(len(classes))
        return Split(
            Chains(train.X, codes, train.lengths),
            Chains(test.X, known[test.y], test.lengths),
            len(classes),
        )

    def first(self, n_sequences: int) -> Split:
        """The first training sequences, tags numbered anew."""
        return self.part(slice(n_sequences))

    def with_all_tags(self) -> Split:
        """Few training sequences with every tag: again and again the one with most new tags."""
        begin, tags = 0, []
        for length in self.train.lengths:
            tags.append(frozenset(self.train.y[begin : begin + length].tolist()))
            begin += length
        # What a sequence would bring can only become less: most of the queue stays as it is.
        queue = [(-len(found), i) for i, found in enumerate(tags)]
        heapq.heapify(queue)
        seen: set[int] = set()
        taken = []
        while queue:
            gain, i = heapq.heappop(queue)
            left = -len(tags[i] - seen)
            if left == gain and gain:
                taken.append(i)
                seen |= tags[i]
            elif left:
                heapq.heappush(queue, (left, i))
        return self.part(sorted(taken))

    def part(self, sequences: Any) -> Split:
        """These training sequences alone, tags numbered anew."""
        train = self.train.take(sequences)
        classes, codes = np.unique(train.y, return_inverse=True)
        known = np.full(self.n_labels + 1, -1)  # the last place is for -1
        known[classes] = np.arange(len(classes))
        test = Chains(self.test.X, known[self.test.y], self.test.lengths)
        return Split(Chains(train.X, codes, train.lengths), test, len(classes))


@dataclass(frozen=True)
class ChainProblem:
    """A data set: how it is split, and the function from its folder to the split."""

    name: str
    note: str
    load: Callable[[Path], Split]

    def open(self, directory: Path) -> Split:
        folder = directory / self.name.partition("/")[0]
        if not folder.is_dir():
            raise FileNotFoundError(
                f"no data at {folder}; name its parent by --data or SUBLEARN_DATA"
            )
        return self.load(folder)


# --- features of words ----------------------------------------------------------------------------


def features(sentence: Sentence) -> Iterator[list[str]]:
    """Names of each token's features; the last column, the tag, is not looked at."""
    n_columns = len(sentence[0]) - 1
    edge = ["<s>"] * n_columns
    around = [edge, edge, *sentence, edge, edge]
    for t, (word, *_) in enumerate(sentence):
        found = ["bias", *_of_word(word)]
        for offset in (-2, -1, 1, 2):
            found.append(f"{offset}|{around[t + 2 + offset][0].lower()}")
        for column in range(1, n_columns):
            found += [f"{column}|{o}|{around[t + 2 + o][column]}" for o in (-2, -1, 0, 1, 2)]
        yield found


@functools.lru_cache(maxsize=200_000)
def _of_word(word: str) -> tuple[str, ...]:
    low = word.lower()
    sizes = range(1, min(len(low), 4) + 1)
    begins, ends = (f"p|{low[:n]}" for n in sizes), (f"s|{low[-n:]}" for n in sizes)
    return (f"w|{word}", f"l|{low}", f"shape|{shape(word)}", *begins, *ends)


def shape(word: str) -> str:
    """Letters as X or x, digits as d, runs cut to two."""
    out = ""
    for letter in word:
        kind = "d" if letter.isdigit() else letter
        if letter.isalpha():
            kind = "X" if letter.isupper() else "x"
        if out[-2:] != 2 * kind:
            out += kind
    return out


def encoded(train: Iterable[Sentence], test: Iterable[Sentence]) -> Split:
    """Both parts with the features and tags of the first."""
    names: dict[str, int] = {}
    tags: dict[str, int] = {}
    parts = [_rows(part, names, tags, grow) for part, grow in ((train, True), (test, False))]
    (X, y, lengths), (X_test, y_test, n_test) = parts
    X.resize(X.shape[0], len(names))
    return Split(Chains(X, y, lengths), Chains(X_test, y_test, n_test), len(tags))


def _rows(
    sentences: Iterable[Sentence], names: dict[str, int], tags: dict[str, int], grow: bool
) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    indptr, indices, y, lengths = [0], [], [], []
    for sentence in sentences:
        lengths.append(len(sentence))
        for found, columns in zip(features(sentence), sentence, strict=True):
            if grow:
                indices += [names.setdefault(name, len(names)) for name in found]
                y.append(tags.setdefault(columns[-1], len(tags)))
            else:
                indices += [names[name] for name in found if name in names]
                y.append(tags.get(columns[-1], -1))
            indptr.append(len(indices))
    X = sp.csr_matrix(
        (np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(indptr)),
        shape=(len(y), len(names)),
    )
    X.sum_duplicates()
    return X, np.array(y), np.array(lengths)


# --- readers --------------------------------------------------------------------------------------


def blocks(path: Path) -> Iterator[list[str]]:
    """Lines between blank lines."""
    block: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in map(str.rstrip, lines):
            if line:
                block.append(line)
            elif block:
                yield block
                block = []
    if block:
        yield block


def brown(folder: Path) -> Split:
    parts: tuple[list[Sentence], list[Sentence]] = ([], [])
    n_file = -1
    for block in blocks(folder / "brown.conll.xz"):
        if block[0].startswith("# file"):
            n_file += 1
            block = block[1:]
        if block:
            parts[n_file % 5 == 4].append([line.split("\t") for line in block])
    return encoded(*parts)


def conll2000(folder: Path) -> Split:
    read = (
        [[line.split() for line in block] for block in blocks(folder / f"{part}.txt.xz")]
        for part in ("train", "test")
    )
    return encoded(*read)


def universal(train: str, test: str) -> Callable[[Path], Split]:
    """Word and XPOS of CoNLL-U files, words as the tree has them."""

    def sentences(path: Path) -> Iterator[Sentence]:
        for block in blocks(path):
            rows = [line.split("\t") for line in block if not line.startswith("#")]
            yield [[row[1], row[4]] for row in rows if row[0].isdigit()]

    return lambda folder: encoded(sentences(folder / train), sentences(folder / test))


def given(file: str) -> Callable[[Path], Split]:
    """Lines `tag j:v j:v`; the first 80 % of the sequences are learnt."""

    def load(folder: Path) -> Split:
        sequences = [[line.split() for line in block] for block in blocks(folder / file)]
        tokens = [token for block in sequences for token in block]
        pairs = [[part.split(":") for part in token[1:]] for token in tokens]
        indptr = np.concatenate([[0], np.cumsum([len(p) for p in pairs])])
        columns = np.array([int(j) for p in pairs for j, _ in p])
        values = np.array([float(v) for p in pairs for _, v in p], np.float32)
        X = sp.csr_matrix((values, columns, indptr))
        lengths = np.array([len(block) for block in sequences])
        cut = len(sequences) * 4 // 5
        return _cut(X, np.array([token[0] for token in tokens]), lengths, np.arange(cut))

    return load


def letters(fold: int) -> Callable[[Path], Split]:
    """Pixels of handwritten words; one fold is asked, the others are learnt."""

    def load(folder: Path) -> Split:
        with lzma.open(folder / "letter.data.xz", "rt") as lines:
            rows = [line.split("\t") for line in lines]
        ends = np.flatnonzero([row[2] == "-1" for row in rows])
        lengths = np.diff(np.concatenate([[-1], ends]))
        pixels = np.array([row[6:134] for row in rows], np.float32)
        folds = np.array([int(rows[end][5]) for end in ends])
        y = np.array([row[1] for row in rows])
        return _cut(sp.csr_matrix(pixels), y, lengths, np.flatnonzero(folds != fold))

    return load


def _cut(X: sp.csr_matrix, tags: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> Split:
    """A bias in front, and the sequences that are not learnt asked."""
    X = sp.hstack([np.ones((X.shape[0], 1), np.float32), X], format="csr", dtype=np.float32)
    classes, y = np.unique(tags, return_inverse=True)
    every = Chains(X, y, lengths)
    asked = np.setdiff1d(np.arange(len(lengths)), learnt)
    split = Split(every.take(learnt), every.take(asked), len(classes))
    return split.first(len(learnt))


def with_all_tags(load: Callable[[Path], Split]) -> Callable[[Path], Split]:
    """The smaller problem on which dense solvers can be followed to their end."""
    return lambda folder: load(folder).with_all_tags()


_ittb = universal("la_ittb-ud-dev.conllu.xz", "la_ittb-ud-test.conllu.xz")
_FEW = "few of its sequences learnt, in which all tags occur"
N_FOLDS = 10

PROBLEMS: Sequence[ChainProblem] = [
    ChainProblem("brown", "every fifth file asked", brown),
    ChainProblem("conll2000", "chunks, with the parts of speech given", conll2000),
    ChainProblem(
        "ud_english_ewt", "XPOS", universal("en_ewt-ud-train.conllu.xz", "en_ewt-ud-test.conllu.xz")
    ),
    ChainProblem("ud_latin_ittb", "XPOS; the development part is learnt", _ittb),
    ChainProblem("brown/all_tags", _FEW, with_all_tags(brown)),
    ChainProblem("ud_latin_ittb/all_tags", _FEW, with_all_tags(_ittb)),
    *(
        ChainProblem(f"ocr_letters/{fold}", f"fold {fold} asked", letters(fold))
        for fold in range(N_FOLDS)
    ),
    ChainProblem("wsj_pos_crf", "last fifth asked, words alone", given("wsj.pos.crf.test.xz")),
    ChainProblem("chinese_ocr", "last fifth asked", given("data.fea.test.xz")),
]


# --- growth ---------------------------------------------------------------------------------------


def split_tags(chains: Chains, n_parts: int, seed: int | None = None) -> Chains:
    """Each tag cut into parts: by the token's features, or at random with a seed.

    Parts of parts: with n_parts doubled, each part of before is cut in two. Numbers are those of
    the parts that occur.
    """
    if seed is None:
        # A fixed pseudo-random number of each feature; their sum tells tokens apart.
        numbers = np.random.default_rng(0).integers(1 << 20, size=chains.X.shape[1])
        part = (abs(chains.X).sign() @ numbers).astype(np.int64)
    else:
        part = np.random.default_rng(seed).integers(1 << 20, size=chains.n_tokens)
    _, codes = np.unique(chains.y * n_parts + part % n_parts, return_inverse=True)
    return Chains(chains.X, codes, chains.lengths)


def primal(train: Chains, W: Any, T: np.ndarray, C: float) -> float:
    """The objective of given weights, by the library's exact decoding with mistakes counted."""
    from sublearn import _core

    X, W = train.X.astype(np.float64), W.tocsr().astype(np.float64)
    truth = np.ascontiguousarray(train.y, dtype=np.int32)
    arrays = (X.indptr.astype(np.int32), X.indices.astype(np.int32), X.data)
    weights = (W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data)
    lengths = train.lengths.astype(np.int64)
    _, scores = _core.viterbi(
        arrays, weights, np.ascontiguousarray(T), lengths, truth, 1, _core.Monitor()
    )
    n, ends = len(truth), np.cumsum(lengths)
    Y = (X.T @ _one_hot(truth, W.shape[1])).multiply(W).sum()
    inside = np.setdiff1d(np.arange(n - 1), ends[:-1] - 1)
    of_truth = float(Y) + float(T[truth[inside], truth[inside + 1]].sum())
    norm = float(W.data @ W.data) + float(np.vdot(T, T))
    return 0.5 * norm + C * (float(scores.sum()) - of_truth)


def _one_hot(labels: np.ndarray, n_labels: int) -> Any:
    n = len(labels)
    return sp.csr_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n, n_labels))
