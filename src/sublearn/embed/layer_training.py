"""Training the last layer of a model with very many labels: epochs, searches, step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sublearn import _core
from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.clustering import assign, spherical_kmeans
from sublearn.embed.padding import padded

__all__ = ["EpochReport", "LabelRows", "LayerPlan", "LayerTrainer"]

_ROUNDS = 3  # of k-means: rows move on, so that better centres would not stay better
_BALANCE = 2.0  # no cluster has more than this many times the mean number of rows


@dataclass(frozen=True)
class LabelRows:
    """The labels of each sample: those of row i are ``ids[begin[i]:begin[i + 1]]``, increasing."""

    begin: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, indicator: Any) -> LabelRows:
        """From an indicator matrix in CSR form with sorted indices."""
        return cls(indicator.indptr.astype(np.int64), indicator.indices.astype(np.int32))

    def take(self, rows: np.ndarray) -> LabelRows:
        """The labels of some samples."""
        counts = np.diff(self.begin)[rows]
        begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        place = np.arange(begin[-1]) + np.repeat(self.begin[rows] - begin[:-1], counts)
        return LabelRows(begin, self.ids[place])


@dataclass(frozen=True)
class LayerPlan:
    """How a layer is trained; the estimators' parameters of the same names."""

    loss: str
    mu: float
    gradient: str
    optimizer: str
    n_blocks: int
    n_candidates: int
    n_probe: int
    n_sampled: int
    tau: float
    n_threads: int

    @classmethod
    def with_defaults(
        cls,
        n_labels: int,
        *,
        n_sampled: int | str = "auto",
        **others: Any,
    ) -> LayerPlan:
        """A number of samples that is "auto" follows from the number of labels."""
        if n_sampled == "auto":
            n_sampled = max(100, n_labels // 100)
        return cls(n_sampled=int(n_sampled), **others)

    def settings(self, gradient: str) -> Any:
        """What the core wants, for this or another way to find candidates."""
        return _core.layer_settings(
            loss=self.loss,
            mu=self.mu,
            gradient=gradient,
            n_candidates=self.n_candidates,
            n_probe=self.n_probe,
            n_sampled=self.n_sampled,
            tau=0.0 if gradient == "exact" else self.tau,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True)
class EpochReport:
    """What a pass over samples did."""

    loss: float  # mean over the samples seen, on their candidates
    n_updates: int
    work: int
    n_seen: int
    is_finite: bool


class LayerTrainer:
    """A layer z = W x in the core, with the indices that its searches use.

    Parameters
    ----------
    weights : ndarray of shape (n_labels, n_features)
        Where to start.
    plan : LayerPlan
        How to train.
    rng : Generator
        Draws centres, orders and samples.
    """

    def __init__(self, weights: np.ndarray, plan: LayerPlan, rng: np.random.Generator):
        self.plan = plan
        self.n_labels, self.dim = weights.shape
        self._rng = rng
        self.layer = _core.OutputLayer(padded(weights), self.dim, plan.optimizer)
        self._since_build: float = np.inf  # samples since the clusters were made
        self.is_under_way = False  # in a pass; it stays so if the pass does not come to its end

    @property
    def searches(self) -> bool:
        """Whether candidates are found by search."""
        return self.plan.gradient in ("mips", "decomposed")

    def weights(self) -> np.ndarray:
        """The rows as they are now."""
        return self.layer.weights()[:, : self.dim]

    def prepare(self, is_warm: bool) -> str:
        """The gradient that the next samples get; makes its indices if they are missing or old."""
        if not self.searches:
            return self.plan.gradient
        if not is_warm:
            return "sampled"
        if self._since_build >= self.n_labels:
            self._build()
        return self.plan.gradient

    def note_samples(self, n_samples: int) -> None:
        """Samples have passed: rows have moved away from their centres."""
        self._since_build += n_samples

    def run(
        self,
        features: np.ndarray,
        labels: LabelRows,
        *,
        batch_size: int,
        rates: tuple[float, float],
        is_warm: bool,
        monitor: Any,
    ) -> EpochReport:
        """One pass over padded samples in a random order."""
        gradient = self.prepare(is_warm)
        order = self._rng.permutation(len(features)).astype(np.int64)
        loss, n_updates, work, n_seen, is_finite = self.layer.train(
            features,
            (labels.begin, labels.ids),
            order,
            self.plan.settings(gradient),
            batch_size,
            rates,
            int(self._rng.integers(2**63)),
            monitor,
        )
        self.note_samples(n_seen)
        return EpochReport(loss / max(n_seen, 1), n_updates, work, n_seen, is_finite)

    def mean_loss(self, features: np.ndarray, labels: LabelRows, gradient: str) -> float:
        """Mean loss of padded samples by one way to find candidates; nothing is changed."""
        losses = self.layer.differentiate(
            features, (labels.begin, labels.ids), self.plan.settings(gradient), 0
        )[0]
        return float(losses.mean())

    def _build(self) -> None:
        """Clusters of each block of coordinates: C about twice the square root of K."""
        rows = self.weights()
        n_clusters = max(1, min(self.n_labels, round(2 * self.n_labels**0.5)))
        n_blocks = 1 if self.plan.gradient == "mips" else min(self.plan.n_blocks, self.dim)
        capacity = int(np.ceil(_BALANCE * self.n_labels / n_clusters))
        self.layer.clear_blocks()
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
            for columns in np.array_split(np.arange(self.dim), n_blocks):
                first, count = int(columns[0]), len(columns)
                block = np.ascontiguousarray(rows[:, first : first + count])
                centres = spherical_kmeans(block, n_clusters, _ROUNDS, self._rng)
                cluster_of, _ = assign(block, centres, capacity)
                self.layer.add_block(first, count, centres, cluster_of.astype(np.int32))
        self._since_build = 0
