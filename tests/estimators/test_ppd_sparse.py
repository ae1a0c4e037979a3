"""PPDSparseClassifier as an estimator: scikit-learn's contract, forms of input, threads, files."""

import copy
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.validation import assert_rules_complete

SETTINGS = [
    PPDSparseClassifier(max_iter=1000),
    PPDSparseClassifier(loss="hinge", l1=0.01, max_iter=1000),
    PPDSparseClassifier(bias="fixed", search="sparsified", C=10.0, max_iter=1000),
    PPDSparseClassifier(prune=1e-3, n_jobs=2, max_iter=1000),
]


def expected_failures(estimator):
    """Checks that ask for what these estimators do not promise, with the reason."""
    to_tolerance = "equal problems have equal solutions up to tol, the check compares to 1e-7"
    reasons = {
        "check_sample_weight_equivalence_on_dense_data": to_tolerance,
        "check_sample_weight_equivalence_on_sparse_data": to_tolerance,
    }
    if estimator.bias == "fixed":
        reasons["check_class_weight_classifiers"] = "two features cannot make up for a fixed bias"
    return reasons


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # far from scaled
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_has_a_rule_for_each_parameter():
    assert_rules_complete(PPDSparseClassifier())


# --- problems --------------------------------------------------------------------------------


def multilabel(seed=0, n_rows=150, n_features=40, n_labels=37):
    """Sparse rows of length one and the indicator matrix of labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    X = Normalizer().fit_transform(X)
    scores = X @ rng.normal(size=(n_features, n_labels))
    return X, scores > np.quantile(scores, 0.93)


def multiclass(seed=0, n_classes=5):
    X, _ = multilabel(seed)
    weights = np.random.default_rng(seed + 1).normal(size=(X.shape[1], n_classes))
    return X, np.asarray(X @ weights).argmax(axis=1)


def extreme(n_rows=4000, n_labels=1000, n_features=4000, seed=0):
    """Rows have five of the eight features of their label and three of any."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_labels, n_rows)
    features = rng.integers(0, n_features, (n_labels, 8))
    own = features[y[:, None], rng.integers(0, 8, (n_rows, 5))]
    columns = np.hstack([own, rng.integers(0, n_features, (n_rows, 3))]).ravel()
    rows = np.repeat(np.arange(n_rows), 8)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_features))
    return Normalizer().fit_transform(X), y


def endless(**options):
    """A fit that reaches no limit in the life of a test, and its data."""
    X, Y = multilabel(n_rows=300, n_labels=1000)
    options = {"tol": 1e-300, "max_iter": 10**9, "random_state": 0} | options
    return PPDSparseClassifier(loss="hinge", **options), X, Y


def arrays(model):
    return model.coef_.toarray(), model.intercept_


def assert_same_model(a, b):
    for left, right in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(left, right)


# --- the same model --------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_model_does_not_depend_on_the_threads(dtype, search):
    X, Y = multilabel()
    one = PPDSparseClassifier(search=search, random_state=3).fit(X.astype(dtype), Y)
    for n_jobs in (1, 2, 3, -1):
        model = PPDSparseClassifier(search=search, random_state=3, n_jobs=n_jobs)
        model.fit(X.astype(dtype), Y)
        assert_same_model(model, one)
        np.testing.assert_array_equal(model.decision_function(X), one.decision_function(X))
        assert model.objective_ == one.objective_


def test_seeds_repeat_and_other_seeds_differ_within_the_tolerance():
    X, Y = multilabel()
    models = [PPDSparseClassifier(random_state=s, tol=1e-3).fit(X, Y) for s in (0, 0, 1)]
    assert_same_model(models[0], models[1])
    assert (models[0].coef_ != models[2].coef_).nnz > 0
    assert models[2].objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    np.testing.assert_allclose(arrays(models[2])[0], arrays(models[0])[0], atol=0.05)


def test_a_generator_advances_from_fit_to_fit():
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=np.random.default_rng(0))
    first = model.fit(X, Y).coef_.toarray()
    assert (model.fit(X, Y).coef_.toarray() != first).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_precision_of_the_data(dtype):
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=0).fit(X.astype(dtype), Y)
    assert model.coef_.dtype == model.intercept_.dtype == dtype
    assert model.decision_function(X).dtype == dtype
    assert model.predict_top_k(X, 2)[1].dtype == dtype


