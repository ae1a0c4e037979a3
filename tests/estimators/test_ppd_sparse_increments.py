"""PPDSparseClassifier fitted again: warm starts, paths, labels added and labels removed."""

import datetime
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import normalize

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier

N_LABELS = 37


def problem(seed=0, n_rows=300, n_features=60, n_labels=N_LABELS):
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    scores = X @ np.random.default_rng(7).normal(size=(n_features, n_labels))
    return normalize(X), scores > np.quantile(scores, 0.93)


def classes_problem(n_classes=6):
    X, _ = problem()
    scores = np.asarray(X @ np.random.default_rng(1).normal(size=(X.shape[1], n_classes)))
    return X, np.array(list("cafebd"))[:n_classes][scores.argmax(axis=1)]


def as_lists(Y):
    return [[f"label {k:02}" for k in np.flatnonzero(row)] for row in Y]


def solver(**options):
    return PPDSparseClassifier(**({"random_state": 0, "tol": 0.01} | options))


def arrays(model):
    return model.coef_.toarray(), model.intercept_


def assert_same(a, b):
    for left, right in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(left, right)


def work(model):
    return model.trace_["work"][-1]


def assert_as_good(warm, cold):
    """Both within tol of the same optimum."""
    assert warm.certificate_ <= warm.tol
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1.01 * warm.tol)


# --- warm starts -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, "fixed"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_warm_start_finds_the_same_optimum_with_less_work(loss, fit_intercept, dtype):
    X, Y = problem()
    X = X.astype(dtype)
    options = {"loss": loss, "fit_intercept": fit_intercept, "tol": 1e-3, "max_iter": 1000}
    cold = solver(**options, l1=0.09).fit(X, Y)
    warm = solver(**options, l1=0.1, warm_start=True).fit(X, Y).set_params(l1=0.09).fit(X, Y)
    assert warm.coef_.dtype == dtype
    assert_as_good(warm, cold)
    assert work(warm) < work(cold)


def test_a_warm_start_does_not_depend_on_the_threads():
    X, Y = problem()
    models = [solver(warm_start=True, n_jobs=n).fit(X, Y) for n in (1, 2, 3)]
    for model in models:
        model.set_params(C=2.0).fit(X, Y)
        assert_same(model, models[0])


def test_the_first_fit_is_a_cold_one():
    X, Y = problem()
    assert_same(solver(warm_start=True).fit(X, Y), solver().fit(X, Y))


def test_a_second_fit_without_warm_start_begins_anew():
    X, Y = problem()
    once = solver().fit(X, Y)
    assert_same(solver().fit(X, Y).fit(X, Y), once)
    assert work(solver(warm_start=True).fit(X, Y).fit(X, Y)) < work(once)


def test_a_warm_start_takes_in_more_rows():
    X, Y = problem(n_rows=600)
    warm = solver(warm_start=True).fit(X[:550], Y[:550]).fit(X, Y)
    cold = solver().fit(X, Y)
    assert_as_good(warm, cold)
    assert work(warm) < work(cold)


def test_a_warm_start_follows_labels_by_name():
    X, Y = problem()
    lists = as_lists(Y)
    fewer = [[name for name in row if name < "label 30"] or ["zz"] for row in lists]
    other_order = np.random.default_rng(0).permutation(len(fewer))
    warm = solver(warm_start=True).fit(X[other_order], [fewer[i] for i in other_order])
    warm.fit(X, lists)
    cold = solver().fit(X, lists)
    assert warm.classes_.tolist() == cold.classes_.tolist()
    assert_as_good(warm, cold)
    assert work(warm) < work(cold)


def test_a_warm_start_with_other_labels_is_a_cold_one():
    X, Y = problem()
    names = as_lists(Y)
    warm = solver(warm_start=True).fit(X, Y).fit(X, names)
    assert_same(warm, solver().fit(X, names))


def test_a_warm_start_with_another_number_of_features_is_a_cold_one():
    X, Y = problem()
    warm = solver(warm_start=True).fit(X[:, :50], Y).fit(X, Y)
    assert_same(warm, solver().fit(X, Y))
    assert warm.n_features_in_ == 60


