"""The labels of largest score for dense features, by search or by a scan of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.mips_index import MIPSIndex

__all__ = ["LabelIndex"]

#: With fewer labels a matrix product is faster than a search.
_FEWEST_FOR_INDEX = 2_000
_CHUNK_BYTES = 64 << 20
_TUNING_K = 5


class LabelIndex:
    """Weights of labels, a row for each, and from the first search on an index of them.

    A search finds the share `recall` of the best five labels, measured on the queries `samples`.
    """

    def __init__(
        self,
        weights: np.ndarray,
        n_threads: int,
        samples: np.ndarray | None = None,
        recall: float = 1.0,
    ):
        self.weights = weights
        self.samples = weights[:0] if samples is None else samples
        self._recall, self._n_threads = recall, n_threads
        self._index: MIPSIndex | None = None

    def index(self) -> MIPSIndex:
        """The index, tuned for the recall; made when it is first asked for."""
        if self._index is None:
            index = MIPSIndex(n_jobs=self._n_threads, random_state=0).fit(self.weights)
            if len(self.samples):
                index.tune(self.samples, _TUNING_K, self._recall)
            self._index = index
        return self._index

    def measured_recall(self) -> float:
        """Recall of the five best labels on the sample queries."""
        if not self.uses_index or not len(self.samples):
            return 1.0
        return self.index().recall(self.samples, _TUNING_K)

    @property
    def uses_index(self) -> bool:
        """Whether there are enough labels for a search to be faster than a scan."""
        return len(self.weights) >= _FEWEST_FOR_INDEX

    def top_k(self, queries: np.ndarray, k: int, *, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of the k best labels of each row, best first, ties by lower id."""
        if self.uses_index and not exact:
            return self.index().search(queries, k)
        parts = [_best(scores, k) for scores in self.chunks(queries)]
        ids, scores = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(scores)

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Scores of all labels."""
        return np.concatenate(list(self.chunks(queries)))

    def chunks(self, queries: np.ndarray) -> Iterator[np.ndarray]:
        """Scores of all labels, some queries at a time."""
        step = max(1, _CHUNK_BYTES // (4 * len(self.weights)))
        with blas_threads(self._n_threads):
            for start in range(0, max(len(queries), 1), step):
                yield queries[start : start + step] @ self.weights.T


def _best(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    if k < scores.shape[1]:
        ids = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
    else:
        ids = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    found = np.take_along_axis(scores, ids, 1)
    order = np.argsort(-found, axis=1, kind="stable")
    return np.take_along_axis(ids, order, 1), np.take_along_axis(found, order, 1)
