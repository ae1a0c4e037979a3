"""Measures of ranked labels and of sets of labels, item by item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from sublearn.kinds.base import Asked, Refused
from sublearn.kinds.judging import Judgement, Measure, mean, quotient
from sublearn.metrics import propensities
from sublearn.metrics.at_k import gains_at_k
from sublearn.metrics.names import find_positions
from sublearn.metrics.ranking import Ranking
from sublearn.typing import JsonObject, LabelsLike
from sublearn.validation import encode_labels

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["cuts_within", "judge_rankings", "set_measures"]

_N_BINS = 15
_USUAL_CUTS = (1, 3, 5)
_METRICS = {"P": "precision", "nDCG": "ndcg", "R": "recall"}
_WEIGHTED = {"PSP": "psp", "PSnDCG": "psndcg"}


def cuts_within(cuts: Sequence[int] | None, n_labels: int) -> list[int]:
    """Where to cut rankings: the wanted cuts, or the usual ones that there are labels for."""
    if cuts is None:
        return [cut for cut in _USUAL_CUTS if cut <= n_labels]
    if max(cuts) > n_labels:
        raise Refused("--k", f"must be at most the number of labels ({n_labels}), got {max(cuts)}")
    return list(cuts)


def judge_rankings(
    model: BaseEstimator, asked: Asked, options: JsonObject, *, has_proba: bool
) -> Judgement:
    """Measures of the k best labels.

    The model may know labels that the data do not carry and the other way round, so both are
    first numbered by one list of names. An empty item is answered with no label.
    """
    cuts = cuts_within(options.get("cuts"), len(model.classes_))
    labels, _ = model.predict_top_k(asked.items, max(cuts))
    truth, ids, names = _by_number(model.classes_, asked, labels)
    measures = _at_cuts(_METRICS, truth, ids, cuts)
    if options.get("seen") is not None:
        A, B = options["constants"]
        weights = propensities(options["seen"], A=A, B=B, classes=names)
        measures |= _at_cuts(_WEIGHTED, truth, ids, cuts, weights)
    sketches: JsonObject = {"confused": _confused(truth, ids, names)}
    if has_proba:
        found = _calibration(model, asked, truth, names, cuts)
        measures |= found
        sketches["reliability"] = found[f"ECE@{cuts[0]}"].parts.sum(axis=0).reshape(3, -1)
    sets = model.predict(asked.items)
    if not isinstance(sets, np.ndarray) or sets.ndim == 2:
        measures |= set_measures(sets, asked)
    return Judgement(f"{len(asked):,} rows, percent", {"rows": len(asked)}, measures, sketches)


def _by_number(
    classes: np.ndarray, asked: Asked, ranked: np.ndarray
) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """The truth, the ranking (-1 for no label), and the names that both are numbered by."""
    encoded = encode_labels(asked.truth, len(asked), for_fit=False, argument="the labels of DATA")
    _refuse_numbers_for_names(classes, encoded.classes)
    names = np.union1d(classes, encoded.classes)
    truth = encoded.to_csr(find_positions(names, encoded.classes, argument="DATA"), len(names))
    ids = find_positions(names, ranked, argument="MODEL")
    ids[asked.is_empty] = -1
    return truth, ids, names


def _refuse_numbers_for_names(classes: np.ndarray, found: np.ndarray) -> None:
    is_text = [array.dtype.kind in "UO" for array in (classes, found)]
    if len(found) and is_text[0] != is_text[1]:
        kinds = ["names" if flag else "numbers" for flag in is_text]
        raise ValueError(
            f"labels of DATA must be {kinds[0]} as those of the model are, got {kinds[1]}"
        )


def _at_cuts(
    metrics: Mapping[str, str],
    truth: sp.csr_matrix,
    ids: np.ndarray,
    cuts: list[int],
    weights: np.ndarray | None = None,
) -> dict[str, Measure]:
    measures = {}
    for name, metric in metrics.items():
        found, reachable = gains_at_k(metric, truth, ids, cuts, propensities=weights)
        for i, cut in enumerate(cuts):
            measures[f"{name}@{cut}"] = quotient(found[:, i], reachable[:, i])
    return measures


def _calibration(
    model: BaseEstimator, asked: Asked, truth: sp.csr_matrix, names: np.ndarray, cuts: list[int]
) -> dict[str, Measure]:
    """Expected calibration errors: sums of predictions, probabilities and hits in each bin."""
    labels, found = model.predict_proba_top_k(asked.items, max(cuts))
    ids = find_positions(names, labels, argument="MODEL")
    hits = Ranking(truth, ids, has_columns=True).hits()
    bins = np.minimum((found * _N_BINS).astype(np.intp), _N_BINS - 1)
    counts = np.ones_like(found) * ~asked.is_empty[:, None]
    measures = {}
    for cut in cuts:
        parts = [
            _binned(bins[:, :cut], (values * counts)[:, :cut]) for values in (counts, found, hits)
        ]
        measures[f"ECE@{cut}"] = Measure(np.hstack(parts), _mean_distance, is_better_high=False)
    return measures


def _binned(bins: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of the values of each item by bin."""
    sums = np.zeros((len(bins), _N_BINS))
    np.add.at(sums, (np.arange(len(bins))[:, None], bins), values)
    return sums


def _mean_distance(sums: np.ndarray) -> np.ndarray:
    counts, probabilities, hits = np.split(sums, 3, axis=1)
    total = counts.sum(axis=1)
    distance = np.abs(probabilities - hits).sum(axis=1)
    return np.divide(distance, total, out=np.full(len(sums), np.nan), where=total > 0)


def _confused(
    truth: sp.csr_matrix, ids: np.ndarray, names: np.ndarray
) -> list[tuple[str, str, int]]:
    """A true label that was missed and the first label that was given instead: most often."""
    hits = Ranking(truth, ids, has_columns=True).hits()
    first = ids[:, 0]
    pairs: Counter[tuple[int, int]] = Counter()
    for row in np.flatnonzero(~hits[:, 0] & (first >= 0)).tolist():
        for label in truth.indices[truth.indptr[row] : truth.indptr[row + 1]].tolist():
            pairs[label, int(first[row])] += 1
    return [(str(names[a]), str(names[b]), n) for (a, b), n in pairs.most_common(15)]


def set_measures(sets: LabelsLike, asked: Asked) -> dict[str, Measure]:
    """F1 over all labels at once, and the share of items with exactly their labels."""
    found = encode_labels(sets, len(asked), for_fit=False, argument="predictions")
    true = encode_labels(asked.truth, len(asked), for_fit=False, argument="the labels of DATA")
    columns = [found.classes, true.classes]
    names = np.union1d(*columns)
    left, right = (
        one.to_csr(find_positions(names, own, argument="DATA"), len(names))
        for one, own in zip((found, true), columns, strict=True)
    )
    n_found, n_true = (np.diff(one.indptr) * 1.0 for one in (left, right))
    n_found[asked.is_empty] = 0.0
    common = np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()
    common[asked.is_empty] = 0.0
    return {
        "F1": quotient(2 * common, n_found + n_true),
        "sets_right": mean((common == n_found) & (common == n_true)),
    }
