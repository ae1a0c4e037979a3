"""faiss behind the interface of the core's index: the same clusters, its own scans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from sublearn.errors import ParameterError
from sublearn.execution import one_at_a_time

__all__ = ["FaissIndex"]


class FaissIndex:
    """An inverted file of faiss, with the constructor and the methods of `_core.MipsIndex`.

    Centres and their rows are given, so that both back ends search the same clusters. faiss has no
    bounds: exact search scans all rows. Calls from several threads wait for each other: neither the
    rows nor the number of threads may change during a search.
    """

    def __init__(
        self, centres: np.ndarray, begin: np.ndarray, ids: np.ndarray, rows: np.ndarray, n_ids: int
    ):
        self._faiss = _import_faiss()
        n_clusters, width = centres.shape
        self._quantizer = self._faiss.IndexFlatIP(width)
        self._quantizer.add(centres)
        self._index = self._faiss.IndexIVFFlat(
            self._quantizer, width, n_clusters, self._faiss.METRIC_INNER_PRODUCT
        )
        self._index.is_trained = True
        self._index.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        self.n_clusters, self.n_ids = n_clusters, n_ids
        clusters = np.repeat(np.arange(n_clusters, dtype=np.int64), np.diff(begin))
        self._insert(ids, np.ascontiguousarray(rows), clusters)

    @property
    def n_rows(self) -> int:
        """Rows in the index."""
        return int(self._index.ntotal)

    @one_at_a_time
    def search(
        self, queries: np.ndarray, k: int, n_probe: int, n_threads: int, monitor: object
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Ids, scores, and how many inner products were computed; n_probe 0 is exact."""
        with _threads(self._faiss, n_threads):
            self._index.nprobe = n_probe or self.n_clusters
            counted = self._faiss.cvar.indexIVF_stats.ndis
            scores, ids = self._index.search(queries, k)
            work = self._faiss.cvar.indexIVF_stats.ndis - counted
        few = np.flatnonzero((ids[:, -1] < 0) & (n_probe > 0) & (k <= self.n_rows))
        if len(few):  # the clusters looked at have fewer than k rows
            ids[few], scores[few], more = self.search(queries[few], k, 0, n_threads, monitor)
            work += more
        order = np.lexsort((ids, -scores), axis=1)  # equal scores by id, as the core has it
        ids, scores = (np.take_along_axis(part, order, 1) for part in (ids, scores))
        return ids.astype(np.int32), scores, int(work) + len(queries) * self.n_clusters

    @one_at_a_time
    def search_above(
        self, queries: np.ndarray, threshold: float, n_threads: int, monitor: object
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Begin of each query, ids, scores, inner products computed; exact."""
        with _threads(self._faiss, n_threads):
            self._index.nprobe = self.n_clusters
            begin, scores, ids = self._index.range_search(queries, threshold)
        begin = begin.astype(np.int64)
        query_of = np.repeat(np.arange(len(queries)), np.diff(begin))
        order = np.lexsort((ids, -scores, query_of))
        work = len(queries) * (self.n_rows + self.n_clusters)
        return begin, ids[order].astype(np.int32), scores[order], work

    @one_at_a_time
    def nearest(self, rows: np.ndarray) -> np.ndarray:
        """The cluster that suits each row."""
        _, found = self._quantizer.search(rows, 1)
        return np.ascontiguousarray(found[:, 0], dtype=np.int32)

    @one_at_a_time
    def clusters_of(self, ids: np.ndarray) -> np.ndarray:
        """The clusters that rows are in."""
        begin, known, _ = self.packed()
        cluster_of = np.full(self.n_ids, -1, dtype=np.int32)
        cluster_of[known] = np.repeat(np.arange(self.n_clusters), np.diff(begin))
        return np.asarray(cluster_of[ids])

    @one_at_a_time
    def sizes(self) -> np.ndarray:
        """Rows of each cluster."""
        lists = self._index.invlists
        return np.array([lists.list_size(c) for c in range(self.n_clusters)], dtype=np.int64)

    @one_at_a_time
    def update(self, ids: np.ndarray, rows: np.ndarray, clusters: np.ndarray) -> None:
        """Give rows other values."""
        self.remove(ids)
        self._insert(ids, rows, clusters)

    @one_at_a_time
    def add(self, ids: np.ndarray, rows: np.ndarray, clusters: np.ndarray) -> None:
        """Add rows with ids that are free."""
        self._insert(ids, rows, clusters)
        self.n_ids = max(self.n_ids, int(ids.max(initial=-1)) + 1)

    @one_at_a_time
    def remove(self, ids: np.ndarray) -> None:
        """Take rows out."""
        self._index.remove_ids(ids.astype(np.int64))

    @one_at_a_time
    def packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Begin, ids and rows, cluster by cluster."""
        lists, sizes = self._index.invlists, self.sizes()
        begin = np.concatenate([[0], np.cumsum(sizes)])
        width = self._index.d
        ids = np.empty(begin[-1], dtype=np.int32)
        rows = np.empty((begin[-1], width), dtype=np.float32)
        for c in np.flatnonzero(sizes):
            part, size = slice(begin[c], begin[c + 1]), int(sizes[c])
            ids[part] = self._faiss.rev_swig_ptr(lists.get_ids(int(c)), size)
            codes = self._faiss.rev_swig_ptr(lists.get_codes(int(c)), 4 * width * size)
            rows[part] = codes.view(np.float32).reshape(size, width)
        return begin, ids, rows

    @one_at_a_time
    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """The values of rows."""
        if not len(ids):
            return np.empty((0, self._index.d), np.float32)
        try:
            return self._index.reconstruct_batch(ids.astype(np.int64))
        except RuntimeError:
            unknown = ids[~np.isin(ids, self.packed()[1])]
            if not len(unknown):
                raise
            raise ValueError(f"ids must be rows of the index, got {unknown[0]}") from None

    def _insert(self, ids: np.ndarray, rows: np.ndarray, clusters: np.ndarray) -> None:
        if not len(ids):
            return
        pointer = self._faiss.swig_ptr
        numbers, lists = (np.ascontiguousarray(part, dtype=np.int64) for part in (ids, clusters))
        self._index.add_core(len(ids), pointer(rows), pointer(numbers), pointer(lists))


@contextmanager
def _threads(faiss: ModuleType, n_threads: int) -> Iterator[None]:
    """faiss has one number of threads for the process; it is as before afterwards."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _import_faiss() -> ModuleType:
    try:
        import faiss
    except ImportError as error:
        raise ParameterError(
            "MIPSIndex.backend must be 'sublearn' where faiss is missing, got 'faiss': "
            "pip install 'sublearn[faiss]'"
        ) from error
    return faiss
