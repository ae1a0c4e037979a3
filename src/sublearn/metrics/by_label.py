"""Metrics of rankings cut after k labels that look at each label: macro-averages, tails.

With :math:`t_j` the samples that carry label :math:`j`, :math:`p_j` those that have it among their
`k` best, and :math:`c_j` those of both, its precision is :math:`c_j / p_j`, its recall
:math:`c_j / t_j` and its F1 :math:`2 c_j / (p_j + t_j)`, each 0 where it has no value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sublearn.metrics.at_k import Cuts, read_cuts
from sublearn.metrics.ranking import Ranking, read_ranking
from sublearn.typing import LabelsLike
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "FrequencyBand",
    "frequency_bands",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
]


@dataclass(frozen=True, eq=False)
class _Counts:
    """By label: samples that carry it, that have it among their best, and both."""

    true: np.ndarray
    ranked: np.ndarray
    both: np.ndarray

    @classmethod
    def of(cls, ranking: Ranking, k: int) -> _Counts:
        n_labels = ranking.truth.shape[1]
        ranked, hits = ranking.ranked[:, :k], ranking.hits()[:, :k]
        count = lambda ids: np.bincount(ids, minlength=n_labels)  # noqa: E731
        return cls(count(ranking.truth.indices), count(ranked[ranked >= 0]), count(ranked[hits]))

    def precision(self) -> np.ndarray:
        return self.both / np.maximum(self.ranked, 1)

    def recall(self) -> np.ndarray:
        return self.both / np.maximum(self.true, 1)

    def f1(self) -> np.ndarray:
        return 2 * self.both / np.maximum(self.true + self.ranked, 1)


def macro_precision_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    """Mean over labels of the precision of each label, rankings cut after `k`.

    The labels are the columns of an indicator `y_true`, or `classes`, or else those of `y_true`; a
    label that is never predicted counts as 0. Arguments and return value are those of
    :func:`precision_at_k`.
    """
    return _mean_over_labels(_Counts.precision, y_true, y_pred, k, classes)


def macro_recall_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    """Mean over labels of the recall of each label; see :func:`macro_precision_at_k`."""
    return _mean_over_labels(_Counts.recall, y_true, y_pred, k, classes)


def macro_f1_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    """Mean over labels of the F1 of each label; see :func:`macro_precision_at_k`.

    Rankings that make it large are those of :func:`sublearn.extreme.macro_top_k`.
    """
    return _mean_over_labels(_Counts.f1, y_true, y_pred, k, classes)


def _mean_over_labels(
    formula: Callable[[_Counts], np.ndarray],
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts,
    classes: ArrayLike | None,
) -> float | np.ndarray:
    cuts = read_cuts(k)
    ranking = read_ranking(y_true, y_pred, int(cuts.max()), classes)
    values = np.array([formula(_Counts.of(ranking, cut)).mean() for cut in cuts.tolist()])
    return float(values[0]) if np.ndim(k) == 0 else values


@dataclass(frozen=True)
class FrequencyBand:
    """How labels of similar frequency are found.

    Parameters
    ----------
    low, high : int
        Training samples that carry a label of the band, both included; `high` is -1 in the last.
    n_labels : int
        Labels of the band.
    n_true : int
        Pairs of sample and true label.
    precision, recall, f1 : float
        Of all pairs of the band at once, rankings cut after `k`.
    coverage : float
        Share of the labels that some sample carries which are found at least once.
    """

    low: int
    high: int
    n_labels: int
    n_true: int
    precision: float
    recall: float
    f1: float
    coverage: float


def frequency_bands(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    label_counts: ArrayLike,
    k: int = 5,
    *,
    bands: Sequence[int] = (0, 1, 5, 20, 100),
    classes: ArrayLike | None = None,
) -> list[FrequencyBand]:
    """How rare and frequent labels are found, without an assumption about missing labels.

    Parameters
    ----------
    y_true, y_pred, classes
        As in :func:`precision_at_k`; `classes` is needed where `y_true` has names.
    label_counts : array-like of shape (n_labels,)
        Training samples that carry each column of `y_true`, or each of `classes`. A true label
        that is not among them counts as one of none.
    k : int, default=5
        Where to cut.
    bands : sequence of int, default=(0, 1, 5, 20, 100)
        Where bands begin, increasing from 0.

    Returns
    -------
    list of FrequencyBand
        One for each, rare labels first.
    """
    starts = _read_bands(bands)
    cut = int(read_cuts(k)[0])
    ranking = read_ranking(y_true, y_pred, cut, classes)
    counts = _read_counts(label_counts, ranking)
    found = _Counts.of(ranking, cut)
    band_of = np.searchsorted(starts, counts, side="right") - 1
    ends = [*(starts[1:] - 1).tolist(), -1]
    return [
        _band(found, band_of == b, low, high)
        for b, (low, high) in enumerate(zip(starts.tolist(), ends, strict=True))
    ]


def _band(found: _Counts, own: np.ndarray, low: int, high: int) -> FrequencyBand:
    n_true, n_ranked, n_both = (int(c[own].sum()) for c in (found.true, found.ranked, found.both))
    n_met = int((found.both[own] > 0).sum())
    coverage = n_met / max(1, int((found.true[own] > 0).sum()))
    return FrequencyBand(
        low, high, int(own.sum()), n_true, n_both / max(n_ranked, 1), n_both / max(n_true, 1),
        2 * n_both / max(n_true + n_ranked, 1), coverage,
    )  # fmt: skip


def _read_bands(bands: Sequence[int]) -> np.ndarray:
    starts = list(bands)
    is_sound = bool(starts) and all(is_int64(n) for n in starts) and starts[0] == 0
    if not is_sound or any(b <= a for a, b in itertools.pairwise(starts)):
        raise ValueError(f"bands must be integers that increase from 0, got {show(bands)}")
    return np.asarray(starts, dtype=np.int64)


def _read_counts(label_counts: ArrayLike, ranking: Ranking) -> np.ndarray:
    counts, n_labels = np.asarray(label_counts), ranking.truth.shape[1]
    if not ranking.has_columns:
        raise ValueError("classes must name the labels that label_counts stand for, got None")
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or len(counts) > n_labels:
        raise ValueError(
            f"label_counts must be integers, one for each of {n_labels} labels, "
            f"got {counts.dtype} of shape {counts.shape}"
        )
    return np.concatenate([counts, np.zeros(n_labels - len(counts), dtype=counts.dtype)])
