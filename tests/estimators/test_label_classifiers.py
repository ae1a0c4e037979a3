"""What both classifiers promise: forms of input and labels, refusals, threads, copies and files."""

import functools
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from label_problems import arrays, assert_same_model, extreme, multiclass, multilabel
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sublearn.errors import ParameterError
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier

PD = functools.partial(
    PDSparseClassifier, l1=0.01, max_iter=1000, early_stopping=False, random_state=0
)
PPD = functools.partial(PPDSparseClassifier, random_state=0)


@pytest.fixture(params=[PD, PPD], ids=["PD-Sparse", "PPD-Sparse"])
def solver(request):
    return request.param


def test_seeds_repeat_and_other_seeds_differ_within_the_tolerance(solver):
    X, Y = multilabel()
    models = [solver(random_state=s, tol=1e-3).fit(X, Y) for s in (0, 0, 1)]
    assert_same_model(models[0], models[1])
    assert (models[0].coef_ != models[2].coef_).nnz > 0
    assert models[2].objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    np.testing.assert_allclose(arrays(models[2])[0], arrays(models[0])[0], atol=0.05)


def test_a_generator_advances_from_fit_to_fit(solver):
    X, Y = multilabel()
    model = solver(random_state=np.random.default_rng(0))
    first = model.fit(X, Y).coef_.toarray()
    assert (model.fit(X, Y).coef_.toarray() != first).any()


def test_long_indices_give_the_same_model(solver):
    X, Y = multilabel()
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = solver().fit(X, Y)
    other = solver().fit(long, Y)
    assert_same_model(model, other)
    np.testing.assert_array_equal(model.decision_function(long), model.decision_function(X))
    np.testing.assert_array_equal(model.predict(long), model.predict(X))


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.coo_array, sp.csr_array, lambda X: X.toarray()])
def test_takes_features_in_any_format(solver, make):
    X, Y = multilabel()
    model = solver().fit(X, Y)
    other = solver().fit(make(X), Y)
    assert_same_model(model, other)
    np.testing.assert_array_equal(other.predict(make(X)), model.predict(X))


def test_reads_read_only_memory(solver, tmp_path):
    X, Y = multilabel()
    joblib.dump((X, Y), tmp_path / "data")
    mapped, labels = joblib.load(tmp_path / "data", mmap_mode="r")
    assert not mapped.data.flags.writeable
    model = solver().fit(mapped, labels)
    assert_same_model(model, solver().fit(X, Y))
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))


def test_one_label_per_sample_comes_back_as_it_was(solver):
    X, codes = multiclass()
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    numbers = solver().fit(X, codes)
    strings = solver().fit(X, names[codes])
    objects = solver().fit(X, names[codes].astype(object))
    assert numbers.predict(X).dtype == codes.dtype
    np.testing.assert_array_equal(strings.predict(X), names[numbers.predict(X)])
    np.testing.assert_array_equal(objects.predict(X), names[numbers.predict(X)])
    np.testing.assert_array_equal(strings.decision_function(X), numbers.decision_function(X))
    assert numbers.score(X, codes) > 0.9
    assert strings.score(X, names[codes]) == numbers.score(X, codes)


def test_several_labels_per_sample_come_back_as_they_were(solver):
    X, Y = multilabel()
    lists = [np.flatnonzero(row).tolist() for row in Y]
    dense = solver().fit(X, Y.astype(int))
    sparse = solver().fit(X, sp.csr_matrix(Y))
    named = solver().fit(X, [[f"{k:03}" for k in row] for row in lists])
    scores = dense.decision_function(X)
    for model in (sparse, named):
        np.testing.assert_array_equal(model.decision_function(X), scores)
    expected = scores > 0
    assert expected.any()
    np.testing.assert_array_equal(dense.predict(X), expected)
    assert sp.issparse(sparse.predict(X))
    np.testing.assert_array_equal(sparse.predict(X).toarray(), expected)
    assert named.predict(X) == [[f"{k:03}" for k in np.flatnonzero(row)] for row in expected]
    share = (expected == Y).all(axis=1).mean()
    assert dense.score(X, Y) == sparse.score(X, sp.csr_matrix(Y)) == pytest.approx(share)
    assert named.score(X, [[f"{k:03}" for k in row] for row in lists]) == pytest.approx(share)


