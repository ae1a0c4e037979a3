"""LHAC: what it accepts, how it ends, and how bad callables behave."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sublearn.errors import ParameterError
from sublearn.optim import LhacSettings, lhac, linear_objective
from sublearn.trace import Status

CENTRE = np.array([3.0, -2.0, 0.25])


def quadratic(x):
    return 0.5 * ((x - CENTRE) ** 2).sum(), x - CENTRE


def steps(globalisation):
    return LhacSettings(globalisation=globalisation)


def slowly(function, seconds=0.01):
    def slow(x):
        time.sleep(seconds)
        return function(x)

    return slow


def ill_conditioned(x):
    """Quadratic whose curvatures go from 1 to 1e8, least at 1."""
    a = np.logspace(0, 8, len(x))
    return 0.5 * (a * (x - 1) ** 2).sum(), a * (x - 1)


def test_soft_thresholds_the_centre_of_a_quadratic():
    solution = lhac(quadratic, np.zeros(3), l1=0.5)
    np.testing.assert_allclose(solution.x, [2.5, -1.5, 0.0], atol=1e-6)
    assert solution.x[2] == 0
    assert solution.status is Status.CONVERGED


@given(
    centre=arrays(np.float64, st.integers(1, 6), elements=st.floats(-1e3, 1e3)),
    l1=st.floats(0, 10),
    l2=st.floats(0, 10),
)
@settings(deadline=None, max_examples=30)
def test_has_the_closed_form_of_a_separable_problem(centre, l1, l2):
    solution = lhac(
        lambda x: (0.5 * ((x - centre) ** 2).sum(), x - centre),
        np.zeros(len(centre)),
        l1,
        l2=l2,
        tol=1e-9,
    )
    expected = np.sign(centre) * np.maximum(np.abs(centre) - l1, 0) / (1 + l2)
    np.testing.assert_allclose(solution.x, expected, atol=1e-6 * (1 + np.abs(centre).max()))


def test_one_coordinate_is_enough():
    solution = lhac(lambda x: (np.cosh(x[0] - 1), np.sinh(x - 1)), [5.0], l1=0.0, tol=1e-10)
    assert solution.x == pytest.approx([1.0], abs=1e-8)


def test_a_point_of_zero_gradient_is_returned_at_once():
    calls = []

    def flat(x):
        calls.append(x)
        return 7.0, np.zeros(2)

    solution = lhac(flat, [1.0, 2.0], l1=0.0, settings=LhacSettings(check_gradient=False))
    assert solution.status is Status.CONVERGED
    assert solution.x.tolist() == [1.0, 2.0]
    assert (len(calls), solution.n_iter, solution.certificate) == (1, 0, 0.0)


def test_solves_a_quadratic_of_condition_1e8():
    solution = lhac(ill_conditioned, np.zeros(9), l1=0.0, tol=1e-12, max_iter=20_000)
    value, _ = ill_conditioned(solution.x)
    first, _ = ill_conditioned(np.zeros(9))
    assert value <= 1e-9 * first


def test_a_warm_start_saves_iterations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    objective = linear_objective(X, np.sign(X[:, 0] + 0.3 * rng.normal(size=60)))
    cold = lhac(objective, np.zeros(30), l1=0.01, tol=1e-8)
    warm = lhac(objective, cold.x, l1=0.0099, tol=1e-8)
    again = lhac(objective, np.zeros(30), l1=0.0099, tol=1e-8)
    assert warm.n_iter < again.n_iter
    assert warm.objective == pytest.approx(again.objective, rel=1e-7)


def test_the_same_seed_gives_the_same_bits():
    runs = [
        lhac(
            ill_conditioned,
            np.zeros(5),
            l1=0.1,
            max_iter=20,
            settings=LhacSettings(shuffle=True, random_state=3),
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_says_that_the_iteration_limit_was_reached():
    solution = lhac(ill_conditioned, np.zeros(9), l1=0.0, max_iter=3, tol=1e-12)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 3
    assert solution.objective == ill_conditioned(solution.x)[0]


def test_the_trace_tells_of_sets_and_work():
    trace = lhac(ill_conditioned, np.zeros(9), l1=0.1, tol=1e-6).trace
    assert (trace["z1"] + trace["z2"] == trace["nnz_primal"]).all()
    assert (trace["n_active"] <= trace["z1"] + trace["z2"] + trace["z3"]).all()
    for column in ("seconds", "n_passes", "n_steps", "n_values"):
        assert (np.diff(trace[column]) >= 0).all()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((np.nan, np.zeros(3)), "finite numbers"),
        ((1.0, np.array([0.0, np.nan, 0.0])), "finite numbers"),
        ((1.0, np.zeros(2)), r"gradient of shape \(3,\), got \(2,\)"),
        ((1.0, np.zeros((3, 1))), r"gradient of shape \(3,\), got \(3, 1\)"),
        (1.0, r"\(value, gradient\)"),
        ((1.0, np.zeros(3), 0), r"\(value, gradient\)"),
    ],
)
def test_refuses_what_a_callable_must_not_return(result, message):
    with pytest.raises(ParameterError, match=rf"lhac\.objective must return.*{message}"):
        lhac(lambda x: result, np.zeros(3), l1=0.1)


def test_refuses_a_start_of_infinite_value():
    with pytest.raises(ParameterError, match=r"lhac\.objective must be finite at init, got inf"):
        lhac(lambda x: (np.inf, np.zeros(3)), np.zeros(3), l1=0.1)


def test_refuses_nan_at_a_later_point():
    def breaks(x):
        value, gradient = quadratic(x)
        return (np.nan if x.any() else value), gradient

    with pytest.raises(ParameterError, match="objective must return finite numbers"):
        lhac(breaks, np.zeros(3), l1=0.1)


def test_an_exception_of_the_callable_goes_on_as_it_is():
    class OwnError(Exception):
        pass

    def raises(x):
        if x.any():
            raise OwnError("no data today")
        return quadratic(x)

    with pytest.raises(OwnError, match="no data today"):
        lhac(raises, np.zeros(3), l1=0.1)


@pytest.mark.parametrize("globalisation", ["prox", "null_step"])
def test_steps_back_from_points_of_infinite_value(globalisation):
    outside = []

    def barrier(x):
        if x[0] <= 0:
            outside.append(x[0])
            return np.inf, np.zeros(1)
        return x[0] - np.log(x[0]), 1 - 1 / x

    solution = lhac(
        barrier, [0.5], l1=4.0, tol=1e-9, settings=LhacSettings(globalisation=globalisation)
    )
    assert solution.status is Status.CONVERGED
    assert solution.x == pytest.approx([0.2], rel=1e-6)
    assert outside


@pytest.mark.parametrize("globalisation", ["prox", "line_search", "null_step"])
def test_goes_down_to_a_stationary_point_of_a_function_that_is_not_convex(globalisation):
    def two_wells(x):
        return float((x**4 - 2 * x**2).sum()), 4 * x**3 - 4 * x

    solution = lhac(
        two_wells, [0.1, -3.0], l1=0.0, tol=1e-8, settings=LhacSettings(globalisation=globalisation)
    )
    np.testing.assert_allclose(two_wells(solution.x)[1], 0, atol=1e-5)
    assert solution.objective < two_wells(np.array([0.1, -3.0]))[0]
    assert (np.diff(solution.trace["objective"]) <= 1e-14).all()


def test_null_steps_ask_for_one_value_in_each_iteration():
    def two_wells(x):
        return float((x**4 - 2 * x**2).sum()), 4 * x**3 - 4 * x

    trace = lhac(
        two_wells, [0.1, -3.0], l1=0.0, tol=1e-8, settings=LhacSettings(globalisation="null_step")
    ).trace
    assert trace["n_values"].tolist() == list(range(1, len(trace) + 1))
    assert (np.diff(trace["objective"]) == 0).any()  # steps that were not taken


def test_a_lower_bound_of_the_objective_makes_the_gap():
    class Quadratic:
        bound = 0.0

        def value_and_gradient(self, x):
            return 1.0 + 0.5 * float((x - 2) @ (x - 2)), x - 2

        def lower_bound(self):
            return self.bound

    objective = Quadratic()
    solution = lhac(objective, np.zeros(3), l1=0.0, max_iter=5)  # 1 is reached, 0 is known
    assert solution.certificate == pytest.approx(1.0)
    objective.bound = 0.99
    solution = lhac(objective, np.zeros(3), l1=0.0, tol=0.02)
    assert solution.status is Status.CONVERGED
    assert solution.lower_bound == 0.99
    assert solution.certificate <= 0.02


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (5, "callable"),
        (lambda: np.nan, "number"),
        (lambda: None, "number, got None"),
        (lambda: "low", "number, got 'low'"),
    ],
)
def test_refuses_a_lower_bound_that_is_none(bound, message):
    class Quadratic:
        lower_bound = staticmethod(bound) if callable(bound) else bound

        def value_and_gradient(self, x):
            return float(x @ x), 2 * x

    with pytest.raises(ParameterError, match=rf"lhac\.objective.lower_bound must.* {message}"):
        lhac(Quadratic(), [1.0], l1=0.1)


@pytest.mark.parametrize("globalisation", ["prox", "line_search", "null_step"])
@pytest.mark.parametrize("bound", [0.02, 5.0])  # above the optimum; above all values
def test_refuses_a_lower_bound_that_is_above_a_value(bound, globalisation):
    class Quadratic:
        lower_bound = staticmethod(lambda: bound)

        def value_and_gradient(self, x):
            return float(x @ x), 2 * x

    with pytest.raises(ParameterError, match="lower_bound must return what no value of F is below"):
        lhac(Quadratic(), [1.0], l1=0.0, settings=steps(globalisation))


@pytest.mark.parametrize("globalisation", ["prox", "line_search", "null_step"])
def test_refuses_a_value_of_minus_infinity(globalisation):
    def hole(x):
        return (float(x @ x - 3 * x.sum()) if abs(x).max() < 0.9 else -np.inf), 2 * x - 3

    with pytest.raises(ParameterError, match="objective must be bounded from below, got -inf"):
        lhac(hole, [0.5, 0.5], l1=0.1, tol=0.1, settings=steps(globalisation))


def test_a_callback_stops_the_solver():
    solution = lhac(
        slowly(ill_conditioned),
        np.zeros(9),
        l1=0.0,
        tol=0.0,
        max_iter=100_000,
        callback=lambda event: event.n_done >= 3,
    )
    assert solution.status is Status.STOPPED
    assert solution.n_iter < 1000


def test_ctrl_c_stops_a_python_objective():
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.005)
        return ill_conditioned(x)

    with pytest.raises(KeyboardInterrupt):
        lhac(interrupted, np.zeros(9), l1=0.0, tol=0.0, max_iter=100_000)
    n_calls = len(calls)
    assert n_calls < 2000
    time.sleep(0.05)
    assert len(calls) == n_calls  # nothing goes on behind the caller's back


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("init", []),
        ("init", [[1.0]]),
        ("init", [np.nan, 0.0, 0.0]),
        ("init", "abc"),
        ("l1", -1.0),
        ("l1", [0.1, 0.1]),
        ("l1", np.inf),
        ("l2", -0.1),
        ("bounds", (1.0, 2.0)),
        ("bounds", (0.0,)),
        ("bounds", None),
        ("tol", -1e-3),
        ("max_iter", 0),
        ("active_set", "yes"),
        ("active_set", True),
        ("settings", {"memory": 3}),
        ("callback", 3),
    ],
)
def test_refuses_a_parameter_by_name(name, value):
    arguments = {"init": np.zeros(3), "l1": 0.1} | {name: value}
    with pytest.raises(ParameterError, match=rf"lhac\.{name} must"):
        lhac(quadratic, **arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory", -1),
        ("eta", 0.5),
        ("epsilon", -0.1),
        ("epsilon_unit", "l2"),
        ("scaling", "hessian"),
        ("rho", 1.5),
        ("beta", 1.0),
        ("mu0", -1.0),
        ("floor", 2.0),
        ("strategy", "grdy-ad"),
        ("budget", 0),
        ("budget", "quadratic"),
        ("budget", (1.0, -1.0)),
        ("globalisation", "trust"),
        ("shuffle", "yes"),
        ("random_state", -1),
        ("check_gradient", "no"),
    ],
)
def test_refuses_a_setting_by_name(name, value):
    with pytest.raises(ParameterError, match=rf"^LhacSettings\.{name} must be .*, got "):
        LhacSettings(**{name: value})


def test_refuses_an_objective_that_cannot_be_called():
    with pytest.raises(ParameterError, match=r"lhac\.objective must be callable, compiled or have"):
        lhac(3.0, np.zeros(3), l1=0.1)


def test_refuses_a_start_of_another_size_than_the_compiled_objective():
    objective = linear_objective(np.eye(2), [1.0, -1.0])
    with pytest.raises(ParameterError, match=r"lhac\.init must have 2 entries"):
        lhac(objective, np.zeros(3), l1=0.1)


# --- the sets of the strategies ------------------------------------------------------------------


def sets_of(x, gradient, l1, l2):
    """Slow and obvious: Z1, Z2 and Z3 of the gradient of all that is smooth."""
    sizes = [0, 0, 0]
    for value, g, weight in zip(x, gradient + l2 * x, l1, strict=True):
        if weight == 0:
            sizes[1] += 1
        elif value != 0:
            sizes[0 if abs(g) >= weight else 1] += 1
        else:
            sizes[2] += abs(g) > weight
    return sizes


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_sets_count_l2_and_keep_what_has_no_penalty(l2):
    rng = np.random.default_rng(0)
    objective = linear_objective(rng.normal(size=(50, 40)), np.sign(rng.normal(size=50)))
    l1 = rng.choice([0.0, 0.05, 0.1], size=40)
    x = rng.normal(size=40) * (rng.random(40) < 0.6)
    trace = lhac(objective, x, l1, l2=l2, max_iter=1, active_set=False).trace
    found = [int(trace[name][0]) for name in ("z1", "z2", "z3")]
    assert found == sets_of(x, objective.value_and_gradient(x)[1], l1, l2)


@pytest.mark.parametrize("seed", range(10))
def test_without_a_penalty_the_default_takes_no_more_steps_than_any_strategy(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 100))
    odds = np.exp(X @ rng.normal(size=100) / 5)
    y = np.where(rng.random(600) < odds / (1 + odds), 1.0, -1.0)
    n_iters = {
        strategy: lhac(
            linear_objective(X, y), np.zeros(100), 0.0, settings=LhacSettings(strategy=strategy)
        ).n_iter
        for strategy in ("greedy_half", "greedy", "greedy_cut", "standard", "standard_rough")
    }
    assert n_iters["greedy_half"] == min(n_iters.values())
    assert n_iters["greedy_half"] <= 25


# --- the Hessian that a run starts from ----------------------------------------------------------


def badly_scaled():
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-2, 2, size=60)
    X = rng.normal(size=(200, 60))
    y = np.where(X[:, :3].sum(axis=1) + rng.normal(size=200) > 0, 1.0, -1.0)
    return X * sizes, y, 0.01 * sizes


def test_columns_of_very_different_size_cost_little_with_their_sizes():
    X, y, l1 = badly_scaled()
    n_iters, objectives = {}, []
    for scaling in ("sizes", "identity"):
        settings = LhacSettings(scaling=scaling)
        found = lhac(linear_objective(X, y), np.zeros(60), l1, settings=settings)
        n_iters[scaling] = found.n_iter
        objectives.append(found.objective)
    assert 5 * n_iters["sizes"] < n_iters["identity"]
    assert objectives[0] <= objectives[1] * (1 + 2e-6)


def test_scaling_is_the_identity_on_scaled_columns():
    """B0 = theta M is what L-BFGS with the identity does to the columns over sqrt(M)."""
    X, y, l1 = badly_scaled()
    sizes = np.mean(X**2, axis=0)
    roots = np.sqrt((sizes / sizes.max()) ** 0.75)
    options = {"max_iter": 12, "active_set": False}
    settings = LhacSettings(strategy="standard")  # others compare violations of scaled coordinates
    options = {"max_iter": 12, "active_set": False}
    ours = lhac(linear_objective(X, y), np.zeros(60), l1, settings=settings, **options)
    twin = lhac(
        linear_objective(X / roots, y), np.zeros(60), l1 / roots,
        settings=replace(settings, scaling="identity"), **options,
    )  # fmt: skip
    np.testing.assert_allclose(ours.trace["objective"], twin.trace["objective"], rtol=1e-6)


def test_without_memory_each_step_is_a_prox_gradient_step():
    X, y, _ = badly_scaled()
    X = X / np.abs(X).max(axis=0)
    objective = linear_objective(X, y)
    settings = LhacSettings(memory=0, scaling="identity", mu0=0.5, strategy="standard")
    found = lhac(objective, np.zeros(60), 0.01, settings=settings, max_iter=1)
    gradient = objective.value_and_gradient(np.zeros(60))[1]
    step = 1 / (1 + 0.25)  # theta 1 and mu0 / 2
    expected = -np.sign(gradient) * np.maximum(np.abs(gradient) - 0.01, 0) * step
    np.testing.assert_allclose(found.x, expected, atol=1e-15)


def test_mu0_bounds_the_steps_from_below_and_the_optimum_stays():
    X, y, _ = badly_scaled()
    X = X / np.abs(X).max(axis=0)
    free = lhac(linear_objective(X, y), np.zeros(60), 0.01, tol=1e-9)
    settings = LhacSettings(mu0=1.0, beta=2.0, rho=0.1, eta=3.0)
    held = lhac(linear_objective(X, y), np.zeros(60), 0.01, tol=1e-9, settings=settings)
    np.testing.assert_allclose(held.objective, free.objective, rtol=2e-9)


@pytest.mark.parametrize("strategy", ["greedy_adaptive", "greedy_half"])
@pytest.mark.parametrize("shuffle", [False, True, "independent"])
def test_any_order_of_the_coordinates_reaches_the_optimum(strategy, shuffle):
    X, y, _ = badly_scaled()
    X = X / np.abs(X).max(axis=0)
    settings = LhacSettings(strategy=strategy, shuffle=shuffle, random_state=0)
    found = lhac(linear_objective(X, y), np.zeros(60), 0.01, settings=settings, tol=1e-8)
    assert found.certificate <= 1e-8


def test_independent_draws_begin_anew_when_a_model_is_refused():
    """They leave coordinates out, which would stay at the point of the weaker model."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 60)) * 100 + 300 * rng.normal(size=60)
    objective = linear_objective(X, np.sign(rng.normal(size=30)))
    settings = LhacSettings(
        globalisation="prox", shuffle="independent", random_state=0, budget=(0.1, 1.0)
    )
    found = lhac(objective, np.zeros(60), 0.03, settings=settings, tol=1e-6)
    assert found.certificate <= 1e-6  # it ended where it began


