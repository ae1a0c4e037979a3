"""Chains for the judges of structural SVMs: scores, decoding and the objective, dense in the tags.

The objective is that of sublearn.structured.ChainSVM without its own bias and ends:

    1/2 |W|^2 + 1/2 |T|^2 + C sum_i max_y [ Delta(y, y_i) + score(x_i, y) - score(x_i, y_i) ]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

__all__ = ["Model", "Sequence", "augmented", "objective", "sequences", "viterbi"]


@dataclass(frozen=True, eq=False)
class Sequence:
    """Features of its tokens by the columns that it has, their inner products, true tags."""

    columns: np.ndarray
    x: np.ndarray
    gram: np.ndarray
    y: np.ndarray

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return self.y[:-1], self.y[1:]


@dataclass(eq=False)
class Model:
    """W with a row for each feature and a column for each tag; T[a, b] for a followed by b."""

    W: np.ndarray
    T: np.ndarray

    @classmethod
    def zero(cls, n_features: int, n_labels: int) -> Model:
        return cls(np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels)))

    def scores(self, sequence: Sequence) -> np.ndarray:
        """Scores of tags at each position, without neighbours."""
        return sequence.x @ self.W[sequence.columns]

    def squared_norm(self) -> float:
        return float(np.vdot(self.W, self.W) + np.vdot(self.T, self.T))

    def score(self, sequence: Sequence, y: np.ndarray) -> float:
        """Score of given tags."""
        nodes = self.scores(sequence)[np.arange(len(y)), y].sum()
        return float(nodes + self.T[y[:-1], y[1:]].sum())

    def add(self, sequence: Sequence, y: np.ndarray, step: float) -> None:
        """Add step * phi(x, y)."""
        labels, place = np.unique(y, return_inverse=True)
        share = np.zeros((len(y), len(labels)))
        share[np.arange(len(y)), place] = step
        self.W[np.ix_(sequence.columns, labels)] += sequence.x.T @ share
        np.add.at(self.T, (y[:-1], y[1:]), step)


def sequences(X: sp.csr_matrix, y: np.ndarray, lengths: np.ndarray) -> list[Sequence]:
    """Rows of a matrix as sequences; empty ones have no loss and are left out."""
    return list(_sequences(X, y, lengths))


def _sequences(X: sp.csr_matrix, y: np.ndarray, lengths: np.ndarray) -> Iterator[Sequence]:
    ends = np.cumsum(lengths)
    for end, length in zip(ends, lengths, strict=True):
        if length:
            rows = X[end - length : end]
            columns = np.unique(rows.indices)
            x = np.asarray(rows[:, columns].todense(), dtype=np.float64)
            yield Sequence(columns, x, x @ x.T, np.asarray(y[end - length : end]))


def viterbi(scores: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, float]:
    """Tags of highest score and that score: K x K additions and maxima for each position."""
    best = [scores[0]]
    buffer = np.empty_like(table)
    for row in scores[1:]:
        np.add(table, best[-1][:, None], out=buffer)
        best.append(row + buffer.max(axis=0))
    y = np.empty(len(scores), dtype=np.int64)
    y[-1] = best[-1].argmax()
    for t in range(len(scores) - 2, -1, -1):
        y[t] = (best[t] + table[:, y[t + 1]]).argmax()
    return y, float(best[-1][y[-1]])


def augmented(scores: np.ndarray, table: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, float]:
    """The structured oracle: tags of highest score plus mistakes, and that value."""
    raised = scores + 1.0
    raised[np.arange(len(truth)), truth] -= 1.0
    return viterbi(raised, table)


def objective(model: Model, data: list[Sequence], C: float) -> float:
    """The value that everybody is to minimise, by exact decoding."""
    losses = (augmented(model.scores(s), model.T, s.y)[1] - model.score(s, s.y) for s in data)
    return 0.5 * model.squared_norm() + C * sum(losses)
