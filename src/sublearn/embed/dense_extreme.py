"""A linear last layer with very many labels on dense features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.layer_classifier import LayerClassifier
from sublearn.embed.layer_training import EpochReport, LabelRows, LayerTrainer
from sublearn.embed.padding import padded
from sublearn.trace import Callback
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    Positive,
    Rule,
)
from sublearn.validation.features import validate_numbers
from sublearn.validation.native import refuse_large

__all__ = ["LAYER_RULES", "DenseExtremeClassifier"]

#: Of the parameters that all classifiers with a dense last layer have.
LAYER_RULES: dict[str, Rule] = {
    "loss": OneOf("softmax", "nca", "margin", "triplet", "smoothed_margin"),
    "gradient": OneOf("exact", "sampled", "mips", "decomposed"),
    "optimizer": OneOf("sgd", "adagrad", "adam"),
    "learning_rate": Positive(float),
    "schedule": OneOf("constant", "linear", "inverse"),
    "max_iter": Positive(int),
    "batch_size": Positive(int),
    "n_blocks": Positive(int),
    "n_candidates": Positive(int),
    "n_probe": Positive(int),
    "n_sampled": Either(OneOf("auto"), Positive(int)),
    "n_warm": NonNegative(int),
    "mu": Positive(float),
    "tau": NonNegative(float),
    "fit_intercept": Boolean(),
    "early_stopping": Boolean(),
    "validation_fraction": Interval(float, 0, 1, "neither"),
    "n_iter_no_change": Positive(int),
    "recall": Interval(float, 0, 1, "right"),
    **RUN_RULES,
}


class DenseExtremeClassifier(LayerClassifier):
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
    (algorithm 10). With ``gradient="decomposed"`` it runs on `n_blocks` blocks of coordinates,
    each an easier problem, and labels that could matter in one of the blocks are scored in full:
    one step of greedy message passing (algorithm 11).

    Parameters
    ----------
    loss : {"softmax", "nca", "margin", "smoothed_margin", "triplet"}, default="softmax"
        What is minimised.
    gradient : {"decomposed", "mips", "sampled", "exact"}, default="decomposed"
        How labels are found: by search in blocks or in all coordinates, `n_sampled` uniform
        negatives for each batch, or all labels.
    optimizer : {"adagrad", "sgd", "adam"}, default="adagrad"
        The step rule. Adam moves only rows that have a gradient.
    learning_rate : float, default=0.5
        Of the first step.
    schedule : {"linear", "constant", "inverse"}, default="linear"
        The rate falls linearly to 0, stays, or falls as 1 / (1 + epoch).
    max_iter : int, default=10
        Passes over the samples.
    batch_size : int, default=256
        Samples in a step. Searches of one batch share what they read.
    n_blocks : int, default=2
        Blocks of coordinates of "decomposed". In the paper: B.
    n_candidates : int, default=64
        Negatives that a search gives a sample, at most; the blocks share them. In the paper: Q.
    n_probe : int, default=4
        Clusters, of about twice the square root of the number of labels, that a search looks at
        in each block.
    n_sampled : "auto" or int, default="auto"
        Negatives of a batch of "sampled", and of the first `n_warm` epochs of searches; "auto" is
        a hundredth of the labels, at least 100.
    n_warm : int, default=1
        Epochs by sampling before the first search: as long as W is small all labels have the
        same gradient.
    mu : float, default=1.0
        Smoothing of "smoothed_margin". In the paper: :math:`\mu`.
    tau : float, default=1e-3
        Gradients with respect to a score of at most this size are left out; not used by "exact".
        In the paper: :math:`\tau_2`.
    fit_intercept : bool, default=True
        Learn a bias for each label, as the weight of a constant feature.
    early_stopping : bool, default=False
        Keep rows away from training, and stop when the share of them whose best label is right
        has not risen for `n_iter_no_change` epochs.
    validation_fraction : float, default=0.1
        Share of the rows for that.
    n_iter_no_change : int, default=3
        Patience of early stopping.
    recall : float, default=0.95
        Share of the best five labels that prediction through the index finds, measured on training
        rows.
    n_jobs : int or None, default=None
        Threads. The model does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
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
    >>> model = DenseExtremeClassifier().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _rules: ClassVar[dict[str, Rule]] = LAYER_RULES

    def __init__(
        self,
        loss: str = "softmax",
        gradient: str = "decomposed",
        *,
        optimizer: str = "adagrad",
        learning_rate: float = 0.5,
        schedule: str = "linear",
        max_iter: int = 10,
        batch_size: int = 256,
        n_blocks: int = 2,
        n_candidates: int = 64,
        n_probe: int = 4,
        n_sampled: int | str = "auto",
        n_warm: int = 1,
        mu: float = 1.0,
        tau: float = 1e-3,
        fit_intercept: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        recall: float = 0.95,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.loss = loss
        self.gradient = gradient
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_blocks = n_blocks
        self.n_candidates = n_candidates
        self.n_probe = n_probe
        self.n_sampled = n_sampled
        self.n_warm = n_warm
        self.mu = mu
        self.tau = tau
        self.fit_intercept = fit_intercept
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.recall = recall
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

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

    def _check_features(self, X: Any, *, reset: bool) -> np.ndarray:
        rows = validate_numbers(self, X, reset=reset, dtype=[np.float32, np.float64])
        refuse_large(rows, f"{type(self).__name__}: X", np.float32)
        return rows.astype(np.float32, copy=False)

    def _embed(self, X: np.ndarray) -> np.ndarray:
        if not self.fit_intercept:
            return X
        return np.hstack([X, np.ones((len(X), 1), dtype=np.float32)])

    def _start_layers(self, X: np.ndarray, n_labels: int, rng: np.random.Generator) -> LayerTrainer:
        dim = X.shape[1] + bool(self.fit_intercept)
        weights = np.zeros((n_labels, dim), dtype=np.float32)
        return LayerTrainer(weights, self._plan(n_labels), rng)

    def _epoch(
        self,
        X: np.ndarray,
        labels: LabelRows,
        rates: tuple[float, float],
        is_warm: bool,
        monitor: Any,
    ) -> EpochReport:
        return self._trainer.run(
            padded(self._embed(X)),
            labels,
            batch_size=int(self.batch_size),
            rates=rates,
            is_warm=is_warm,
            monitor=monitor,
        )

    def _restore(self, state: dict[str, Any]) -> None:
        self._refuse_other_layers(state, state["n_features_in_"])
        super()._restore(state)
