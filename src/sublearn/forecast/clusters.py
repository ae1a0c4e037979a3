"""Clusters of rows in a kernel's feature space (2.4.3 - 2.4.28), and that of a query (2.4.41).

Rows are given by explicit features Phi (see `kernel`), so K = Phi Phi' has low rank and is never
formed: a product K G costs O(N m k). `kernel_kmeans_nmf` minimises |K - G G'|^2 over G >= 0
by the augmented Lagrangian of algorithm 7, reads clusters off G and polishes them by moves that
never raise the k-means objective; `kernel_kmeans_plain` is algorithm 5, its slow twin.

Two departures from the printed algorithm 7. It starts from G = X = 0 and V = 1, whose columns are
equal and stay equal; here G starts as the clusters of a few spread rows. And mu is taken in
units of the kernel's largest eigenvalue, since 10 is nothing to a matrix of norm N.

A query belongs to clusters with probabilities: scikit-learn's linear SVM on the features is a
kernel SVM, and a multinomial logistic regression on rows that it has not seen makes probabilities
of its scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sublearn.forecast.kernel import squared_distances
from sublearn.interruption import check
from sublearn.io.fields import Fields, Floats

__all__ = ["Membership", "kernel_kmeans_nmf", "kernel_kmeans_plain", "project_nonnegative"]

_HELD_OUT = 0.3  # of the rows, for the calibration of memberships


@dataclass(frozen=True)
class Clusters:
    """Cluster of each row, the centroids in feature space and the sum of squared distances."""

    labels: np.ndarray
    centroids: np.ndarray
    objective: float


def kernel_kmeans_nmf(
    features: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_starts: int = 2,
    max_iter: int = 60,
    tol: float = 1e-3,
) -> Clusters:
    """Clusters of the rows by algorithm 7, the best of a few starts.

    Each start is factorised, rounded to clusters, and polished; so is the start itself, since
    where there are no clusters to find the factor is no better a start than any other.
    """
    found = []
    for _ in range(n_starts):
        G = _spread_start(features, n_clusters, rng)
        factor = _factorise(features, G, max_iter, tol)
        found += [_polish(features, factor), _polish(features, G)]
    return min(found, key=lambda clusters: clusters.objective)


def kernel_kmeans_plain(
    features: np.ndarray, n_clusters: int, rng: np.random.Generator, *, max_iter: int = 300
) -> Clusters:
    """Algorithm 5 from random rows as centroids."""
    centroids = features[rng.permutation(len(features))[:n_clusters]]
    labels = _nearest(features, centroids)
    for _ in range(max_iter):
        centroids = _centroids(features, labels, n_clusters)
        before, labels = labels, _nearest(features, centroids)
        if np.array_equal(before, labels):
            break
    return _clusters(features, labels, n_clusters)


# --- algorithm 7 -------------------------------------------------------------------------------


def _factorise(features: np.ndarray, G: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
    """The factor of min |K - X G'|^2 with X = G >= 0."""
    norm = np.linalg.norm(features.T @ features, 2)  # of K: the largest eigenvalue
    phi = features / np.sqrt(norm)
    V = np.zeros_like(G)
    mu = 1.0
    identity = np.eye(G.shape[1])
    for _ in range(max_iter):
        check()
        KG = phi @ (phi.T @ G)
        X = np.linalg.solve(2.0 * (G.T @ G) + mu * identity, (2.0 * KG + V + mu * G).T).T
        G = project_nonnegative(phi @ (phi.T @ X), X, V, G, mu)
        V = V - mu * (X - G)
        # (2.4.28) with K of norm 1: how far X is from stationary, and from G.
        residual = -2.0 * phi @ (phi.T @ G) + 2.0 * X @ (G.T @ G) - V
        scale = np.linalg.norm(G)
        if max(np.linalg.norm(residual), np.linalg.norm(X - G)) <= tol * scale:
            break
    return G


