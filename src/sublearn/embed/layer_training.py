"""Training the last layer of a model with very many labels: epochs, searches, step sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.clustering import BALANCE, assign, count_clusters, spherical_kmeans
from sublearn.embed.distances import METRIC_LOSSES, BlockLift
from sublearn.embed.label_search import LabelSearch
from sublearn.embed.padding import padded

__all__ = ["EpochReport", "LabelRows", "LayerTrainer"]

_ROUNDS = 3  # of k-means: rows move on, so that better centres would not stay better


class LabelRows(NamedTuple):
    """The labels of each sample: those of row i are ``ids[begin[i]:begin[i + 1]]``, increasing."""

    begin: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, indicator: sp.csr_matrix) -> LabelRows:
        """From an indicator matrix in CSR form with sorted indices."""
        return cls(indicator.indptr.astype(np.int64), indicator.indices.astype(np.int32))

    def take(self, rows: np.ndarray) -> LabelRows:
        """The labels of some samples."""
        counts = np.diff(self.begin)[rows]
        begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        place = np.arange(begin[-1]) + np.repeat(self.begin[rows] - begin[:-1], counts)
        return LabelRows(begin, self.ids[place])


class EpochReport(NamedTuple):
    """What a pass over samples did."""

    loss: float  # mean over the samples seen, on their candidates
    n_updates: int
    work: int
    n_seen: int
    is_finite: bool


class LayerTrainer:
    """A layer z = W x in the core, with the indices that its searches use.

    It starts at given weights, of shape (n_labels, n_features); `rng` draws centres, orders and
    samples, and the rest is as in `DenseExtremeClassifier`. Weights and features of a metric loss
    are lifted (distances.py); the layer in the core has them lifted in blocks.
    """

    def __init__(
        self,
        weights: np.ndarray,
        rng: np.random.Generator,
        *,
        loss: str,
        gradient: str,
        search: LabelSearch | None,
        n_threads: int,
        optimizer: str = "sgd",
        damping: float = 0.0,
    ):
        self.n_labels, self.dim = weights.shape
        self._rng, self._loss, self._gradient, self._n_threads = rng, loss, gradient, n_threads
        self._search = LabelSearch.of(search)
        n_blocks = self._search.n_blocks if gradient == "decomposed" else 1
        is_metric = loss in METRIC_LOSSES
        self._lift = BlockLift(self.dim - 2, n_blocks) if is_metric else None
        rows, width, blocks = weights, self.dim, []
        if self._lift is not None:
            rows, width, blocks = self._lift.rows(weights), self._lift.width, self._lift.blocks
        self.layer = _core.OutputLayer(padded(rows), width, optimizer, damping, blocks)
        self._since_build: float = np.inf  # samples since the clusters were made
        self.l2 = 0.0  # of the pull towards the weights before the first step that has one
        self.is_under_way = False  # in a pass; it stays so if the pass does not come to its end

    def weights(self) -> np.ndarray:
        """The rows as they are now."""
        rows = self.layer.weights()
        return rows[:, : self.dim] if self._lift is None else self._lift.back(rows)

    def set_rows(self, labels: np.ndarray, rows: np.ndarray) -> None:
        """Give labels weights from outside."""
        self.layer.set_rows(labels, padded(rows if self._lift is None else self._lift.rows(rows)))

    def inputs(self, features: np.ndarray) -> np.ndarray:
        """Features as the layer in the core takes them."""
        return padded(features if self._lift is None else self._lift.queries(features))

    def slopes(self, slopes: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The gradient by what features were made of, from that of the layer in the core."""
        if self._lift is None:
            return slopes[:, : features.shape[1]]
        return self._lift.slopes(slopes, features)

    def settings(self, gradient: str) -> _core.LayerSettings:
        """What the core wants, for one way to find candidates."""
        search = self._search
        return _core.layer_settings(
            loss=self._loss,
            mu=float(search.smoothing),
            gradient=gradient,
            n_candidates=int(search.n_candidates),
            n_probe=int(search.n_probe),
            n_sampled=search.samples_of(self.n_labels),
            tau=0.0 if gradient == "exact" else float(search.min_gradient),
            n_messages=int(search.n_messages or 0),
            widens=bool(search.widens),
            refresh=float(search.refresh),
            counts_mean=search.rest == "mean" or (search.rest == "auto" and self._lift is not None),
            l2=self.l2,
            n_threads=self._n_threads,
        )

    def prepare(self, n_epochs: float) -> _core.LayerSettings:
        """Settings of the samples after so many epochs; makes indices that are missing or old."""
        if self._gradient not in ("mips", "decomposed"):
            return self.settings(self._gradient)
        if n_epochs < self._search.n_warm:
            return self.settings("sampled")
        if self._since_build >= self.n_labels:
            self._build()
        return self.settings(self._gradient)

    def note_samples(self, n_samples: int) -> None:
        """Samples have passed: rows have moved away from their centres."""
        self._since_build += n_samples

    def run(
        self,
        features: np.ndarray,
        labels: LabelRows,
        settings: _core.LayerSettings,
        batch_size: int,
        rates: tuple[float, float],
        monitor: _core.Monitor,
    ) -> EpochReport:
        """One pass over padded samples in a random order."""
        order = self._rng.permutation(len(features)).astype(np.int64)
        seed = int(self._rng.integers(2**63))
        loss, n_updates, work, n_seen, is_finite = self.layer.train(
            features, labels, order, settings, batch_size, rates, seed, monitor
        )
        self.note_samples(n_seen)
        return EpochReport(loss / max(n_seen, 1), n_updates, work, n_seen, is_finite)

    def mean_loss(
        self, features: np.ndarray, labels: LabelRows, settings: _core.LayerSettings
    ) -> float:
        """Mean loss of padded samples by one way to find candidates; nothing is changed."""
        losses = self.layer.differentiate(features, labels, settings, 0)[0]
        return float(losses.mean())

    def _build(self) -> None:
        """Clusters of each block of coordinates."""
        rows = self.layer.weights()
        n_clusters = count_clusters(self.n_labels)
        self.layer.clear_blocks()
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
            for first, block in self._blocks(rows):
                centres = spherical_kmeans(block, n_clusters, _ROUNDS, self._rng)
                cluster_of, _ = assign(block, centres, BALANCE)
                self.layer.add_block(first, block.shape[1], centres, cluster_of.astype(np.int32))
        self._since_build = 0

    def _blocks(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The first column of each block, and its rows as clusters see them."""
        if self._lift is not None:
            for first, n in self._lift.blocks:
                yield first, self._lift.for_clusters(rows, first, n)
            return
        n_blocks = 1 if self._gradient == "mips" else min(self._search.n_blocks, self.dim)
        for columns in np.array_split(np.arange(self.dim), n_blocks):
            yield int(columns[0]), np.ascontiguousarray(rows[:, columns[0] : columns[-1] + 1])