def test_one_label_per_sample_is_the_indicator_problem(solver):
    X, y = multiclass()
    flat = solver().fit(X, y)
    indicator = solver().fit(X, y[:, None] == np.arange(5))
    assert_same_model(flat, indicator)


def test_two_classes_need_one_problem(solver):
    X, y = multiclass(n_classes=2)
    model = solver().fit(X, np.where(y, "yes", "no"))
    assert model.coef_.shape == (1, X.shape[1])
    scores = model.decision_function(X)
    assert scores.shape == (X.shape[0],)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    labels, both = model.predict_top_k(X, 2)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    np.testing.assert_array_equal(both, np.column_stack([np.abs(scores), -np.abs(scores)]))
    assert model.predict_top_k(X, 1)[0].shape == (X.shape[0], 1)


def test_scores_are_inner_products_with_the_weights(solver):
    X, Y = multilabel()
    model = solver().fit(X, Y)
    W, b = arrays(model)
    np.testing.assert_allclose(model.decision_function(X), X.toarray() @ W.T + b, atol=1e-12)


def test_gives_all_labels_if_there_are_fewer_than_wanted(solver):
    X, y = multiclass()
    labels, scores = solver().fit(X, y).calibrate(X, y).predict_top_k(X, 10**6)
    assert labels.shape == scores.shape == (len(y), 5)
    assert solver().fit(X, y > 1).calibrate(X, y > 1).predict_proba_top_k(X)[0].shape == (len(y), 2)


PD_FORMER = {"n_partitions": 4, "n_candidates": None, "n_iter_no_change": 7}


@pytest.mark.parametrize(
    ("kind", "stored", "now"),
    [
        (PPDSparseClassifier, {"bias": "learned", "C": 2.0}, {"fit_intercept": True, "C": 2.0}),
        (PPDSparseClassifier, {"bias": "fixed"}, {"fit_intercept": "fixed"}),
        (PPDSparseClassifier, {"fit_intercept": "fixed"}, {"fit_intercept": "fixed"}),
        (
            PDSparseClassifier,
            {"bias": "none", "early_stopping": True, **PD_FORMER},
            {"fit_intercept": False, "early_stopping": 7},
        ),
        (
            PDSparseClassifier,
            {"bias": "learned", "early_stopping": False, **PD_FORMER},
            {"fit_intercept": True, "early_stopping": False},
        ),
        (PDSparseClassifier, {"early_stopping": True}, {"early_stopping": True}),
    ],
)
def test_parameters_of_files_of_earlier_versions_have_their_names_of_today(kind, stored, now):
    assert kind._current_params(stored) == now
    kind(**now)._check_params()


