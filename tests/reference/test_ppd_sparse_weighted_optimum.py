"""PPD-Sparse with weights of samples and labels, and from other starts, against cvxpy."""

import itertools

import numpy as np
import ppd_judges
import pytest

from sublearn.extreme import PPDSparseClassifier

PROBLEMS = list(itertools.product(("squared_hinge", "hinge"), (True, "fixed")))
N_ROWS, N_FEATURES, N_LABELS = 40, 9, 20


def problem(seed=0):
    """Rows without features, a feature no row has, labels on all, on one and on no row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.4)
    Y = rng.random((N_ROWS, N_LABELS)) < 0.15
    X[[3, 7]] = 0
    Y[3, :4] = True
    X[:, 4] = 0
    Y[:, 8] = True
    Y[:, 9] = np.arange(N_ROWS) == 5
    Y[:, 17] = False
    return X, Y


def row_weights(seed=0, spread=2.0):
    return np.exp(spread * np.random.default_rng(seed).normal(size=N_ROWS))


def label_weights(seed=0):
    return np.exp(np.random.default_rng(seed + 1).normal(size=N_LABELS))


def factors(Y, rows=None, labels=None):
    """What the loss of each row counts for each label."""
    rows = np.ones(len(Y)) if rows is None else rows
    labels = np.ones(Y.shape[1]) if labels is None else labels
    return rows[:, None] * np.where(Y, labels, 1.0)


def solver(loss, fit_intercept, **options):
    options = {"tol": 1e-6, "max_iter": 20_000, "random_state": 0, "l1": 0.1} | options
    return PPDSparseClassifier(loss=loss, fit_intercept=fit_intercept, **options)


def judged(model, X, Y, weights=None):
    """The model's objective and the smallest one, both computed outside."""
    terms = {name: getattr(model, name) for name in ("loss", "fit_intercept", "l1", "C")}
    W, b = model.coef_.toarray(), model.intercept_
    found = ppd_judges.objective(W, b, X, Y, weights=weights, **terms)
    return found, ppd_judges.optimum(X, Y, weights=weights, **terms)


def assert_optimal(model, X, Y, weights=None, rel=1e-6):
    found, best = judged(model, X, Y, weights)
    assert found == pytest.approx(best, rel=rel)
    assert model.objective_ == pytest.approx(found, rel=rel)
    assert 0 <= model.certificate_ <= model.tol


@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_reaches_the_optimum_with_weighted_samples(loss, fit_intercept, search):
    X, Y = problem()
    rows = row_weights()
    model = solver(loss, fit_intercept, search=search).fit(X, Y, sample_weight=rows)
    assert_optimal(model, X, Y, factors(Y, rows))


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_reaches_the_optimum_with_weighted_labels(loss, fit_intercept):
    X, Y = problem()
    labels = label_weights()
    model = solver(loss, fit_intercept, class_weight=labels).fit(X, Y)
    assert_optimal(model, X, Y, factors(Y, labels=labels))


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_reaches_the_optimum_with_both(loss, fit_intercept, C):
    X, Y = problem(1)
    rows, labels = row_weights(1), label_weights(1)
    model = solver(loss, fit_intercept, C=C, class_weight=labels).fit(X, Y, sample_weight=rows)
    assert_optimal(model, X, Y, factors(Y, rows, labels))


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_reaches_the_optimum_with_weights_in_single_precision(loss, fit_intercept):
    X, Y = problem()
    X = X.astype(np.float32)
    rows, labels = row_weights(), label_weights()
    model = solver(loss, fit_intercept, tol=1e-4, class_weight=labels).fit(X, Y, sample_weight=rows)
    assert model.coef_.dtype == np.float32
    assert_optimal(model, X.astype(float), Y, factors(Y, rows, labels), rel=2e-4)


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_is_never_further_from_the_weighted_optimum_than_the_certificate(loss, fit_intercept):
    X, Y = problem()
    weights = factors(Y, row_weights(), label_weights())
    for tol in (0.5, 0.1, 0.01):
        model = solver(loss, fit_intercept, tol=tol, class_weight=label_weights())
        found, best = judged(model.fit(X, Y, sample_weight=row_weights()), X, Y, weights)
        assert model.certificate_ <= tol
        assert -1e-7 * best <= found - best <= model.certificate_ * found + 1e-7 * best


