"""Quantile and hinge losses against linear programs, which are their problems without l2."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from sublearn.fitting.progress import Progress
from sublearn.linear import Quantile, SparseLinearRegression
from sublearn.optim import minimise_linear
from sublearn.optim.kinked import largest_l1, solve
from sublearn.optim.linear_problem import LinearProblem, Penalty
from sublearn.optim.linear_solve import SolverSettings
from sublearn.optim.row_losses import Hinge

SETTINGS = SolverSettings("auto", 1e-7, 200)


def rows(n=60, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.normal(size=(n, p)))
    return X, X[:, 0] - 2 * X[:, 1] + rng.standard_t(3, size=n) + 3, rng.random(n) + 0.1


def least(X, y, weights, l1, fit_intercept, ends):
    """The optimum by linear programming: w = u - v, and t_i at least both lines."""
    n, p = X.shape
    low, high = ends
    ones = np.ones((n, 1)) if fit_intercept else np.zeros((n, 1))
    design = np.hstack([X, -X, ones])
    blocks = [np.hstack([side[:, None] * design, -np.eye(n)]) for side in (low, high)]
    limits = np.concatenate([low * y, high * y])
    cost = np.concatenate([np.full(2 * p, l1), [0.0], weights])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(None, None)] * n
    return linprog(cost, np.vstack(blocks), limits, bounds=bounds, method="highs").fun


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_regression_reaches_the_linear_program(level, fit_intercept):
    X, y, weights = rows()
    model = SparseLinearRegression(
        0.05, loss=Quantile(level), fit_intercept=fit_intercept, tol=1e-7
    ).fit(X, y, weights)
    shares = weights / weights.sum()
    ends = np.full(60, -level), np.full(60, 1 - level)
    optimum = least(X, y, shares, 0.05, fit_intercept, ends)
    assert model.certificate_ <= 1e-7
    assert optimum <= model.objective_ * (1 + 1e-9)
    assert model.objective_ <= optimum * (1 + 2e-7)
    r = y - model.predict(X)
    value = shares @ np.maximum(level * r, (level - 1) * r) + 0.05 * np.abs(model.coef_).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    assert 0 < np.count_nonzero(model.coef_) < 12


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_hinge_loss_reaches_the_linear_program(fit_intercept):
    X, z, _ = rows()
    y = np.where(z > np.median(z), 1.0, -1.0)
    found = minimise_linear(X, y, "hinge", 0.05, fit_intercept=fit_intercept, tol=1e-7)
    ends = np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)
    optimum = least(X, y, np.full(60, 1 / 60), 0.05, fit_intercept, ends)
    assert found.certificate <= 1e-7
    assert found.objective == pytest.approx(optimum, rel=2e-7)
    margins = y * (X @ found.x + found.intercept)
    value = np.maximum(1 - margins, 0).mean() + 0.05 * np.abs(found.x).sum()
    assert found.objective == pytest.approx(value, rel=1e-12)


def test_the_gap_holds_beside_l2_offsets_and_signs():
    X, y, _ = rows(40, 4)
    offsets = np.random.default_rng(1).normal(size=40)
    problem = LinearProblem(X, y, np.full(40, 1 / 40), Quantile(0.3), True, offsets)
    penalty = Penalty(np.ones(4), 0.1, True)
    found = solve(problem, penalty, 0.02, SETTINGS, Progress())

    def objective(at):
        w = np.abs(at[:4])
        return problem.value(w, at[4]) + penalty.value(w, 0.02)

    start = np.append(found.x, found.intercept)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    best = min(
        minimize(objective, start + noise, method="Nelder-Mead", options=options).fun
        for noise in np.random.default_rng(0).normal(size=(3, 5)) * 0.1
    )
    assert found.certificate <= 1e-7
    assert (found.x >= 0).all()
    assert found.objective <= best * (1 + 1e-6)


@pytest.mark.parametrize("loss", [Quantile(0.2), Hinge()])
def test_no_weight_is_left_just_above_the_largest_l1(loss):
    X, z, _ = rows()
    y = z if isinstance(loss, Quantile) else np.where(z > 2, 1.0, -1.0)
    problem = LinearProblem(X, y, np.full(60, 1 / 60), loss, True)
    penalty = Penalty(np.ones(12), 0.0, False)
    largest = largest_l1(problem, penalty, SETTINGS)
    above, below = (
        solve(problem, penalty, share * largest, SETTINGS, Progress()) for share in (1.01, 0.7)
    )
    assert np.abs(above.x).max() < 1e-6
    assert np.abs(below.x).max() > 1e-2


def test_the_score_of_quantile_regression_is_d2():
    from sklearn.metrics import d2_pinball_score

    X, y, weights = rows()
    model = SparseLinearRegression(0.05, loss=Quantile(0.3)).fit(X, y)
    judge = d2_pinball_score(y, model.predict(X), sample_weight=weights, alpha=0.3)
    assert model.score(X, y, weights) == pytest.approx(judge, abs=5e-3)  # its null is a percentile
    assert model.score(X, np.full(60, 2.0)) == 0.0


def test_quantiles_can_be_cross_validated_and_kept_in_files(tmp_path):
    import sublearn

    X, y, _ = rows()
    model = SparseLinearRegression("cv", loss=Quantile(0.8), l1s=5).fit(X, y)
    assert np.isfinite(model.cv_scores_).all()
    model.save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    assert again.loss == Quantile(0.8)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_refuses_features_without_a_penalty_beside_a_kink():
    X, y, _ = rows()
    model = SparseLinearRegression(loss="quantile", penalty_weights=np.eye(12)[0])
    with pytest.raises(ValueError, match=r"penalty_weights must be positive for loss='quantile'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="level must be a number in"):
        Quantile(1.0)
