"""PPDSparseClassifier with sample_weight and class_weight; tests/reference judges the optimum."""

import itertools
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.metrics import propensities

PROBLEMS = list(itertools.product(("squared_hinge", "hinge"), (True, "fixed")))


def problem(seed=0, n_rows=90, n_features=15, n_labels=19):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.4)
    scores = X @ rng.normal(size=(n_features, n_labels))
    return X, scores > np.quantile(scores, 0.85)


def one_label_each(seed=0, n_classes=4):
    X, _ = problem(seed)
    scores = X @ np.random.default_rng(seed + 1).normal(size=(X.shape[1], n_classes))
    return X, scores.argmax(axis=1)


def solver(**options):
    return PPDSparseClassifier(**({"tol": 1e-7, "max_iter": 20_000, "random_state": 0} | options))


def assert_close(a, b, atol=2e-3):
    np.testing.assert_allclose(a.coef_.toarray(), b.coef_.toarray(), atol=atol)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=atol)


def assert_same(a, b):
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
    np.testing.assert_array_equal(a.intercept_, b.intercept_)


# --- samples ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_a_weight_of_two_is_a_row_that_comes_twice(loss, fit_intercept):
    X, Y = problem()
    times = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = solver(loss=loss, fit_intercept=fit_intercept).fit(X, Y, sample_weight=times)
    repeated = solver(loss=loss, fit_intercept=fit_intercept).fit(
        np.repeat(X, times, 0), np.repeat(Y, times, 0)
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert_close(weighted, repeated)


@pytest.mark.parametrize("class_weight", [None, "balanced", "propensity"])
@pytest.mark.parametrize("make", [problem, one_label_each])
def test_a_weight_of_zero_leaves_a_row_out_to_the_last_bit(make, class_weight):
    X, y = make()
    keep = np.random.default_rng(1).random(len(X)) < 0.7
    weights = np.where(keep, 2.5, 0.0)
    model = solver(class_weight=class_weight, tol=1e-2)
    left_out = clone(model).fit(X[keep], y[keep], sample_weight=weights[keep])
    assert_same(model.fit(X, y, sample_weight=weights), left_out)
    assert_same(model.fit(sp.csr_matrix(X, dtype=np.float64), y, sample_weight=weights), left_out)


def test_a_label_whose_rows_all_weigh_nothing_is_not_trained():
    X, Y = problem()
    model = solver().fit(X, Y, sample_weight=np.where(Y[:, 3], 0.0, 1.0))
    assert model.coef_.toarray()[3].any() == 0
    assert model.intercept_[3] == -1
    assert len(model.classes_) == Y.shape[1]


@pytest.mark.parametrize("weights", [1, 1.0, np.ones(90), [1] * 90])
def test_weights_of_one_change_nothing_at_all(weights):
    X, Y = problem()
    plain = solver(tol=1e-2).fit(X, Y)
    assert_same(solver(tol=1e-2).fit(X, Y, sample_weight=weights), plain)
    assert_same(solver(tol=1e-2, class_weight=np.ones(19)).fit(X, Y), plain)
    assert_same(solver(tol=1e-2, class_weight={3: 1.0}).fit(X, Y), plain)


def test_one_weight_for_all_samples_is_another_C():
    X, Y = problem()
    assert_close(solver().fit(X, Y, sample_weight=3.0), solver(C=3.0).fit(X, Y), atol=2e-3)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_precision_and_takes_both_index_types(dtype, index):
    X, Y = problem()
    csr = sp.csr_matrix(X.astype(dtype))
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = solver(tol=1e-3, class_weight="balanced").fit(csr, Y, sample_weight=weights)
    assert model.coef_.dtype == model.intercept_.dtype == dtype
    dense = solver(tol=1e-3, class_weight="balanced")
    assert_same(model, dense.fit(X.astype(dtype), Y, sample_weight=weights))


@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 16, 17])
def test_weights_reach_labels_of_a_block_that_is_not_full(n_labels):
    X, Y = problem(n_labels=17)
    Y = Y[:, :n_labels]
    rows = np.random.default_rng(0).random(len(X)) + 0.5
    labels = np.linspace(0.5, 2.0, n_labels)
    together = solver(class_weight=labels).fit(sp.csr_matrix(X), sp.csr_matrix(Y), rows)
    for k in range(n_labels):
        weights = rows * np.where(Y[:, k], labels[k], 1)
        alone = solver().fit(X, sp.csr_matrix(Y[:, [k]]), sample_weight=weights)
        found = together.coef_.toarray()[k]
        np.testing.assert_allclose(found, alone.coef_.toarray()[0], atol=2e-3)
        assert together.intercept_[k] == pytest.approx(alone.intercept_[0], abs=2e-3)


