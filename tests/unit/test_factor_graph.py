"""FactorGraph: its score is the definition's, its compiled form keeps the best assignment."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sublearn.graph import (
    FactorGraph,
    dense,
    label_distance,
    low_rank,
    potts,
    sparse_table,
    truncated_linear,
)

INF = np.inf


def assignments(domain):
    return [np.array(x) for x in itertools.product(*(range(k) for k in domain))]


def best_by_enumeration(graph):
    return max(graph.score(x) for x in assignments(graph.domain))


def best_of_core(graph):
    native = graph._compiled()
    return max(assignments(graph.domain), key=lambda x: native.score(x.astype(np.int32)))


def random_table(rng, kind, shape):
    if kind == "dense":
        return dense(rng.normal(size=shape))
    if kind == "sparse":
        matrix = sparse.csr_array(rng.normal(size=shape) * (rng.random(shape) < 0.5))
        return sparse_table(matrix, default=-0.5)
    if kind == "difference":
        return label_distance(shape, rng.normal(size=sum(shape) - 1))
    return low_rank(rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2)))


KINDS = ("dense", "sparse", "difference", "low_rank")


@pytest.mark.parametrize("kind", KINDS)
def test_score_is_the_sum_of_its_parts_in_python_and_in_the_core(kind):
    rng = np.random.default_rng(0)
    unary = [rng.normal(size=k) for k in (3, 2, 4)]
    graph = FactorGraph(unary=unary)
    first, second = random_table(rng, kind, (3, 2)), random_table(rng, kind, (2, 4))
    graph.add_factor([0, 1], first, 2.0)
    graph.add_factor([1, 2], second, -0.5)
    for x in assignments(graph.domain):
        expected = sum(scores[label] for scores, label in zip(unary, x, strict=True))
        expected += 2.0 * first.to_array()[x[0], x[1]] - 0.5 * second.to_array()[x[1], x[2]]
        assert graph.score(x) == pytest.approx(expected)
        assert graph._compiled().score(x.astype(np.int32)) == pytest.approx(expected)


def test_tables_of_higher_order_may_be_sparse():
    cells = np.array([[1, 0, 2], [0, 1, 1]])
    table = sparse_table([5.0, 7.0], cells=cells, shape=(2, 2, 3), default=-1.0)
    graph = FactorGraph([2, 2, 3])
    graph.add_factors([[0, 1, 2]], table)
    found = {tuple(x): graph.score(x) for x in assignments(graph.domain)}
    assert found.pop((1, 0, 2)) == 5.0
    assert found.pop((0, 1, 1)) == 7.0
    assert set(found.values()) == {-1.0}


def test_a_sparse_table_may_hold_every_state():
    graph = FactorGraph([1, 2])
    graph.add_factor([0, 1], sparse_table(sparse.csr_array([[1.0, 2.0]]), default=-INF))
    assert graph._compiled().score(np.array([0, 1], np.int32)) == graph.score([0, 1]) == 2.0


def test_a_scipy_matrix_is_a_table():
    matrix = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 2])), shape=(2, 3))
    np.testing.assert_array_equal(
        sparse_table(matrix).to_array(), [[0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]
    )
    graph = FactorGraph([2, 3])
    graph.add_factor([0, 1], matrix)
    assert graph.score([0, 1]) == 3.0


def test_label_tables():
    np.testing.assert_array_equal(potts(2, 3.0).to_array(), [[0, -3], [-3, 0]])
    np.testing.assert_array_equal(
        truncated_linear(3, 2.0, 3.0).to_array(), [[0, -2, -3], [-2, 0, -2], [-3, -2, 0]]
    )
    np.testing.assert_array_equal(
        label_distance((2, 3), lambda d: d.astype(float)).to_array(), [[0, 1, 2], [-1, 0, 1]]
    )


def test_equal_arrays_are_stored_once_and_tables_too():
    graph = FactorGraph([2] * 6)
    for i in range(5):
        graph.add_factor([i, i + 1], np.eye(2))
    assert (graph.n_factors, graph.n_tables) == (5, 1)
    graph.add_factors([[0, 2], [1, 3], [2, 4]], np.array([np.eye(2), np.ones((2, 2)), np.eye(2)]))
    assert (graph.n_factors, graph.n_tables) == (8, 3)
    assert graph._compiled().n_tables == 3


def test_a_negative_scale_is_one_negated_twin():
    graph = FactorGraph([2] * 4)
    graph.add_interactions([[0, 1], [1, 2], [2, 3], [0, 3]], [1.0, -2.0, -3.0, 0.0])
    native = graph._compiled()
    assert native.n_tables == 2
    for x in assignments(graph.domain):
        expected = x[0] * x[1] - 2 * x[1] * x[2] - 3 * x[2] * x[3]
        assert graph.score(x) == native.score(x.astype(np.int32)) == expected


def test_what_was_given_may_change_afterwards():
    values, unary = np.zeros((2, 2)), np.zeros((2, 2))
    graph = FactorGraph(unary=unary)
    graph.add_factor([0, 1], values)
    values += np.nan
    unary += 1.0
    assert graph.score([0, 0]) == graph._compiled().score(np.zeros(2, np.int32)) == 0.0


def test_factors_of_one_variable_add_up():
    graph = FactorGraph([2, 3])
    graph.add_factor([0], [1.0, 2.0])
    graph.add_factors([[0], [0]], np.array([[1.0, 0.0], [0.0, 10.0]]), [1.0, 2.0])
    graph.add_unary(1, [0.0, 0.0, 5.0])
    np.testing.assert_array_equal(graph.unary(0), [2.0, 22.0])
    np.testing.assert_array_equal(graph.unary(1), [0.0, 0.0, 5.0])
    assert graph.n_factors == 0


def test_a_repeated_variable_leaves_the_diagonal():
    rng = np.random.default_rng(1)
    pair, triple = rng.normal(size=(3, 3)), rng.normal(size=(4, 3, 2, 3))
    graph = FactorGraph([3, 2, 3])
    graph.add_factor([0, 0], pair, 2.0)
    graph.add_factors([[0, 1, 0], [0, 1, 2], [2, 1, 2], [0, 1, 0]], triple)
    for x in assignments(graph.domain):
        a, b, c = x
        expected = 2.0 * pair[a, a] + triple[0, a, b, a] + triple[1, a, b, c]
        expected += triple[2, c, b, c] + triple[3, a, b, a]
        assert graph.score(x) == pytest.approx(expected)
        assert graph._compiled().score(x.astype(np.int32)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_no_forbidden_state_beats_an_allowed_assignment_in_the_core(seed):
    rng = np.random.default_rng(seed)
    graph = FactorGraph(unary=[10 * rng.normal(size=3) for _ in range(4)])
    for i, j in itertools.combinations(range(4), 2):
        table = 10 * rng.normal(size=(3, 3))
        table[rng.random((3, 3)) < 0.4] = -INF
        table[0, 0] = min(0.0, table[0, 0]) if np.isfinite(table[0, 0]) else -100.0
        graph.add_factor([i, j], table, rng.choice([1e-3, 1.0, 5.0]))
    graph.add_unary(2, [0.0, -INF, 0.0])
    chosen = best_of_core(graph)
    assert graph.score(chosen) == best_by_enumeration(graph) > -INF


def test_the_score_of_a_forbidden_state_is_minus_infinity():
    graph = FactorGraph(unary=[[0.0, -INF], [0.0, 0.0]])
    graph.add_factor([0, 1], [[-INF, 1.0], [1.0, 1.0]])
    assert graph.score([0, 0]) == graph.score([1, 1]) == -INF
    assert graph.score([0, 1]) == 1.0


def test_new_unary_scores_keep_the_tables_of_the_core():
    graph = FactorGraph(unary=[[0.0, 1.0], [0.0, 0.0]])
    graph.add_factor([0, 1], [[0.0, -INF], [1.0, 0.0]])
    graph._compiled()
    (natives,) = (group.table._natives for group in graph.factors)
    before = dict(natives)
    graph.set_unary([[0.0, 0.5], [0.0, 0.0]])
    assert graph._compiled().score(np.array([1, 0], np.int32)) == 1.5
    assert natives == before
    assert graph._compiled() is graph._compiled()


def test_a_copy_is_of_its_own():
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], np.eye(2))
    other = copy.copy(graph)
    other.add_factor([1, 0], np.eye(2))
    other.add_unary(0, [0.0, 9.0])
    assert (graph.n_factors, other.n_factors) == (1, 2)
    assert (graph.score([1, 1]), other.score([1, 1])) == (1.0, 11.0)
    assert graph._compiled().score(np.ones(2, np.int32)) == 1.0
    assert other._compiled().score(np.ones(2, np.int32)) == 11.0


def test_a_graph_can_be_sent_to_another_process():
    graph = FactorGraph(unary=[[0.0, -INF], [0.5, 0.0]])
    graph.add_factor([0, 1], [[0.0, 2.0], [-INF, 0.0]])
    graph._compiled()
    again = pickle.loads(pickle.dumps(graph))
    assert again.score([0, 1]) == again._compiled().score(np.array([0, 1], np.int32)) == 2.0


def test_evidence_leaves_one_label():
    graph = FactorGraph([2, 3], names=["rain", "road"])
    graph.add_factor([0, 1], np.arange(6.0).reshape(2, 3))
    known = graph.condition({"road": 1})
    assert best_by_enumeration(known) == 4.0
    assert known.score([1, 2]) == -INF
    assert graph.score([1, 2]) == 5.0
    assert best_by_enumeration(graph.condition({0: 0, 1: 0})) == 0.0


def test_variables_with_names_are_named_wherever_variables_are_taken():
    table = np.arange(6.0).reshape(2, 3)
    named = FactorGraph([2, 3, 2], names=["rain", ("road", 1), "sun"])
    named.add_factor(["rain", ("road", 1)], table)
    named.add_factors([["sun", ("road", 1)], ["rain", 1]], table, [2.0, 3.0])
    named.add_factors(np.array([["rain", "sun"]]), np.eye(2))
    named.add_interactions([["sun", "rain"]], 0.5)
    named.add_unary("sun", [0.0, 7.0])
    numbered = FactorGraph([2, 3, 2])
    numbered.add_factor([0, 1], table)
    numbered.add_factors([[2, 1], [0, 1]], table, [2.0, 3.0])
    numbered.add_factors([[0, 2]], np.eye(2))
    numbered.add_interactions([[2, 0]], 0.5)
    numbered.add_unary(2, [0.0, 7.0])
    assert all(named.score(x) == numbered.score(x) for x in assignments(named.domain))
    made = FactorGraph.from_arrays(np.zeros((2, 2)), [["b", "a"]], [[0, 1], [2, 3]], names="ab")
    assert made.score([0, 1]) == 2.0


@pytest.mark.parametrize("as_given", [list, np.array])
def test_a_number_that_is_a_name_is_the_name(as_given):
    graph = FactorGraph([2, 3], names=[1, 0])
    graph.add_factors(as_given([[1, 0]]), np.arange(6.0).reshape(2, 3))
    graph.add_factor(as_given([1, 0]), np.arange(6.0).reshape(2, 3))
    assert graph.score([1, 2]) == 10.0
    graph.add_factors(np.zeros((0, 2), dtype=int), np.zeros((2, 3)))
    assert graph.n_factors == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph: graph.add_factor(["a", "x"], np.eye(2)), "add_factor.*got 'x'"),
        (lambda graph: graph.add_factor("ab", np.eye(2)), "list of variables, got 'ab'"),
        (lambda graph: graph.add_factor(3, np.eye(2)), "list of variables, got 3"),
        (lambda graph: graph.add_factor([["a"], "b"], np.eye(2)), r"its name, got \['a'\]"),
        (lambda graph: graph.add_factors(["ab"], np.eye(2)), "list of variables, got 'ab'"),
        (lambda graph: graph.add_factors([["a", 2]], np.eye(2)), "or by its name, got 2"),
        (lambda graph: graph.add_interactions([["x", "a"]], 1.0), "pairs must name.*got 'x'"),
        (lambda graph: graph.add_unary("x", [1.0, 0.0]), "add_unary.*or by its name, got 'x'"),
        (lambda graph: graph.condition({"x": 0}), "condition.*or by its name, got 'x'"),
    ],
)
def test_refusals_name_the_unknown_variable(call, message):
    with pytest.raises(ValueError, match=message):
        call(FactorGraph([2, 2], names=["a", "b"]))


RING = np.array([[0, 1], [1, 2]])
SCORES = np.zeros((2, 2))
HEADS = {
    "add_factor: variables": lambda graph: graph.add_factor([0, 7], SCORES),
    "add_factor: variables must be a list": lambda graph: graph.add_factor([0, [1]], SCORES),
    "add_factor: table": lambda graph: graph.add_factor([0, 1], np.zeros((3, 3))),
    "add_factor: scale": lambda graph: graph.add_factor([0, 1], SCORES, INF),
    "add_factors: scopes": lambda graph: graph.add_factors([[0, 7]], SCORES),
    "add_factors: scopes must be integers": lambda graph: graph.add_factors([[0], [0, 1]], SCORES),
    "add_interactions: pairs": lambda graph: graph.add_interactions([[0, 7]], 1.0),
    "add_interactions: the 2 x 2 table": lambda graph: graph.add_interactions([[0, 1, 0]], 1.0),
    "add_interactions: weights": lambda graph: graph.add_interactions([[0, 1]], [1.0, 2.0]),
    "add_unary: variable": lambda graph: graph.add_unary(7, [0.0, 0.0]),
    "add_unary: scores": lambda graph: graph.add_unary(0, [0.0]),
    "set_unary: scores": lambda graph: graph.set_unary([[0.0]]),
    "unary: variable": lambda graph: graph.unary(7),
    "score: assignment": lambda graph: graph.score([0]),
    "condition: evidence": lambda graph: graph.condition({0: 7}),
    "from_arrays: scopes": lambda _: FactorGraph.from_arrays(SCORES, RING, SCORES),
    "from_edges: edges": lambda _: FactorGraph.from_edges(RING, SCORES, SCORES),
    "grid: unary": lambda _: FactorGraph.grid(SCORES, SCORES),
    "grid: weights": lambda _: FactorGraph.grid(np.zeros((1, 2, 2)), SCORES - [0, INF], -1.0),
}


@pytest.mark.parametrize("head", HEADS)
def test_messages_name_what_was_passed(head):
    with pytest.raises(ValueError, match=f"^FactorGraph.{head} "):
        HEADS[head](FactorGraph([2, 2]))


def test_evidence_is_refused_by_the_names_of_variables():
    graph = FactorGraph([2, 2], names=["a", "b"])
    graph.add_factor(["a", "b"], [[0.0, -INF], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"got \{'a': 0, 'b': 1\}, which a factor"):
        graph.condition({"a": 0, "b": 1})
    with pytest.raises(ValueError, match=r"must give variable 'b' a label in 0\.\.1, got 2"):
        graph.condition({"b": 2})


def test_evidence_that_is_impossible_is_refused():
    graph = FactorGraph(unary=[[0.0, -INF], [0.0, 0.0]])
    graph.add_factor([0, 1], [[0.0, -INF], [0.0, 0.0]])
    with pytest.raises(ValueError, match="variable 0 must have an allowed label, got -inf"):
        graph.condition({0: 1})
    with pytest.raises(ValueError, match=r"must be possible, got \{0: 0, 1: 1\}, which a factor"):
        graph.condition({0: 0, 1: 1})
    with pytest.raises(ValueError, match=r"must give variable 1 a label in 0\.\.1, got 2"):
        graph.condition({1: 2})
    with pytest.raises(ValueError, match=r"must name a variable in 0\.\.1, got 'x'"):
        graph.condition({"x": 0})


def test_a_grid_joins_neighbours():
    rng = np.random.default_rng(2)
    unary, table = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2))
    across, down = rng.normal(size=(2, 2)), rng.normal(size=(1, 3))
    graph = FactorGraph.grid(unary, table, (across, down))
    assert (graph.n_factors, graph.grid_shape) == (7, (2, 3))
    for x in assignments(graph.domain):
        at = x.reshape(2, 3)
        expected = np.take_along_axis(unary, at[..., None], axis=2).sum()
        expected += (across * table[at[:, :-1], at[:, 1:]]).sum()
        expected += (down * table[at[:-1], at[1:]]).sum()
        assert graph.score(x) == pytest.approx(expected)
    assert FactorGraph.grid(unary[:1, :1], table).n_factors == 0


class Nodes:
    """As much of a networkx graph as is needed."""

    nodes = ("a", "b", "c")

    def edges(self, data=None, default=None):
        pairs = [("a", "b"), ("c", "b")]
        return pairs if data is None else [(*pair, 2.0) for pair in pairs]


def test_edges_of_lists_arrays_and_networks():
    table = np.array([[0.0, 1.0], [2.0, 3.0]])
    scores = {"a": [0.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 0.5]}
    by_name = FactorGraph.from_edges([("a", "b"), ("c", "b")], scores, table)
    network = FactorGraph.from_edges(Nodes(), scores, table)
    weighted = FactorGraph.from_edges(Nodes(), scores, table, weight="strength")
    numbered = FactorGraph.from_edges(
        np.array([[0, 1], [2, 1]]), np.array(list(scores.values())), table
    )
    for x in assignments([2, 2, 2]):
        pairs = table[x[0], x[1]] + table[x[2], x[1]]
        assert by_name.score(x) == network.score(x) == numbered.score(x) == pairs + 0.5 * x[2]
        assert weighted.score(x) == 2 * pairs + 0.5 * x[2]
    with pytest.raises(ValueError, match="must join nodes that have unary scores, got 'd'"):
        FactorGraph.from_edges([("a", "d")], scores, table)
    with pytest.raises(ValueError, match="must have scores for each node, got none for 'c'"):
        FactorGraph.from_edges(Nodes(), {"a": [0.0], "b": [0.0]}, table)


def test_unary_scores_of_a_frame_are_an_array():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    assert FactorGraph(unary=frame).score([1, 0]) == 5.0


def test_variables_without_factors_and_of_one_label_are_variables():
    graph = FactorGraph([1, 4, 1])
    graph.add_factor([0, 2], [[3.0]])
    assert graph.score([0, 3, 0]) == graph._compiled().score(np.array([0, 3, 0], np.int32)) == 3.0


def test_repr_says_what_it_is():
    graph = FactorGraph([2, 3, 2])
    graph.add_factor([0, 2], np.eye(2))
    assert repr(graph) == (
        "FactorGraph(3 variables of 2 to 3 labels, 1 factors of 2 variables, 1 tables)"
    )


def add(table, variables=(0, 1), scale=1.0):
    return lambda: FactorGraph([2, 3]).add_factor(variables, table, scale)


GOOD = np.zeros((2, 3))
REFUSALS = {
    "NaN": (add(GOOD * np.nan), "must hold finite numbers or -inf, got NaN or"),
    "+inf": (add(GOOD + INF), "must hold finite numbers or -inf, got NaN or"),
    "all forbidden": (add(GOOD - INF), "must allow at least one joint state, got -inf"),
    "wrong shape": (add(np.zeros((3, 2))), "must have 2 labels on axis 0 as variable 0 has, got 3"),
    "wrong arity": (add(np.zeros(3)), "must have an axis for each of 2 variables, got shape"),
    "text": (add("abc"), "must be an array of numbers, got 'abc'"),
    "no such variable": (add(GOOD, (0, 2)), r"must name variables in 0\.\.1, got 2"),
    "negative variable": (add(GOOD, (-1, 1)), r"must name variables in 0\.\.1, got -1"),
    "names of variables": (
        add(GOOD, ("a", "b")),
        r"must be a list of variables in 0\.\.1, got \('a', 'b'\)",
    ),
    "infinite scale": (add(GOOD, scale=INF), "scale must be finite, got NaN or infinity"),
    "negative scale of -inf": (
        add([[0.0, -INF, 0.0]] * 2, scale=-1.0),
        "scale must not be negative where the table forbids states",
    ),
    "empty diagonal": (
        lambda: FactorGraph([2]).add_factor([0, 0], [[-INF, 0.0], [0.0, -INF]]),
        "must allow a joint state in which a repeated variable has one label",
    ),
    "stack of another length": (
        lambda: FactorGraph([2, 2]).add_factors([[0, 1]], np.zeros((2, 2, 2))),
        "must be one table or one for each of 1 factors, got 2",
    ),
    "empty table in a stack": (
        lambda: FactorGraph([2, 2]).add_factors(
            [[0, 1], [1, 0]], np.stack([np.zeros((2, 2)), np.full((2, 2), -INF)])
        ),
        "in each table, got none in table 1",
    ),
    "scale of another length": (
        lambda: FactorGraph([2, 2]).add_factors([[0, 1]], np.eye(2), [1.0, 2.0]),
        r"scale must be a number or have shape \(1,\), got shape \(2,\)",
    ),
    "no variables": (
        lambda: FactorGraph([]),
        "domain must be a list of integers, numbers of labels",
    ),
    "no labels": (lambda: FactorGraph([2, 0]), "domain must hold numbers in 1"),
    "fractions of labels": (lambda: FactorGraph([2.0]), "must be a list of integers, numbers of"),
    "flat unary alone": (lambda: FactorGraph(unary=np.zeros(3)), "where unary has 1 axes, not two"),
    "unary of words": (lambda: FactorGraph(unary=[["a"]]), "unary must hold numbers, got"),
    "rows and numbers": (lambda: FactorGraph(unary=[[1.0], 2.0]), "unary must"),
    "grid of words": (lambda: FactorGraph.grid([[["a"]]], np.eye(2)), "unary must hold numbers"),
    "nothing": (lambda: FactorGraph(), "domain must be given where unary is not"),
    "unary of NaN": (lambda: FactorGraph([1], [[np.nan]]), "finite numbers or -inf, got NaN"),
    "unary too short": (lambda: FactorGraph([2], [[1.0]]), "2 scores for variable 0, got 1"),
    "unary too few": (lambda: FactorGraph([2, 2], np.zeros(3)), "must have 4 scores"),
    "names twice": (lambda: FactorGraph([2, 2], names=["a", "a"]), "2 distinct names, got 1"),
    "grid of two axes": (
        lambda: FactorGraph.grid(GOOD, GOOD),
        r"shape \(height, width, n_labels\)",
    ),
    "grid weights": (
        lambda: FactorGraph.grid(np.zeros((2, 2, 2)), np.eye(2), (np.ones(2), np.ones(2))),
        "must be a number or two arrays of shapes",
    ),
    "short assignment": (lambda: FactorGraph([2, 2]).score([0]), "must be 2 integers, got shape"),
    "label too large": (lambda: FactorGraph([2]).score([2]), r"a label in 0\.\.1, got 2"),
    "fractions": (lambda: FactorGraph([2]).score([0.5]), "must be 1 integers"),
    "sparse cell twice": (
        lambda: sparse_table([1.0, 2.0], cells=[[0, 0], [0, 0]], shape=(2, 2)),
        "must be distinct, got a joint state twice",
    ),
    "sparse cell outside": (
        lambda: sparse_table([1.0], cells=[[0, 2]], shape=(2, 2)),
        "must be within shape",
    ),
    "sparse default": (
        lambda: sparse_table(sparse.eye(2), default=np.nan),
        "default must be a finite number or -inf, got nan",
    ),
    "sparse and empty": (
        lambda: sparse_table(sparse.csr_array((2, 2)), default=-INF),
        "must allow at least one joint state, got none",
    ),
    "rank": (lambda: low_rank(np.ones((2, 3)), np.ones((2, 2))), "as many columns as left, 3"),
    "distance scores": (lambda: label_distance(3, [1.0]), "must have 5 scores"),
    "potts": (lambda: potts(3, INF), "potts.penalty must be a finite number, got inf"),
    "potts of no labels": (lambda: potts(0), "numbers of labels >= 1"),
    "a sum that overflows": (
        lambda: FactorGraph(unary=[[1e308, -1e308], [1e308, -1e308]])._compiled(),
        "so small that their sum is finite",
    ),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(("do", "sentence"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refuses(do, sentence):
    with pytest.raises(ValueError, match=sentence):
        do()
