"""Which labels `predict` gives: thresholds, largest expected F1, choices for macro-averages."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, macro_top_k
from sublearn.extreme.thresholds import Entries, best_threshold, best_thresholds, expected_f1
from sublearn.metrics import f1_macro, f1_micro, f1_samples, macro_f1_at_k, macro_recall_at_k

METRICS = {"f1_micro": f1_micro, "f1_samples": f1_samples, "f1_macro": f1_macro}


def problem(seed=0, n_rows=400, n_features=40, n_labels=12):
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    W = np.random.default_rng(9).normal(size=(n_features, n_labels))
    scores = X @ W + rng.normal(size=(n_rows, n_labels))
    return normalize(X), scores > np.quantile(scores, 0.9)


def fitted(classifier=PPDSparseClassifier, **options):
    X, Y = problem()
    return classifier(random_state=0, **options).fit(X[:200], Y[:200]), X[200:], Y[200:]


def entries(scores, Y):
    rows, labels = np.indices(scores.shape)
    return Entries(rows.ravel(), labels.ravel(), scores.ravel(), sp.csr_matrix(Y))


def sets_of(scores, thresholds, at_least_one):
    found = scores > thresholds
    if at_least_one:
        none = ~found.any(axis=1)
        found[none, scores[none].argmax(axis=1)] = True
    return found


# --- thresholds --------------------------------------------------------------------------------


@pytest.mark.parametrize("at_least_one", [False, True])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_no_threshold_is_better(metric, at_least_one, seed):
    rng = np.random.default_rng(seed)
    Y = rng.random((30, 6)) < 0.3
    scores = np.round(rng.normal(size=Y.shape) + Y, 1)  # with ties
    found = best_threshold(entries(scores, Y), metric, at_least_one=at_least_one)
    judge = METRICS[metric]
    value = judge(Y, sets_of(scores, found, at_least_one))
    everywhere = [scores.min() - 1, *np.unique(scores)]
    best = max(judge(Y, sets_of(scores, t, at_least_one)) for t in everywhere)
    assert value == pytest.approx(best)


def test_each_label_has_the_threshold_of_its_largest_f1():
    rng = np.random.default_rng(0)
    Y = rng.random((60, 5)) < [0.5, 0.3, 0.2, 0.1, 0.03]
    scores = np.round(rng.normal(size=Y.shape) + Y, 1)
    found = best_thresholds(entries(scores, Y), -9.0, min_positives=4)
    for j in range(5):
        if Y[:, j].sum() < 4:
            assert found[j] == -9.0
            continue
        f1 = lambda t: f1_micro(Y[:, [j, j]], np.tile(scores[:, [j]] > t, 2))  # noqa: B023, E731
        assert f1(found[j]) == pytest.approx(max(map(f1, [-9.0, *scores[:, j]])))


@pytest.mark.parametrize("classifier", [PPDSparseClassifier, PDSparseClassifier])
@pytest.mark.parametrize("rule", ["global", "per_label"])
def test_predict_goes_by_the_thresholds(classifier, rule):
    model, X, Y = fitted(classifier)
    before = f1_micro(Y[100:], model.predict(X[100:]))
    assert model.tune_thresholds(X[:100], Y[:100], rule, at_least_one=False) is model
    thresholds = model.decision_.thresholds
    assert (len(set(thresholds)) > 1) == (rule == "per_label")
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), (scores > thresholds).astype(int))
    assert f1_micro(Y[100:], model.predict(X[100:])) > before
    model.tune_thresholds(X[:100], Y[:100], rule, at_least_one=True)
    found = model.predict(X)
    assert found.any(axis=1)[np.diff(X.indptr) > 0].all()
    np.testing.assert_array_equal(
        found, sets_of(scores, model.decision_.thresholds, at_least_one=True)
    )


def test_a_row_without_features_is_given_no_label_for_company():
    model, X, Y = fitted()
    model.tune_thresholds(X, Y)
    assert model.intercept_.max() < model.decision_.shared
    assert not model.predict(sp.csr_matrix((1, X.shape[1]))).any()


@pytest.mark.parametrize("rule", ["global", "per_label", "expected_f1"])
def test_decisions_are_saved_copied_and_compressed(rule, tmp_path):
    model, X, Y = fitted()
    model.calibrate(X, Y).tune_thresholds(X, Y, rule)
    model.save(tmp_path / "m")
    expected = model.predict(X)
    for other in (sublearn.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), expected)
    assert model.compress(16).decision_.rule == rule
    model.fit(X, Y)
    assert not hasattr(model, "decision_")


def test_thresholds_go_with_their_labels():
    X, Y = problem()
    lists = [[f"l{j:02}" for j in np.flatnonzero(row)] for row in Y]
    model = PPDSparseClassifier(random_state=0).fit(X[:200], lists[:200])
    model.tune_thresholds(X[200:], lists[200:], "per_label")
    before = dict(zip(model.classes_.tolist(), model.decision_.thresholds.tolist(), strict=True))
    more = [[*row, "extra"] if i % 4 == 0 else row for i, row in enumerate(lists)]
    model.partial_fit(X, more, update_known=False).remove_labels(["l03"])
    after = dict(zip(model.classes_.tolist(), model.decision_.thresholds.tolist(), strict=True))
    assert after.pop("extra") == model.decision_.shared
    assert after == {name: t for name, t in before.items() if name != "l03"}


def test_a_decision_by_probabilities_goes_where_they_go():
    model, X, Y = fitted()
    with pytest.raises(ParameterError, match=r"before calibrate\(X, y\) was called on held-out"):
        model.tune_thresholds(X, Y, "expected_f1")
    model.calibrate(X, Y).tune_thresholds(X, Y, "expected_f1").partial_fit(X, Y)
    assert not hasattr(model, "decision_")


def test_refuses_what_has_no_sets():
    X, Y = problem()
    model = PPDSparseClassifier(random_state=0).fit(X, Y.argmax(axis=1))
    with pytest.raises(ValueError, match="its predict gives the best label"):
        model.tune_thresholds(X, Y.argmax(axis=1))
    model, X, Y = fitted()
    with pytest.raises(ParameterError, match=r"tune_thresholds.rule must be 'global', 'per_label'"):
        model.tune_thresholds(X, Y, "best")
    with pytest.raises(ParameterError, match=r"tune_thresholds.metric must be 'f1_micro'"):
        model.tune_thresholds(X, Y, metric="accuracy")
    with pytest.raises(ValueError, match=r"tune_thresholds.y must have 12 columns as in fit"):
        model.tune_thresholds(X, Y[:, :3])


# --- expected F1 -------------------------------------------------------------------------------


def expectation(p, chosen):
    """E F1 of a set, by all outcomes of independent labels."""
    total = 0.0
    for outcome in itertools.product([0, 1], repeat=len(p)):
        y = np.array(outcome)
        if y.any():
            chance = np.prod(np.where(y, p, 1 - p))
            total += chance * 2 * y[list(chosen)].sum() / (len(chosen) + y.sum())
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_the_most_probable_is_the_best_of_all_sets(seed):
    p = np.sort(np.random.default_rng(seed).random(6) ** 2)[::-1]
    found = expected_f1(p[None], np.zeros(1))[0]
    for k in range(1, 7):
        assert found[k - 1] == pytest.approx(expectation(p, range(k)))
    every = [c for k in range(1, 7) for c in itertools.combinations(range(6), k)]
    assert found.max() == pytest.approx(max(expectation(p, c) for c in every))


def test_labels_beyond_those_listed_count_by_their_number():
    p, many = np.array([0.9, 0.5, 0.3]), np.full(4000, 0.0005)
    found = expected_f1(p[None], np.array([many.sum()]))[0]
    rng = np.random.default_rng(0)
    listed = rng.random((200_000, 3)) < p
    others = rng.binomial(4000, 0.0005, 200_000)
    for k in (1, 2, 3):
        hits = listed[:, :k].sum(axis=1)
        drawn = np.mean(2 * hits / (k + listed.sum(axis=1) + others))
        assert found[k - 1] == pytest.approx(drawn, abs=5e-3)


def test_predict_takes_the_set_of_largest_expected_f1():
    model, X, Y = fitted()
    model.calibrate(X, Y).tune_thresholds(X, Y, "expected_f1")
    chances = model.predict_proba(X[:20])
    for row, p in zip(model.predict(X[:20]), chances, strict=True):
        order = np.argsort(-p, kind="stable")
        best = 1 + expected_f1(p[order][None], np.zeros(1))[0].argmax()
        assert set(np.flatnonzero(row)) == set(order[:best].tolist())


# --- macro-averages ----------------------------------------------------------------------------


def utility(labels, chances, chosen, n_labels, metric):
    both, ranked, true = np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels)
    np.add.at(true, labels, chances)
    for row in range(len(labels)):
        for j in chosen[row]:
            both[j] += chances[row][labels[row] == j][0]
            ranked[j] += 1
    below = {"f1": ranked + true, "precision": ranked, "recall": true}[metric]
    factor = 2 if metric == "f1" else 1
    return np.mean(factor * both / np.where(below > 0, below, 1))


@pytest.mark.parametrize("metric", ["f1", "precision", "recall"])
def test_no_sample_alone_can_raise_the_macro_average(metric):
    rng = np.random.default_rng(0)
    labels = np.array([rng.permutation(7)[:5] for _ in range(12)])
    chances = rng.random(labels.shape)
    found = macro_top_k(labels, chances, 2, metric=metric, tol=0.0, max_iter=100)
    value = utility(labels, chances, found, 7, metric)
    for row in range(len(labels)):
        for pair in itertools.combinations(labels[row], 2):
            other = found.copy()
            other[row] = pair
            assert utility(labels, chances, other, 7, metric) <= value + 1e-12
    likely = np.take_along_axis(labels, np.argsort(-chances, axis=1)[:, :2], axis=1)
    assert value >= utility(labels, chances, likely, 7, metric)


def test_choices_for_macro_averages_are_better_at_them():
    X, Y = problem(n_rows=1500, n_labels=60)
    model = PPDSparseClassifier(random_state=0).fit(X[:600], Y[:600])
    model.calibrate(X[600:1000], Y[600:1000])
    labels, chances = model.predict_proba_top_k(X[1000:], 30)
    plain = model.predict_top_k(X[1000:], 3)[0]
    for metric, judge in (("f1", macro_f1_at_k), ("recall", macro_recall_at_k)):
        chosen = macro_top_k(labels, chances, 3, metric=metric)
        assert judge(Y[1000:], chosen, 3) > judge(Y[1000:], plain, 3)


def test_macro_choices_refuse_what_does_not_fit():
    labels, chances = np.array([[0, 1]]), np.array([[0.5, 0.2]])
    with pytest.raises(ValueError, match=r"must have one shape with at least k=3 columns"):
        macro_top_k(labels, chances, 3)
    with pytest.raises(ValueError, match=r"probabilities must be in \[0, 1\]"):
        macro_top_k(labels, chances * 4, 1)
    with pytest.raises(ParameterError, match=r"macro_top_k.metric must be 'f1', 'precision'"):
        macro_top_k(labels, chances, 1, metric="accuracy")


# --- names of columns --------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [PPDSparseClassifier, PDSparseClassifier])
def test_a_frame_of_labels_keeps_its_names(classifier, tmp_path):
    X, Y = problem()
    names = [f"topic {j}" for j in range(Y.shape[1])]
    model = classifier(random_state=0).fit(X, pd.DataFrame(Y.astype(int), columns=names))
    assert model.label_names_.tolist() == names
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    best = loaded.predict_top_k(X[:3], 1)[0][:, 0]
    assert loaded.label_names_[best].tolist() == [names[j] for j in best]
    assert not hasattr(model.fit(X, Y), "label_names_")


def test_columns_that_come_later_have_no_names():
    X, Y = problem()
    frame = pd.DataFrame(Y[:, :8].astype(int)).add_prefix("t")
    model = PPDSparseClassifier(random_state=0).fit(X, frame).partial_fit(X, frame)
    assert model.label_names_[0] == "t0"
    assert not hasattr(model.partial_fit(X, Y), "label_names_")


def test_k_above_the_number_of_labels_means_all():
    model, X, _ = fitted()
    labels, scores = model.predict_top_k(X[:2], 10**9)
    assert labels.shape == scores.shape == (2, 12)
    model.calibrate(*problem())
    assert model.predict_proba_top_k(X[:2], 13)[0].shape == (2, 12)
