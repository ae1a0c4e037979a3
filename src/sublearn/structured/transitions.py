"""Which tags may follow each other in a sequence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn.structured.model import append_columns
from sublearn.validation import Rule
from sublearn.validation.values import show

__all__ = ["NEVER", "ForbiddenPairs", "PairRules", "Transitions", "no_way_through", "with_rules"]

NEVER = 1e9  # score of what is forbidden

#: A parameter `transitions`: whether there are scores, or what is forbidden.
Transitions: TypeAlias = "bool | str | Sequence[tuple[Hashable, Hashable]]"


class ForbiddenPairs(Rule):
    """A list of pairs of tags, None standing for the begin or the end of a sequence."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return (
            isinstance(value, (list, tuple))
            and len(value) > 0
            and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
        )

    def __str__(self) -> str:
        return "a list of pairs of tags"


class PairRules:
    """The rules of a parameter `transitions` for the tags of a fit.

    `table` (n, n), `first` and `last` (n,) are True where a tag may follow another, begin a
    sequence, end one.
    """

    def __init__(self, transitions: Transitions, classes: Sequence[Hashable]):
        n = len(classes)
        self._classes = list(classes)
        self.table = np.ones((n, n), dtype=bool)
        self.first, self.last = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        if transitions == "bio":
            self._forbid_bio()
        elif not isinstance(transitions, (bool, np.bool_, str)):
            self._forbid(transitions)

    @property
    def is_free(self) -> bool:
        """Whether nothing is forbidden."""
        return bool(self.table.all() and self.first.all() and self.last.all())

    def _forbid_bio(self) -> None:
        """I-x comes after B-x or I-x and nowhere else."""
        names = [str(tag) for tag in self._classes]
        for b, name in enumerate(names):
            if name[:2] == "I-":
                before = (f"B-{name[2:]}", name)
                self.table[:, b] = [other in before for other in names]
                self.first[b] = False

    def _forbid(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> None:
        place = {tag: k for k, tag in enumerate(self._classes)}
        for a, b in pairs:
            # a tag that no sequence of the fit has cannot be predicted anyway
            if a is None and b in place:
                self.first[place[b]] = False
            elif b is None and a in place:
                self.last[place[a]] = False
            elif a in place and b in place:
                self.table[place[a], place[b]] = False

    def check(self, codes: np.ndarray, lengths: np.ndarray, head: str) -> None:
        """Refuse sequences of tags that break a rule; -1 is a tag that the fit did not see."""
        if self.is_free or not len(codes):
            return
        ends = np.cumsum(lengths)[lengths > 0]
        begins = ends - lengths[lengths > 0]
        follows = np.ones(len(codes), dtype=bool)
        follows[begins] = False
        places = np.flatnonzero(follows)
        a, b = codes[places - 1], codes[places]
        self._refuse(places, ~self.table[a, b] & (a >= 0) & (b >= 0), codes, lengths, head)
        self._refuse(
            begins, ~self.first[codes[begins]] & (codes[begins] >= 0), codes, lengths, head
        )
        is_bad = ~self.last[codes[ends - 1]] & (codes[ends - 1] >= 0)
        self._refuse(ends - 1, is_bad, codes, lengths, head)

    def _refuse(
        self, places: np.ndarray, is_bad: np.ndarray, codes: np.ndarray, lengths: np.ndarray,
        head: str,
    ) -> None:  # fmt: skip
        if is_bad.any():
            t = int(places[np.argmax(is_bad)])
            sequence = int(np.searchsorted(np.cumsum(lengths), t, side="right"))
            raise ValueError(
                f"{head} must not have neighbours that transitions forbids, got "
                f"{show(self._classes[codes[t]])} at a place of sequence {sequence} where it may "
                f"not be"
            )


def with_rules(
    X: sp.csr_matrix, W: sp.csr_matrix, table: np.ndarray, lengths: np.ndarray, rules: PairRules
) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]:
    """Scores far below all others for what is forbidden: two features more, first and last."""
    ends, filled = np.cumsum(lengths), lengths > 0
    columns = [np.zeros(X.shape[0]) for _ in range(2)]
    columns[0][(ends - lengths)[filled]] = 1.0
    columns[1][ends[filled] - 1] = 1.0
    rows = -NEVER * ~np.array([rules.first, rules.last])
    W = sp.vstack([W, sp.csr_matrix(rows.astype(W.dtype))], format="csr")
    return append_columns(X, *columns), W, np.where(rules.table, table, -NEVER)


def no_way_through(model: object, n_positions: int) -> ValueError:
    """What is raised where rules leave no tags for a sequence."""
    return ValueError(
        f"{type(model).__name__}.transitions must allow tags for every sequence, got rules that "
        f"allow none for one of {n_positions} positions"
    )
