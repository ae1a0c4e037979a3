"""A sample of a row's features: unbiased, of the asked size, in proportion to their size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sublearn._core import sample_features

VALUES = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.25, -3.0, 1e-6, 1e6])


@pytest.mark.parametrize("n_draws", [1, 2, 5, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_of_many_samples_is_the_row(dtype, n_draws):
    x = np.array([3.0, -1.0, 0.0, 0.5, -0.25, 2.0, 0.0], dtype=dtype)
    n_samples = 4000
    mean = np.zeros(len(x))
    for stream in range(n_samples):
        at, weights = sample_features(x, n_draws, 1, stream)
        np.add.at(mean, at, weights / n_samples)
    # One draw has a standard deviation of at most ||x||_1 / 2; a stratified mean has no more.
    error = 5 * np.abs(x).sum() / 2 / np.sqrt(n_samples * n_draws)
    np.testing.assert_allclose(mean, x, atol=error)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    hnp.arrays(np.float64, st.integers(1, 12), elements=VALUES),
    st.integers(1, 30),
    st.integers(0, 50),
)
def test_draws_features_that_are_there_and_weighs_them_alike(x, n_draws, stream):
    at, weights = sample_features(x, n_draws, 7, stream)
    if not x.any():
        assert len(at) == 0
        return
    assert (x[at] != 0).all()
    assert (np.diff(at) > 0).all()
    assert (np.sign(weights) == np.sign(x[at])).all()
    share = np.abs(x).sum() / n_draws
    counts = np.abs(weights) / share
    np.testing.assert_allclose(counts, np.round(counts), rtol=1e-9)
    assert round(counts.sum()) == n_draws
    # One draw in each share: no feature is drawn less often than the shares it fills.
    expected = np.abs(x[at]) / share
    assert (np.abs(counts - expected) < 2).all()


def test_no_draws_and_empty_rows_give_nothing():
    assert len(sample_features(np.ones(3), 0, 0, 0)[0]) == 0
    assert len(sample_features(np.zeros(0), 3, 0, 0)[0]) == 0
