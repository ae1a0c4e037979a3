"""The score over the work of solve_map: it never falls, and no component waits for another."""

import itertools

import numpy as np
import pytest

from sublearn.graph import FactorGraph, solve_map

BROKEN = np.log(1e-4)


def triples(graph, variables, n_factors, rng):
    """Factors of three binary variables, which neither width nor messages make easy."""
    scopes = [rng.choice(variables, 3, replace=False) for _ in range(n_factors)]
    graph.add_factors(np.array(scopes), 4.0 * rng.normal(size=(n_factors, 2, 2, 2)))


@pytest.fixture(scope="module")
def components():
    """The first component is by far the largest; those behind it would wait for it."""
    rng = np.random.default_rng(0)
    sizes = (100, 30, 30)
    begin = np.concatenate([[0], np.cumsum(sizes)])
    graph = FactorGraph(np.full(sum(sizes), 2))
    for first, size in zip(begin, sizes, strict=False):
        triples(graph, np.arange(first, first + size), 4 * size, rng)
    return graph


@pytest.fixture(scope="module")
def result(components):
    return solve_map(components, max_iter=60, search_work=5e6, random_state=0)


def test_the_score_never_falls_and_the_last_one_is_that_of_the_answer(result):
    score, bound, work = (result.trace[name] for name in ("score", "bound", "work"))
    assert len(score) > 20
    assert (np.diff(score) >= 0.0).all()
    assert (np.diff(bound) <= 0.0).all()
    assert (np.diff(work) >= 0.0).all()
    assert score[-1] == pytest.approx(result.score, rel=1e-9)


def test_all_components_have_good_labels_early(result):
    """Within a tenth of the work nine tenths of all that is gained: no cliff for those behind."""
    score, work = result.trace["score"], result.trace["work"]
    early = score[work <= 0.1 * work[-1]].max()
    assert early - score[0] >= 0.9 * (score[-1] - score[0])


@pytest.mark.parametrize("n_events", [1, 3, 6])
def test_a_callback_sees_what_it_gets_when_it_stops(components, n_events):
    seen = []

    def look(event):
        if event.objective is not None:
            seen.append(event.objective)
        return len(seen) >= n_events

    result = solve_map(components, max_iter=60, search_work=5e6, random_state=0, callback=look)
    assert (np.diff(seen) >= 0.0).all()
    slack = 1e-9 * abs(result.score)
    assert result.score >= seen[-1] - slack
    assert result.score >= components.score(np.zeros(components.n_variables, dtype=int))
    assert result.trace["score"][-1] == pytest.approx(result.score, rel=1e-9)


def planted(seed, n=60, n_labels=4, n_pairs=700):
    """Hard tables that one assignment meets, and small costs."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_labels, n)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    pairs = pairs[rng.choice(len(pairs), n_pairs, replace=False)]
    tables = np.where(rng.random((n_pairs, n_labels, n_labels)) < 0.3, BROKEN, 0.0)
    tables[np.arange(n_pairs), hidden[pairs[:, 0]], hidden[pairs[:, 1]]] = 0.0
    graph = FactorGraph(unary=-0.05 * rng.random((n, n_labels)))
    graph.add_factors(pairs, tables)
    return graph, hidden


@pytest.mark.parametrize("seed", range(3))
def test_constraints_that_can_be_met_are_met(seed):
    graph, hidden = planted(seed)
    result = solve_map(graph, search_work=2e8, random_state=0)
    assert result.score >= graph.score(hidden) - 1e-9
    assert result.bound >= result.score
