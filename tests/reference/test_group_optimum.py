"""Linear models of groups of features against cvxpy, and their largest l1 against its meaning."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.linear import GroupLinearRegression, GroupLogisticRegression, SparseLinearRegression


def problem(seed, loss):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(15, 40), rng.integers(5, 25)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    z = X[:, :3].sum(axis=1) + rng.normal(size=n)
    y = {"squared": z, "logistic": np.where(z > 0, 1.0, -1.0), "poisson": rng.poisson(2.0, n)}[loss]
    return X, y.astype(float), rng.integers(1 + d // 3, size=d), rng.random(n) + 0.1


def losses(loss, z, y):
    if loss == "squared":
        return cp.square(z - y) / 2
    if loss == "logistic":
        return cp.logistic(-cp.multiply(y, z))
    return cp.exp(z) - cp.multiply(y, z) + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y


def least(X, y, ids, s, loss, model):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    z = X @ w + (b if model.fit_intercept else 0)
    norms = [
        np.sqrt((ids == g).sum()) * cp.norm2(w[np.flatnonzero(ids == g)]) for g in np.unique(ids)
    ]
    penalty = (1 - model.within_share) * sum(norms) + model.within_share * cp.norm1(w)
    value = s @ losses(loss, z, y) + model.l1_ * penalty + model.l2 / 2 * cp.sum_squares(w)
    found = cp.Problem(cp.Minimize(value))
    found.solve(solver=cp.CLARABEL)
    return found.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("within_share", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_reaches_the_optimum_of_cvxpy(loss, within_share, seed):
    X, y, ids, weights = problem(seed, loss)
    options = {
        "feature_groups": ids, "within_share": within_share, "l2": [0.0, 0.1][seed % 2],
        "fit_intercept": seed > 1, "tol": 1e-8,
    }  # fmt: skip
    if loss == "logistic":
        model = GroupLogisticRegression(**options)
    else:
        model = GroupLinearRegression(**options, loss=loss)
    design = sp.csr_matrix(X) if seed == 3 else X
    model.l1 = [0.5, 0.05][seed // 2] * model.l1_max(design, y, weights)
    model.fit(design, y, weights)
    best = least(X, y, ids, weights / weights.sum(), loss, model)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.certificate_ <= 1e-8


@pytest.mark.parametrize("within_share", [0.0, 0.3, 0.9])
def test_the_first_group_enters_below_the_largest_l1(within_share):
    X, y, ids, _ = problem(5, "squared")
    model = GroupLinearRegression(feature_groups=ids, within_share=within_share)
    largest = model.l1_max(X, y)
    assert not model.set_params(l1=1.0001 * largest).fit(X, y).coef_.any()
    assert np.count_nonzero(model.set_params(l1=0.99 * largest).fit(X, y).group_norms_) == 1


def test_groups_of_one_feature_are_the_lasso():
    X, y, _, _ = problem(6, "squared")
    groups = GroupLinearRegression(0.1, tol=1e-10).fit(X, y)
    lasso = SparseLinearRegression(0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(groups.coef_, lasso.coef_, atol=1e-5)
    assert groups.objective_ == pytest.approx(lasso.objective_, rel=1e-9)


def test_a_group_too_large_for_a_matrix_is_learned_as_well():
    rng = np.random.default_rng(0)
    X = sp.random(60, 6000, 0.02, "csc", random_state=rng, data_rvs=rng.standard_normal)
    y = np.asarray(X[:, :20].sum(axis=1)).ravel()
    model = GroupLinearRegression(feature_groups=np.repeat([0, 1], 3000), tol=1e-4)
    model.l1 = 0.3 * model.l1_max(X, y)
    assert model.fit(X, y).certificate_ <= 1e-4
    assert model.group_norms_[0] > 0


def test_screening_and_the_active_set_leave_most_groups_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2000))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=100)
    model = GroupLinearRegression(feature_groups=np.arange(2000) // 5)
    model.l1 = 0.3 * model.l1_max(X, y)
    trace = model.fit(X, y).trace_
    assert trace["n_kept"][-1] < 100
    assert trace["n_active"].max() < 100
    assert model.group_norms_.nonzero()[0].tolist()[0] == 0
