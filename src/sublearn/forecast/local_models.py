"""Local kernel regressions and how they are joined (algorithms 3 and 4).

Training: columns are scaled by their relevance, rows are clustered in the kernel's feature space,
a membership model learns the clusters, and every cluster gets a regression of its own on the rows
that belong to it with some probability. Forecast: the local forecasts, weighted by membership.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sublearn import _core
from sublearn.execution import map_blocks
from sublearn.forecast.interior_point import Fit, fit_interior_point, judge
from sublearn.forecast.kernel_kmeans import kernel_kmeans_nmf, kernel_kmeans_plain
from sublearn.forecast.kernel_map import KernelMap, make_map, restore_map
from sublearn.forecast.membership import Membership
from sublearn.forecast.relevance import learn_relevance
from sublearn.forecast.tube_loss import TubeLoss
from sublearn.io.fields import (
    Floats,
    Integers,
    Number,
    Parts,
    Record,
    check_fields,
    take_parts,
)

__all__ = ["LocalModels", "LocalSettings", "Training"]

_REACH = 0.05  # of the way to the tube that a new row pulls a fitted model
_PRESENT = 0.01  # memberships below this do not count in a forecast
_FIELDS: dict[str, Any] = {
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
    """What a user chose, in units of the standardised target."""

    loss: TubeLoss
    C: float | None = None
    n_clusters: int | None = None
    clustering: str = "nmf"
    kernel_map: str = "nystroem"
    n_components: int = 400
    n_gate_components: int = 150
    n_cluster_rows: int = 3000
    rows_per_cluster: int = 4000
    most_clusters: int = 8
    overlap: float = 0.1
    relevance_rows: int = 700
    solver: str = "interior-point"
    n_epochs: int = 20
    tol: float = 1e-3
    max_iter: int = 50
    n_threads: int = 1  # over clusters; the models do not depend on it


@dataclass
class Training:
    """How the fits of the clusters went."""

    fits: list[Fit] = field(default_factory=list)

    @property
    def objective(self) -> float:
        """Sum over clusters."""
        return sum(fit.objective for fit in self.fits)

    @property
    def gap(self) -> float:
        """Sum over clusters."""
        return sum(fit.gap for fit in self.fits)

    @property
    def n_iter(self) -> int:
        """The most of any cluster."""
        return max((fit.n_iter for fit in self.fits), default=0)


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
    def fit(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        settings: LocalSettings,
        rng: np.random.Generator,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> tuple[LocalModels, Training]:
        """Algorithm 3 on rows X (standardised) with targets y."""
        relevance = learn_relevance(X, y, rng, n_rows=settings.relevance_rows)
        U = X * relevance.scales
        gate_map, membership = _distribute(U, settings, rng)
        shares = membership(gate_map(U))
        C = relevance.loss_weight if settings.C is None else settings.C
        maps = [
            make_map(
                settings.kernel_map, U[_rows_of(shares, cluster, settings.overlap)],
                settings.n_components, rng,
            )
            for cluster in range(membership.n_clusters)
        ]  # fmt: skip
        bare = cls(relevance.scales, gate_map, membership, maps, [], settings.loss, C, np.empty(0))
        return bare.refit(X, y, settings, rng, should_stop)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Algorithm 4: the sum of local forecasts, each times its probability."""
        U = X * self.scales
        shares = self.membership(self.gate_map(U))
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
        self,
        X: np.ndarray,
        y: np.ndarray,
        settings: LocalSettings,
        rng: np.random.Generator,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> tuple[LocalModels, Training]:
        """The same scales, maps and memberships with weights fitted to these rows."""
        U = X * self.scales
        shares = self.membership(self.gate_map(U))
        seeds = rng.integers(2**31, size=len(self.maps)) if settings.solver == "online" else None

        def solve(cluster: int) -> tuple[Fit, int]:
            rows = _rows_of(shares, cluster, settings.overlap)
            features = _with_bias(self.maps[cluster](U[rows]))
            seed = 0 if seeds is None else int(seeds[cluster])
            return _solve(features, y[rows], self.C, settings, seed, should_stop), len(rows)

        clusters = range(len(self.maps))
        found = map_blocks(solve, clusters, settings.n_threads, stay_here=True)
        fits, counts = zip(*found, strict=True)
        made = replace(self, weights=[fit.w for fit in fits], n_seen=np.array(counts))
        return made, Training(list(fits))

    def update(self, X: np.ndarray, y: np.ndarray, settings: LocalSettings) -> LocalModels:
        """One pass of algorithm 8 over new rows, in their order, from the step it had reached."""
        U = X * self.scales
        shares = self.membership(self.gate_map(U))
        weights, counts = [], self.n_seen.copy()
        for cluster, (own_map, w) in enumerate(zip(self.maps, self.weights, strict=True)):
            rows = np.flatnonzero(shares[:, cluster] >= settings.overlap)
            w = w.copy()
            if len(rows):
                online = _online_settings(self.loss, 1.0 / (self.C * counts[cluster]))
                online.first_step, online.reach = int(counts[cluster]), _REACH
                features = _with_bias(own_map(U[rows]))
                _core.online_svr(
                    features, np.ascontiguousarray(y[rows]), w, online, _core.Monitor()
                )
                counts[cluster] += len(rows)
            weights.append(w)
        return replace(self, weights=weights, n_seen=counts)

    def to_state(self) -> dict[str, Any]:
        """Arrays that make the same models again, by name."""
        state: dict[str, Any] = {"scales": self.scales, "n_seen": self.n_seen, "C": self.C}
        state |= {f"membership.{k}": v for k, v in vars(self.membership).items()}
        state |= {f"gate.{k}": v for k, v in self.gate_map.to_state().items()}
        state["loss"] = vars(self.loss)
        for c, (own_map, w) in enumerate(zip(self.maps, self.weights, strict=True)):
            state |= {f"local{c}.{k}": v for k, v in own_map.to_state().items()}
            state[f"weights{c}"] = w
        # A file keeps bytes in C order; some of these are views with their axes swapped.
        return {
            k: np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for k, v in state.items()
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_columns: int) -> LocalModels:
        """Inverse of `to_state`, for rows of so many columns."""
        sizes = check_fields(state, _FIELDS, {"columns": n_columns})
        n_clusters = sizes["clusters"]
        maps = [restore_map(take_parts(state, f"local{c}."), n_columns) for c in range(n_clusters)]
        gate = restore_map(take_parts(state, "gate."), n_columns)
        membership = take_parts(state, "membership.")
        check_fields(membership, Membership.FIELDS, sizes | {"gate": gate.n_features})
        own = {f"weights{c}": Floats(own.n_features + 1, bits=64) for c, own in enumerate(maps)}
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