def test_a_warm_start_goes_from_two_classes_to_more_and_back():
    X, y = classes_problem()
    two = np.where(y == "a", "a", "b")
    others = np.where(y == "a", "c", "d")
    for first, second in itertools.permutations((two, y, others), 2):
        warm = solver(warm_start=True, tol=1e-3, max_iter=1000).fit(X, first).fit(X, second)
        cold = solver(tol=1e-3, max_iter=1000).fit(X, second)
        assert_as_good(warm, cold)
        assert (warm.predict(X) == cold.predict(X)).mean() > 0.98


def test_a_warm_start_takes_a_start_in_the_other_precision():
    X, Y = problem()
    warm = solver(warm_start=True).fit(X.astype(np.float32), Y).fit(X, Y)
    assert warm.coef_.dtype == np.float64
    assert_as_good(warm, solver().fit(X, Y))


@pytest.mark.parametrize("copy", ["loaded", "pickled"])
def test_a_warm_start_goes_on_from_a_copy(tmp_path, copy):
    X, Y = problem()
    model = solver(warm_start=True).fit(X, Y)
    model.save(tmp_path / "model")
    other = sublearn.load(tmp_path / "model")
    if copy == "pickled":
        other = pickle.loads(pickle.dumps(model))
    assert_same(other.set_params(C=2.0).fit(X, Y), model.set_params(C=2.0).fit(X, Y))


def test_a_warm_start_of_a_pruned_model_finds_what_was_pruned():
    X, Y = problem()
    warm = solver(warm_start=True, prune=0.2).fit(X, Y).set_params(prune=0.0).fit(X, Y)
    assert_as_good(warm, solver().fit(X, Y))


def test_a_warm_start_on_a_label_that_nothing_carries_any_more():
    X, Y = problem()
    warm = solver(warm_start=True).fit(X, Y)
    Y = Y & (np.arange(N_LABELS) != 5)
    warm.fit(X, Y)
    assert warm.coef_.toarray()[5].any() == 0
    assert warm.intercept_[5] == -1


def test_labels_that_a_stop_keeps_a_warm_start_from_score_minus_one():
    X, Y = problem(n_labels=400)
    model = solver(warm_start=True).fit(X, Y)
    model.set_params(callback=lambda event: True, tol=1e-300, max_iter=10**9, loss="hinge")
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        model.fit(X, Y)
    W, b = arrays(model)
    not_reached = ~W.any(axis=1)
    assert not_reached.any()
    assert (b[not_reached] == -1).all()
    assert (model.decision_function(X)[:, not_reached] == -1).all()


# --- paths -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0.5, 0.1, 0.02], [0.02, 0.5, 0.1]])
def test_a_path_gives_a_model_for_each_penalty_in_the_order_asked(order):
    X, Y = problem()
    base = solver(tol=1e-3, max_iter=1000)
    models = base.fit_path(X, Y, order)
    assert [model.l1 for model in models] == order
    for model in models:
        separate = clone(base).set_params(l1=model.l1).fit(X, Y)
        assert_as_good(model, separate)
        assert model.get_params() == separate.get_params()
        assert model.n_features_in_ == 60
    by_l1 = sorted(models, key=lambda model: model.l1)
    assert by_l1[0].coef_.nnz > by_l1[1].coef_.nnz > by_l1[2].coef_.nnz
    with pytest.raises(NotFittedError):
        base.predict(X)


def test_a_path_of_near_penalties_takes_less_work_than_separate_fits():
    X, Y = problem()
    penalties = [0.1, 0.09, 0.08, 0.07]
    path = solver(tol=1e-3, max_iter=1000).fit_path(X, Y, penalties)
    separate = [solver(tol=1e-3, max_iter=1000, l1=l1).fit(X, Y) for l1 in penalties]
    assert sum(map(work, path)) < sum(map(work, separate))


def test_equal_penalties_of_a_path_give_equal_models_of_their_own():
    X, Y = problem()
    names = as_lists(Y)
    a, b, c = solver().fit_path(X, names, np.array([0.1, 1.0, 0.1]))
    assert_same(a, c)
    c.remove_labels(["label 03"])
    assert len(a.classes_) == len(b.classes_) == N_LABELS
    assert len(c.classes_) == N_LABELS - 1
    assert a.predict(X) == solver().fit_path(X, names, [1.0, 0.1])[1].predict(X)