def project_nonnegative(
    KX: np.ndarray, X: np.ndarray, V: np.ndarray, G: np.ndarray, mu: float, *,
    max_iter: int = 12, tol: float = 1e-4,
) -> np.ndarray:  # fmt: skip
    """Algorithm 6: the G >= 0 that minimises the augmented Lagrangian (2.4.15) for fixed X and V.

    The gradient is 2 G X'X - 2 K X + V - mu (X - G), so its Lipschitz constant is
    2 |X'X| + mu with the spectral norm; the step is one over it.
    """
    XX = 2.0 * (X.T @ X)
    constant = -2.0 * KX + V - mu * X
    lipschitz = float(np.linalg.norm(XX, 2)) + mu
    before, t_before = G, 1.0
    for _ in range(max_iter):
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t_before**2))
        Z = G + ((t_before - 1.0) / t) * (G - before)
        before, t_before = G, t
        G = np.maximum(Z - (Z @ XX + mu * Z + constant) / lipschitz, 0.0)
        if np.linalg.norm(G - before) <= tol * np.linalg.norm(before):
            break
    return G


def _spread_start(phi: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Membership of the rows, each column a unit vector, around rows drawn far from each other.

    Of a few draws by squared distance (k-means++) the one that lowers the sum most is taken.
    """
    chosen = [int(rng.integers(len(phi)))]
    distances = squared_distances(phi, phi[chosen])[:, 0]
    for _ in range(n_clusters - 1):
        total = distances.sum()
        p = distances / total if total > 0 else None
        tried = rng.choice(len(phi), size=min(4, len(phi)), p=p)
        options = np.minimum(distances[:, None], squared_distances(phi, phi[tried]))
        best = int(options.sum(axis=0).argmin())
        chosen.append(int(tried[best]))
        distances = options[:, best]
    labels = _nearest(phi, phi[chosen])
    G = np.full((len(phi), n_clusters), 0.1)
    G[np.arange(len(phi)), labels] = 1.0
    return G / np.linalg.norm(G, axis=0)


# --- from a factor to clusters -----------------------------------------------------------------


def _polish(features: np.ndarray, G: np.ndarray, max_rounds: int = 100) -> Clusters:
    """Round a factor to clusters, and move rows to better ones until none can be moved.

    Moving row i from cluster a to b changes the objective by
    n_b / (n_b + 1) |phi_i - c_b|^2 - n_a / (n_a - 1) |phi_i - c_a|^2 (Hartigan), which sees
    improvements that the nearest centroid does not. A round moves all rows whose single move pays,
    and falls back to the nearest centroids where moving all at once does not pay.
    """
    n_clusters = G.shape[1]
    labels = _fill_empty(features, G.argmax(axis=1), n_clusters)
    current = _clusters(features, labels, n_clusters)
    for _ in range(max_rounds):
        check()
        for propose in (_hartigan, _nearest_of, _single_move):
            labels = propose(features, current)
            moved = _clusters(features, labels, n_clusters)
            if moved.objective < current.objective * (1.0 - 1e-12):
                current = moved
                break
        else:
            break
    return current


def _move_costs(features: np.ndarray, current: Clusters) -> np.ndarray:
    """Change of the objective for each row and cluster, 0 for the row's own."""
    sizes = np.bincount(current.labels, minlength=len(current.centroids)).astype(np.float64)
    distances = squared_distances(features, current.centroids)
    rows = np.arange(len(features))
    own = sizes[current.labels]
    leaving = distances[rows, current.labels] * own / np.maximum(own - 1.0, 1e-300)
    leaving[own <= 1] = 0.0  # a cluster of one row has no sum to save
    costs = distances * (sizes / (sizes + 1.0)) - leaving[:, None]
    costs[rows, current.labels] = 0.0
    return costs


def _hartigan(features: np.ndarray, current: Clusters) -> np.ndarray:
    return _move_costs(features, current).argmin(axis=1)


def _nearest_of(features: np.ndarray, current: Clusters) -> np.ndarray:
    return _nearest(features, current.centroids)


def _single_move(features: np.ndarray, current: Clusters) -> np.ndarray:
    costs = _move_costs(features, current)
    row, cluster = np.unravel_index(int(costs.argmin()), costs.shape)
    labels = current.labels.copy()
    labels[row] = cluster
    return labels


def _fill_empty(features: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Give each empty cluster the row farthest from its centroid."""
    labels = labels.copy()
    for cluster in np.setdiff1d(np.arange(n_clusters), labels):
        centroids = _centroids(features, labels, n_clusters)
        far = ((features - centroids[labels]) ** 2).sum(axis=1)
        far[np.bincount(labels, minlength=n_clusters)[labels] == 1] = -1.0
        labels[int(far.argmax())] = cluster
    return labels


def _clusters(features: np.ndarray, labels: np.ndarray, n_clusters: int) -> Clusters:
    centroids = _centroids(features, labels, n_clusters)
    sizes = np.bincount(labels, minlength=n_clusters)
    # sum_i |phi_i - c|^2 = sum_i |phi_i|^2 - n |c|^2 in each cluster
    spread = float(np.einsum("ij,ij->", features, features))
    objective = spread - float(sizes @ np.einsum("ij,ij->i", centroids, centroids))
    return Clusters(labels, centroids, max(objective, 0.0))


def _centroids(features: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    sums = np.zeros((n_clusters, features.shape[1]))
    for cluster in range(n_clusters):
        members = features[labels == cluster]
        if len(members):
            sums[cluster] = members.mean(axis=0)
    return sums


def _nearest(features: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return squared_distances(features, centroids).argmin(axis=1)


# --- the cluster of a query --------------------------------------------------------------------


@dataclass(frozen=True)
class Membership:
    """Scores are features @ weights + bias, log-odds are scores @ slopes + offsets."""

    FIELDS: ClassVar[Fields] = {
        "weights": Floats("gate", "clusters", bits=64),
        "bias": Floats("clusters", bits=64),
        "slopes": Floats("clusters", "clusters", bits=64),
        "offsets": Floats("clusters", bits=64),
    }

    weights: np.ndarray
    bias: np.ndarray
    slopes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def fit(
        cls, features: np.ndarray, labels: np.ndarray, n_clusters: int, rng: np.random.Generator
    ) -> Membership:
        """Learn from rows with known clusters; each cluster must have two rows."""
        if n_clusters == 1:
            return cls.of_one(features.shape[1])
        seen = _stratified(labels, rng)
        svm = LinearSVC(C=10.0, tol=1e-3, max_iter=2000, dual=False).fit(
            features[seen], labels[seen]
        )
        weights, bias = _one_per_class(svm.coef_.T, svm.intercept_)
        calibration = LogisticRegression(C=10.0, max_iter=2000, tol=1e-3)
        calibration.fit(features[~seen] @ weights + bias, labels[~seen])
        slopes, offsets = _one_per_class(calibration.coef_.T, calibration.intercept_)
        return cls(weights, bias, slopes, offsets)

    @classmethod
    def of_one(cls, n_features: int) -> Membership:
        """All rows in one cluster."""
        return cls(np.zeros((n_features, 1)), np.zeros(1), np.ones((1, 1)), np.zeros(1))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.bias)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Probabilities, one row for each row of features."""
        odds = (features @ self.weights + self.bias) @ self.slopes + self.offsets
        odds -= odds.max(axis=1, keepdims=True)
        p = np.exp(odds)
        return p / p.sum(axis=1, keepdims=True)


def _stratified(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """True for the rows the SVM sees; of each cluster at least one row is on either side."""
    seen = np.ones(len(labels), dtype=bool)
    for cluster in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == cluster))
        seen[rows[: max(1, int(_HELD_OUT * len(rows)))]] = False
    return seen


def _one_per_class(weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For two classes scikit-learn gives the second one's score only; the first has its minus."""
    if len(bias) > 1:
        return weights, bias
    return np.hstack([-weights, weights]) / 2.0, np.concatenate([-bias, bias]) / 2.0
