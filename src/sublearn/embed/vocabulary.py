"""Words and how often pairs of them stand near each other, growing with the text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.io.state import unpack_strings
from sublearn.validation.sparse import check_compressed

__all__ = ["Pairs", "Vocabulary", "count_pairs"]


@dataclass(frozen=True)
class Vocabulary:
    """Words, the most frequent first, behind those of an older vocabulary."""

    words: np.ndarray
    counts: np.ndarray  # int64

    @staticmethod
    def empty() -> Vocabulary:
        """No words."""
        return Vocabulary(np.empty(0, dtype=object), np.empty(0, dtype=np.int64))

    def grown(self, corpus: _core.Corpus, min_count: int, max_words: int | None) -> Vocabulary:
        """With the words of a corpus: known ones always, new ones seen `min_count` times."""
        utf8, bounds, counts = corpus.words()
        words = unpack_strings(utf8, bounds)
        place = {word: i for i, word in enumerate(self.words)}
        own = self.counts.copy()
        new: list[tuple[int, str]] = []
        for word, count in zip(words.tolist(), counts.tolist(), strict=True):
            if word in place:
                own[place[word]] += count
            elif count >= min_count:
                new.append((-count, word))
        new.sort()
        if max_words is not None:
            new = new[: max(0, max_words - len(own))]
        added = np.array([word for _, word in new], dtype=object)
        return Vocabulary(
            np.concatenate([self.words, added]),
            np.concatenate([own, np.array([-count for count, _ in new], dtype=np.int64)]),
        )

    def rows_of(self, corpus: _core.Corpus) -> np.ndarray:
        """Row of each word of a corpus, -1 for unknown ones; int32."""
        utf8, bounds, _ = corpus.words()
        place = {word: i for i, word in enumerate(self.words)}
        words = unpack_strings(utf8, bounds).tolist()
        return np.array([place.get(word, -1) for word in words], dtype=np.int32)


@dataclass(frozen=True)
class Pairs:
    """Counts of pairs in sparse rows, symmetric."""

    begin: np.ndarray  # int64
    ids: np.ndarray  # int32
    counts: np.ndarray  # float32
    totals: np.ndarray = field(init=False)  # float64, of each row

    def __post_init__(self) -> None:
        sums = np.concatenate([[0.0], np.cumsum(self.counts, dtype=np.float64)])
        object.__setattr__(self, "totals", sums[self.begin[1:]] - sums[self.begin[:-1]])

    @property
    def n_words(self) -> int:
        """Rows."""
        return len(self.begin) - 1

    def plus(self, other: Pairs) -> Pairs:
        """The sum with counts of a vocabulary that has grown."""
        shape = (other.n_words, other.n_words)
        begin = np.pad(self.begin, (0, other.n_words - self.n_words), mode="edge")
        old = sp.csr_array((self.counts, self.ids, begin), shape=shape)
        old = check_compressed(old, "pairs")  # may come from a file
        total = sp.csr_array(
            old + sp.csr_array((other.counts, other.ids, other.begin), shape=shape)
        )
        total.sort_indices()
        return Pairs(total.indptr.astype(np.int64), total.indices.astype(np.int32), total.data)

    def row(self, word: int) -> tuple[np.ndarray, np.ndarray]:
        """Contexts of a word, and their counts in float64."""
        part = slice(self.begin[word], self.begin[word + 1])
        return self.ids[part], self.counts[part].astype(np.float64)

    def squares(self) -> np.ndarray:
        """Sum of the squared counts of each row."""
        sums = np.concatenate([[0.0], np.cumsum(np.square(self.counts, dtype=np.float64))])
        return sums[self.begin[1:]] - sums[self.begin[:-1]]

    def entropy(self) -> float:
        r"""Mean entropy of :math:`q_{y|x}` in nats: no model has a lower objective."""
        shares = self.counts / np.repeat(self.totals, np.diff(self.begin))
        return float(-(self.counts * np.log(shares)).sum(dtype=np.float64) / self.totals.sum())


def count_pairs(
    owner: str,
    corpus: _core.Corpus,
    vocabulary: Vocabulary,
    window: int,
    subsample: float | None,
    seed: int,
    n_threads: int,
    monitor: _core.Monitor,
) -> Pairs:
    """Counts of the pairs of a corpus, frequent words dropped at random first."""
    frequency = vocabulary.counts / vocabulary.counts.sum()
    keep = np.ones(len(frequency), dtype=np.float32)
    if subsample is not None:
        keep = np.minimum(1.0, np.sqrt(subsample / frequency)).astype(np.float32)
    begin, ids, counts = corpus.count_pairs(
        vocabulary.rows_of(corpus), keep, window, seed, n_threads, monitor
    )
    if len(ids) == 0:
        raise ParameterError(
            f"{owner}: X must have two words of the vocabulary in one sentence, got none"
        )
    return Pairs(begin, ids, counts)
