"""Projection onto two simplices of one size: the definition, an exact twin, cvxpy, refusals."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projection_cases import DTYPES, VECTORS, assert_close, vectors
from slow_twins import project_bisimplex_exactly

from sublearn._core import project_bisimplex_

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_cap = pytest.mark.parametrize("cap", [1e-3, 1.0, 1e3, np.inf])
PAIRS = {f"{m} / {n}": (VECTORS[m], VECTORS[n]) for m, n in itertools.product(VECTORS, repeat=2)}


def projected_pair(b, c, cap):
    x, y = b.copy(), c.copy()
    t = project_bisimplex_(x, y, cap)
    return x, y, t


@each_dtype
@each_cap
@pytest.mark.parametrize(("b", "c"), PAIRS.values(), ids=PAIRS.keys())
def test_satisfies_the_optimality_conditions(b, c, cap, dtype):
    b, c = b.astype(dtype), c.astype(dtype)
    x, y, t = projected_pair(b, c, cap)
    tol = 1e-4 if dtype == np.float32 else 1e-11

    assert (x >= 0).all()
    assert (y >= 0).all()
    assert 0 <= t <= cap
    assert x.sum(dtype=np.float64) == pytest.approx(t, rel=tol)
    assert y.sum(dtype=np.float64) == pytest.approx(t, rel=tol)
    # The feasible pairs are the hull of zero and all cap * (e_i, e_j), or their cone: no direction
    # towards one of these, nor along the ray through (x, y), may go downhill.
    b, c, x, y = (part.astype(np.float64) for part in (b, c, x, y))
    steepest_pair = (b - x).max() + (c - y).max()
    along_ray = x @ (b - x) + y @ (c - y)
    slack = tol * max(1.0, np.abs(b).max(), np.abs(c).max())
    assert along_ray >= -slack * max(t, 1.0)
    if t < cap:
        assert steepest_pair <= slack
        assert along_ray <= slack * max(t, 1.0)
    else:
        assert cap * steepest_pair <= along_ray + slack * max(t, 1.0)


@each_dtype
@settings(deadline=None, max_examples=200)
@given(b=vectors(), c=vectors(), cap=st.sampled_from([1e-3, 0.5, 1.0, 3.0, 1e20, np.inf]))
def test_agrees_with_the_exact_twin(dtype, b, c, cap):
    b, c = b.astype(dtype), c.astype(dtype)
    x, y, t = projected_pair(b, c, cap)
    exact_x, exact_y = project_bisimplex_exactly(b, c, cap)

    reach = min(max(float(b.max()) + float(c.max()), 0.0), cap)
    assert_close(x, exact_x, reach, len(b))
    assert_close(y, exact_y, reach, len(c))
    assert t == pytest.approx(exact_x.sum(), rel=1e-6, abs=1e-6 * reach)


@each_dtype
@settings(deadline=None)
@given(v=vectors(), offset=st.integers(-2, 2).map(float))
def test_agrees_when_the_halves_nearly_cancel(dtype, v, offset):
    """max(b) + max(c) is small beside its terms: the size t lives in the last digits."""
    b = v.astype(dtype)
    c = (-b.max() + np.array([0.0, offset, offset], dtype=dtype)).astype(dtype)
    x, y, _ = projected_pair(b, c, np.inf)
    exact_x, exact_y = project_bisimplex_exactly(b, c, np.inf)
    reach = max(float(b.max()) + float(c.max()), 0.0)
    assert_close(x, exact_x, reach, len(b))
    assert_close(y, exact_y, reach, len(c))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cap", [0.3, 2.0, 1e3])
def test_agrees_with_a_general_solver(seed, cap):
    rng = np.random.default_rng(seed)
    b, c = rng.normal(size=rng.integers(1, 8)), rng.normal(size=rng.integers(1, 8))
    x, y = cp.Variable(len(b), nonneg=True), cp.Variable(len(c), nonneg=True)
    objective = cp.Minimize(cp.sum_squares(x - b) + cp.sum_squares(y - c))
    constraints = [cp.sum(x) == cp.sum(y), cp.sum(x) <= cap]
    cp.Problem(objective, constraints).solve(solver=cp.CLARABEL)

    ours_x, ours_y, t = projected_pair(b, c, cap)
    np.testing.assert_allclose(ours_x, x.value, atol=1e-5)
    np.testing.assert_allclose(ours_y, y.value, atol=1e-5)
    assert t == pytest.approx(x.value.sum(), abs=1e-5)


def test_vanishes_when_even_the_best_pair_does_not_pay():
    x, y, t = projected_pair(np.array([1.0, -3.0]), np.array([-1.0, -2.0]), 5.0)
    assert t == 0
    np.testing.assert_array_equal(x, [0, 0])
    np.testing.assert_array_equal(y, [0, 0])


def test_of_one_positive_entry_is_the_mean_of_the_two():
    x, y, t = projected_pair(np.array([3.0]), np.array([1.0]), np.inf)
    assert (x[0], y[0], t) == (2.0, 2.0, 2.0)


@each_dtype
@pytest.mark.parametrize("empty", ["b", "c"])
def test_refuses_an_empty_half(empty, dtype):
    halves = {"b": np.ones(2, dtype), "c": np.ones(2, dtype), empty: np.zeros(0, dtype)}
    with pytest.raises(ValueError, match=rf"project_bisimplex_\.{empty} must not be empty"):
        project_bisimplex_(**halves, cap=1.0)


@each_dtype
@pytest.mark.parametrize("cap", [0.0, -1.0, np.nan])
def test_refuses_a_cap_that_is_not_positive(cap, dtype):
    with pytest.raises(ValueError, match=rf"cap must be positive, got {cap}"):
        project_bisimplex_(np.ones(2, dtype), np.ones(2, dtype), cap)


@each_dtype
@pytest.mark.parametrize("half", ["b", "c"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_entries_that_are_not_finite(bad, half, dtype):
    halves = {"b": np.ones(2, dtype), "c": np.ones(2, dtype)}
    halves[half][1] = bad
    with pytest.raises(ValueError, match=rf"{half} must be finite, got {bad} at position 1"):
        project_bisimplex_(**halves, cap=1.0)


@each_dtype
def test_refuses_a_size_that_overflows(dtype):
    largest = np.full(3, np.finfo(dtype).max, dtype)
    with pytest.raises(ValueError, match=r"cap must keep the common size finite, got inf"):
        project_bisimplex_(largest, np.append(largest, -largest), np.inf)


def test_refuses_halves_of_two_dtypes():
    with pytest.raises(TypeError):
        project_bisimplex_(np.ones(2), np.ones(2, np.float32), 1.0)