def test_long_indices_give_the_same_model():
    X, Y = multilabel()
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    other = PPDSparseClassifier(random_state=0).fit(long, Y)
    assert_same_model(model, other)
    np.testing.assert_array_equal(model.decision_function(long), model.decision_function(X))
    np.testing.assert_array_equal(model.predict(long), model.predict(X))


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.coo_array, sp.csr_array, lambda X: X.toarray()])
def test_takes_features_in_any_format(make):
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    other = PPDSparseClassifier(random_state=0).fit(make(X), Y)
    assert_same_model(model, other)
    np.testing.assert_array_equal(other.predict(make(X)), model.predict(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_takes_data_frames_and_knows_their_columns(frame):
    X, y = multiclass()
    columns = [f"f{j}" for j in range(X.shape[1])]
    data = frame(dict(zip(columns, X.toarray().T, strict=True)))
    model = PPDSparseClassifier(random_state=0).fit(data, y)
    if hasattr(StandardScaler().fit(data), "feature_names_in_"):
        assert model.feature_names_in_.tolist() == columns
    else:  # releases of scikit-learn before 1.8 cannot read the names of polars 2
        assert frame is pl.DataFrame
    plain = PPDSparseClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(data), plain.predict(X))


def test_reads_read_only_memory(tmp_path):
    X, Y = multilabel()
    joblib.dump((X, Y), tmp_path / "data")
    mapped, labels = joblib.load(tmp_path / "data", mmap_mode="r")
    assert not mapped.data.flags.writeable
    model = PPDSparseClassifier(random_state=0).fit(mapped, labels)
    assert_same_model(model, PPDSparseClassifier(random_state=0).fit(X, Y))
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))


def test_leaves_the_data_as_they_were():
    X, Y = multilabel()
    before_X, before_Y = X.copy(), Y.copy()
    PPDSparseClassifier(prune=0.1, random_state=0).fit(X, Y)
    assert (before_X != X).nnz == 0
    np.testing.assert_array_equal(Y, before_Y)


# --- forms of labels -------------------------------------------------------------------------


def test_one_label_per_sample_comes_back_as_it_was():
    X, codes = multiclass()
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    numbers = PPDSparseClassifier(random_state=0).fit(X, codes)
    strings = PPDSparseClassifier(random_state=0).fit(X, names[codes])
    objects = PPDSparseClassifier(random_state=0).fit(X, names[codes].astype(object))
    assert numbers.predict(X).dtype == codes.dtype
    np.testing.assert_array_equal(strings.predict(X), names[numbers.predict(X)])
    np.testing.assert_array_equal(objects.predict(X), names[numbers.predict(X)])
    np.testing.assert_array_equal(strings.decision_function(X), numbers.decision_function(X))
    assert numbers.score(X, codes) > 0.9
    assert strings.score(X, names[codes]) == numbers.score(X, codes)


def test_several_labels_per_sample_come_back_as_they_were():
    X, Y = multilabel()
    lists = [np.flatnonzero(row).tolist() for row in Y]
    dense = PPDSparseClassifier(random_state=0).fit(X, Y.astype(int))
    sparse = PPDSparseClassifier(random_state=0).fit(X, sp.csr_matrix(Y))
    named = PPDSparseClassifier(random_state=0).fit(X, [[f"{k:03}" for k in row] for row in lists])
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


def test_one_label_per_sample_is_the_indicator_problem():
    X, y = multiclass()
    flat = PPDSparseClassifier(random_state=0).fit(X, y)
    indicator = PPDSparseClassifier(random_state=0).fit(X, y[:, None] == np.arange(5))
    assert_same_model(flat, indicator)


def test_two_classes_need_one_problem():
    X, y = multiclass(n_classes=2)
    model = PPDSparseClassifier(random_state=0).fit(X, np.where(y, "yes", "no"))
    assert model.coef_.shape == (1, X.shape[1])
    scores = model.decision_function(X)
    assert scores.shape == (X.shape[0],)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    labels, both = model.predict_top_k(X, 2)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    np.testing.assert_array_equal(both, np.column_stack([np.abs(scores), -np.abs(scores)]))
    assert model.predict_top_k(X, 1)[0].shape == (X.shape[0], 1)


# --- the best labels -------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 36, 37])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_top_labels_are_those_of_sorted_scores(k, n_jobs):
    X, Y = multilabel()
    X = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))]).tocsr()
    Y = np.vstack([Y, np.zeros((3, Y.shape[1]), dtype=bool)])
    Y[:, [4, 20, 21]] = False  # equal scores everywhere
    model = PPDSparseClassifier(bias="fixed", random_state=0, n_jobs=n_jobs).fit(X, Y)
    scores = model.decision_function(X)
    assert (scores[-1] == -1).all()  # ties among all labels
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, best = model.predict_top_k(X, k)
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(best, np.take_along_axis(scores, order, axis=1))


