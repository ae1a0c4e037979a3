"""What prediction needs of a linear model with very many labels, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]

__all__ = ["LinearLabels"]


class LinearLabels:
    """Weights by feature and a bias per label; scores rows through inverted lists.

    A row visits the labels that share a feature with it, so its cost is the number of non-zero
    weights of its features plus one pass over the scores, not `n_labels * n_features`.

    Parameters
    ----------
    weights : csr_matrix of shape (n_features, n_labels)
        Row `j` lists the labels that give feature `j` a weight.
    bias : ndarray of shape (n_labels,)
        Added to each score; of the dtype of `weights`.
    """

    def __init__(self, weights: sp.csr_matrix, bias: np.ndarray):
        for indices in (weights.indptr, weights.indices):
            indices.flags.writeable = False  # checked once, then trusted by the compiled code
        self.weights = weights
        self.bias = bias
        self._native = _core.linear_model(weights.indptr, weights.indices, weights.data, bias)

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearLabels, (self.weights, self.bias)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.bias)

    def top_k(self, X: sp.csr_matrix, k: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of the `k` best labels of each row, best first, ties by lower id."""
        return self._native.top_k(*self._arrays(X), k, n_threads)

    def scores(self, X: sp.csr_matrix, n_threads: int) -> np.ndarray:
        """Scores of all labels, dense, of shape (n_samples, n_labels)."""
        return self._native.scores(*self._arrays(X), n_threads)

    def above(self, X: sp.csr_matrix, threshold: float, n_threads: int) -> sp.csr_matrix:
        """Boolean matrix of the labels that score above `threshold`."""
        indptr, labels = self._native.above(*self._arrays(X), threshold, n_threads)
        ones = np.ones(len(labels), dtype=bool)
        return sp.csr_matrix((ones, labels, indptr), shape=(X.shape[0], self.n_labels))

    def _arrays(self, X: sp.csr_matrix) -> tuple[Any, Any, np.ndarray]:
        return X.indptr, X.indices, X.data.astype(self.bias.dtype, copy=False)
