"""Tube-loss regression against a convex solver: the interior point exactly, algorithm 8 nearly."""

import cvxpy as cp
import numpy as np
import pytest

from sublearn import _core
from sublearn.forecast.kernel import gaussian_kernel
from sublearn.forecast.kernel_steps import fit_kernel_online, learn_new_kernel_rows
from sublearn.forecast.tube_regression import (
    TubeLoss,
    fit_interior_point,
    fit_online,
    online_settings,
)

LOSSES = {
    "epsilon": TubeLoss.shifted(0.3, 0.0),
    "shifted": TubeLoss.shifted(0.3, 0.2),
    "median": TubeLoss.quantile(0.5),
    "upper quantile": TubeLoss.quantile(0.9),
}


def problem(n=60, m=5, seed=0):
    rng = np.random.default_rng(seed)
    features = np.ascontiguousarray(np.hstack([rng.normal(size=(n, m)), np.ones((n, 1))]))
    return features, features @ rng.normal(size=m + 1) + rng.standard_t(3, size=n)


def optimum(features, y, loss, C):
    w = cp.Variable(features.shape[1])
    r = y - features @ w
    cost = loss.upper_slope * cp.pos(r - loss.upper) + loss.lower_slope * cp.pos(loss.lower - r)
    task = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * cp.sum(cost)))
    task.solve(solver=cp.CLARABEL)
    return task.value, w.value


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_the_interior_point_finds_the_optimum(loss, C):
    features, y = problem()
    value, w = optimum(features, y, loss, C)
    fit = fit_interior_point(features, y, loss, C, tol=1e-9)
    assert fit.certificate <= 1e-9
    assert fit.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(fit.w, w, atol=1e-3)


def test_the_gap_bounds_the_error_after_any_number_of_steps():
    features, y = problem()
    loss = LOSSES["shifted"]
    value, _ = optimum(features, y, loss, 2.0)
    for n_steps in range(8):
        fit = fit_interior_point(features, y, loss, 2.0, tol=1e-12, max_iter=n_steps)
        assert fit.objective - fit.gap <= value * (1 + 1e-7)
        assert fit.objective >= value * (1 - 1e-7)


def test_a_perfect_fit_and_a_constant_target_are_no_obstacle():
    features, _ = problem()
    for y in (np.zeros(len(features)), np.full(len(features), 3.0)):
        fit = fit_interior_point(features, y, LOSSES["epsilon"], 1.0, tol=1e-6)
        assert np.isfinite(fit.w).all()
        assert fit.certificate <= 1e-6


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_algorithm_8_comes_close_on_features(loss):
    features, y = problem(n=200)
    value, _ = optimum(features, y, loss, 0.05)
    fit = fit_online(features, y, loss, 0.05, seed=0, n_epochs=300)
    assert value <= fit.objective * (1 + 1e-7)
    assert fit.objective <= 1.02 * value
    assert fit.objective - fit.gap <= value * (1 + 1e-7)


def settings_of(loss, l2, n_epochs, **more):
    settings = online_settings(loss, l2)
    settings.n_epochs = n_epochs
    for name, value in more.items():
        setattr(settings, name, value)
    return settings