def test_scores_are_inner_products_with_the_weights():
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    W, b = arrays(model)
    np.testing.assert_allclose(model.decision_function(X), X.toarray() @ W.T + b, atol=1e-12)


@pytest.mark.parametrize("k", [0, -1, 6, 1.0, True, "2"])
def test_refuses_a_k_that_is_no_number_of_labels(k):
    X, y = multiclass()
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"k must be an integer between 1 and 5, got"):
        model.predict_top_k(X, k)


def test_predicts_from_many_threads_at_once():
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=0, n_jobs=2).fit(X, Y)
    expected = model.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(model.decision_function, [X] * 16):
            np.testing.assert_array_equal(scores, expected)


# --- refusals --------------------------------------------------------------------------------

POSITIVE, COUNT = "must be a positive number", "must be a positive integer"
AT_LEAST_ZERO = "must be a non-negative number"
REFUSALS = [
    *[("C", value, POSITIVE) for value in (0, -1.0, np.nan, np.inf, "1", None, True)],
    *[("l1", value, AT_LEAST_ZERO) for value in (-0.1, np.nan, np.inf, "a", None)],
    *[("loss", v, "must be 'squared_hinge' or 'hinge'") for v in ("log", None, 1)],
    *[("bias", v, "must be 'learned' or 'fixed'") for v in ("none", True)],
    *[("search", v, "must be 'exact' or 'sparsified'") for v in ("greedy", None)],
    *[("tol", value, POSITIVE) for value in (0, -1e-3, np.nan, None)],
    *[("max_iter", value, COUNT) for value in (0, -5, 1.5, None)],
    *[("prune", value, AT_LEAST_ZERO) for value in (-1, np.inf)],
    *[("n_jobs", value, "must be an integer other than 0") for value in (0, 1.5, "2")],
    *[("random_state", value, "must be a non-negative integer") for value in (-1, 0.5, "x")],
    *[("verbose", value, "must be a non-negative integer") for value in (-1, "yes")],
    ("callback", 3, "must be a callable or None"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSALS)
def test_refuses_a_parameter_by_name(name, value, sentence):
    X, y = multiclass()
    with pytest.raises(ParameterError, match=rf"^PPDSparseClassifier\.{name} {sentence}.*, got "):
        PPDSparseClassifier(**{name: value}).fit(X, y)


def test_takes_limits_that_no_32_bits_hold():
    X, y = multiclass()
    model = PPDSparseClassifier(max_iter=10**12, n_jobs=10**12, random_state=0).fit(X, y)
    assert_same_model(model, PPDSparseClassifier(random_state=0).fit(X, y))
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(("dtype", "C"), [(np.float32, 1e-40), (np.float64, 1e-310)])
def test_refuses_a_loss_weight_that_vanishes_in_the_precision_of_the_data(dtype, C):
    X, y = multiclass()
    with pytest.raises(ParameterError, match=rf"C must be at least .* for {dtype.__name__} data"):
        PPDSparseClassifier(C=C).fit(X.astype(dtype), y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_top_k", "coef_"])
def test_says_that_it_is_not_fitted(method):
    X, _ = multiclass()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(PPDSparseClassifier(), method)(X)


def test_refuses_another_number_of_features():
    X, y = multiclass()
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    for method in (model.predict, model.decision_function, model.predict_top_k):
        with pytest.raises(
            ValueError, match="has 39 features, but PPDSparseClassifier is expecting"
        ):
            method(X[:, :-1])


def test_refuses_labels_of_another_length_or_of_one_class():
    X, y = multiclass()
    with pytest.raises(ValueError, match=r"y must have one row per sample \(150\), got 149"):
        PPDSparseClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y needs at least 2 classes, got 1 class"):
        PPDSparseClassifier().fit(X, np.zeros_like(y))


# --- limits, trace, callback -----------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "sparsified"])
def test_warns_at_the_iteration_limit(search):
    X, Y = multilabel()
    model = PPDSparseClassifier(max_iter=1, tol=1e-9, search=search, random_state=0)
    message = (
        r"^PPDSparseClassifier: the iteration limit was reached before the certificate reached the "
        r"tolerance; reached certificate [0-9.]+, asked for tol=1e-09 \(n_iter=1\)$"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X, Y)
    assert 1e-9 < model.certificate_ < np.inf
    assert model.n_iter_ == 1


def test_trace_grows_to_the_totals():
    X, Y = multilabel(n_labels=300)
    Y[:, 7] = False
    model = PPDSparseClassifier(random_state=0, n_jobs=2).fit(X, Y)
    trace = model.trace_
    names = "seconds labels objective certificate nnz_primal nnz_dual work"
    assert trace.columns == tuple(names.split())
    assert len(trace) == 100
    for name in ("seconds", "labels", "objective", "nnz_primal", "nnz_dual", "work"):
        assert (np.diff(trace[name]) >= 0).all()
    assert trace["labels"][-1] == Y.any(axis=0).sum()
    assert trace["objective"][-1] == pytest.approx(model.objective_)
    assert trace["certificate"][-1] == pytest.approx(model.certificate_)
    assert trace["nnz_primal"][-1] == model.coef_.nnz
    assert (trace["certificate"] >= 0).all()
    assert (trace["certificate"] <= model.tol).all()


def test_touches_a_small_part_of_an_extreme_problem():
    X, y = extreme()
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    n_labels = len(model.classes_)
    assert model.score(X, y) > 0.9
    assert model.trace_["nnz_dual"][-1] < 0.02 * X.shape[0] * n_labels
    assert model.trace_["nnz_primal"][-1] < 0.02 * X.shape[1] * n_labels
    assert model.trace_["work"][-1] < 0.5 * X.nnz * n_labels


def test_callback_gets_events():
    X, Y = multilabel()
    events = []
    model = PPDSparseClassifier(random_state=0, callback=events.append).fit(X, Y)
    last = events[-1]
    assert (last.n_done, last.n_total) == (37, 37)
    assert last.objective == pytest.approx(model.objective_)
    assert last.certificate == pytest.approx(model.certificate_)
    assert last.nnz_primal == model.coef_.nnz
    assert last.work == model.trace_["work"][-1]
    assert last.seconds_left == 0
    for a, b in itertools.pairwise(events):
        assert a.n_done <= b.n_done
        assert a.seconds <= b.seconds


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_stops_the_fit(n_jobs, tmp_path):
    model, X, Y = endless(callback=lambda event: True, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop; .*certificate inf"):
        model.fit(X, Y)
    assert model.certificate_ == np.inf
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores == -1).all(axis=0).any()  # labels that were not reached
    model.set_params(callback=None).save(tmp_path / "model")
    assert sublearn.load(tmp_path / "model").certificate_ == np.inf


def test_a_callback_that_stops_after_the_last_label_changes_nothing():
    X, Y = multilabel()
    late = PPDSparseClassifier(random_state=0, callback=lambda event: event.n_done == event.n_total)
    assert late.fit(X, Y).certificate_ <= late.tol
    late.set_params(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="the iteration limit was reached"):
        late.fit(X, Y)
    assert late.certificate_ < np.inf


def test_an_exception_of_the_callback_goes_through_and_leaves_nothing_fitted():
    def fail(event):
        raise LookupError("from the callback")

    model, X, Y = endless(callback=fail)
    with pytest.raises(LookupError, match="from the callback"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_second_fit_leaves_no_old_model_beside_new_features():
    X, y = multiclass()
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one row per sample"):
        model.fit(X[:, :10], y[:-1])
    for width in (10, 40):
        with pytest.raises(NotFittedError):
            model.predict(X[:, :width])
    assert model.fit(X[:, :10], y).predict(X[:, :10]).shape == y.shape


@pytest.mark.parametrize(
    ("columns", "shown"), [("80", ["gap", "duals"]), ("160", ["objective", "weights"])]
)
def test_draws_progress_on_standard_error_only(capfd, monkeypatch, columns, shown):
    monkeypatch.setenv("COLUMNS", columns)
    X, Y = multilabel()
    PPDSparseClassifier(random_state=0, verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    for word in ["PPD-Sparse", f"{Y.shape[1]}/{Y.shape[1]}", *shown]:
        assert word in err
    PPDSparseClassifier(random_state=0).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_gives_five_labels_or_all_of_fewer_by_default():
    X, Y = multilabel()
    assert PPDSparseClassifier(random_state=0).fit(X, Y).predict_top_k(X)[0].shape == (len(Y), 5)
    few = PPDSparseClassifier(random_state=0).fit(X, Y[:, :3])
    assert few.predict_top_k(X)[0].shape == (len(Y), 3)


def test_fits_on_any_thread():
    X, Y = multilabel()
    expected = PPDSparseClassifier(random_state=0, n_jobs=2).fit(X, Y)
    events, models = [], []

    def job():
        for callback in (None, events.append):
            model = PPDSparseClassifier(random_state=0, n_jobs=2, callback=callback)
            models.append(model.fit(X, Y))

    thread = threading.Thread(target=job)
    thread.start()
    thread.join()
    assert len(models) == 2
    assert events
    for model in models:
        assert_same_model(model, expected)


# --- copies and files ------------------------------------------------------------------------


def assert_predicts_alike(a, b, X):
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    assert a.get_params() == b.get_params()
    assert a.trace_ == b.trace_
    for name in ("objective_", "certificate_", "n_iter_", "n_features_in_"):
        assert getattr(a, name) == getattr(b, name)
    for left, right in zip(a.predict_top_k(X, 3), b.predict_top_k(X, 3), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prune", [0.0, 0.05])
def test_copies_and_files_predict_alike(tmp_path, dtype, prune):
    X, Y = multilabel()
    model = PPDSparseClassifier(random_state=0, prune=prune).fit(X.astype(dtype), Y)
    model.save(tmp_path / "model.sublearn")
    loaded = sublearn.load(tmp_path / "model.sublearn")
    assert not loaded.coef_.data.flags.writeable
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), loaded):
        assert other.coef_.dtype == dtype
        assert_predicts_alike(other, model, X)
    again = pickle.loads(pickle.dumps(loaded))
    assert_predicts_alike(again, model, X)


def test_a_loaded_model_keeps_the_form_of_the_labels(tmp_path):
    X, Y = multilabel()
    lists = [[f"λ{k}" for k in np.flatnonzero(row)] for row in Y]
    model = PPDSparseClassifier(random_state=0).fit(X, lists)
    model.save(tmp_path / "model.sublearn")
    loaded = sublearn.load(tmp_path / "model.sublearn")
    assert loaded.predict(X) == model.predict(X)
    assert loaded.fit(X, lists).predict(X) == model.predict(X)


def test_pruning_drops_the_small_weights_and_no_others():
    X, Y = multilabel()
    full = PPDSparseClassifier(random_state=0).fit(X, Y)
    pruned = PPDSparseClassifier(random_state=0, prune=0.1).fit(X, Y)
    W = full.coef_.toarray()
    assert 0 < pruned.coef_.nnz < full.coef_.nnz
    np.testing.assert_array_equal(pruned.coef_.toarray(), np.where(np.abs(W) > 0.1, W, 0))
    assert pruned.certificate_ == full.certificate_


# --- with scikit-learn -----------------------------------------------------------------------


def test_works_in_a_pipeline_under_a_grid_search():
    X, y = multiclass()
    pipeline = make_pipeline(Normalizer(), PPDSparseClassifier(random_state=0))
    grid = {"ppdsparseclassifier__C": [0.01, 10.0], "ppdsparseclassifier__l1": [0.0, 0.1]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X * 7, y)
    assert search.best_params_["ppdsparseclassifier__C"] == 10.0
    assert search.best_score_ > 0.5
    direct = clone(search.best_estimator_).fit(X * 7, y)
    np.testing.assert_array_equal(direct.predict(X), search.predict(X))


def test_a_clone_has_the_parameters_and_no_model():
    X, y = multiclass()
    model = PPDSparseClassifier(C=2.0, l1=0.3, random_state=0).fit(X, y)
    other = clone(model)
    assert other.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        other.predict(X)


# --- label lists -----------------------------------------------------------------------------


def label_lists():
    X, Y = multilabel()
    return X, [[f"label {k}" for k in np.flatnonzero(row)] for row in Y]


def test_a_grid_search_takes_label_lists_with_a_splitter():
    X, lists = label_lists()
    grid = GridSearchCV(PPDSparseClassifier(random_state=0), {"l1": [0.1, 10.0]}, cv=KFold(3))
    assert grid.fit(X, lists).best_params_ == {"l1": 0.1}


def test_score_refuses_label_lists_of_another_length():
    X, lists = label_lists()
    model = PPDSparseClassifier(random_state=0).fit(X, lists)
    with pytest.raises(ValueError, match=r"^y must have one row per sample \(150\), got 3$"):
        model.score(X, lists[:3])


@pytest.mark.parametrize("other", [["label 1"] * 150, np.eye(150), sp.eye_array(150)])
def test_score_refuses_labels_in_another_form_than_lists(other):
    X, lists = label_lists()
    model = PPDSparseClassifier(random_state=0).fit(X, lists)
    with pytest.raises(ValueError, match=r"^y must be a list of label lists, as in fit, got "):
        model.score(X, other)
