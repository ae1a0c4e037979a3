"""LHAC reaches the optimum that cvxpy finds, by every strategy, budget and rule for steps."""

import lzma

import numpy as np
import pytest
from lhac_judges import N_FEATURES, PROBLEMS, design
from sklearn.datasets import load_svmlight_file

from sublearn.optim import (
    LhacSettings,
    lhac,
    linear_objective,
    minimise_linear,
    multinomial_objective,
)
from sublearn.trace import Status

EXACT = ["greedy_adaptive", "greedy", "greedy_cut", "standard"]
INEXACT = {"greedy_inexact": 0.01, "standard_inexact": 0.01, "standard_rough": 0.5}
FIRM = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def solve(problem, **settings):
    return lhac(
        problem.smooth,
        np.zeros(N_FEATURES),
        problem.levels,
        l2=problem.l2,
        bounds=problem.bounds,
        tol=1e-8,
        settings=LhacSettings(**settings),
    )


@FIRM
@pytest.mark.parametrize("strategy", EXACT)
@pytest.mark.parametrize("globalisation", ["prox", "line_search", "null_step"])
def test_every_exact_strategy_reaches_the_optimum(problem, strategy, globalisation):
    solution = solve(problem, strategy=strategy, globalisation=globalisation)
    assert solution.status is Status.CONVERGED
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-7)
    assert solution.objective == pytest.approx(problem.value(solution.x), abs=1e-12)


@FIRM
@pytest.mark.parametrize("strategy", INEXACT)
def test_an_inexact_strategy_leaves_at_most_its_share_of_l1(problem, strategy):
    """A coordinate at 0 that violates by no more than the share never moves."""
    solution = solve(problem, strategy=strategy)
    value = problem.value(solution.x)
    assert value >= problem.optimum - 1e-7
    if solution.status is Status.CONVERGED:
        assert value == pytest.approx(problem.optimum, abs=1e-6)
    else:
        assert solution.status is Status.STALLED
        left = INEXACT[strategy] * problem.levels.max()
        assert solution.trace["violation"][-1] <= left + 1e-6


@FIRM
@pytest.mark.parametrize("budget", ["linear", "log", 5, 200, (1.0, 1.0)])
def test_every_budget_reaches_the_optimum(problem, budget):
    solution = solve(problem, budget=budget)
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-7)


@FIRM
@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_order_reaches_the_optimum(problem, seed):
    solution = solve(problem, shuffle=True, random_state=seed)
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-7)


@FIRM
@pytest.mark.parametrize("memory", [1, 3, 30])
def test_every_memory_reaches_the_optimum(problem, memory):
    solution = solve(problem, memory=memory)
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-7)


@FIRM
@pytest.mark.parametrize("globalisation", ["prox", "line_search", "null_step"])
def test_the_objective_never_rises(problem, globalisation):
    objective = solve(problem, globalisation=globalisation).trace["objective"]
    assert (np.diff(objective) <= 1e-14).all()


@FIRM
def test_solutions_keep_within_the_bounds(problem):
    x = solve(problem).x
    assert problem.bounds[0] <= x.min()
    assert x.max() <= problem.bounds[1]


@FIRM
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_compiled_objective_reaches_the_optimum_of_the_callable(problem, dtype):
    X, y = design()
    objective = linear_objective(X.astype(dtype), y, problem.loss)
    solution = lhac(
        objective, np.zeros(N_FEATURES), problem.levels, l2=problem.l2, bounds=problem.bounds,
        tol=1e-8,
    )  # fmt: skip
    assert solution.status is Status.CONVERGED
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-6)
    assert solution.lower_bound <= problem.optimum + 1e-6


@FIRM
@pytest.mark.parametrize("solver", ["newton", "lhac", "cd1", "interior_point"])
def test_solvers_of_linear_models_reach_the_optimum(problem, solver):
    has_open = not problem.levels.all() and problem.l2 == 0
    if has_open or (solver == "interior_point" and np.isfinite(problem.bounds).any()):
        pytest.skip("refused: see the tests of refusals")
    X, y = design()
    solution = minimise_linear(
        X, y, problem.loss, problem.levels, l2=problem.l2, bounds=problem.bounds, solver=solver,
        tol=1e-8, max_iter=20_000,
    )  # fmt: skip
    assert solution.status is Status.CONVERGED
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=2e-7)
    assert solution.certificate <= 1e-8


def test_the_multinomial_objective_reaches_the_optimum():
    import cvxpy as cp

    X, _ = design()
    codes = np.arange(len(X)) % 3
    W = cp.Variable((N_FEATURES, 3))
    b = cp.Variable((1, 3))
    Z = X @ W + np.ones((len(X), 1)) @ b
    own = cp.sum(cp.multiply(np.eye(3)[codes], Z))
    loss = (cp.sum(cp.log_sum_exp(Z, axis=1)) - own) / len(X)
    judge = cp.Problem(cp.Minimize(loss + 0.02 * cp.sum(cp.abs(W))))
    judge.solve(solver=cp.CLARABEL)
    objective = multinomial_objective(X, codes, 3, fit_intercept=True)
    l1 = np.r_[np.full(N_FEATURES * 3, 0.02), np.zeros(3)]
    solution = lhac(objective, np.zeros(len(l1)), l1, tol=1e-7)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(judge.value, abs=1e-7)


@pytest.mark.parametrize(("scaling", "n_iters"), [("identity", 59), ("sizes", 70)])
def test_a9a_reaches_its_optimum_in_59_iterations_or_70(shared_data, scaling, n_iters):
    with lzma.open(shared_data / "a9a" / "a9a.xz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    solution = lhac(
        linear_objective(X, y), np.zeros(123), l1=1e-3, max_iter=n_iters, tol=1e-7,
        settings=LhacSettings(scaling=scaling),
    )  # fmt: skip
    assert solution.objective == pytest.approx(0.3470351, abs=1e-7)
