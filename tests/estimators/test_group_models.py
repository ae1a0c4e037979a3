"""Groups of features as users give them, what is kept of them, and every refusal."""

import numpy as np
import pandas as pd
import pytest

import sublearn
from sublearn.errors import ParameterError
from sublearn.linear import GroupLinearRegression, GroupLogisticRegression

X = np.random.default_rng(0).normal(size=(60, 6))
Y = X[:, 2] - X[:, 3]


def fitted(**params):
    return GroupLinearRegression(**{"l1": 0.1} | params).fit(X, Y)


@pytest.mark.parametrize(
    "groups",
    [
        [0, 0, 1, 1, 2, 2],
        np.array([5, 5, 7, 7, 9, 9]),
        ["a", "a", "b", "b", "c", "c"],
        pd.Series(["a", "a", "b", "b", "c", "c"]),
        [[0, 1], [2, 3], [4, 5]],
        [np.array([1, 0]), (2, 3), [5, 4]],
    ],
    ids=["ids", "any integers", "names", "a column", "lists", "arrays"],
)
def test_groups_are_ids_names_or_lists(groups):
    model = fitted(feature_groups=groups)
    assert (model.group_norms_ > 0).tolist() == [False, True, False]
    np.testing.assert_allclose(model.coef_, fitted(feature_groups=[0, 0, 1, 1, 2, 2]).coef_)


def test_groups_come_back_with_a_saved_model(tmp_path):
    model = fitted(feature_groups=[np.array([0, 1]), [2, 3], (4, 5)], group_weights=[1, 2.0, 1])
    model.save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    assert again.feature_groups == [[0, 1], [2, 3], [4, 5]]
    np.testing.assert_array_equal(again.group_norms_, model.group_norms_)


def test_norms_of_several_classes_have_a_row_each():
    model = GroupLogisticRegression(0.01, feature_groups=[0, 0, 1, 1, 2, 2])
    model.fit(X, np.digitize(Y, [-0.5, 0.5]))
    assert model.group_norms_.shape == (3, 3)


def test_weights_of_groups_decide_which_enters():
    left_out = fitted(feature_groups=[0, 0, 1, 1, 2, 2], group_weights=[1, 100, 1])
    assert left_out.group_norms_[1] == 0


def test_a_path_starts_without_groups_and_gains_them():
    path = GroupLinearRegression(feature_groups=[0, 0, 1, 1, 2, 2]).fit_path(X, Y, 5)
    sizes = [np.count_nonzero(model.group_norms_) for model in path]
    assert sizes[0] == 0
    assert sizes[-1] >= 1
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"feature_groups": [0, 1]}, "feature_groups must have one group for each of 6 features"),
        ({"feature_groups": "aabbcc"}, "feature_groups must be an id of a group"),
        ({"feature_groups": []}, "feature_groups must be an id of a group"),
        ({"feature_groups": [0.5] * 6}, "must be integers or strings"),
        ({"feature_groups": [[0, 1], [1, 2, 3, 4, 5]]}, "must not overlap, got feature 1 twice"),
        ({"feature_groups": [[0, 1, 1], [2, 3, 4, 5]]}, "must not overlap, got feature 1 twice"),
        ({"feature_groups": [[0, 1], [2, 3]]}, "must hold every feature, got none with feature 4"),
        ({"feature_groups": [[0, 1], [2, 6]]}, "must name features 0 to 5, got 6 in group 1"),
        ({"feature_groups": [[0, 1], [-1]]}, "must name features 0 to 5, got -1 in group 1"),
        ({"feature_groups": [[0, 1], []]}, "none empty, got .* as group 1"),
        ({"feature_groups": [[0, 1], 2]}, "must be lists of positions of features"),
        ({"feature_groups": [[0, 1], [2, [3, 4], 5]]}, "must be lists of positions of features"),
        ({"feature_groups": [0, 1, 2, 3, 4, None]}, "must be integers or strings"),
        ({"feature_groups": [0, 1, 2, 3, 4, 2**70]}, "must be integers or strings"),
        ({"feature_groups": [[0, 1], ["a"]]}, "must be lists of positions of features"),
        ({"group_weights": [1, 2]}, "group_weights must have one weight for each of 6 groups"),
        ({"group_weights": [1, 1, 1, 0, 1, 1]}, "group_weights must be positive, got 0 for group"),
        ({"group_weights": [1, 1, 1, -1, 1, 1]}, "group_weights must"),
        ({"group_weights": 2.0}, "group_weights must be an array of one number per group"),
        ({"within_share": 1.0}, r"within_share must be a number in \[0, 1\), got 1.0"),
        ({"within_share": -0.1}, "within_share must be a number in"),
        ({"l1": 0.0}, "l1 must be a positive number"),
        ({"loss": "quantile"}, "loss must be 'squared', 'huber', 'poisson' or a Huber"),
    ],
)  # fmt: skip
def test_refuses(params, message):
    with pytest.raises((ParameterError, ValueError), match=f"GroupLinearRegression\\..*{message}"):
        fitted(**params)
