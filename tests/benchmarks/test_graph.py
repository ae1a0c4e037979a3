"""The pieces of benchmarks/graph.py: arrays and their score, generators, judges, contests."""

import itertools
from pathlib import Path

import graph as bench
import numpy as np
import pytest
from harness.arrays import load_arrays, save_arrays
from harness.bench import Bench
from harness.environments import is_installed
from harness.factors import FactorArrays, Group
from harness.graphs import instances, matching, multilabel, near_points
from harness.runner import Outcome, Run
from harness.soft_constraints import HELD_OUT, TUNED
from judges.max_product import max_product
from judges.trws import Trws


def random_graph(seed, domain, scopes, is_forbidding=False):
    """Factors with tables, scales and scopes of any arity, one group each."""
    rng = np.random.default_rng(seed)
    groups = []
    for scope in scopes:
        table = rng.normal(size=[1, *(domain[i] for i in scope)])
        if is_forbidding:
            table[rng.random(table.shape) < 0.1] = -np.inf
        groups.append(
            Group(np.array([scope]), table, np.zeros(1, int), np.array([rng.uniform(0.5, 2.0)]))
        )
    return FactorArrays(np.array(domain), rng.normal(size=sum(domain)), groups)


def optimum(problem):
    return max(
        problem.score(np.array(labels))
        for labels in itertools.product(*(range(k) for k in problem.domain))
    )


TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]
CYCLES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)]
TRIPLES = [(0, 1, 2), (2, 1, 3), (3, 4), (4, 0, 2)]
DOMAIN = [2, 3, 4, 2, 3]


def as_graph(problem):
    from sublearn.graph import FactorGraph

    graph = FactorGraph(unary=np.split(problem.unary, problem.begin[1:-1]))
    for group in problem.groups:
        graph.add_factors(group.scopes, group.tables[group.rows], group.scale)
    return graph


@pytest.mark.parametrize("scopes", [TREE, CYCLES, TRIPLES])
def test_the_common_score_is_that_of_the_library(scopes):
    problem = random_graph(0, DOMAIN, scopes, is_forbidding=True)
    graph = as_graph(problem)
    rng = np.random.default_rng(1)
    for _ in range(20):
        labels = rng.integers(problem.domain)
        assert problem.score(labels) == pytest.approx(graph.score(labels))
        assert FactorArrays.of(graph).score(labels) == pytest.approx(graph.score(labels))


def test_a_wrong_assignment_has_no_score():
    problem = random_graph(0, DOMAIN, TREE)
    for wrong in ([0, 0, 0, 0], [0, 0, 0, 0, 3], [0, 0, 0, 0, -1], [0.0] * 5):
        with pytest.raises(ValueError, match="an assignment must"):
            problem.score(wrong)


def test_arrays_come_back_from_their_file(tmp_path):
    problem = random_graph(0, DOMAIN, TRIPLES)
    save_arrays(tmp_path / "graph.npz", problem.arrays())
    again = FactorArrays.from_arrays(load_arrays(tmp_path / "graph.npz"))
    assert again.n_factors == 4
    assert again.max_arity == 3
    assert again.n_cells == problem.n_cells == 24 + 24 + 6 + 24
    assert again.score([1, 2, 3, 1, 2]) == problem.score([1, 2, 3, 1, 2])


def test_forbidden_states_stay_the_last_resort():
    for seed in range(10):
        problem = random_graph(seed, DOMAIN, CYCLES, is_forbidding=True)
        finite = problem.without_forbidden()
        assert np.isfinite(finite.unary).all()
        assert optimum(finite) == pytest.approx(optimum(problem))


@pytest.mark.parametrize("seed", range(5))
def test_max_product_is_exact_on_a_tree(seed):
    problem = random_graph(seed, DOMAIN, TREE, is_forbidding=True)
    *_, labels = itertools.islice(max_product(problem), 200)
    assert problem.score(labels) == pytest.approx(optimum(problem))


@pytest.mark.parametrize("seed", range(5))
def test_trws_is_exact_on_a_tree(seed):
    problem = random_graph(seed, DOMAIN, TREE)
    judge = Trws(problem)
    labels = [judge.iterate() for _ in range(30)]
    assert problem.score(labels[-1]) == pytest.approx(optimum(problem))
    assert judge.bound() == pytest.approx(optimum(problem))


@pytest.mark.parametrize("scopes", [CYCLES, TRIPLES])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_trws_falls_and_holds(scopes, seed):
    problem = random_graph(seed, DOMAIN, scopes)
    best, judge = optimum(problem), Trws(problem)
    bounds, scores = [judge.bound()], []
    for _ in range(50):
        scores.append(problem.score(judge.iterate()))
        bounds.append(judge.bound())
    assert (np.diff(bounds) <= 1e-9).all()
    assert bounds[-1] < bounds[0]
    assert bounds[-1] >= best - 1e-9
    assert max(scores) <= best + 1e-9


def test_trws_reaches_the_bound_of_the_linear_program_on_a_frustrated_cycle():
    """Three binary variables that want to differ: the LP says 3, the best assignment has 2."""
    table = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    scopes = np.array([[0, 1], [1, 2], [0, 2]])
    problem = FactorArrays(
        np.full(3, 2), np.zeros(6), [Group(scopes, table, np.zeros(3, int), np.ones(3))]
    )
    judge = Trws(problem)
    assert problem.score(judge.iterate()) == 2.0
    assert judge.bound() == pytest.approx(3.0)


