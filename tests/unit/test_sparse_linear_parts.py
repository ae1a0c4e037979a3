"""Parts of the sparse linear models: losses, scales of columns, values of l1, the dual point."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn.execution import map_blocks
from sublearn.linear.path import as_dtype, falling_l1s
from sublearn.linear.selection import choose_l1
from sublearn.optim import linear_objective
from sublearn.optim.dual_point import dual_value
from sublearn.optim.linear_problem import LinearProblem, Penalty
from sublearn.optim.row_losses import Huber, Logistic, Poisson, Squared
from sublearn.optim.scaling import column_offsets, column_scales, divide_columns
from sublearn.validation.design import Design, column_extremes


def design(X):
    return Design(X, *column_extremes(X))


LOSSES = {"logistic": Logistic(), "squared": Squared(), "huber": Huber(0.7), "poisson": Poisson()}


def targets_for(name, rng, n_rows):
    if name == "logistic":
        return np.where(rng.random(n_rows) < 0.5, -1.0, 1.0)
    return rng.poisson(2.0, n_rows).astype(float) if name == "poisson" else rng.normal(size=n_rows)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_the_compiled_core(name):
    rng, loss = np.random.default_rng(0), LOSSES[name]
    z, y = 2 * rng.normal(size=40), targets_for(name, rng, 40)
    compiled = linear_objective(np.eye(40), y, loss if name == "huber" else name)
    value, slopes = compiled.value_and_gradient(z)
    assert loss.value(z, y).mean() == pytest.approx(value + np.mean(loss.shift(y) + np.zeros(40)))
    np.testing.assert_allclose(loss.slope(z, y) / 40, slopes, atol=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_curvatures_are_the_slopes_of_slopes(name):
    rng, loss = np.random.default_rng(1), LOSSES[name]
    z, y = rng.normal(size=40), targets_for(name, rng, 40)
    step = 1e-6
    change = (loss.slope(z + step, y) - loss.slope(z - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, y), change, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_conjugate_is_the_best_of_all_lines(name):
    rng, loss = np.random.default_rng(2), LOSSES[name]
    y = targets_for(name, rng, 30)
    z = rng.normal(size=30)
    a = loss.slope(z, y)  # where the maximum of a z - f(z) is known
    np.testing.assert_allclose(loss.conjugate(a, y), a * z - loss.value(z, y), atol=1e-12)


@pytest.mark.parametrize("name", ["logistic", "huber", "poisson"])
def test_conjugates_forgive_the_rounding_of_weights_at_the_end_of_their_domain(name):
    loss, y = LOSSES[name], np.ones(200)
    slopes = loss.slope(np.full(200, -50.0), y)
    weights = np.random.default_rng(6).random(200)
    assert np.isfinite(loss.conjugate((weights * slopes) / weights, y)).all()


def test_conjugates_are_infinite_outside_their_domain():
    one = np.ones(1)
    assert Logistic().conjugate(0.1 * one, one) == np.inf
    assert Logistic().conjugate(-1.1 * one, one) == np.inf
    assert Huber(0.5).conjugate(0.6 * one, one) == np.inf
    assert Poisson().conjugate(-1.1 * one, one) == np.inf


@pytest.mark.parametrize("name", LOSSES)
def test_the_best_constant_has_slopes_that_add_up_to_zero(name):
    rng, loss = np.random.default_rng(3), LOSSES[name]
    y, weights = targets_for(name, rng, 25), rng.random(25)
    best = loss.best_constant(y, weights)
    assert weights @ loss.slope(np.full(25, best), y) == pytest.approx(0.0, abs=1e-10)


# --- scales --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asfortranarray, sp.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_are_powers_of_two_that_lose_nothing(make, dtype):
    rng = np.random.default_rng(4)
    X = make((rng.normal(size=(20, 9)) * np.geomspace(1e-30, 1e30, 9)).astype(dtype))
    scales = column_scales(design(X))
    scaled = divide_columns(X, scales)
    dense, back = (M.toarray() if sp.issparse(M) else M for M in (X, scaled))
    assert (np.frexp(scales)[0] == 0.5).all()
    assert scaled.dtype == dtype
    assert (np.abs(back).max(axis=0) <= 1).all()
    assert (np.abs(back).max(axis=0) >= 0.5).all()
    np.testing.assert_array_equal(back * scales.astype(dtype), dense)


def test_columns_of_similar_size_are_left_alone():
    X = np.random.default_rng(5).normal(size=(20, 4)) * [1.0, 5.0, 0.1, 0.0]
    assert column_scales(design(X)) is None
    assert column_scales(design(sp.csc_matrix((5, 3)))) is None


def test_only_columns_that_stay_far_from_zero_are_centred():
    X = np.random.default_rng(7).random((50, 3))
    assert column_offsets(design(X)) is None
    full = design(sp.csc_matrix(X + 10))
    np.testing.assert_allclose(column_offsets(full), (X + 10).mean(axis=0))
    few = sp.hstack([X + 10, sp.csc_matrix((50, 10))])
    assert column_offsets(design(sp.csc_matrix(few))) is None  # it would be four times as large
    far = np.column_stack([X + 10, np.full(50, 0.1)])
    np.testing.assert_allclose(column_offsets(design(far)), far.mean(axis=0))
    assert not (far - column_offsets(design(far)))[:, 3].any()


# --- values of l1 --------------------------------------------------------------------------------


def test_values_fall_by_equal_ratios():
    np.testing.assert_allclose(falling_l1s(8.0, 4, 1 / 8, "l1s"), [8, 4, 2, 1])
    assert falling_l1s(8.0, 1, 0.1, "l1s").tolist() == [8.0]
    assert falling_l1s(0.0, 2, 0.5, "l1s").tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("scores", "best", "simple"),
    [
        ([[1.0, 1.0], [3.0, 1.0], [3.0, 3.0]], 2, 2),
        ([[0.0, 0.0], [2.0, 3.0], [2.0, 4.0]], 2, 1),
        ([[2.0, 2.0], [2.0, 2.0]], 0, 0),
        ([[1.0, 1.0], [2.0, 2.0], [9.0, np.nan]], 1, 1),
        ([[np.nan, np.nan]], 0, 0),
        ([[-np.inf, 1.0], [-np.inf, -np.inf]], 0, 0),
    ],
)
def test_rules_choose_by_mean_and_standard_error(scores, best, simple):
    assert choose_l1(np.array(scores), "cv") == best
    assert choose_l1(np.array(scores), "cv_1se") == simple


def test_numbers_too_large_for_a_type_become_its_largest():
    assert as_dtype(np.array([1e300, -1e300, 1.5]), np.float32).tolist() == [
        float(np.finfo(np.float32).max),
        float(np.finfo(np.float32).min),
        1.5,
    ]


# --- the dual point ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(LOSSES)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 10_000),
)
def test_any_dual_value_is_below_any_objective(name, has_intercept, is_positive, l2, seed):
    rng, loss = np.random.default_rng(seed), LOSSES[name]
    X = np.asfortranarray(rng.normal(size=(12, 4)))
    y = targets_for(name, rng, 12)
    problem = LinearProblem(X, y, np.full(12, 1 / 12), loss, has_intercept)
    penalty = Penalty(np.array([0.0, 1.0, 2.0, 1.0]), l2, is_positive)

    def draw():
        w = rng.normal(size=4) * (rng.random(4) < 0.6)
        return np.abs(w) if is_positive else w, rng.normal() if has_intercept else 0.0

    w, b = draw()
    bound = dual_value(problem, penalty, 0.2, w, b)
    for _ in range(20):
        other, at = draw()
        value = problem.value(other, at) + penalty.value(other, 0.2)
        assert bound <= value + 1e-9 * abs(value)


# --- several solves at once ----------------------------------------------------------------------


def test_tasks_come_back_in_order_and_run_together():
    meeting = threading.Barrier(3, timeout=30)

    def meet(task):
        meeting.wait()
        return 2 * task

    assert map_blocks(meet, range(3), 3) == [0, 2, 4]
    assert map_blocks(lambda task: 2 * task, range(3), 1) == [0, 2, 4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 7, 16, 61])
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_matrix])
def test_extremes_of_columns_are_those_of_numpy(dtype, n_rows, form):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 5)).astype(dtype) * (rng.random((n_rows, 5)) < 0.7)
    low, high = column_extremes(form(X.astype(dtype)))
    np.testing.assert_array_equal(low, X.min(axis=0))
    np.testing.assert_array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 20, 60])
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_matrix])
def test_extremes_of_a_column_that_is_not_finite_are_no_numbers(bad, row, form):
    X = np.ones((61, 3))
    X[row, 1] = bad
    low, high = column_extremes(form(X))
    np.testing.assert_array_equal(np.isnan(low), [False, True, False])
    np.testing.assert_array_equal(np.isnan(high), [False, True, False])