def test_a_path_keeps_the_other_parameters_and_writes_no_files(tmp_path):
    X, Y = problem()
    base = solver(warm_start=True, class_weight="balanced", model_path=tmp_path / "m", C=2.0)
    (model,) = base.fit_path(X, Y, [0.3])
    assert (model.warm_start, model.class_weight, model.C, model.l1) == (True, "balanced", 2.0, 0.3)
    assert model.model_path is None
    assert base.l1 == 0.1
    assert list(tmp_path.iterdir()) == []
    assert_same(model, solver(class_weight="balanced", C=2.0, l1=0.3).fit(X, Y))


def test_a_path_takes_weights_names_of_features_and_any_iterable():
    X, y = classes_problem()
    frame = pd.DataFrame(X.toarray()).add_prefix("f")
    weights = np.random.default_rng(0).random(len(y))
    models = solver().fit_path(frame, y, (v for v in (0.2,)), sample_weight=weights)
    assert_same(models[0], solver(l1=0.2).fit(frame, y, sample_weight=weights))
    assert models[0].feature_names_in_.tolist() == frame.columns.tolist()
    assert len(solver().fit_path(X, y, [])) == 0


def test_a_callback_that_stops_ends_the_path_with_the_models_made_so_far():
    X, Y = problem()
    slow = {"loss": "hinge", "tol": 1e-300, "max_iter": 10**6}
    with pytest.warns(ConvergenceWarning) as caught:
        models = solver(callback=lambda event: True, **slow).fit_path(X, Y, [0.1, 0.3, 0.2, 0.3])
    assert [model.l1 for model in models] == [0.3, 0.3]
    assert models[0].certificate_ == np.inf
    assert sum("the callback asked to stop" in str(w.message) for w in caught) == 1


@pytest.mark.parametrize("l1", [[0.1, -1], [np.nan], [np.inf], ["x"], [None], 0.1, None])
def test_a_path_refuses_penalties_that_are_none(l1):
    X, y = classes_problem()
    sentence = "fit_path: l1s must be a list of numbers that are not negative, got "
    with pytest.raises(ValueError, match=rf"^PPDSparseClassifier\.{sentence}"):
        solver().fit_path(X, y, l1)


# --- labels added ------------------------------------------------------------------------------


