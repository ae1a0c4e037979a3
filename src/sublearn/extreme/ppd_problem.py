"""A PPD-Sparse fit as the core takes it: rows, labels and weights, solved some labels at a time.

A sample's loss has the factor C times its weight, times the weight of the label if it carries it.
What weighs nothing leaves the problem, and extremes are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.extreme.ppd_increments import order_of, padded
from sublearn.fitting.label_weights import as_label_weights
from sublearn.io.fields import take_parts
from sublearn.typing import ClassWeightLike, JsonObject, State, WeightsLike
from sublearn.validation import EncodedLabels, LabelKind, check_sample_weight

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    _NativeProblem: TypeAlias = _core.PPDProblemFloat32 | _core.PPDProblemFloat64

__all__ = [
    "REPORTS",
    "Chunk",
    "PPDProblem",
    "Weighed",
    "find_twins",
    "refuse_extreme_weights",
    "weigh",
]

#: How each label went, as the core reports it.
REPORTS = {
    **dict.fromkeys(("primal", "dual", "seconds"), np.float64),
    **dict.fromkeys(("work", "nnz_primal", "nnz_dual", "n_iter"), np.int64),
    "converged": np.uint8,
}
_REPORT = "reports."  # heads the names of such columns in a file
_LANES = {np.dtype(np.float32): 16, np.dtype(np.float64): 8}  # labels that are solved together


# --- weights -----------------------------------------------------------------------------------


class Weighed(NamedTuple):
    """A problem whose samples and labels all have positive weights; None where all are 1."""

    X: sp.csr_matrix
    labels: EncodedLabels
    sample_weight: np.ndarray | None
    class_weight: np.ndarray | None


def weigh(
    X: sp.csr_matrix,
    labels: EncodedLabels,
    sample_weight: WeightsLike | None,
    class_weight: ClassWeightLike,
    known: np.ndarray | None,
    *,
    estimator_name: str,
) -> Weighed:
    """The problem without what weighs nothing.

    `known` are further labels that no sample carries here, which only count in `class_weight`. Two
    classes of a 1-D `y` become one problem, the second against the first, and their weights weights
    of samples.
    """
    of_samples = of_labels = None
    if sample_weight is not None:
        of_samples = check_sample_weight(sample_weight, X.shape[0], estimator_name=estimator_name)
        X, labels, of_samples = _without_weightless(X, labels, of_samples)
    if class_weight is not None:
        of_labels = _label_weights(labels, class_weight, known, estimator_name)
    if labels.kind is not LabelKind.BINARY:
        if of_labels is not None:
            labels = _without_entries(labels, np.repeat(of_labels == 0, labels.counts()))
            of_labels = np.where(of_labels > 0, of_labels, 1.0)
        return Weighed(X, labels, of_samples, of_labels)
    first, last = labels.indptr[1:]
    second = replace(
        labels,
        indptr=np.array([0, last - first], dtype=np.int64),
        rows=labels.rows[first:last],
        classes=labels.classes[1:],
    )
    if of_labels is None:
        return Weighed(X, second, of_samples, None)
    both = np.full(X.shape[0], of_labels[0])
    both[second.rows] = of_labels[1]
    if of_samples is not None:
        with np.errstate(over="ignore"):  # infinity is refused later, by a sentence
            both *= of_samples
    if not both.any():
        raise ValueError(
            f"{estimator_name}: sample_weight and class_weight must leave a sample of a weight "
            "above zero, got none"
        )
    return Weighed(*_without_weightless(X, second, both), None)


def _label_weights(
    labels: EncodedLabels,
    class_weight: ClassWeightLike,
    known: np.ndarray | None,
    estimator_name: str,
) -> np.ndarray | None:
    if known is None:
        return as_label_weights(class_weight, labels, estimator_name=estimator_name)
    joined = padded(known, labels)
    weights = as_label_weights(class_weight, joined, estimator_name=estimator_name)
    is_new = order_of(known, labels.classes) >= len(known)
    return None if weights is None else weights[is_new]


def _without_weightless(
    X: sp.csr_matrix, labels: EncodedLabels, sample_weight: np.ndarray | None
) -> tuple[sp.csr_matrix, EncodedLabels, np.ndarray | None]:
    """Samples of weight zero left out: the solver divides by the others."""
    if sample_weight is None or (sample_weight > 0).all():
        return X, labels, sample_weight
    keep = sample_weight > 0
    position = (np.cumsum(keep) - 1).astype(labels.rows.dtype)
    labels = _without_entries(labels, ~keep[labels.rows])
    labels = replace(labels, rows=position[labels.rows], n_samples=int(keep.sum()))
    return X[keep], labels, sample_weight[keep]


def _without_entries(labels: EncodedLabels, is_left_out: np.ndarray) -> EncodedLabels:
    ends = np.concatenate([[0], np.cumsum(~is_left_out)])[labels.indptr]
    return replace(labels, indptr=ends.astype(np.int64), rows=labels.rows[~is_left_out])


def refuse_extreme_weights(problem: Weighed, C: float, *, estimator_name: str) -> None:
    """The dual needs 1 / (2 C weight), which must be neither zero nor infinite."""
    smallest, largest = 1.0, 1.0
    given = [w for w in (problem.sample_weight, problem.class_weight) if w is not None]
    for weights in given:
        if len(weights):
            smallest *= min(1.0, float(weights.min()))
            largest *= max(1.0, float(weights.max()))
    name, dtype = estimator_name, problem.X.dtype
    _refuse_out_of_range(f"{name}: sample_weight times class_weight", dtype, smallest, largest)
    subject = f"{name}.C times the weights" if given else f"{name}.C"
    highest = C * largest if largest > 1 else 1.0  # C alone may be as large as it likes
    _refuse_out_of_range(subject, dtype, C * smallest, highest)


def _refuse_out_of_range(subject: str, dtype: np.dtype, smallest: float, largest: float) -> None:
    """Raise if the numbers between two bounds have no inverse, or no value, in a precision."""
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    if smallest < tiny:
        raise ParameterError(
            f"{subject} must be at least {tiny:.3g} for {dtype} data, got {smallest:g}"
        )
    if largest > huge:
        raise ParameterError(
            f"{subject} must be at most {huge:.3g} for {dtype} data, got {largest:g}"
        )


# --- solved labels -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chunk:
    """Solved labels: their weights as a CSR matrix with one row per label, and how each went."""

    labels: np.ndarray  # int32; which rows of the matrix are whose
    indptr: np.ndarray
    features: np.ndarray
    values: np.ndarray
    bias: np.ndarray
    reports: dict[str, np.ndarray]  # the columns `REPORTS`

    def is_sound(self, n_labels: int, n_features: int, dtype: DTypeLike) -> bool:
        """Whether the arrays fit together and are of a problem of this size and type.

        Those of a file may not: nothing is taken for granted.
        """
        numbers = {"labels": np.int32, "indptr": np.int64, "features": np.int32,
                   "values": dtype, "bias": dtype}  # fmt: skip
        types = numbers | {f"{_REPORT}{name}": kind for name, kind in REPORTS.items()}
        arrays = self.to_arrays()
        if {name: array.dtype for name, array in arrays.items()} != types:
            return False
        if any(array.ndim != 1 for array in arrays.values()):
            return False
        n, n_weights = len(self.labels), len(self.features)
        sizes = [len(column) for column in (self.bias, *self.reports.values())]
        numbers_of = [array for array in arrays.values() if array.dtype.kind == "f"]
        return (
            n > 0
            and 0 <= self.labels.min() <= self.labels.max() < n_labels
            and len(self.indptr) == n + 1
            and (self.indptr[0], self.indptr[-1]) == (0, n_weights)
            and bool((self.indptr[1:] >= self.indptr[:-1]).all())
            and len(self.values) == n_weights
            and (n_weights == 0 or 0 <= self.features.min() <= self.features.max() < n_features)
            and set(sizes) == {n}
            and all(bool(np.isfinite(array).all()) for array in numbers_of)
        )

    def later(self, seconds: float) -> Chunk:
        """The same chunk with times that count from so much earlier."""
        times = {"seconds": self.reports["seconds"] + seconds}
        return replace(self, reports=self.reports | times)

    def without_weights(self) -> Chunk:
        """Labels, biases and reports in memory; the weights are left where they are."""
        none = (self.indptr[:1] * 0, self.features[:0].copy(), self.values[:0].copy())
        reports = {name: np.array(column) for name, column in self.reports.items()}
        return Chunk(np.array(self.labels), *none, np.array(self.bias), reports)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as named arrays, for a file."""
        arrays = {name: value for name, value in vars(self).items() if name != "reports"}
        return arrays | {f"{_REPORT}{name}": column for name, column in self.reports.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Chunk:
        """Inverse of `to_arrays`."""
        rest = dict(arrays)
        return cls(reports=take_parts(rest, _REPORT), **rest)


class PPDProblem:
    """Data and labels of one fit, ready to be solved label by label.

    The first four are those of `Weighed`; `start` has weights of shape (n_labels, n_features) and
    biases to start from. `held` has what rows seen earlier add to v, of the same shape, and to the
    biases: their duals stay as they are, and labels without a row here learn from the others.
    """

    def __init__(
        self,
        X: sp.csr_matrix,
        labels: EncodedLabels,
        sample_weight: np.ndarray | None = None,
        class_weight: np.ndarray | None = None,
        start: tuple[sp.csr_matrix, np.ndarray] | None = None,
        held: tuple[sp.csr_matrix, np.ndarray] | None = None,
    ):
        self._data = (X, labels.indptr, labels.rows, sample_weight, class_weight)
        self._start, self._held = start, held
        self._columns: sp.csc_matrix | None = getattr(X, "stored_columns", None)
        # Labels of similar size go together, and the most expensive first.
        order = np.argsort(-labels.counts(), kind="stable").astype(np.int32)
        self._twins = np.arange(len(order))
        if start is None and held is None:
            self._twins = find_twins(labels, class_weight)
        self.order = order[self._twins[order] == order]
        self.n_labels, self.n_features = labels.n_classes, X.shape[1]
        self._is_solved = np.zeros(self.n_labels, dtype=bool)
        self._is_solved[self.order] = True
        self.dtype = X.dtype
        self.n_lanes = _LANES[X.dtype]

    def __getstate__(self) -> State:
        """For another process: with the columns of X, so that no one makes a copy of them."""
        state = {name: value for name, value in self.__dict__.items() if name != "_native"}
        return state | {"_columns": self._data[0].tocsc() if self._columns is None
                        else self._columns}  # fmt: skip

    @cached_property
    def _native(self) -> _NativeProblem:
        X, indptr, rows, sample_weight, class_weight = self._data

        def cast(weights: np.ndarray | None) -> np.ndarray | None:
            return None if weights is None else weights.astype(X.dtype)

        lists = None if self._columns is None else _lists_of(self._columns)
        native = _core.ppd_problem(
            (X.indptr, X.indices, X.data), X.shape[1], (indptr, rows), cast(sample_weight),
            cast(class_weight), lists,
        )  # fmt: skip
        if self._start is not None:
            native.start_from(*_numbers_by_label(*self._start, X.dtype))
        if self._held is not None:
            native.hold(*_numbers_by_label(*self._held, X.dtype))
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

    @property
    def counts(self) -> np.ndarray:
        """Samples of each label."""
        return np.diff(self._data[1])

    def block_costs(self) -> np.ndarray:
        """Estimates of what each block costs, up to a factor.

        On generated documents blocks of 16, 64, 307 and 3743 positives take 10, 30, 140 and 240
        ms: about the root of their number, since a label with many meets fewer new rows for each.
        """
        counts = self.counts[self.order].astype(np.float64)
        return np.sqrt(1.0 + np.add.reduceat(counts, np.arange(0, len(counts), self.n_lanes)))

    def is_answer(self, part: slice, chunk: Chunk) -> bool:
        """Whether a sound chunk from a file can be what `solve` gave for this part."""
        return np.array_equal(chunk.labels, self._members(self.order[part])[0])

    def solved_of(self, chunk: Chunk) -> np.ndarray:
        """The labels of a sound chunk that were solved, without those that are twins of one."""
        return chunk.labels[self._is_solved[chunk.labels]]

    def solve(self, part: slice, settings: JsonObject, monitor: _core.Monitor) -> Chunk:
        """Solve the labels `order[part]`; the chunk holds their twins as well.

        `settings` are `loss`, `C`, and the fields of the core's `PPDSettings` by name.
        """
        labels, native = self.order[part], _core.PPDSettings()
        for name in settings.keys() - {"loss", "C"}:
            setattr(native, name, settings[name])
        (indptr, features, values), bias, reports = self._native.solve(
            labels, self.first_block(part), settings["loss"], settings["C"], native, monitor
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


def _numbers_by_label(
    matrix: sp.csr_matrix, bias: np.ndarray, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A row per label and a bias each, in the types of the core."""
    indptr, features = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    values, bias = (numbers.astype(dtype, copy=False) for numbers in (matrix.data, bias))
    return indptr, features, values, bias


def _lists_of(columns: sp.csc_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverted lists in the types of the core."""
    indptr = columns.indptr.astype(np.int64, copy=False)
    return indptr, columns.indices.astype(np.int32, copy=False), columns.data


def find_twins(labels: EncodedLabels, class_weight: np.ndarray | None = None) -> np.ndarray:
    """For each label the first one with the same rows and weight: one problem, solved once.

    Rare labels often stand together: of 128,000 labels on 50,000 generated documents 56,000 have
    the rows of another one.
    """
    counts = labels.counts()
    mark = np.random.default_rng(0).integers(0, 2**63, labels.n_samples, dtype=np.uint64)
    sums = np.zeros(len(labels.rows) + 1, dtype=np.uint64)
    np.cumsum(mark[labels.rows], out=sums[1:])
    sums = sums[labels.indptr[1:]] - sums[labels.indptr[:-1]]  # wraps around, as it should
    weights = np.ones(len(counts)) if class_weight is None else class_weight
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
