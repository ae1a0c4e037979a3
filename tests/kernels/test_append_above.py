"""Positions above a threshold: strictly above, in order, whatever the length and the NaNs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn._core import append_above

DTYPES = [np.float32, np.float64]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)

# Lengths around multiples of 64, the kernel's block.
LENGTHS = [0, 1, 63, 64, 65, 128, 1000]


@each_dtype
@settings(deadline=None)
@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 1.0, np.nan, np.inf, -np.inf]), max_size=200),
    threshold=st.sampled_from([-1.0, 0.0, 0.5, np.inf, -np.inf, np.nan]),
)
def test_agrees_with_a_comparison_entry_by_entry(dtype, scores, threshold):
    scores = np.array(scores, dtype=dtype)
    found = append_above(scores, threshold)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.flatnonzero(scores > threshold))


@each_dtype
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("threshold", [-10.0, 1.0, 2.5, 10.0])
def test_agrees_on_random_scores_of_any_length(threshold, n, dtype):
    scores = np.random.default_rng(n).normal(size=n).astype(dtype)
    np.testing.assert_array_equal(
        append_above(scores, threshold), np.flatnonzero(scores > dtype(threshold))
    )


@each_dtype
@pytest.mark.parametrize("position", [0, 63, 64, 127, 128, 130])
def test_finds_a_single_entry_wherever_it_is(position, dtype):
    scores = np.zeros(131, dtype=dtype)
    scores[position] = 1
    np.testing.assert_array_equal(append_above(scores, 0.5), [position])


def test_refuses_what_it_would_have_to_copy():
    with pytest.raises(TypeError):
        append_above(np.zeros(10)[::2], 0.0)