def kernel_problem(n=60, seed=0):
    """Rows, features whose inner products are their kernel plus 1, targets."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    values, vectors = np.linalg.eigh(gaussian_kernel(rows, rows) + 1.0)
    y = np.sin(rows[:, 0]) + 0.1 * rng.normal(size=n)
    return rows, np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0))), y


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_the_kernel_form_takes_the_steps_of_the_features(loss, batch):
    rows, features, y = kernel_problem()
    model, fit = fit_kernel_online(rows, y, loss, 2.0, 3, batch=batch)
    other = fit_online(features, y, loss, 2.0, 3, batch=batch)
    np.testing.assert_allclose(model.sums(rows, fit.w[:-1]), features @ other.w, atol=1e-5)
    assert fit.w[-1] == pytest.approx(fit.w[:-1].sum())
    assert fit.objective == pytest.approx(other.objective, rel=1e-5)
    assert fit.gap == pytest.approx(other.gap, rel=1e-4)


@pytest.mark.parametrize("batch", [1, 16])
def test_the_kernel_form_comes_close_to_the_optimum_and_its_gap_holds(batch):
    rows, features, y = kernel_problem()
    loss = LOSSES["epsilon"]
    best = fit_interior_point(features, y, loss, 0.5, tol=1e-8).objective
    _, fit = fit_kernel_online(rows, y, loss, 0.5, 0, batch=batch, n_epochs=200)
    assert best * (1 - 1e-6) <= fit.objective <= 1.03 * best
    assert fit.objective - fit.gap <= best * (1 + 1e-6)


def test_a_batch_that_is_filled_as_printed_leads_elsewhere():
    rows, features, y = kernel_problem(200)
    loss = TubeLoss.shifted(0.3, 0.1)
    best = fit_interior_point(features, y, loss, 0.02, tol=1e-8).objective
    sound, filled = (
        fit_kernel_online(rows, y, loss, 0.02, 0, batch=8, n_epochs=60, fills_batch=fills)[1]
        for fills in (False, True)
    )
    assert sound.objective <= 1.01 * best
    assert filled.objective >= 1.1 * best


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_new_row_of_the_kernel_form_goes_its_way_to_the_tube(share):
    rows, _, y = kernel_problem(20)
    model, fit = fit_kernel_online(rows, y, LOSSES["epsilon"], 1.0, 0)
    new, target = rows[:1] + 0.3, np.array([5.0])
    before = model.sums(new, fit.w[:-1])[0]
    wider, w = learn_new_kernel_rows(model, fit.w, new, target, TubeLoss.shifted(0.5), share)
    assert len(wider.rows) == len(model.rows) + 1
    after = wider.sums(new, w[:-1])[0]
    assert after - before == pytest.approx(share * (5.0 - 0.5 - before))


def test_the_kernel_form_refuses_broken_input():
    rows, _, y = kernel_problem(5)
    settings = settings_of(LOSSES["epsilon"], 1e-3, 1)
    with pytest.raises(ValueError, match="a must have a number for each row"):
        _core.kernel_svr(rows, y, np.zeros(4), settings, _core.Monitor())
    monitor = _core.Monitor()
    monitor.request_stop()
    assert _core.kernel_svr(rows, y, np.zeros(5), settings, monitor) == 0


def test_the_projection_keeps_the_weights_in_the_ball():
    features, y = problem()
    w = np.zeros(features.shape[1])
    settings = settings_of(LOSSES["epsilon"], 1e-6, 0, radius=0.5)
    _core.online_svr(features, y, w, settings, _core.Monitor())
    assert np.linalg.norm(w) <= 0.5 * (1 + 1e-9)


def test_a_capped_step_goes_its_share_of_the_way_to_the_tube():
    features, y = np.array([[2.0, 0.0]]), np.array([5.0])
    w = np.zeros(2)
    settings = settings_of(TubeLoss.shifted(1.0, 0.0), 1e-6, 0, reach=0.5, first_step=1000)
    _core.online_svr(features, y, w, settings, _core.Monitor())
    assert features[0] @ w == pytest.approx(2.0, rel=1e-6)  # half of the 4 up to the tube


def test_a_capped_step_is_shorter_on_the_side_of_the_smaller_slope():
    found = []
    for y in (1.0, -1.0):
        w = np.zeros(1)
        settings = settings_of(TubeLoss.quantile(0.9), 1e-6, 0, reach=0.5, first_step=1000)
        _core.online_svr(np.ones((1, 1)), np.array([y]), w, settings, _core.Monitor())
        found.append(w[0])
    np.testing.assert_allclose(found, [0.5, -0.5 / 9], rtol=1e-6)


def test_a_stop_request_is_honoured():
    features, y = problem()
    monitor = _core.Monitor()
    monitor.request_stop()
    settings = settings_of(LOSSES["epsilon"], 1e-3, 10**6)
    assert _core.online_svr(features, y, np.zeros(features.shape[1]), settings, monitor) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [({"l2": 0.0}, "l2"), ({"batch": 0}, "batch"), ({"n_epochs": -1}, "n_epochs"),
     ({"lower": 9.0}, "lower")],
)  # fmt: skip
def test_the_core_refuses_broken_settings(change, words):
    features, y = problem()
    settings = settings_of(LOSSES["epsilon"], **{"l2": 1e-3, "n_epochs": 1} | change)
    with pytest.raises(ValueError, match=words):
        _core.online_svr(features, y, np.zeros(features.shape[1]), settings, _core.Monitor())


def test_rows_of_any_size_leave_a_finite_model_and_no_foreign_error():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 12)), int(rng.integers(1, 6))
        features = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-80, 80)
        features[:, 0] = features[:, -1]  # the Gram matrix is singular
        y = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6)
        loss = list(LOSSES.values())[seed % len(LOSSES)]
        fit = fit_interior_point(features, y, loss, 10.0 ** rng.uniform(-6, 6), tol=1e-9)
        assert np.isfinite(fit.w).all()
        assert 0 <= fit.certificate <= 1