def test_matching_plants_a_correspondence_in_a_network():
    problem, planted = matching(0.3, 0, n_labels=80, n_variables=20, n_factors=60, n_links=6)
    (group,) = problem.groups
    assert (problem.n_variables, problem.n_factors, len(group.tables)) == (20, 60, 1)
    table = group.tables[0]
    assert (table == table.T).all()
    assert (np.diag(table) == 0).all()
    assert set(np.unique(1 / table[table > 0])) <= {1.0, 2.0, 3.0, 4.0}
    # Links of the network score 1 each where they are found again.
    assert group.scores(planted).sum() == 60
    shuffled = np.random.default_rng(0).permutation(planted)
    assert problem.score(planted) > problem.score(shuffled)
    again, _ = matching(0.3, 0, n_labels=80, n_variables=20, n_factors=60, n_links=6)
    assert (again.unary == problem.unary).all()


def test_near_points_keep_their_graph_while_domains_grow():
    small, _ = near_points(32, 0)
    large, planted = near_points(64, 0)
    assert small.n_factors == large.n_factors == 300
    assert (large.domain == 64).all()
    random = np.random.default_rng(0).integers(64, size=100)
    assert large.score(planted) > large.score(random)


def test_multilabel_is_a_complete_graph_with_few_likely_labels():
    problem = multilabel(0, n_labels=400)
    assert problem.n_factors == 400 * 399 // 2
    on = problem.unary.reshape(-1, 2)[:, 1]
    assert 0 < (on > 0).sum() < 20
    weights = problem.groups[0].scale
    assert 0.02 < (weights > 0).mean() < 0.1
    assert 0.4 < (multilabel(0, n_labels=400, positive=0.5).groups[0].scale > 0).mean() < 0.6
    assert np.median(np.abs(weights)) < 0.01
    assert np.abs(weights).max() > 0.3


def test_finds_instances_with_evidence_and_reference(tmp_path):
    folder = tmp_path / "uai_small"
    folder.mkdir()
    (folder / "one.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2 3 4\n")
    (folder / "one.uai.evid").write_text("1 0 0\n")
    (folder / "one.uai.map").write_text("MAP\n2 0 1\n")
    (folder / "two.uai").write_text("MARKOV\n1\n2\n1\n1 0\n\n2\n1 2\n")
    one, two = instances(tmp_path)
    assert (one.name, two.name) == ("one", "two")
    assert (two.evidence, two.reference_labels()) == (None, None)
    problem = one.load()
    assert problem.score(one.reference_labels()) == pytest.approx(np.log(2))
    assert problem.score([1, 1]) == -np.inf


def solved(problem, solver):
    return bench.solve(Bench(Path()), bench.Graph("small", lambda: problem), [solver], 2.0)[0]


@pytest.mark.parametrize("solver", bench.SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("scopes", [CYCLES, TRIPLES], ids=["pairs", "triples"])
def test_every_installed_solver_gives_an_assignment_and_a_bound(solver, scopes):
    if not is_installed(solver.environment):
        pytest.skip(f"environment {solver.environment} is not installed")
    problem = random_graph(3, DOMAIN, scopes)
    found = solved(problem, solver)
    if solver.name == "pgmpy" and scopes is TRIPLES:
        assert found.status == "refused"
        return
    assert found.error is None, found.error
    best, bound = optimum(problem), found.figure("bound")
    assert found.figure("score") <= best + 1e-9
    assert bound is None or bound >= best - 1e-5
    if solver.name in (bench.OURS, "toulbar2", "cp-sat"):
        assert found.figure("score") == pytest.approx(best, abs=1e-5)
        assert bench.gap(found) < 1e-5


def test_a_solver_that_fails_says_why():
    broken = bench.BY_NAME[bench.OURS].having(tol=-1.0)
    found = solved(random_graph(3, DOMAIN, TREE), broken)
    assert found.figure("score") is None
    assert "tol must be" in found.error


def test_rounding_is_no_lead():
    assert bench.ahead(10.0, 10.0 + 1e-7) == 0.0
    assert bench.ahead(10.0, 9.0) == 1.0
    assert bench.ahead(10.0, -np.inf) == "inf"
    assert bench.ahead(None, 1.0) is None


def test_a_bound_below_what_a_rival_has_is_wrong():
    assert bench.holds(2.0, [2.0])
    assert not bench.holds(2.0, [2.1])
    assert bench.holds(None, [2.1])


def outcome(status="ok", **figures):
    return Outcome(bench.BY_NAME[bench.OURS], runs=[Run([figures], status=status)])


def test_a_proof_is_a_small_gap_or_a_word_about_rounded_scores():
    assert bench.is_proof(outcome(score=1.0, bound=1.0))
    assert bench.is_proof(outcome(score=1.0, bound=1.1, proven=1.0))
    assert not bench.is_proof(outcome(score=1.0, bound=1.1, proven=0.0))
    assert not bench.is_proof(outcome("stopped"))


@pytest.mark.parametrize("kind", [*TUNED, *HELD_OUT])
def test_generated_graphs_repeat_and_most_of_them_have_hard_tables(kind):
    problem, again = ({**TUNED, **HELD_OUT}[kind](1) for _ in range(2))
    assert problem.n_factors > 200
    if kind not in ("spins", "random-tables"):
        tables = np.concatenate([group.tables.ravel() for group in problem.groups])
        assert (tables < -9.0).any()
        assert problem.score(np.zeros(problem.n_variables, dtype=int)) < 0.0
    np.testing.assert_array_equal(problem.unary, again.unary)


@pytest.mark.parametrize(
    ("score", "best", "word"),
    [(1.0, 0.5, "ahead"), (1.0, 1.0, "equal"), (0.5, 1.0, "behind"), (None, 1.0, "behind"),
     (1.0, -np.inf, "ahead"), (-np.inf, -np.inf, "equal")],
)  # fmt: skip
def test_a_contest_is_won_lost_or_a_tie(score, best, word):
    assert bench.verdict(score, best) == word
