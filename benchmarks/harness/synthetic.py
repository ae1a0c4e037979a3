"""Text-like multilabel data of any size, with planted sparse prototypes.

Label frequencies and background words follow power laws. Labels sit in groups that share
vocabulary, so that some are easily confused. A document mixes words of its labels' prototypes,
words of their groups and background words; features are tf-idf, rows have unit length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from harness.problem import Split

__all__ = ["Documents", "make_documents", "unit_rows"]


@dataclass(frozen=True)
class Documents:
    """Size and statistics of the data to make."""

    n_train: int = 20_000
    n_test: int = 4_000
    n_features: int = 50_000
    n_labels: int = 5_000
    n_groups: int = 200
    own_words: int = 20
    group_words: int = 40
    labels_per_document: float = 2.0
    words_per_document: float = 90.0
    signal: float = 0.22
    own_share: float = 0.5
    label_power: float = 0.9
    word_power: float = 1.05
    same_group: float = 0.7


def make_documents(size: Documents, seed: int) -> Split:
    """Draw documents; the same size and seed give the same data."""
    counts, labels = _Source(size, np.random.default_rng(seed)).draw()
    features = _tf_idf(counts, size.n_train)
    train, test = slice(None, size.n_train), slice(size.n_train, None)
    return Split(
        train={"X": features[train], "Y": labels[train]},
        test={"X": features[test]},
        truth={"Y": labels[test]},
    )


class _Source:
    """The planted distributions, and the draws from them, in one fixed order."""

    def __init__(self, size: Documents, rng: np.random.Generator):
        self.size, self.rng = size, rng
        self.word_odds = _shuffled_power_law(size.n_features, size.word_power, rng)
        # Prototypes take rarer words than the background does, yet not the very rarest alone.
        odds = np.sqrt(self.word_odds)
        odds /= odds.sum()
        self.group_of = rng.integers(size.n_groups, size=size.n_labels)
        self.group_words = rng.choice(size.n_features, (size.n_groups, size.group_words), p=odds)
        self.own_words = rng.choice(size.n_features, (size.n_labels, size.own_words), p=odds)
        self.label_odds = _shuffled_power_law(size.n_labels, size.label_power, rng)
        self.members = [np.flatnonzero(self.group_of == g) for g in range(size.n_groups)]

    def draw(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Word counts and label indicators of all documents."""
        size, rng = self.size, self.rng
        n = size.n_train + size.n_test
        first = rng.choice(size.n_labels, size=n, p=self.label_odds)
        n_more = rng.poisson(size.labels_per_document - 1.0, size=n)
        n_words = np.maximum(10, rng.poisson(size.words_per_document, size=n))
        words, labels = [], []
        for document in range(n):
            labels.append(self._labels(first[document], n_more[document]))
            words.append(self._words(labels[-1], n_words[document]))
        return _counted(words, size.n_features), _counted(labels, size.n_labels)

    def _labels(self, first: int, n_more: int) -> np.ndarray:
        rng, chosen = self.rng, [first]
        if n_more:
            group = self.members[self.group_of[first]]
            odds = self.label_odds[group] / self.label_odds[group].sum()
            for _ in range(n_more):
                if rng.random() < self.size.same_group:
                    chosen.append(rng.choice(group, p=odds))
                else:
                    chosen.append(rng.choice(self.size.n_labels, p=self.label_odds))
        return np.unique(chosen)

    def _words(self, labels: np.ndarray, n_words: int) -> np.ndarray:
        size, rng = self.size, self.rng
        n_signal = rng.binomial(n_words, size.signal)
        label = labels[rng.integers(len(labels), size=n_signal)]
        is_own = rng.random(n_signal) < size.own_share
        own = self.own_words[label, rng.integers(size.own_words, size=n_signal)]
        position = rng.integers(size.group_words, size=n_signal)
        shared = self.group_words[self.group_of[label], position]
        rest = rng.choice(size.n_features, size=n_words - n_signal, p=self.word_odds)
        return np.concatenate([np.where(is_own, own, shared), rest])


def _shuffled_power_law(n: int, power: float, rng: np.random.Generator) -> np.ndarray:
    odds = 1.0 / np.arange(1, n + 1) ** power
    odds = odds[rng.permutation(n)]
    return odds / odds.sum()


def _counted(rows: list[np.ndarray], n_columns: int) -> sp.csr_matrix:
    lengths = [len(row) for row in rows]
    columns = np.concatenate(rows)
    row_of = np.repeat(np.arange(len(rows)), lengths)
    ones = np.ones(len(columns), np.float32)
    return sp.csr_matrix((ones, (row_of, columns)), shape=(len(rows), n_columns))


def _tf_idf(counts: sp.csr_matrix, n_train: int) -> sp.csr_matrix:
    """(1 + log count) * (1 + log((1 + N) / (1 + df))), df from training rows, unit rows."""
    frequency = np.bincount(counts[:n_train].indices, minlength=counts.shape[1])
    idf = (np.log((1 + n_train) / (1 + frequency)) + 1).astype(np.float32)
    features = counts.copy()
    features.data = (1 + np.log(features.data)) * idf[features.indices]
    return unit_rows(features)


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    """Rows scaled to unit length, in float32; empty rows stay empty."""
    X = sp.csr_matrix(X)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    length[length == 0] = 1
    scaled = sp.csr_matrix(sp.diags(1 / length) @ X, dtype=np.float32)
    scaled.sort_indices()
    return scaled
