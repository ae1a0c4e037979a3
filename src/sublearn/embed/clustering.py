"""Spherical k-means: unit centres that have large inner products with the rows around them."""

from __future__ import annotations

import numpy as np

__all__ = ["BALANCE", "assign", "by_cluster", "count_clusters", "spherical_kmeans", "unit_rows"]

#: No cluster of an index for training has more than this many times the mean number of rows.
BALANCE = 2.0

#: Rows for each centre in a mini-batch. More make centres hardly better, and learning slower.
_ROWS_PER_CENTRE = 64
#: What a round keeps of the sums of rounds before it, where rounds see different rows.
_MEMORY = 0.5
#: Bytes of inner products held at a time.
_CHUNK_BYTES = 64 << 20


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a zero row stays 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1).astype(rows.dtype)


def count_clusters(n_rows: int) -> int:
    """About twice the square root of the rows: centres and rows of a search then cost alike."""
    return max(1, min(n_rows, round(2 * n_rows**0.5)))


def by_cluster(clusters: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each cluster begins, and the rows in the order of their clusters, as the core reads."""
    begin = np.zeros(n_clusters + 1, dtype=np.int64)
    np.cumsum(np.bincount(clusters, minlength=n_clusters), out=begin[1:])
    return begin, np.argsort(clusters, kind="stable").astype(np.int32)


def spherical_kmeans(
    rows: np.ndarray, n_clusters: int, max_iter: int, rng: np.random.Generator
) -> np.ndarray:
    r"""Centres that maximise :math:`\sum_i \max_c \langle x_i / |x_i|, \mu_c \rangle`.

    Each round assigns a mini-batch of rows, drawn anew, and moves centres to the direction of
    their rows, those of earlier rounds included with a weight that halves each time. A centre
    without rows starts anew at one of the rows that are farthest from theirs. Few rows make one
    batch, and rounds are those of plain spherical k-means. There must be a row for each centre.
    """
    size = min(len(rows), _ROWS_PER_CENTRE * n_clusters)
    is_all = size == len(rows)
    batch = unit_rows(rows if is_all else rows[_drawn(len(rows), size, rng)])
    centres = batch[rng.choice(size, n_clusters, replace=False)]
    totals = np.zeros_like(centres)
    for round_ in range(max_iter):
        if round_ > 0 and not is_all:
            batch = unit_rows(rows[_drawn(len(rows), size, rng)])
        labels, similarity = assign(batch, centres)
        order = np.argsort(labels, kind="stable")
        filled, begin = np.unique(labels[order], return_index=True)
        totals *= 0 if is_all else _MEMORY
        totals[filled] += np.add.reduceat(batch[order], begin, axis=0)
        empty = np.setdiff1d(np.arange(n_clusters), filled)
        totals[empty] = batch[np.argpartition(similarity, len(empty))[: len(empty)]]
        centres = unit_rows(totals)
    return centres


def _drawn(n_rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(n_rows, size, replace=False))


def assign(
    rows: np.ndarray, centres: np.ndarray, balance: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """For each row the centre of largest inner product, and that inner product.

    With a `balance`, a cluster has at most that many times the mean number of rows: it keeps those
    that are nearest to it, and the others go to the best cluster that still has room.
    """
    labels, similarity = _best(rows, centres)
    if balance is None:
        return labels, similarity
    capacity = max(1, int(np.ceil(balance * len(rows) / len(centres))))
    is_open = np.ones(len(centres), dtype=bool)
    while True:
        counts = np.bincount(labels, minlength=len(centres))
        is_open &= counts < capacity
        over = np.flatnonzero(counts > capacity)
        if not len(over) or not is_open.any():
            return labels, similarity
        moving = np.concatenate(
            [_least_similar(labels, similarity, int(c), capacity) for c in over]
        )
        candidates = np.flatnonzero(is_open)
        part, similarity[moving] = _best(rows[moving], centres[candidates])
        labels[moving] = candidates[part]


def _least_similar(
    labels: np.ndarray, similarity: np.ndarray, cluster: int, capacity: int
) -> np.ndarray:
    members = np.flatnonzero(labels == cluster)
    return members[np.argsort(-similarity[members], kind="stable")[capacity:]]


def _best(rows: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels = np.empty(len(rows), dtype=np.int64)
    similarity = np.empty(len(rows), dtype=rows.dtype)
    step = max(1, _CHUNK_BYTES // (4 * len(centres)))
    for start in range(0, len(rows), step):
        products = rows[start : start + step] @ centres.T
        best = products.argmax(axis=1)
        labels[start : start + step] = best
        similarity[start : start + step] = products[np.arange(len(best)), best]
    return labels, similarity
