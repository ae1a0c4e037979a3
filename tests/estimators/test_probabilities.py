"""calibrate, predict_proba and predict_proba_top_k of classifiers with many labels."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

import sublearn
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import load_arff, load_quickstart
from sublearn.metrics import (
    brier_score,
    expected_calibration_error,
    ndcg_scorer,
    precision_at_k,
    precision_scorer,
    recall_scorer,
)


def data(seed=0, n_rows=600, n_features=40, n_labels=15):
    """Sparse rows, a noisy indicator matrix, and one label per row."""
    rng = np.random.default_rng(seed)
    X = normalize(sp.random(n_rows, n_features, 0.2, "csr", random_state=rng))
    scores = X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n_rows, n_labels)) / 4
    return X, scores > np.quantile(scores, 0.9), scores.argmax(axis=1)


def fitted(X, y, **options):
    return PPDSparseClassifier(random_state=0, **options).fit(X, y)


FORMS = {
    "binary": lambda Y, y: np.where(y > 7, "yes", "no"),
    "multiclass": lambda Y, y: np.array([f"c{k:02}" for k in range(15)])[y],
    "dense": lambda Y, y: Y.astype(int),
    "sparse": lambda Y, y: sp.csr_matrix(Y),
    "lists": lambda Y, y: [[f"c{k:02}" for k in np.flatnonzero(row)] for row in Y],
}


def halves(form):
    X, Y, y = data()
    targets = FORMS[form](Y, y)
    return X[:300], targets[:300], X[300:], targets[300:]


@pytest.fixture(params=FORMS, scope="module")
def form(request):
    return request.param


@pytest.fixture(params=["sigmoid", "isotonic"], scope="module")
def method(request):
    return request.param


def test_probabilities_are_there_after_calibration_only():
    X, y, X_new, y_new = halves("dense")
    model = fitted(X, y)
    for name in ("predict_proba", "predict_proba_top_k"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as stopped:
            getattr(model, name)
        assert "after calibrate(X, y)" in str(stopped.value.__cause__)
    assert model.calibrate(X_new, y_new) is model
    assert hasattr(model, "predict_proba")
    assert not hasattr(clone(model), "predict_proba")
    model.fit(X_new, y_new)
    assert not hasattr(model, "predict_proba"), "maps belong to the weights they were learnt for"


def test_needs_a_fit_first():
    X, y, *_ = halves("dense")
    with pytest.raises(NotFittedError):
        PPDSparseClassifier().calibrate(X, y)


def test_each_form_of_labels_gives_its_shape(form, method):
    X, y, X_new, y_new = halves(form)
    model = fitted(X, y).calibrate(X_new, y_new, method)
    found = model.predict_proba(X_new)
    assert found.shape == (300, len(model.classes_))
    assert ((found >= 0) & (found <= 1)).all()
    if form in ("binary", "multiclass"):
        np.testing.assert_allclose(found.sum(axis=1), 1)
    labels, best = model.predict_proba_top_k(X_new, 2)
    ranked, _ = model.predict_top_k(X_new, 2)
    np.testing.assert_array_equal(labels, ranked)
    columns = np.searchsorted(model.classes_, labels)
    np.testing.assert_allclose(best, np.take_along_axis(found, columns, axis=1), atol=1e-6)


def test_prediction_stays_as_it_is(form):
    X, y, X_new, y_new = halves(form)
    model = fitted(X, y)
    before = model.predict(X_new)
    after = model.calibrate(X_new, y_new).predict(X_new)
    if sp.issparse(before):
        before, after = before.toarray(), after.toarray()
    np.testing.assert_array_equal(np.asarray(before, dtype=object), np.asarray(after, dtype=object))


def test_forms_of_several_labels_agree():
    found = []
    for form in ("dense", "sparse", "lists"):
        X, y, X_new, y_new = halves(form)
        found.append(fitted(X, y).calibrate(X_new, y_new).predict_proba(X_new))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_float32_gives_float32():
    X, y, X_new, y_new = halves("dense")
    model = fitted(X.astype(np.float32), y).calibrate(X_new.astype(np.float32), y_new)
    assert model.predict_proba(X_new.astype(np.float32)).dtype == np.float32


def test_saved_with_the_model(form, method, tmp_path):
    X, y, X_new, y_new = halves(form)
    model = fitted(X, y)
    model.save(tmp_path / "plain")
    assert not hasattr(sublearn.load(tmp_path / "plain"), "predict_proba")
    model.calibrate(X_new, y_new, method).save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X_new), model.predict_proba(X_new))
    again.save(tmp_path / "again")
    third = sublearn.load(tmp_path / "again")
    np.testing.assert_array_equal(third.predict_proba(X_new), model.predict_proba(X_new))


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_the_maps(copier):
    X, y, X_new, y_new = halves("dense")
    model = fitted(X, y).calibrate(X_new, y_new)
    np.testing.assert_array_equal(copier(model).predict_proba(X), model.predict_proba(X))


def test_labels_unknown_to_the_model_are_passed_over():
    X, y, X_new, y_new = halves("lists")
    model = fitted(X, y).calibrate(X_new, y_new)
    more = [[*row, "never seen"] for row in y_new]
    other = fitted(X, y).calibrate(X_new, more)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_takes_the_maps_of_a_model_fitted_to_fewer_rows():
    X, y, X_new, _y_new = halves("dense")
    first = fitted(X[:200], y[:200]).calibrate(X[200:], y[200:])
    model = fitted(X, y).calibrate_like(first)
    scores = model.decision_function(X_new)
    labels = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    expected = first.calibration_.probability(labels, scores)
    np.testing.assert_array_equal(model.predict_proba(X_new), expected)


def test_refuses_the_maps_of_another_problem():
    X, y, X_new, y_new = halves("dense")
    model = fitted(X, y)
    with pytest.raises(ValueError, match="other must be calibrated"):
        model.calibrate_like(fitted(X, y))
    other = fitted(X, y[:, :5]).calibrate(X_new, y_new[:, :5])
    with pytest.raises(ValueError, match="other must have the same classes_"):
        model.calibrate_like(other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "platt"}, r"calibrate.method must be 'sigmoid' or 'isotonic', got 'platt'"),
        ({"min_positives": 0}, "calibrate.min_positives must be a positive integer or None"),
        ({"min_positives": 1.5}, "calibrate.min_positives must be a positive integer or None"),
        ({"y": np.zeros((300, 15))}, "calibrate.y must carry labels that the model knows"),
        ({"y": np.ones((300, 3))}, "calibrate.y must have 15 columns as in fit, got 3"),
        ({"y": np.arange(300) % 3}, "calibrate.y must have the form it had in fit"),
        ({"y": [["a"]] * 300}, "calibrate.y must have the form it had in fit"),
    ],
)
def test_refuses_with_a_sentence(change, words):
    X, y, X_new, y_new = halves("dense")
    arguments = {"X": X_new, "y": y_new} | change
    with pytest.raises(ValueError, match=words):
        fitted(X, y).calibrate(**arguments)


def test_refuses_held_out_labels_of_another_type():
    X, y, X_new, _y_new = halves("multiclass")
    with pytest.raises(ValueError, match=r"calibrate\.y"):
        fitted(X, y).calibrate(X_new, np.arange(300) % 3)


def test_multiclass_probabilities_beat_the_frequencies(method):
    X, y, X_new, y_new = halves("multiclass")
    model = fitted(X, y).calibrate(X_new[:150], y_new[:150], method)
    known = np.isin(y_new[150:], y)
    X_test, y_test = X_new[150:][known], y_new[150:][known]
    found = model.predict_proba(X_test)
    frequency = np.array([(y == name).mean() for name in model.classes_])
    loss = log_loss(y_test, found, labels=model.classes_)
    constant = log_loss(y_test, np.tile(frequency, (len(y_test), 1)), labels=model.classes_)
    assert loss < 0.8 * constant


@pytest.mark.parametrize("name", ["bibtex", "delicious"])
def test_real_data_come_out_calibrated(shared_data, name, method):
    folder = shared_data / name
    train, test = (
        load_arff(folder / f"{name}-{part}.arff.xz", labels=folder / f"{name}.xml")
        for part in ("train", "test")
    )
    X, X_test = normalize(train.X), normalize(test.X)
    n_held_out = X.shape[0] // 5
    model = PPDSparseClassifier(random_state=0, n_jobs=2).fit(X[n_held_out:], train.Y[n_held_out:])
    naive = expit(model.decision_function(X_test))
    model.calibrate(X[:n_held_out], train.Y[:n_held_out], method)
    found = model.predict_proba(X_test)
    frequency = np.tile(np.asarray(train.Y.mean(axis=0)), (X_test.shape[0], 1))
    truth = test.Y
    error = expected_calibration_error(truth, None, found)
    assert error < 0.002
    assert error < 0.02 * expected_calibration_error(truth, None, naive)
    assert brier_score(truth, None, found) < 0.9 * brier_score(truth, None, frequency)
    assert brier_score(truth, None, frequency) < brier_score(truth, None, naive)


# --- searches over parameters ----------------------------------------------------------------


def test_a_grid_search_over_l1_and_C_takes_precision_at_k():
    X, Y, _ = data()
    grid = {"l1": [0.03, 0.3], "C": [0.1, 1.0]}
    search = GridSearchCV(
        PPDSparseClassifier(random_state=0), grid, scoring=precision_scorer(2), cv=KFold(3)
    )
    search.fit(X, Y)
    best = clone(search.best_estimator_).fit(X[:400], Y[:400])
    labels, _ = best.predict_top_k(X[400:], 2)
    expected = precision_at_k(Y[400:], labels, 2)
    assert precision_scorer(2)(best, X[400:], Y[400:]) == pytest.approx(expected)
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_a_grid_search_over_a_text_pipeline_takes_label_lists():
    records = load_quickstart(600)
    pipeline = make_pipeline(TfidfVectorizer(), PPDSparseClassifier(random_state=0))
    search = GridSearchCV(
        pipeline,
        {"ppdsparseclassifier__l1": [0.1, 1.0], "tfidfvectorizer__sublinear_tf": [True]},
        scoring={"P@1": precision_scorer(1), "nDCG@3": ndcg_scorer(3), "R@3": recall_scorer(3)},
        refit="P@1",
        cv=KFold(2),
        n_jobs=2,
    )
    search.fit(records.train_texts, records.train_labels)
    assert search.best_score_ > 0
    assert search.best_params_["ppdsparseclassifier__l1"] in (0.1, 1.0)


def test_scikit_learns_own_scoring_works_for_indicators_and_classes():
    X, Y, y = data()
    grid = {"l1": [0.03, 0.3], "C": [0.1, 1.0]}
    model = PPDSparseClassifier(random_state=0)
    for target, scoring in ((Y.astype(int), "f1_micro"), (y, "accuracy"), (y, "f1_macro")):
        search = GridSearchCV(model, grid, scoring=scoring, cv=KFold(2)).fit(X, target)
        assert search.best_score_ > 0


@pytest.mark.parametrize("k", [0, -1, 1.5, "1", None])
def test_a_scorer_refuses_a_cut_that_is_not_positive(k):
    with pytest.raises(ValueError, match="k must be a positive integer"):
        precision_scorer(k)


def test_scorers_take_labels_that_are_booleans():
    X, y = np.eye(4), np.array([True, False, True, True])
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    found = precision_scorer(1)(model, X, y)
    assert found == np.mean(model.predict(X) == y) > 0
