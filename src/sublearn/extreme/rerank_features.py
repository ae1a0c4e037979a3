"""What a second stage knows of a text and a candidate, as numbers, and as pieces of lines."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Turns each feature into pieces of a line that bends at knots, and makes them of one size.

    Parameters
    ----------
    knots : ndarray of shape (n_features, n_knots)
        Feature x becomes x and max(0, x - knot) for each knot.
    means, sizes : ndarray of shape (n_features * (1 + n_knots),)
        What is taken off each piece, and what it is divided by.
    """

    knots: np.ndarray
    means: np.ndarray
    sizes: np.ndarray

    FIELDS: ClassVar[Fields] = {
        "knots": Floats("raw", "knots", finite=True),
        "means": Floats("pieces", finite=True),
        "sizes": Floats("pieces", finite=True),
    }

    @classmethod
    def of(cls, raw: np.ndarray, is_true: np.ndarray) -> Pieces:
        """Knots at quantiles of the true pairs, where most is to be told apart."""
        shares = np.linspace(0, 1, _N_KNOTS + 2)[1:-1]
        knots = np.quantile(raw[is_true], shares, axis=0).T
        rough = cls(knots, np.zeros(1), np.ones(1)).expand(raw)
        means, sizes = rough.mean(axis=0), rough.std(axis=0)
        # A piece that never moves says nothing; neither does one that moves by rounding.
        return cls(knots, means, np.where(sizes > 1e-9 * (1 + np.abs(means)), sizes, np.inf))

    def expand(self, raw: np.ndarray) -> np.ndarray:
        """The pieces of all features, those of one side by side, in Fortran order."""
        n_knots = self.knots.shape[1]
        found = np.empty((len(raw), raw.shape[1] * (1 + n_knots)), order="F")
        for feature, knots in enumerate(self.knots):
            first, x = feature * (1 + n_knots), raw[:, feature]
            found[:, first] = x
            for i, knot in enumerate(knots, start=1):
                np.maximum(x - knot, 0, out=found[:, first + i])
        found -= self.means
        found /= self.sizes
        return found

    def to_state(self) -> State:
        """What `from_state` takes."""
        return {name: getattr(self, name) for name in self.FIELDS}

    @classmethod
    def from_state(cls, state: State, n_features: int) -> Pieces:
        """Inverse of `to_state`; what does not fit is a ValueError."""
        sizes = check_fields(state, cls.FIELDS, {"raw": n_features})
        if sizes["pieces"] != n_features * (1 + sizes["knots"]):
            raise ValueError(
                f"means must have {n_features * (1 + sizes['knots'])} numbers, one for each piece, "
                f"got {sizes['pieces']}"
            )
        return cls(**state)
