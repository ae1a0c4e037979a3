"""Where the labels come from that a second stage ranks again: taggers, neighbours and titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.extreme.linear_labels import LinearLabels
from sublearn.io.fields import Fields, Floats, Parts, Sparse, Strings, check_fields, take_parts
from sublearn.metrics.ranking import top_k
from sublearn.typing import State

__all__ = ["Candidates", "Listed", "Neighbours", "Titles"]

#: Characters of a sequence. On 3,000 held-out library records in German and English the nearest
#: titles had an nDCG@20 of .441 by sequences of 4, .447 by 5, and .361 by words.
_TITLE_SIZE = 5
_LISTS = "lists."  # heads the stored names of inverted lists


@dataclass(frozen=True, eq=False)
class Listed:
    """Labels that a source lists for each text, -1 where there are no more, and their scores."""

    labels: np.ndarray  # (n_texts, k)
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class Candidates:
    """The labels of each text that are ranked again, in increasing order: pairs (text, label).

    Those of text `i` are ``labels[starts[i]:starts[i + 1]]``.
    """

    starts: np.ndarray
    labels: np.ndarray
    n_labels: int

    @classmethod
    def union(cls, lists: Sequence[Listed], n_labels: int) -> Candidates:
        """Every label that a source lists, once."""
        n_texts = len(lists[0].labels)
        keys = np.unique(np.concatenate([_keys(one, n_labels) for one in lists]))
        starts = np.searchsorted(keys, np.arange(n_texts + 1) * n_labels)
        return cls(starts, keys % n_labels, n_labels)

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self.starts) - 1

    @cached_property
    def texts(self) -> np.ndarray:
        """The text of each pair."""
        return np.repeat(np.arange(self.n_texts), np.diff(self.starts))

    def values_in(self, matrix: sp.csr_matrix) -> np.ndarray:
        """The entry of each pair in a matrix of shape (n_texts, n_labels)."""
        return np.asarray(matrix[self.texts, self.labels], dtype=np.float64).ravel()

    def scores_by(self, one: Listed) -> np.ndarray:
        """A source's score of each pair; the text's least score where it is not listed."""
        is_listed = one.labels >= 0
        least = np.where(is_listed, one.scores, np.inf).min(axis=1, initial=np.inf)
        least[~is_listed.any(axis=1)] = 0.0
        scores = least[self.texts].astype(np.float64)
        own = self.texts * self.n_labels + self.labels
        scores[np.searchsorted(own, _keys(one, self.n_labels))] = one.scores[is_listed]
        return scores

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """The place of each pair among those of its text, from 0; ties in the order of labels."""
        order = np.lexsort((-scores, self.texts))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - self.starts[self.texts]
        return places

    def behind_best(self, scores: np.ndarray) -> np.ndarray:
        """How far each pair's score is below the best one of its text."""
        best = np.full(self.n_texts, -np.inf)
        np.maximum.at(best, self.texts, scores)
        return best[self.texts] - scores


def _keys(one: Listed, n_labels: int) -> np.ndarray:
    """The listed pairs as single numbers."""
    texts, places = np.nonzero(one.labels >= 0)
    return texts * n_labels + one.labels[texts, places]


class Neighbours:
    """Training texts near to a text, and the labels that they carry.

    A label's score is the sum of the squared cosines of those of the nearest texts that carry it:
    a sharp vote, since on library records the fourth power and the first did worse.

    Parameters
    ----------
    lists : LinearLabels
        A "label" for each training text, its words as weights: the library's own search finds the
        nearest ones by inverted lists.
    labels : csr_matrix of shape (n_training_texts, n_labels)
        What the training texts carry.
    """

    FIELDS: ClassVar[Fields] = {
        "labels": Sparse("texts", "classes", finite=True),
        f"{_LISTS}*": Parts(),
    }

    def __init__(self, lists: LinearLabels, labels: sp.csr_matrix):
        self.lists, self.labels = lists, labels

    @classmethod
    def of(cls, X: sp.csr_matrix, labels: sp.csr_matrix) -> Neighbours:
        """Rows of training texts, of length one, and their labels."""
        by_word = sp.csr_matrix(X.T.tocsr())
        bias = np.zeros(X.shape[0], dtype=by_word.dtype)
        return cls(LinearLabels(by_word, bias), labels.astype(np.float32))

    def listed(self, X: sp.csr_matrix, n: int, k: int, n_threads: int) -> Listed:
        """The `k` labels with the most votes of the `n` nearest texts."""
        near, cosines = self.lists.top_k(X, min(n, self.lists.n_labels), n_threads)
        votes = np.square(np.maximum(cosines, 0))
        starts = np.arange(len(near) + 1) * near.shape[1]
        shape = (len(near), self.labels.shape[0])
        found = sp.csr_matrix((votes.ravel(), near.ravel(), starts), shape=shape) @ self.labels
        found = sp.csr_matrix(found)
        found.eliminate_zeros()
        found.sort_indices()
        return _best_of(found, k)

    def to_state(self) -> State:
        """What `from_state` takes."""
        lists = {f"{_LISTS}{name}": value for name, value in self.lists.to_state().items()}
        return {"labels": self.labels, **lists}

    @classmethod
    def from_state(cls, state: State, n_labels: int) -> Neighbours:
        """Inverse of `to_state`; what does not fit is a ValueError."""
        sizes = check_fields(state, cls.FIELDS, {"classes": n_labels})
        parts = take_parts(state, _LISTS)
        check_fields(parts, LinearLabels.FIELDS, {"scores": sizes["texts"]})
        return cls(LinearLabels.from_state(parts), state["labels"])


