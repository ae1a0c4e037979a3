"""LHAC inside an active set: the same optimum, and fewer full gradients."""

import time

import numpy as np
import pytest
from lhac_judges import N_FEATURES, PROBLEMS, design

from sublearn.errors import ParameterError
from sublearn.optim import LhacSettings, lhac, linear_objective, multinomial_objective
from sublearn.trace import Status

FIRM = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
LOSSES = ["logistic", "squared", "squared_hinge", "huber", "poisson"]
N = 600


def wide(loss, seed=0):
    """60 rows of 600 features, the first five of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, N))
    z = X[:, :5] @ np.array([2.0, -2.0, 1.0, 1.0, -1.0])
    if loss in ("logistic", "squared_hinge"):
        return X, np.where(z + rng.normal(size=60) > 0, 1.0, -1.0)
    return X, rng.poisson(np.exp(0.3 * z)).astype(float) if loss == "poisson" else z


class Squares:
    """Half squares of residuals that counts what is asked of it."""

    def __init__(self, seed=0):
        self.X, self.y = wide("squared", seed)
        self.n_full = self.n_parts = 0

    def value_and_gradient(self, x):
        self.n_full += 1
        residual = self.X @ x - self.y
        return 0.5 * residual @ residual, self.X.T @ residual

    def partial(self, x, support):
        assert not np.delete(x, support).any()
        assert (np.diff(support) > 0).all()
        self.n_parts += 1
        residual = self.X[:, support] @ x[support] - self.y
        return 0.5 * residual @ residual, self.X[:, support].T @ residual


@FIRM
@pytest.mark.parametrize("strategy", ["greedy_adaptive", "greedy", "greedy_cut", "standard"])
@pytest.mark.parametrize("globalisation", ["prox", "line_search"])
def test_reaches_the_optimum_of_a_judge(problem, strategy, globalisation):
    X, y = design()
    solution = lhac(
        linear_objective(X, y, problem.loss), np.zeros(N_FEATURES), problem.levels, l2=problem.l2,
        bounds=problem.bounds, tol=1e-8, active_set=True,
        settings=LhacSettings(strategy=strategy, globalisation=globalisation),
    )  # fmt: skip
    assert solution.status is Status.CONVERGED
    assert problem.value(solution.x) == pytest.approx(problem.optimum, abs=1e-6)
    assert solution.objective == pytest.approx(problem.value(solution.x), abs=1e-9)
    assert problem.bounds[0] <= solution.x.min() <= solution.x.max() <= problem.bounds[1]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l2": 0.05},
        {"bounds": (0, np.inf)},
        {"bounds": (-0.2, 0.3), "settings": LhacSettings(budget=3)},
        {"settings": LhacSettings(shuffle=True, random_state=0, memory=3, budget="log")},
    ],
    ids=str,
)
def test_has_the_optimum_of_a_run_without(loss, options):
    X, y = wide(loss)
    objective = linear_objective(X, y, loss)
    l1 = 0.1 * np.abs(objective.value_and_gradient(np.zeros(N))[1]).max()
    options = {"tol": 1e-9, "max_iter": 20_000} | options
    alone, inside = (
        lhac(objective, np.zeros(N), l1, active_set=flag, **options) for flag in (False, True)
    )
    assert inside.status is Status.CONVERGED
    assert inside.certificate <= 1e-9
    assert inside.objective == pytest.approx(alone.objective, rel=1e-8)
    assert inside.lower_bound <= alone.objective
    assert inside.trace["n_asked"].sum() < 0.5 * alone.trace["n_asked"].sum()


@pytest.mark.parametrize("is_penalised", [False, True])
def test_an_intercept_is_found_with_and_without_penalty(is_penalised):
    X, y = wide("logistic")
    objective = linear_objective(X, y, fit_intercept=True)
    l1 = np.r_[np.full(N, 0.05), 0.01 if is_penalised else 0.0]
    alone, inside = (
        lhac(objective, np.zeros(N + 1), l1, tol=1e-8, active_set=flag, max_iter=20_000)
        for flag in (False, True)
    )
    assert inside.status is Status.CONVERGED
    assert inside.objective == pytest.approx(alone.objective, rel=1e-8)
    assert inside.x[-1] == pytest.approx(alone.x[-1], abs=1e-4)


def test_starts_from_a_point_that_is_not_sparse():
    X, y = wide("logistic")
    objective = linear_objective(X, y)
    far = np.random.default_rng(0).normal(size=N)
    solution = lhac(objective, far, 0.05, tol=1e-8, active_set=True)
    judge = lhac(objective, np.zeros(N), 0.05, tol=1e-8, active_set=False)
    assert solution.objective == pytest.approx(judge.objective, rel=1e-7)


def test_screening_leaves_fewer_coordinates_to_certify():
    X, y = wide("logistic")
    asked = lhac(linear_objective(X, y), np.zeros(N), 0.1, tol=1e-10).trace["n_asked"]
    assert asked[0] == N
    assert asked[-1] < N


def test_a_callable_with_partial_gradients_is_asked_for_few_full_ones():
    squares, plain = Squares(), Squares()
    unchecked = LhacSettings(check_gradient=False)
    solution = lhac(squares, np.zeros(N), l1=20.0, tol=1e-8, settings=unchecked)
    judge = lhac(plain.value_and_gradient, np.zeros(N), l1=20.0, tol=1e-8, max_iter=20_000)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(judge.objective, rel=1e-9)
    assert squares.n_full == (solution.trace["n_asked"] == N).sum()
    assert squares.n_full < 0.2 * plain.n_full
    assert squares.n_parts + squares.n_full == solution.trace["n_values"][-1]


def test_partial_gradients_are_left_alone_without_an_active_set():
    squares = Squares()
    lhac(squares, np.zeros(N), l1=20.0, active_set=False)
    assert squares.n_parts == 0


def test_few_coordinates_get_no_active_set_unless_asked_for():
    X, y = design()
    objective = linear_objective(X, y)
    assert (lhac(objective, np.zeros(N_FEATURES), 0.02).trace["n_asked"] == N_FEATURES).all()


@pytest.mark.parametrize("limit", [1, 7, 30])
def test_iterations_are_counted_over_all_sets(limit):
    solution = lhac(Squares(), np.zeros(N), l1=5.0, tol=1e-12, max_iter=limit)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == limit
    residual = Squares().X @ solution.x - Squares().y
    value = 0.5 * residual @ residual + 5.0 * np.abs(solution.x).sum()
    assert solution.objective == pytest.approx(value, rel=1e-12)


def test_the_objective_never_rises_and_counters_never_fall():
    trace = lhac(Squares(), np.zeros(N), l1=5.0, tol=1e-9).trace
    assert (np.diff(trace["objective"]) <= 1e-12 * trace["objective"][0]).all()
    for name in ("n_passes", "n_steps", "n_values", "seconds"):
        assert (np.diff(trace[name]) >= 0).all()


def test_a_callback_stops_it():
    squares = Squares()
    slow = type("Slow", (), {})()

    def partial(x, support):
        time.sleep(0.01)
        return squares.partial(x, support)

    slow.value_and_gradient, slow.partial = squares.value_and_gradient, partial
    solution = lhac(slow, np.zeros(N), 5.0, tol=0.0, callback=lambda event: event.n_done >= 3)
    assert solution.status is Status.STOPPED
    assert len(solution.trace) == solution.n_iter + 1 >= 4


def test_a_tolerance_beyond_rounding_ends():
    X, y = wide("logistic")
    solution = lhac(linear_objective(X, y), np.zeros(N), 0.05, tol=0.0, active_set=True)
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.certificate < 1e-10


@pytest.mark.parametrize("active_set", [False, True])
def test_refuses_a_start_where_a_compiled_objective_overflows(active_set):
    X, y = wide("poisson")
    objective = linear_objective(X, y, "poisson")
    with pytest.raises(ParameterError, match=r"lhac\.objective must be finite at init, got inf"):
        lhac(objective, np.full(N, 1e3), 0.05, active_set=active_set)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ((0.0, np.zeros(2)), r"objective\.partial must return a gradient of shape"),
        (3.0, r"objective\.partial must return \(value, gradient\)"),
        ((np.nan, None), r"objective\.partial must return finite numbers"),
    ],
)
def test_refuses_what_a_partial_gradient_cannot_be(result, sentence):
    squares = Squares()

    def partial(x, support):
        is_sized = isinstance(result, tuple) and result[1] is None
        return (result[0], np.zeros(len(support))) if is_sized else result

    squares.partial = partial
    with pytest.raises(ParameterError, match=sentence):
        lhac(squares, np.zeros(N), l1=20.0)


def test_refuses_a_partial_gradient_that_cannot_be_called():
    squares = Squares()
    squares.partial = 3
    with pytest.raises(ParameterError, match=r"lhac\.objective\.partial must be callable"):
        lhac(squares, np.zeros(N), l1=20.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_classes_learned_together_are_screened_too(fit_intercept):
    rng = np.random.default_rng(8)
    X, codes = rng.normal(size=(60, 200)), rng.integers(0, 3, size=60)
    objective = multinomial_objective(X, codes, 3, fit_intercept=fit_intercept)
    inside, judge = (
        lhac(objective, np.zeros(objective.size), 0.05, tol=1e-8, active_set=flag)
        for flag in ("auto", False)
    )
    assert inside.certificate <= 1e-8
    assert inside.objective == pytest.approx(judge.objective, rel=2e-8)
    full = inside.trace["n_asked"][inside.trace["n_asked"] >= inside.trace["n_asked"][-1]]
    assert full[0] == objective.size > full[-1]