def assert_kept_and_added(before, after, whole):
    """Labels known before are as they were to the last bit; new ones are as good as in `whole`."""
    assert after.classes_.tolist() == whole.classes_.tolist()
    known = np.isin(whole.classes_, before.classes_)
    for kept, found, expected in zip(arrays(before), arrays(after), arrays(whole), strict=True):
        np.testing.assert_array_equal(found[known], kept)
        np.testing.assert_allclose(found[~known], expected[~known], atol=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_adds_the_columns_that_an_indicator_matrix_has_more(form, dtype):
    X, Y = problem()
    X, options = X.astype(dtype), {"tol": 1e-4, "max_iter": 1000}
    before, model = (solver(**options).fit(X, form(Y[:, :20])) for _ in range(2))
    assert model.partial_fit(X, form(Y), update_known=False) is model
    whole = solver(**options).fit(X, form(Y))
    assert_kept_and_added(before, model, whole)
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    assert 0 < model.certificate_ <= 1e-4
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert sp.issparse(predicted) == sp.issparse(form(Y))


def test_adds_labels_of_lists_at_their_places_in_the_order():
    X, Y = problem()
    lists = as_lists(Y)
    odd = [[name for name in row if int(name[-2:]) % 2] for row in lists]
    before, model = (solver(tol=1e-4, max_iter=1000).fit(X, odd) for _ in range(2))
    model.partial_fit(X, lists, update_known=False)
    assert_kept_and_added(before, model, solver(tol=1e-4, max_iter=1000).fit(X, lists))
    assert model.classes_.tolist() == [f"label {k:02}" for k in range(N_LABELS)]
    assert model.coef_.has_sorted_indices


def test_adds_classes_in_several_steps():
    X, y = classes_problem()
    model = solver(tol=1e-4, max_iter=1000)
    steps = [np.isin(y, list("bdf")), np.isin(y, list("abdf")), np.ones(len(y), dtype=bool)]
    for rows in steps:
        previous = pickle.loads(pickle.dumps(model))
        model.partial_fit(X[rows], y[rows], update_known=False)
        if rows is not steps[0]:
            whole = solver(tol=1e-4, max_iter=1000).fit(X[rows], y[rows])
            assert_kept_and_added(previous, model, whole)
    assert model.classes_.tolist() == list("abcdef")
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("fit_intercept", [True, "fixed"])
def test_a_third_class_makes_two_scores_of_one(fit_intercept):
    X, y = classes_problem(3)
    options = {"fit_intercept": fit_intercept, "tol": 1e-4, "max_iter": 1000}
    two = y != "f"
    before = solver(**options).fit(X[two], y[two])
    model = clone(before).fit(X[two], y[two]).partial_fit(X, y, update_known=False)
    assert model.classes_.tolist() == ["a", "c", "f"]
    score = before.decision_function(X)
    np.testing.assert_array_equal(model.decision_function(X)[:, :2], np.c_[-score, score])
    assert set(model.predict(X)) == {"a", "c", "f"}
    added = model.objective_ - 2 * before.objective_
    alone = solver(**options).fit(X, y == "f").objective_
    assert added == pytest.approx(alone, rel=1e-3)


def test_a_batch_with_two_labels_of_a_larger_model_adds_the_one_it_lacks():
    X, y = classes_problem()
    model = solver().fit(X[y != "e"], y[y != "e"])
    model.partial_fit(X, np.where(y == "e", "e", "a"))
    assert model.classes_.tolist() == list("abcdef")
    expected = solver(tol=1e-2).fit(X, y == "e")
    np.testing.assert_allclose(model.coef_.toarray()[4], expected.coef_.toarray()[0], atol=0.1)


def test_known_labels_stay_to_the_last_bit_where_that_is_asked_for():
    X, y = classes_problem()
    model = solver().fit(X, y)
    before = pickle.loads(pickle.dumps(model))
    assert model.partial_fit(X[:1], y[:1], update_known=False) is model
    assert_same(model, before)
    assert model.trace_ == before.trace_
    with pytest.raises(ValueError, match="sample_weight must have one weight for each of 1 sample"):
        model.partial_fit(X[:1], y[:1], sample_weight=[1, 2])
    lists = solver().fit(X, [[name] for name in y])
    assert_same(lists.partial_fit(X, [[] for _ in y], update_known=False), before)
    with pytest.raises(ParameterError, match=r"partial_fit.update_known must be True or False"):
        model.partial_fit(X, y, update_known="no")


# --- further samples of known labels -----------------------------------------------------------


def test_learns_from_further_samples_and_keeps_what_it_knew():
    X, y = classes_problem()
    old, new = np.arange(len(y)) % 3 == 0, np.arange(len(y)) % 3 != 0
    model = solver(tol=1e-4, max_iter=1000).fit(X[old], y[old])
    before = model.score(X[new], y[new])
    model.partial_fit(X[new], y[new])
    assert model.score(X[new], y[new]) > before
    without_old = solver(tol=1e-4, max_iter=1000).fit(X[new], y[new])
    assert model.score(X[old], y[old]) > without_old.score(X[old], y[old]) + 0.05
    assert 0 <= model.certificate_ <= 1e-4


def test_learning_in_steps_comes_near_to_one_fit():
    """Block coordinate ascent on the dual of all rows: after each step its value is known."""
    X, Y = problem()
    options = {"tol": 1e-6, "max_iter": 10_000, "fit_intercept": True}
    whole = solver(**options).fit(X, Y)
    model = solver(**options).fit(X[:100], Y[:100])
    distance = [abs(model.decision_function(X) - whole.decision_function(X)).mean()]
    for first in (100, 200):
        model.partial_fit(X[first : first + 100], Y[first : first + 100])
        distance.append(abs(model.decision_function(X) - whole.decision_function(X)).mean())
    assert distance[2] < distance[1] < distance[0]


def test_rows_without_violations_leave_known_labels_as_they_are():
    X, Y = problem()
    model = solver().fit(X, Y)
    scores, bias = model.decision_function(X), model.intercept_.copy()
    calm = bias <= -1
    assert calm.any()
    model.partial_fit(X[:1] * 0, Y[:1] & False)  # no feature at all: scores are biases
    np.testing.assert_allclose(model.decision_function(X)[:, calm], scores[:, calm], atol=1e-9)


def test_two_classes_learn_from_further_samples():
    X, y = classes_problem(2)
    model = solver().fit(X[:60], y[:60])
    before = model.score(X[60:], y[60:])
    model.partial_fit(X[60:], y[60:])
    assert model.score(X[60:], y[60:]) >= before
    assert model.coef_.shape[0] == 1
    one = model.classes_[0]
    rows = y == one
    scores = model.decision_function(X[rows]).mean()
    model.partial_fit(X[rows], y[rows])  # samples of one class only
    assert model.decision_function(X[rows]).mean() < scores


def test_a_label_of_weight_zero_learns_nothing_from_further_samples():
    X, Y = problem()
    model = solver().fit(X, Y)
    before = model.coef_.toarray()
    weights = np.ones(N_LABELS)
    weights[4] = 0
    model.set_params(class_weight=weights).partial_fit(X[:50], Y[::-1][:50])
    changed = (model.coef_.toarray() != before).any(axis=1)
    assert not changed[4]
    assert changed[:4].any()


def test_labels_that_a_stop_kept_from_learning_keep_their_weights():
    X, Y = problem(n_labels=4_000)
    model = solver().fit(X, Y)
    before, bias = model.coef_.toarray(), model.intercept_.copy()
    model.set_params(callback=lambda event: True, tol=1e-300, max_iter=10**9, loss="hinge")
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        model.partial_fit(X, Y)
    kept = (model.coef_.toarray() == before).all(axis=1) & (model.intercept_ == bias)
    assert kept.any()
    assert (abs(model.coef_).sum(axis=1).A1 > 0).sum() >= (abs(before).sum(axis=1) > 0).sum() - 16


def test_the_first_call_is_a_fit():
    X, y = classes_problem()
    frame = pd.DataFrame(X.toarray()).add_prefix("f")
    model = solver().partial_fit(frame, y, classes=sorted(set(y)))
    assert_same(model, solver().fit(frame, y))
    assert model.feature_names_in_[0] == "f0"
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        solver().partial_fit(X, np.full(len(y), "a"))


def test_a_column_that_no_row_has_is_added_without_weights():
    X, Y = problem()
    model = solver().fit(X, Y)
    model.partial_fit(X, np.hstack([Y, np.zeros((len(Y), 2), dtype=bool)]))
    assert model.coef_.shape == (N_LABELS + 2, 60)
    assert model.intercept_[-2:].tolist() == [-1, -1]
    assert model.certificate_ <= model.tol
    assert len(model.trace_) == 0


def test_counts_all_labels_in_class_weights():
    X, Y = problem()
    few, options = Y[:, :20], {"tol": 1e-4, "max_iter": 1000}
    for class_weight in ("balanced", "propensity", {3: 2.0, 30: 4.0}):
        known = {3: 2.0} if isinstance(class_weight, dict) else class_weight
        before = solver(class_weight=known, **options).fit(X, few)
        model = (
            clone(before)
            .fit(X, few)
            .set_params(class_weight=class_weight)
            .partial_fit(X, Y, update_known=False)
        )
        assert_kept_and_added(before, model, solver(class_weight=class_weight, **options).fit(X, Y))


def test_class_weights_in_an_array_stand_in_the_order_of_all_labels():
    X, y = classes_problem()
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.5, 4.0])
    rows = np.isin(y, list("bdf"))
    before = solver(class_weight=weights[1::2], tol=1e-4, max_iter=1000).fit(X[rows], y[rows])
    model = (
        pickle.loads(pickle.dumps(before))
        .set_params(class_weight=weights)
        .partial_fit(X, y, update_known=False)
    )
    whole = solver(class_weight=weights, tol=1e-4, max_iter=1000).fit(X, y)
    assert_kept_and_added(before, model, whole)
    with pytest.raises(ValueError, match="class_weight must have one weight for each of 6 labels"):
        before.partial_fit(X, y, update_known=False)
    with pytest.raises(ValueError, match="class_weight must name labels of y, got 'x'"):
        before.set_params(class_weight={"x": 1.0}).partial_fit(X, y, update_known=False)
    assert before.classes_.tolist() == list("bdf")


