"""A linear last layer with very many labels on dense features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.class_means import nearest_means, scaled_means
from sublearn.embed.distances import lifted_rows
from sublearn.embed.label_search import LabelSearch
from sublearn.embed.layer_classifier import LayerClassifier
from sublearn.embed.layer_training import LabelRows
from sublearn.io.fields import Fields, Floats, OrAbsent
from sublearn.trace import Callback
from sublearn.typing import MatrixLike, Seed, State
from sublearn.validation import NonNegative, Positive, Rule
from sublearn.validation.features import validate_numbers
from sublearn.validation.values import refuse_large

__all__ = ["DenseExtremeClassifier"]

_SHORTEST = 1e-12  # rows shorter than this are all alike


class DenseExtremeClassifier(LayerClassifier[np.ndarray]):
    r"""Linear classifier on dense features whose steps look at few of the labels.

    Minimises, by mini-batches,

    .. math::
        \frac1n \sum_i L(W x_i) + \frac{l_2}{2} \|W - W_0\|^2

    over rows :math:`x_i` that are centred and divided by their root mean square length, so that no
    step depends on the scale of the features. It starts at :math:`W_0`, the classifier of nearest
    class means. L is a loss of the scores :math:`z = W x_i`, with :math:`P_i` the labels of sample
    :math:`i` and :math:`N_i` the others:

    - "softmax": :math:`\sum_{k \in P_i} \log \sum_j e^{z_j} - z_k`, (3.38) of [1]_; "nca", (3.42),
      is the same function of scores that are negative distances;
    - "margin": :math:`[1 + \max_{j \in N_i} z_j - \min_{k \in P_i} z_k]_+`, (3.39);
    - "smoothed_margin": the same made smooth by :math:`\tfrac{\mu}{2} \|\alpha\|^2` in its dual,
      (3.46);
    - "triplet": :math:`\sum_{k \in P_i} \sum_{j \in N_i} [1 + z_j - z_k]_+`, (3.43).

    Their gradients are nearly zero for all labels but those of the sample and those of large
    score. Labels that a search does not find stand in the sum of softmax with the score 0. With
    ``gradient="mips"`` a search over clusters of the rows of W finds the latter
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
    learning_rate : "auto" or float, default="auto"
        Of the first step, for rows that are centred and of length about 1; the rate falls linearly
        to 0. "auto" is 0.1 (1 + log10 n) where labels have n samples on average: steps may be long
        where labels have many. In :meth:`partial_fit` the rate stays, and "auto" is 0.5.
    max_iter : int, default=10
        Passes over the samples.
    batch_size : int, default=256
        Samples in a step. Searches of one batch share what they read.
    search : LabelSearch or None, default=None
        How many labels are looked at, and what is left out; None has the defaults of
        :class:`LabelSearch`.
    l2 : float, default=0.0
        Weight of the pull towards the start: 1 / n_samples and more where labels have very few
        samples. Not used in :meth:`partial_fit`.
    fit_intercept : bool, default=True
        Learn a bias for each label, as the weight of a constant feature. Without it features are
        not centred.
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
    centre_, scale_ : ndarray of shape (n_features,), float
        Mean of the features that the first fit saw (0 without intercept), and root mean square of
        the distance from it: the layer has ``(x - centre_) / scale_`` as its input.
    weights_ : ndarray of shape (n_classes, n_features [+ 1])
        W; the last column is the intercept, if there is one.
    coef_, intercept_ : ndarrays
        The same for features as they are given: scores are ``X @ coef_.T + intercept_``.
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

    _rules: ClassVar[Mapping[str, Rule]] = {**LayerClassifier._rules, "l2": NonNegative(float)}

    centre_: np.ndarray
    scale_: float

    def __init__(
        self,
        loss: str = "softmax",
        gradient: str = "decomposed",
        *,
        optimizer: str = "adagrad",
        learning_rate: float | str = "auto",
        l2: float = 0.0,
        max_iter: int = 10,
        batch_size: int = 256,
        search: LabelSearch | None = None,
        fit_intercept: bool = True,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        super().__init__(
            loss, gradient, optimizer=optimizer, learning_rate=learning_rate, max_iter=max_iter,
            batch_size=batch_size, search=search, fit_intercept=fit_intercept,
            early_stopping=early_stopping, validation_fraction=validation_fraction, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose, callback=callback,
        )  # fmt: skip
        self.l2 = l2

    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (n_classes, n_features); none where scores are distances."""
        check_is_fitted(self)
        if self._is_metric:
            raise AttributeError("DenseExtremeClassifier has no coef_ where scores are distances")
        return self.weights_[:, : self.n_features_in_] / np.float32(self.scale_)

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        check_is_fitted(self)
        if self.fit_intercept:
            return self.weights_[:, -1] - self.coef_ @ self.centre_
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

    @property
    def _l2(self) -> float:
        return float(self.l2)

    @property
    def _damping(self) -> float:
        # A row of features has length about 1: a single sample then moves its score by about 1.
        return 0.5 / float(self.batch_size)

    def _first_weights(self, X: np.ndarray, labels: LabelRows) -> np.ndarray:
        if self._is_metric:
            return self._first_proxies(X, labels)
        return nearest_means(
            self._hidden(X), labels, len(self.classes_), self._rng,
            has_intercept=self.fit_intercept, n_threads=self._threads,
        )  # fmt: skip

    def _first_proxies(self, X: np.ndarray, labels: LabelRows) -> np.ndarray:
        """The means, with features at the scale whose distances are c (<m, x> - |m|^2 / 2)."""
        means, scale = scaled_means(
            self._hidden(X), labels, len(self.classes_), self._rng,
            has_intercept=True, n_threads=self._threads,
        )  # fmt: skip
        factor = np.sqrt(scale / 2)
        if not factor > 0 or not np.isfinite(factor * means).all():
            return self._no_weights()
        self.scale_ /= float(factor)
        return lifted_rows((factor * means).astype(np.float32))

    _STORED = (*LayerClassifier._STORED, "centre_", "scale_")

    def _fields(self) -> Fields:
        # Files of earlier versions have neither: their layers take features as they are.
        return super()._fields() | {
            "centre_": OrAbsent(Floats("features", finite=True, bits=32)),
            "scale_": OrAbsent(Positive(float)),
        }

    def _restore(self, state: State) -> None:
        n_features = int(state["n_features_in_"])
        if state.setdefault("centre_", np.zeros(n_features, np.float32)).shape != (n_features,):
            raise ValueError(
                f"centre_ must have {n_features} numbers, got shape {state['centre_'].shape}"
            )
        state.setdefault("scale_", 1.0)
        super()._restore(state)
