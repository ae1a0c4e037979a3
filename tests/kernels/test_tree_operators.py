"""treeMap and treeReduce beside the recursions as they are printed."""

import numpy as np
import pytest

from sublearn.hierarchy import (
    Taxonomy,
    leaf_reduce,
    project_hierarchy,
    root_map,
    tree_map,
    tree_reduce,
)

FOREST = Taxonomy([-1, 0, 0, 1, 1, 1, -1, 6, 7])


def random_forest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    return Taxonomy([int(rng.integers(-1, t)) if t else -1 for t in range(n)]), rng


def printed_map(rho, children, t, gamma, above):
    """Algorithm 9."""
    rho[t] = gamma(rho[t], above)
    for c in children[t]:
        printed_map(rho, children, c, gamma, rho[t])


def printed_reduce(eta, rho, children, t, first, second, rule, phi, u):
    """Algorithm 10."""
    for c in children[t]:
        returned = printed_reduce(eta, rho, children, c, first, second, rule, phi, u)
        eta[t] = first(returned, eta[t])
    rho[t] = rule(eta[t], phi[t], u[t])
    return second(eta[t], rho[t])


def children_of(taxonomy):
    found = [[] for _ in range(taxonomy.n_labels)]
    for t in range(taxonomy.n_labels):
        for parent in taxonomy._parents(t):
            found[parent].append(t)
    return found


def roots_of(taxonomy):
    return [t for t in range(taxonomy.n_labels) if not len(taxonomy._parents(t))]


@pytest.mark.parametrize("seed", range(20))
def test_operators_are_the_printed_recursions(seed):
    taxonomy, rng = random_forest(seed)
    children = children_of(taxonomy)
    values, phi, u = rng.normal(size=(3, taxonomy.n_labels))

    def uneven(a, b):  # not commutative: the order of arguments matters
        return a - 0.5 * b

    def rule(eta, phi, u):
        return eta * phi + u

    mapped = values.copy()
    eta, rho = values.copy(), np.zeros_like(values)
    for root in roots_of(taxonomy):
        printed_map(mapped, children, root, uneven, 2.0)
        printed_reduce(eta, rho, children, root, uneven, np.maximum, rule, phi, u)
    found = tree_map(np.stack([values, 2 * values]), taxonomy, uneven, above=2.0)
    np.testing.assert_allclose(found[0], mapped, rtol=1e-12)
    pair = tree_reduce(values, taxonomy, uneven, np.maximum, rule, phi=phi, u=u)
    np.testing.assert_allclose(pair, [rho, eta], rtol=1e-12)


def test_the_decodings_of_the_thesis_are_these_operators():
    u = np.random.default_rng(0).random((40, FOREST.n_labels))
    off = np.zeros(u.shape, dtype=bool)
    reduced, _ = tree_reduce(
        off, FOREST, np.logical_or, np.logical_or, lambda eta, phi, u: (u >= phi) | eta,
        phi=0.6, u=u,
    )  # fmt: skip
    np.testing.assert_array_equal(reduced, leaf_reduce(u, FOREST, 0.6))
    mapped = tree_map(u >= 0.6, FOREST, np.logical_and)
    np.testing.assert_array_equal(mapped, root_map(u, FOREST, 0.6))
    shrunk, _ = tree_reduce(
        u**2, FOREST, np.add, lambda eta, rho: rho**2 * eta,
        lambda eta, phi, _: np.maximum(1 - phi / np.sqrt(eta), 0), phi=0.4,
    )  # fmt: skip
    found = u * tree_map(shrunk, FOREST, np.multiply)
    np.testing.assert_allclose(found, project_hierarchy(u, FOREST, 0.4), atol=1e-12)


def test_what_is_given_stays_as_it_is():
    rho = np.ones(9)
    tree_map(rho, FOREST, np.add)
    tree_reduce(rho, FOREST, np.add, np.add, lambda eta, phi, u: eta)
    np.testing.assert_array_equal(rho, 1.0)


GRAPH = Taxonomy([-1, -1, [0, 1]])


@pytest.mark.parametrize(
    ("values", "taxonomy", "gamma", "sentence"),
    [
        (np.ones(3), GRAPH, np.add, "tree_map: taxonomy must be a forest, got labels with several"),
        (np.ones(3), [0], np.add, r"tree_map: taxonomy must be a Taxonomy, got \[0\]"),
        (np.ones(2), FOREST, np.add, "tree_map: rho must have 9 entries in a row, one for each"),
        (["a"] * 9, FOREST, np.add, "tree_map: rho must be numbers or booleans"),
        (np.ones(9), FOREST, "add", "tree_map.gamma must be a function of arrays, got 'add'"),
        (np.ones(9), FOREST, lambda a, b: 1.0, "tree_map.gamma must return an array of shape"),
    ],
)
def test_refuses_bad_input(values, taxonomy, gamma, sentence):
    with pytest.raises(ValueError, match=sentence):
        tree_map(values, taxonomy, gamma)


def test_refuses_weights_of_another_shape():
    with pytest.raises(ValueError, match="tree_reduce: phi must have shape"):
        tree_reduce(np.ones(9), FOREST, np.add, np.add, lambda e, p, u: e, phi=np.ones(4))


def test_whole_numbers_become_what_operators_make_of_them():
    taxonomy = Taxonomy([-1, 0, 0])
    assert tree_map([1, 1, 1], taxonomy, np.multiply, above=0.5).tolist() == [0.5, 0.5, 0.5]
    assert tree_map([2, 1, 3], taxonomy, np.divide).tolist() == [2.0, 0.5, 1.5]
    rules = np.add, lambda e, r: e / 2, lambda e, phi, u: e / 2
    whole, _ = tree_reduce([1, 1, 1], taxonomy, *rules)
    floats, _ = tree_reduce([1.0, 1.0, 1.0], taxonomy, *rules)
    assert whole.tolist() == floats.tolist()
