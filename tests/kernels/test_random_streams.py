"""Random streams: as published, the same for ever, uniform, and independent of each other.

A model depends on its stream, so a change of these numbers changes every seeded model: the stored
values are a promise.
"""

import numpy as np
import pytest
from slow_twins import SplitGenerator

from sublearn._core import random_permutation, random_uniform

STREAMS = [(0, 0), (0, 1), (1, 0), (42, 7), (2**64 - 1, 2**64 - 1)]

GOLDEN_UNIFORM = {
    (0, 0): [0.5479969354209024, 0.9544143600762116, 0.4164741882313483],
    (0, 1): [0.5378007661032528, 0.29741941044225073, 0.07628734025649131],
    (2**64 - 1, 7): [0.5808520218616497, 0.21513182096847538, 0.546266826444014],
}
GOLDEN_PERMUTATION = {(0, 0): [5, 0, 2, 1, 4, 3], (0, 1): [5, 2, 4, 0, 1, 3]}


@pytest.mark.parametrize(("stream", "expected"), GOLDEN_UNIFORM.items())
def test_first_numbers_never_change(stream, expected):
    assert random_uniform(*stream, 3).tolist() == expected


@pytest.mark.parametrize(("stream", "expected"), GOLDEN_PERMUTATION.items())
def test_first_permutation_never_changes(stream, expected):
    assert random_permutation(*stream, 6).tolist() == expected


@pytest.mark.parametrize("stream", STREAMS)
def test_follows_the_published_generator(stream):
    twin = SplitGenerator(*stream)
    assert random_uniform(*stream, 50).tolist() == [twin.uniform() for _ in range(50)]
    assert random_permutation(*stream, 50).tolist() == SplitGenerator(*stream).permutation(50)


def test_a_longer_draw_starts_with_the_shorter_one():
    np.testing.assert_array_equal(random_uniform(3, 5, 100)[:10], random_uniform(3, 5, 10))


@pytest.mark.parametrize("stream", STREAMS)
def test_is_roughly_uniform_on_the_unit_interval(stream):
    draws = random_uniform(*stream, 100_000)
    assert draws.min() >= 0
    assert draws.max() < 1
    # Each of 100 cells expects 1000 draws with standard deviation 31.5: six of them.
    counts = np.bincount((draws * 100).astype(int), minlength=100)
    assert np.abs(counts - 1000).max() < 190


def test_streams_of_one_seed_are_uncorrelated():
    draws = np.array([random_uniform(0, stream, 20_000) for stream in range(20)])
    correlation = np.corrcoef(draws) - np.eye(20)
    assert np.abs(correlation).max() < 6 / np.sqrt(20_000)


def test_neighbouring_seeds_and_streams_share_no_number():
    draws = [random_uniform(seed, stream, 200) for seed in range(8) for stream in range(8)]
    assert len(np.unique(np.concatenate(draws))) == 64 * 200


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_a_permutation_holds_each_number_once(n):
    np.testing.assert_array_equal(np.sort(random_permutation(9, 0, n)), np.arange(n))


def test_every_permutation_of_four_is_about_equally_likely():
    drawn = [tuple(random_permutation(0, stream, 4)) for stream in range(24_000)]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    # Each of the 24 expects 1000 draws with standard deviation 31: six of them.
    assert len(counts) == 24
    assert np.abs(counts - 1000).max() < 190
