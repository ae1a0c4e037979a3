"""Where to cut scores so that sets of labels have a large F1, exactly, by sorting once.

Adding the entries (row, label) one by one by falling score changes the F1 of one row and of one
label at a time, so that every threshold is judged by one cumulated sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sublearn.interruption import check

__all__ = ["METRICS", "Entries", "best_threshold", "best_thresholds", "expected_f1"]

#: What a threshold can be the best for.
METRICS = ("f1_micro", "f1_samples", "f1_macro")
_BLOCK_ROWS = 1024
_REST = 24  # labels beyond those listed that may be true; more of them count as so many


@dataclass(frozen=True, eq=False)
class Entries:
    """Scored pairs of row and label, in any order, and what is true.

    Parameters
    ----------
    rows, labels : ndarray of int
        Of each pair.
    scores : ndarray of float
        Of each pair. A pair that is not listed cannot be predicted.
    truth : csr_matrix of bool, shape (n_rows, n_labels)
        True labels.
    """

    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    truth: sp.csr_matrix

    def by_score(self) -> Entries:
        """The same pairs, best first; of equal scores the lower row and label first."""
        order = np.lexsort((self.labels, self.rows, -self.scores))
        return Entries(self.rows[order], self.labels[order], self.scores[order], self.truth)

    def hits(self) -> np.ndarray:
        """Whether each pair is true."""
        n_labels = self.truth.shape[1]
        of_row = np.repeat(np.arange(self.truth.shape[0]), np.diff(self.truth.indptr))
        true = np.sort(of_row * n_labels + self.truth.indices)
        keys = self.rows.astype(np.int64) * n_labels + self.labels
        place = np.searchsorted(true, keys)
        return np.append(true, -1)[place] == keys

    def with_best_of_rows_first(self) -> Entries:
        """The same pairs, the best one of each row with an infinite score."""
        first = np.unique(self.rows, return_index=True)[1]
        scores = self.scores.astype(np.float64)
        scores[first] = np.inf
        return Entries(self.rows, self.labels, scores, self.truth).by_score()


def best_threshold(entries: Entries, metric: str, *, at_least_one: bool) -> float:
    """The threshold whose sets have the largest `metric`: labels that score above it.

    With `at_least_one` the best label of each row is predicted in any case, and the metric is that
    of such sets. Between two scores the middle is taken.
    """
    entries = entries.by_score()
    if at_least_one:
        entries = entries.with_best_of_rows_first()
    return _best_of(entries.scores, _running(entries, metric))


def best_thresholds(entries: Entries, shared: float, min_positives: int) -> np.ndarray:
    """For each label the threshold of its largest F1; `shared` where fewer rows carry it."""
    n_true = np.bincount(entries.truth.indices, minlength=entries.truth.shape[1])
    found = np.full(len(n_true), shared)
    entries = entries.by_score()
    hits = entries.hits()
    order = np.argsort(entries.labels, kind="stable")
    n, n_hits = _within(entries.labels, hits)
    values = 2 * n_hits / (n + n_true[entries.labels])
    starts = np.flatnonzero(np.diff(entries.labels[order], prepend=-1))
    for start, stop in zip(starts, np.append(starts[1:], len(order)), strict=True):
        label = entries.labels[order[start]]
        if n_true[label] >= min_positives:
            own = order[start:stop]
            found[label] = _best_of(entries.scores[own], values[own])
    return found


def _best_of(scores: np.ndarray, values: np.ndarray) -> float:
    """The threshold of the largest value, for scores that fall."""
    is_end = np.append(scores[1:] < scores[:-1], True)  # equal scores are predicted together
    best = int(np.argmax(np.where(is_end, values, -np.inf)))
    return _between(scores[best], scores[best + 1] if best + 1 < len(scores) else -np.inf)


def _between(above: float, below: float) -> float:
    """A threshold that the first score passes and the second does not; either may be infinite."""
    if np.isfinite(above) and np.isfinite(below):
        return float((np.float64(above) + below) / 2)
    if np.isfinite(above):
        return float(above - 1e-6 * max(1.0, abs(above)))
    return float(below + 1e-6 * max(1.0, abs(below))) if np.isfinite(below) else 0.0


def _running(entries: Entries, metric: str) -> np.ndarray:
    """The metric of the first entries, for every number of them."""
    hits, truth = entries.hits(), entries.truth
    if metric == "f1_micro":
        return 2 * hits.cumsum() / (np.arange(1, len(hits) + 1) + truth.nnz)
    if metric == "f1_samples":
        groups, n_true = entries.rows, np.diff(truth.indptr)
    else:
        groups, n_true = entries.labels, np.bincount(truth.indices, minlength=truth.shape[1])
    n, n_hits = _within(groups, hits)
    of_group = n_true[groups]
    after = 2 * n_hits / np.maximum(n + of_group, 1)
    before = 2 * (n_hits - hits) / np.maximum(n - 1 + of_group, 1)
    return (after - before).cumsum() / len(n_true)


def _within(groups: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each entry, how many of its group there are up to it, and how many hits."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    cumulated = hits[order].cumsum()
    before = np.repeat(cumulated[starts] - hits[order][starts], lengths)
    n, n_hits = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    n[order] = np.arange(len(order)) - np.repeat(starts, lengths) + 1
    n_hits[order] = cumulated - before
    return n, n_hits


# --- the set of largest expected F1 -----------------------------------------------------------


def expected_f1(probabilities: np.ndarray, rest: np.ndarray) -> np.ndarray:
    r"""Expected F1 of the set of the :math:`k` most probable labels, for each :math:`k` from 1.

    For labels that are independent given the row the best set of all is one of these [1]_. With
    :math:`H_k` true labels among the first :math:`k` and :math:`R_k` among all others it is

    .. math:: \mathrm{E} \frac{2 H_k}{k + H_k + R_k}.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_listed)
        Falling in each row.
    rest : ndarray of shape (n_rows,)
        Sum of the probabilities of all labels that are not listed; how many of them are true is
        taken to be Poisson. Exact where it is 0.

    Returns
    -------
    ndarray of shape (n_rows, n_listed)

    References
    ----------
    .. [1] N. Ye, K. M. Chai, W. S. Lee, H. L. Chieu, "Optimizing F-measures: a tale of two
       approaches", ICML 2012.
    """
    found = np.empty(probabilities.shape)
    for first in range(0, len(found), _BLOCK_ROWS):
        check()
        block = slice(first, first + _BLOCK_ROWS)
        found[block] = _expected_f1(probabilities[block].astype(np.float64), rest[block])
    return found


def _expected_f1(p: np.ndarray, rest: np.ndarray) -> np.ndarray:
    n_rows, n_listed = p.shape
    others = [_poisson(rest)]  # of R_k, from the last k to the first
    for j in range(n_listed - 1, 0, -1):
        others.append(_with_one_more(others[-1], p[:, j]))
    hits = np.ones((n_rows, 1))
    found = np.empty(p.shape)
    for k in range(1, n_listed + 1):
        hits = _with_one_more(hits, p[:, k - 1])
        of_others = others.pop()
        h, r = np.arange(k + 1)[:, None], np.arange(of_others.shape[1])
        found[:, k - 1] = ((hits @ (2 * h / (k + h + r))) * of_others).sum(axis=1)
    return found


def _with_one_more(counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    """How many are true, by probability, with one label more; one column more."""
    p = p[:, None]
    none = np.zeros_like(p)
    return np.hstack([counts * (1 - p), none]) + np.hstack([none, counts * p])


def _poisson(mean: np.ndarray) -> np.ndarray:
    """Probabilities of 0, 1, ... true labels; of the last number, or more."""
    mean = np.maximum(np.asarray(mean, dtype=np.float64), 0.0)[:, None]
    counts = np.arange(_REST)
    factorials = np.cumprod(np.maximum(counts, 1), dtype=np.float64)
    found = np.exp(-mean) * mean**counts / factorials
    return np.hstack([found, np.maximum(1 - found.sum(axis=1, keepdims=True), 0.0)])
