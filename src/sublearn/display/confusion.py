"""Which labels are taken for which others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sublearn.display.base import AxesLike, Display
from sublearn.display.style import INK, shortened
from sublearn.metrics.ranking import read_ranking
from sublearn.typing import LabelsLike, MatrixLike
from sublearn.validation import Positive, check_argument, encode_labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["LabelConfusionDisplay"]


class LabelConfusionDisplay(Display):
    r"""The labels that are confused most: rows are true labels, columns what was predicted.

    A sample with labels :math:`Y` for which :math:`\hat Y` was predicted counts 1 at (i, i) for
    each label i of both. A true label i that was missed counts :math:`1/|\hat Y \setminus Y|` at
    (i, j) for each wrong label j. With one label for each sample this is the usual matrix.

    Parameters
    ----------
    confusion : ndarray of shape (n_shown, n_shown)
        Counts of the labels that are shown.
    names : sequence
        Theirs.
    n_true : ndarray of shape (n_shown,)
        Samples that carry each of them.
    title : str, default=""
        Over the picture.
    """

    def __init__(
        self, confusion: np.ndarray, names: Sequence[object], n_true: np.ndarray, *, title: str = ""
    ):
        self.confusion, self.names = np.asarray(confusion), list(names)
        self.n_true, self.title = np.asarray(n_true), title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike | Sequence[str],
        y: LabelsLike,
        *,
        k: int = 1,
        n_labels: int = 12,
        ax: AxesLike = None,
    ) -> LabelConfusionDisplay:
        """Draw the confusion of a model's `k` best labels on rows with known ones.

        Parameters
        ----------
        estimator : fitted classifier with `predict_top_k`
            Of this library.
        X, y
            Rows and their labels, in any form that `fit` takes.
        k : int, default=1
            How many labels are predicted for each row.
        n_labels : int, default=12
            How many labels to show: those of the largest entries off the diagonal.
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        LabelConfusionDisplay
        """
        check_is_fitted(estimator)
        check_argument("LabelConfusionDisplay.k", k, Positive(int))
        predicted, _ = estimator.predict_top_k(X, k)
        classes = np.asarray(estimator.classes_)
        return cls.from_predictions(y, predicted, classes=classes, n_labels=n_labels, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_pred: LabelsLike,
        *,
        classes: ArrayLike | None = None,
        n_labels: int = 12,
        ax: AxesLike = None,
    ) -> LabelConfusionDisplay:
        """Draw the confusion of predicted labels, of which each row has as many.

        Parameters
        ----------
        y_true, y_pred, classes
            As for `sublearn.metrics.precision_at_k`; all columns of a `y_pred` of labels count.
        n_labels : int, default=12
            How many labels to show: those of the largest entries off the diagonal.
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        LabelConfusionDisplay
        """
        check_argument("LabelConfusionDisplay.n_labels", n_labels, Positive(int))
        given = np.asarray(y_pred)
        if given.ndim != 2 or given.dtype.kind == "f":
            raise ValueError(
                "LabelConfusionDisplay.y_pred must be labels of shape (n_samples, k), as "
                f"predict_top_k gives them, got shape {given.shape} and dtype {given.dtype}"
            )
        ranking = read_ranking(y_true, given, given.shape[1], classes)
        confusion = _confusion(ranking.truth, ranking.ranked)
        shown = _most_confused(confusion, n_labels)
        names = _names(y_true, ranking.truth.shape, classes)
        n_true = np.asarray(ranking.truth.sum(axis=0)).ravel()[shown]
        table = confusion[shown][:, shown].toarray()
        n_all = int((np.diff(ranking.truth.tocsc().indptr) > 0).sum())
        title = f"The {len(shown)} labels confused most, of {n_all:,}"
        if len(shown) == n_all:
            title = f"{n_all} labels"
        return cls(table, [names[i] for i in shown], n_true, title=title).plot(ax)

    def _size(self) -> tuple[float, float]:
        longest = max((len(shortened(name)) for name in self.names), default=0)
        side = 0.42 * len(self.names) + 0.075 * longest
        return max(4.5, side + 1.6), max(3.4, side + 0.5)

    def _draw(self) -> None:
        ax, n = self.ax_, len(self.names)
        shares = self.confusion / np.maximum(self.n_true, 1)[:, None]
        ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        for i, j in zip(*np.nonzero(self.confusion), strict=True):
            value = self.confusion[i, j]
            text = f"{value:,.0f}" if value >= 0.95 else f"{value:.1f}"
            shade = "white" if shares[i, j] > 0.6 else INK
            ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color=shade)
        names = [shortened(name) for name in self.names]
        ax.set_xticks(np.arange(n), names, rotation=50, ha="right", rotation_mode="anchor")
        ax.set_yticks(np.arange(n), names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="predicted", ylabel="true")
        ax.set_title(self.title)


def _confusion(truth: sp.csr_matrix, ranked: np.ndarray) -> sp.csr_matrix:
    """Counts of the class's docstring, of shape (n_labels, n_labels)."""
    n_rows, n_labels = truth.shape
    rows = np.repeat(np.arange(n_rows), ranked.shape[1])
    is_known = ranked.ravel() >= 0
    at = (rows[is_known], ranked.ravel()[is_known])
    predicted = sp.csr_matrix((np.ones(is_known.sum()), at), shape=(n_rows, n_labels))
    true = sp.csr_matrix(truth, dtype=np.float64)
    found = true.multiply(predicted).tocsr()
    missed, wrong = (true - found).tocsr(), (predicted - found).tocsr()
    n_wrong = np.asarray(wrong.sum(axis=1)).ravel()
    share = sp.diags(np.divide(1.0, n_wrong, out=np.zeros(n_rows), where=n_wrong > 0))
    hits = sp.diags(np.asarray(found.sum(axis=0)).ravel())
    table = sp.csr_matrix(missed.T @ (share @ wrong) + hits)
    table.eliminate_zeros()
    return table


def _most_confused(confusion: sp.csr_matrix, n_labels: int) -> np.ndarray:
    """Labels of the largest mistakes, then those with most samples, in their own order."""
    table = confusion.tocoo()
    total = np.asarray(confusion.sum(axis=0)).ravel() + np.asarray(confusion.sum(axis=1)).ravel()
    is_mistake = table.row != table.col
    order = np.argsort(-table.data[is_mistake], kind="stable")
    pairs = np.column_stack([table.row, table.col])[is_mistake][order]
    common = np.argsort(-total, kind="stable")
    both = np.concatenate([pairs.ravel(), common[total[common] > 0]])
    _, first = np.unique(both, return_index=True)
    return np.sort(both[np.sort(first)[:n_labels]])


def _names(y_true: LabelsLike, shape: tuple[int, int], classes: ArrayLike | None) -> list[object]:
    n_rows, n_labels = shape
    known = [] if classes is None else np.asarray(classes).tolist()
    labels = encode_labels(y_true, n_rows, argument="y_true", for_fit=False)
    if classes is None and not labels.kind.is_indicator:
        known = labels.classes.tolist()
    return [*known, *range(len(known), n_labels)]
