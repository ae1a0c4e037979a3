"""Local kernel regressions and how they are joined (algorithms 3 and 4).

Training: columns are scaled by their relevance, rows are clustered in the kernel's feature space,
a membership model learns the clusters, and every cluster gets a regression of its own on the rows
that belong to it with some probability. Forecast: the local forecasts, weighted by membership.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sublearn.execution import map_blocks
from sublearn.forecast.clusters import Membership, kernel_kmeans_nmf, kernel_kmeans_plain
from sublearn.forecast.kernel import KernelMap, RowsMap, learn_relevance, make_map, restore_map
from sublearn.forecast.kernel_steps import fit_kernel_online, learn_new_kernel_rows
from sublearn.forecast.settings import LocalKernels
from sublearn.forecast.tube_regression import (
    REACH,
    Fit,
    TubeLoss,
    fit_interior_point,
    fit_online,
    learn_new_rows,
)
from sublearn.io.fields import (
    Fields,
    Floats,
    Integers,
    Number,
    Parts,
    Record,
    check_fields,
    take_parts,
)
from sublearn.typing import State

__all__ = ["Learner", "LocalModels", "LocalSettings"]

_N_GATE_COMPONENTS = 150  # features that clusters are found and told apart by
_N_CLUSTER_ROWS = 1500  # rows that clusters are found from
_HOURS = 24  # of a day: shorter steps say less each
_ROWS_PER_CLUSTER, _MOST_CLUSTERS = 4000, 8  # where the user leaves their number open
_FEWEST_IN_CLUSTER = 4
_OVERLAP = 0.1  # membership from which on a row belongs to a cluster beside its own
_PRESENT = 0.01  # memberships below this do not count in a forecast
_FIELDS: Fields = {
    "scales": Floats("columns", bits=64),
    "n_seen": Integers("clusters"),
    "C": Number(),
    "loss": Record(
        {
            **dict.fromkeys(("lower", "upper", "lower_slope", "upper_slope"), Number()),
            "share_below": Number(or_none=True),
        }
    ),
    **dict.fromkeys(("membership.*", "gate.*", "local*", "weights*"), Parts()),
}


@dataclass(frozen=True)
class LocalSettings:
    """What a user chose for local models."""

    kernels: LocalKernels
    loss: TubeLoss
    C: float | None
    solver: str
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Learner:
    """Settings, and what is needed besides to learn by them."""

    settings: LocalSettings
    rng: np.random.Generator
    should_stop: Callable[[], bool]
    n_threads: int = 1  # over clusters; the models do not depend on it
    day: int = 24  # steps of one

    def using(
        self, *, kernels: LocalKernels | None = None, loss: TubeLoss | None = None,
        tol: float | None = None,
    ) -> Learner:  # fmt: skip
        """The same with other kernels, another loss or another tolerance."""
        own = self.settings
        changed = replace(
            own, kernels=kernels or own.kernels, loss=loss or own.loss, tol=tol or own.tol
        )
        return replace(self, settings=changed)

    @property
    def is_kernel_form(self) -> bool:
        """Whether models keep their rows, and no features of them."""
        return self.settings.solver == "online_kernel"

    def solve(
        self, own_map: KernelMap, U: np.ndarray, y: np.ndarray, C: float, seed: int
    ) -> tuple[KernelMap, Fit]:
        """The regression of one cluster on scaled rows, and the map that it takes."""
        own = self.settings
        if self.is_kernel_form:
            return fit_kernel_online(U, y, own.loss, C, seed, batch=own.kernels.batch)
        features = _with_bias(own_map(U))
        if own.solver == "online":
            return own_map, fit_online(features, y, own.loss, C, seed, batch=own.kernels.batch)
        fit = fit_interior_point(
            features, y, own.loss, C, tol=own.tol, max_iter=own.max_iter,
            should_stop=self.should_stop,
        )  # fmt: skip
        return own_map, fit


@dataclass(frozen=True)
class LocalModels:
    """Fitted; `maps[c]` and `weights[c]` (the last one is the bias) are those of cluster c."""

    scales: np.ndarray
    gate_map: KernelMap
    membership: Membership
    maps: list[KernelMap]
    weights: list[np.ndarray]
    loss: TubeLoss
    C: float
    n_seen: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, y: np.ndarray, learner: Learner) -> tuple[LocalModels, list[Fit]]:
        """Algorithm 3 on rows X (standardised) with targets y, in units of the tube."""
        settings, rng = learner.settings, learner.rng
        kernels = settings.kernels
        relevance = learn_relevance(X, y, rng, kernels.relevance_rows)
        U = X * relevance.scales
        gate_map, membership = _distribute(U, learner)
        shares = _shares(membership, gate_map, U)
        C = relevance.loss_weight if settings.C is None else settings.C
        maps = [
            make_map(kernels.kernel_map, U[_rows_of(shares, c)], kernels.n_components, rng)
            for c in range(membership.n_clusters)
        ]
        bare = cls(relevance.scales, gate_map, membership, maps, [], settings.loss, C, np.empty(0))
        return bare.refit(X, y, learner)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Algorithm 4: the sum of local forecasts, each times its probability."""
        U, shares = self._placed(X)
        shares[shares < _PRESENT] = 0.0
        shares /= shares.sum(axis=1, keepdims=True)
        out = np.zeros(len(X))
        for cluster, (own_map, w) in enumerate(zip(self.maps, self.weights, strict=True)):
            rows = np.flatnonzero(shares[:, cluster])
            if len(rows):
                local = own_map(U[rows]) @ w[:-1] + w[-1]
                out[rows] += shares[rows, cluster] * local
        return out

    def refit(
        self, X: np.ndarray, y: np.ndarray, learner: Learner
    ) -> tuple[LocalModels, list[Fit]]:
        """The same scales, maps and memberships with weights fitted to these rows."""
        U, shares = self._placed(X)
        is_online = learner.settings.solver != "interior_point"
        seeds = learner.rng.integers(2**31, size=len(self.maps)) if is_online else None

        def solve(cluster: int) -> tuple[KernelMap, Fit, int]:
            rows = _rows_of(shares, cluster)
            seed = 0 if seeds is None else int(seeds[cluster])
            return *learner.solve(self.maps[cluster], U[rows], y[rows], self.C, seed), len(rows)

        clusters = range(len(self.maps))
        found = map_blocks(solve, clusters, learner.n_threads, stay_here=True)
        maps, fits, counts = zip(*found, strict=True)
        weights = [fit.w for fit in fits]
        made = replace(self, maps=list(maps), weights=weights, n_seen=np.array(counts))
        return made, list(fits)

    def updated(self, X: np.ndarray, y: np.ndarray) -> LocalModels:
        """After one online pass over new rows."""
        U, shares = self._placed(X)
        maps, weights, counts = list(self.maps), list(self.weights), self.n_seen.copy()
        for cluster, own_map in enumerate(self.maps):
            rows = np.flatnonzero(shares[:, cluster] >= _OVERLAP)
            if isinstance(own_map, RowsMap):
                maps[cluster], weights[cluster] = learn_new_kernel_rows(
                    own_map, weights[cluster], U[rows], y[rows], self.loss, REACH
                )
            elif len(rows):
                features = _with_bias(own_map(U[rows]))
                weights[cluster] = learn_new_rows(
                    features, y[rows], self.loss, self.C, weights[cluster], int(counts[cluster])
                )
            counts[cluster] += len(rows)
        return replace(self, maps=maps, weights=weights, n_seen=counts)

    def to_state(self) -> State:
        """Arrays that make the same models again, by name."""
        state: State = {"scales": self.scales, "n_seen": self.n_seen, "C": self.C}
        state |= {f"membership.{k}": v for k, v in vars(self.membership).items()}
        state |= {f"gate.{k}": v for k, v in vars(self.gate_map).items()}
        state["loss"] = self.loss.to_dict()
        for c, (own_map, w) in enumerate(zip(self.maps, self.weights, strict=True)):
            state |= {f"local{c}.{k}": v for k, v in vars(own_map).items()}
            state[f"weights{c}"] = w
        # A file keeps bytes in C order; some of these are views with their axes swapped.
        return {
            k: np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for k, v in state.items()
        }

    @classmethod
    def from_state(cls, state: State, n_columns: int) -> LocalModels:
        """Inverse of `to_state`, for rows of so many columns."""
        sizes = check_fields(state, _FIELDS, {"columns": n_columns})
        n_clusters = sizes["clusters"]
        maps = [restore_map(take_parts(state, f"local{c}."), n_columns) for c in range(n_clusters)]
        gate = restore_map(take_parts(state, "gate."), n_columns)
        membership = take_parts(state, "membership.")
        check_fields(membership, Membership.FIELDS, sizes | {"gate": gate.n_features})
        own: Fields = {
            f"weights{c}": Floats(own.n_features + 1, bits=64) for c, own in enumerate(maps)
        }
        weights = take_parts(state, "weights")
        check_fields({f"weights{c}": w for c, w in weights.items()}, own)
        return cls(
            state["scales"],
            gate,
            Membership(**membership),
            maps,
            [weights[str(c)] for c in range(n_clusters)],
            TubeLoss(**state["loss"]),
            float(state["C"]),
            state["n_seen"],
        )

    def _placed(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scaled rows, and their memberships."""
        U = X * self.scales
        return U, _shares(self.membership, self.gate_map, U)


def _distribute(U: np.ndarray, learner: Learner) -> tuple[KernelMap, Membership]:
    """Step 2 of algorithm 3 on a sample of the rows, and the membership model for all others."""
    kernels, rng = learner.settings.kernels, learner.rng
    n_clusters = kernels.n_clusters
    if n_clusters is None:
        rows_each = _ROWS_PER_CLUSTER * max(learner.day / _HOURS, 1.0)
        n_clusters = min(max(int(len(U) / rows_each), 1), _MOST_CLUSTERS)
    sample = U[rng.permutation(len(U))[:_N_CLUSTER_ROWS]]
    n_clusters = min(n_clusters, len(sample) // _FEWEST_IN_CLUSTER) or 1
    if n_clusters == 1:  # no features are needed to tell it from others
        return make_map(kernels.kernel_map, sample, 1, rng), Membership.of_one(1)
    gate_map = make_map(kernels.kernel_map, sample, _N_GATE_COMPONENTS, rng)
    features = gate_map(sample)
    cluster = {"nmf": kernel_kmeans_nmf, "kmeans": kernel_kmeans_plain}[kernels.clustering]
    labels = _without_crumbs(features, cluster(features, n_clusters, rng).labels)
    return gate_map, Membership.fit(features, labels, int(labels.max()) + 1, rng)


def _shares(membership: Membership, gate_map: KernelMap, U: np.ndarray) -> np.ndarray:
    """Memberships of scaled rows; a single cluster has them all."""
    if membership.n_clusters == 1:
        return np.ones((len(U), 1))
    return membership(gate_map(U))


def _without_crumbs(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Clusters of very few rows join their nearest neighbour; the rest are renumbered."""
    sizes = np.bincount(labels)
    kept = np.flatnonzero(sizes >= _FEWEST_IN_CLUSTER)
    if len(kept) == 0:
        return np.zeros_like(labels)
    centroids = np.stack([features[labels == c].mean(axis=0) for c in kept])
    out = np.searchsorted(kept, labels).clip(0, len(kept) - 1)
    for row in np.flatnonzero(~np.isin(labels, kept)):
        out[row] = int(((centroids - features[row]) ** 2).sum(axis=1).argmin())
    return out


def _rows_of(shares: np.ndarray, cluster: int) -> np.ndarray:
    """Rows a cluster learns from; neighbours share rows, so that no seam shows in a forecast."""
    own = shares.argmax(axis=1) == cluster
    rows = np.flatnonzero(own | (shares[:, cluster] >= _OVERLAP))
    return rows if len(rows) else np.arange(len(shares))


def _with_bias(features: np.ndarray) -> np.ndarray:
    return np.hstack([features, np.ones((len(features), 1))])
