"""The convex problem of the Latent Feature Lasso against cvxpy over all atoms, and its codes."""

import itertools

import numpy as np
import pytest

from sublearn.latent import LatentFeatureLasso
from sublearn.latent.atoms import AtomSet, best_weights, features_of
from sublearn.latent.codes import best_codes, codes_by_enumeration, improve_codes


def optimum_over_all_atoms(X, l1, l2, with_intercept):
    """With c_j at its best, c_j = |W_j| sqrt(l2 / 2 l1), the problem is a group lasso."""
    cp = pytest.importorskip("cvxpy")
    n, d = X.shape
    atoms = np.array(list(itertools.product((0, 1), repeat=n)), dtype=float)[1:].T
    W, b = cp.Variable((atoms.shape[1], d)), cp.Variable((1, d))
    fit = atoms @ W + (np.ones((n, 1)) @ b if with_intercept else 0)
    penalty = np.sqrt(2 * l1 * l2) * cp.sum(cp.norm(W, 2, axis=1))
    return cp.Problem(cp.Minimize(cp.sum_squares(X - fit) / (2 * n) + penalty)).solve()


@pytest.mark.parametrize("with_intercept", [False, True])
@pytest.mark.parametrize("l1", [0.02, 0.1])
def test_reaches_the_optimum_over_all_atoms(l1, with_intercept):
    X = np.random.default_rng(2).normal(size=(7, 4))
    best = optimum_over_all_atoms(X, l1, 0.7, with_intercept)
    model = LatentFeatureLasso(
        2, l1=l1, l2=0.7, fit_intercept=with_intercept, violation_tol=1e-4, max_iter=500,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert model.objective_ == pytest.approx(best, rel=1e-3)
    assert model.objective_ >= best * (1 - 1e-5)
    assert model.objective_ * (1 - model.certificate_) <= best * (1 + 1e-5)


def test_the_weights_satisfy_their_optimality_conditions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    X -= X.mean(axis=0)
    atoms = AtomSet(X, is_centred=True)
    atoms.add(rng.integers(0, 2, size=(12, 40)).astype(np.int8))
    l1, l2 = 0.03, 0.5
    point = best_weights(atoms, l1, l2, np.full(12, 0.1), 1e-9)
    R = atoms.residual(features_of(atoms, point.c, l2))
    steepness = np.square(atoms.columns.T @ R).sum(axis=1) / (2 * 40**2 * l2)
    active = point.c > 0
    assert 0 < active.sum() < len(active)
    np.testing.assert_allclose(steepness[active], l1, rtol=1e-6)
    assert (steepness[~active] <= l1 * (1 + 1e-9)).all()


def few_distinct_rows(n, d, k, seed, n_columns=None, is_whole=False):
    """Rows without noise: the columns of any search are dependent, and the Hessian is singular."""
    rng = np.random.default_rng(seed)
    W = np.zeros((k, d))
    for w in W:
        w[rng.permutation(d)[:n_columns]] = rng.normal(size=n_columns or d)
    X = (rng.random((n, k)) < 0.5) @ W
    return np.round(2 * X) if is_whole else X


@pytest.mark.parametrize(
    ("X", "share"),
    [
        (few_distinct_rows(100, 196, 4, 0, n_columns=9), 0.24),  # the paper's Syn0
        (few_distinct_rows(52, 6, 4, 11), 0.24),
        (few_distinct_rows(38, 4, 4, 6, is_whole=True), 0.1),
    ],
    ids=["patches", "dense", "whole numbers"],
)
def test_newton_does_not_stall_where_columns_are_dependent(X, share):
    model = LatentFeatureLasso(
        4, fit_intercept=False, span_atoms=False, refine=False, random_state=0
    )
    model.set_params(l1=share / 0.1 * model.fit(X).l1_).fit(X)
    assert model.trace_["violation"][-1] <= 1.05
    assert model.certificate_ < 0.3


def test_products_of_atoms_stay_right_as_atoms_come_and_go():
    rng = np.random.default_rng(1)
    atoms = AtomSet(rng.normal(size=(20, 5)), is_centred=False)
    drawn = rng.integers(0, 2, size=(8, 20)).astype(np.int8)
    assert atoms.add(drawn[:5]) == 5
    atoms.keep(np.array([0, 2, 4]))
    assert atoms.add(drawn[[4, 5, 6, 6]]) == 2  # one is there, one comes twice
    Z = atoms.Z.astype(float)
    np.testing.assert_array_equal(Z.T, drawn[[0, 2, 4, 5, 6]])
    np.testing.assert_allclose(atoms.gram, Z.T @ Z)
    np.testing.assert_allclose(atoms.cross, Z.T @ atoms.X)
    np.testing.assert_allclose(atoms.energy, Z.T @ atoms.X @ atoms.X.T @ Z)


def distances(X, W, Z):
    return np.square(X - Z @ W).sum(axis=1)


def test_enumerated_codes_are_the_closest_ones():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(30, 6)), rng.normal(size=(5, 6))
    every = np.array(list(itertools.product((0, 1), repeat=5)))
    least = np.array([[np.square(x - z @ W).sum() for z in every] for x in X]).min(axis=1)
    Z = codes_by_enumeration(X @ W.T, W @ W.T)
    np.testing.assert_allclose(distances(X, W, Z), least)


def test_no_flip_of_one_or_two_features_improves_codes():
    rng = np.random.default_rng(3)
    X, W = rng.normal(size=(25, 9)), rng.normal(size=(8, 9))
    Z = improve_codes(np.zeros((25, 8), dtype=np.int8), X @ W.T, W @ W.T)
    reached = distances(X, W, Z)
    for flips in [(k,) for k in range(8)] + list(itertools.combinations(range(8), 2)):
        other = Z.copy()
        other[:, flips] = 1 - other[:, flips]
        assert (distances(X, W, other) >= reached - 1e-9).all()


def test_codes_of_many_features_are_found_by_descent():
    rng = np.random.default_rng(5)
    W = rng.normal(size=(30, 80))
    Z = rng.integers(0, 2, size=(50, 30))
    X = Z @ W + 0.1 * rng.normal(size=(50, 80))
    np.testing.assert_array_equal(best_codes(X @ W.T, W @ W.T), Z)