def test_an_absolute_epsilon_stops_where_nothing_violates_by_as_much():
    """What table 5.3 of the thesis shows of STD-EPA: it does not get on."""
    X, y, _ = badly_scaled()
    X = X / np.abs(X).max(axis=0)
    settings = LhacSettings(strategy="standard_rough", epsilon_unit="absolute")
    found = lhac(linear_objective(X, y), np.zeros(60), 0.01, settings=settings)
    assert found.n_iter == 0
    assert not found.x.any()
    assert found.status is Status.STALLED


def test_the_certificate_and_the_violation_have_tolerances_of_their_own():
    rough = lhac(ill_conditioned, np.ones(9) * 2, l1=0.0, tol=0.0, violation_tol=0.5)
    assert rough.status is Status.CONVERGED
    assert 0 < rough.certificate <= 0.5
    rng = np.random.default_rng(0)
    objective = linear_objective(rng.normal(size=(50, 5)), np.sign(rng.normal(size=50)))
    certified = lhac(objective, np.zeros(5), l1=0.01, tol=1e-9, violation_tol=10.0)
    assert certified.certificate <= 1e-9  # it knows its dual
    with pytest.raises(ValueError, match=r"lhac\.violation_tol must be"):
        lhac(ill_conditioned, np.zeros(9), l1=0.1, violation_tol=-1.0)
