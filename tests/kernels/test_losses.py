"""Margin losses: their formula, and Fenchel-Young between value and dual term by brute force."""

import numpy as np
import pytest

from sublearn._core import Hinge, SquaredHinge

WEIGHTS = [1e-3, 0.5, 1.0, 7.0]
MARGINS = np.array([-50.0, -2.0, -0.3, 0.0, 0.5, 0.999, 1.0, 1.001, 3.0, 50.0])

each_loss = pytest.mark.parametrize("loss_class", [Hinge, SquaredHinge])
each_weight = pytest.mark.parametrize("C", WEIGHTS)


def dual_grid(loss, C):
    """Dual variables that cover the box, or as much of it as these margins can use."""
    return np.linspace(0.0, min(loss.upper_bound, 2 * C * (1 - MARGINS.min())), 102_001)


@each_weight
@pytest.mark.parametrize(("loss_class", "power"), [(Hinge, 1), (SquaredHinge, 2)])
def test_value_is_the_power_of_the_violation(loss_class, power, C):
    expected = C * np.maximum(0, 1 - MARGINS) ** power
    np.testing.assert_allclose(loss_class(C).value(MARGINS), expected, rtol=1e-15)


@each_weight
@each_loss
def test_no_dual_variable_exceeds_the_value(loss_class, C):
    loss = loss_class(C)
    alphas = dual_grid(loss, C)
    bound = loss.conjugate_term(alphas) - np.outer(MARGINS, alphas)
    value = loss.value(MARGINS)
    assert (bound <= value[:, None] + 1e-12 * (1 + value[:, None])).all()


@each_weight
@each_loss
def test_the_best_dual_variable_attains_the_value(loss_class, C):
    loss = loss_class(C)
    alphas = dual_grid(loss, C)
    attained = (loss.conjugate_term(alphas) - np.outer(MARGINS, alphas)).max(axis=1)
    spacing = alphas[1] - alphas[0]
    off_grid = loss.dual_diagonal * spacing**2  # the maximum may lie between two grid points
    np.testing.assert_allclose(attained, loss.value(MARGINS), rtol=1e-12, atol=off_grid + 1e-12)


@each_weight
@each_loss
def test_the_slope_is_the_dual_variable_that_attains_the_value(loss_class, C):
    loss = loss_class(C)
    alphas = loss.slope(MARGINS)
    assert (alphas >= 0).all()
    assert (alphas <= loss.upper_bound).all()
    attained = loss.conjugate_term(alphas) - MARGINS * alphas
    np.testing.assert_allclose(attained, loss.value(MARGINS), rtol=1e-12, atol=1e-12)


@each_weight
@each_loss
def test_dual_diagonal_is_the_curvature_of_the_dual_term(loss_class, C):
    loss = loss_class(C)
    step = min(C, 1.0) / 4
    low, middle, high = loss.conjugate_term(np.array([0.0, step, 2 * step]))
    assert (2 * middle - low - high) / step**2 == pytest.approx(loss.dual_diagonal, abs=1e-9 / C)


@each_weight
def test_boxes_are_those_of_the_two_losses(C):
    assert Hinge(C).upper_bound == C
    assert SquaredHinge(C).upper_bound == np.inf


@each_loss
def test_a_margin_that_is_not_a_number_is_not_hidden(loss_class):
    assert np.isnan(loss_class(1.0).value(np.array([np.nan]))).all()


@each_loss
@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
def test_refuses_a_weight_that_is_not_positive(C, loss_class):
    with pytest.raises(ValueError, match=rf"{loss_class.__name__}\.C must be positive, got {C}"):
        loss_class(C)
