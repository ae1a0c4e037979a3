"""Parts of LoadForecaster beside slow twins: baselines, the line by time of day, residuals."""

import numpy as np
import pytest

from sublearn.forecast.member import Line
from sublearn.forecast.residuals import Residuals, conformal_level
from sublearn.forecast.rows import Baseline, Calendar, Embedding, weekly_profile
from sublearn.forecast.series import Clock

DAY = 8
WEEK = 7 * DAY


def series(n=6 * WEEK):
    return np.random.default_rng(0).normal(100, 10, n)


def embedding(lags=(1, 3, DAY, WEEK - 1, WEEK, WEEK + 1)):
    calendar = Calendar(Clock.of_positions(DAY), has_week=True, has_year=False)
    return Embedding(calendar, lags, (2, DAY, WEEK), (), ())


def test_a_weekly_profile_halves_the_weight_of_each_older_week():
    y = series()
    y[150] = np.nan
    t = 150 + WEEK
    expected = (0.5 * y[t - 2 * WEEK] + 0.25 * y[t - 3 * WEEK]) / 0.75
    np.testing.assert_allclose(weekly_profile(y, np.array([t]), WEEK, 3), [expected])
    assert np.isnan(weekly_profile(y, np.array([10]), WEEK, 3)).all()


def test_plain_rows_hold_loads_and_their_means():
    y, e = series(), embedding()
    at, lead = 200, 3
    columns, base = Baseline().columns(y, e, np.array([at]), np.array([lead]))
    origin = at - lead
    loads = [y[origin], y[origin - 2], y[at - DAY], *(y[at - WEEK + k] for k in (1, 0, -1))]
    means = [y[origin - n + 1 : origin + 1].mean() for n in (2, DAY, WEEK)]
    np.testing.assert_allclose(columns[0], loads + means)
    assert base[0] == 0.0


def test_anchored_rows_hold_what_was_gained_since_the_origin_of_the_same_day():
    y, e = series(), embedding()
    at, lead = 200, 3
    columns, base = Baseline(0, True).columns(y, e, np.array([at]), np.array([lead]))
    o = at - lead
    gains = [0.0, y[o - 2] - y[o], y[at - DAY] - y[o - DAY]]
    gains += [y[at - WEEK + k] - y[o - WEEK] for k in (1, 0, -1)]
    means = [y[o - n + 1 : o + 1].mean() - y[o] for n in (2, DAY)]
    np.testing.assert_allclose(columns[0], gains + means, atol=1e-9)
    np.testing.assert_allclose(base, y[o])


def test_a_baseline_takes_the_profile_off_first():
    y, e = series(), embedding()
    at, leads = np.array([250, 260]), np.array([2, 5])
    profile = weekly_profile(y, np.arange(len(y)), WEEK, 2)
    inner, anchor = Baseline(0, True).columns(y - profile, e, at, leads)
    columns, base = Baseline(2, True).columns(y, e, at, leads)
    np.testing.assert_allclose(columns, inner)
    np.testing.assert_allclose(base, anchor + profile[at])


def test_the_line_follows_coefficients_that_change_with_the_time_of_day():
    rng = np.random.default_rng(1)
    Z, times = rng.normal(size=(4000, 3)), np.arange(4000) % 24 / 24
    z = Z[:, 0] * (1 + np.sin(2 * np.pi * times)) - 0.5 * Z[:, 2]
    line = Line.fit(Z, z, times, 2)
    assert np.abs(line(Z, times) - z).mean() < 0.15
    constant = Line(line.fixed, np.zeros_like(line.varying))
    assert np.abs(constant(Z, times) - z).mean() > 0.3


def test_the_line_is_the_minimiser_of_a_ridge_regression_on_products():
    rng = np.random.default_rng(2)
    Z, times = rng.normal(size=(500, 2)), rng.random(500)
    z = Z @ [1.0, -1.0] + rng.normal(0, 0.3, 500)
    line = Line.fit(Z, z, times, 1)
    n_hats = len(line.varying)
    away = np.abs(times[:, None] * n_hats - np.arange(n_hats))
    hats = np.maximum(1 - np.minimum(away, n_hats - away), 0)
    left = z - line(Z, times)
    # At the optimum the gradient of the loss is the penalty times the coefficient, one for all.
    pull = Z.T @ left / line.fixed
    assert np.ptp(pull) < 1e-6 * abs(pull[0])
    own = (hats * Z[:, :1]).T @ left / line.varying[:, 0]
    np.testing.assert_allclose(own, np.full(n_hats, own.mean()), rtol=1e-6)
    np.testing.assert_allclose(hats.T @ left / line.varying[:, 1], own, rtol=1e-6)


def test_strong_penalties_win_where_columns_say_nothing():
    rng = np.random.default_rng(3)
    Z, times = rng.normal(size=(300, 5)), rng.random(300)
    line = Line.fit(Z, rng.normal(size=300), times, 5)
    assert line(Z, times).std() < 0.4  # least squares: 0.8


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.99])
def test_a_conformal_level_holds_for_the_next_residual(share):
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(4000, 60))
    held = [row[-1] <= conformal_level(row[:-1], share) for row in draws]
    assert share - 0.03 < np.mean(held) < share + 0.03
    ends = [(1 - share) / 2, (1 + share) / 2]
    low, high = Residuals(draws[0], np.zeros(len(draws[0]))).quantiles(0, ends)
    assert low < high


def test_new_residuals_take_the_place_of_the_oldest():
    old = Residuals(np.arange(6.0), np.arange(6) % 2)
    new = old.followed_by(np.array([10.0, 11.0]), np.array([0, 1]))
    np.testing.assert_array_equal(new.values, [2, 3, 4, 5, 10, 11])
    np.testing.assert_array_equal(new.phases, [0, 1, 0, 1, 0, 1])
    none = Residuals(np.empty(0), np.empty(0, dtype=int))
    assert len(none.followed_by(np.ones(3), np.ones(3, dtype=int))) == 0
