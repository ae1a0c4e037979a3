"""Marginals, max-marginals and the n best assignments against all assignments of small graphs."""

import itertools

import numpy as np
import pytest

from sublearn.graph import (
    FactorGraph,
    bucket_tree,
    marginals,
    max_marginals,
    n_best_assignments,
    potts,
    solve_map,
)

SEEDS = range(8)


def random_graph(seed, *, tree=False):
    """Some components, factors of two or three variables, some states forbidden."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    domain = rng.integers(1, 4, n)
    graph = FactorGraph(
        unary=[rng.normal(size=k) for k in domain], names=[f"v{i}" for i in range(n)]
    )
    for i in range(1, n):
        if rng.random() < 0.8:
            j = int(rng.integers(i))
            table = rng.normal(size=(domain[i], domain[j]))
            table[(rng.random(table.shape) < 0.15) & (table < table.max())] = -np.inf
            graph.add_factor([i, j], table, 1.5)
    if not tree:
        scope = rng.choice(n, 3, replace=False)
        graph.add_factor(scope, rng.normal(size=domain[scope]))
    return graph


def every(graph):
    """All assignments and their scores, the best first."""
    states = list(itertools.product(*(range(k) for k in graph.domain)))
    scores = np.array([graph.score(x) for x in states])
    order = np.argsort(-scores, kind="stable")
    return np.array(states)[order], scores[order]


def given(graph, combine):
    states, scores = every(graph)
    return [
        np.array([combine(scores[states[:, i] == a]) for a in range(k)])
        for i, k in enumerate(graph.domain)
    ]


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_are_those_of_all_assignments(seed, tree):
    graph = random_graph(seed, tree=tree)
    found = marginals(graph)
    sums = given(graph, lambda scores: np.exp(scores).sum())
    total = np.exp(every(graph)[1]).sum()
    assert found.log_partition == pytest.approx(np.log(total))
    for i, own in enumerate(sums):
        np.testing.assert_allclose(found[f"v{i}"], own / total, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_marginals_are_the_best_scores_of_all_assignments(seed):
    graph = random_graph(seed)
    found = max_marginals(graph)
    assert found.is_exact
    for own, expected in zip(found.lower, given(graph, np.max), strict=True):
        np.testing.assert_allclose(own, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_marginals_of_wide_graphs_lie_between_their_bounds(seed, monkeypatch):
    monkeypatch.setattr(bucket_tree, "_MOST_CELLS", 2)  # any graph is wide then
    graph = random_graph(seed)
    found = max_marginals(graph, random_state=0)
    for i, expected in enumerate(given(graph, np.max)):
        assert (found.lower[i] <= expected + 1e-9).all()
        assert (expected <= found.upper[i] + 1e-6).all()
        assert np.isneginf(found.lower[i]).tolist() == np.isneginf(expected).tolist()


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_n_best_are_those_of_all_assignments(seed, is_wide, monkeypatch):
    if is_wide:
        monkeypatch.setattr(bucket_tree, "_MOST_CELLS", 2)
    graph = random_graph(seed)
    _, scores = every(graph)
    found = n_best_assignments(graph, 6)
    n = min(6, int(np.isfinite(scores).sum()))
    np.testing.assert_allclose(found.scores, scores[:n], atol=1e-6)
    assert len({tuple(x) for x in found.assignments.tolist()}) == n
    np.testing.assert_allclose([graph.score(x) for x in found.assignments], found.scores)
    assert found.is_proved.all()
    if len(scores) > n:
        assert found.bound >= scores[n] - 1e-9
    assert list(found.labels(0)) == graph.names


def test_all_assignments_are_found_and_nothing_is_left():
    graph = FactorGraph(unary=[[0.0, 1.0], [0.0, 3.0]])
    found = n_best_assignments(graph, 10)
    assert found.scores.tolist() == [4.0, 3.0, 1.0, 0.0]
    assert np.isneginf(found.bound)


def test_a_long_chain_has_its_best_assignments_in_order():
    rng = np.random.default_rng(0)
    graph = FactorGraph(unary=rng.normal(size=(60, 4)))
    graph.add_factors([[i, i + 1] for i in range(59)], rng.normal(size=(4, 4)))
    found = n_best_assignments(graph, 5)
    assert found.scores[0] == pytest.approx(solve_map(graph).score)
    assert (np.diff(found.scores) <= 1e-9).all()
    top = max_marginals(graph)
    second = max(
        np.delete(own, x).max() for own, x in zip(top.lower, found.assignments[0], strict=True)
    )
    assert found.scores[1] == pytest.approx(second)


def test_an_unproved_answer_says_so():
    """A frustrated dense graph that cannot be closed with so little work."""
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(60), 2))
    graph = FactorGraph(np.full(60, 3))
    graph.add_factors(pairs, rng.normal(size=(len(pairs), 3, 3)))
    found = n_best_assignments(graph, 1, search_work=1e4)
    assert not found.is_proved.any()
    assert found.bound > found.scores[0]


def test_names_are_in_results():
    graph = FactorGraph(unary=[[0.0, 1.0], [0.5, 0.0]], names=["rain", "road"])
    graph.add_factor(["rain", "road"], potts(2, 2.0))
    assert solve_map(graph).labels == {"rain": 1, "road": 1}
    assert marginals(graph)["rain"][1] > 0.5
    assert max_marginals(graph)["road"].tolist() == [0.5, 1.0]
    assert solve_map(FactorGraph([2])).labels == {0: 0}


def test_refuses_what_is_no_graph_too_wide_or_impossible():
    for function in (marginals, max_marginals, lambda g: n_best_assignments(g, 1)):
        with pytest.raises(ValueError, match=r"\.graph must be a FactorGraph, got"):
            function([1.0])
    wide = FactorGraph(np.full(40, 4))
    wide.add_factors(list(itertools.combinations(range(40), 2)), np.eye(4))
    with pytest.raises(ValueError, match=r"marginals\.graph must have a small width"):
        marginals(wide)
    with pytest.raises(ValueError, match=r"n_best_assignments\.n must be"):
        n_best_assignments(wide, 0)
    impossible = FactorGraph([2, 2])
    impossible.add_factor([0, 1], [[-np.inf, -np.inf], [0.0, -np.inf]])
    impossible.add_factor([0, 1], [[0.0, 0.0], [-np.inf, 0.0]])
    with pytest.raises(ValueError, match="must allow an assignment"):
        marginals(impossible)
    with pytest.raises(ValueError, match="must allow an assignment"):
        n_best_assignments(impossible, 1)
