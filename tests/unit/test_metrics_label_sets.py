"""Metrics of label sets: against scikit-learn and at the edges."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn.metrics import f1_macro, f1_micro, hamming_loss


@st.composite
def indicator_pairs(draw):
    n, n_labels = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    bits = st.lists(st.integers(0, 1), min_size=n * n_labels, max_size=n * n_labels)
    return [np.reshape(draw(bits), (n, n_labels)) for _ in range(2)]


@settings(deadline=None)
@given(indicator_pairs())
def test_indicators_agree_with_scikit_learn(pair):
    expected = [
        sklearn.metrics.hamming_loss(*pair),
        sklearn.metrics.f1_score(*pair, average="micro", zero_division=0),
        sklearn.metrics.f1_score(*pair, average="macro", zero_division=0),
    ]
    for make in (np.asarray, sp.csr_matrix, sp.csc_array):
        y_true, y_pred = map(make, pair)
        found = [metric(y_true, y_pred) for metric in (hamming_loss, f1_micro, f1_macro)]
        assert found == pytest.approx(expected)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", "d"])] * 2), min_size=1))
def test_one_label_per_sample_agrees_with_scikit_learn(pairs):
    y_true, y_pred = map(list, zip(*pairs, strict=True))
    assert hamming_loss(y_true, y_pred) == pytest.approx(
        sklearn.metrics.hamming_loss(y_true, y_pred)
    )
    for metric, average in ((f1_micro, "micro"), (f1_macro, "macro")):
        expected = sklearn.metrics.f1_score(y_true, y_pred, average=average, zero_division=0)
        assert metric(y_true, y_pred) == pytest.approx(expected)


@settings(deadline=None)
@given(indicator_pairs())
def test_lists_agree_with_the_indicator_of_the_labels_that_occur(pair):
    names = np.array(["c", "a", "e", "b", "d"])
    lists = [[{str(names[j]) for j in np.flatnonzero(row)} for row in y] for y in pair]
    used = (pair[0] | pair[1]).any(axis=0)
    if not used.any():
        assert hamming_loss(*lists) == f1_micro(*lists) == f1_macro(*lists) == 0
        return
    y_true, y_pred = (sp.csr_matrix(y[:, used]) for y in pair)
    for metric in (hamming_loss, f1_micro, f1_macro):
        assert metric(*lists) == pytest.approx(metric(y_true, y_pred))


def test_hamming_loss_may_be_told_of_labels_that_do_not_occur():
    assert hamming_loss([["a", "b"], []], [["a"], []], n_labels=10) == 1 / 20


@pytest.mark.parametrize("metric", [f1_micro, f1_macro])
def test_f1_of_equal_sets_is_1_and_of_disjoint_sets_0(metric):
    assert metric([["a", "b"], ["c"]], [["b", "a"], ["c"]]) == 1
    assert metric([["a"], ["b"]], [["b"], ["a"]]) == 0


def test_refuses_fewer_labels_than_occur():
    with pytest.raises(
        ValueError, match=r"^n_labels must be at least the number seen \(2\), got 1$"
    ):
        hamming_loss([["a"], ["b"]], [["a"], []], n_labels=1)


def test_refuses_an_indicator_beside_names():
    with pytest.raises(ValueError, match=r"^y_pred must have the form of y_true \(dense indicator"):
        f1_micro(np.eye(2), [["a"], ["b"]])


def test_refuses_another_number_of_columns():
    with pytest.raises(
        ValueError, match=r"^y_pred must have as many columns as y_true \(2\), got 3$"
    ):
        f1_macro(np.eye(2), np.eye(3)[:2])


def test_refuses_another_number_of_samples():
    with pytest.raises(ValueError, match=r"^y_pred must have one row per sample \(2\), got 3$"):
        hamming_loss([1, 2], [1, 2, 1])


def test_refuses_no_samples():
    with pytest.raises(ValueError, match=r"^y_true must have at least one sample, got 0$"):
        hamming_loss([], [])


@pytest.mark.parametrize("labels", [np.array(3.0), 3, None])
def test_refuses_what_has_no_rows(labels):
    with pytest.raises(ValueError, match=r"^y_true must have rows, got "):
        hamming_loss(labels, [1, 2])


def test_refuses_labels_of_another_type():
    with pytest.raises(ValueError, match=r"^y_pred must hold labels of the type of the others"):
        f1_micro(["a", "b"], [1, 2])
