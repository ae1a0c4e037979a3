"""A PPD-Sparse fit cut into chunks of labels, and the chunks put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.trace import Trace
from sublearn.validation import EncodedLabels

__all__ = [
    "Chunk",
    "PPDProblem",
    "find_twins",
    "gather_reports",
    "gather_weights",
    "joined",
    "trace_of",
]

REPORTS = {
    **dict.fromkeys(("primal", "dual", "seconds"), np.float64),
    **dict.fromkeys(("work", "nnz_primal", "nnz_dual", "n_iter"), np.int64),
    "converged": np.uint8,
}
_TRACE_ROWS = 100
_SUMMED = ("primal", "dual", "nnz_primal", "nnz_dual", "work")
_LANES = {np.dtype(np.float32): 16, np.dtype(np.float64): 8}  # labels that are solved together


@dataclass(frozen=True, eq=False)
class Chunk:
    """Solved labels, in the order of `labels`.

    Parameters
    ----------
    labels : ndarray of int32
        Which labels.
    indptr, features, values : ndarray
        Their weights: a CSR matrix with one row per label.
    bias : ndarray
        Their biases.
    reports : dict of str to ndarray
        How each label went; the columns `REPORTS` of the compiled core.
    """

    labels: np.ndarray
    indptr: np.ndarray
    features: np.ndarray
    values: np.ndarray
    bias: np.ndarray
    reports: dict[str, np.ndarray]

    def is_sound(self, n_labels: int, n_features: int, dtype: Any) -> bool:
        """Whether the arrays fit together and are of a problem of this size and type.

        Those of a file may not: nothing is taken for granted.
        """
        numbers = {"labels": np.int32, "indptr": np.int64, "features": np.int32,
                   "values": dtype, "bias": dtype}  # fmt: skip
        types = numbers | {f"reports.{name}": kind for name, kind in REPORTS.items()}
        arrays = self.to_arrays()
        if {name: array.dtype for name, array in arrays.items()} != types:
            return False
        if any(array.ndim != 1 for array in arrays.values()):
            return False
        n_weights = len(self.features)
        return (
            len(self.labels) > 0
            and 0 <= self.labels.min() <= self.labels.max() < n_labels
            and len(self.indptr) == len(self.labels) + 1
            and (self.indptr[0], self.indptr[-1]) == (0, n_weights)
            and bool((self.indptr[1:] >= self.indptr[:-1]).all())
            and len(self.values) == n_weights
            and (n_weights == 0 or 0 <= self.features.min() <= self.features.max() < n_features)
            and all(
                len(column) == len(self.labels) for column in (self.bias, *self.reports.values())
            )
            and all(
                bool(np.isfinite(array).all())
                for array in arrays.values()
                if array.dtype.kind == "f"
            )
        )

    def later(self, seconds: float) -> Chunk:
        """The same chunk with times that count from so much earlier."""
        times = {"seconds": self.reports["seconds"] + seconds}
        return replace(self, reports=self.reports | times)

    def without_weights(self) -> Chunk:
        """Labels, biases and reports in memory; the weights are left where they are."""
        return Chunk(
            labels=np.array(self.labels),
            indptr=np.zeros(1, dtype=self.indptr.dtype),
            features=np.empty(0, dtype=self.features.dtype),
            values=np.empty(0, dtype=self.values.dtype),
            bias=np.array(self.bias),
            reports={name: np.array(column) for name, column in self.reports.items()},
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as named arrays, for a file."""
        fields = ("labels", "indptr", "features", "values", "bias")
        arrays = {name: getattr(self, name) for name in fields}
        return arrays | {f"reports.{name}": column for name, column in self.reports.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Chunk:
        """Inverse of `to_arrays`."""
        reports = {
            name.removeprefix("reports."): column
            for name, column in arrays.items()
            if name.startswith("reports.")
        }
        return cls(**{k: v for k, v in arrays.items() if not k.startswith("reports.")},
                   reports=reports)  # fmt: skip


class PPDProblem:
    """Data and labels of one fit, ready to be solved label by label.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Features as `check_features` makes them.
    labels : EncodedLabels
        The rows of each label.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights of the samples' losses.
    label_weight : ndarray of shape (n_labels,) or None
        Positive; a further factor for the positives of a label.
    start : csr_matrix of shape (n_labels, n_features) and ndarray, or None
        Weights and biases to start from.
    """

    def __init__(
        self,
        X: sp.csr_matrix,
        labels: EncodedLabels,
        sample_weight: np.ndarray | None = None,
        label_weight: np.ndarray | None = None,
        start: tuple[sp.csr_matrix, np.ndarray] | None = None,
    ):
        self._data = (X, labels.indptr, labels.rows, sample_weight, label_weight, start)
        self._columns: sp.csc_matrix | None = None
        # Labels of similar size go together, and the most expensive first.
        order = np.argsort(-labels.counts(), kind="stable").astype(np.int32)
        self._twins = find_twins(labels, label_weight) if start is None else np.arange(len(order))
        self.order = order[self._twins[order] == order]
        self.n_labels, self.n_features = labels.n_classes, X.shape[1]
        self._is_solved = np.zeros(self.n_labels, dtype=bool)
        self._is_solved[self.order] = True
        self.dtype = X.dtype
        self.n_lanes = _LANES[X.dtype]

    def __getstate__(self) -> dict[str, Any]:
        """For another process: with the columns of X, so that nobody makes a copy of them."""
        state = {name: value for name, value in self.__dict__.items() if name != "_native"}
        return state | {"_columns": self._data[0].tocsc() if self._columns is None
                        else self._columns}  # fmt: skip

    @cached_property
    def _native(self) -> Any:
        X, indptr, rows, sample_weight, label_weight, start = self._data

        def cast(weights: np.ndarray | None) -> np.ndarray | None:
            return None if weights is None else weights.astype(X.dtype)

        lists = None if self._columns is None else _lists_of(self._columns)
        native = _core.ppd_problem(
            (X.indptr, X.indices, X.data), X.shape[1], (indptr, rows), cast(sample_weight),
            cast(label_weight), lists,
        )  # fmt: skip
        if start is not None:
            weights, bias = start
            native.start_from(
                weights.indptr.astype(np.int64), weights.indices.astype(np.int32),
                weights.data.astype(X.dtype, copy=False), bias.astype(X.dtype, copy=False),
            )  # fmt: skip
        return native

    @property
    def n_blocks(self) -> int:
        """Blocks of labels that are solved side by side."""
        return -(-len(self.order) // self.n_lanes)

    def part(self, first: int, last: int) -> slice:
        """The labels of the blocks `first` to `last - 1`."""
        return slice(first * self.n_lanes, min(last * self.n_lanes, len(self.order)))

    def first_block(self, part: slice) -> int:
        """The block that a part begins with."""
        return part.start // self.n_lanes

    def block_costs(self) -> np.ndarray:
        """Estimates of what each block costs, up to a factor.

        On generated documents blocks of 16, 64, 307 and 3743 positives take 10, 30, 140 and 240
        ms: about the root of their number, since a label with many meets fewer new rows for each.
        """
        counts = np.diff(self._data[1])[self.order].astype(np.float64)
        return np.sqrt(1.0 + np.add.reduceat(counts, np.arange(0, len(counts), self.n_lanes)))

    def is_answer(self, part: slice, chunk: Chunk) -> bool:
        """Whether a sound chunk from a file can be what `solve` gave for this part."""
        return np.array_equal(chunk.labels, self._members(self.order[part])[0])

    def solved_of(self, chunk: Chunk) -> np.ndarray:
        """The labels of a sound chunk that were solved, without those that are twins of one."""
        return chunk.labels[self._is_solved[chunk.labels]]

    def solve(self, part: slice, loss: str, C: float, settings: Any, monitor: Any) -> Chunk:
        """Solve the labels `order[part]`; the chunk holds their twins as well."""
        labels = self.order[part]
        (indptr, features, values), bias, reports = self._native.solve(
            labels, self.first_block(part), loss, C, settings, monitor
        )
        return self._with_twins(Chunk(labels, indptr, features, values, bias, reports))

    def _members(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each label followed by those that carry the same problem, and whose place they share."""
        place = np.full(len(self._twins), -1)
        place[labels] = np.arange(len(labels))
        members = np.flatnonzero(place[self._twins] >= 0)
        at = place[self._twins[members]]
        return members[np.argsort(at, kind="stable")], np.sort(at)

    def _with_twins(self, chunk: Chunk) -> Chunk:
        """A chunk in which labels that carry the same problem have the same solution."""
        members, at = self._members(chunk.labels)
        if len(members) == len(chunk.labels):
            return chunk
        lengths = np.diff(chunk.indptr)[at]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(indptr[-1]) + np.repeat(chunk.indptr[at] - indptr[:-1], lengths)
        reports = {name: column[at] for name, column in chunk.reports.items()}
        reports["work"] = np.where(self._twins[members] == members, reports["work"], 0)
        return Chunk(
            members.astype(np.int32), indptr, chunk.features[entries], chunk.values[entries],
            chunk.bias[at], reports,
        )  # fmt: skip


def _lists_of(columns: sp.csc_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverted lists in the types of the core."""
    indptr = columns.indptr.astype(np.int64, copy=False)
    return indptr, columns.indices.astype(np.int32, copy=False), columns.data


def find_twins(labels: EncodedLabels, label_weight: np.ndarray | None = None) -> np.ndarray:
    """For each label the first one with the same rows and weight: one problem, solved once.

    Rare labels often stand together: of 128,000 labels on 50,000 generated documents 56,000 have
    the rows of another one.
    """
    counts = labels.counts()
    mark = np.random.default_rng(0).integers(0, 2**63, labels.n_samples, dtype=np.uint64)
    sums = np.zeros(len(labels.rows) + 1, dtype=np.uint64)
    np.cumsum(mark[labels.rows], out=sums[1:])
    sums = sums[labels.indptr[1:]] - sums[labels.indptr[:-1]]  # wraps around, as it should
    weights = np.ones(len(counts)) if label_weight is None else label_weight
    twins = np.arange(len(counts))
    order = np.lexsort((twins, weights, counts, sums))
    columns = (sums[order], counts[order], weights[order])
    is_alike = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    known: dict[tuple[bytes, float], int] = {}
    for at in np.flatnonzero(is_alike):  # equal sums are a hint only
        for k in order[at : at + 2]:
            rows = labels.rows[labels.indptr[k] : labels.indptr[k + 1]]
            twins[k] = known.setdefault((rows.tobytes(), float(weights[k])), int(k))
    return twins


def gather_reports(chunks: Sequence[Chunk] | Iterator[Chunk], n_labels: int) -> dict[str, Any]:
    """Report columns of all labels, and their biases as the column `bias`, by label.

    Labels in no chunk have zeros, and a bias of -1.
    """
    columns: dict[str, np.ndarray] = {}
    for chunk in chunks:
        for name, values in (chunk.reports | {"bias": chunk.bias}).items():
            if name not in columns:
                columns[name] = np.full(n_labels, -1 if name == "bias" else 0, dtype=values.dtype)
            columns[name][chunk.labels] = values
    return columns


def joined(chunks: Sequence[Chunk], problem: PPDProblem) -> Chunk:
    """One chunk with the labels of several; labels of none have no weights, as after a stop."""
    if len(chunks) == 1 and len(chunks[0].labels) == problem.n_labels:
        return chunks[0]
    first = chunks[0]
    is_there = np.zeros(problem.n_labels, dtype=bool)
    for chunk in chunks:
        is_there[chunk.labels] = True
    others = np.flatnonzero(~is_there).astype(first.labels.dtype)
    lengths = [np.diff(chunk.indptr) for chunk in chunks] + [np.zeros(len(others), dtype=np.int64)]
    rest = np.full(len(others), -1, dtype=first.bias.dtype)
    return Chunk(
        np.concatenate([*(chunk.labels for chunk in chunks), others]),
        np.concatenate([[0], *lengths]).cumsum(),
        np.concatenate([chunk.features for chunk in chunks]),
        np.concatenate([chunk.values for chunk in chunks]),
        np.concatenate([*(chunk.bias for chunk in chunks), rest]),
        {},
    )


def gather_weights(chunk: Chunk, n_features: int) -> sp.csr_matrix:
    """The weights of a chunk that holds all labels, one row per feature."""
    place = np.empty(len(chunk.labels), dtype=np.int32)
    place[chunk.labels] = np.arange(len(place), dtype=np.int32)
    indptr, labels, values = _core.lists_by_feature(
        chunk.indptr, chunk.features, chunk.values, place, n_features
    )
    return sp.csr_matrix((values, labels, indptr), shape=(n_features, len(place)))


def trace_of(reports: dict[str, np.ndarray]) -> Trace:
    """Running totals in the order in which labels were finished, at most `_TRACE_ROWS` rows."""
    order = np.argsort(reports["seconds"], kind="stable")
    order = order[reports["n_iter"][order] > 0]
    n_rows = min(_TRACE_ROWS, len(order))
    ends = np.linspace(0, len(order), n_rows + 1).astype(int)[1:] - 1
    totals = {name: np.cumsum(reports[name][order])[ends] for name in _SUMMED}
    gap = np.maximum(totals["primal"] - totals["dual"], 0.0)
    return Trace(
        {
            "seconds": reports["seconds"][order][ends],
            "labels": ends + 1,
            "objective": totals["primal"],
            "certificate": gap / np.where(totals["primal"] > 0, totals["primal"], 1.0),
            "nnz_primal": totals["nnz_primal"],
            "nnz_dual": totals["nnz_dual"],
            "work": totals["work"],
        }
    )
