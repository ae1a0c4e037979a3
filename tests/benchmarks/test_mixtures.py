"""Rivals of MixLasso solve what they should, so that losing to us means something."""

import numpy as np
import pytest
from judges.mixtures import (
    alternating_minimisation,
    hard_em,
    random_starts,
    soft_em,
    tensor_starts,
)
from mixtures import Recipe, parameter_error

EASY = Recipe("Syn0", 4, 2, "normal", False, 0.0, 0)


@pytest.mark.parametrize("method", [hard_em, soft_em, alternating_minimisation])
def test_restarts_find_an_easy_mixture(method):
    X, y, W = EASY.draw(300, 0)
    found, error, n_done = method(X, y, random_starts(2, 4, 20, 0))
    assert error < 1e-8
    assert n_done <= 20
    assert parameter_error(found, W) < 1e-6


def test_em_finds_a_generalised_mixture():
    X, y, W = Recipe("Syn0", 3, 2, "normal", True, 0.0, 0).draw(300, 0)
    found, _, _ = hard_em(X, y, random_starts(2, 3, 20, 0), is_general=True)
    assert parameter_error(found, W) < 1e-6


def test_moments_of_many_normal_rows_give_the_components():
    X, y, W = EASY.draw(200_000, 1)
    assert parameter_error(tensor_starts(X, y, 2, 0)[0], W) < 0.1


def test_the_error_is_that_of_the_nearest_components_in_any_order():
    W = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert parameter_error(W[::-1], W) == 0
    assert parameter_error(np.array([[1.0, 0.0], [0.0, 0.0]]), W) == pytest.approx(1.0)
