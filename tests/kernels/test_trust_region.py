"""The derivative-free trust region on functions whose best points are known."""

import numpy as np
import pytest

from sublearn.hierarchy.trust_region import _Points, _step, maximise


def search(value, start, radius=0.3, n_steps=300):
    asked = []

    def evaluate(points):
        asked.extend(point.copy() for point in points)
        return [float(value(point)) for point in points]

    best = maximise(evaluate, np.asarray(start, float), radius, n_steps, lambda x, f: False)
    return *best, np.array(asked)


def test_finds_the_top_of_a_quadratic_inside_the_orthant():
    aim, width = np.array([1.0, 0.4, 2.0, 0.7]), np.array([1.0, 3.0, 0.5, 2.0])
    x, value, _ = search(lambda x: -(width * (x - aim) ** 2).sum(), np.ones(4))
    assert value == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(x, aim, atol=0.05)


def test_stays_in_the_orthant_and_finds_a_top_on_its_border():
    aim = np.array([-0.5, 0.8])
    x, _, asked = search(lambda x: -((x - aim) ** 2).sum(), [1.0, 1.0])
    assert (asked >= 0).all()
    np.testing.assert_allclose(x, [0.0, 0.8], atol=0.05)


def test_climbs_steps_that_have_no_slope():
    value = lambda x: np.floor(5 * (1 - np.abs(x - 0.6).mean()))  # noqa: E731
    x, found, _ = search(value, np.full(6, 1.6), radius=0.5)
    assert found > value(np.full(6, 1.6))
    assert found == value(x)


@pytest.mark.parametrize("n_steps", range(12))
def test_asks_for_as_many_values_as_it_may(n_steps):
    _, _, asked = search(lambda x: -np.abs(x - 0.3).sum(), np.ones(5), n_steps=n_steps)
    assert 6 + min(n_steps, 1) <= len(asked) <= 6 + n_steps


def test_the_set_interpolates_after_any_number_of_steps():
    rng = np.random.default_rng(0)
    value = lambda x: float(np.sin(3 * x).sum() - (x**2).sum())  # noqa: E731
    start = rng.random(5)
    first = [start, *(start + 0.2 * axis for axis in np.eye(5))]
    points = _Points.around(start, np.full(5, 0.2), np.array([value(x) for x in first]))
    for _ in range(60):
        _step(points, lambda some: [value(x) for x in some], 0.2, n_left=2)
        polynomials = np.column_stack([np.ones(6), points.at]) @ points.lagrange
        np.testing.assert_allclose(polynomials, np.eye(6), atol=1e-6)


def test_an_answer_of_true_ends_the_search():
    seen = []

    def stop(x, value):
        seen.append(value)
        return len(seen) == 3

    maximise(lambda points: [-float((x**2).sum()) for x in points], np.ones(3), 0.1, 100, stop)
    assert len(seen) == 3