REFUSED_SAMPLE_WEIGHTS = [
    (np.ones(89), r"must have one weight for each of 90 samples, got an array of shape \(89,\)"),
    (np.ones((90, 1)), r"must have one weight for each of 90 samples, got .* \(90, 1\)"),
    (np.full(90, -1.0), "must be finite and not negative, got -1"),
    (np.full(90, np.nan), "must be finite and not negative, got nan"),
    (np.full(90, np.inf), "must be finite and not negative, got inf"),
    (np.zeros(90), "must have a weight above zero, got zeros only"),
    (["a"] * 90, "must be numbers"),
]


@pytest.mark.parametrize(("weights", "sentence"), REFUSED_SAMPLE_WEIGHTS)
def test_refuses_sample_weights_by_a_sentence(weights, sentence):
    X, Y = problem()
    with pytest.raises(ValueError, match=rf"^PPDSparseClassifier: sample_weight {sentence}"):
        PPDSparseClassifier().fit(X, Y, sample_weight=weights)


# --- labels ----------------------------------------------------------------------------------


def test_class_weights_of_two_classes_are_sample_weights():
    X, y = one_label_each(n_classes=2)
    given = {0: 0.5, 1: 4.0}
    expected = solver().fit(X, y, sample_weight=np.where(y == 1, 4.0, 0.5))
    for class_weight in (given, MappingProxyType(given), [0.5, 4.0], (0.5, 4), np.array([0.5, 4])):
        assert_same(solver(class_weight=class_weight).fit(X, y), expected)


def test_class_weights_multiply_sample_weights():
    X, y = one_label_each(n_classes=2)
    rows = np.random.default_rng(0).random(len(X))
    both = solver(class_weight={1: 4.0}).fit(X, y, sample_weight=rows)
    assert_same(both, solver().fit(X, y, sample_weight=rows * np.where(y == 1, 4.0, 1.0)))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_balanced_weights_are_those_of_scikit_learn(n_classes):
    X, y = one_label_each(n_classes=n_classes)
    theirs = compute_class_weight("balanced", classes=np.arange(n_classes), y=y)
    balanced = solver(class_weight="balanced").fit(X, y)
    assert_same(balanced, solver(class_weight=dict(enumerate(theirs))).fit(X, y))
    assert (balanced.coef_ != solver().fit(X, y).coef_).nnz > 0


def test_propensity_weights_are_those_of_the_metric():
    X, Y = problem()
    expected = solver(class_weight=2 / propensities(Y) - 1).fit(X, Y)
    assert_same(solver(class_weight="propensity").fit(X, Y), expected)


def test_a_mapping_and_an_array_say_the_same():
    X, y = one_label_each()
    names = np.array(["d", "a", "c", "b"])[y]
    mapped = solver(class_weight={"a": 2.0, "c": np.float32(0.5), np.str_("d"): 3})
    listed = solver(class_weight=[2.0, 1.0, 0.5, 3.0])
    assert_same(mapped.fit(X, names), listed.fit(X, names))


@pytest.mark.parametrize("label_lists", [False, True])
def test_a_label_of_weight_zero_is_not_trained(label_lists):
    X, Y = problem()
    y = [[f"{k:02}" for k in np.flatnonzero(row)] for row in Y] if label_lists else Y
    zeroed = {"05": 0.0} if label_lists else {5: 0}
    model = solver(class_weight=zeroed, tol=1e-2).fit(X, y)
    assert model.coef_.toarray()[5].any() == 0
    assert model.intercept_[5] == -1
    assert (model.decision_function(X)[:, 5] == -1).all()
    without = np.where(np.arange(19) == 5, False, Y)
    assert_same(model, solver(class_weight={5: 0}, tol=1e-2).fit(X, without))


def test_a_class_of_weight_zero_among_two_leaves_the_other():
    X, y = one_label_each(n_classes=2)
    model = solver(class_weight={0: 0.0}).fit(X, y)
    assert (model.predict(X[y == 1]) == 1).all()
    with pytest.raises(ValueError, match="must leave a sample of a weight above zero, got none"):
        solver(class_weight={0: 0.0}).fit(X, y, sample_weight=(y == 0).astype(float))


