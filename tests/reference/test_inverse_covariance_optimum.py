"""Sparse inverse covariance against other solvers, its dual and its optimality conditions."""

import io
import lzma
import warnings

import cvxpy as cp
import numpy as np
import pytest
from inverse_covariance_judges import (
    as_weights,
    dual,
    optimality_violation,
    primal,
    random_covariance,
)
from sklearn.covariance import graphical_lasso

from sublearn.linear import SparseInverseCovariance

SOLVERS = ("newton", "lhac")
#: What LHAC can see of the gap: it compares objectives, whose digits end at half of the gap's.
TIGHT = {"newton": 1e-9, "lhac": 1e-7}


def fitted(S, l1, **params):
    return SparseInverseCovariance(l1, covariance="precomputed", **params).fit(S)


def solve_with_cvxpy(S, weights):
    X = cp.Variable(S.shape, PSD=True)
    smooth = -cp.log_det(X) + cp.trace(S @ X)
    problem = cp.Problem(cp.Minimize(smooth + cp.sum(cp.multiply(weights, cp.abs(X)))))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalise_diagonal", [False, True])
@pytest.mark.parametrize("l1", [0.02, 0.1, 0.4])
def test_agrees_with_cvxpy_on_five_variables(l1, penalise_diagonal, solver):
    S = random_covariance(5, 4, seed=0)  # singular
    model = fitted(S, l1, penalise_diagonal=penalise_diagonal, solver=solver, tol=TIGHT[solver])
    weights = as_weights(l1, 5, penalise_diagonal)
    assert primal(model.precision_, S, weights) == pytest.approx(model.objective_, abs=1e-9)
    assert model.objective_ == pytest.approx(solve_with_cvxpy(S, weights), abs=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_of_single_entries_agree_with_cvxpy(solver):
    S = random_covariance(6, 40, seed=1)
    weights = np.random.default_rng(2).uniform(0, 0.5, size=(6, 6))
    weights = weights + weights.T
    weights[0, 1] = weights[1, 0] = 0.0
    model = fitted(S, weights, penalise_diagonal=True, solver=solver, tol=TIGHT[solver])
    assert model.objective_ == pytest.approx(solve_with_cvxpy(S, weights), abs=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_rows", [10, 100])
def test_the_optimality_conditions_hold(n_rows, solver):
    S = random_covariance(30, n_rows, seed=3)
    model = fitted(S, 0.1, solver=solver, tol=TIGHT[solver])
    assert optimality_violation(model.precision_, S, as_weights(0.1, 30)) < 1e-2
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(30), atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_the_gap_bounds_the_distance_to_the_optimum(tol, solver):
    S = random_covariance(40, 30, seed=4)
    best = fitted(S, 0.05, tol=1e-10).objective_
    model = fitted(S, 0.05, tol=tol, solver=solver)
    distance = (model.objective_ - best) / max(abs(model.objective_), 40)
    assert 0 <= distance <= model.certificate_ <= tol


def test_the_solution_is_its_own_dual_certificate():
    S = random_covariance(12, 20, seed=5)
    weights = as_weights(0.2, 12)
    model = fitted(S, 0.2, tol=1e-12)
    W = np.clip(model.covariance_, S - weights, S + weights)
    assert dual(W, S, weights) == pytest.approx(model.objective_, abs=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_blocks_solved_apart_are_the_solution_of_the_whole(solver):
    S = np.zeros((12, 12))
    for k in range(3):
        S[4 * k : 4 * k + 4, 4 * k : 4 * k + 4] = random_covariance(4, 30, seed=k)
    order = np.random.default_rng(6).permutation(12)
    S = S[np.ix_(order, order)]
    S[S == 0] = 0.001  # below l1, so the blocks stay apart
    weights = as_weights(0.01, 12)
    model = fitted(S, 0.01, solver=solver, tol=TIGHT[solver])
    assert model.n_blocks_ == 3
    apart = model.labels_of_blocks_[:, None] != model.labels_of_blocks_
    assert (model.precision_[apart] == 0).all()
    assert optimality_violation(model.precision_, S, weights) < 1e-2


def test_the_objective_never_rises():
    model = fitted(random_covariance(60, 30, seed=7), 0.05, tol=1e-8)
    steps = np.diff(model.trace_["objective"])
    assert (steps <= 1e-12 * np.abs(model.objective_)).all()


def stock_returns(shared_data):
    with lzma.open(shared_data / "stockdata" / "stockdata.csv.xz", "rt") as file:
        prices = np.loadtxt(io.StringIO(file.read()), delimiter=",", skiprows=1)
    return np.diff(np.log(prices), axis=0)


def test_agrees_with_scikit_learn_on_stock_returns(shared_data):
    S = np.corrcoef(stock_returns(shared_data)[:, :60], rowvar=False)
    weights = as_weights(0.2, 60)
    model = fitted(S, 0.2, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = graphical_lasso(S, 0.2, tol=1e-4)[1]
    assert primal(model.precision_, S, weights) <= primal(theirs, S, weights) + 1e-8
    assert primal(theirs, S, weights) == pytest.approx(model.objective_, rel=1e-4)
