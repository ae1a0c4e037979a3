"""Two layers trained together: sparse features to embeddings, embeddings to very many labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.dense_extreme import LAYER_RULES
from sublearn.embed.layer_classifier import LayerClassifier
from sublearn.embed.layer_training import EpochReport, LabelRows, LayerTrainer
from sublearn.embed.padding import padded
from sublearn.io.fields import Floats
from sublearn.trace import Callback
from sublearn.validation import Positive, Rule, check_features
from sublearn.validation.native import refuse_large

__all__ = ["EmbeddingExtremeClassifier"]

_TINY = 1e-8


class EmbeddingExtremeClassifier(LayerClassifier):
    r"""Network with one linear hidden layer, from sparse features to very many labels.

    The scores of a sample are :math:`z = W V^\top x`: V has an embedding for each feature, W one
    for each label, and both are trained end to end on one of the losses of
    `DenseExtremeClassifier`. A step touches the embeddings of the features that its samples have,
    and of the labels that a search finds.

    Parameters
    ----------
    n_components : int, default=100
        Numbers in an embedding.
    loss, gradient, optimizer, learning_rate, schedule, max_iter, batch_size, n_blocks, \
    n_candidates, n_probe, n_sampled, n_warm, mu, tau, fit_intercept, early_stopping, \
    validation_fraction, n_iter_no_change, recall, n_jobs, random_state, verbose, callback
        As in `DenseExtremeClassifier`, but for a `learning_rate` of 0.1. Embeddings of features
        are always moved by Adagrad, with the same learning rate.

    Attributes
    ----------
    embeddings_ : ndarray of shape (n_features, n_components)
        V, the embeddings of features (words).
    weights_ : ndarray of shape (n_classes, n_components [+ 1])
        W; the last column is the intercept, if there is one.
    classes_, objective_, certificate_, recall_, threshold_, n_iter_, trace_
        As in `DenseExtremeClassifier`; `work` is not counted, and 0.

    References
    ----------
    .. [1] I. E. H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 3.3.4.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(50, size=2000)
    >>> words = np.stack([y, 50 + rng.integers(100, size=2000)], axis=1)  # one word says it
    >>> X = sp.csr_matrix((np.ones(4000), words.ravel(), np.arange(0, 4001, 2)))
    >>> model = EmbeddingExtremeClassifier(20).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.embed(X[:3]).shape
    (3, 20)
    """

    _rules: ClassVar[dict[str, Rule]] = {"n_components": Positive(int)} | LAYER_RULES

    def __init__(
        self,
        n_components: int = 100,
        *,
        loss: str = "softmax",
        gradient: str = "decomposed",
        optimizer: str = "adagrad",
        learning_rate: float = 0.1,
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
        self.n_components = n_components
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

    def embed(self, X: Any) -> np.ndarray:
        """Embeddings of documents: sums of those of their features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._hidden(self._check_features(X, reset=False))

    def _check_features(self, X: Any, *, reset: bool) -> sp.csr_matrix:
        rows = check_features(self, X, reset=reset)
        refuse_large(rows.data, f"{type(self).__name__}: X", np.float32)
        return rows.astype(np.float32)

    def _hidden(self, X: sp.csr_matrix) -> np.ndarray:
        return np.asarray(X @ self.embeddings_, dtype=np.float32)

    def _embed(self, X: sp.csr_matrix) -> np.ndarray:
        hidden = self._hidden(X)
        if not self.fit_intercept:
            return hidden
        return np.hstack([hidden, np.ones((len(hidden), 1), dtype=np.float32)])

    def _start_layers(
        self, X: sp.csr_matrix, n_labels: int, rng: np.random.Generator
    ) -> LayerTrainer:
        size = (X.shape[1], self.n_components)
        # Rows of length about one give hidden rows of length about one; labels start at zero.
        self.embeddings_ = rng.standard_normal(size, dtype=np.float32)
        self.embeddings_ /= np.float32(self.n_components**0.5)
        self._squares = np.zeros(size, dtype=np.float32)
        dim = self.n_components + bool(self.fit_intercept)
        weights = np.zeros((n_labels, dim), dtype=np.float32)
        return LayerTrainer(weights, self._plan(n_labels), rng)

    def _resume(self) -> LayerTrainer:
        self.embeddings_ = np.array(self.embeddings_)  # a loaded one is a view of the file
        self._squares = np.zeros_like(self.embeddings_)
        return super()._resume()

    def _epoch(
        self,
        X: sp.csr_matrix,
        labels: LabelRows,
        rates: tuple[float, float],
        is_warm: bool,
        monitor: Any,
    ) -> EpochReport:
        trainer = self._trainer
        self.embeddings_ = self.embeddings_.copy()  # a pass that is cut short leaves the former
        settings = trainer.plan.settings(trainer.prepare(is_warm))
        order = self._rng.permutation(X.shape[0])
        loss, n_updates, n_seen = 0.0, 0, 0
        while n_seen < len(order) and not monitor.stop_requested:
            batch = order[n_seen : n_seen + self.batch_size]
            rate = rates[0] + n_seen / len(order) * (rates[1] - rates[0])
            part = self._step(X[batch], labels.take(batch), settings, rate)
            if part is None:
                return EpochReport(loss / max(n_seen, 1), n_updates, 0, n_seen, False)
            loss, n_updates, n_seen = loss + part[0], n_updates + part[1], n_seen + len(batch)
            monitor.add_done(len(batch))
        trainer.note_samples(n_seen)
        return EpochReport(loss / max(n_seen, 1), n_updates, 0, n_seen, True)

    def _step(
        self, X: sp.csr_matrix, labels: LabelRows, settings: Any, rate: float
    ) -> tuple[float, int] | None:
        """Moves both layers; the loss and the labels moved, or None if it is not finite."""
        layer = self._trainer.layer
        losses, _, ids, _, slopes = layer.differentiate(
            padded(self._embed(X)),
            (labels.begin, labels.ids),
            settings,
            int(self._rng.integers(2**63)),
        )
        if not np.isfinite(losses).all() or not np.isfinite(slopes).all():
            return None
        used = np.unique(X.indices)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = X[:, used].T @ slopes[:, : self.n_components] / X.shape[0]
            squares = self._squares[used] + gradient**2
            moved = self.embeddings_[used] - rate * gradient / (np.sqrt(squares) + _TINY)
        if not np.isfinite(squares).all() or not np.isfinite(moved).all():
            return None
        layer.move_rows(settings, rate)
        self._squares[used], self.embeddings_[used] = squares, moved
        return float(losses.sum()), len(np.unique(ids))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_squares", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fields(self) -> Any:
        return super()._fields() | {"embeddings_": Floats("features", "components", bits=32)}

    def _restore(self, state: dict[str, Any]) -> None:
        self._refuse_other_layers(state, state["embeddings_"].shape[1])
        super()._restore(state)

    def _to_bundle(self) -> dict[str, Any]:
        return super()._to_bundle() | {"embeddings_": self.embeddings_}