@pytest.mark.parametrize("max_iter", [1, 2, 4])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_certifies_what_it_returns_at_the_iteration_limit_warm_or_cold(
    loss, fit_intercept, max_iter
):
    X, Y = problem()
    rows, labels = row_weights(), label_weights()
    model = solver(loss, fit_intercept, class_weight=labels, warm_start=True).fit(X, Y)
    model.set_params(max_iter=max_iter, tol=1e-12)
    for _ in range(2):
        found, best = judged(model.fit(X, Y, sample_weight=rows), X, Y, factors(Y, rows, labels))
        assert model.objective_ == pytest.approx(found, rel=1e-11)
        assert found - best <= model.certificate_ * found * (1 + 1e-9)
        model = solver(loss, fit_intercept, class_weight=labels, max_iter=max_iter, tol=1e-12)


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_two_classes_both_have_their_weight(loss, fit_intercept):
    X, Y = problem(2)
    y = np.where(Y[:, 0], "yes", "no")
    model = solver(loss, fit_intercept, class_weight={"no": 0.3, "yes": 5.0}).fit(X, y)
    assert_optimal(model, X, Y[:, :1], np.where(Y[:, :1], 5.0, 0.3))


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_a_warm_start_reaches_the_optimum_of_another_problem(loss, fit_intercept):
    X, Y = problem()
    rows, labels = row_weights(), label_weights()
    model = solver(loss, fit_intercept, warm_start=True).fit(*problem(3))
    model.set_params(class_weight=labels).fit(X, Y, sample_weight=rows)
    assert_optimal(model, X, Y, factors(Y, rows, labels))
    model.set_params(class_weight=None, l1=1.0, C=3.0).fit(X, Y)
    assert_optimal(model, X, Y)
    model.set_params(l1=0.0, C=0.5).fit(X, Y)
    assert_optimal(model, X, Y)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize(("before", "after"), [(True, "fixed"), ("fixed", True)])
def test_a_warm_start_reaches_the_optimum_with_the_other_intercept(loss, before, after):
    # A label on most rows, some of them empty, has a learned intercept above one: a start that
    # took it for the fixed one would leave the empty rows without their duals.
    X, Y = problem()
    Y[:, 0] = True
    Y[[0, 1], 0] = False
    X[30:] = 0
    model = solver(loss, before, C=10.0, warm_start=True).fit(X, Y)
    assert_optimal(model, X, Y)
    assert before == "fixed" or model.intercept_[0] >= 1
    assert_optimal(model.set_params(fit_intercept=after).fit(X, Y), X, Y)


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_each_model_of_a_path_is_optimal(loss, fit_intercept):
    X, Y = problem()
    rows = row_weights(spread=1.0)
    for model in solver(loss, fit_intercept).fit_path(X, Y, [0.01, 1.0, 0.1], sample_weight=rows):
        assert_optimal(model, X, Y, factors(Y, rows))


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_labels_that_were_added_are_optimal(loss, fit_intercept):
    X, Y = problem()
    rows, labels = row_weights(), label_weights()
    model = solver(loss, fit_intercept, class_weight=labels[:7]).fit(
        X, Y[:, :7], sample_weight=rows
    )
    model.set_params(class_weight=labels)
    model.partial_fit(X, Y, sample_weight=rows, update_known=False)
    assert_optimal(model, X, Y, factors(Y, rows, labels))


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_further_rows_are_learnt_by_the_stated_problem(loss, fit_intercept):
    X, Y = problem()
    model = solver(loss, fit_intercept, tol=1e-8).fit(X[:25], Y[:25])
    before = model.coef_.toarray(), model.intercept_.copy()
    terms = {name: getattr(model, name) for name in ("loss", "fit_intercept", "l1", "C")}
    best, W, b = ppd_judges.further_optimum(X[25:], Y[25:], before, **terms)
    model.partial_fit(X[25:], Y[25:])
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(model.coef_.toarray(), W, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-3)
    assert 0 <= model.certificate_ <= 1e-5
