"""Text-like multilabel data of any size, with planted sparse prototypes.

Label frequencies and background words follow power laws. Labels sit in groups that share
vocabulary, so that some are easily confused. A document mixes words of its labels' prototypes,
words of their groups and background words; features are tf-idf, rows have unit length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness.problem import Split, truth_of

__all__ = ["Documents", "make_documents", "thinned", "unit_rows"]


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
    #: Deal every label to some training row, whatever its odds; needs a place for each of them.
    every_label: bool = False


def make_documents(size: Documents, seed: int) -> Split:
    """Draw documents; the same size and seed give the same data."""
    counts, labels = _Source(size, np.random.default_rng(seed)).draw()
    features = _tf_idf(counts, size.n_train)
    train, test = slice(None, size.n_train), slice(size.n_train, None)
    return Split(
        train={"X": features[train], "Y": labels[train]},
        test={"X": features[test]},
        truth=truth_of(labels[train], labels[test]),
    )


def thinned(split: Split, axis: str, size: int, seed: int) -> Split:
    """A part of real data, drawn at random: `K` labels, `N` training rows or `nnz` words a row."""
    rng = np.random.default_rng(seed)
    X, X_test = sp.csr_matrix(split.train["X"]), sp.csr_matrix(split.test["X"])
    Y, Y_test = sp.csr_matrix(split.train["Y"]), sp.csr_matrix(split.truth["Y"])
    if axis == "K":
        kept = np.sort(rng.permutation(Y.shape[1])[:size])
        Y, Y_test = Y[:, kept], Y_test[:, kept]
    elif axis == "N":
        kept = np.sort(rng.permutation(X.shape[0])[:size])
        X, Y = X[kept], Y[kept]
    else:
        share = size * X.shape[0] / X.nnz
        X, X_test = (_with_fewer_words(part, share, rng) for part in (X, X_test))
    return Split(train={"X": X, "Y": Y}, test={"X": X_test}, truth=truth_of(Y, Y_test))


def _with_fewer_words(X: sp.csr_matrix, share: float, rng: np.random.Generator) -> sp.csr_matrix:
    kept = X.copy()
    kept.data[rng.random(kept.nnz) >= share] = 0
    kept.eliminate_zeros()
    return unit_rows(kept)


class _Source:
    """The planted distributions, and the draws from them, in one fixed order."""

    def __init__(self, size: Documents, rng: np.random.Generator):
        self.size, self.rng = size, rng
        self.word_odds = _Odds(_shuffled_power_law(size.n_features, size.word_power, rng))
        # Prototypes take rarer words than the background does, yet not the very rarest alone.
        prototype_odds = np.sqrt(self.word_odds.values)
        words = _Odds(prototype_odds / prototype_odds.sum())
        self.group_of = rng.integers(size.n_groups, size=size.n_labels)
        self.group_words = words.draw(rng, (size.n_groups, size.group_words))
        self.own_words = words.draw(rng, (size.n_labels, size.own_words))
        self.label_odds = _Odds(_shuffled_power_law(size.n_labels, size.label_power, rng))
        by_group = np.argsort(self.group_of, kind="stable")
        self.members = np.split(
            by_group, np.bincount(self.group_of, minlength=size.n_groups)[:-1].cumsum()
        )
        self.odds_in_group: dict[int, _Odds] = {}

    def draw(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Word counts and label indicators of all documents."""
        size, rng = self.size, self.rng
        n = size.n_train + size.n_test
        first = self.label_odds.draw(rng, n)
        n_more = rng.poisson(size.labels_per_document - 1.0, size=n)
        n_words = np.maximum(10, rng.poisson(size.words_per_document, size=n))
        dealt = self._deal(n_more[: size.n_train] + 1) if size.every_label else {}
        words, labels = [], []
        for document in range(n):
            chosen = self._labels(first[document], n_more[document])
            given = dealt.get(document, ())
            chosen[: len(given)] = given
            labels.append(np.unique(chosen))
            words.append(self._words(labels[-1], n_words[document]))
        return _counted(words, size.n_features), _counted(labels, size.n_labels)

    def _deal(self, n_places: np.ndarray) -> dict[int, np.ndarray]:
        """All labels, one to a place drawn at random; by document, which has `n_places` of them."""
        n_labels = self.size.n_labels
        if n_places.sum() < n_labels:
            raise ValueError(
                f"every_label must find a place for each of {n_labels} labels, "
                f"got {n_places.sum()} places"
            )
        place = self.rng.permutation(int(n_places.sum()))[:n_labels]
        owner = np.repeat(np.arange(len(n_places)), n_places)[place]
        label = np.argsort(owner, kind="stable")
        documents, starts = np.unique(owner[label], return_index=True)
        parts = np.split(label, starts[1:])
        return dict(zip(documents.tolist(), parts, strict=True))

    def _labels(self, first: int, n_more: int) -> list[int]:
        rng, chosen = self.rng, [first]
        if n_more:
            group = int(self.group_of[first])
            members, odds = self.members[group], self._odds_within(group)
            for _ in range(n_more):
                if rng.random() < self.size.same_group:
                    chosen.append(members[odds.draw(rng)])
                else:
                    chosen.append(self.label_odds.draw(rng))
        return chosen

    def _odds_within(self, group: int) -> _Odds:
        if group not in self.odds_in_group:
            values = self.label_odds.values[self.members[group]]
            self.odds_in_group[group] = _Odds(values / values.sum())
        return self.odds_in_group[group]

    def _words(self, labels: np.ndarray, n_words: int) -> np.ndarray:
        size, rng = self.size, self.rng
        n_signal = rng.binomial(n_words, size.signal)
        label = labels[rng.integers(len(labels), size=n_signal)]
        is_own = rng.random(n_signal) < size.own_share
        own = self.own_words[label, rng.integers(size.own_words, size=n_signal)]
        position = rng.integers(size.group_words, size=n_signal)
        shared = self.group_words[self.group_of[label], position]
        rest = self.word_odds.draw(rng, n_words - n_signal)
        return np.concatenate([np.where(is_own, own, shared), rest])


class _Odds:
    """A distribution over 0..n-1 that is drawn from often.

    Gives the numbers that ``Generator.choice(n, p=values)`` gives, without summing the odds anew
    for each call.
    """

    def __init__(self, values: np.ndarray):
        self.values = values
        self.cumulated = values.cumsum()
        self.cumulated /= self.cumulated[-1]

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None) -> Any:
        return self.cumulated.searchsorted(rng.random(size), side="right")


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