def test_added_labels_take_sample_weights():
    X, Y = problem()
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    before = solver(tol=1e-4, max_iter=1000).fit(X, Y[:, :20], sample_weight=weights)
    model = pickle.loads(pickle.dumps(before)).partial_fit(
        X, Y, sample_weight=weights, update_known=False
    )
    whole = solver(tol=1e-4, max_iter=1000).fit(X, Y, sample_weight=weights)
    assert_kept_and_added(before, model, whole)


@pytest.mark.parametrize("load", [False, True])
def test_a_grown_model_is_saved_and_grows_after_loading(tmp_path, load):
    X, Y = problem()
    lists = as_lists(Y)
    few = [[name for name in row if name < "label 20"] for row in lists]
    model = solver().fit(X, few)
    if load:
        model.save(tmp_path / "few")
        model = sublearn.load(tmp_path / "few")
    model.partial_fit(X, lists)
    model.save(tmp_path / "all")
    loaded = sublearn.load(tmp_path / "all")
    assert loaded.predict(X) == model.predict(X)
    assert_same(loaded, solver().fit(X, few).partial_fit(X, lists))
    for ours, theirs in zip(loaded.predict_top_k(X), model.predict_top_k(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_labels_of_any_hashable_type_without_an_order_stand_as_they_came():
    X, y = classes_problem(4)
    zones = {c: datetime.timezone(datetime.timedelta(hours=h)) for h, c in enumerate("cafe")}
    names = [zones[c] for c in y]
    rows = np.isin(y, list("caf"))
    model = solver().fit(X[rows], [names[i] for i in np.flatnonzero(rows)])
    known = model.classes_.tolist()
    model.partial_fit(X, names)
    assert model.classes_.tolist() == [*known, zones["e"]]
    assert np.mean([a == b for a, b in zip(model.predict(X), names, strict=True)]) > 0.7


def test_numbers_of_any_type_are_one_type_of_label():
    X, y = classes_problem()
    codes = np.array(["abcdef".index(c) for c in y])
    rows = codes < 4
    model = solver().fit(X[rows], codes[rows])
    assert model.partial_fit(X, codes.astype(float)).classes_.tolist() == [0, 1, 2, 3, 4, 5]


FORM = r"partial_fit: y must be {} as in fit, got {}"


def test_refuses_labels_in_another_form():
    X, Y = problem()
    y = np.arange(len(Y)) % 5
    forms = {
        "one label per sample": y,
        "an indicator matrix": Y,
        "a list of label lists": [[k] for k in y],
    }
    for first, second in itertools.permutations(forms, 2):
        model = solver().fit(X, forms[first])
        with pytest.raises(ValueError, match=FORM.format(first, second)):
            model.partial_fit(X, forms[second])


@pytest.mark.parametrize("new", [np.array([7, 8]), np.array([True, False])])
def test_refuses_labels_of_another_type(new):
    X, y = classes_problem()
    model = solver().fit(X, y)
    kind = "bool" if new.dtype == bool else "number"
    message = f"partial_fit: y must hold labels of type str as in fit, got {kind}"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[:2], new)
    assert model.classes_.tolist() == list("abcdef")


def test_refuses_fewer_columns_other_features_and_other_labels_than_promised():
    X, Y = problem()
    model = solver().fit(X, Y)
    before = pickle.loads(pickle.dumps(model))
    message = r"partial_fit: y must have a column for each of 37 known labels, got 36 columns"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y[:, :-1])
    with pytest.raises(ValueError, match="has 59 features, but PPDSparseClassifier is expecting"):
        model.partial_fit(X[:, :-1], Y)
    with pytest.raises(ValueError, match=r"partial_fit: y must hold labels of classes only, got 3"):
        model.partial_fit(X, np.hstack([Y, Y[:, :1]]), classes=np.delete(np.arange(38), 3))
    with pytest.raises(ValueError, match=r"must have one row per sample \(300\), got 299"):
        model.partial_fit(X, Y[:-1])
    assert_same(model, before)


