"""Labels that carry the same rows are one problem."""

import numpy as np
import scipy.sparse as sp

from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.ppd_problem import find_twins
from sublearn.validation import encode_labels

Y = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]])


def test_twins_point_at_the_first_label_with_their_rows():
    np.testing.assert_array_equal(find_twins(encode_labels(Y, 4)), [0, 1, 0, 3, 4, 3])


def test_labels_without_rows_are_twins_too():
    empty = np.hstack([Y, np.zeros((4, 2), dtype=int)])
    np.testing.assert_array_equal(find_twins(encode_labels(empty, 4)), [0, 1, 0, 3, 4, 3, 6, 6])


def test_another_weight_is_another_problem():
    weights = np.array([1.0, 1, 2, 1, 1, 1])
    np.testing.assert_array_equal(find_twins(encode_labels(Y, 4), weights), [0, 1, 2, 3, 4, 3])


def test_twins_get_the_same_model_and_the_work_is_counted_once():
    rng = np.random.default_rng(0)
    X = sp.random(200, 30, 0.2, random_state=rng, format="csr")
    few = (rng.random((200, 40)) < 0.05).astype(int)
    model = PPDSparseClassifier(random_state=0).fit(X, few)
    twice = PPDSparseClassifier(random_state=0).fit(X, np.hstack([few, few[:, ::-1]]))
    coef = twice.coef_.toarray()
    np.testing.assert_array_equal(coef[:40], model.coef_.toarray())
    np.testing.assert_array_equal(coef[40:], coef[:40][::-1])
    np.testing.assert_array_equal(twice.intercept_[40:], twice.intercept_[:40][::-1])
    assert twice.trace_["work"][-1] == model.trace_["work"][-1]
    np.testing.assert_allclose(twice.objective_, 2 * model.objective_)
