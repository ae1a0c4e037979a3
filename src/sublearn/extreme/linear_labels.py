"""What prediction needs of a linear model with very many labels, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.interruption import check
from sublearn.io.fields import AnyOf, Fields, Floats, Integers, Offsets, OrAbsent, Sparse
from sublearn.typing import State

__all__ = ["LabelLists", "LinearLabels", "is_small"]

_MOST_SHORT_IDS = 2**16
_SLAB_OPERATIONS = 5e8
_INTEGERS = {8: np.int8, 16: np.int16}
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, eq=False)
class LabelLists:
    """Weights by feature, as they are stored: those of `j` at offsets[j]:offsets[j + 1]."""

    offsets: np.ndarray  # int32 or int64
    labels: np.ndarray  # uint16, int32 or int64, increasing in each list
    values: np.ndarray  # weights, or integers of 8 or 16 bits
    scales: np.ndarray | None = None  # of features; times the integers, they are the weights

    @classmethod
    def of(cls, weights: sp.csr_matrix) -> LabelLists:
        """Shares the arrays of a CSR matrix with one row per feature."""
        if not weights.has_canonical_format:
            weights.sum_duplicates()
        return cls(weights.indptr, weights.indices, weights.data)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.offsets) - 1

    @property
    def is_csr(self) -> bool:
        """Whether SciPy can read the arrays as they are."""
        return self.scales is None and self.labels.dtype == self.offsets.dtype

    def to_csr(self, n_labels: int) -> sp.csr_matrix:
        """The weights as a matrix; shares the arrays where SciPy can read them."""
        values, labels, offsets = self.values, self.labels, self.offsets
        if labels.dtype == np.uint16:
            labels = labels.astype(offsets.dtype)
        # SciPy's loops trust the indices; a mapped file was not read before.
        _core.check_compressed(
            offsets, labels, self.n_features, n_labels, "weights.offsets", "weights.labels"
        )
        if offsets[-1] != len(labels):
            raise ValueError(f"weights.offsets must end at {len(labels)}, got {offsets[-1]}")
        if self.scales is not None:
            values = np.repeat(self.scales, np.diff(offsets)) * values.astype(self.scales.dtype)
        return sp.csr_matrix((values, labels, offsets), shape=(self.n_features, n_labels))

    def compress(self, n_labels: int, bits: int, prune: float) -> LabelLists:
        """The same lists in fewer bytes; see `LinearLabelClassifier.compress`."""
        weights = self.to_csr(n_labels)
        counts = np.diff(weights.indptr)
        if bits == 32:
            scales, values = None, weights.data.astype(np.float32)
        else:
            most = 2 ** (bits - 1) - 1
            scales = _largest(weights) / weights.dtype.type(most)
            # Where every weight of a feature is zero or too small to divide by, nothing is kept.
            divisors = np.repeat(np.where(scales > 0, scales, np.inf), counts)
            values = np.clip(np.rint(weights.data / divisors), -most, most).astype(_INTEGERS[bits])
        keep = (values != 0) & ~is_small(weights.data, prune)
        offsets = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])[weights.indptr]
        short = np.uint16 if n_labels <= _MOST_SHORT_IDS else np.int32
        return LabelLists(
            offsets.astype(weights.indptr.dtype),
            weights.indices[keep].astype(short),
            values[keep],
            scales,
        )


class LinearLabels:
    """Weights by feature and a bias per label; scores rows through inverted lists.

    A row visits the labels that share a feature with it, so its cost is the number of non-zero
    weights of its features, not `n_labels * n_features`, and less where upper bounds exclude most
    labels. The bounds are made when a row first asks for them and take memory: for features with
    more than a third of their weights at or below zero, the label and one byte per weight above.

    Opening a model reads its biases only. A list is checked when a row first needs it; a damaged
    one is a ValueError then. May be used by several threads at once.

    Parameters
    ----------
    weights : csr_matrix of shape (n_features, n_labels), or LabelLists
        Row `j` lists the labels that give feature `j` a weight.
    bias : ndarray of shape (n_labels,)
        Added to each score; float32 or float64, the type of scores.
    """

    #: What `to_state` gives. Lists are not looked at here, but when a row first needs them.
    FIELDS: ClassVar[Fields] = {
        "bias": Floats("scores", finite=True),
        "weights": OrAbsent(Sparse("features", "scores")),  # a file of sublearn 0.1
        "weights_offsets": OrAbsent(Offsets("features", "weights", is_lazy=True)),
        "weights_labels": OrAbsent(Integers("weights", low=None)),
        "weights_values": OrAbsent(AnyOf(Floats("weights"), Integers("weights", low=None))),
        "weights_scales": OrAbsent(Floats("features")),
    }

    def __init__(self, weights: sp.csr_matrix | LabelLists, bias: np.ndarray):
        self._csr = None if isinstance(weights, LabelLists) else weights
        lists = weights if isinstance(weights, LabelLists) else LabelLists.of(weights)
        # Lists are checked and bounded once, biases ranked once; the compiled code relies on it.
        for array in (lists.offsets, lists.labels, lists.values, bias):
            array.flags.writeable = False
        self._lists = lists
        self.bias = bias
        self._list_length = 1 + len(lists.labels) / max(1, lists.n_features)
        self._native = _core.linear_model(
            lists.offsets, lists.labels, lists.values, lists.scales, bias
        )

    def __reduce__(self) -> tuple[type[LinearLabels], tuple[LabelLists, np.ndarray]]:
        return LinearLabels, (self.lists, self.bias)

    @classmethod
    def from_state(cls, state: State) -> LinearLabels:
        """Take what `to_state` gave out of `state`."""
        bias = state.pop("bias")
        if "weights" in state:  # a file of sublearn 0.1
            return cls(state.pop("weights"), bias)
        offsets, labels, values = (
            state.pop(f"weights_{part}") for part in ("offsets", "labels", "values")
        )
        return cls(LabelLists(offsets, labels, values, state.pop("weights_scales", None)), bias)

    def to_state(self) -> dict[str, np.ndarray]:
        """Arrays to be saved, by name."""
        state = {
            "bias": self.bias,
            "weights_offsets": self.lists.offsets,
            "weights_labels": self.lists.labels,
            "weights_values": self.lists.values,
        }
        return state if self.lists.scales is None else state | {"weights_scales": self.lists.scales}

    @property
    def lists(self) -> LabelLists:
        """Weights by feature, as they are stored."""
        return self._lists

    @property
    def weights(self) -> sp.csr_matrix:
        """Weights of shape (n_features, n_labels); a new matrix each time if compressed."""
        if self._csr is not None:
            return self._csr
        csr = self.lists.to_csr(self.n_labels)
        if self.lists.is_csr:
            self._csr = csr
        return csr

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.bias)

    @property
    def work(self) -> int:
        """Weights and scores that `top_k` has read so far."""
        return self._native.work

    def compress(self, bits: int, prune: float) -> LinearLabels:
        """The same labels with smaller weights; see `LinearLabelClassifier.compress`."""
        lists = self.lists.compress(self.n_labels, bits, prune)
        bias = self.bias.astype(np.float32) if bits == 32 else self.bias
        return LinearLabels(lists, bias)

    def with_labels_of(self, other: LinearLabels, wanted: np.ndarray) -> LinearLabels:
        """The same model with the weights and biases that `other` has for the wanted labels."""
        if not wanted.any():
            return self
        parts = ((self.weights, ~wanted), (other.weights, wanted))
        weights = sum(part @ sp.diags(is_own.astype(part.dtype)) for part, is_own in parts)
        weights = sp.csr_matrix(weights)
        weights.eliminate_zeros()
        return LinearLabels(weights, np.where(wanted, other.bias, self.bias))

    def top_k(
        self, X: sp.csr_matrix, k: int, n_threads: int, effort: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of the `k` best labels of each row, best first, ties by lower id."""
        parts = self._by_slabs(self._native.top_k, X, k, effort, n_threads)
        if len(parts) == 1:
            return parts[0]
        ids, scores = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(scores)

    def scores(self, X: sp.csr_matrix, n_threads: int) -> np.ndarray:
        """Scores of all labels, dense, of shape (n_samples, n_labels)."""
        parts = self._by_slabs(self._native.scores, X, n_threads)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def above(self, X: sp.csr_matrix, threshold: float, n_threads: int) -> sp.csr_matrix:
        """Boolean matrix of the labels that score above `threshold`."""
        parts = self._by_slabs(self._native.above, X, threshold, n_threads)
        labels = np.concatenate([labels for _, labels in parts])
        counts = np.concatenate([np.diff(indptr) for indptr, _ in parts])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        ones = np.ones(len(labels), dtype=bool)
        return sp.csr_matrix((ones, labels, indptr), shape=(X.shape[0], self.n_labels))

    def _by_slabs(
        self, score: Callable[..., _Answer], X: sp.csr_matrix, *how: float
    ) -> Sequence[_Answer]:
        """Answers for rows that take some tenths of a second, so that Ctrl-C gets through."""
        n_samples = len(X.indptr) - 1
        n_operations = len(X.data) * self._list_length + n_samples * len(self.bias)
        if n_operations <= _SLAB_OPERATIONS:
            return [score(X.indptr, X.indices, X.data, *how)]
        n_rows = max(1, int(n_samples * _SLAB_OPERATIONS / n_operations))
        parts = []
        for first in range(0, n_samples, n_rows):
            check()
            indptr = X.indptr[first : first + n_rows + 1]
            entries = slice(indptr[0], indptr[-1])
            parts.append(score(indptr - indptr[0], X.indices[entries], X.data[entries], *how))
        return parts


def is_small(weights: np.ndarray, prune: float) -> np.ndarray:
    """Which weights have at most the size `prune`; that may be beyond the range of their type."""
    return np.abs(weights) <= min(prune, float(np.finfo(weights.dtype).max))


def _largest(weights: sp.csr_matrix) -> np.ndarray:
    """Largest absolute weight of each row, zero for an empty one."""
    largest = np.zeros(weights.shape[0], weights.dtype)
    is_used = np.diff(weights.indptr) > 0
    starts = weights.indptr[:-1][is_used]
    if len(starts):
        largest[is_used] = np.maximum.reduceat(np.abs(weights.data), starts)
    return largest
