"""Algorithm 11 on tiny problems: a slow twin, theorems 12 and 13, what a block leaves out."""

import numpy as np
import pytest

from sublearn import _core

LOSSES = ("softmax", "margin", "triplet", "smoothed_margin")
TAU = 0.05


def loss_of(name, z, n_positives, n_rest=0):
    """Loss and gradient with further labels of score 0, which softmax alone looks at."""
    wide = np.concatenate([z, np.zeros(n_rest)]) if name == "softmax" else z
    gradient = np.empty_like(wide)
    return _core.output_loss(name, 1.0, wide, n_positives, gradient), gradient[: len(z)]


def slow_messages(name, parts, n_positives, n_steps, tau, n_rest):
    """The algorithm as it is printed, with messages in full."""
    n_blocks = len(parts)
    messages = np.zeros_like(parts)
    whole = parts.sum(axis=0)
    for t in range(1, n_steps + 1):
        slopes = [
            loss_of(name, n_blocks * (z + m), n_positives, n_rest)[1]
            for z, m in zip(parts, messages, strict=True)
        ]
        active = np.flatnonzero((np.abs(slopes) > tau).any(axis=0))
        best = whole / n_blocks - parts
        eta = 2 / (t + 2)
        messages[:, active] = eta * best[:, active] + (1 - eta) * messages[:, active]
    found = [
        loss_of(name, n_blocks * (z + m), n_positives, n_rest)
        for z, m in zip(parts, messages, strict=True)
    ]
    return np.mean([value for value, _ in found]), np.mean([slope for _, slope in found], axis=0)


def messages(name, parts, n_positives, n_steps, tau=TAU, n_rest=0):
    gradient = np.empty(parts.shape[1])
    rest = (float(n_rest), 0.0)
    value = _core.pass_messages(name, 1.0, parts.copy(), n_positives, n_steps, tau, rest, gradient)
    return value, gradient


@pytest.fixture
def parts():
    """Three blocks, two positives; a block has found half of the negatives."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 14))
    scores[:, 2:] *= rng.random((3, 12)) < 0.5
    return scores


@pytest.mark.parametrize("n_steps", [0, 1, 2, 7])
@pytest.mark.parametrize("name", LOSSES)
def test_is_the_algorithm_as_it_is_printed(name, n_steps, parts):
    value, gradient = messages(name, parts, 2, n_steps, n_rest=30)
    expected, slopes = slow_messages(name, parts, 2, n_steps, TAU, 30)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, slopes, atol=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_the_blocks_bounds_that_of_all_from_above_and_comes_down_to_it(name, parts):
    whole, slopes = loss_of(name, parts.sum(axis=0), 2, 30)
    values = [messages(name, parts, 2, n, 0.0, 30)[0] for n in (0, 1, 2, 10, 1000)]
    assert (np.array(values) >= whole - 1e-10).all()
    assert values[0] > whole + 0.1
    assert values[-1] == pytest.approx(whole, abs=1e-3)
    if name == "softmax":
        np.testing.assert_allclose(messages(name, parts, 2, 1000, 0.0, 30)[1], slopes, atol=1e-3)


@pytest.mark.parametrize("tau", [0.0, 0.02])
def test_the_gap_is_within_the_bound_of_theorem_13(tau, parts):
    whole = loss_of("softmax", parts.sum(axis=0), 2, 30)[0]
    best = parts.sum(axis=0) / 3 - parts
    # Two positives double the loss of one, and with it the inverse of its smoothness.
    for n_steps in (1, 3, 9, 27):
        t = n_steps + 1
        smooth = 2 * 3 * 2 * np.square(best).sum() / (t + 2)
        bound = smooth + 2 * tau * np.log(t) * np.abs(best).sum()
        assert messages("softmax", parts, 2, n_steps, tau, 30)[0] - whole <= bound


def test_labels_below_the_threshold_in_every_block_get_no_message(parts):
    value, _ = messages("softmax", parts, 2, 5, 10.0, 30)  # no gradient is above 10
    assert value == pytest.approx(messages("softmax", parts, 2, 0, 0.0, 30)[0], rel=1e-12)


def test_refuses_arrays_that_do_not_fit(parts):
    with pytest.raises(ValueError, match="must fit the parts"):
        _core.pass_messages("softmax", 1.0, parts, 2, 1, 0.0, (0.0, 0.0), np.empty(3))