POSITIVE, COUNT = "must be a positive number", "must be a positive integer"
AT_LEAST_ZERO = "must be a non-negative number"
REFUSALS = [
    *[("C", value, POSITIVE) for value in (0, -1.0, np.nan, np.inf, "1", None, True)],
    *[("l1", value, AT_LEAST_ZERO) for value in (-0.1, np.nan, np.inf, "a", None)],
    *[("tol", value, POSITIVE) for value in (0, -1e-3, np.nan, None)],
    *[("max_iter", value, COUNT) for value in (0, -5, 1.5, None)],
    *[("prune", value, AT_LEAST_ZERO) for value in (-1, np.inf)],
    *[("class_weight", value, "must be None, 'balanced', 'propensity'") for value in ("even", 3)],
    *[("n_jobs", value, "must be an integer other than 0") for value in (0, 1.5, "2")],
    *[("random_state", value, "must be a non-negative integer") for value in (-1, 0.5, "x")],
    *[("verbose", value, "must be a non-negative integer") for value in (-1, "yes")],
    ("callback", 3, "must be a callable or None"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSALS)
def test_refuses_a_parameter_by_name(solver, name, value, sentence):
    X, y = multiclass()
    words = rf"^{solver.func.__name__}\.{name} {sentence}.*, got "
    with pytest.raises(ParameterError, match=words):
        solver(**{name: value}).fit(X, y)


def test_refuses_labels_of_another_length_or_of_one_class(solver):
    X, y = multiclass()
    with pytest.raises(ValueError, match=r"y must have one row per sample \(150\), got 149"):
        solver().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y needs at least 2 classes, got 1 class"):
        solver().fit(X, np.zeros_like(y))


def test_touches_a_small_part_of_an_extreme_problem(solver):
    X, y = extreme()
    model = solver(l1=0.1).fit(X, y)
    n_labels = len(model.classes_)
    assert model.score(X, y) > 0.9
    assert model.trace_["nnz_dual"][-1] < 0.02 * X.shape[0] * n_labels
    assert model.trace_["nnz_primal"][-1] < 0.02 * X.shape[1] * n_labels
    assert model.trace_["work"][-1] < 0.5 * X.nnz * n_labels


def test_fits_on_any_thread(solver):
    X, Y = multilabel()
    expected = solver(n_jobs=2).fit(X, Y)
    events, models = [], []

    def job():
        for callback in (None, events.append):
            model = solver(n_jobs=2, callback=callback)
            models.append(model.fit(X, Y))

    thread = threading.Thread(target=job)
    thread.start()
    thread.join()
    assert len(models) == 2
    assert events
    for model in models:
        assert_same_model(model, expected)


def test_pruning_drops_the_small_weights_and_no_others(solver):
    X, Y = multilabel()
    full = solver().fit(X, Y)
    pruned = solver(prune=0.1).fit(X, Y)
    W = full.coef_.toarray()
    assert 0 < pruned.coef_.nnz < full.coef_.nnz
    np.testing.assert_array_equal(pruned.coef_.toarray(), np.where(np.abs(W) > 0.1, W, 0))


def test_pruned_weights_have_their_own_figures(solver):
    X, Y = multilabel()
    full = solver().fit(X, Y)
    pruned = solver(prune=0.1).fit(X, Y)
    bound = full.objective_ * (1 - full.certificate_)
    assert pruned.objective_ > full.objective_
    assert pruned.objective_ * (1 - pruned.certificate_) == pytest.approx(bound, rel=1e-6)


def test_works_in_a_pipeline_under_a_grid_search(solver):
    X, y = multiclass()
    pipeline = make_pipeline(Normalizer(), solver())
    name = solver.func.__name__.lower()
    grid = {f"{name}__C": [0.001, 10.0], f"{name}__l1": [0.01, 0.1]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X * 7, y)
    assert search.best_params_[f"{name}__C"] == 10.0
    assert search.best_score_ > 0.5
    direct = clone(search.best_estimator_).fit(X * 7, y)
    np.testing.assert_array_equal(direct.predict(X), search.predict(X))


def label_lists():
    X, Y = multilabel()
    return X, [[f"label {k}" for k in np.flatnonzero(row)] for row in Y]


def test_a_grid_search_takes_label_lists_with_a_splitter():
    X, lists = label_lists()  # PD-Sparse ranks them and does not say where to cut
    grid = GridSearchCV(PPD(), {"l1": [0.1, 10.0]}, cv=KFold(3))
    assert grid.fit(X, lists).best_params_ == {"l1": 0.1}


def test_score_refuses_label_lists_of_another_length(solver):
    X, lists = label_lists()
    model = solver().fit(X, lists)
    with pytest.raises(ValueError, match=r"^y must have one row per sample \(150\), got 3$"):
        model.score(X, lists[:3])


@pytest.mark.parametrize("other", [["label 1"] * 150, np.eye(150), sp.eye_array(150)])
def test_score_refuses_labels_in_another_form_than_lists(solver, other):
    X, lists = label_lists()
    model = solver().fit(X, lists)
    with pytest.raises(ValueError, match=r"^y must be a list of label lists, as in fit, got "):
        model.score(X, other)
