"""The best labels of a row against plain NumPy scoring, in every storage of the weights."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_twins import top_k_by_sorting

from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.linear_labels import LabelLists, LinearLabels
from sublearn.io import load_xmc

# Few distinct values make equal scores the rule.
VALUES = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0])


def plain_scores(weights, bias, X):
    """Bias first, then feature after feature in the order of the row, in the type of the bias."""
    out = np.tile(bias, (X.shape[0], 1))
    for i in range(X.shape[0]):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            out[i] += bias.dtype.type(X.data[p]) * weights[X.indices[p]]
    return out


def assert_finds_the_best(labels, X, k):
    expected = plain_scores(labels.weights.toarray(), labels.bias, X)
    np.testing.assert_array_equal(labels.scores(X, 1), expected)
    ids, scores = labels.top_k(X, k, 1)
    for i in range(X.shape[0]):
        best_ids, best_scores = top_k_by_sorting(expected[i], k)
        np.testing.assert_array_equal(ids[i], best_ids)
        np.testing.assert_array_equal(scores[i], best_scores)


@st.composite
def problems(draw):
    # With more than ten labels per weight read, the search leaves most labels alone.
    n_features, n_labels = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 7, 60, 300]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n_weights = draw(st.integers(0, 12))
    weights = np.zeros((n_features, n_labels), dtype)
    for _ in range(n_weights):
        place = draw(st.integers(0, n_features - 1)), draw(st.integers(0, n_labels - 1))
        weights[place] = draw(VALUES)
    bias = np.full(n_labels, draw(VALUES), dtype)
    for _ in range(draw(st.integers(0, 4))):
        bias[draw(st.integers(0, n_labels - 1))] = draw(VALUES)
    rows = st.lists(VALUES, min_size=n_features, max_size=n_features)
    X = np.array(draw(st.lists(rows, min_size=1, max_size=3)), draw(st.sampled_from(["f4", "f8"])))
    return sp.csr_matrix(weights), bias, sp.csr_matrix(X), draw(st.integers(1, n_labels))


@settings(deadline=None, max_examples=300)
@given(problems())
def test_finds_the_best_labels_as_plain_scoring_does(problem):
    weights, bias, X, k = problem
    assert_finds_the_best(LinearLabels(weights, bias), X, k)


@settings(deadline=None)
@given(problems(), st.sampled_from([8, 16, 32]))
def test_compressed_weights_are_scored_as_their_matrix(problem, bits):
    weights, bias, X, k = problem
    assert_finds_the_best(LinearLabels(weights, bias).compress(bits, 0.0), X, k)


def random_model(seed=0, n_features=40, n_labels=300, density=0.05, dtype=np.float32):
    rng = np.random.default_rng(seed)
    weights = sp.random(n_features, n_labels, density, "csr", dtype, rng, rng.standard_normal)
    X = sp.random(50, n_features, 0.2, "csr", dtype, rng, rng.standard_normal)
    return LinearLabels(weights, rng.normal(-1, 0.1, n_labels).astype(dtype)), X


@pytest.mark.parametrize("density", [0.002, 0.05, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_plain_scoring_on_random_weights(density, dtype):
    labels, X = random_model(density=density, dtype=dtype)
    for k in (1, 5, 300):
        assert_finds_the_best(labels, X, k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_rows_of_any_type_are_read(dtype, index_type):
    labels, X = random_model()
    rows = sp.csr_matrix(X, dtype=dtype)
    rows.indptr, rows.indices = rows.indptr.astype(index_type), rows.indices.astype(index_type)
    np.testing.assert_array_equal(labels.top_k(rows, 5, 1)[0], labels.top_k(X, 5, 1)[0])


@pytest.mark.parametrize("bits", [8, 16])
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1000), prune=st.sampled_from([0.0, 0.1, 1.0]))
def test_compression_moves_scores_by_no_more_than_its_bound(bits, seed, prune):
    labels, X = random_model(seed, dtype=np.float64)
    small = labels.compress(bits, prune)
    scales = abs(labels.weights).max(axis=1).toarray().ravel() / (2 ** (bits - 1) - 1)
    bound = abs(X) @ np.maximum(scales / 2, prune)
    moved = np.abs(small.scores(X, 1) - labels.scores(X, 1)).max(axis=1)
    assert (moved <= bound * (1 + 1e-9) + 1e-12).all()
    assert np.abs((small.weights - labels.weights).data).max() > 0


def test_compression_drops_weights_up_to_the_given_size():
    labels, _ = random_model()
    kept = labels.compress(32, 0.5).weights
    expected = labels.weights.copy()
    expected.data[np.abs(expected.data) <= 0.5] = 0
    expected.eliminate_zeros()
    assert (kept != expected).nnz == 0


@pytest.mark.parametrize(("n_labels", "dtype"), [(65_536, np.uint16), (65_537, np.int32)])
def test_label_ids_take_two_bytes_where_they_fit(n_labels, dtype):
    weights = sp.csr_matrix(([2.0], ([0], [n_labels - 1])), shape=(1, n_labels))
    small = LinearLabels(weights, np.zeros(n_labels)).compress(8, 0.0)
    assert small.lists.labels.dtype == dtype
    ids, scores = small.top_k(sp.csr_matrix([[1.0]]), 1, 1)
    assert (ids[0, 0], scores[0, 0]) == (n_labels - 1, 2.0)


def test_several_threads_may_search_at_once():
    labels, X = random_model(density=0.01)
    expected = labels.top_k(X, 7, 1)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda i: labels.top_k(X, 7, 1 + i % 3), range(64)):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


def test_a_pickled_model_scores_the_same():
    labels, X = random_model()
    for model in (labels, labels.compress(8, 0.0)):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.scores(X, 1), model.scores(X, 1))


def test_counts_the_weights_it_reads():
    labels, X = random_model(density=0.002)
    n_read = np.diff(labels.weights.indptr)[X.indices].sum()
    labels.top_k(X, 1, 1)
    assert 0 < n_read <= labels.work <= 2 * n_read + X.shape[0]
    exact = labels.work
    labels.top_k(X, 1, 1, effort=0.5)
    assert labels.work - exact < exact


@st.composite
def long_lists(draw):
    """Lists so long that bounds are worth it; few distinct values, so that many scores tie."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_features, n_labels = draw(st.integers(1, 3)), 2_000
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    levels = draw(st.sampled_from([[-1.0, -0.5, 0.5], [-3.0, -0.1, 0.0, 0.1, 2.0], [-1.0]]))
    levels = levels if draw(st.booleans()) else rng.normal(-0.5, 1, 5_000)
    weights = sp.random(n_features, n_labels, 0.6, "csr", dtype, rng)
    weights.data[:] = rng.choice(levels, weights.nnz) * draw(st.sampled_from([1, 1e-30, 1e30]))
    bias = rng.choice(draw(st.sampled_from([[-1.0], [-1.0, -1.5, 0.25]])), n_labels)
    signs = draw(st.sampled_from([[1.0], [1.0, 0.3, -1.0]]))
    X = sp.csr_matrix(rng.choice([0.0, *signs], (4, n_features)).astype(dtype))
    return weights, bias.astype(dtype), X, draw(st.sampled_from([1, 5, 8, 9, 2_000]))


