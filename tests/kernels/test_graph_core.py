"""The core's factor graph: no scope, shape or label that is wrong gets behind its door."""

import numpy as np
import pytest

from sublearn._core import FactorGraph, FactorTable


def ints(*values):
    return np.array(values, dtype=np.int32)


def table():
    return FactorTable.dense(ints(2, 3), np.arange(6.0))


def graph(**changes):
    parts = {
        "domain": ints(2, 3),
        "unary": np.zeros(5),
        "scope_begin": np.array([0, 2]),
        "scope": ints(0, 1),
        "table_of": ints(0),
        "scale": np.ones(1),
        "tables": [table()],
    }
    return FactorGraph(**(parts | changes))


def test_scores():
    assert graph().score(ints(1, 2)) == 5.0
    assert graph(scale=np.array([0.5])).with_unary(np.arange(5.0)).score(ints(1, 2)) == 7.5


def test_tables_keep_their_arrays():
    made = [FactorTable.dense(ints(100, 100), np.full(10000, float(i))) for i in range(20)]
    assert [t.at(9999) for t in made] == list(range(20))
    stack = FactorTable.dense_stack(ints(2, 2), np.arange(12.0))
    assert [t.at(3) for t in stack] == [3.0, 7.0, 11.0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"domain": ints(2, 0)}, "domain must hold numbers >= 1, got 0"),
        ({"unary": np.zeros(4)}, "unary must have 5 entries, got 4"),
        ({"unary": np.full(5, np.nan)}, "unary must be finite, got nan"),
        ({"scope_begin": np.array([0, 3])}, "scope_begin must fit"),
        ({"scope_begin": np.array([0, 2, 2])}, "scope_begin must fit"),
        ({"scope_begin": np.array([], dtype=np.int64)}, "scope_begin must fit"),
        ({"scope": ints(0, 2)}, r"must name variables in 0\.\.1, got 2"),
        ({"scope": ints(-1, 1)}, r"must name variables in 0\.\.1, got -1"),
        ({"scope": ints(1, 0)}, "must have the labels of variable 1 in its table, 3, got 2"),
        ({"scope": ints(0), "scope_begin": np.array([0, 1])}, "as many variables as its table"),
        ({"domain": ints(2, 2), "unary": np.zeros(4), "scope": ints(0, 0),
          "tables": [FactorTable.dense(ints(2, 2), np.zeros(4))]}, "distinct variables, got 0"),
        ({"table_of": ints(1)}, "must name one of the 1 tables, got 1"),
        ({"scale": -np.ones(1)}, "scale must be finite and not negative, got -1"),
        ({"scale": np.ones(2)}, "scale must be as long as table_of"),
    ],
)  # fmt: skip
def test_refuses_a_graph_that_is_not_sound(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        graph(**changes)


def test_refuses_what_is_no_table():
    with pytest.raises(TypeError, match="tables must hold FactorTable objects"):
        graph(tables=[np.eye(2)])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FactorTable.dense(ints(2, 3), np.zeros(5)), "must have 6 entries, got 5"),
        (lambda: FactorTable.dense(ints(2, 0), np.zeros(0)), "must hold numbers >= 1, got 0"),
        (lambda: FactorTable.dense(ints(), np.zeros(0)), "shape must not be empty"),
        (lambda: FactorTable.dense(ints(*[2**30] * 3), np.zeros(0)), "less than 2"),
        (lambda: FactorTable.dense(ints(1), np.full(1, np.inf)), "must be finite, got inf"),
        (lambda: FactorTable.dense_stack(ints(2), np.zeros(3)), "a multiple of 2 entries"),
        (lambda: FactorTable.sparse(ints(2), np.array([1, 1]), np.zeros(2), 0.0), "increase"),
        (lambda: FactorTable.sparse(ints(2), np.array([2]), np.zeros(1), 0.0), r"0\.\.1, got 2"),
        (lambda: FactorTable.sparse(ints(2), np.array([0]), np.zeros(1), np.nan), "finite"),
        (lambda: FactorTable.difference(ints(2, 2), np.zeros(4)), "must have 3 entries, got 4"),
        (lambda: FactorTable.difference(ints(2), np.zeros(2)), "must have 2 entries, got 1"),
        (lambda: FactorTable.low_rank(np.ones((2, 2)), np.ones((2, 3))), "have 2 columns"),
        (lambda: table().at(6), "no such cell"),
        (lambda: graph().score(ints(0)), "must have 2 entries, got 1"),
        (lambda: graph().score(ints(0, 3)), r"must be in 0\.\.2, got 3"),
        (lambda: graph().with_unary(np.zeros(3)), "must have 5 entries, got 3"),
    ],
)
def test_refuses_a_wrong_array(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
