"""The k best scores: the order, the candidates, and the bad inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_twins import top_k_by_sorting

from sublearn._core import top_k

DTYPES = [np.float32, np.float64]

# Few distinct values make ties the rule; 200 entries fill the kernel's buffer several times.
scores_with_ties = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]), max_size=200
)
scores_of_any_kind = st.lists(st.floats(width=32), max_size=200)


def assert_same_ranking(result, expected):
    ids, scores = result
    expected_ids, expected_scores = expected
    assert ids.dtype == np.int32
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(scores, expected_scores)
    assert scores.dtype == expected_scores.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@settings(deadline=None)
@given(scores=scores_with_ties | scores_of_any_kind, k=st.integers(0, 210))
def test_agrees_with_sorting_everything(dtype, scores, k):
    scores = np.array(scores, dtype=dtype)
    assert_same_ranking(top_k(scores, k), top_k_by_sorting(scores, k))


@pytest.mark.parametrize("dtype", DTYPES)
@settings(deadline=None)
@given(data=st.data(), scores=scores_with_ties, k=st.integers(0, 210))
def test_agrees_with_sorting_the_candidates(dtype, data, scores, k):
    scores = np.array(scores, dtype=dtype)
    shuffled = data.draw(st.permutations(range(len(scores))))
    candidates = np.array(shuffled[: data.draw(st.integers(0, len(scores)))], dtype=np.int32)
    assert_same_ranking(top_k(scores, k, candidates), top_k_by_sorting(scores, k, candidates))


@pytest.mark.parametrize("k", [1, 5, 63, 64, 65, 1000, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["random", "increasing", "decreasing", "constant"])
def test_agrees_with_sorting_on_a_long_list(order, dtype, k):
    scores = np.random.default_rng(0).normal(size=4321).astype(dtype)
    if order == "constant":
        scores[:] = 0.5
    elif order != "random":
        scores = np.sort(scores)[:: 1 if order == "increasing" else -1].copy()
    assert_same_ranking(top_k(scores, k), top_k_by_sorting(scores, k))


def test_breaks_ties_by_id_whatever_the_order_of_the_candidates():
    scores = np.array([1.0, 7.0, 7.0, 7.0])
    ids, _ = top_k(scores, 2, np.array([3, 0, 2, 1], dtype=np.int32))
    np.testing.assert_array_equal(ids, [1, 2])


def test_ranks_nan_behind_minus_infinity():
    ids, scores = top_k(np.array([np.nan, -np.inf, np.nan, 0.0]), 4)
    np.testing.assert_array_equal(ids, [3, 1, 0, 2])
    np.testing.assert_array_equal(scores, [0.0, -np.inf, np.nan, np.nan])


def test_gives_all_when_k_is_more_than_there_are():
    ids, _ = top_k(np.array([1.0, 3.0, 2.0]), 2**62)
    np.testing.assert_array_equal(ids, [1, 2, 0])


def test_gives_nothing_for_nothing():
    assert [len(part) for part in top_k(np.zeros(0), 3)] == [0, 0]
    assert [len(part) for part in top_k(np.zeros(100), 0)] == [0, 0]


def test_refuses_a_negative_k():
    with pytest.raises(ValueError, match=r"top_k\.k must be non-negative, got -1"):
        top_k(np.zeros(3), -1)
    with pytest.raises(ValueError, match=r"top_k\.k must be non-negative, got -2"):
        top_k(np.zeros(3), -2, np.zeros(1, np.int32))


@pytest.mark.parametrize("candidate", [-1, 3])
def test_refuses_a_candidate_outside_the_scores(candidate):
    with pytest.raises(ValueError, match=rf"must be from 0 to 2, got {candidate}"):
        top_k(np.zeros(3), 1, np.array([0, candidate], dtype=np.int32))


@pytest.mark.parametrize(
    "scores",
    [np.zeros(4)[::2], np.zeros((2, 2)), np.zeros(3, np.int64), [1.0, 2.0]],
    ids=["strided", "two axes", "integers", "a list"],
)
def test_refuses_what_it_would_have_to_copy(scores):
    with pytest.raises(TypeError):
        top_k(scores, 1)