@settings(deadline=None, max_examples=60)
@given(long_lists(), st.sampled_from([None, 8, 16]))
def test_upper_bounds_change_neither_labels_nor_scores(problem, bits):
    weights, bias, X, k = problem
    labels = LinearLabels(weights, bias)
    labels = labels if bits is None else labels.compress(bits, 0.0)
    assert_finds_the_best(labels, X, k)


def test_upper_bounds_spare_the_weights_below_zero():
    rng = np.random.default_rng(0)
    weights = sp.random(3, 5_000, 0.6, "csr", np.float32, rng, lambda n: rng.normal(-1, 1, n))
    labels = LinearLabels(weights, np.full(5_000, -1, np.float32))
    X = sp.csr_matrix(np.ones((1, 3), np.float32))
    assert_finds_the_best(labels, X, 5)
    n_raising = (weights.data > 0).sum()
    assert n_raising < weights.nnz / 4
    assert 5_000 + n_raising <= labels.work < 5_000 + weights.nnz / 2


def test_upper_bounds_are_exact_on_library_records(shared_data):
    train = load_xmc(shared_data / "yso_en" / "yso_en_train.xmc.txt.xz")
    test = load_xmc(shared_data / "yso_en" / "yso_en_test.xmc.txt.xz")
    Y = train.Y[:6_000]
    Y = Y[:, Y.getnnz(axis=0) > 0]
    labels = PPDSparseClassifier(l1=0.1, random_state=0).fit(train.X[:6_000], Y).model_
    X = test.X[:300]
    assert_finds_the_best(labels, X, 5)
    n_plain = np.diff(labels.lists.offsets)[X.indices].sum() + X.shape[0] * labels.n_labels
    assert labels.work < n_plain


