"""MCP and SCAD: closed forms, stationary points, what they leave of the lasso's bias, refusals."""

import numpy as np
import pytest

import sublearn
from sublearn.errors import ParameterError
from sublearn.linear import FallingWeights, SparseLinearRegression, SparseLogisticRegression
from sublearn.optim import Mcp, Scad, linear_objective

PENALTIES = {
    "mcp": Mcp(0.1),
    "scad": Scad(0.1),
    "a soon free mcp": Mcp(0.1, 1.5),
    "a late scad": Scad(0.1, 8.0),
}


def given(penalty):
    return FallingWeights(type(penalty).__name__.lower(), penalty.gamma)


def rows(seed=0, n=100, d=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 2 * X[:, 0] - X[:, 1] + 0.4 * X[:, 2] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("name", PENALTIES)
def test_columns_at_right_angles_have_the_penalty_s_own_threshold(name):
    penalty = PENALTIES[name]
    n = 64
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(n, 20)))[0] * np.sqrt(n)
    y = X @ np.linspace(-0.6, 0.6, 20)
    model = SparseLinearRegression(
        0.1, penalty_weights=given(penalty), fit_intercept=False, tol=1e-10
    ).fit(X, y)
    expected = penalty.prox(X.T @ y / n, 1.0)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-5)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_proximal_step_moves_what_is_certified(loss, name):
    penalty = PENALTIES[name]
    X, y = rows()
    if loss == "logistic":
        y = np.where(y + np.random.default_rng(1).logistic(size=len(y)) > 0, 1.0, -1.0)
        penalty = type(penalty)(0.05, penalty.gamma)
    kind = SparseLogisticRegression if loss == "logistic" else SparseLinearRegression
    model = kind(penalty.l1, penalty_weights=given(penalty), tol=1e-10).fit(X, y)
    assert model.certificate_ <= 1e-10
    point = np.append(model.coef_.ravel(), model.intercept_)
    gradient = linear_objective(X, y, loss, fit_intercept=True).value_and_gradient(point)[1]
    moved = penalty.prox(point[:-1] - 0.1 * gradient[:-1], 0.1)
    np.testing.assert_allclose(moved, point[:-1], atol=1e-5)
    assert abs(gradient[-1]) < 1e-8


def test_the_objective_is_that_of_the_concave_penalty_and_below_the_lasso_s_point():
    X, y = rows()
    lasso = SparseLinearRegression(0.1).fit(X, y)
    model = SparseLinearRegression(0.1, penalty_weights="scad").fit(X, y)

    def objective(fitted):
        return 0.5 * np.mean((fitted.predict(X) - y) ** 2) + Scad(0.1).value(fitted.coef_)

    assert model.objective_ == pytest.approx(objective(model), rel=1e-12)
    assert objective(model) < objective(lasso)
    assert (np.diff(model.trace_["objective"]) <= 1e-12).all()


def test_large_weights_are_not_pulled_towards_0():
    X, y = rows()
    errors = {}
    for weights in (None, "mcp"):
        model = SparseLinearRegression(0.15, penalty_weights=weights).fit(X, y)
        errors[weights] = abs(model.coef_[0] - 2)
    assert errors["mcp"] < 0.5 * errors[None]


def test_a_path_and_folds_choose_l1():
    X, y = rows()
    model = SparseLinearRegression("cv", penalty_weights="mcp", l1s=8).fit(X, y)
    assert {0, 1, 2} <= set(model.sparse_coef_.indices)
    sizes = [np.count_nonzero(one.coef_) for one in model.fit_path(X, y, 6)]
    assert sizes[0] == 0
    assert sizes[-1] > 3


def test_comes_back_with_a_saved_model(tmp_path):
    model = SparseLinearRegression(0.1, penalty_weights=FallingWeights("scad", 5.0)).fit(*rows())
    model.save(tmp_path / "model")
    assert sublearn.load(tmp_path / "model").penalty_weights == FallingWeights("scad", 5.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"penalty_weights": "lasso"},
            "an array of one number per feature, 'mcp', 'scad' or a Fall",
        ),
        ({"solver": "cd1"}, "solver must be 'auto', 'newton' or 'lhac' for penalty_weights='mcp'"),
        ({"l1": 0.0, "l2": 0.1}, "l1 must be positive for penalty_weights='mcp', got 0"),
        ({"loss": "quantile"}, "penalty_weights must be numbers or None for loss='quantile'"),
    ],
)
def test_refuses(params, message):
    model = SparseLinearRegression(**{"penalty_weights": "mcp"} | params)
    with pytest.raises(ParameterError, match=message):
        model.fit(*rows())


def test_refuses_classes_that_are_learned_together():
    model = SparseLogisticRegression(penalty_weights="mcp", multinomial=True)
    with pytest.raises(ParameterError, match="penalty_weights must be numbers or None for more"):
        model.fit(rows()[0], np.arange(100) % 3)


@pytest.mark.parametrize(("shape", "gamma"), [("mcp", 1.0), ("scad", 2.0), ("scad", np.inf)])
def test_refuses_a_gamma_that_leaves_no_room(shape, gamma):
    with pytest.raises(ParameterError, match="gamma must be"):
        FallingWeights(shape, gamma)
