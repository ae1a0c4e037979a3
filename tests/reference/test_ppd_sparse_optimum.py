"""PPD-Sparse against solvers that share nothing with it: cvxpy and scikit-learn's LinearSVC."""

import functools
import itertools

import numpy as np
import ppd_judges
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from sublearn.extreme import PPDSparseClassifier

LOSSES = ("squared_hinge", "hinge")
INTERCEPTS = (True, "fixed")
PROBLEMS = list(itertools.product(LOSSES, INTERCEPTS))
OBJECTIVES = list(itertools.product(LOSSES, INTERCEPTS, (0.0, 0.1, 1.0), (0.1, 1.0, 10.0)))


def awkward_problem(seed=0, n_rows=40, n_features=9, n_labels=20):
    """Few rows, more labels than a block has lanes, and every corner that data can have."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.4)
    Y = rng.random((n_rows, n_labels)) < 0.15
    X[[3, 7]] = 0  # rows without features, one of them a positive
    Y[3, :4] = True
    X[10:13] = X[10]  # one row three times, under different labels
    Y[10, 5], Y[11, 5] = True, False
    X[20] *= 5  # a row much longer than the others
    X[:, 4] = 0  # a feature that no row has
    Y[:, 8] = True  # a label on all rows
    Y[:, 9] = np.arange(n_rows) == 5  # a label on one row
    Y[:, [2, 17]] = False  # labels without positives
    return X, Y


@functools.cache
def best_value(loss, fit_intercept, l1, C, seed=0):
    return ppd_judges.optimum(
        *awkward_problem(seed), loss=loss, fit_intercept=fit_intercept, l1=l1, C=C
    )


def solver(loss, fit_intercept, l1, C, **options):
    options = {"tol": 1e-6, "max_iter": 20_000, "random_state": 0} | options
    return PPDSparseClassifier(C, l1=l1, loss=loss, fit_intercept=fit_intercept, **options)


@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize(("loss", "fit_intercept", "l1", "C"), OBJECTIVES)
def test_reaches_the_optimum_of_cvxpy(loss, fit_intercept, l1, C, search):
    X, Y = awkward_problem()
    model = solver(loss, fit_intercept, l1, C, search=search).fit(X, Y)
    best = best_value(loss, fit_intercept, l1, C)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert 0 <= model.certificate_ <= 1e-6


@pytest.mark.parametrize(("loss", "fit_intercept", "l1", "C"), OBJECTIVES)
def test_reaches_the_optimum_in_single_precision(loss, fit_intercept, l1, C):
    X, Y = awkward_problem()
    model = solver(loss, fit_intercept, l1, C, tol=1e-4).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float32
    assert model.objective_ == pytest.approx(best_value(loss, fit_intercept, l1, C), rel=2e-4)
    assert model.certificate_ <= 1e-4


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-4), (np.float64, 1e-7)])
@pytest.mark.parametrize("n_labels", [2, 5])
def test_certifies_rows_of_any_length(n_labels, dtype, tol, index_type):
    # Two labels are corrected one by one, five together; the search scores rows by other loops.
    rng = np.random.default_rng(1)
    lengths = [*range(12), 255, 256, 257, 300, 517, 700] * 3
    X = np.zeros((len(lengths), 700))
    for row, length in zip(X, lengths, strict=True):
        row[rng.permutation(700)[:length]] = rng.normal(size=length) / np.sqrt(max(length, 1))
    Y = rng.random((len(X), n_labels)) < 0.3
    sparse = sp.csr_matrix(X.astype(dtype))
    sparse.indptr, sparse.indices = (a.astype(index_type) for a in (sparse.indptr, sparse.indices))
    model = solver("squared_hinge", True, 0.01, 1.0, tol=tol).fit(sparse, Y)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    value = ppd_judges.objective(
        coef, model.intercept_, X, Y, loss="squared_hinge", fit_intercept=True, l1=0.01, C=1.0
    )
    assert model.certificate_ <= tol
    assert model.objective_ == pytest.approx(value, rel=max(tol, 1e-6))


@pytest.mark.parametrize("tol", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_is_never_further_from_the_optimum_than_the_certificate(loss, fit_intercept, search, tol):
    X, Y = awkward_problem()
    best = best_value(loss, fit_intercept, 0.1, 1.0)
    for seed in range(5):
        model = solver(
            loss, fit_intercept, 0.1, 1.0, tol=tol, search=search, random_state=seed
        ).fit(X, Y)
        assert model.certificate_ <= tol
        distance = model.objective_ - best
        assert -1e-7 * best <= distance <= model.certificate_ * model.objective_ + 1e-7 * best


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_certifies_the_weights_it_returns_at_the_iteration_limit(
    loss, fit_intercept, search, max_iter
):
    X, Y = awkward_problem()
    terms = {"loss": loss, "fit_intercept": fit_intercept, "l1": 0.1, "C": 1.0}
    model = solver(**terms, search=search, max_iter=max_iter, tol=1e-9).fit(X, Y)
    recomputed = ppd_judges.objective(model.coef_.toarray(), model.intercept_, X, Y, **terms)
    assert model.objective_ == pytest.approx(recomputed, rel=1e-12)
    distance = model.objective_ - best_value(**terms)
    assert distance <= model.certificate_ * model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(("dtype", "rel"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_objective_is_that_of_the_weights_found(loss, fit_intercept, search, dtype, rel):
    X, Y = awkward_problem()
    terms = {"loss": loss, "fit_intercept": fit_intercept, "l1": 0.3, "C": 2.0}
    model = solver(**terms, search=search, tol=1e-2).fit(X.astype(dtype), Y)
    W, b = model.coef_.toarray(), model.intercept_
    expected = ppd_judges.objective(W, b, X.astype(dtype).astype(float), Y, **terms)
    assert model.objective_ == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("loss", LOSSES)
def test_positives_far_beyond_the_margin_do_not_blur_the_objective(loss):
    # Five positives score thousands where 1 is enough; their squares must not swallow the losses
    # of the negatives, which are summed in single precision beside them.
    rng = np.random.default_rng(0)
    X = np.hstack([np.zeros((200, 1)), normalize(rng.normal(size=(200, 10)))])
    Y = np.zeros((200, 2), dtype=bool)
    Y[:15, 0] = True
    Y[:, 1] = X[:, 1] > 0.2
    X[:15, 0], X[:5, 0] = 1, 3000
    X, terms = X.astype(np.float32), {"loss": loss, "fit_intercept": True, "l1": 0.1, "C": 1.0}
    model = solver(**terms, tol=1e-3).fit(X, Y)
    W, b = model.coef_.toarray(), model.intercept_
    X = X.astype(np.float64)
    assert model.objective_ == pytest.approx(ppd_judges.objective(W, b, X, Y, **terms), rel=1e-5)
    assert model.objective_ == pytest.approx(ppd_judges.optimum(X, Y, **terms), rel=1e-3)


@pytest.mark.parametrize("fit_intercept", INTERCEPTS)
def test_a_label_without_positives_keeps_a_score_of_minus_one(fit_intercept):
    X, Y = awkward_problem()
    model = solver("squared_hinge", fit_intercept, 0.1, 1.0).fit(X, Y)
    for k in (2, 17):
        assert model.coef_.toarray()[k].any() == 0
        assert model.intercept_[k] == -1
    assert (model.decision_function(X)[:, [2, 17]] == -1).all()


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_solves_a_multiclass_problem_one_versus_rest(loss, fit_intercept):
    X, _ = awkward_problem(1)
    y = np.random.default_rng(1).integers(0, 5, len(X))
    terms = {"loss": loss, "fit_intercept": fit_intercept, "l1": 0.1, "C": 1.0}
    best = ppd_judges.optimum(X, y[:, None] == np.arange(5), **terms)
    assert solver(**terms).fit(X, y).objective_ == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("loss", "fit_intercept"), PROBLEMS)
def test_solves_a_binary_problem_for_the_second_class(loss, fit_intercept):
    X, Y = awkward_problem(2)
    terms = {"loss": loss, "fit_intercept": fit_intercept, "l1": 0.1, "C": 1.0}
    best = ppd_judges.optimum(X, Y[:, :1], **terms)
    model = solver(**terms).fit(X, np.where(Y[:, 0], "yes", "no"))
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.coef_.shape == (1, X.shape[1])


@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_linear_svc_without_l1(loss):
    # LinearSVC(intercept_scaling=1) penalises the intercept like a weight, as equation 2.30 does.
    rng = np.random.default_rng(3)
    X = sp.random(400, 60, density=0.1, random_state=3, data_rvs=rng.standard_normal, format="csr")
    W = rng.normal(size=(60, 6))
    y = (X @ W + 0.3 * rng.normal(size=(400, 6))).argmax(axis=1)
    model = solver(loss, True, 0.0, 0.5, tol=1e-8).fit(X, y)
    judge = LinearSVC(C=0.5, loss=loss, dual=True, intercept_scaling=1, tol=1e-8, max_iter=200_000)
    judge.fit(X, y)
    np.testing.assert_allclose(model.coef_.toarray(), judge.coef_, atol=2e-4)
    np.testing.assert_allclose(model.intercept_, judge.intercept_, atol=2e-4)
    terms = {"loss": loss, "fit_intercept": True, "l1": 0.0, "C": 0.5}
    Y = y[:, None] == np.arange(6)
    theirs = ppd_judges.objective(judge.coef_, judge.intercept_, X, Y, **terms)
    assert model.objective_ == pytest.approx(theirs, rel=1e-5)
