"""PDSparseClassifier as an estimator: scikit-learn's contract, held-out rows, odd data, files."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from label_problems import assert_same_model, multiclass, multilabel
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PDSparseClassifier
from sublearn.metrics import precision_at_k

SEARCHES = ("auto", "exact", "partition", "sampled")


# --- problems --------------------------------------------------------------------------------


def solver(**options):
    own = {"l1": 0.01, "max_iter": 1000, "early_stopping": "refit" in options, "random_state": 0}
    return PDSparseClassifier(**(own | options))


def endless(**options):
    """A fit that reaches no limit in the life of a test, and its data."""
    X, Y = multilabel(n_rows=300, n_labels=1000)
    return solver(tol=1e-300, max_iter=10**9, **options), X, Y


# --- the same model --------------------------------------------------------------------------


def test_duplicate_entries_and_explicit_zeros_change_nothing():
    X, Y = multilabel()
    coo = X.tocoo()
    parts = [np.concatenate([a, a]) for a in (coo.row, coo.col)]
    twice = sp.coo_matrix((np.concatenate([coo.data / 2] * 2), parts), shape=X.shape)
    np.testing.assert_allclose(
        solver().fit(twice, Y).coef_.toarray(), solver().fit(X, Y).coef_.toarray(), atol=1e-9
    )
    zeros = X.copy()
    zeros.data[::5] = 0
    cleaned = zeros.copy()
    cleaned.eliminate_zeros()
    assert (zeros.data == 0).any()
    assert_same_model(solver().fit(zeros, Y), solver().fit(cleaned, Y))


# --- forms of labels -------------------------------------------------------------------------


def test_an_intercept_is_learned_where_it_is_wanted():
    X, Y = multilabel()
    rows = {"X": X[:100], "y": Y[:100], "eval_set": (X[100:], Y[100:])}
    model = solver(fit_intercept=True, refit=True).fit(**rows)
    assert model.coef_.shape == (37, 40)
    assert model.intercept_.any()
    assert not solver().fit(X, Y).intercept_.any()
    scores = X @ model.coef_.toarray().T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)
    top = precision_at_k(Y[100:], scores[100:], 1)
    assert top == pytest.approx(model.held_out_precision_)


def test_two_classes_have_one_intercept():
    X, y = multiclass(n_classes=2)
    X = sp.csr_matrix(np.abs(X.toarray()))
    y = np.asarray(X.sum(axis=1)).ravel() > 1.5
    model = solver(fit_intercept=True, C=100.0).fit(X, y)
    assert model.intercept_.shape == (1,)
    assert model.intercept_[0] < 0
    assert model.score(X, y) > 0.9


# --- odd data --------------------------------------------------------------------------------


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_without_features_or_labels_or_with_all_labels_are_no_trouble(search, early_stopping):
    X, Y = multilabel()
    X = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))]).tocsr()
    Y = np.vstack([Y, np.eye(3, Y.shape[1], dtype=bool)])
    Y[4], Y[5] = False, True
    model = solver(search=search, early_stopping=early_stopping).fit(X, Y)
    assert np.isfinite(model.coef_.data).all()
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.predict_top_k(X, 3)[1]).all()


def test_rows_without_labels_have_no_loss():
    X, Y = multilabel()
    Y[100:] = False
    short, long = solver(tol=1e-6, max_iter=50_000), solver(tol=1e-6, max_iter=50_000)
    assert long.fit(X, Y).objective_ == pytest.approx(
        short.fit(X[:100], Y[:100]).objective_, rel=2e-6
    )


def test_rows_without_features_lose_one_each():
    X, y = multiclass()
    plain = solver(tol=1e-6, max_iter=50_000).fit(X, y)
    longer = sp.vstack([X, sp.csr_matrix((7, X.shape[1]))]).tocsr()
    model = solver(tol=1e-6, max_iter=50_000).fit(longer, np.append(y, np.zeros(7, dtype=int)))
    assert model.objective_ == pytest.approx(plain.objective_ + 7, rel=2e-6)


@pytest.mark.parametrize("shape", ["one column", "all ones", "one label"])
def test_labels_without_a_negative_give_a_model_of_zeros_or_one_that_works(shape):
    X, _ = multilabel()
    Y = np.ones((X.shape[0], 1 if shape == "one column" else 4), dtype=bool)
    if shape == "one label":
        Y[:, 1:] = False
    model = solver().fit(X, sp.csr_matrix(Y))
    assert model.certificate_ <= model.tol
    assert (model.coef_.nnz == 0) == (shape != "one label")
    assert model.predict_top_k(X, 1)[0].shape == (X.shape[0], 1)


def test_a_label_on_every_row_comes_first():
    X, Y = multilabel()
    X = sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    Y[:, 11] = True
    labels, _ = solver().fit(X, Y).predict_top_k(X, 1)
    assert (labels[:, 0] == 11).mean() > 0.5


@pytest.mark.parametrize("search", SEARCHES)
def test_takes_more_labels_than_rows(search):
    X, _ = multilabel(n_rows=30)
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((np.ones(30), (np.arange(30), rng.permutation(5000)[:30])), (30, 5000))
    model = solver(search=search).fit(X, Y)
    assert model.certificate_ <= model.tol
    assert precision_at_k(Y, model.predict_top_k(X, 1)[0], 1) > 0.9


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_takes_very_few_rows(n_rows, search):
    X = np.eye(3)[:n_rows]
    Y = np.eye(3, dtype=bool)[:n_rows]
    model = solver(search=search).fit(X, Y)
    assert precision_at_k(Y, model.predict_top_k(X, 1)[0], 1) == 1


# --- search ----------------------------------------------------------------------------------


def test_auto_divides_the_labels_when_the_search_dominates():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(300, 20)))  # few features, many labels: W is dense
    best = np.asarray(X @ rng.normal(size=(20, 3000))).argmax(axis=1)
    y = best[:, None] == np.arange(3000)
    model = solver(l1=0.0, tol=1e-6, max_iter=60)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    parts = model.trace_["n_partitions"]
    assert parts[0] == 1
    assert parts[-1] == 3
    exact = clone(model).set_params(search="exact")
    with pytest.warns(ConvergenceWarning):
        exact.fit(X, y)
    assert (exact.trace_["n_partitions"] == 1).all()
    assert model.trace_["work"][-1] < exact.trace_["work"][-1]


def test_the_number_of_candidates_doubles():
    X, Y = multilabel()
    grown = solver(l1=0.0, tol=1e-4).fit(X, Y).trace_["n_candidates"]
    assert grown[-1] > grown[0]
    assert grown.max() <= 100


# --- held-out rows ---------------------------------------------------------------------------


def test_early_stopping_returns_the_best_model_of_the_held_out_rows():
    X, y = multiclass(n_rows=400)
    noisy = np.where(np.random.default_rng(0).random(400) < 0.3, 0, y)
    train, rest = slice(0, 300), slice(300, 400)
    model = solver(early_stopping=2).fit(X[train], noisy[train], eval_set=(X[rest], noisy[rest]))
    assert model.held_out_precision_ == model.trace_["held_out"].max()
    assert model.score(X[rest], noisy[rest]) == pytest.approx(model.held_out_precision_)
    last = len(model.trace_) - 1
    assert model.trace_["held_out"].argmax() in (last, last - 2)
    assert model.n_iter_ == len(model.trace_) < 1000


def test_a_share_of_the_rows_is_held_out():
    X, y = multiclass()
    model = solver(early_stopping=2, validation_fraction=0.3).fit(X, y)
    held_out = model.held_out_precision_ * 45
    assert held_out == pytest.approx(round(held_out))
    assert "held_out" in model.trace_.columns
    assert "held_out" not in solver().fit(X, y).trace_.columns
    assert solver().fit(X, y).held_out_precision_ is None


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_is_that_of_the_weights_returned(search):
    X, Y = multilabel()
    model = solver(search=search, l1=0.05, early_stopping=2, tol=1e-9).fit(
        X[:100], Y[:100], eval_set=(X[100:], Y[100:])
    )
    W, Z, Y = model.coef_.toarray(), model.decision_function(X[:100]), Y[:100]
    worst = np.where(Y, -np.inf, Z).max(axis=1) - np.where(Y, Z, np.inf).min(axis=1)
    loss = np.maximum(0, 1 + worst)[Y.any(axis=1)].sum()
    assert model.objective_ == pytest.approx(
        0.5 * (W**2).sum() + 0.05 * np.abs(W).sum() + loss, rel=1e-9
    )


def test_a_label_only_in_the_eval_set_is_a_miss():
    X, y = multiclass()
    names = np.array(["ant", "bee", "cat", "dog", "eel"], dtype=object)[y]
    other = names[100:].copy()
    other[:25] = "zebra"
    model = solver(early_stopping=2).fit(X[:100], names[:100], eval_set=(X[100:], other))
    assert "zebra" not in model.classes_
    assert model.held_out_precision_ <= 0.5
    lists = [[name] for name in names]
    mixed = [["zebra"]] * 25 + lists[125:]
    same = solver(early_stopping=2).fit(X[:100], lists[:100], eval_set=(X[100:], mixed))
    assert_same_model(same, model)


def test_a_refit_is_kept_only_if_it_is_better_on_the_held_out_rows():
    kept = []
    for seed, l1 in itertools.product(range(4), (0.3, 0.001)):
        X, Y = multilabel(seed)
        rows = {"X": X[:100], "y": Y[:100], "eval_set": (X[100:], Y[100:])}
        plain = solver(l1=l1, early_stopping=3).fit(**rows)
        model = solver(l1=l1, early_stopping=3, refit=True).fit(**rows)
        stage = model.trace_["refit"] == 1
        assert stage.any()
        assert model.refit_ == (model.trace_["held_out"][stage].max() > plain.held_out_precision_)
        top = precision_at_k(Y[100:], model.predict_top_k(X[100:], 1)[0], 1)
        assert top == pytest.approx(model.held_out_precision_)
        if model.refit_:
            support = plain.coef_.toarray() != 0
            assert (support | (model.coef_.toarray() == 0)).all()
        else:  # made again from its duals
            expected = plain.coef_.toarray()
            np.testing.assert_allclose(model.coef_.toarray(), expected, atol=1e-9)
        kept.append(model.refit_)
    assert any(kept)
    assert not all(kept)


def test_a_closed_refit_moves_no_mass_to_another_label():
    X, Y = multilabel()
    rows = {"X": X[:100], "y": Y[:100], "eval_set": (X[100:], Y[100:])}
    plain = solver(l1=0.1, early_stopping=3).fit(**rows)
    model = solver(l1=0.1, early_stopping=3, refit="closed").fit(**rows)
    stage = model.trace_["refit"] == 1
    best = model.trace_["held_out"][~stage].argmax()
    most = model.trace_["nnz_dual"][: best + 1].max()
    assert stage.any()
    assert model.trace_["nnz_dual"][stage].max() <= most
    assert model.held_out_precision_ >= plain.held_out_precision_
    assert ((plain.coef_.toarray() != 0) | (model.coef_.toarray() == 0)).all()


# --- the default -----------------------------------------------------------------------------


def test_the_default_keeps_rows_away_where_there_are_enough():
    X, Y = multilabel(n_rows=50)
    default = solver(early_stopping="auto")
    assert "held_out" in default.fit(X, Y).trace_.columns
    few = default.fit(X[:49], Y[:49])
    assert "held_out" not in few.trace_.columns
    assert few.certificate_ <= few.tol
    refit = solver(refit=True, early_stopping="auto")
    assert refit.fit(X[:40], Y[:40]).held_out_precision_ is not None


def noise(n_rows=60, n_labels=30, seed=0):
    """Rows with many labels that nothing predicts."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.normal(size=(n_rows, 10)))
    return X, rng.random((n_rows, n_labels)) < 0.3


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_the_objective_is_never_above_that_of_no_weights(l1, fit_intercept):
    X, Y = noise()
    for max_iter in (1, 2, 5):
        model = solver(l1=l1, max_iter=max_iter, tol=0.5, fit_intercept=fit_intercept)
        model.fit(X, Y)
        assert model.objective_ <= 60 * (1 + 1e-9)
        assert model.objective_ == pytest.approx(objective_of(model, X, Y), rel=1e-9)
        assert model.trace_["objective"][-1] == model.objective_
        assert model.trace_["dual"][-1] <= model.objective_


