"""Kernel k-means: its steps by definition, and its objective beside restarts of the plain one."""

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs, make_moons

from sublearn.forecast.clusters import (
    kernel_kmeans_nmf,
    kernel_kmeans_plain,
    project_nonnegative,
)
from sublearn.forecast.kernel import FourierMap, NystroemMap, gaussian_kernel


def features_of(X, n=80, seed=0):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return NystroemMap.fit(X, n, np.random.default_rng(seed))(X)


SETS = {
    "blobs": (make_blobs(200, 4, centers=6, random_state=0)[0], 6),
    "moons": (make_moons(200, noise=0.1, random_state=0)[0], 5),
    "iris": (load_iris().data, 4),
}


@pytest.mark.parametrize("name", SETS)
def test_is_never_worse_than_the_best_of_ten_plain_restarts(name):
    X, k = SETS[name]
    phi = features_of(X)
    found = kernel_kmeans_nmf(phi, k, np.random.default_rng(0))
    plain = [kernel_kmeans_plain(phi, k, np.random.default_rng(i)).objective for i in range(10)]
    assert found.objective <= min(plain) * (1 + 1e-9)
    assert len(np.unique(found.labels)) == k


def test_the_objective_is_the_sum_of_squared_distances():
    phi = features_of(SETS["iris"][0])
    for found in (
        kernel_kmeans_nmf(phi, 3, np.random.default_rng(0)),
        kernel_kmeans_plain(phi, 3, np.random.default_rng(0)),
    ):
        centres = np.stack([phi[found.labels == c].mean(axis=0) for c in range(3)])
        by_hand = ((phi - centres[found.labels]) ** 2).sum()
        assert found.objective == pytest.approx(by_hand)
        np.testing.assert_allclose(found.centroids, centres)


def test_the_plain_one_ends_where_scikit_learn_ends():
    phi = features_of(SETS["blobs"][0])
    found = kernel_kmeans_plain(phi, 6, np.random.default_rng(3))
    again = KMeans(6, init=found.centroids, n_init=1, tol=0).fit(phi)
    assert again.inertia_ == pytest.approx(found.objective)


def test_algorithm_6_solves_its_subproblem():
    """Row by row it is a non-negative least-squares problem, which SciPy solves."""
    rng = np.random.default_rng(0)
    phi, X, V = rng.normal(size=(30, 8)), rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    KX, mu = phi @ (phi.T @ X), 2.0
    G = project_nonnegative(KX, X, V, np.ones((30, 3)), mu, max_iter=5000, tol=1e-13)
    # 1/2 g'Ag - b'g with A = 2 X'X + mu I and b = 2 KX - V + mu X
    root = np.linalg.cholesky(2 * X.T @ X + mu * np.eye(3)).T
    for row in range(30):
        b = 2 * KX[row] - V[row] + mu * X[row]
        best, _ = nnls(root, np.linalg.solve(root.T, b))
        np.testing.assert_allclose(G[row], best, atol=1e-6)


def test_more_clusters_than_distinct_rows_are_no_obstacle():
    phi = np.repeat(np.eye(3), 4, axis=0)
    found = kernel_kmeans_nmf(phi, 5, np.random.default_rng(0))
    assert found.objective == pytest.approx(0.0, abs=1e-9)


def test_landmarks_give_the_kernel_exactly_among_themselves():
    X = np.random.default_rng(0).normal(size=(40, 3))
    phi = NystroemMap.fit(X, 40, np.random.default_rng(1))(X)
    np.testing.assert_allclose(phi @ phi.T, gaussian_kernel(X, X), atol=1e-5)


def test_random_features_give_the_kernel_in_the_mean():
    X = np.random.default_rng(0).normal(size=(20, 3))
    phi = FourierMap.fit(X, 20000, np.random.default_rng(1))(X)
    np.testing.assert_allclose(phi @ phi.T, gaussian_kernel(X, X), atol=0.05)
