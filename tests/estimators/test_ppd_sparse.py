"""PPDSparseClassifier as an estimator: scikit-learn's contract, forms of input, threads, files."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from label_problems import assert_same_model, multiclass, multilabel
from sklearn.exceptions import ConvergenceWarning

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier

# --- problems --------------------------------------------------------------------------------


def endless(**options):
    """A fit that reaches no limit in the life of a test, and its data."""
    X, Y = multilabel(n_rows=300, n_labels=1000)
    options = {"tol": 1e-300, "max_iter": 10**9, "random_state": 0} | options
    return PPDSparseClassifier(loss="hinge", **options), X, Y


# --- the best labels -------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 36, 37])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_top_labels_are_those_of_sorted_scores(k, n_jobs):
    X, Y = multilabel()
    X = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))]).tocsr()
    Y = np.vstack([Y, np.zeros((3, Y.shape[1]), dtype=bool)])
    Y[:, [4, 20, 21]] = False  # equal scores everywhere
    model = PPDSparseClassifier(fit_intercept="fixed", random_state=0, n_jobs=n_jobs).fit(X, Y)
    scores = model.decision_function(X)
    assert (scores[-1] == -1).all()  # ties among all labels
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, best = model.predict_top_k(X, k)
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(best, np.take_along_axis(scores, order, axis=1))


# --- refusals --------------------------------------------------------------------------------

REFUSALS = [
    *[("loss", v, "must be 'squared_hinge' or 'hinge'") for v in ("log", None, 1)],
    *[("fit_intercept", v, "must be True or 'fixed'") for v in (False, None, "learned", 1)],
    *[("search", v, "must be 'exact', 'sparsified' or a Random") for v in ("greedy", None)],
]


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSALS)
def test_refuses_a_parameter_of_its_own_by_name(name, value, sentence):
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