@pytest.mark.parametrize(("C", "l1"), [(1.0, 0.0), (3.0, 0.0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_that_are_worse_than_none_are_as_long_as_the_objective_wants_them(C, l1):
    X, Y = multilabel(n_rows=30)
    Y = Y | (np.random.default_rng(1).random(Y.shape) < 0.15)
    model = solver(C=C, l1=l1, max_iter=1, tol=0.9).fit(X, Y)
    assert model.coef_.nnz > 0
    assert 0.9 * 30 * C < model.objective_ < 30 * C
    for factor in (0.5, 0.9, 1.1):
        shorter = model.coef_ * factor
        scores = factor * model.decision_function(X)
        assert objective_at(scores, shorter, Y, C, l1) > model.objective_


def objective_of(model, X, Y):
    weights = model.coef_
    value = objective_at(model.decision_function(X), weights, Y, model.C, model.l1)
    return value + 0.5 * (model.intercept_**2).sum()


def objective_at(scores, weights, Y, C, l1):
    worst = np.where(Y, -np.inf, scores).max(axis=1) - np.where(Y, scores, np.inf).min(axis=1)
    loss = C * np.maximum(0, 1 + worst)[Y.any(axis=1)].sum()
    return 0.5 * (weights.data**2).sum() + l1 * np.abs(weights.data).sum() + loss


# --- refusals --------------------------------------------------------------------------------

REFUSALS = [
    *[("fit_intercept", v, "must be True or False") for v in ("fixed", None, 0)],
    *[("search", v, "must be 'auto', 'exact', 'partition' or 'sampled'") for v in ("all", None)],
    *[
        ("early_stopping", v, "must be 'auto' or True or False or a positive integer")
        for v in (0, 2.5, None, "never")
    ],
    *[("validation_fraction", v, r"must be a number in \(0, 1\)") for v in (0, 1, -0.1, None)],
    *[("refit", value, "must be True or False or 'closed'") for value in (0, "yes")],
]


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSALS)
def test_refuses_a_parameter_of_its_own_by_name(name, value, sentence):
    X, y = multiclass()
    with pytest.raises(ParameterError, match=rf"^PDSparseClassifier\.{name} {sentence}.*, got "):
        PDSparseClassifier(**{name: value}).fit(X, y)


def test_refuses_parameters_that_do_not_fit_together():
    X, y = multiclass()
    with pytest.raises(ParameterError, match="refit must be False without early_stopping or an"):
        PDSparseClassifier(refit=True, early_stopping=False).fit(X, y)
    with pytest.raises(ValueError, match="X must have at least 2 samples for early_stopping"):
        PDSparseClassifier(early_stopping=True).fit(X[:1], np.ones((1, 2)))


@pytest.mark.parametrize(
    ("eval_set", "sentence"),
    [
        (3, r"eval_set must be a pair \(X, y\), got 3"),
        ((1, 2, 3), r"eval_set must be a pair \(X, y\)"),
        ((np.ones((2, 39)), [0, 1]), r"eval_set\[0\] must be features as in fit: X has 39"),
        ((np.full((2, 40), np.nan), [0, 1]), r"eval_set\[0\] must be features as in fit: .*NaN"),
        ((np.ones((2, 40)), [0]), r"eval_set\[1\] must have one row per sample \(2\), got 1"),
        ((np.ones((2, 40)), np.eye(2)), r"eval_set\[1\] must have the form of y"),
        ((np.ones((2, 40)), [[0], [1, 2]]), r"eval_set\[1\] must have the form of y"),
        ((np.ones((2, 40)), ["a", "b"]), r"eval_set\[1\] must hold labels of the type"),
    ],
)
def test_refuses_an_eval_set_by_name(eval_set, sentence):
    X, y = multiclass()
    with pytest.raises(ValueError, match=sentence):
        PDSparseClassifier().fit(X, y, eval_set=eval_set)


def test_refuses_an_eval_set_of_another_width_or_form():
    X, Y = multilabel()
    with pytest.raises(ValueError, match=r"eval_set\[1\] must have 37 columns, got 36"):
        solver().fit(X, Y, eval_set=(X, Y[:, 1:]))
    with pytest.raises(ValueError, match=r"eval_set\[1\] must have the form of y"):
        solver().fit(X, Y, eval_set=(X, [[0]] * 149 + [[1, 2]]))


def test_refuses_class_weights_of_other_classes():
    X, y = multiclass()
    with pytest.raises(ValueError, match=r"class_weight must have one weight for each of 5"):
        PDSparseClassifier(class_weight=[1.0, 2.0]).fit(X, y)


# --- limits, trace, callback -----------------------------------------------------------------


@pytest.mark.parametrize("search", SEARCHES)
def test_warns_at_the_limit_of_passes(search):
    X, Y = multilabel()
    model = solver(max_iter=1, tol=1e-9, search=search)
    with pytest.warns(ConvergenceWarning, match="the iteration limit was reached before"):
        model.fit(X, Y)
    assert 1e-9 < model.certificate_ < np.inf
    assert model.n_iter_ == 1


def test_takes_limits_that_no_32_bits_hold():
    X, y = multiclass()
    huge = dict.fromkeys(("max_iter", "n_jobs"), 10**12)
    model = solver(search="partition", **huge).fit(X, y)
    assert model.certificate_ <= model.tol
    assert solver(early_stopping=10**12).fit(X, y).n_iter_ > 3


def test_trace_has_a_row_for_each_pass():
    X, Y = multilabel()
    model = solver(tol=1e-4, search="exact").fit(X, Y)
    trace = model.trace_
    names = "seconds objective dual certificate nnz_primal nnz_dual active work evaluated"
    assert trace.columns == (*names.split(), "n_candidates", "n_partitions", "refit", "k_A", "k_W")
    assert len(trace) == model.n_iter_
    assert trace["objective"][-1] == pytest.approx(model.objective_)
    assert trace["certificate"][-1] == pytest.approx(model.certificate_)
    assert trace["nnz_primal"][-1] == model.coef_.nnz
    assert (np.diff(trace["work"]) > 0).all()
    assert (np.diff(trace["dual"]) >= 0).all()
    assert trace["evaluated"][0] == trace["evaluated"][-1] == 1
    assert (trace["certificate"] >= 0).all()
    assert (trace["active"] >= 1).all()
    np.testing.assert_allclose(trace["k_A"] * X.shape[0], trace["nnz_dual"])
    assert trace["k_W"][-1] == model.coef_.nnz / X.shape[1]


def test_callback_gets_events():
    X, Y = multilabel()
    events = []
    model = solver(callback=events.append).fit(X, Y)
    last = events[-1]
    assert (last.n_done, last.n_total) == (model.n_iter_, 1000)
    assert last.objective == pytest.approx(model.objective_)
    assert last.certificate == pytest.approx(model.certificate_)
    assert last.work == model.trace_["work"][-1]


@pytest.mark.parametrize("early_stopping", [False, 10**9])
def test_callback_stops_the_fit(early_stopping, tmp_path):
    model, X, Y = endless(callback=lambda event: True, early_stopping=early_stopping)
    with pytest.warns(ConvergenceWarning, match=r"the callback asked to stop; .*certificate inf"):
        model.fit(X, Y)
    assert model.certificate_ == np.inf
    assert np.isfinite(model.decision_function(X)).all()
    model.set_params(callback=None).save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    assert again.certificate_ == np.inf
    np.testing.assert_equal(again.objective_, model.objective_)


def test_the_objective_of_a_stopped_fit_is_that_of_its_weights_or_not_known():
    model, X, Y = endless(callback=lambda event: True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y)
    scores, truth = model.decision_function(X), sp.csr_matrix(Y).toarray() != 0
    lowest = np.where(truth, scores, np.inf).min(axis=1)
    highest = np.where(truth, -np.inf, scores).max(axis=1)
    W = model.coef_.data
    value = 0.5 * (W**2).sum() + model.l1 * np.abs(W).sum()
    value += model.C * np.maximum(0, 1 + highest - lowest).sum()
    assert np.isnan(model.objective_) or model.objective_ == pytest.approx(value)


# --- copies, files, scikit-learn -------------------------------------------------------------


def test_pruning_beyond_the_range_of_float32_leaves_no_weight():
    X, Y = np.eye(4, dtype=np.float32), np.eye(4)
    assert PDSparseClassifier(prune=1e300, random_state=0).fit(X, Y).coef_.nnz == 0


def test_refuses_weights_whose_sum_is_not_finite():
    X, y = multiclass()
    words = "C times the weights of samples and labels must have a finite sum, got inf"
    with pytest.raises(ValueError, match="sample_weight must be at most"):
        solver().fit(X, y, sample_weight=np.full(X.shape[0], 1e308))
    with pytest.raises(ParameterError, match=words):
        solver(C=1e300).fit(X, y, sample_weight=np.full(X.shape[0], 1e90))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_label_loses_its_last_row_to_the_held_out_ones():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(450), np.zeros(50, dtype=int)])
    X = np.eye(450)[y] + 0.01 * rng.normal(size=(500, 450))
    model = PDSparseClassifier(random_state=0, max_iter=5).fit(X, y)
    assert (np.diff(model.coef_.tocsr().indptr) > 0).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_weigh_nothing_are_not_held_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 8)), rng.integers(0, 3, 600)
    weight = np.zeros(600)
    weight[rng.permutation(600)[:20]] = 1.0
    kept = weight > 0
    params = {"random_state": 0, "max_iter": 5}
    model = PDSparseClassifier(**params).fit(X, y, sample_weight=weight)
    alone = PDSparseClassifier(**params, early_stopping=False).fit(X[kept], y[kept])
    assert model.coef_.nnz == alone.coef_.nnz > 0
