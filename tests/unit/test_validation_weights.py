"""Weights of samples and labels: what is accepted, what they become, what is refused."""

import numpy as np
import pytest

from sublearn.fitting.label_weights import as_label_weights
from sublearn.metrics import propensities
from sublearn.validation import ClassWeight, check_sample_weight, encode_labels

LABELS = encode_labels([["a"], ["a", "b"], ["c"], ["a"]], 4)


def test_weights_of_one_are_no_weights():
    assert check_sample_weight([1.0, 1.0], 2) is None
    assert check_sample_weight(None, 2) is None
    assert as_label_weights([1, 1, 1], LABELS) is None
    assert as_label_weights(None, LABELS) is None


def test_a_number_stands_for_all_samples():
    np.testing.assert_array_equal(check_sample_weight(2, 3), [2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ([1.0, -1.0], "must be finite and not negative, got -1"),
        ([1.0, np.nan], "must be finite and not negative, got nan"),
        ([1.0, 1e200], r"must be at most .* in size in float64, got 1e\+200"),
        ([1.0], "one weight for each of 2 samples, got an array of shape \\(1,\\)"),
        ([[1.0, 2.0]], "got an array of shape \\(1, 2\\)"),
        (["x", "y"], "must be numbers"),
        ([0.0, 0.0], "must have a weight above zero"),
    ],
)
def test_refuses_improper_sample_weights(weight, reason):
    with pytest.raises(ValueError, match=f"^Model: sample_weight .*{reason}"):
        check_sample_weight(weight, 2, estimator_name="Model")


def test_balanced_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_class_weight

    y = np.array([0, 0, 0, 1, 2, 2])
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y)
    np.testing.assert_allclose(as_label_weights("balanced", encode_labels(y, 6)), expected)


def test_propensity_weights_are_larger_for_rare_labels():
    weights = as_label_weights("propensity", LABELS)
    expected = 2 / propensities(LABELS.to_csr()) - 1
    np.testing.assert_allclose(weights, expected)
    assert weights[0] < weights[1]
    assert weights.min() >= 1


def test_a_mapping_leaves_other_labels_at_one():
    np.testing.assert_array_equal(as_label_weights({"b": 3}, LABELS), [1.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ({"d": 1.0}, "must name labels of y, got 'd'"),
        ({"a": "x"}, r"\['a'\] must be numbers, got 'x'"),
        ([1.0, 2.0], "one weight for each of 3 labels"),
        ([1.0, 2.0, -3.0], "must be finite and not negative, got -3"),
    ],
)
def test_refuses_improper_class_weights(weight, reason):
    with pytest.raises(ValueError, match=f"^Model.class_weight.*{reason}"):
        as_label_weights(weight, LABELS, estimator_name="Model")


def test_the_rule_knows_its_names():
    rule = ClassWeight("balanced", "propensity")
    assert rule.accepts("balanced")
    assert rule.accepts({})
    assert rule.accepts(None)
    assert not rule.accepts("uniform")
    assert not rule.accepts(3)
    assert "'balanced', 'propensity'" in str(rule)
