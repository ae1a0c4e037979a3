"""What a second stage knows of a text and a candidate, as numbers, and as pieces of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from sublearn.extreme.rerank_sources import Candidates, Listed
from sublearn.io.fields import Fields, Floats, check_fields
from sublearn.typing import State

__all__ = ["Pieces", "features", "support"]

_N_KNOTS = 5
_BANDS = (1, 3, 10, 50)  # least training texts of a label: none, 1 and 2, 3 to 9, ...
_SUPPORTERS = 10  # labels of the first list that may speak for others
_SHARPNESS = 3.0  # of margins that stand for chances, before anything is learnt of them


def support(first: Listed, together: sp.csr_matrix) -> sp.csr_matrix:
    """How much the best labels of a text speak for each label, shape (n_texts, n_labels).

    The sum over them of their chance, a logistic function of the score, times the share of
    training texts with the one that carry the other: `together`.
    """
    labels, scores = first.labels[:, :_SUPPORTERS], first.scores[:, :_SUPPORTERS]
    chances = np.where(labels >= 0, expit(_SHARPNESS * scores), 0.0)
    starts = np.arange(len(labels) + 1) * labels.shape[1]
    entries = (chances.ravel(), np.maximum(labels, 0).ravel(), starts)
    best = sp.csr_matrix(entries, shape=(len(labels), together.shape[0]))
    best.sum_duplicates()
    return sp.csr_matrix(best @ together)


def features(
    candidates: Candidates, scores: Mapping[str, np.ndarray], label_counts: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of the features, and a column of each for all pairs.

    Of each score there are three: the score, how far it is below the best of its text, and the
    reciprocal of its place there. The last one is the logarithm of the label's training texts.
    """
    names, columns = [], []
    for name, score in scores.items():
        names += [name, f"{name} behind the best", f"{name} place"]
        columns += [score, candidates.behind_best(score), 1 / (1 + candidates.ranks(score))]
    counts = np.log1p(label_counts[candidates.labels])
    return [*names, "texts of the label"], np.column_stack([*columns, counts])


@dataclass(frozen=True, eq=False)
class Pieces:
    """Turns features into columns that a linear model can weigh, all of one size.

    Feature x becomes x and max(0, x - knot) for each knot: a line that bends. Beside that stand x
    and 1 for labels of each band of frequency alone, 0 for the others: a source that is right
    about frequent labels may be wrong about rare ones.

    Parameters
    ----------
    knots : ndarray of shape (n_features, n_knots)
        Where the line of each feature bends.
    means, sizes : ndarray of shape (n_columns,)
        What is taken off each column, and what it is divided by.
    """

    knots: np.ndarray
    means: np.ndarray
    sizes: np.ndarray

    FIELDS: ClassVar[Fields] = {
        "knots": Floats("raw", "knots", finite=True),
        "means": Floats("columns", finite=True),
        "sizes": Floats("columns"),
    }

    @classmethod
    def of(cls, raw: np.ndarray, is_true: np.ndarray) -> Pieces:
        """Knots at quantiles of the true pairs, where most is to be told apart."""
        shares = np.linspace(0, 1, _N_KNOTS + 2)[1:-1]
        knots = np.quantile(raw[is_true], shares, axis=0).T
        n_columns = _n_columns(*knots.shape)
        columns = cls(knots, np.zeros(n_columns), np.ones(n_columns)).expand(raw)
        means = columns.mean(axis=0)
        sizes = np.array([column.std() for column in columns.T])
        # A column that never moves says nothing; neither does one that moves by rounding.
        return cls(knots, means, np.where(sizes > 1e-9 * (1 + np.abs(means)), sizes, np.inf))

    def expand(self, raw: np.ndarray) -> np.ndarray:
        """All columns, in Fortran order; the last feature is the logarithm of label counts."""
        found = np.empty((len(raw), len(self.means)), order="F")
        for i, column in enumerate(self._columns(raw)):
            found[:, i] = column
            found[:, i] -= self.means[i]
            found[:, i] /= self.sizes[i]
        return found

    def _columns(self, raw: np.ndarray) -> Iterator[np.ndarray]:
        for x, knots in zip(raw.T, self.knots, strict=True):
            yield x
            yield from (np.maximum(x - knot, 0) for knot in knots)
        bands = np.digitize(raw[:, -1], np.log1p(_BANDS))
        for band in range(len(_BANDS) + 1):
            is_in = bands == band
            yield is_in
            yield from (x * is_in for x in raw.T)

    def to_state(self) -> State:
        """What `from_state` takes."""
        return {name: getattr(self, name) for name in self.FIELDS}

    @classmethod
    def from_state(cls, state: State, n_features: int) -> Pieces:
        """Inverse of `to_state`; what does not fit is a ValueError."""
        sizes = check_fields(state, cls.FIELDS, {"raw": n_features})
        wanted = _n_columns(n_features, sizes["knots"])
        if sizes["columns"] != wanted:
            raise ValueError(f"means must have {wanted} numbers, got {sizes['columns']}")
        if not (np.asarray(state["sizes"]) > 0).all():
            raise ValueError("sizes must be above 0, got others")
        return cls(**state)


def _n_columns(n_features: int, n_knots: int) -> int:
    return n_features * (1 + n_knots) + (len(_BANDS) + 1) * (1 + n_features)
