"""Metrics of probabilities against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.metrics import brier_score, expected_calibration_error, reliability_curve


def example(seed=0, n_rows=200, n_labels=7):
    rng = np.random.default_rng(seed)
    p = rng.random((n_rows, n_labels))
    return rng.random(p.shape) < p**2, p


def test_the_curve_groups_by_probability():
    truth, p = example()
    curve = reliability_curve(truth, None, p, n_bins=4)
    for i, (low, high) in enumerate([(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01)]):
        inside = (p >= low) & (p < high)
        assert curve.counts[i] == inside.sum()
        assert curve.predicted[i] == pytest.approx(p[inside].mean())
        assert curve.observed[i] == pytest.approx(truth[inside].mean())


def test_the_error_is_the_mean_distance():
    truth, p = example()
    curve = reliability_curve(truth, None, p)
    expected = np.abs(curve.predicted - curve.observed) @ curve.counts / p.size
    assert expected_calibration_error(truth, None, p) == pytest.approx(expected)
    assert expected > 0.05


def test_empty_groups_are_left_out():
    curve = reliability_curve(np.array([[1, 0], [0, 1]]), None, np.array([[1.0, 0], [0, 1.0]]))
    np.testing.assert_array_equal(curve.counts, [2, 2])
    np.testing.assert_array_equal(curve.observed, [0, 1])


def test_brier_is_the_mean_square():
    truth, p = example()
    assert brier_score(sp.csr_matrix(truth), None, p) == pytest.approx(np.mean((p - truth) ** 2))


def test_ranked_labels_count_where_they_are_true():
    labels = np.array([["a", "b"], ["c", "a"]])
    p = np.array([[0.9, 0.2], [0.6, 0.5]])
    expected = np.mean([(0.9 - 1) ** 2, 0.2**2, (0.6 - 1) ** 2, (0.5 - 1) ** 2])
    assert brier_score([["a"], ["a", "c"]], labels, p) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("labels", "p", "words"),
    [
        (None, np.array([[0.1, 1.5]] * 2), "probabilities must be from 0 to 1"),
        (None, np.array([[0.1, np.nan]] * 2), "probabilities must be from 0 to 1"),
        (None, np.array([0.1, 0.5]), "probabilities must be a matrix"),
        (np.array([[0], [1]]), np.array([[0.1, 0.5]] * 2), "labels must have the shape"),
    ],
)
def test_refuses_what_is_no_probability(labels, p, words):
    with pytest.raises(ValueError, match=words):
        brier_score(np.array([[1, 0], [0, 1]]), labels, p)


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, None])
def test_refuses_a_number_of_groups_that_is_not_positive(n_bins):
    truth, p = example()
    with pytest.raises(ValueError, match="n_bins must be a positive integer"):
        reliability_curve(truth, None, p, n_bins=n_bins)
