"""Rankings for macro-averages at k: labels of all samples chosen together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sublearn.interruption import check
from sublearn.validation import NonNegative, OneOf, Positive, Rule, check_arguments
from sublearn.validation.values import show

__all__ = ["macro_top_k"]

_RULES: dict[str, Rule] = {
    "k": Positive(int),
    "metric": OneOf("f1", "precision", "recall"),
    "max_iter": Positive(int),
    "tol": NonNegative(float),
}
_ROWS_BETWEEN_CHECKS = 256


def macro_top_k(
    labels: np.ndarray,
    probabilities: np.ndarray,
    k: int = 5,
    *,
    metric: str = "f1",
    max_iter: int = 20,
    tol: float = 1e-6,
) -> np.ndarray:
    r"""Choose `k` labels for each of many samples so that their macro-average is large.

    A macro-average counts a label that one sample carries as much as one that thousands carry, so
    what is best for a sample depends on the others. With :math:`\eta_{ij}` the probability of label
    :math:`j` and :math:`a_{ij} = 1` where it is chosen, this maximises the sum over labels of

    .. math::
        \frac{2 c_j}{p_j + t_j} \;(\text{F1}), \quad \frac{c_j}{p_j}, \quad
        \frac{c_j}{t_j}, \qquad
        c_j = \sum_i a_{ij} \eta_{ij}, \; p_j = \sum_i a_{ij}, \; t_j = \sum_i \eta_{ij}

    by block coordinate ascent, as in [1]_: samples one after another, each with the `k` labels that
    add most to the sum while all others stay; it never falls. For recall one pass is exact.

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_listed)
        Candidates of each sample, at least `k`, without repetition: those of
        ``model.predict_proba_top_k(X, 50)``.
    probabilities : ndarray of shape (n_samples, n_listed)
        Their probabilities; that of a label that is not listed is taken for 0.
    k : int, default=5
        Labels to choose for each sample.
    metric : {"f1", "precision", "recall"}, default="f1"
        Of each label.
    max_iter : int, default=20
        Limit on the passes over the samples.
    tol : float, default=1e-6
        A pass that raises the mean over labels by less is the last.

    Returns
    -------
    ndarray of shape (n_samples, k)
        Labels, those with the largest part in the sum first; for `macro_f1_at_k` and the like.

    References
    ----------
    .. [1] E. Schultheis, W. Kotlowski, M. Wydmuch, R. Babbar, S. Borman, K. Dembczynski,
       "Consistent algorithms for multi-label classification with macro-at-k metrics", ICLR 2024.
    """
    check_arguments("macro_top_k", locals(), _RULES)
    labels, chances = np.asarray(labels), np.asarray(probabilities, dtype=np.float64)
    if labels.ndim != 2 or labels.shape != chances.shape or labels.shape[1] < k:
        raise ValueError(
            f"macro_top_k.labels and probabilities must have one shape with at least k={k} "
            f"columns, got {labels.shape} and {chances.shape}"
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError(
            f"macro_top_k.probabilities must be in [0, 1], got {show(chances.min())} to "
            f"{show(chances.max())}"
        )
    names, ids = np.unique(labels, return_inverse=True)
    state = _Choice.start(ids.reshape(labels.shape), chances, len(names), int(k), metric)
    value = state.value()
    for _ in range(max_iter):
        state.improve()
        before, value = value, state.value()
        if value - before <= tol:
            break
    return np.take_along_axis(labels, state.chosen, axis=1)


@dataclass(eq=False)
class _Choice:
    """Which of its candidates each sample has, and the sums of labels."""

    ids: np.ndarray
    chances: np.ndarray
    chosen: np.ndarray  # (n_samples, k), places among the candidates
    true: np.ndarray  # t_j
    both: np.ndarray  # c_j
    ranked: np.ndarray  # p_j
    metric: str

    @classmethod
    def start(
        cls, ids: np.ndarray, chances: np.ndarray, n_labels: int, k: int, metric: str
    ) -> _Choice:
        """With the most probable labels."""
        chosen = np.argsort(-chances, axis=1, kind="stable")[:, :k]
        own, weights = (np.take_along_axis(part, chosen, axis=1) for part in (ids, chances))
        return cls(
            ids, chances, chosen,
            np.bincount(ids.ravel(), chances.ravel(), n_labels),
            np.bincount(own.ravel(), weights.ravel(), n_labels),
            np.bincount(own.ravel(), minlength=n_labels).astype(np.float64), metric,
        )  # fmt: skip

    def value(self) -> float:
        """Mean over labels."""
        return float(self._utility(self.both, self.ranked, self.true).mean())

    def improve(self) -> None:
        """One pass over the samples."""
        k = self.chosen.shape[1]
        for i in range(len(self.ids)):
            if i % _ROWS_BETWEEN_CHECKS == 0:
                check()
            ids, chances = self.ids[i], self.chances[i]
            own = self.chosen[i]
            self.both[ids[own]] -= chances[own]
            self.ranked[ids[own]] -= 1
            both, ranked, true = self.both[ids], self.ranked[ids], self.true[ids]
            gains = self._utility(both + chances, ranked + 1, true)
            gains -= self._utility(both, ranked, true)
            self.chosen[i] = own = np.argsort(-gains, kind="stable")[:k]
            self.both[ids[own]] += chances[own]
            self.ranked[ids[own]] += 1

    def _utility(self, both: np.ndarray, ranked: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Of each label; 0 where nothing is counted."""
        both = np.maximum(both, 0.0)  # rounding
        if self.metric == "f1":
            both, below = 2 * both, ranked + true
        else:
            below = ranked if self.metric == "precision" else true
        return np.divide(both, below, out=np.zeros_like(both), where=below > 1e-12)
