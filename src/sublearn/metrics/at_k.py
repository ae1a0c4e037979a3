"""Metrics of a ranking that is cut after k labels.

Notation: sample :math:`i` has the true labels :math:`y_i`, and :math:`h_{ij}` is 1 if the label
ranked :math:`j`-th (from 1) is among them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.ranking import Ranking, read_ranking, top_k
from sublearn.typing import LabelsLike
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "f1_at_k",
    "gains_at_k",
    "gains_of_samples",
    "ndcg_at_k",
    "precision_at_k",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision",
    "read_cuts",
    "recall_at_k",
]

#: Where rankings are cut.
Cuts = int | Sequence[int]


def precision_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    r"""Share of true labels among the `k` best: the mean of :math:`\frac1k \sum_{j \le k} h_{ij}`.

    A sample without true labels counts as 0, as in the usual scripts of extreme classification.

    Parameters
    ----------
    y_true : array-like, sparse matrix or list of label lists
        True labels in any form that `fit` takes.
    y_pred : array or sparse matrix
        - integers, strings or objects, shape (n_samples, at least `k`): labels, best first, as
          ``labels, scores = est.predict_top_k(X, k)`` gives them; -1 for none. For an indicator
          `y_true` these are its column numbers, else names; a name unknown to `y_true` is a miss.
        - floats, shape (n_samples, n_labels): scores. Of equal scores the lower column comes
          first; minus infinity is not predicted. If the names of `y_true` are floats and there
          are no `classes`: labels.
        - sparse, shape (n_samples, n_labels): scores; what is not stored is not predicted.
    k : int or sequence of int
        Where to cut.
    classes : array-like, optional
        Names of the columns: `classes_` of the estimator. Needed where one argument has names and
        the other columns, except that names which are non-negative integers are column numbers.

    Returns
    -------
    float or ndarray
        One value, or one for each element of a sequence `k`, in its order.

    Examples
    --------
    >>> precision_at_k([["a", "b"], ["c"]], np.array([["a", "c"], ["b", "c"]]), k=[1, 2])
    array([0.5, 0.5])
    """
    return _evaluate(_precision, y_true, y_pred, k, classes)


def recall_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    r"""Share of the true labels found: the mean of :math:`\frac{1}{|y_i|} \sum_{j \le k} h_{ij}`.

    A sample without true labels counts as 0. Arguments and return value are those of
    :func:`precision_at_k`.
    """
    return _evaluate(_recall, y_true, y_pred, k, classes)


def f1_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    r"""F1 of the `k` best labels of each sample, the mean of
    :math:`\frac{2}{k + |y_i|} \sum_{j \le k} h_{ij}`.

    The mean of the F1 of samples, as Annif has it, not the F1 of mean precision and mean recall. A
    sample without true labels counts as 0. Arguments and return value are those of
    :func:`precision_at_k`.
    """
    return _evaluate(_f1, y_true, y_pred, k, classes)


def r_precision(
    y_true: LabelsLike, y_pred: LabelsLike, *, classes: ArrayLike | None = None
) -> float:
    r"""Share of true labels among as many of the best as there are true ones.

    The mean of :math:`\frac{1}{|y_i|} \sum_{j \le |y_i|} h_{ij}`. Where `y_pred` ranks fewer labels
    than a sample has, the missing ones are misses. A sample without true labels counts as 0.
    Arguments are those of :func:`precision_at_k`.

    Examples
    --------
    >>> r_precision([["a", "b"], ["c"]], np.array([["a", "c"], ["b", "c"]]))
    0.25
    """
    found = sp.csr_matrix(y_pred) if sp.issparse(y_pred) else np.asarray(y_pred)
    n_columns = found.shape[-1]
    most = int(read_ranking(y_true, y_pred, 1, classes).n_true().max())
    k = max(1, min(most, int(n_columns)))
    ranking = read_ranking(y_true, y_pred, k, classes)
    n_true = ranking.n_true()
    counts = np.arange(k) < n_true[:, None]
    return float(np.mean((ranking.hits() & counts).sum(axis=1) / np.maximum(n_true, 1)))


def ndcg_at_k(
    y_true: LabelsLike, y_pred: LabelsLike, k: Cuts = 5, *, classes: ArrayLike | None = None
) -> float | np.ndarray:
    r"""Discounted gain over the best possible, the mean over samples of

    .. math::
        \sum_{j \le k} \frac{h_{ij}}{\log_2(j + 1)}
        \Big/ \sum_{j \le \min(k, |y_i|)} \frac{1}{\log_2(j + 1)}

    A sample without true labels counts as 0. Arguments and return value are those of
    :func:`precision_at_k`.
    """
    return _evaluate(_ndcg, y_true, y_pred, k, classes)


def psp_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    propensities: ArrayLike,
    k: Cuts = 5,
    *,
    classes: ArrayLike | None = None,
) -> float | np.ndarray:
    r"""Propensity-scored precision, normalised by the best that any ranking reaches.

    .. math::
        \sum_i \sum_{j \le k} \frac{h_{ij}}{p_{ij}}
        \Big/ \sum_i \max_{\text{rankings}} \sum_{j \le k} \frac{h_{ij}}{p_{ij}}

    where :math:`p_{ij}` is the propensity of the label ranked :math:`j`-th. One quotient of two
    sums over samples, as in the evaluation scripts of the extreme classification repository, not
    a mean of quotients. 0 if no sample has true labels.

    Parameters
    ----------
    y_true, y_pred, k
        As in :func:`precision_at_k`.
    propensities : array-like of shape (n_labels,)
        Of each column of `y_true`, or of each of `classes`; see
        :func:`sublearn.metrics.propensities`.
    classes : array-like, optional
        As in :func:`precision_at_k`; needed where `y_true` has names, and must then have all.

    Returns
    -------
    float or ndarray
        As in :func:`precision_at_k`.
    """
    return _evaluate_weighted(_plain_gain, y_true, y_pred, propensities, k, classes)


def psndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    propensities: ArrayLike,
    k: Cuts = 5,
    *,
    classes: ArrayLike | None = None,
) -> float | np.ndarray:
    r"""Propensity-scored nDCG, normalised by the best that any ranking reaches.

    .. math::
        \sum_i \frac{1}{n_i} \sum_{j \le k} \frac{h_{ij}}{p_{ij} \log_2(j + 1)}
        \Big/ \sum_i \frac{1}{n_i}
        \max_{\text{rankings}} \sum_{j \le k} \frac{h_{ij}}{p_{ij} \log_2(j + 1)},
        \qquad n_i = \sum_{j \le \min(k, |y_i|)} \frac{1}{\log_2(j + 1)}

    the form of the evaluation scripts of the extreme classification repository. Arguments, return
    value and samples without labels are those of :func:`psp_at_k`.
    """
    return _evaluate_weighted(_discounted_gain, y_true, y_pred, propensities, k, classes)


def gains_at_k(
    metric: str,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts = 5,
    *,
    propensities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What each sample adds to a metric: the metric is one sum over samples over the other.

    Parameters
    ----------
    metric : {"precision", "recall", "ndcg", "psp", "psndcg"}
        Which one.
    y_true, y_pred, k, propensities, classes
        As in :func:`precision_at_k` and :func:`psp_at_k`.

    Returns
    -------
    found, reachable : ndarrays of shape (n_samples, n_cuts)

    Examples
    --------
    >>> found, reachable = gains_at_k("precision", [[0], [1]], np.array([[0, 1], [0, 1]]), 1)
    >>> found.ravel().tolist(), float(found.sum() / reachable.sum())
    ([1.0, 0.0], 0.5)
    """
    cuts = read_cuts(k)
    ranking = read_ranking(y_true, y_pred, int(cuts.max()), classes)
    if propensities is None:
        return _PLAIN[metric](ranking, cuts)
    return _weighted(_WEIGHTED[metric], propensities, ranking, cuts)


