"""Metrics of rankings: against their definitions, against scikit-learn, and at the edges."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from sublearn.metrics import (
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

# --- slow twins: the definitions, sample by sample ---------------------------------------------


def precision_by_definition(truth, ranked, k):
    return sum(sum(j in y for j in r[:k]) / k for y, r in zip(truth, ranked, strict=True)) / len(
        truth
    )


def recall_by_definition(truth, ranked, k):
    total = 0.0
    for y, r in zip(truth, ranked, strict=True):
        total += sum(j in y for j in r[:k]) / len(y) if y else 0.0
    return total / len(truth)


def ndcg_by_definition(truth, ranked, k):
    total = 0.0
    for y, r in zip(truth, ranked, strict=True):
        gain = sum(1 / math.log2(place + 2) for place, j in enumerate(r[:k]) if j in y)
        best = sum(1 / math.log2(place + 2) for place in range(min(k, len(y))))
        total += gain / best if y else 0.0
    return total / len(truth)


def psp_by_definition(truth, ranked, p, k):
    found = best = 0.0
    for y, r in zip(truth, ranked, strict=True):
        found += sum(1 / p[j] for j in r[:k] if j in y)
        best += sum(sorted((1 / p[j] for j in y), reverse=True)[:k])
    return found / best if best else 0.0


def psndcg_by_definition(truth, ranked, p, k):
    found = best = 0.0
    for y, r in zip(truth, ranked, strict=True):
        if not y:
            continue
        n = sum(1 / math.log2(place + 2) for place in range(min(k, len(y))))
        heaviest = sorted((1 / p[j] for j in y), reverse=True)[:k]
        found += sum(1 / p[j] / math.log2(t + 2) for t, j in enumerate(r[:k]) if j in y) / n
        best += sum(w / math.log2(t + 2) for t, w in enumerate(heaviest)) / n
    return found / best if best else 0.0


def rank_by_sorting(scores, k):
    """Stored or finite scores of each row, highest first, of equals the lower column first."""
    return [
        sorted((j for j in range(len(row)) if row[j] > -np.inf), key=lambda j: (-row[j], j))[:k]
        for row in scores
    ]


TWINS = [
    (precision_at_k, precision_by_definition),
    (recall_at_k, recall_by_definition),
    (ndcg_at_k, ndcg_by_definition),
]
WEIGHTED_TWINS = [(psp_at_k, psp_by_definition), (psndcg_at_k, psndcg_by_definition)]


@st.composite
def problems(draw):
    """Indicator of the truth, scores with many ties (minus infinity: not predicted), k."""
    n, n_labels = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    truth = draw(st.lists(st.booleans(), min_size=n * n_labels, max_size=n * n_labels))
    score = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1e300])
    scores = draw(st.lists(score, min_size=n * n_labels, max_size=n * n_labels))
    k = draw(st.integers(1, n_labels))
    return np.reshape(truth, (n, n_labels)), np.reshape(scores, (n, n_labels)), k


def as_sets(indicator):
    return [set(np.flatnonzero(row).tolist()) for row in indicator]


def as_padded(ranked, k):
    return np.array([(r + [-1] * k)[:k] for r in ranked])


def as_sparse(scores):
    rows, columns = np.nonzero(scores > -np.inf)
    return sp.csr_matrix((scores[rows, columns], (rows, columns)), shape=scores.shape)


@settings(deadline=None)
@given(problems())
def test_agrees_with_the_definition_in_every_form(problem):
    indicator, scores, k = problem
    truth, ranked = as_sets(indicator), rank_by_sorting(scores, k)
    p = np.linspace(0.1, 1.0, indicator.shape[1])
    for y_true in (indicator, sp.csc_matrix(indicator)):
        for y_pred in (scores, as_sparse(scores), as_padded(ranked, k)):
            for metric, twin in TWINS:
                assert metric(y_true, y_pred, k) == pytest.approx(twin(truth, ranked, k))
            for metric, twin in WEIGHTED_TWINS:
                assert metric(y_true, y_pred, p, k) == pytest.approx(twin(truth, ranked, p, k))


@settings(deadline=None)
@given(problems())
def test_names_agree_with_column_numbers(problem):
    indicator, scores, k = problem
    classes = np.array(["f", "a", "e", "b", "d", "c"][: indicator.shape[1]])
    lists = [{str(classes[j]) for j in y} for y in as_sets(indicator)]
    ranked = as_padded(rank_by_sorting(scores, k), k)
    named = np.where(ranked < 0, "", classes[ranked])
    p = np.linspace(0.1, 1.0, indicator.shape[1])
    for metric, _ in TWINS:
        expected = pytest.approx(metric(indicator, scores, k))
        assert metric(lists, scores, k, classes=classes) == expected
        assert metric(lists, as_sparse(scores), k, classes=classes) == expected
        assert metric(indicator, named, k, classes=classes) == expected
        if any(lists):
            assert metric(lists, named, k) == expected
            assert metric(lists, named.astype(object), k) == expected
    for metric, _ in WEIGHTED_TWINS:
        expected = pytest.approx(metric(indicator, scores, p, k))
        assert metric(lists, named, p, k, classes=classes) == expected


@pytest.mark.parametrize("k", [1, 3, 10])
def test_ndcg_agrees_with_scikit_learn_where_each_sample_has_labels(k):
    rng = np.random.default_rng(0)
    truth = rng.random((30, 10)) < 0.4
    truth[:, 0] = True
    scores = rng.random(truth.shape)
    assert ndcg_at_k(truth, scores, k) == pytest.approx(ndcg_score(truth, scores, k=k))


@pytest.mark.parametrize("metric", [recall_at_k, ndcg_at_k])
def test_a_perfect_ranking_scores_1_and_the_worst_0(metric):
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 0]])
    assert metric(truth, truth.astype(float), k=2) == 1
    assert metric(truth, 1.0 - truth, k=2) == 0


@pytest.mark.parametrize("metric", [psp_at_k, psndcg_at_k])
def test_a_perfect_weighted_ranking_scores_1_and_the_worst_0(metric):
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 0]])
    p = np.array([0.9, 0.2, 0.5, 0.4])
    assert metric(truth, truth / p, p, k=[1, 2, 3]) == pytest.approx([1, 1, 1])
    assert metric(truth, 1.0 - truth, p, k=2) == 0


def test_rare_labels_weigh_more_in_psp():
    truth, p = np.array([[1, 1, 0]]), np.array([0.9, 0.1, 0.5])
    frequent, rare = np.array([[0]]), np.array([[1]])
    assert psp_at_k(truth, frequent, p, k=1) == pytest.approx((1 / 0.9) / (1 / 0.1))
    assert psp_at_k(truth, rare, p, k=1) == 1


def test_equal_propensities_make_psp_the_share_of_what_is_reachable():
    rng = np.random.default_rng(1)
    truth, scores = rng.random((20, 8)) < 0.3, rng.random((20, 8))
    reachable = np.minimum(truth.sum(axis=1), 3).sum() / 60
    expected = precision_at_k(truth, scores, 3) / reachable
    assert psp_at_k(truth, scores, np.full(8, 0.4), 3) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [precision_at_k, recall_at_k, ndcg_at_k])
def test_a_sample_without_labels_counts_as_0(metric):
    with_empty, ranked = np.array([[1, 0], [0, 0]]), np.array([[0], [0]])
    assert metric(with_empty, ranked, k=1) == 0.5


@pytest.mark.parametrize("metric", [psp_at_k, psndcg_at_k])
def test_a_sample_without_labels_does_not_change_a_weighted_metric(metric):
    p = np.array([0.5, 0.2])
    with_empty, ranked = np.array([[1, 1], [0, 0]]), np.array([[0], [0]])
    assert metric(with_empty, ranked, p, k=1) == metric(with_empty[:1], ranked[:1], p, k=1)
    assert metric(np.zeros((2, 2)), ranked, p, k=1) == 0


def test_an_integer_k_gives_a_float_and_a_sequence_an_array():
    truth, scores = np.eye(3), np.eye(3)[::-1]
    assert type(precision_at_k(truth, scores, np.int64(2))) is float
    values = precision_at_k(truth, scores, [3, 1])
    assert values.tolist() == [precision_at_k(truth, scores, 3), precision_at_k(truth, scores, 1)]


def test_of_equal_scores_the_lower_column_comes_first():
    scores = np.array([[1.0, 2.0, 2.0, 2.0]])
    for y_pred in (scores, sp.csr_matrix(scores)):
        assert precision_at_k(np.array([[0, 1, 0, 0]]), y_pred, k=1) == 1
        assert precision_at_k(np.array([[0, 0, 1, 0]]), y_pred, k=1) == 0


def test_a_stored_zero_is_predicted_and_an_absent_score_is_not():
    y_pred = sp.csr_matrix(([-1.0, 0.0], ([0, 0], [1, 2])), shape=(1, 3))
    assert recall_at_k(np.array([[0, 1, 1]]), y_pred, k=2) == 1
    assert recall_at_k(np.array([[1, 0, 0]]), y_pred, k=3) == 0


def test_one_label_per_sample():
    y_true = np.array(["cat", "dog", "cow"])
    y_pred = np.array([["cat", "dog"], ["cow", "dog"], ["dog", "cat"]])
    assert precision_at_k(y_true, y_pred, k=1) == pytest.approx(1 / 3)
    assert recall_at_k(y_true, y_pred, k=2) == pytest.approx(2 / 3)


def test_minus_1_is_a_label_where_it_is_a_true_one():
    assert precision_at_k(np.array([-1, 1]), np.array([[-1], [-1]]), k=1) == 0.5


def test_a_predicted_name_that_is_never_true_is_a_miss():
    assert precision_at_k([["a"], ["b"]], np.array([["z"], ["b"]]), k=1) == 0.5


def test_a_true_name_that_cannot_be_predicted_counts_in_recall():
    scores = np.array([[0.9, 0.1]])
    assert recall_at_k([["a", "new"]], scores, k=2, classes=["a", "b"]) == 0.5


def test_integer_names_are_columns_of_scores():
    assert precision_at_k([[2], [0, 1]], np.eye(3)[[2, 2]], k=1) == 0.5


def test_arguments_stay_as_they_were():
    y_true = sp.csr_matrix(np.eye(3))
    scores, sparse = np.random.default_rng(0).random((3, 3)), sp.random(3, 3, 0.5, random_state=0)
    before = scores.copy(), sparse.toarray()
    precision_at_k(y_true, scores, 2)
    precision_at_k(y_true, sparse, 2)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(sparse.toarray(), before[1])


def test_many_dense_scores_are_ranked_like_few():
    rng = np.random.default_rng(2)
    truth = sp.random(5000, 1000, 0.01, format="csr", random_state=2) > 0
    scores = rng.random(truth.shape, dtype=np.float32)  # more than one block of them
    halves = [ndcg_at_k(truth[part], scores[part], 3) for part in (slice(2500), slice(2500, None))]
    assert ndcg_at_k(truth, scores, 3) == pytest.approx(np.mean(halves))


# --- refusals --------------------------------------------------------------------------------

TRUTH = np.eye(3)


@pytest.mark.parametrize("k", [0, -1, 1.0, True, "2", [], [1, 0], None])
def test_refuses_a_k_that_is_no_positive_integer(k):
    with pytest.raises(
        ValueError, match=r"^k must be a positive integer or a sequence of them, got"
    ):
        precision_at_k(TRUTH, TRUTH, k)


@pytest.mark.parametrize("y_pred", [np.array([[0], [1], [2]]), sp.csr_matrix((3, 1))])
def test_refuses_fewer_columns_than_k(y_pred):
    with pytest.raises(ValueError, match=r"^y_pred must have at least k=2 columns, got 1$"):
        precision_at_k(TRUTH, y_pred, 2)


@pytest.mark.parametrize("y_pred", [np.zeros(3), np.zeros((0, 3))])
def test_refuses_predictions_of_another_dimension_or_none(y_pred):
    with pytest.raises(ValueError, match=r"^y_pred must be 2-D with at least one row, got shape"):
        precision_at_k(TRUTH, y_pred, 1)


def test_refuses_another_number_of_samples():
    with pytest.raises(ValueError, match=r"^y_true must have one row per sample \(2\), got 3$"):
        precision_at_k(TRUTH, TRUTH[:2], 1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_refuses_another_number_of_labels(make):
    with pytest.raises(ValueError, match=r"^y_pred must score each of 3 labels, got 4 columns$"):
        precision_at_k(TRUTH, make(np.ones((3, 4))), 1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_refuses_nan_scores(make):
    with pytest.raises(ValueError, match=r"^y_pred must not hold NaN"):
        precision_at_k(TRUTH, make(np.full((3, 3), np.nan)), 1)


def test_refuses_a_dense_boolean_prediction():
    with pytest.raises(ValueError, match=r"^y_pred must hold labels or float scores, got bool$"):
        precision_at_k(TRUTH, TRUTH.astype(bool), 1)


@pytest.mark.parametrize("label", [3, -2])
def test_refuses_column_numbers_outside_the_matrix(label):
    with pytest.raises(ValueError, match=r"^y_pred must hold labels from 0 to 2, or -1 for none"):
        precision_at_k(TRUTH, np.array([[0], [1], [label]]), 1)


def test_refuses_names_for_an_indicator_without_classes():
    with pytest.raises(ValueError, match=r"^y_pred must hold column numbers of y_true, got <U1$"):
        precision_at_k(TRUTH, np.array([["a"], ["b"], ["c"]]), 1)


def test_refuses_a_label_ranked_twice():
    with pytest.raises(ValueError, match=r"^y_pred must not rank a label twice in a row"):
        precision_at_k(TRUTH, np.array([[0, 0], [1, 0], [2, -1]]), 2)


def test_refuses_labels_of_another_type():
    with pytest.raises(ValueError, match=r"^y_pred must hold labels of the type of the others"):
        precision_at_k(["a", "b"], np.array([[1], [2]]), 1)


def test_refuses_scores_of_names_without_classes():
    with pytest.raises(ValueError, match=r"^classes must name the columns of y_pred, got None$"):
        precision_at_k(["a", "b"], np.eye(2), 1)


def test_refuses_another_number_of_classes():
    with pytest.raises(ValueError, match=r"^classes must name each column of y_true \(3\), got 2$"):
        precision_at_k(TRUTH, TRUTH, 1, classes=["a", "b"])


@pytest.mark.parametrize("metric", [psp_at_k, psndcg_at_k])
def test_refuses_propensities_of_another_length(metric):
    with pytest.raises(ValueError, match=r"^propensities must have one value for each of 3 labels"):
        metric(TRUTH, TRUTH, [0.5, 0.5], 1)


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, np.nan])
def test_refuses_propensities_outside_0_and_1(value):
    with pytest.raises(ValueError, match=r"^propensities must be in \(0, 1\], got"):
        psp_at_k(TRUTH, TRUTH, [0.5, 0.5, value], 1)


def test_refuses_propensities_of_names_without_classes():
    with pytest.raises(ValueError, match=r"^classes must name the labels that propensities stand"):
        psp_at_k(["a", "b"], np.array([["a"], ["b"]]), [0.5, 0.5], 1)


# --- propensities ----------------------------------------------------------------------------


@pytest.mark.parametrize(("A", "B"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_propensities_follow_the_formula(A, B):
    y = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    C = (math.log(4) - 1) * (B + 1) ** A
    expected = [1 / (1 + C * math.exp(-A * math.log(n + B))) for n in (3, 1, 0)]
    for labels in (y, sp.csr_matrix(y)):
        assert propensities(labels, A=A, B=B) == pytest.approx(expected)


def test_propensities_of_names_stand_in_the_order_of_the_classes():
    y = [["a", "b"], ["b"], ["b"], []]
    a, b = propensities(y)
    assert a < b
    none = propensities(np.array([[0, 1]] * 4))[0]
    assert propensities(y, classes=["z", "b", "a"]) == pytest.approx([none, b, a])


def test_refuses_propensities_from_fewer_than_3_samples():
    with pytest.raises(ValueError, match=r"^y must have at least 3 samples, got 2$"):
        propensities(np.eye(2))


@pytest.mark.parametrize(
    "constants", [{"A": 0}, {"B": -1.0}, {"A": np.inf}, {"B": np.nan}, {"A": "1"}]
)
def test_refuses_constants_that_are_not_positive(constants):
    with pytest.raises(ValueError, match=r"^[AB] must be a positive number, got"):
        propensities(np.eye(3), **constants)


def test_floats_are_labels_where_the_true_labels_are_floats():
    ranked = np.array([[2.0, 7.0], [7.0, 2.0], [9.0, 2.0]])
    np.testing.assert_array_equal(precision_at_k([2.0, 2.0, 7.0], ranked, [1, 2]), [1 / 3, 1 / 3])


def test_floats_are_scores_of_the_classes_that_are_given():
    scores = np.array([[0.1, 0.9], [0.8, 0.2]])
    assert precision_at_k([7.0, 7.0], scores, 1, classes=[2.0, 7.0]) == 0.5


def test_refuses_scores_with_fewer_columns_than_labels():
    with pytest.raises(ValueError, match=r"^y_pred must score each of 6 labels, got 2 columns$"):
        precision_at_k([0, 5], np.eye(2), 1)
