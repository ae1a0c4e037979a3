"""True labels and a ranking of labels, in any form, made one pair of matrices.

Everything here costs time and memory in proportion to what is passed; a sparse matrix is never
made dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.names import find_positions, positions_with_new
from sublearn.typing import LabelsLike
from sublearn.validation import EncodedLabels, encode_labels
from sublearn.validation.sparse import check_sparse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Ranking", "read_ranking", "top_k"]

_BLOCK = 2**22  # scores copied at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Ranking:
    """What is true and what was predicted, by label id.

    Parameters
    ----------
    truth : csr_matrix of bool, shape (n_samples, n_labels)
        True labels.
    ranked : ndarray of int64, shape (n_samples, k)
        Label ids, best first; -1 where nothing, or an unknown label, was predicted.
    has_columns : bool
        Whether the ids are columns of something the caller passed, and not found from names.
    """

    truth: sp.csr_matrix
    ranked: np.ndarray
    has_columns: bool

    def hits(self) -> np.ndarray:
        """Whether each ranked label is true, shape (n_samples, k)."""
        n_samples, n_labels = self.truth.shape
        rows = np.arange(n_samples, dtype=np.int64)
        # The entries (row, label) as single numbers are sorted, so membership is a binary search.
        true_keys = np.repeat(rows, self.n_true()) * n_labels + self.truth.indices
        keys = rows[:, None] * n_labels + self.ranked
        place = np.searchsorted(true_keys, keys)
        found = np.append(true_keys, -1)[place] == keys
        return found & (self.ranked >= 0)

    def n_true(self) -> np.ndarray:
        """Number of true labels of each sample."""
        return np.diff(self.truth.indptr)


def read_ranking(
    y_true: LabelsLike, y_pred: LabelsLike, k: int, classes: ArrayLike | None
) -> Ranking:
    """Both arguments by label id; see :func:`sublearn.metrics.precision_at_k` for their forms."""
    found = _read_predictions(y_pred, k)
    given = None if classes is None else np.asarray(classes)
    labels = encode_labels(y_true, found.shape[0], argument="y_true", for_fit=False)
    is_scores = sp.issparse(found) or (
        found.dtype.kind == "f" and not _are_names_floats(labels, given)
    )
    n_columns = found.shape[1] if is_scores else None
    truth, names = (
        _truth_by_column(labels, given)
        if labels.kind.is_indicator
        else _truth_by_name(labels, given, n_columns)
    )
    has_columns = labels.kind.is_indicator or given is not None or is_scores
    if is_scores:
        _refuse_other_width(found, truth, names)
        return Ranking(truth, top_k(found, k), has_columns)
    return Ranking(truth, _rank_by_name(found[:, :k], names, truth.shape[1]), has_columns)


def _are_names_floats(labels: EncodedLabels, classes: np.ndarray | None) -> bool:
    """Whether floats in `y_pred` can only be labels: nothing says which columns scores have."""
    is_named = not labels.kind.is_indicator
    return classes is None and is_named and labels.classes.dtype.kind == "f"


def top_k(scores: np.ndarray | sp.csr_matrix, k: int) -> np.ndarray:
    """Columns of the `k` highest scores of each row, best first, of equals the lower column first.

    A sparse matrix scores only what it stores; -1 stands where a row has fewer scores, and where a
    dense score is minus infinity.
    """
    return _top_k_sparse(scores, k) if sp.issparse(scores) else _top_k_dense(scores, k)


def _read_predictions(y_pred: LabelsLike, k: int) -> np.ndarray | sp.csr_matrix:
    if sp.issparse(y_pred):
        y_pred = sp.csr_matrix(check_sparse(y_pred, "y_pred"))
        values = y_pred.data
    else:
        y_pred = values = np.asarray(y_pred)
    if y_pred.ndim != 2 or y_pred.shape[0] == 0:
        raise ValueError(f"y_pred must be 2-D with at least one row, got shape {y_pred.shape}")
    if y_pred.shape[1] < k:
        raise ValueError(f"y_pred must have at least k={k} columns, got {y_pred.shape[1]}")
    if not sp.issparse(y_pred) and values.dtype.kind in "bc":
        raise ValueError(f"y_pred must hold labels or float scores, got {values.dtype}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError("y_pred must not hold NaN, got at least one")
    return y_pred


def _truth_by_column(
    labels: EncodedLabels, classes: np.ndarray | None
) -> tuple[sp.csr_matrix, np.ndarray | None]:
    if classes is not None and len(classes) != labels.n_classes:
        raise ValueError(
            f"classes must name each column of y_true ({labels.n_classes}), got {len(classes)}"
        )
    return labels.to_csr(), classes


def _truth_by_name(
    labels: EncodedLabels, classes: np.ndarray | None, n_columns: int | None
) -> tuple[sp.csr_matrix, np.ndarray]:
    if classes is None:
        if n_columns is None:
            return labels.to_csr(), labels.classes
        classes = _columns_as_names(labels, n_columns)
    # True labels that cannot be predicted count all the same.
    columns = positions_with_new(classes, labels.classes, argument="y_true")
    return labels.to_csr(*columns), classes


def _columns_as_names(labels: EncodedLabels, n_columns: int) -> np.ndarray:
    names = labels.classes
    if len(names) == 0:
        return np.arange(n_columns)
    if names.dtype.kind in "iu" and names.min() >= 0:
        if names.max() >= n_columns:
            raise ValueError(
                f"y_pred must score each of {names.max() + 1} labels, got {n_columns} columns"
            )
        return np.arange(n_columns)
    raise ValueError("classes must name the columns of y_pred, got None")


def _refuse_other_width(
    scores: np.ndarray | sp.csr_matrix, truth: sp.csr_matrix, names: np.ndarray | None
) -> None:
    n_labels = truth.shape[1] if names is None else len(names)
    if scores.shape[1] != n_labels:
        raise ValueError(
            f"y_pred must score each of {n_labels} labels, got {scores.shape[1]} columns"
        )


def _rank_by_name(ranked: np.ndarray, names: np.ndarray | None, n_labels: int) -> np.ndarray:
    if names is None:
        ids = _check_ids(ranked, n_labels)
    else:
        ids = find_positions(names, ranked, argument="y_pred")
    ordered = np.sort(ids, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("y_pred must not rank a label twice in a row, got a row that does")
    return ids


def _check_ids(ranked: np.ndarray, n_labels: int) -> np.ndarray:
    if ranked.dtype.kind not in "iu":
        raise ValueError(f"y_pred must hold column numbers of y_true, got {ranked.dtype}")
    ids = ranked.astype(np.int64)
    if ids.min() < -1 or ids.max() >= n_labels:
        raise ValueError(
            f"y_pred must hold labels from 0 to {n_labels - 1}, or -1 for none, "
            f"got {ids.min()} to {ids.max()}"
        )
    return ids


def _top_k_dense(scores: np.ndarray, k: int) -> np.ndarray:
    n_rows, n_columns = scores.shape
    best = np.empty((n_rows, k), dtype=np.int64)
    step = max(1, _BLOCK // n_columns)
    for start in range(0, n_rows, step):
        block = scores[start : start + step].copy()
        rows = np.arange(len(block))
        # argmax takes the first of equals, and k is small: k passes beat a sort.
        for j in range(k):
            column = block.argmax(axis=1)
            best[start + rows, j] = np.where(block[rows, column] > -np.inf, column, -1)
            block[rows, column] = -np.inf
    return best


def _top_k_sparse(scores: sp.csr_matrix, k: int) -> np.ndarray:
    csr = sp.csr_matrix(scores, copy=True)
    csr.sum_duplicates()
    starts, counts = csr.indptr[:-1].astype(np.int64), np.diff(csr.indptr)
    if csr.nnz == 0:
        return np.full((csr.shape[0], k), -1)
    rows = np.repeat(np.arange(csr.shape[0]), counts)
    order = np.lexsort((csr.indices, -csr.data.astype(np.float64), rows))
    rank = np.arange(k)
    place = np.minimum(starts[:, None] + rank, csr.nnz - 1)
    best = csr.indices[order[place]].astype(np.int64)
    return np.where(rank < counts[:, None], best, -1)