_Formula = Callable[[Ranking, np.ndarray], "tuple[np.ndarray, np.ndarray]"]


def _evaluate(
    formula: _Formula,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts,
    classes: ArrayLike | None,
) -> float | np.ndarray:
    cuts = read_cuts(k)
    ranking = read_ranking(y_true, y_pred, int(cuts.max()), classes)
    found, reachable = (part.sum(axis=0) for part in formula(ranking, cuts))
    values = np.divide(found, reachable, out=np.zeros(len(cuts)), where=reachable > 0)
    return float(values[0]) if np.ndim(k) == 0 else values


def _precision(ranking: Ranking, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = ranking.hits().cumsum(axis=1)[:, cuts - 1] / cuts
    return share, np.ones_like(share)


def _recall(ranking: Ranking, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_found = ranking.hits().cumsum(axis=1)[:, cuts - 1]
    share = n_found / np.maximum(ranking.n_true(), 1)[:, None]
    return share, np.ones_like(share)


def _f1(ranking: Ranking, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_found = ranking.hits().cumsum(axis=1)[:, cuts - 1]
    share = 2 * n_found / (ranking.n_true()[:, None] + cuts)
    return share, np.ones_like(share)


def _ndcg(ranking: Ranking, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gain = (ranking.hits() * _log_discount(cuts.max())).cumsum(axis=1)[:, cuts - 1]
    share = gain / _best_gain(ranking, cuts)
    return share, np.ones_like(share)


def gains_of_samples(ranking: Ranking) -> np.ndarray:
    """nDCG of each sample, its ranking taken whole."""
    return _ndcg(ranking, np.array([ranking.ranked.shape[1]]))[0][:, 0]


def _best_gain(ranking: Ranking, cuts: np.ndarray) -> np.ndarray:
    """Unweighted gain of the best ranking of each sample; of one label where it has none."""
    cumulated = _log_discount(cuts.max()).cumsum()
    n_reachable = np.minimum(np.maximum(ranking.n_true(), 1)[:, None], cuts)
    return cumulated[n_reachable - 1]


def _log_discount(k: int) -> np.ndarray:
    return 1 / np.log2(np.arange(k) + 2)


_Gain = Callable[[Ranking, np.ndarray, np.ndarray], np.ndarray]


def _evaluate_weighted(
    gain: _Gain,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    propensities: ArrayLike,
    k: Cuts,
    classes: ArrayLike | None,
) -> float | np.ndarray:
    def quotient(ranking: Ranking, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _weighted(gain, propensities, ranking, cuts)

    return _evaluate(quotient, y_true, y_pred, k, classes)


def _weighted(
    gain: _Gain, propensities: ArrayLike, ranking: Ranking, cuts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gain of each sample, and of its best ranking."""
    weights = _inverse_propensities(propensities, ranking)
    best = _best_ranking(ranking, weights, int(cuts.max()))
    return gain(ranking, weights, cuts), gain(best, weights, cuts)


def _plain_gain(ranking: Ranking, weights: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    return _weigh_hits(ranking, weights).cumsum(axis=1)[:, cuts - 1]


def _discounted_gain(ranking: Ranking, weights: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    gain = _weigh_hits(ranking, weights) * _log_discount(cuts.max())
    return gain.cumsum(axis=1)[:, cuts - 1] / _best_gain(ranking, cuts)


_PLAIN: dict[str, _Formula] = {"precision": _precision, "recall": _recall, "ndcg": _ndcg}
_WEIGHTED: dict[str, _Gain] = {"psp": _plain_gain, "psndcg": _discounted_gain}


def _weigh_hits(ranking: Ranking, weights: np.ndarray) -> np.ndarray:
    hits = ranking.hits()
    return np.where(hits, weights[np.where(hits, ranking.ranked, 0)], 0.0)


def _best_ranking(ranking: Ranking, weights: np.ndarray, k: int) -> Ranking:
    """The true labels of each sample, heaviest first."""
    truth = ranking.truth
    scores = sp.csr_matrix((weights[truth.indices], truth.indices, truth.indptr), truth.shape)
    return dataclasses.replace(ranking, ranked=top_k(scores, k))


def _inverse_propensities(propensities: ArrayLike, ranking: Ranking) -> np.ndarray:
    values = np.asarray(propensities, dtype=np.float64)
    n_labels = ranking.truth.shape[1]
    if not ranking.has_columns:
        raise ValueError("classes must name the labels that propensities stand for, got None")
    if values.shape != (n_labels,):
        raise ValueError(
            f"propensities must have one value for each of {n_labels} labels, "
            f"got shape {values.shape}"
        )
    if not ((values > 0) & (values <= 1)).all():
        raise ValueError(
            f"propensities must be in (0, 1], got {values.min():g} to {values.max():g}"
        )
    return 1 / values


def read_cuts(k: Cuts) -> np.ndarray:
    """Where to cut, as an array of at least one."""
    cuts = list(k) if isinstance(k, Iterable) and np.ndim(k) else [k]
    if not cuts or not all(is_int64(cut) and cut > 0 for cut in cuts):
        raise ValueError(f"k must be a positive integer or a sequence of them, got {show(k)}")
    return np.asarray(cuts, dtype=np.int64)
