"""Projection onto the simplex: the definition, an exact twin, the bad inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projection_cases import DTYPES, RADII, VECTORS, assert_close, projected, vectors
from slow_twins import project_simplex_exactly

from sublearn._core import project_simplex_

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_radius = pytest.mark.parametrize("radius", RADII)
each_vector = pytest.mark.parametrize("v", VECTORS.values(), ids=VECTORS.keys())


@each_dtype
@each_radius
@each_vector
def test_is_the_nearest_point_of_the_simplex(v, radius, dtype):
    v = v.astype(dtype)
    p = projected(project_simplex_, v, radius)

    assert p.dtype == dtype
    assert (p >= 0).all()
    tol = 1e-4 if dtype == np.float32 else 1e-12
    assert p.sum(dtype=np.float64) == pytest.approx(radius, rel=tol)
    # Nearest: the shift v - p is one constant on the support, and at most that off it.
    shift = v.astype(np.float64) - p.astype(np.float64)
    theta = shift[p > 0].mean()
    slack = tol * max(radius, np.abs(v).max())
    np.testing.assert_allclose(shift[p > 0], theta, rtol=0, atol=slack)
    assert (shift[p == 0] <= theta + slack).all()


@each_dtype
@settings(deadline=None)
@given(v=vectors(), radius=st.sampled_from([1e-3, 0.1, 1.0, 2.0, 1e3, 1e20]))
def test_agrees_with_the_exact_twin_within_rounding_of_the_radius(dtype, v, radius):
    v = v.astype(dtype)
    p = projected(project_simplex_, v, radius)
    assert_close(p, project_simplex_exactly(v, radius), radius, len(v))


@each_radius
@each_vector
def test_projecting_twice_changes_nothing_more(v, radius):
    once = projected(project_simplex_, v, radius)
    np.testing.assert_allclose(
        projected(project_simplex_, once, radius), once, rtol=0, atol=1e-12 * radius
    )


@each_dtype
def test_keeps_the_radius_at_any_scale_of_the_entries(dtype):
    v = np.full(4, 1e30, dtype=dtype)
    np.testing.assert_array_equal(projected(project_simplex_, v, 1.0), np.full(4, 0.25))
    v = np.array([np.finfo(dtype).max, np.finfo(dtype).min], dtype=dtype)
    np.testing.assert_array_equal(projected(project_simplex_, v, 1.0), [1.0, 0.0])
    largest = float(np.finfo(dtype).max)
    v = np.array([0.0, -largest / 2], dtype=dtype)
    expected = np.array([largest / 4 * 3, largest / 4], dtype=dtype)
    np.testing.assert_allclose(projected(project_simplex_, v, largest), expected, rtol=1e-6)


@each_dtype
def test_refuses_an_empty_vector(dtype):
    with pytest.raises(ValueError, match=r"v must not be empty"):
        project_simplex_(np.zeros(0, dtype), 1.0)


@each_dtype
@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan])
def test_refuses_a_radius_that_is_not_positive(radius, dtype):
    with pytest.raises(ValueError, match=rf"radius must be positive.*, got {radius}"):
        project_simplex_(np.ones(3, dtype), radius)


@pytest.mark.parametrize(("dtype", "radius"), [(np.float64, np.inf), (np.float32, 1e39)])
def test_refuses_a_radius_beyond_the_dtype(dtype, radius):
    with pytest.raises(ValueError, match=r"radius must be positive and finite, got"):
        project_simplex_(np.ones(3, dtype), radius)


@each_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_entries_that_are_not_finite_and_leaves_the_vector_alone(bad, dtype):
    v = np.array([3.0, bad], dtype=dtype)
    with pytest.raises(ValueError, match=rf"v must be finite, got {bad} at position 1"):
        project_simplex_(v, 1.0)
    np.testing.assert_array_equal(v, np.array([3.0, bad]))


@pytest.mark.parametrize(
    "v",
    [np.ones(10)[::2], np.ones((2, 2)), np.ones(3, np.int64), [1.0, 2.0]],
    ids=["strided", "two axes", "integers", "a list"],
)
def test_refuses_what_it_would_have_to_copy(v):
    with pytest.raises(TypeError):
        project_simplex_(v, 1.0)


def test_refuses_to_write_into_a_read_only_vector():
    v = np.ones(3)
    v.flags.writeable = False
    with pytest.raises(TypeError):
        project_simplex_(v, 1.0)
