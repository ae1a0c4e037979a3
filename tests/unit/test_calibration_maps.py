"""Maps from score to probability: against slow twins, on edge cases, and their rules of pooling."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from sublearn.extreme.calibration import Calibration, fit_calibration


def problem(seed=0, n_rows=400, n_features=30, n_labels=12, density=0.15):
    """Rows, sparse weights, biases, and labels that are true with probability expit(3 s + 1)."""
    rng = np.random.default_rng(seed)
    X = sp.random(
        n_rows, n_features, density, "csr", random_state=rng, data_rvs=rng.standard_normal
    )
    W = sp.random(n_features, n_labels, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    bias = rng.normal(-1, 0.3, n_labels)
    scores = (X @ W).toarray() + bias
    truth = rng.random(scores.shape) < expit(3 * scores + 1)
    return X, W, bias, truth, scores


def fit(X, W, bias, truth, method="sigmoid", min_positives=1):
    options = {"method": method, "min_positives": min_positives}
    return fit_calibration(X, W, bias, sp.csr_matrix(truth), **options)


def probabilities(calibration, scores):
    labels = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return calibration.probability(labels, scores)


def platt_twin(scores, truth):
    """Log loss with Platt's targets, minimised by SciPy."""
    n_pos, n_neg = truth.sum(), (~truth).sum()
    targets = np.where(truth, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))

    def loss(ab):
        z = ab[0] * scores + ab[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    return minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x


def test_sigmoids_are_those_of_a_general_optimiser():
    X, W, bias, truth, scores = problem()
    found = fit(X, W, bias, truth)
    for k in range(truth.shape[1]):
        slope, offset = platt_twin(scores[:, k], truth[:, k])
        assert found.slope[k] == pytest.approx(slope, rel=1e-3, abs=1e-4)
        assert found.offset[k] == pytest.approx(offset, rel=1e-3, abs=1e-4)


def test_isotonic_lines_are_those_of_scikit_learn():
    X, W, bias, truth, scores = problem()
    found = probabilities(fit(X, W, bias, truth, "isotonic"), scores)
    least = 1 / (len(scores) + 2)
    for k in range(truth.shape[1]):
        twin = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
        expected = twin.fit(scores[:, k], truth[:, k]).predict(scores[:, k])
        np.testing.assert_allclose(found[:, k], expected, atol=1e-6)


def test_isotonic_lines_go_on_flat_and_straight_between_knots():
    X, W, bias, truth, scores = problem()
    calibration = fit(X, W, bias, truth, "isotonic")
    grid = np.linspace(scores.min() - 2, scores.max() + 2, 300)
    for k in range(truth.shape[1]):
        a, b = calibration.curve_starts[calibration.curve_of[k] + np.array([0, 1])]
        twin = np.interp(grid, calibration.knot_score[a:b], calibration.knot_probability[a:b])
        found = calibration.probability(np.full(grid.shape, k), grid)
        np.testing.assert_allclose(found, twin, atol=1e-9)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_blocks_of_labels_change_nothing(method, monkeypatch):
    X, W, bias, truth, scores = problem()
    whole = probabilities(fit(X, W, bias, truth, method, 30), scores)
    monkeypatch.setattr("sublearn.extreme.calibration._BLOCK", 1)
    np.testing.assert_allclose(probabilities(fit(X, W, bias, truth, method, 30), scores), whole)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_labels_with_few_rows_share_one_line(method):
    X, W, bias, truth, scores = problem()
    truth[:, 3] = truth[:, 7] = False
    truth[:9, 3] = truth[5:14, 7] = True
    truth[:, 9] = True
    truth[:3, 9] = False  # too few rows that do not carry it
    calibration = fit(X, W, bias, truth, method, 10)
    assert np.flatnonzero(calibration.is_pooled).tolist() == [3, 7, 9]
    pool = [3, 7, 9]
    least = 1 / (3 * len(scores) + 2)
    twin = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
    expected = twin.fit(scores[:, pool].ravel(), truth[:, pool].ravel()).predict(
        scores[:, pool].ravel()
    )
    found = probabilities(calibration, scores)[:, pool].ravel()
    np.testing.assert_allclose(found, expected, atol=0.02)  # pooled scores are rounded
    assert abs(found.mean() - truth[:, pool].mean()) < 1e-3


def test_a_score_that_misleads_gets_the_frequency():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(200, 1)))
    truth = rng.random((200, 1)) < expit(-3 * X.toarray())
    calibration = fit(X, sp.csr_matrix([[1.0]]), np.zeros(1), truth)
    assert calibration.slope[0] == 0
    assert expit(calibration.offset[0]) == pytest.approx(truth.mean(), abs=0.01)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_label_without_weights_gets_its_frequency(method):
    X, W, bias, truth, _scores = problem()
    W = W.tolil()
    W[:, 4] = 0
    calibration = fit(X, W.tocsr(), bias, truth, method)
    found = calibration.probability(np.array([4]), bias[4:5])
    assert found[0] == pytest.approx(truth[:, 4].mean(), abs=0.01)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_no_label_is_impossible_or_certain(method):
    X, W, bias, _, scores = problem(n_rows=20)
    truth = scores > np.median(scores, axis=0)  # separable
    found = probabilities(fit(X, W, bias, truth, method), scores)
    assert ((found > 0) & (found < 1)).all()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e6]),
    n_rows=st.integers(1, 12),
    method=st.sampled_from(["sigmoid", "isotonic"]),
    min_positives=st.sampled_from([1, 3, 100]),
)
def test_maps_are_probabilities_that_never_fall(seed, scale, n_rows, method, min_positives):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.integers(0, 2, (n_rows, 4)) * scale)
    W = sp.csr_matrix(rng.integers(-1, 2, (4, 3)).astype(float))
    truth = rng.random((n_rows, 3)) < 0.4
    calibration = fit(X, W, np.zeros(3), truth, method, min_positives)
    grid = np.sort(rng.normal(size=50)) * scale * 4
    for k in range(3):
        found = calibration.probability(np.full(50, k), grid)
        assert ((found >= 0) & (found <= 1)).all()
        assert (np.diff(found) >= -1e-12).all()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("min_positives", [1, 60, 10**6])
def test_state_gives_the_same_maps_back(method, min_positives):
    X, W, bias, truth, scores = problem()
    calibration = fit(X, W, bias, truth, method, min_positives)
    again = Calibration.from_state(calibration.to_state(), scores.shape[1])
    assert again.method == method
    np.testing.assert_array_equal(probabilities(again, scores), probabilities(calibration, scores))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("min_positives", [1, 10**6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_scores_have_the_probabilities_of_the_ends(method, min_positives, dtype):
    X, W, bias, truth, scores = problem()
    truth[:, 0] = scores[:, 0] < -1  # a higher score means less: a map without a slope
    calibration = fit(X, W, bias, truth, method, min_positives)
    ends = np.outer([-np.inf, np.inf], np.ones(len(bias))).astype(dtype)
    far = np.outer([-1e30, 1e30], np.ones(len(bias)))
    np.testing.assert_array_equal(probabilities(calibration, ends), probabilities(calibration, far))