def test_refuses_features_that_the_precision_of_the_model_cannot_hold():
    X, Y = problem()
    model = solver().fit(X.astype(np.float32), Y[:, :30])
    with pytest.raises(
        ValueError, match=r"partial_fit: X must be at most 1e\+15 in size in float32"
    ):
        model.partial_fit(X * 1e50, Y)
    assert model.partial_fit(X, Y).coef_.dtype == np.float32


def test_a_stopped_addition_has_no_certificate():
    X, Y = problem(n_labels=400)
    model = solver().fit(X, Y[:, :20])
    model.set_params(callback=lambda event: True, tol=1e-300, max_iter=10**9, loss="hinge")
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        model.partial_fit(X, Y)
    assert model.certificate_ == np.inf
    assert model.decision_function(X).shape == Y.shape


# --- labels removed ----------------------------------------------------------------------------


def test_removes_labels_and_leaves_the_others_as_they_are(tmp_path):
    X, Y = problem()
    lists = as_lists(Y)
    model = solver().fit(X, lists)
    scores = model.decision_function(X)
    keep = np.ones(N_LABELS, dtype=bool)
    keep[[3, 17]] = False
    assert model.remove_labels(["label 03", np.str_("label 17"), "label 03"]) is model
    np.testing.assert_array_equal(model.decision_function(X), scores[:, keep])
    assert model.classes_.tolist() == [f"label {k:02}" for k in np.flatnonzero(keep)]
    assert not {"label 03", "label 17"} & set(itertools.chain(*model.predict(X)))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        sublearn.load(tmp_path / "model").decision_function(X), scores[:, keep]
    )


