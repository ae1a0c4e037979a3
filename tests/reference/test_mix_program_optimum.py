"""MixLasso's convex program against cvxpy, which gets every one of the 2^N atoms."""

import itertools

import numpy as np
import pytest

from sublearn.latent.mix_program import MixtureProgram, kernel_of, make_system
from sublearn.latent.mixture import SubsetEM

cp = pytest.importorskip("cvxpy")


def problem(n=7, r=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, r)), rng.normal(size=n)


def optimum_by_cvxpy(features, targets, l1):
    n, r = features.shape
    atoms = np.array(list(itertools.product([0.0, 1.0], repeat=n)))[1:]
    W = cp.Variable((len(atoms), r))
    fitted = cp.sum(cp.multiply(atoms.T @ W, features), axis=1)
    loss = cp.sum_squares(targets - fitted) / (2 * n) + l1 * cp.sum(cp.norm(W, axis=1))
    return cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")


@pytest.mark.parametrize("part", [0.7, 0.2])
def test_value_and_bound_enclose_the_optimum_over_all_atoms(part):
    features, targets = problem()
    program = MixtureProgram(features, targets)
    l1 = part * program.l1_max()
    point = program.solve(l1, None, tol=1e-6, max_iter=50)
    exact = optimum_by_cvxpy(features, targets, l1)
    assert point.objective == pytest.approx(exact, rel=1e-4)
    assert point.bound <= exact * (1 + 1e-6)
    assert point.bound >= 0.9 * exact


def test_no_atom_is_active_at_the_largest_weight():
    features, targets = problem(n=8)
    atoms = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    largest = np.linalg.norm((atoms * targets) @ features, axis=1).max() / 8
    program = MixtureProgram(features, targets)
    assert program.l1_max() == pytest.approx(largest)
    assert len(program.solve(1.001 * largest, None, 1e-3, 10).weights) == 0


def test_objective_falls_along_the_searches_and_few_atoms_are_active():
    features, targets = problem(n=80, r=5, seed=2)
    program = MixtureProgram(features, targets)
    point = program.solve(0.2 * program.l1_max(), None, 1e-3, 30)
    objectives = program.trace()["objective"]
    assert (np.diff(objectives) <= 1e-10 * objectives[0]).all()
    assert len(point.weights) < 80


def test_functions_of_a_point_leave_its_residual():
    features, targets = problem(n=60, r=4, seed=3)
    program = MixtureProgram(features, targets)
    point = program.solve(0.3 * program.l1_max(), None, 1e-2, 20)
    fitted = (point.atoms.T * (features @ point.coef(features).T)).sum(axis=1)
    np.testing.assert_allclose(targets - fitted, point.dual, atol=1e-8)
    np.testing.assert_allclose(
        np.linalg.norm(point.coef(features), axis=1), point.weights, rtol=1e-3
    )


@pytest.mark.parametrize(("n", "r", "m"), [(40, 3, 2), (40, 3, 30), (40, 3, 0)])
def test_all_ways_to_solve_the_system_agree_with_its_definition(n, r, m):
    rng = np.random.default_rng(4)
    features, right = rng.normal(size=(n, r)), rng.normal(size=(n, 2))
    atoms, weights = (rng.random((m, n)) < 0.5).astype(float), rng.random(m)
    S = np.eye(n)
    for z, w in zip(atoms, weights, strict=True):
        S += w * np.outer(z, z) * (features @ features.T)
    expected = np.linalg.solve(S, right)
    for kernel in (kernel_of(features), None):
        found = make_system(features, kernel, atoms, weights)(right)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_functions_of_a_generalised_mixture_are_the_least_squares_solution():
    rng = np.random.default_rng(5)
    features, codes = rng.normal(size=(50, 3)), rng.integers(2, size=(50, 2)).astype(float)
    targets = rng.normal(size=50)
    em = SubsetEM(features, targets, 0.0)
    chances = np.eye(4)[(codes @ [1, 2]).astype(int)]
    start = em.start(np.zeros((2, 3)))
    design = np.hstack([codes[:, :1] * features, codes[:, 1:] * features])
    expected = np.linalg.lstsq(design, targets, rcond=None)[0].reshape(2, 3)
    np.testing.assert_allclose(em.fit(chances, start).coef, expected, atol=1e-8)
