"""Metrics of labels in a taxonomy, counted by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as judges

from sublearn.hierarchy import Taxonomy
from sublearn.metrics import (
    f1_by_level,
    f1_samples,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    jaccard_samples,
)

TAXONOMY = Taxonomy.from_paths(["a.b.c", "a.b.d", "a.e", "f"])


def test_ancestors_count():
    truth, found = ["a.b.c", "f"], ["a.b", "a.e"]  # {a, a.b, a.b.c}, {f}; {a, a.b}, {a, a.e}
    assert hierarchical_precision(truth, found, TAXONOMY) == 2 / 4
    assert hierarchical_recall(truth, found, TAXONOMY) == 2 / 4
    assert hierarchical_f1(truth, found, TAXONOMY) == 0.5
    assert hierarchical_f1(truth, truth, TAXONOMY) == 1.0


def test_levels_are_judged_apart():
    scores = f1_by_level(["a.b.c", "a.e"], ["a.b.d", "a.e"], TAXONOMY)
    np.testing.assert_allclose(scores.micro, [1, 1, 0])
    np.testing.assert_allclose(scores.macro, [1, 1, 0])
    scores = f1_by_level(["a.b", "f"], ["a.b", "a.b"], TAXONOMY)
    np.testing.assert_allclose(scores.micro, [1 / 2, 2 / 3, 0])
    np.testing.assert_allclose(scores.macro, [(2 / 3 + 0) / 2, 2 / 3, 0])


def test_refuses_labels_outside_and_other_lengths():
    with pytest.raises(ValueError, match="y_pred must hold labels of the taxonomy, got 'x'"):
        hierarchical_f1(["a"], ["x"], TAXONOMY)
    with pytest.raises(ValueError, match=r"y_pred must have one row per sample \(2\), got 1"):
        hierarchical_f1(["a", "f"], ["f"], TAXONOMY)
    with pytest.raises(ValueError, match="taxonomy must be a Taxonomy, got None"):
        hierarchical_f1(["a"], ["f"], None)


@pytest.mark.parametrize("seed", [0, 1])
def test_sets_are_judged_as_scikit_learn_does(seed):
    rng = np.random.default_rng(seed)
    truth, found = rng.random((40, 6)) < 0.4, rng.random((40, 6)) < 0.4
    truth[0] = found[0] = False
    weights = rng.random(40)
    with np.errstate(all="ignore"):
        expected = judges.f1_score(
            truth, found, average="samples", sample_weight=weights, zero_division=0
        )
        jaccard = judges.jaccard_score(truth, found, average="samples", zero_division=0)
    assert f1_samples(truth, found, sample_weight=weights) == pytest.approx(expected)
    assert jaccard_samples(truth, found) == pytest.approx(jaccard)
