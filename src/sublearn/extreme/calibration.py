"""From the scores of labels to probabilities, learnt on rows that the model has not seen.

A label's score is a margin, not a probability. With enough held-out rows a label gets a map of its
own, a sigmoid or an isotonic line; labels with too few share one map, learnt from the pairs of
score and truth of all of them. The scores of different labels may be thrown together because each
label's problem asks for the same margins, 1 for its rows and -1 for all others. The shared map is
isotonic in both cases: with so many pairs no shape has to be assumed, and the easy negatives of
thousands of labels would bend a sigmoid away from the few scores that matter.

Most scores are not computed at all: a row that shares no feature with a label's weights scores the
label's bias, so all such rows are one point with a count. The cost is that of the sparse product of
rows and weights, and memory that of a block of labels.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from sublearn.io.fields import Fields, Flags, Floats, Integers, Offsets, check_fields
from sublearn.typing import State
from sublearn.validation import OneOf

__all__ = ["Calibration", "IsotonicCalibration", "SigmoidCalibration", "fit_calibration"]

_BLOCK = 2**22  # pairs of row and label looked at together
_MAX_NEWTON = 100
_MAX_HALVINGS = 40
_LARGEST = 1e100  # scores beyond are as certain, and a slope of zero times infinity is no number
_KEPT_BITS = 12  # of a score's mantissa, where the scores of many labels are pooled


class Calibration(abc.ABC):
    """A non-decreasing map from score to probability for each label.

    Attributes
    ----------
    method : str
        "sigmoid" or "isotonic".
    is_pooled : ndarray of bool, shape (n_labels,)
        Labels that had too few held-out rows and share one map.
    """

    method: ClassVar[str]
    FIELDS: ClassVar[Fields]  # of the arrays that a file holds, which are those of the class
    is_pooled: np.ndarray

    @abc.abstractmethod
    def probability(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Probability of each label id at its score; both arrays of one shape."""

    def to_state(self) -> State:
        """The arrays that `from_state` takes, and the method."""
        return {"method": self.method} | {name: getattr(self, name) for name in self.FIELDS}

    @staticmethod
    def from_state(state: State, n_labels: int) -> Calibration:
        """Inverse of `to_state`, for so many labels; what does not fit is a ValueError."""
        cls = SigmoidCalibration if "slope" in state else IsotonicCalibration
        check_fields(state, {"method": OneOf(cls.method), **cls.FIELDS}, {"labels": n_labels})
        return cls(**{name: value for name, value in state.items() if name != "method"})


