"""Theorem 4 of the Latent Feature Lasso, against every combination of columns that is binary."""

import itertools

import numpy as np
import pytest

from sublearn.errors import ParameterError
from sublearn.latent import LatentFeatureLasso, check_identifiability


def binary_vectors_by_projection(columns):
    """All of them that the span of the columns holds."""
    basis = np.linalg.svd(columns, full_matrices=False)[0]
    basis = basis[:, : np.linalg.matrix_rank(columns)]
    every = np.array(list(itertools.product((0.0, 1.0), repeat=len(columns))))
    left = every - every @ basis @ basis.T
    return {tuple(z) for z in every[np.abs(left).max(axis=1) < 1e-9].astype(int)}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_finds_every_binary_vector_of_the_span(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    Z = (rng.random((8, rng.integers(1, 5))) < rng.choice([0.2, 0.5])).astype(int)
    found = check_identifiability(Z, fit_intercept=fit_intercept)
    columns = np.hstack([np.ones((8, 1)), Z]) if fit_intercept else Z
    rank = np.linalg.matrix_rank(columns)
    assert found.rank == rank - fit_intercept
    if rank < columns.shape[1]:
        assert not found.holds
        return
    own = {tuple(z) for z in Z.T} | {(0,) * 8}
    own |= {tuple(1 - z) for z in Z.T} | {(1,) * 8} if fit_intercept else set()
    expected = binary_vectors_by_projection(columns) - own
    assert {tuple(z) for z in found.others.T} == expected
    assert found.holds == (not expected)


def test_rare_features_fail_and_frequent_ones_hold():
    rng = np.random.default_rng(0)
    assert check_identifiability(rng.random((1000, 10)) < 0.3).holds
    rare = check_identifiability(rng.random((1000, 10)) < 0.02)
    assert not rare.holds
    assert rare.rank == 10


def test_many_chunks_of_patterns_are_looked_at():
    rng = np.random.default_rng(1)
    Z = (rng.random((400, 17)) < 0.4).astype(int)
    Z[:, 16] = (1 - Z[:, 0]) * Z[:, 16]  # never together with the first: their sum is binary
    found = check_identifiability(Z)
    np.testing.assert_array_equal(found.others, Z[:, [0]] + Z[:, [16]])


def test_of_many_others_a_thousand_are_told():
    found = check_identifiability(np.eye(13))
    assert not found.holds
    assert found.others.shape == (13, 1000)


def test_features_that_depend_on_each_other_are_not_identifiable():
    Z = np.random.default_rng(0).random((60, 3)) < 0.5
    W = np.array([[1.0, 0, 2], [0, 1, 1]])
    assert check_identifiability(Z[:, :2], W).holds
    assert not check_identifiability(Z, np.vstack([W, W.sum(axis=0)])).holds
    assert not check_identifiability(Z[:, [0, 0]]).holds


def test_codes_of_a_fit_are_checked_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(80, 4)) @ rng.normal(size=(4, 9)) + 2.0
    model = LatentFeatureLasso(4, random_state=0).fit(X)
    assert check_identifiability(model.codes_, model.components_, fit_intercept=True).holds


@pytest.mark.parametrize(
    ("codes", "components", "sentence"),
    [
        ([1, 0], None, r"codes must be a matrix with rows and columns, got \[1, 0\]"),
        ([[1, 2]], None, "codes must be zeros and ones, got"),
        ([["a"]], None, "codes must be zeros and ones, got"),
        (np.zeros((3, 23)), None, "codes must have at most 22 columns, got 23"),
        ([[1], [0]], [[1.0], [2.0]], r"components must have 1 rows, got shape \(2, 1\)"),
        ([[1], [0]], [[np.nan]], "components must be a matrix of finite numbers, got"),
    ],
)
def test_refuses_what_is_no_factorisation(codes, components, sentence):
    with pytest.raises(ParameterError, match=f"check_identifiability.{sentence}"):
        check_identifiability(codes, components)