REFUSED_CLASS_WEIGHTS = [
    ("heavy", r" must be None, 'balanced', 'propensity', a mapping .*, got 'heavy'"),
    (3, " must be None, .*, got 3"),
    ([1.0] * 3, r" must have one weight for each of 4 labels, got an array of shape \(3,\)"),
    (np.ones((4, 2)), r" must have one weight for each of 4 labels, got .* \(4, 2\)"),
    ([1, 1, 1, -1], " must be finite and not negative, got -1"),
    ({1: np.nan}, r"\[1\] must be finite and not negative, got nan"),
    ({1: [2.0]}, r"\[1\] must be one number, got \[2.0\]"),
    ({1: "x"}, r"\[1\] must be numbers, got 'x'"),
    ({7: 1.0}, " must name labels of y, got 7"),
    ({"1": 1.0}, " must name labels of y, got '1'"),
    ([0, 0, 0, 0], " must have a weight above zero, got zeros only"),
]


@pytest.mark.parametrize(("class_weight", "sentence"), REFUSED_CLASS_WEIGHTS)
def test_refuses_class_weights_by_a_sentence(class_weight, sentence):
    X, y = one_label_each()
    with pytest.raises(ValueError, match=rf"^PPDSparseClassifier\.class_weight{sentence}"):
        PPDSparseClassifier(class_weight=class_weight).fit(X, y)


# --- numbers that the precision of the data cannot hold ------------------------------------------

EXTREMES = [
    # dtype, C, sample weight, class weight, what is refused
    (np.float32, 1e-30, 1e-10, None, r"\.C times the weights must be at least 1.18e-38"),
    (np.float32, 1e30, 1e10, None, r"\.C times the weights must be at most 3.4e\+38"),
    (np.float32, 1e30, None, 1e10, r"\.C times the weights must be at most 3.4e\+38"),
    (np.float32, 1e-30, 1e-6, 1e-6, r"\.C times the weights must be at least 1.18e-38"),
    (np.float32, 1e20, 1e-50, None, ": sample_weight times class_weight must be at least"),
    (np.float32, 1e-20, 1e50, None, ": sample_weight times class_weight must be at most"),
    (np.float32, 1e-30, 1e30, 1e30, ": sample_weight times class_weight must be at most"),
    (np.float64, 1e-300, 1e-10, None, r"\.C times the weights must be at least 2.23e-308"),
]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("dtype", "C", "row", "label", "sentence"), EXTREMES)
def test_refuses_weights_beyond_the_precision(dtype, C, row, label, sentence, n_classes):
    X, y = one_label_each(n_classes=n_classes)
    rows = None if row is None else np.where(np.arange(len(X)) % 2, row, 1.0)
    model = PPDSparseClassifier(C, class_weight=None if label is None else {1: label})
    with pytest.raises(ParameterError, match=rf"^PPDSparseClassifier{sentence}.*{dtype.__name__}"):
        model.fit(X.astype(dtype), y, sample_weight=rows)


def test_takes_weights_of_very_different_size():
    X, y = one_label_each()
    rows = np.where(np.arange(len(X)) % 2, 1e-12, 1.0)
    model = solver(tol=1e-4).fit(X.astype(np.float32), y, sample_weight=rows)
    heavy = solver(tol=1e-4).fit(X[::2].astype(np.float32), y[::2])
    assert model.objective_ == pytest.approx(heavy.objective_, rel=2e-4)


# --- copies and files --------------------------------------------------------------------------

SAVED = [
    ("balanced", "balanced"),
    (np.array([1.0, 2.0, 0.5, 0.0]), [1.0, 2.0, 0.5, 0.0]),
    ((1, 2, 0.5, 1), (1, 2, 0.5, 1)),
    ({0: 2.0, 3: 0.5}, {0: 2.0, 3: 0.5}),
    ({np.int64(0): np.float32(2)}, {0: 2.0}),
    (MappingProxyType({1: 2.0}), {1: 2.0}),
]


@pytest.mark.parametrize(("class_weight", "loaded"), SAVED, ids=lambda value: type(value).__name__)
def test_a_saved_model_knows_its_class_weights(tmp_path, class_weight, loaded):
    X, y = one_label_each()
    model = solver(class_weight=class_weight, tol=1e-2).fit(X, y)
    model.save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    assert again.class_weight == loaded
    assert type(again.class_weight) is type(loaded)
    assert_same(again, model)
    assert_same(again.fit(X, y), model)