def test_weights_cannot_change_behind_the_bounds():
    labels, _ = random_model()
    with pytest.raises(ValueError, match="read-only"):
        labels.weights.data[0] = 1


def lists_of(offsets, labels, values=None, scales=None):
    values = np.ones(len(labels), np.float32) if values is None else values
    labels = np.array(labels, np.int32)
    return LabelLists(np.array(offsets, np.int32), labels, values, scales)


@pytest.mark.parametrize(
    ("offsets", "labels", "message"),
    [
        ([0, 1, 2], [0, 3], r"weights\.labels must increase from 0 to 2, got 3 after -1"),
        ([0, 1, 3], [0, 1, 1], r"weights\.labels must increase .* got 1 after 1 at feature 1"),
        ([0, 1, 2], [0, -1], r"weights\.labels must increase from 0 to 2, got -1 after -1"),
        ([0, 1, 3], [0, 1], r"weights\.offsets must rise from 0 to 2, got 1 and 3 at feature 1"),
        ([0, 1, 0], [0, 1], r"weights\.offsets must rise from 0 to 2, got 1 and 0 at feature 1"),
    ],
)
def test_refuses_a_damaged_list_when_a_row_needs_it(offsets, labels, message):
    model = LinearLabels(lists_of(offsets, labels), np.zeros(3, np.float32))
    first = sp.csr_matrix(np.array([[1.0, 0.0]], np.float32))
    assert model.top_k(first, 1, 1)[0].tolist() == [[0]]
    both = sp.csr_matrix(np.ones((1, 2), np.float32))
    for search in (lambda: model.top_k(both, 1, 1), lambda: model.above(both, 0.0, 1)):
        with pytest.raises(ValueError, match=message):
            search()
    assert model.top_k(first, 1, 1)[0].tolist() == [[0]]


@pytest.mark.parametrize(
    ("offsets", "labels"), [([0, 1, 2], [0, 3]), ([0, 1, 3], [0, 1]), ([0, 1, 0], [0, 1])]
)
def test_refuses_to_make_a_matrix_of_damaged_lists(offsets, labels):
    model = LinearLabels(lists_of(offsets, labels), np.zeros(3, np.float32))
    with pytest.raises(ValueError, match=r"weights\.(offsets|labels) must"):
        _ = model.weights


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (lists_of([], []), r"weights\.offsets must have at least one entry, got none"),
        (lists_of([0, 1], [0], np.ones(2, "f4")), r"weights\.labels must have the length .* got 1"),
        (lists_of([0, 1], [0], np.ones(1, "f8")), r"weights\.values must be of the type of"),
        (lists_of([0, 1], [0], np.ones(1, "i1")), r"weights\.values must be of the type of"),
        (
            lists_of([0, 1], [0], np.ones(1, "i1"), np.ones(2, "f4")),
            r"weights\.scales must be of the type of the bias, one per feature, got 2",
        ),
    ],
)
def test_refuses_arrays_that_do_not_fit_together(lists, message):
    with pytest.raises(ValueError, match=message):
        LinearLabels(lists, np.zeros(3, np.float32))


@pytest.mark.parametrize("k", [0, 301])
def test_refuses_to_find_more_labels_than_there_are(k):
    labels, X = random_model()
    with pytest.raises(ValueError, match="k must be between 1 and the number of labels"):
        labels.top_k(X, k, 1)