class Titles:
    """What labels are called, as sequences of characters within words.

    Inflected and compound words share sequences, and a label that no training text carries has a
    title as well. A title and a text are vectors of length one, with the weights of tf-idf.

    Parameters
    ----------
    sequences : ndarray of str
        All that occur in a title.
    idf : ndarray of float
        How rare each one is, in titles and texts.
    by_label : csr_matrix of shape (n_labels, n_sequences)
        The titles.
    """

    FIELDS: ClassVar[Fields] = {
        "sequences": Strings("sequences", distinct=True),
        "idf": Floats("sequences", finite=True),
        "by_label": Sparse("classes", "sequences", finite=True),
    }

    def __init__(self, sequences: np.ndarray, idf: np.ndarray, by_label: sp.csr_matrix):
        self.sequences, self.idf, self.by_label = sequences, idf, by_label
        own = {name: column for column, name in enumerate(sequences.tolist())}
        self._vectorizer = _vectorizer(own)
        self._vectorizer.vocabulary_, self._vectorizer.fixed_vocabulary_ = own, True
        self._vectorizer.idf_ = idf
        bias = np.zeros(by_label.shape[0], dtype=by_label.dtype)
        self._lists = LinearLabels(sp.csr_matrix(by_label.T.tocsr()), bias)

    def __reduce__(self) -> tuple[type[Titles], tuple[object, ...]]:
        return Titles, tuple(self.to_state().values())

    @classmethod
    def of(cls, titles: list[str], texts: list[str]) -> Titles:
        """Titles of all labels; the texts say what is rare."""
        terms = _vectorizer(None).build_analyzer()
        known = sorted({term for title in titles for term in terms(title)})
        if not known:
            raise ValueError("label_names must have a name with characters, got none")
        vectorizer = _vectorizer({name: column for column, name in enumerate(known)})
        vectorizer.fit([*titles, *texts])
        by_label = sp.csr_matrix(vectorizer.transform(titles), dtype=np.float32)
        return cls(np.array(known, dtype=object), vectorizer.idf_.astype(np.float32), by_label)

    def rows(self, texts: list[str]) -> sp.csr_matrix:
        """Vectors of texts."""
        found = sp.csr_matrix(self._vectorizer.transform(texts), dtype=np.float32)
        found.sort_indices()
        return found

    def listed(self, rows: sp.csr_matrix, k: int, n_threads: int) -> Listed:
        """The labels of the `k` nearest titles, those that share something with the text."""
        labels, scores = self._lists.top_k(rows, min(k, self.by_label.shape[0]), n_threads)
        return Listed(np.where(scores > 0, labels, -1), scores)

    def overlaps(
        self, rows: sp.csr_matrix, candidates: Candidates
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each pair: the cosine of text and title, and the share of the title that is there.

        The share is of the title's squared length: 1 for a title that is all in the text.
        """
        starts = self.by_label.indptr[candidates.labels].astype(np.int64)
        lengths = self.by_label.indptr[candidates.labels + 1] - starts
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
        weights = self.by_label.data[places].astype(np.float64)
        of_text = np.repeat(candidates.texts, lengths)
        found = np.asarray(rows[of_text, self.by_label.indices[places]]).ravel()
        pair = np.repeat(np.arange(len(lengths)), lengths)
        cosines = np.bincount(pair, weights * found, minlength=len(lengths))
        shares = np.bincount(pair, weights * weights * (found > 0), minlength=len(lengths))
        return cosines, shares

    def to_state(self) -> State:
        """What `from_state` takes."""
        return {name: getattr(self, name) for name in self.FIELDS}

    @classmethod
    def from_state(cls, state: State, n_labels: int) -> Titles:
        """Inverse of `to_state`; what does not fit is a ValueError."""
        check_fields(state, cls.FIELDS, {"classes": n_labels})
        return cls(**state)


def _vectorizer(vocabulary: dict[str, int] | None) -> TfidfVectorizer:
    sizes = (_TITLE_SIZE, _TITLE_SIZE)
    return TfidfVectorizer(
        analyzer="char_wb", ngram_range=sizes, sublinear_tf=True, dtype=np.float32,
        vocabulary=vocabulary,
    )  # fmt: skip


def _best_of(scores: sp.csr_matrix, k: int) -> Listed:
    """The `k` largest stored scores of each row."""
    labels = top_k(scores, k)
    texts = np.repeat(np.arange(len(labels)), labels.shape[1])
    values = np.asarray(scores[texts, np.maximum(labels, 0).ravel()]).reshape(labels.shape)
    return Listed(labels, values)
