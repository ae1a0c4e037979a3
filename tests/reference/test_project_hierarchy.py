"""The hierarchical operator against a convex modelling tool, its gradient against differences."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn.hierarchy import (
    Taxonomy,
    hierarchy_support,
    leaf_reduce,
    project_hierarchy,
    project_hierarchy_gradient,
    root_map,
)

TAXONOMIES = {
    "one label": Taxonomy([-1]),
    "chain": Taxonomy([-1, 0, 1, 2]),
    "star": Taxonomy([-1, 0, 0, 0, 0]),
    "forest": Taxonomy([-1, 0, 0, 1, 1, 2, -1, 6, 6]),
    "children first": Taxonomy([2, 2, 4, 4, -1]),
    "diamond": Taxonomy([-1, 0, 0, [1, 2]]),
    "graph": Taxonomy([-1, 0, 0, [1, 2], [1, 2], 2, -1, [6, 0], [6, 5]]),
}


def by_cvxpy(u, taxonomy, phi):
    groups = taxonomy.ancestor_matrix.toarray().astype(bool)
    v = cp.Variable(len(u))
    norms = [phi[t] * cp.norm(v[np.flatnonzero(groups[:, t])]) for t in range(len(u))]
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(u - v) + sum(norms))).solve(solver="CLARABEL")
    return v.value


def by_definition(u, taxonomy, phi):
    """(3.4.4), group after group, the deepest first."""
    v = np.array(u, dtype=float)
    groups = taxonomy.ancestor_matrix.toarray().astype(bool)
    for t in np.argsort(-taxonomy.levels, kind="stable"):
        norm = np.linalg.norm(v[groups[:, t]])
        v[groups[:, t]] *= max(1 - phi[t] / norm, 0) if norm else 0
    return v


@pytest.mark.parametrize("name", TAXONOMIES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_is_the_optimum(name, seed):
    rng, taxonomy = np.random.default_rng(seed), TAXONOMIES[name]
    u, phi = rng.normal(size=len(taxonomy)), rng.uniform(0, 0.8, size=len(taxonomy))
    found = project_hierarchy(u, taxonomy, phi)
    np.testing.assert_allclose(found, by_cvxpy(u, taxonomy, phi), atol=2e-4)
    if taxonomy.is_forest:
        np.testing.assert_allclose(found, by_definition(u, taxonomy, phi), atol=1e-12)


@st.composite
def forests(draw):
    n = draw(st.integers(1, 12))
    parents = [draw(st.integers(-1, i - 1)) for i in range(n)]
    order = draw(st.permutations(range(n)))
    shuffled = [0] * n
    for i, p in enumerate(parents):
        shuffled[order[i]] = -1 if p < 0 else order[p]
    numbers = st.integers(-1000, 1000).map(lambda k: k / 64)
    u = draw(st.lists(numbers, min_size=n, max_size=n))
    phi = draw(st.lists(st.integers(0, 100).map(lambda k: k / 16), min_size=n, max_size=n))
    return Taxonomy(shuffled), np.array(u), np.array(phi)


@settings(max_examples=60, deadline=None)
@given(forests(), st.sampled_from([1.0, 1e-200, 1e200]))
def test_shrinks_the_groups_one_by_one_at_any_scale(case, scale):
    taxonomy, u, phi = case
    found = project_hierarchy(scale * u, taxonomy, scale * phi)
    wanted = by_definition(u, taxonomy, phi)
    np.testing.assert_allclose(found / scale, wanted, atol=1e-9 * max(1, np.abs(u).max()))
    on = hierarchy_support(u, taxonomy, phi)
    assert taxonomy.is_consistent(on[None])
    assert not (found[~on]).any()


@pytest.mark.parametrize("name", TAXONOMIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_are_those_of_differences(name, seed):
    rng, taxonomy = np.random.default_rng(seed), TAXONOMIES[name]
    n, h = len(taxonomy), 1e-6
    u, phi = rng.normal(size=(2, n)) + 0.5, rng.uniform(0.05, 0.6, size=n)
    slope = rng.normal(size=(2, n))

    def value(u, phi):
        return (slope * project_hierarchy(u, taxonomy, phi, tol=1e-14)).sum()

    u_slope, phi_slope = project_hierarchy_gradient(u, taxonomy, phi, slope)
    for t in range(n):
        step = h * (np.arange(n) == t)
        by_phi = (value(u, phi + step) - value(u, phi - step)) / (2 * h)
        assert phi_slope[t] == pytest.approx(by_phi, abs=2e-5)
        for i in range(2):
            moved = step * (np.arange(2) == i)[:, None]
            by_u = (value(u + moved, phi) - value(u - moved, phi)) / (2 * h)
            assert u_slope[i, t] == pytest.approx(by_u, abs=2e-5)


@pytest.mark.parametrize("name", ["forest", "graph"])
def test_does_not_depend_on_threads_or_on_the_rows_around(name):
    rng, taxonomy = np.random.default_rng(0), TAXONOMIES[name]
    u = rng.normal(size=(9000, len(taxonomy)))
    one = project_hierarchy(u, taxonomy, 0.3, tol=1e-8)
    np.testing.assert_array_equal(project_hierarchy(u, taxonomy, 0.3, tol=1e-8, n_jobs=3), one)
    np.testing.assert_array_equal(project_hierarchy(u[5], taxonomy, 0.3, tol=1e-8), one[5])
    slopes = [project_hierarchy_gradient(u, taxonomy, 0.3, u, tol=1e-8, n_jobs=k) for k in (1, 3)]
    np.testing.assert_array_equal(slopes[0][0], slopes[1][0])
    np.testing.assert_array_equal(slopes[0][1], slopes[1][1])


def test_float32_stays_float32():
    u = np.array([0.3, 0.9, 0.8], dtype=np.float32)
    taxonomy = Taxonomy([-1, 0, 0])
    assert project_hierarchy(u, taxonomy, 0.5).dtype == np.float32
    np.testing.assert_allclose(
        project_hierarchy(u, taxonomy, 0.5), by_definition(u, taxonomy, [0.5] * 3), atol=1e-6
    )


def test_a_parent_of_score_zero_stays_if_its_child_does():
    taxonomy = Taxonomy([-1, 0])
    assert hierarchy_support([0.0, 1.0], taxonomy, 0.1).tolist() == [True, True]
    assert project_hierarchy([0.0, 1.0], taxonomy, 0.1)[0] == 0


def test_the_example_of_the_thesis():
    """Section 3.5: what the three methods make of two rows of scores."""
    taxonomy, phi = Taxonomy([-1, 0, 0]), 0.5
    first, second = [0.3, 0.9, 0.8], [0.3, 0.3, 0.8]
    assert hierarchy_support(first, taxonomy, phi).tolist() == [True, True, True]
    assert leaf_reduce(first, taxonomy, phi).tolist() == [True, True, True]
    assert root_map(first, taxonomy, phi).tolist() == [False, False, False]
    assert hierarchy_support(second, taxonomy, phi).tolist() == [False, False, False]
    assert leaf_reduce(second, taxonomy, phi).tolist() == [True, False, True]
    assert root_map(second, taxonomy, phi).tolist() == [False, False, False]


def test_leaf_reduce_and_root_map_follow_several_parents():
    taxonomy = TAXONOMIES["diamond"]
    on = [[False, False, False, True], [True, True, False, True]]
    scores = np.array(on, dtype=float)
    assert leaf_reduce(scores, taxonomy, 0.5).tolist() == [[True] * 4, [True] * 4]
    assert root_map(scores, taxonomy, 0.5).tolist() == [[False] * 4, [True, True, False, False]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0.1, 0.2], Taxonomy([-1, 0]), -0.1), "phi must not be negative, got -0.1"),
        (([0.1, 0.2], Taxonomy([-1, 0]), [1.0]), "phi must be a number or 2 of them"),
        (([0.1, 0.2], Taxonomy([-1, 0]), np.nan), "phi must be finite"),
        (([0.1, 0.2], Taxonomy([-1, 0]), "much"), "phi must be numbers, got 'much'"),
        (([0.1], Taxonomy([-1, 0]), 0.1), r"u must have 2 entries in a row.*got shape \(1,\)"),
        (([0.1, np.inf], Taxonomy([-1, 0]), 0.1), "u must be finite"),
        (([0.1, 0.2], [-1, 0], 0.1), "taxonomy must be a Taxonomy"),
        ((["a", "b"], Taxonomy([-1, 0]), 0.1), r"u must be numbers, got \['a', 'b'\]"),
        (([[1.0, 2.0], [3.0]], Taxonomy([-1, 0]), 0.1), "u must be numbers, got"),
        (([1j, 0.2], Taxonomy([-1, 0]), 0.1), "u must be numbers, got"),
        ((sp.csr_matrix([0.1, 0.2]), Taxonomy([-1, 0]), 0.1), "u must be dense"),
        (([0.1, 0.2], Taxonomy([-1, 0]), None), "phi must be numbers, got None"),
    ],
)
@pytest.mark.parametrize("function", [project_hierarchy, hierarchy_support])
def test_refuses_bad_input(function, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        function(*arguments)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"slope": [1.0]}, r"slope must have the shape of u, got \(1, 1\)"),
        ({"slope": [1.0, np.nan]}, "slope must be finite"),
        ({"slope": ["a", "b"]}, "slope must be numbers"),
        ({"slope": [1.0, 1.0], "tol": 0}, "tol must be a positive number, got 0"),
    ],
)
def test_a_gradient_refuses_bad_slopes(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        project_hierarchy_gradient([0.1, 0.2], Taxonomy([-1, 0]), 0.1, **options)
