"""solve_map against enumeration and against the linear program solved by SciPy."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from sublearn.graph import (
    FactorGraph,
    dense,
    low_rank,
    potts,
    read_map,
    read_uai,
    solve_map,
    sparse_table,
    truncated_linear,
)
from sublearn.trace import Status


def solve(graph, **options):
    """The same answer each time the tests run."""
    return solve_map(graph, **({"random_state": 0} | options))


def best_by_enumeration(graph, domain):
    scores = [graph.score(x) for x in itertools.product(*(range(k) for k in domain))]
    return max(scores)


def random_graph(seed, *, n=7, most_labels=4, n_factors=9, triples=2):
    """Random scores and scopes, tables of all kinds."""
    rng = np.random.default_rng(seed)
    domain = rng.integers(1, most_labels + 1, n)
    graph = FactorGraph(unary=[rng.normal(size=k) for k in domain])
    for _ in range(n_factors):
        i, j = rng.choice(n, 2, replace=False)
        shape = domain[i], domain[j]
        kind = rng.integers(4)
        if kind == 0:
            table = low_rank(rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2)))
        elif kind == 1:
            cells = sparse.random(*shape, density=0.5, random_state=rng)
            table = sparse_table(cells, default=0.3)
        elif kind == 2 and shape[0] == shape[1]:
            table = truncated_linear(shape[0], 0.7, 1.2)
        else:
            table = dense(rng.normal(size=shape))
        graph.add_factor([i, j], table, scale=rng.normal())
    for _ in range(triples):
        scope = rng.choice(n, 3, replace=False)
        graph.add_factor(scope, rng.normal(size=tuple(domain[scope])))
    return graph, domain


def frustrated_grid(seed, side=5, n_labels=3, strength=2.0):
    """A grid whose neighbours disagree at random: its linear program is not tight."""
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(side, side, n_labels))
    weights = [strength * rng.normal(size=s) for s in ((side, side - 1), (side - 1, side))]
    return FactorGraph.grid(unary, potts(n_labels), weights)


@pytest.mark.parametrize("solver", ["auto", "gdmm_and_search"])
@pytest.mark.parametrize("seed", range(25))
def test_small_graphs_are_solved(seed, solver):
    graph, domain = random_graph(seed)
    result = solve(graph, solver=solver, search_work=1e6)
    best = best_by_enumeration(graph, domain)
    assert result.score == pytest.approx(best, abs=1e-9)
    assert result.bound >= best - 1e-9
    assert result.score == graph.score(result.assignment)


@pytest.mark.parametrize("seed", range(10))
def test_binary_graphs_are_solved(seed):
    rng = np.random.default_rng(seed)
    n = 10
    graph = FactorGraph(unary=rng.normal(size=(n, 2)))
    pairs = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6])
    graph.add_interactions(pairs, rng.normal(size=len(pairs)))
    result = solve(graph, solver="gdmm_and_search", search_work=1e6)
    best = best_by_enumeration(graph, [2] * n)
    assert result.score == pytest.approx(best, abs=1e-9)
    assert result.bound >= best - 1e-9


def local_polytope(unary, scopes, tables):
    """Value of the linear program (3.25), by SciPy."""
    n, k = unary.shape
    m = len(scopes)
    cost = np.concatenate([unary.ravel(), np.ravel(tables)])
    rows, columns, values, right = [], [], [], []
    row = 0
    for i in range(n):
        columns += range(i * k, (i + 1) * k)
        rows += [row] * k
        values += [1.0] * k
        right.append(1.0)
        row += 1
    for f in range(m):
        for position, i in enumerate(scopes[f]):
            for label in range(k):
                for other in range(k):
                    cell = (label, other) if position == 0 else (other, label)
                    columns.append(n * k + f * k * k + cell[0] * k + cell[1])
                    rows.append(row)
                    values.append(1.0)
                columns.append(i * k + label)
                rows.append(row)
                values.append(-1.0)
                right.append(0.0)
                row += 1
    A = sparse.csr_array((values, (rows, columns)), shape=(row, len(cost)))
    return -linprog(-cost, A_eq=A, b_eq=right, bounds=(0, 1), method="highs").fun


def pairs_and_their_program(seed, n_labels, n=8, m=14):
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(n, n_labels))
    scopes = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    tables = rng.normal(size=(m, n_labels, n_labels))
    graph = FactorGraph.from_arrays(unary, scopes, tables)
    return graph, local_polytope(unary, scopes, tables)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_labels", [2, 3, 17])
def test_printed_gdmm_reaches_the_optimum_of_the_linear_program(seed, n_labels):
    """Algorithm 9 for two labels, else algorithm 8; 17 labels: the sorted search."""
    graph, exact = pairs_and_their_program(seed, n_labels)
    result = solve(graph, solver="gdmm", max_iter=3000)
    assert result.bound == pytest.approx(exact, rel=2e-4)
    assert result.bound >= exact - 1e-9  # nothing else lowers it: no exclusion, no search
    assert (result.found_by, result.bounded_by) == ("gdmm", "gdmm")
    assert result.score == graph.score(result.assignment) <= exact + 1e-9


@pytest.mark.parametrize(("rho", "eta"), [(1.0, 1.0), (1.0, 0.1), (0.1, 0.1)])
def test_printed_gdmm_takes_the_penalties_of_the_paper(rho, eta):
    for n_labels in (2, 3):
        graph, exact = pairs_and_their_program(1, n_labels)
        result = solve(graph, solver="gdmm", rho=rho, eta=eta, max_iter=3000)
        assert result.bound == pytest.approx(exact, rel=1e-3)


def test_printed_gdmm_takes_tables_of_three_variables():
    graph, domain = random_graph(4, triples=4)
    result = solve(graph, solver="gdmm", max_iter=1000)
    best = best_by_enumeration(graph, domain)
    assert best - 1e-9 <= result.bound <= result.trace["bound"][0]
    ours = solve(graph, solver="gdmm_and_search", search_work=0.0, max_iter=1000)
    assert result.bound >= ours.bound - 1e-3  # ours may exclude labels


def test_a_solved_program_with_a_gap_has_stalled():
    graph, _ = pairs_and_their_program(2, 3)
    result = solve(graph, solver="gdmm")
    assert result.status is Status.STALLED
    assert result.gap > 1e-3


def test_printed_gdmm_is_the_same_for_any_number_of_threads():
    graph = frustrated_grid(0, side=12, n_labels=3)
    one, two = (solve(graph, solver="gdmm", n_jobs=n, max_iter=40) for n in (1, 2))
    np.testing.assert_array_equal(one.trace["bound"], two.trace["bound"])


@pytest.mark.parametrize("solver", ["messages", "local_search", "neighbourhoods"])
def test_a_part_alone_gets_no_credit_for_another(solver):
    graph = frustrated_grid(2, side=8)
    result = solve(graph, solver=solver, search_work=1e6)
    own = {"messages": {"messages"}, "local_search": {"local_search", "start"}}
    allowed = own.get(solver, {"messages", "neighbourhoods"})
    assert {result.found_by, result.bounded_by} <= allowed
    assert result.n_iter == 0
    assert result.bound >= solve(graph).score - 1e-9


def test_the_result_says_which_part_found_it():
    chain = FactorGraph(unary=np.random.default_rng(0).normal(size=(9, 3)))
    chain.add_factors([[i, (i + 1) % 9] for i in range(9)], potts(3, 0.7))
    result = solve(chain)
    assert result.status is Status.CONVERGED
    assert {result.found_by, result.bounded_by} <= {"start", "elimination"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_labels", [2, 3, 17])
def test_bound_is_that_of_the_linear_program(seed, n_labels):
    """17 labels: tables beyond the size that is scanned, so that the sorted search is tested."""
    graph, exact = pairs_and_their_program(seed, n_labels)
    result = solve(graph, solver="gdmm_and_search", search_work=0.0)
    assert result.n_iter > 0  # GDMM did it, and not an exact method
    assert result.bound >= result.score
    # labels that cannot win are excluded on the way, so the bound may be below the program's value
    assert result.bound <= exact + 1e-4 * abs(exact)
    assert result.trace["bound"][0] >= exact - 1e-9


def test_rho_can_be_fixed():
    graph = FactorGraph.grid(np.random.default_rng(0).normal(size=(6, 6, 5)), potts(5, 0.4))
    free = solve(graph)
    fixed = solve(graph, solver="gdmm_and_search", rho=0.5)
    assert free.status is fixed.status is Status.CONVERGED
    assert fixed.score == pytest.approx(free.score, rel=1e-6)


@pytest.mark.parametrize("n_labels", [2, 3, 24])
def test_same_answer_for_any_number_of_threads(n_labels):
    graph = frustrated_grid(0, side=12, n_labels=n_labels)
    one, two = (solve(graph, n_jobs=n, max_iter=60, search_work=1e6) for n in (1, 2))
    np.testing.assert_array_equal(one.assignment, two.assignment)
    assert one.bound == two.bound
    np.testing.assert_array_equal(one.trace["bound"], two.trace["bound"])


def test_seed_decides_the_search():
    graph = frustrated_grid(1, side=20)
    first, again = (solve(graph, max_iter=20, search_work=1e6) for _ in range(2))
    np.testing.assert_array_equal(first.assignment, again.assignment)


def test_trace_never_goes_back():
    trace = solve(frustrated_grid(2, side=15), search_work=1e6).trace
    assert (np.diff(trace["score"]) >= 0).all()
    assert (np.diff(trace["bound"]) <= 0).all()
    assert (trace["bound"] >= trace["score"]).all()


def test_time_limit_returns_what_was_found():
    graph = frustrated_grid(3, side=60)
    result = solve(graph, time_limit=0.3)
    assert result.status is Status.TIME_LIMIT
    assert result.score == pytest.approx(graph.score(result.assignment))


def test_the_status_says_which_budget_ran_out():
    graph = frustrated_grid(1, side=8, n_labels=2)
    by_work = solve(graph, solver="gdmm_and_search", search_work=1e6)
    assert by_work.status is Status.SEARCH_WORK
    assert by_work.n_iter < 2000
    assert str(by_work.status).startswith("search_work was spent")
    by_passes = solve(graph, solver="gdmm_and_search", search_work=1e6, max_iter=10)
    assert (by_passes.status, by_passes.n_iter) == (Status.MAX_ITER, 10)


def test_callback_stops():
    events = []

    def stop(event):
        events.append(event)
        return len(events) >= 3

    result = solve(frustrated_grid(4, side=60), time_limit=60.0, callback=stop)
    assert result.status is Status.STOPPED
    assert np.isfinite(result.score)
    assert np.isfinite(result.bound)


def test_a_given_start_is_never_made_worse():
    graph = frustrated_grid(5, side=12)
    good = solve(graph, search_work=1e7)
    again = solve(graph, init=good, max_iter=1, search_work=0.0)
    assert again.score >= good.score - 1e-9
    other = graph.copy()
    other.add_factor([0, 1], [[0.0, 0.1, 0.0]] * 3)
    assert solve(other, init=good.assignment, search_work=1e6).score >= other.score(good.assignment)


def test_forbidden_states_are_avoided():
    graph = FactorGraph(unary=np.zeros((6, 3)))
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    ring = [(i, (i + 1) % 6) for i in range(6)]
    graph.add_factors(ring, differ)
    result = solve(graph)
    assert result.score == 0.0
    assert all(result.assignment[i] != result.assignment[j] for i, j in ring)


def test_graph_without_allowed_assignment_is_refused():
    graph = FactorGraph(unary=np.zeros((5, 2)))
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    graph.add_factors([(i, (i + 1) % 5) for i in range(5)], differ)  # an odd ring, two colours
    with pytest.raises(ValueError, match="each one has a forbidden state"):
        solve(graph)


def test_variables_without_factors_and_single_labels():
    graph = FactorGraph(unary=[[0.0, 2.0], [1.0], [0.0, 0.0, 3.0]])
    result = solve(graph)
    assert result.assignment.tolist() == [1, 0, 2]
    assert result.gap == 0.0


def test_shared_table_is_not_copied():
    """A thousand factors on one table of a million cells."""
    rng = np.random.default_rng(0)
    n, k = 60, 1000
    truth = rng.integers(k, size=n)
    unary = rng.random((n, k))
    unary[np.arange(n), truth] += 1.0
    table = dense(rng.random((k, k)))
    scopes = np.array([rng.choice(n, 2, replace=False) for _ in range(300)])
    result = solve(FactorGraph.from_arrays(unary, scopes, table), max_iter=50, search_work=1e6)
    assert result.trace["n_labels"].max() < 0.2 * n * k


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("time_limit", 0, "solve_map.time_limit must be"),
        ("tol", -1.0, "solve_map.tol must be"),
        ("max_iter", 0, "solve_map.max_iter must be"),
        ("solver", "magic", "solve_map.solver must be"),
        ("rho", -1.0, "solve_map.rho must be"),
        ("init", [0, 1], "solve_map.init must be 25 integers"),
        ("init", [9] * 25, "solve_map.init must give variable 0 a label"),
    ],
)
def test_bad_arguments(name, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve_map(frustrated_grid(0), **{name: value})


def test_not_a_graph():
    with pytest.raises(ValueError, match=r"solve_map\.graph must be a FactorGraph"):
        solve_map([[1.0]])


#: Instances whose optimum is proven within seconds; the scores are those of the files' references.
@pytest.mark.parametrize(
    "name",
    [
        "segmentation/segmentation_11",
        "segmentation/segmentation_12",
        "segmentation/segmentation_15",
        "imagealignment/imagealignment_12",
        "promedas/promedas_34",
        "promedas/promedas_70",
        "protein_sidechain/pdb1i24",
        "protein_small/pdb1ctj",
        "dbn/rus_20_40_7_2",
        "eurlex_multilabel/eurlex_subtest",
    ],
)
def test_real_instances_are_solved_to_optimality(shared_data, name):
    path = shared_data / f"uai_{name}.uai.xz"
    evidence, reference = (path.with_name(path.stem + end) for end in (".evid", ".map"))
    graph = read_uai(path, evidence if evidence.exists() else None)
    result = solve(graph)
    assert result.status is Status.CONVERGED
    if reference.exists():
        assert result.score >= graph.score(read_map(reference)) - 1e-6
