"""PD-Sparse against solvers that share nothing with it: cvxpy, and liblinear's Crammer-Singer."""

import functools
import itertools

import numpy as np
import pd_judges
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from sublearn.extreme import PDSparseClassifier

KINDS = ("multiclass", "multilabel")
SEARCHES = ("auto", "exact", "partition", "sampled")
OBJECTIVES = list(itertools.product(KINDS, (0.0, 0.1, 1.0), (0.1, 1.0, 10.0)))


def awkward_problem(kind, seed=0, n_rows=40, n_features=9, n_labels=7):
    """Few rows, and every corner that data can have."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.4)
    X[[3, 7]] = 0  # rows without features
    X[10:13] = X[10]  # one row three times, under different labels
    X[20] *= 5  # a row much longer than the others
    X[:, 4] = 0  # a feature that no row has
    if kind == "multiclass":
        return X, np.eye(n_labels, dtype=bool)[rng.integers(0, n_labels - 1, n_rows)]
    Y = rng.random((n_rows, n_labels)) < 0.25
    Y[5] = False  # no labels: no loss
    Y[6] = True  # all labels: no loss
    Y[:, 2] = False  # a label on no row
    Y[:5, 3] = True
    return X, Y


@functools.cache
def best_value(kind, l1, C):
    return pd_judges.optimum(*awkward_problem(kind), l1=l1, C=C)


def solver(l1, C, **options):
    options = {"tol": 1e-5, "max_iter": 50_000, "random_state": 0} | options
    return PDSparseClassifier(C, l1=l1, **options)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(("kind", "l1", "C"), OBJECTIVES)
def test_reaches_the_optimum_of_cvxpy(kind, l1, C, search):
    X, Y = awkward_problem(kind)
    model = solver(l1, C, search=search).fit(X, Y)
    assert model.objective_ == pytest.approx(best_value(kind, l1, C), rel=1e-5)
    assert -1e-12 <= model.certificate_ <= 1e-5


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_intercept_is_free_of_l1(kind, search):
    X, Y = awkward_problem(kind)
    model = solver(1.0, 2.0, fit_intercept=True, search=search).fit(X, Y)
    assert model.objective_ == pytest.approx(
        pd_judges.optimum(X, Y, l1=1.0, C=2.0, fit_intercept=True), rel=1e-5
    )
    assert model.certificate_ <= 1e-5
    assert (model.intercept_ != 0).any()


@pytest.mark.parametrize(("kind", "l1", "C"), OBJECTIVES)
def test_reaches_the_optimum_in_single_precision(kind, l1, C):
    X, Y = awkward_problem(kind)
    model = solver(l1, C, tol=1e-3).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float32
    assert model.objective_ == pytest.approx(best_value(kind, l1, C), rel=2e-3)


@pytest.mark.parametrize("max_iter", [1, 2, 5, 40])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_is_never_further_from_the_optimum_than_the_certificate(kind, search, max_iter):
    X, Y = awkward_problem(kind)
    best = best_value(kind, 0.1, 1.0)
    for seed in range(4):
        model = solver(0.1, 1.0, search=search, max_iter=max_iter, random_state=seed).fit(X, Y)
        value = pd_judges.objective(model.coef_.toarray(), X, Y, l1=0.1, C=1.0)
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        distance = model.objective_ - best
        assert -1e-7 * best <= distance <= model.certificate_ * model.objective_ + 1e-7 * best
        assert (model.trace_["dual"] <= best * (1 + 1e-7)).all()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_dual_never_falls(search):
    X, Y = awkward_problem("multilabel")
    model = solver(0.1, 1.0, search=search, max_iter=100, tol=1e-12).fit(X, Y)
    assert (np.diff(model.trace_["dual"]) >= -1e-10).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sample_weights_multiply_the_losses(kind):
    X, Y = awkward_problem(kind)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 3.0], len(X))
    model = solver(0.1, 1.0).fit(X, Y, sample_weight=weights)
    best = pd_judges.optimum(X, Y, l1=0.1, C=1.0, weights=weights)
    assert model.objective_ == pytest.approx(best, rel=1e-5)


def test_class_weights_are_the_mean_of_a_rows_labels():
    X, Y = awkward_problem("multilabel")
    of_labels = np.array([1.0, 2.0, 1.0, 0.5, 4.0, 1.0, 3.0])
    rows = Y @ of_labels / np.maximum(Y.sum(axis=1), 1)
    best = pd_judges.optimum(X, Y, l1=0.1, C=1.0, weights=rows)
    model = solver(0.1, 1.0, class_weight=of_labels).fit(X, Y)
    assert model.objective_ == pytest.approx(best, rel=1e-5)


def test_two_classes_are_the_problem_of_two_labels():
    X, Y = awkward_problem("multiclass")
    y = Y[:, 0].astype(int)
    model = solver(0.1, 1.0, tol=1e-8).fit(X, y)
    both = solver(0.1, 1.0, tol=1e-8).fit(X, y[:, None] == np.arange(2))
    difference = both.coef_.toarray()[1] - both.coef_.toarray()[0]
    np.testing.assert_allclose(model.coef_.toarray()[0], difference, atol=1e-12)
    assert model.objective_ == both.objective_


def test_a_refit_solves_the_problem_without_l1_on_the_support():
    X, Y = awkward_problem("multiclass")
    options = {"early_stopping": 10**6, "search": "exact"}
    held_out = X[:1], Y[:1]  # hit or missed alike by all passes: the first one decides the support
    first = solver(0.3, 1.0, max_iter=1, tol=1e-9, **options)
    with pytest.warns(ConvergenceWarning):
        first.fit(X, Y, eval_set=held_out)
    support = first.coef_.toarray().T != 0
    assert 0 < support.sum() < support.size
    model = solver(0.3, 1.0, tol=1e-6, refit=True, **options).fit(X, Y, eval_set=held_out)
    refit = model.trace_["refit"] == 1
    best = pd_judges.optimum(X, Y, l1=0.0, C=1.0, support=support)
    assert model.trace_["dual"][refit][-1] == pytest.approx(best, rel=1e-5)
    assert model.trace_["objective"][refit][-1] == pytest.approx(best, rel=1e-5)


def test_agrees_with_liblinear():
    rng = np.random.default_rng(5)
    X = normalize(rng.normal(size=(300, 30)) * (rng.random((300, 30)) < 0.3))
    y = (X @ rng.normal(size=(30, 6)) + 0.3 * rng.normal(size=(300, 6))).argmax(axis=1)
    model = solver(0.0, 0.5, tol=1e-7, early_stopping=False).fit(X, y)
    judge = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-7)
    judge.set_params(max_iter=200_000).fit(X, y)
    np.testing.assert_allclose(model.coef_.toarray(), judge.coef_, atol=2e-3)
    Y = y[:, None] == np.arange(6)
    theirs = pd_judges.objective(judge.coef_, X, Y, l1=0.0, C=0.5)
    assert model.objective_ == pytest.approx(theirs, rel=1e-5)
