"""Losses of candidate labels: definitions, finite differences, cvxpy, and blocks of coordinates."""

import cvxpy as cp
import numpy as np
import pytest

from sublearn import _core

LOSSES = ("softmax", "margin", "triplet", "smoothed_margin")


def loss_of(name, z, n_positives, mu=0.7):
    gradient = np.empty_like(z)
    value = _core.output_loss(name, mu, z, n_positives, gradient)
    return value, gradient


def by_definition(name, z, n):
    positives, negatives = z[:n], z[n:]
    if name == "softmax":
        return n * np.log(np.exp(z).sum()) - positives.sum()
    if name == "margin":
        return max(0.0, 1 + negatives.max() - positives.min())
    return np.maximum(0, 1 + negatives[None, :] - positives[:, None]).sum()


@pytest.fixture
def z():
    return np.random.default_rng(3).normal(size=12)


@pytest.mark.parametrize("n_positives", [1, 3])
@pytest.mark.parametrize("name", ["softmax", "margin", "triplet"])
def test_is_what_the_equation_says(name, n_positives, z):
    assert loss_of(name, z, n_positives)[0] == pytest.approx(by_definition(name, z, n_positives))


@pytest.mark.parametrize("n_positives", [1, 4])
def test_the_smoothed_margin_is_the_optimum_of_its_dual(n_positives, z):
    a, mu = cp.Variable(len(z)), 0.7
    shift = np.r_[np.zeros(n_positives), np.ones(len(z) - n_positives)]
    size = cp.sum(a[n_positives:])
    rules = [
        a[n_positives:] >= 0,
        a[:n_positives] <= 0,
        size == -cp.sum(a[:n_positives]),
        size <= 1,
    ]
    problem = cp.Problem(cp.Maximize((z + shift) @ a - mu / 2 * cp.sum_squares(a)), rules)
    problem.solve()
    value, gradient = loss_of("smoothed_margin", z, n_positives, mu)
    assert value == pytest.approx(problem.value, abs=1e-5)
    np.testing.assert_allclose(gradient, a.value, atol=1e-4)


def test_little_smoothing_is_the_margin(z):
    smooth, sharp = loss_of("smoothed_margin", z, 3, 1e-6)[0], loss_of("margin", z, 3)[0]
    assert smooth == pytest.approx(sharp, abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_positives", [1, 3])
def test_gradients_are_finite_differences(name, n_positives, z):
    _, gradient = loss_of(name, z, n_positives)
    step = 1e-6 * np.eye(len(z))
    slopes = [
        (loss_of(name, z + d, n_positives)[0] - loss_of(name, z - d, n_positives)[0]) / 2e-6
        for d in step
    ]
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_without_labels_there_is_no_loss(name, z):
    value, gradient = loss_of(name, z, 0)
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("name", ["margin", "triplet", "smoothed_margin"])
def test_a_margin_needs_negatives(name, z):
    assert loss_of(name, z, len(z))[0] == 0


def test_large_scores_do_not_overflow():
    z = np.array([1e4, -1e4, 9e3])
    assert loss_of("softmax", z, 1)[0] == pytest.approx(0)


def test_refuses_a_loss_it_does_not_know(z):
    with pytest.raises(ValueError, match="loss must be softmax, nca"):
        loss_of("hinge", z, 1)


def test_a_label_below_the_bar_in_every_block_has_no_gradient():
    """What the search leaves out: B z_jk below the bar of the positives for all j."""
    n_blocks, n_positives, tau = 4, 2, 0.05
    blocks = np.random.default_rng(5).normal(size=(n_blocks, 30)) / 2
    blocks[:, :n_positives] += 1  # a sample that is scored well
    z = blocks.sum(axis=0)
    bar = np.log(np.exp(z[:n_positives]).sum() * tau)
    is_low = (n_blocks * blocks < bar).all(axis=0)
    is_low[:n_positives] = False
    _, gradient = loss_of("softmax", z, n_positives)
    assert is_low.any()
    assert (np.abs(gradient[is_low]) <= n_positives * tau).all()