def test_a_removed_label_can_be_learnt_again():
    X, y = classes_problem()
    model = solver(tol=1e-4, max_iter=1000).fit(X, y)
    before = arrays(pickle.loads(pickle.dumps(model)))
    model.remove_labels(iter("c")).partial_fit(X, y, update_known=False)
    assert model.classes_.tolist() == list("abcdef")
    for found, expected in zip(arrays(model), before, strict=True):
        np.testing.assert_allclose(found[2], expected[2], atol=0.02)
        np.testing.assert_array_equal(np.delete(found, 2, 0), np.delete(expected, 2, 0))


def test_two_classes_of_several_are_left_with_two_scores():
    X, y = classes_problem(3)
    model = solver().fit(X, y)
    scores = model.decision_function(X)
    model.remove_labels(["f"])
    np.testing.assert_array_equal(model.decision_function(X), scores[:, :2])
    assert set(model.predict(X)) == {"a", "c"}
    assert model.remove_labels([]).classes_.tolist() == ["a", "c"]


def test_refuses_to_remove_what_it_must_keep():
    X, y = classes_problem(3)
    model = solver().fit(X, y)
    with pytest.raises(ValueError, match="remove_labels: labels must be known ones, got 'x'"):
        model.remove_labels(["a", "x"])
    with pytest.raises(ValueError, match="must leave at least 2 labels, got 2 of 3 to remove"):
        model.remove_labels(["a", "c"])
    with pytest.raises(ValueError, match="must leave at least 2 labels, got 1 of 2 to remove"):
        solver().fit(X, y == "a").remove_labels([True])
    lists = solver().fit(X, [[name] for name in y])
    with pytest.raises(ValueError, match="must leave at least 1 label, got 3 of 3 to remove"):
        lists.remove_labels(["a", "c", "f"])
    assert set(itertools.chain(*lists.remove_labels("af").predict(X))) == {"c"}
    with pytest.raises(ValueError, match="remove_labels needs labels with names"):
        solver().fit(*problem()).remove_labels([3])
    with pytest.raises(NotFittedError):
        solver().remove_labels([3])
    assert model.classes_.tolist() == ["a", "c", "f"]


def test_fitting_again_raises_no_warnings():
    X, Y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver(warm_start=True).fit(X, Y).fit(X, Y).partial_fit(X, np.hstack([Y, Y[:, :2]]))
