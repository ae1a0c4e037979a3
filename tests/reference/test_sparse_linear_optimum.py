"""Sparse linear estimators against cvxpy, scikit-learn, and their own certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

from sublearn.linear import Huber, SparseLinearRegression, SparseLogisticRegression

cp = pytest.importorskip("cvxpy")

N_ROWS, N_FEATURES, L1 = 25, 8, 0.05
LOSSES = ("logistic", "squared", "huber", "poisson")
CASES = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "elastic net": {"l2": 0.3},
    "non-negative": {"positive": True},
    "non-negative, some unpenalised": {
        "positive": True,
        "penalty_weights": [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    },
    "weights of features": {"penalty_weights": [0.0, 2.0, 0.5, 0.0, 1.0, 1.0, 3.0, 1.0]},
    "weights of features, elastic net, no intercept": {
        "penalty_weights": [0.0, 2.0, 0.5, 0.0, 1.0, 1.0, 3.0, 1.0],
        "l2": 0.1,
        "fit_intercept": False,
    },
}


def tiny_problem(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    z = 1.5 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.3
    if loss == "logistic":
        return X, np.where(z + rng.logistic(size=N_ROWS) > 0, 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float)
    return X, z + rng.standard_t(2, size=N_ROWS)


def estimator(loss, **params):
    if loss == "logistic":
        return SparseLogisticRegression(L1, tol=1e-9, **params)
    loss = Huber(0.8) if loss == "huber" else loss
    return SparseLinearRegression(L1, loss=loss, tol=1e-9, **params)


def row_losses(loss, z, y):
    """The definition, by cvxpy's own functions."""
    if loss == "logistic":
        return cp.logistic(cp.multiply(-y, z))
    if loss == "squared":
        return cp.square(z - y) / 2
    if loss == "huber":
        return cp.huber(z - y, 0.8) / 2
    shift = np.where(y > 0, y * np.log(np.maximum(y, 1e-300)), 0.0) - y
    return cp.exp(z) - cp.multiply(y, z) + shift


def judge(loss, X, y, sample_weight=None, l2=0.0, positive=False, fit_intercept=True,
          penalty_weights=None):  # fmt: skip
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    factors = np.ones(X.shape[1]) if penalty_weights is None else np.asarray(penalty_weights)
    w, b = cp.Variable(X.shape[1], nonneg=positive), cp.Variable()
    z = X @ w + (b if fit_intercept else 0.0)
    value = (weights / weights.sum()) @ row_losses(loss, z, y)
    value += L1 * (factors @ cp.abs(w)) + l2 / 2 * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, w.value, float(b.value or 0.0)


def cases():
    for loss in LOSSES:
        for name, params in CASES.items():
            if loss != "logistic" or "positive" not in params:
                yield pytest.param(loss, params, id=f"{loss}: {name}")


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize(("loss", "params"), cases())
def test_reaches_the_optimum_that_cvxpy_finds(loss, params, has_weights):
    X, y = tiny_problem(loss)
    weights = np.random.default_rng(1).integers(0, 4, N_ROWS) * 1.5 if has_weights else None
    model = estimator(loss, **params).fit(X, y, weights)
    value, w, b = judge(loss, X, y, weights, **params)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.certificate_ <= 1e-9
    np.testing.assert_allclose(np.ravel(model.coef_), w, atol=2e-3)
    if params.get("fit_intercept", True):
        assert np.ravel(model.intercept_)[0] == pytest.approx(b, abs=2e-3)


@pytest.mark.parametrize("solver", ["newton", "lhac"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_solver_reaches_the_same_objective(loss, solver):
    X, y = tiny_problem(loss)
    model = estimator(loss, solver=solver).set_params(tol=1e-7).fit(X, y)
    value, _, _ = judge(loss, X, y)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


def mean_objective(model, X, y):
    """Logistic objective recomputed in plain NumPy."""
    z = X @ model.coef_[0] + model.intercept_[0]
    return np.logaddexp(0.0, -y * z).mean() + model.l1_ * np.abs(model.coef_).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["newton", "lhac"])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
def test_the_certificate_bounds_what_is_left_to_gain(solver, max_iter):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 150))
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=60) > 0, 1.0, -1.0)
    best = SparseLogisticRegression(0.01, tol=1e-12, max_iter=1000).fit(X, y)
    early = SparseLogisticRegression(0.01, solver=solver, max_iter=max_iter).fit(X, y)
    value = mean_objective(early, X, y)
    assert early.objective_ == pytest.approx(value, rel=1e-12)
    assert value - best.objective_ <= early.certificate_ * value * (1 + 1e-9) + 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_is_a_bound_with_unpenalised_features_too(loss):
    X, y = tiny_problem(loss)
    factors = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    value, _, _ = judge(loss, X, y, penalty_weights=factors)
    for max_iter in (1, 2, 4):
        model = estimator(loss, penalty_weights=factors, max_iter=max_iter).fit(X, y)
        gap = model.objective_ - value
        assert -1e-7 * value <= gap <= model.certificate_ * model.objective_ + 1e-7 * value


# --- scikit-learn on real data -------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult(shared_data):
    from sublearn.io import load_svmlight

    files = sorted((shared_data / "a9a").glob("*"))
    train = next((file for file in files if file.name.split(".")[0] == "a9a"), None)
    if train is None:
        pytest.skip("a9a is not at hand")
    data = load_svmlight(train)
    return data.X[:2000].astype(np.float64), np.asarray(data.Y[:2000], dtype=float)


def test_agrees_with_logistic_regression_of_scikit_learn_on_a9a(adult):
    X, y = adult
    model = SparseLogisticRegression(2e-3).fit(X, y)
    older = LogisticRegression().penalty == "l2"  # before version 1.8
    l1 = {"penalty": "l1"} if older else {"l1_ratio": 1.0}
    rival = LogisticRegression(
        C=1 / (2e-3 * len(y)), solver="saga", tol=1e-6, max_iter=10_000, **l1
    ).fit(X, y)
    signs = np.where(y == y.max(), 1.0, -1.0)
    rival.l1_ = model.l1_
    assert model.objective_ == pytest.approx(mean_objective(model, X, signs), rel=1e-12)
    assert model.objective_ <= mean_objective(rival, X, signs) * (1 + 1e-9)
    assert model.objective_ == pytest.approx(mean_objective(rival, X, signs), rel=1e-5)


def squared_objective(w, b, X, y, l1, l2=0.0):
    return 0.5 * np.mean((X @ w + b - y) ** 2) + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w


def test_agrees_with_lasso_of_scikit_learn_on_a9a(adult):
    X, y = adult  # columns that depend on each other: the optimum is unique, its point is not
    rival = Lasso(alpha=5e-3, tol=1e-10, max_iter=10_000).fit(X.toarray(), y)
    ours = SparseLinearRegression(5e-3, tol=1e-10).fit(X, y)
    value = squared_objective(ours.coef_, ours.intercept_, X, y, 5e-3)
    assert ours.objective_ == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(
        squared_objective(rival.coef_, rival.intercept_, X, y, 5e-3), rel=1e-9
    )


def test_agrees_with_elastic_net_of_scikit_learn_on_a9a(adult):
    X, y = adult
    rival = ElasticNet(alpha=0.02, l1_ratio=0.5, tol=1e-10, max_iter=10_000).fit(X.toarray(), y)
    ours = SparseLinearRegression(0.01, l2=0.01, tol=1e-10).fit(sp.csc_matrix(X), y)
    np.testing.assert_allclose(ours.coef_, rival.coef_, atol=1e-5)