def _distribute(
    U: np.ndarray, settings: LocalSettings, rng: np.random.Generator
) -> tuple[KernelMap, Membership]:
    """Step 2 of algorithm 3 on a sample of the rows, and the membership model for all others."""
    n_clusters = settings.n_clusters
    if n_clusters is None:
        n_clusters = min(max(len(U) // settings.rows_per_cluster, 1), settings.most_clusters)
    sample = U[rng.permutation(len(U))[: settings.n_cluster_rows]]
    n_clusters = min(n_clusters, len(sample) // 4) or 1
    gate_map = make_map(settings.kernel_map, sample, settings.n_gate_components, rng)
    features = gate_map(sample)
    if n_clusters == 1:
        return gate_map, Membership.fit(features, np.zeros(len(sample), dtype=int), 1, rng)
    cluster = {"nmf": kernel_kmeans_nmf, "kmeans": kernel_kmeans_plain}[settings.clustering]
    labels = _without_crumbs(features, cluster(features, n_clusters, rng).labels)
    return gate_map, Membership.fit(features, labels, int(labels.max()) + 1, rng)


def _without_crumbs(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Clusters of fewer than four rows join their nearest neighbour; the rest are renumbered."""
    sizes = np.bincount(labels)
    kept = np.flatnonzero(sizes >= 4)
    if len(kept) == 0:
        return np.zeros_like(labels)
    centroids = np.stack([features[labels == c].mean(axis=0) for c in kept])
    out = np.searchsorted(kept, labels).clip(0, len(kept) - 1)
    for row in np.flatnonzero(~np.isin(labels, kept)):
        out[row] = int(((centroids - features[row]) ** 2).sum(axis=1).argmin())
    return out


def _rows_of(shares: np.ndarray, cluster: int, overlap: float) -> np.ndarray:
    """Rows a cluster learns from; neighbours share rows, so that no seam shows in a forecast."""
    own = shares.argmax(axis=1) == cluster
    rows = np.flatnonzero(own | (shares[:, cluster] >= overlap))
    return rows if len(rows) else np.arange(len(shares))


def _with_bias(features: np.ndarray) -> np.ndarray:
    return np.hstack([features, np.ones((len(features), 1))])


def _solve(
    features: np.ndarray,
    y: np.ndarray,
    C: float,
    settings: LocalSettings,
    seed: int,
    should_stop: Callable[[], bool],
) -> Fit:
    if settings.solver == "online":
        return fit_online(features, y, settings.loss, C, settings.n_epochs, seed)
    return fit_interior_point(
        features, y, settings.loss, C, tol=settings.tol, max_iter=settings.max_iter,
        should_stop=should_stop,
    )  # fmt: skip


def fit_online(
    features: np.ndarray,
    y: np.ndarray,
    loss: TubeLoss,
    C: float,
    n_epochs: int,
    seed: int,
) -> Fit:
    """Algorithm 8 on explicit features, averaged over the second half of its steps.

    Its certificate is no better than the dual point at hand: the slopes at its own residuals,
    shrunk to where the dual value is largest.
    """
    n = len(y)
    online = _online_settings(loss, 1.0 / (C * n))
    online.n_epochs, online.seed = n_epochs, seed
    online.radius = float(np.sqrt(2.0 * loss.values(y).mean() * C * n))
    w = np.zeros(features.shape[1])
    _core.online_svr(features, np.ascontiguousarray(y), w, online, _core.Monitor())
    a = C * loss.slopes(y - features @ w)
    u = features.T @ a
    curvature, ascent = float(u @ u), float(a @ y - loss.conjugate(a).sum())
    share = min(max(ascent / curvature, 0.0), 1.0) if curvature > 0 else 0.0
    return judge(features, y, loss, C, w, share * a, n_epochs)


def _online_settings(loss: TubeLoss, l2: float) -> Any:
    online = _core.OnlineSvrSettings()
    online.lower, online.upper = loss.lower, loss.upper
    online.lower_slope, online.upper_slope = loss.lower_slope, loss.upper_slope
    online.l2 = l2
    return online
