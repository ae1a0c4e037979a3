"""Clustered vectors of different lengths, for searches by inner product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Vectors", "clustered_vectors"]


@dataclass(frozen=True)
class Vectors:
    """Rows, queries, and the rows of the largest inner products with each query, best first."""

    rows: np.ndarray
    queries: np.ndarray
    best: np.ndarray
    scores: np.ndarray

    def recall(self, ids: np.ndarray) -> float:
        """Share of `best` that was found."""
        pairs = zip(ids, self.best, strict=True)
        return float(np.mean([np.isin(truth, found).mean() for found, truth in pairs]))


def clustered_vectors(
    n_rows: int = 200_000, dim: int = 128, n_queries: int = 2000, k: int = 10, seed: int = 3
) -> Vectors:
    """Rows around a hundredth as many Gaussian centres, lengths log-normal; queries farther out."""
    rng = np.random.default_rng(seed)
    n_clusters, spread = max(1, n_rows // 100), np.float32(0.6)
    centres = rng.standard_normal((n_clusters, dim)).astype(np.float32)
    rows = centres[rng.integers(n_clusters, size=n_rows)]
    rows += spread * rng.standard_normal((n_rows, dim)).astype(np.float32)
    rows *= np.exp(0.25 * rng.standard_normal((n_rows, 1))).astype(np.float32)
    queries = centres[rng.integers(n_clusters, size=n_queries)]
    queries += np.float32(1.5) * spread * rng.standard_normal((n_queries, dim)).astype(np.float32)
    best = np.empty((n_queries, k), np.int64)
    scores = np.empty((n_queries, k), np.float32)
    for start in range(0, n_queries, 200):
        products = queries[start : start + 200] @ rows.T
        part = np.argpartition(-products, k, axis=1)[:, :k]
        values = np.take_along_axis(products, part, 1)
        order = np.argsort(-values, axis=1)
        best[start : start + 200] = np.take_along_axis(part, order, 1)
        scores[start : start + 200] = np.take_along_axis(values, order, 1)
    return Vectors(rows, queries, best, scores)
