"""Two layers trained together: sparse features to embeddings, embeddings to very many labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.embed.label_search import LabelSearch
from sublearn.embed.layer_classifier import LayerClassifier
from sublearn.embed.layer_training import EpochReport, LabelRows, LayerTrainer
from sublearn.io.fields import Fields, Floats
from sublearn.trace import Callback
from sublearn.typing import MatrixLike, Seed, State
from sublearn.validation import Positive, Rule, check_features
from sublearn.validation.values import refuse_large

__all__ = ["EmbeddingExtremeClassifier"]

_TINY = 1e-8


class EmbeddingExtremeClassifier(LayerClassifier[sp.csr_matrix]):
    r"""Network with one linear hidden layer, from sparse features to very many labels.

    The scores of a sample are :math:`z = W V^\top x`: V has an embedding for each feature, W one
    for each label, and both are trained end to end on one of the losses of
    `DenseExtremeClassifier`. A step touches the embeddings of the features that its samples have,
    and of the labels that a search finds.

    Parameters
    ----------
    n_components : int, default=100
        Numbers in an embedding.
    loss, gradient, optimizer, learning_rate, max_iter, batch_size, search, fit_intercept, \
    early_stopping, validation_fraction, n_jobs, random_state, verbose, callback
        As in `DenseExtremeClassifier`, but for a `learning_rate` of 0.05. Embeddings of features
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
    >>> model = EmbeddingExtremeClassifier(20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.embed(X[:3]).shape
    (3, 20)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_components": Positive(int),
        **LayerClassifier._rules,
    }

    embeddings_: np.ndarray

    def __init__(
        self,
        n_components: int = 100,
        *,
        loss: str = "softmax",
        gradient: str = "decomposed",
        optimizer: str = "adagrad",
        learning_rate: float | str = 0.05,
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
        self.n_components = n_components

    def embed(self, X: MatrixLike) -> np.ndarray:
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

    def _check_features(self, X: MatrixLike, *, reset: bool) -> sp.csr_matrix:
        rows = check_features(self, X, reset=reset)
        refuse_large(rows.data, f"{type(self).__name__}: X", np.float32)
        return rows.astype(np.float32)

    def _hidden(self, X: sp.csr_matrix) -> np.ndarray:
        return np.asarray(X @ self.embeddings_, dtype=np.float32)

    def _start_below(self, X: sp.csr_matrix) -> int:
        size = (X.shape[1], self.n_components)
        # Rows of length about one give hidden rows of length about one; labels start at zero.
        self.embeddings_ = self._rng.standard_normal(size, dtype=np.float32)
        self.embeddings_ /= np.float32(self.n_components**0.5)
        self._squares = np.zeros(size, dtype=np.float32)
        return self.n_components

    def _resume(self) -> LayerTrainer:
        self.embeddings_ = np.array(self.embeddings_)  # a loaded one is a view of the file
        self._squares = np.zeros_like(self.embeddings_)
        return super()._resume()

    def _epoch(
        self,
        X: sp.csr_matrix,
        labels: LabelRows,
        settings: _core.LayerSettings,
        rates: tuple[float, float],
        monitor: _core.Monitor,
    ) -> EpochReport:
        self.embeddings_ = self.embeddings_.copy()  # a pass that is cut short leaves the former
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
        self._trainer.note_samples(n_seen)
        return EpochReport(loss / max(n_seen, 1), n_updates, 0, n_seen, True)

    def _step(
        self, X: sp.csr_matrix, labels: LabelRows, settings: _core.LayerSettings, rate: float
    ) -> tuple[float, int] | None:
        """Move both layers; the loss and the labels moved, or None if it is not finite."""
        layer, seed = self._trainer.layer, int(self._rng.integers(2**63))
        hidden = self._embed(X)
        losses, _, ids, _, slopes = layer.differentiate(
            self._trainer.inputs(hidden), labels, settings, seed
        )
        slopes = self._trainer.slopes(slopes, hidden)
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

    def __getstate__(self) -> State:
        state = super().__getstate__()
        state.pop("_squares", None)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    _STORED = (*LayerClassifier._STORED, "embeddings_")

    def _fields(self) -> Fields:
        return super()._fields() | {"embeddings_": Floats("features", "components", bits=32)}

    def _n_inputs(self, state: State) -> int:
        return int(state["embeddings_"].shape[1])
