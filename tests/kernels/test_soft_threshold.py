"""Soft threshold: nearest to its argument among all points, l1 price included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sublearn._core import soft_threshold_

DTYPES = [np.float32, np.float64]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def thresholded(v, level):
    out = v.copy()
    soft_threshold_(out, level)
    return out


@each_dtype
@settings(deadline=None)
@given(data=st.data(), level=st.sampled_from([0.0, 0.5, 1.0, 3.0, 2.0**60]))
def test_is_sign_times_what_is_left_of_the_magnitude(dtype, data, level):
    width = np.finfo(dtype).bits
    entries = st.floats(allow_nan=False, allow_infinity=False, width=width)
    v = data.draw(arrays(dtype, st.integers(0, 70), elements=entries))
    expected = np.sign(v) * np.maximum(np.abs(v) - dtype(level), dtype(0))
    np.testing.assert_array_equal(thresholded(v, level), expected)


@each_dtype
def test_satisfies_the_optimality_condition(dtype):
    v = np.random.default_rng(0).normal(size=500).astype(dtype)
    level = 0.5
    w = thresholded(v, level)
    subgradient = v - w  # must lie in level * d|w|
    support = w != 0
    eps = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(subgradient[support], level * np.sign(w[support]), rtol=eps)
    assert (np.abs(subgradient[~support]) <= level).all()
    assert 0 < support.sum() < len(v)


@each_dtype
def test_an_infinite_level_leaves_nothing(dtype):
    np.testing.assert_array_equal(thresholded(np.array([-3, 0, 1e30], dtype), np.inf), np.zeros(3))


@each_dtype
def test_an_entry_that_is_not_a_number_is_not_hidden(dtype):
    assert np.isnan(thresholded(np.array([np.nan], dtype), 1.0)).all()


@each_dtype
@pytest.mark.parametrize("level", [-1.0, np.nan])
def test_refuses_a_level_that_is_not_non_negative(level, dtype):
    with pytest.raises(ValueError, match=rf"level must be non-negative, got {level}"):
        soft_threshold_(np.ones(3, dtype), level)


def test_refuses_what_it_would_have_to_copy():
    with pytest.raises(TypeError):
        soft_threshold_(np.ones(10)[::2], 1.0)
