"""Measures as functions of sums, and intervals of resamples, against formulas and the metrics."""

import numpy as np
import pytest

from sublearn.extreme import PPDSparseClassifier
from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.kinds import Asked, kind_of
from sublearn.kinds.judging import compare, intervals, mean, quotient
from sublearn.metrics import (
    expected_calibration_error,
    f1_by_level,
    f1_micro,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    psndcg_at_k,
    psp_at_k,
)
from sublearn.metrics.at_k import gains_at_k
from sublearn.metrics.propensity import propensities

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6))
Y = (X[:, :4] + 0.8 * rng.normal(size=(300, 4)) > 0.3).astype(int)


@pytest.mark.parametrize("n", [400, 40_000])  # so many are resampled in groups
def test_the_interval_of_a_mean_is_that_of_the_central_limit_theorem(n):
    values = np.random.default_rng(1).exponential(size=n)
    low, high = intervals({"m": mean(values)})["m"]
    error = values.std() / np.sqrt(n)
    np.testing.assert_allclose(
        [low, high], values.mean() + 1.96 * error * np.array([-1, 1]), atol=0.25 * error
    )


def test_a_pair_is_compared_more_sharply_than_two_intervals():
    hard = np.random.default_rng(0).normal(size=500)  # what makes an item hard for both
    better, worse = mean(hard + 0.05), mean(hard + 0.01 * np.random.default_rng(1).normal(size=500))
    found = compare({"m": better}, {"m": worse})["m"]
    assert found.is_clear
    assert found.high - found.low < 0.01
    assert intervals({"m": better})["m"][0] < worse.value  # apart they say nothing
    with pytest.raises(ValueError, match="on the same items"):
        compare({"m": better}, {"m": mean(hard[:9])})


def test_nothing_to_divide_by_is_zero():
    assert quotient(np.zeros(3), np.zeros(3)).value == 0


def test_measures_of_labels_are_the_metrics():
    model = (
        PPDSparseClassifier(random_state=0).fit(X[:200], Y[:200]).calibrate(X[200:250], Y[200:250])
    )
    asked = Asked(X[200:], Y[200:], np.zeros(100, dtype=bool))
    options = {"cuts": [1, 3], "constants": (0.55, 1.5), "seen": Y[:200]}
    found = kind_of(model).judge(model, asked, options).measures
    labels, proba = model.predict_proba_top_k(X[200:], 3)
    weights = propensities(Y[:200], A=0.55, B=1.5)
    assert found["ECE@3"].value == pytest.approx(
        expected_calibration_error(Y[200:], labels, proba, classes=model.classes_)
    )
    assert found["PSP@3"].value == pytest.approx(psp_at_k(Y[200:], labels, weights, 3))
    assert found["PSnDCG@1"].value == pytest.approx(psndcg_at_k(Y[200:], labels, weights, 1))
    assert found["F1"].value == pytest.approx(f1_micro(Y[200:], model.predict(X[200:])))
    assert found["sets_right"].value == pytest.approx(model.score(X[200:], Y[200:]))
    gains, ones = gains_at_k("precision", Y[200:], labels, 3)
    assert found["P@3"].value == pytest.approx(gains.sum() / ones.sum())


def test_measures_in_a_taxonomy_are_the_metrics():
    tree = Taxonomy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
    y = np.array(["a1", "a2", "b1", "b2"])[(X[:, 0] > 0) * 2 + (X[:, 1] + rng.normal(size=300) > 0)]
    model = HierarchicalClassifier(tree).fit(X[:200], y[:200])
    asked = Asked(X[200:], y[200:], np.zeros(100, dtype=bool))
    found = kind_of(model).judge(model, asked, {}).measures
    given = model.predict(X[200:])
    for name, metric in (
        ("precision", hierarchical_precision),
        ("recall", hierarchical_recall),
        ("F1", hierarchical_f1),
    ):
        assert found[name].value == pytest.approx(metric(y[200:], given, tree))
    levels = f1_by_level(y[200:], given, tree).micro
    assert found["F1 of level 1"].value == pytest.approx(levels[1])
