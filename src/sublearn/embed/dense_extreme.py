"""A linear last layer with very many labels on dense features."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.class_means import nearest_means
from sublearn.embed.layer_classifier import LayerClassifier
from sublearn.embed.layer_training import LabelRows
from sublearn.typing import MatrixLike
from sublearn.validation.features import validate_numbers
from sublearn.validation.values import refuse_large

__all__ = ["DenseExtremeClassifier"]

_SHORTEST = 1e-12  # rows shorter than this are all alike


class DenseExtremeClassifier(LayerClassifier[np.ndarray]):
    r"""Linear classifier on dense features whose steps look at few of the labels.

    Minimises, by mini-batches, the mean over the samples of a loss of the scores
    :math:`z = W x_i`, with :math:`P_i` the labels of sample :math:`i` and :math:`N_i` the others:

    - "softmax": :math:`\sum_{k \in P_i} \log \sum_j e^{z_j} - z_k`, (3.38) of [1]_; "nca", (3.42),
      is the same function of scores that are negative distances;
    - "margin": :math:`[1 + \max_{j \in N_i} z_j - \min_{k \in P_i} z_k]_+`, (3.39);
    - "smoothed_margin": the same made smooth by :math:`\tfrac{\mu}{2} \|\alpha\|^2` in its dual,
      (3.46);
    - "triplet": :math:`\sum_{k \in P_i} \sum_{j \in N_i} [1 + z_j - z_k]_+`, (3.43).

    Their gradients are nearly zero for all labels but those of the sample and those of large
    score. With ``gradient="mips"`` a search over clusters of the rows of W finds the latter
    (algorithm 10). With ``gradient="decomposed"`` it runs on a few blocks of coordinates, each an
    easier problem, and labels that could matter in one of the blocks are scored in full:
    one step of greedy message passing (algorithm 11).

    Parameters
    ----------
    loss : {"softmax", "nca", "margin", "smoothed_margin", "triplet"}, default="softmax"
        What is minimised.
    gradient : {"decomposed", "mips", "sampled", "exact"}, default="decomposed"
        How labels are found: by search in blocks or in all coordinates, uniform negatives for each
        batch, or all labels.
    optimizer : {"adagrad", "sgd", "adam"}, default="adagrad"
        The step rule. Adam moves only rows that have a gradient.
    learning_rate : float, default=0.5
        Of the first step; the rate falls linearly to 0. In :meth:`partial_fit` it stays.
    max_iter : int, default=10
        Passes over the samples.
    batch_size : int, default=256
        Samples in a step. Searches of one batch share what they read.
    search : LabelSearch or None, default=None
        How many labels are looked at, and what is left out; None has the defaults of
        :class:`LabelSearch`.
    fit_intercept : bool, default=True
        Learn a bias for each label, as the weight of a constant feature.
    early_stopping : bool or int, default=False
        Keep rows away from training, and stop when the share of them whose best label is right
        has not risen for so many epochs; True means 3.
    validation_fraction : float, default=0.1
        Share of the rows for that.
    n_jobs : int or None, default=None
        Threads. The model does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Of orders, samples and clusters.
    verbose : int, default=0
        1 draws a progress bar.
    callback : callable or None, default=None
        Called with an event about ten times a second; a true value ends the fit.

    Attributes
    ----------
    weights_ : ndarray of shape (n_classes, n_features [+ 1])
        W; the last column is the intercept, if there is one.
    coef_, intercept_ : ndarrays
        The same apart.
    classes_ : ndarray
        The labels.
    objective_ : float
        Exact mean loss of at most 500 training rows.
    certificate_ : float
        How far the loss on the candidates of these rows is from `objective_`: what the search
        misses. 0 for "exact".
    recall_ : float
        Share of the best five labels of these rows that the index finds.
    threshold_ : float
        With several labels per sample, those above are predicted; set such that as many labels are
        predicted for these rows as they have.
    n_iter_ : int
        Epochs.
    trace_ : Trace
        By epoch: seconds, objective (mean loss on candidates), n_updates (rows moved), work (inner
        products), rate, and with early stopping held_out (share of rows whose best label is right;
        NaN for passes of `partial_fit`).

    References
    ----------
    .. [1] I. E. H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(300, 20))
    >>> y = rng.integers(300, size=6000)
    >>> X = centres[y] + 0.3 * rng.normal(size=(6000, 20))
    >>> model = DenseExtremeClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (n_classes, n_features)."""
        check_is_fitted(self)
        return self.weights_[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        check_is_fitted(self)
        if self.fit_intercept:
            return self.weights_[:, -1]
        return np.zeros(len(self.classes_), dtype=np.float32)

    def _check_features(self, X: MatrixLike, *, reset: bool) -> np.ndarray:
        rows = validate_numbers(self, X, reset=reset, dtype=[np.float32, np.float64])
        refuse_large(rows, f"{type(self).__name__}: X", np.float32)
        return rows.astype(np.float32, copy=False)

    def _hidden(self, X: np.ndarray) -> np.ndarray:
        return (X - self.centre_) * np.float32(1 / self.scale_)

    def _start_below(self, X: np.ndarray) -> int:
        wide = X.astype(np.float64)
        centre = wide.mean(axis=0) if self.fit_intercept else np.zeros(X.shape[1])
        self.centre_ = centre.astype(np.float32)
        length = float(np.sqrt(((wide - centre) ** 2).sum(axis=1).mean()))
        self.scale_ = length if length > _SHORTEST else 1.0
        return X.shape[1]

    def _first_weights(self, X: np.ndarray, labels: LabelRows) -> np.ndarray:
        return nearest_means(
            self._hidden(X), labels, len(self.classes_), self._rng,
            has_intercept=self.fit_intercept, n_threads=self._threads,
        )  # fmt: skip