@dataclass(frozen=True, eq=False)
class SigmoidCalibration(Calibration):
    r"""Platt's map :math:`1 / (1 + \exp(-(a_k s + b_k)))` of the score :math:`s` of label k.

    Parameters
    ----------
    slope, offset : ndarray of shape (n_labels,)
        :math:`a_k \ge 0` and :math:`b_k`; 0 for labels that share the isotonic line.
    knot_score, knot_probability : ndarray
        The line that labels with too few rows share; empty if there are none.
    is_pooled : ndarray of bool, shape (n_labels,)
        Labels that share it.
    """

    method: ClassVar[str] = "sigmoid"
    FIELDS: ClassVar[Fields] = {
        "slope": Floats("labels"),
        "offset": Floats("labels"),
        "knot_score": Floats("knots"),
        "knot_probability": Floats("knots"),
        "is_pooled": Flags("labels"),
    }
    slope: np.ndarray
    offset: np.ndarray
    knot_score: np.ndarray
    knot_probability: np.ndarray
    is_pooled: np.ndarray

    def __post_init__(self) -> None:
        if self.is_pooled.any() and not len(self.knot_score):
            raise ValueError("knot_score must have knots where is_pooled is true, got none")

    def probability(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Probability of each label id at its score; both arrays of one shape."""
        scores = np.clip(scores.astype(np.float64), -_LARGEST, _LARGEST)
        found = expit(self.slope[labels] * scores + self.offset[labels])
        shares = self.is_pooled[labels]
        if shares.any():
            found[shares] = np.interp(scores[shares], self.knot_score, self.knot_probability)
        return found


@dataclass(frozen=True, eq=False)
class IsotonicCalibration(Calibration):
    """Isotonic regression of truth on score: lines between knots, constant outside of them.

    Parameters
    ----------
    curve_of : ndarray of int, shape (n_labels,)
        The curve of each label.
    curve_starts : ndarray of int, shape (n_curves + 1,)
        The knots of curve `c` are ``curve_starts[c]`` to ``curve_starts[c + 1]``.
    knot_score, knot_probability : ndarray
        Both increase within a curve.
    is_pooled : ndarray of bool, shape (n_labels,)
        Labels that share one curve.
    """

    method: ClassVar[str] = "isotonic"
    FIELDS: ClassVar[Fields] = {
        "curve_starts": Offsets("curves", "knots"),
        "curve_of": Integers("labels", high="curves"),
        "knot_score": Floats("knots"),
        "knot_probability": Floats("knots"),
        "is_pooled": Flags("labels"),
    }
    curve_of: np.ndarray
    curve_starts: np.ndarray
    knot_score: np.ndarray
    knot_probability: np.ndarray
    is_pooled: np.ndarray

    def __post_init__(self) -> None:
        if not (self.curve_starts[1:] > self.curve_starts[:-1]).all():
            raise ValueError("curve_starts must give each curve a knot, got a curve without")

    def probability(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Probability of each label id at its score; both arrays of one shape."""
        curves = self.curve_of[labels]
        first, last = self.curve_starts[curves], self.curve_starts[curves + 1] - 1
        right = np.clip(self._first_knot_above(curves, scores), first, last)
        left = np.maximum(right - 1, first)
        x0, x1 = self.knot_score[left], self.knot_score[right]
        y0, y1 = self.knot_probability[left], self.knot_probability[right]
        width = np.where(x1 > x0, x1 - x0, 1.0)
        return y0 + np.clip((scores - x0) / width, 0.0, 1.0) * (y1 - y0)

    def _first_knot_above(self, curves: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """One binary search for all: complex numbers are ordered by real part, then imaginary."""
        ids = np.repeat(np.arange(len(self.curve_starts) - 1), np.diff(self.curve_starts))
        knots = _as_complex(ids, self.knot_score)
        return np.searchsorted(knots, _as_complex(curves, scores), side="right")


def _as_complex(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Unlike ``real + 1j * imaginary`` right for infinite numbers too."""
    found = np.empty(np.shape(imaginary), dtype=np.complex128)
    found.real, found.imag = real, imaginary
    return found


def fit_calibration(
    X: sp.csr_matrix,
    weights: sp.csr_matrix,
    bias: np.ndarray,
    truth: sp.spmatrix,
    *,
    method: str,
    min_positives: int,
) -> Calibration:
    """Learn the maps of all labels, "sigmoid" or "isotonic", from held-out rows.

    `weights` of shape (n_features, n_labels) and `bias` are those of the model, `truth` of shape
    (n_samples, n_labels) has the labels that the rows carry. A label that fewer than
    `min_positives` rows carry, or do not carry, is pooled with the other such labels.
    """
    counts = np.asarray(truth.sum(axis=0)).ravel()
    is_pooled = np.minimum(counts, X.shape[0] - counts) < min_positives
    fit = {"sigmoid": _fit_sigmoid, "isotonic": _fit_isotonic}[method]
    return fit(_score_in_blocks(X, weights, bias, truth), is_pooled)


# --- held-out scores -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Groups:
    """Numbers of several labels in one array, those of the i-th from ``starts[i]`` on."""

    starts: np.ndarray
    n: int

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(np.append(self.starts, self.n))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Of each label's values."""
        return np.add.reduceat(values, self.starts) if len(self.starts) else np.zeros(0)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values per label, in the last axis, repeated for each of its numbers."""
        return np.repeat(values, self.lengths, axis=-1)

    def keep(self, wanted: np.ndarray) -> tuple[_Groups, np.ndarray]:
        """The groups where `wanted` is true, and which numbers are theirs."""
        lengths = self.lengths[wanted]
        starts = np.cumsum(lengths) - lengths
        return _Groups(starts, int(lengths.sum())), self.spread(wanted)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Scores of some labels, with the number of rows that carry and do not carry the label there.

    The first pair of a label is its bias.
    """

    labels: np.ndarray
    groups: _Groups
    scores: np.ndarray
    n_pos: np.ndarray
    n_neg: np.ndarray

    def keep(self, wanted: np.ndarray) -> _Pairs:
        """The pairs of the labels where `wanted` is true."""
        groups, entries = self.groups.keep(wanted)
        columns = (column[entries] for column in (self.scores, self.n_pos, self.n_neg))
        return _Pairs(self.labels[wanted], groups, *columns)


def _score_in_blocks(
    X: sp.csr_matrix, weights: sp.csr_matrix, bias: np.ndarray, truth: sp.spmatrix
) -> Iterator[_Pairs]:
    """Blocks of labels, one after another.

    Everything is turned by label once: a block is then a cut of arrays, and its products come out
    by label, whatever the number of features, rows and other labels.
    """
    n_rows, n_labels = truth.shape
    by_feature = sp.csr_matrix(X.T)  # (n_features, n_samples)
    by_label, truth_by_label = sp.csr_matrix(weights.T), sp.csr_matrix(truth.T)
    step = max(1, _BLOCK // n_rows)
    for start in range(0, n_labels, step):
        stop = min(start + step, n_labels)
        products = by_label[start:stop] @ by_feature
        yield _pairs(products, bias[start:stop], truth_by_label[start:stop].toarray(), start)


def _pairs(products: sp.csr_matrix, bias: np.ndarray, truth: np.ndarray, first: int) -> _Pairs:
    """Rows that no stored product reaches are one pair at the head of each label's pairs."""
    n_labels, n_rows = truth.shape
    n_touched = np.diff(products.indptr)
    labels = np.repeat(np.arange(n_labels), n_touched)
    is_pos = truth[labels, products.indices].astype(np.float64)
    n_pos = truth.sum(axis=1) - np.bincount(labels, is_pos, n_labels)
    heads = products.indptr[:-1] + np.arange(n_labels)
    is_head = np.zeros(len(labels) + n_labels, dtype=bool)
    is_head[heads] = True

    def headed(of_heads: np.ndarray, others: np.ndarray) -> np.ndarray:
        merged = np.empty(len(is_head))
        merged[is_head], merged[~is_head] = of_heads, others
        return merged

    return _Pairs(
        labels=first + np.arange(n_labels),
        groups=_Groups(heads, len(is_head)),
        scores=headed(bias, products.data.astype(np.float64) + bias[labels]),
        n_pos=headed(n_pos, is_pos),
        n_neg=headed(n_rows - n_touched - n_pos, 1.0 - is_pos),
    )


class _Pool:
    """Pairs of many labels as one, in memory that does not grow with their number.

    Scores are rounded to `_KEPT_BITS` significant bits, a relative error below 2e-4, and counted:
    sign, exponent and what is left of the mantissa are the place in a table.
    """

    _N_DROPPED = 24 - _KEPT_BITS  # a float32 has 24 bits, the first of them implied
    _N_PLACES = 2 ** (32 - _N_DROPPED)

    def __init__(self) -> None:
        self._counts = np.zeros((2, self._N_PLACES))

    def add(self, pairs: _Pairs) -> None:
        bits = pairs.scores.astype(np.float32).view(np.int32)
        places = (bits + (1 << (self._N_DROPPED - 1))) >> self._N_DROPPED
        for row, added in zip(self._counts, (pairs.n_pos, pairs.n_neg), strict=True):
            np.add.at(row, places, added)  # a negative place counts from the end

    def as_pairs(self) -> _Pairs:
        """All pairs as those of one label; none if nothing was added."""
        places = np.flatnonzero(self._counts.any(axis=0)).astype(np.uint32)
        scores = (places << self._N_DROPPED).view(np.float32).astype(np.float64)
        zero = np.zeros(min(1, len(scores)), dtype=np.intp)
        return _Pairs(zero, _Groups(zero, len(scores)), scores, *self._counts[:, places])


def _own_and_pooled(
    blocks: Iterator[_Pairs], is_pooled: np.ndarray
) -> Iterator[tuple[_Pairs, bool]]:
    """Pairs of labels that get their own map, block by block, and at the end the pool."""
    pool = _Pool()
    for pairs in blocks:
        shares = is_pooled[pairs.labels]
        yield pairs.keep(~shares), False
        pool.add(pairs.keep(shares))
    yield pool.as_pairs(), True


# --- sigmoid ---------------------------------------------------------------------------------


def _fit_sigmoid(blocks: Iterator[_Pairs], is_pooled: np.ndarray) -> SigmoidCalibration:
    slope, offset = np.zeros((2, len(is_pooled)))
    line: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.zeros(0))
    for pairs, is_pool in _own_and_pooled(blocks, is_pooled):
        if is_pool and len(pairs.labels):
            line = _isotonic_line(pairs, slice(None))
        elif len(pairs.labels):
            slope[pairs.labels], offset[pairs.labels] = _platt(pairs)
    return SigmoidCalibration(slope, offset, *line, is_pooled)


def _platt(pairs: _Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of each label, by Newton's method with step halving.

    Minimises the log loss with Platt's smoothed targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2). A
    label whose held-out rows say that a higher score means less gets slope 0 and its frequency.
    """
    of = pairs.groups
    n_pos, n_neg = of.sum(pairs.n_pos), of.sum(pairs.n_neg)
    n = n_pos + n_neg
    weight = pairs.n_pos + pairs.n_neg
    centre = of.sum(weight * pairs.scores) / n
    x = pairs.scores - of.spread(centre)
    scale = np.sqrt(of.sum(weight * x**2) / n)
    scale[scale <= 1e-12 * (1 + np.abs(centre))] = np.inf  # one score only: no slope to learn
    high, low = (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2)
    targets = pairs.n_pos * of.spread(high) + pairs.n_neg * of.spread(low)
    problem = _Logistic(of, x / of.spread(scale), weight, targets)
    constant = logit((n_pos * high + n_neg * low) / n)
    found = problem.minimise(np.stack([np.zeros_like(constant), constant]))
    slope, offset = np.where(found[0] > 0, found, [np.zeros_like(constant), constant])
    slope = slope / scale
    return slope, offset - slope * centre


@dataclass(frozen=True, eq=False)
class _Logistic:
    """Many logistic regressions on one feature, solved side by side."""

    of: _Groups
    x: np.ndarray
    weight: np.ndarray
    targets: np.ndarray  # sum of the targets of the rows at x

    def minimise(self, start: np.ndarray) -> np.ndarray:
        """Coefficients (slope, offset), shape (2, n_problems); finished problems are dropped."""
        found = start.copy()
        problem, active = self, np.arange(start.shape[1])
        for _ in range(_MAX_NEWTON):
            at = found[:, active]
            step, decrement = problem._newton_step(at)
            found[:, active] = problem._descend(at, step, decrement)
            goes_on = decrement > 1e-9
            if not goes_on.any():
                break
            if not goes_on.all():
                problem, active = problem._keep(goes_on), active[goes_on]
        return found

    def _newton_step(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = expit(self._linear(at))
        r = self.weight * p - self.targets
        h = self.weight * p * (1 - p)
        g0, g1 = self.of.sum(r * self.x), self.of.sum(r)
        h00, h01, h11 = self.of.sum(h * self.x**2), self.of.sum(h * self.x), self.of.sum(h)
        h00, h11 = h00 + 1e-10, h11 + 1e-10  # all scores equal: the slope stays
        det = h00 * h11 - h01**2
        step = np.stack([h01 * g1 - h11 * g0, h01 * g0 - h00 * g1]) / det
        return step, -(g0 * step[0] + g1 * step[1])

    def _descend(self, at: np.ndarray, step: np.ndarray, decrement: np.ndarray) -> np.ndarray:
        before = self._loss(at)
        size = np.ones(at.shape[1])
        for _ in range(_MAX_HALVINGS):
            rises = self._loss(at + size * step) > before - 1e-4 * size * decrement + 1e-12 * before
            if not rises.any():
                break
            size[rises] /= 2
        return at + size * step

    def _loss(self, at: np.ndarray) -> np.ndarray:
        z = self._linear(at)
        return self.of.sum(self.weight * np.logaddexp(0, z) - self.targets * z)

    def _linear(self, at: np.ndarray) -> np.ndarray:
        slope, offset = self.of.spread(at)
        return slope * self.x + offset

    def _keep(self, wanted: np.ndarray) -> _Logistic:
        groups, entries = self.of.keep(wanted)
        return _Logistic(groups, self.x[entries], self.weight[entries], self.targets[entries])


# --- isotonic --------------------------------------------------------------------------------


def _fit_isotonic(blocks: Iterator[_Pairs], is_pooled: np.ndarray) -> IsotonicCalibration:
    curve_of = np.zeros(len(is_pooled), dtype=np.int32)
    curves: list[tuple[np.ndarray, np.ndarray]] = []
    for pairs, is_pool in _own_and_pooled(blocks, is_pooled):
        ends = np.append(pairs.groups.starts, len(pairs.scores))
        for i, label in enumerate(pairs.labels):
            curve_of[is_pooled if is_pool else label] = len(curves)
            curves.append(_isotonic_line(pairs, slice(ends[i], ends[i + 1])))
    scores, probabilities = (np.concatenate(part) for part in zip(*curves, strict=True))
    starts = np.cumsum([0, *(len(curve[0]) for curve in curves)])
    return IsotonicCalibration(curve_of, starts, scores, probabilities, is_pooled)


def _isotonic_line(pairs: _Pairs, where: slice) -> tuple[np.ndarray, np.ndarray]:
    """Knots of the line; of n rows none makes a label more certain than 1 / (n + 2)."""
    from sklearn.isotonic import IsotonicRegression

    n_pos, weight = pairs.n_pos[where], pairs.n_pos[where] + pairs.n_neg[where]
    has_rows = weight > 0
    share = n_pos[has_rows] / weight[has_rows]
    least = 1 / (weight.sum() + 2)
    regression = IsotonicRegression(y_min=least, y_max=1 - least, increasing=True)
    regression.fit(pairs.scores[where][has_rows], share, sample_weight=weight[has_rows])
    return regression.X_thresholds_, regression.y_thresholds_
