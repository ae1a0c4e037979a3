"""LHAC refuses a gradient that is not its function's, and no gradient that is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn.errors import ParameterError
from sublearn.optim import LhacSettings, lhac, linear_objective
from sublearn.optim.gradient_check import refuse_wrong_gradient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 20))
COUNTS = RNG.poisson(2.0, size=60).astype(float)
SIGNS = np.where(COUNTS > 1, 1.0, -1.0)
LOSSES = ["logistic", "squared", "squared_hinge", "huber", "poisson"]
FREE = (-np.inf, np.inf)


def function_of(loss, y, scale=1.0, columns=1.0):
    objective = linear_objective(X * columns, y, loss)

    def scaled(x):
        value, gradient = objective.value_and_gradient(x)
        with np.errstate(over="ignore"):
            return scale * value, scale * np.asarray(gradient)

    return scaled


def targets(loss):
    return SIGNS if loss in ("logistic", "squared_hinge") else COUNTS


def spoiled(function, factors):
    """The same values; the gradient times `factors`."""

    def wrong(x):
        value, gradient = function(x)
        return value, gradient * factors

    return wrong


ZEROED = np.where(np.arange(20) == 7, 0.0, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factors", [-1.0, 0.0, 2.0, 0.9, ZEROED], ids=str)
@pytest.mark.parametrize("start", [0.0, 0.1])
def test_refuses_a_gradient_of_another_function(loss, factors, start):
    wrong = spoiled(function_of(loss, targets(loss)), factors)
    message = r"^lhac\.objective: actual and predicted change disagree along a direction from init"
    with pytest.raises(ParameterError, match=message):
        lhac(wrong, np.full(20, start), l1=0.01)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("columns", [1e-6, 1e6])
def test_refuses_a_flipped_sign_in_any_unit(scale, columns):
    wrong = spoiled(function_of("squared", COUNTS, scale, columns), -1.0)
    with pytest.raises(ParameterError, match="actual and predicted"):
        lhac(wrong, np.zeros(20), l1=0.0)


def test_is_left_out_if_asked():
    wrong = spoiled(function_of("squared", COUNTS), ZEROED)
    lhac(wrong, np.zeros(20), l1=0.01, max_iter=3, settings=LhacSettings(check_gradient=False))


def test_a_right_gradient_costs_five_calls():
    calls = []
    function = function_of("logistic", SIGNS)
    refuse_wrong_gradient(lambda x: calls.append(0) or function(x), np.zeros(20), FREE)
    assert len(calls) == 5


@given(
    loss=st.sampled_from(LOSSES),
    log_scale=st.integers(-300, 250),
    log_columns=st.integers(-12, 12),
    log_start=st.integers(-12, 2),
    offset=st.sampled_from([0.0, 1.0, -1e3, 1e10]),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=100)
def test_passes_every_loss_at_every_scale(loss, log_scale, log_columns, log_start, offset, seed):
    columns = 10.0**log_columns
    function = function_of(loss, targets(loss), 10.0**log_scale, columns)
    start = np.random.default_rng(seed).normal(size=20) * 10.0**log_start / columns

    def shifted(x):
        value, gradient = function(x)
        return value + offset * 10.0**log_scale, gradient

    if np.isfinite(function(start)[0]):
        refuse_wrong_gradient(shifted, start, FREE)


def hinge(x):
    margins = 1 - SIGNS * (X @ x)
    return np.maximum(margins, 0).mean(), -(X.T @ (SIGNS * (margins > 0))) / 60


def hinge_at_its_kink(x):
    """The kinks of all rows are at 0."""
    margins = -SIGNS * (X @ x)
    return 1 + np.maximum(margins, 0).mean(), -(X.T @ (SIGNS * (margins > 0))) / 60


def absolute(x):
    return 1 + np.abs(x).sum(), np.sign(x)


def one_sided(x):
    """A gradient that is the slope on one side of the kink."""
    return 1 + np.abs(x).sum(), np.where(x >= 0, 1.0, -1.0)


def absolute_of_rows(x):
    residual = X @ x - COUNTS
    return np.abs(residual).mean(), X.T @ np.sign(residual) / 60


def waves(x):
    return 5 + np.sin(1e5 * x).sum(), 1e5 * np.cos(1e5 * x)


def steep(x):
    return np.exp(300 * x).sum(), 300 * np.exp(300 * x)


KINKED = [hinge, hinge_at_its_kink, absolute, one_sided, absolute_of_rows, waves, steep]


@pytest.mark.parametrize("function", KINKED)
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 1.0])
def test_passes_kinks_waves_and_steep_slopes(function, size):
    for seed in range(10):
        start = size * np.random.default_rng(seed).normal(size=20)
        refuse_wrong_gradient(function, start, FREE)


@pytest.mark.parametrize("loss", LOSSES)
def test_passes_single_precision(loss):
    function = function_of(loss, targets(loss))

    def single(x):
        value, gradient = function(x.astype(np.float32).astype(np.float64))
        return float(np.float32(value)), gradient.astype(np.float32)

    for seed in range(50):
        start = 0.3 * np.random.default_rng(seed).normal(size=20)
        refuse_wrong_gradient(single, start, FREE)


@pytest.mark.parametrize("noise", [1e-12, 1e-6, 1e-2])
def test_passes_a_function_with_noise(noise):
    function = function_of("logistic", SIGNS)
    rng = np.random.default_rng(3)

    def noisy(x):
        value, gradient = function(x)
        return value + noise * rng.normal(), gradient

    for seed in range(50):
        refuse_wrong_gradient(noisy, np.random.default_rng(seed).normal(size=20), FREE)


def test_passes_the_optimum():
    function = function_of("squared", COUNTS)
    best = np.linalg.lstsq(X, COUNTS, rcond=None)[0]
    for seed in range(50):
        near = best * (1 + 1e-12 * np.random.default_rng(seed).normal(size=20))
        refuse_wrong_gradient(function, near, FREE)


def test_asks_for_nothing_outside_the_bounds():
    def root(x):
        assert (x >= 0).all()
        return 3 - np.sqrt(x).sum(), -0.5 / np.sqrt(np.maximum(x, 1e-300))

    for start in ([0.0, 0.0], [0.0, 1e-9], [1.0, 1e-3], [4.0, 9.0]):
        refuse_wrong_gradient(root, np.array(start), (0.0, np.inf))
    with pytest.raises(ParameterError, match="actual and predicted"):
        refuse_wrong_gradient(spoiled(root, -1.0), np.array([0.0, 2.0]), (0.0, np.inf))


def test_a_point_that_the_function_refuses_says_nothing():
    def only_at_zero(x):
        if x.any():
            raise OverflowError
        return 1.0, np.ones(2)

    refuse_wrong_gradient(only_at_zero, np.zeros(2), FREE)
