"""Files of weighted constraint problems: what is written is read, bad files get a sentence."""

import gzip
import itertools

import numpy as np
import pytest

from sublearn.errors import DataFileError
from sublearn.graph import FactorGraph, read_cfn, read_graph, read_wcsp, solve_map, write_wcsp

WCSP = """queens 3 3 5 10
2 2 3
0 2 0
1 0 0 1
1 4
2 0 1 1 2
0 0 0
1 1 10
-2 0 1 0 1
0 1 3
2 1 0 0 -1
"""

CFN = """{
  problem: {name: "small", mustbe: "<10.5"},  # a comment
  variables: {"rain": ["no", "yes"], road: 3},
  functions: {
    f: {scope: ["rain"], costs: [1, 2.5]},
    {scope: ["rain" "road"], defaultcost: 0.5, costs: ["no", 2, 11, yes 0 1]},
    "g": {"scope": [rain], "costs": "f"}
  }
}
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def every(graph):
    return itertools.product(*(range(k) for k in graph.domain))


def test_scores_are_costs_of_the_listed_states_and_of_the_default(file):
    graph = read_wcsp(file(WCSP, "a.wcsp"))
    assert graph.domain.tolist() == [2, 2, 3]
    for a, b, c in every(graph):
        first = {(0, 0): 0.0, (1, 1): np.inf}.get((a, b), 1.0)
        shared = 3.0 * ((a, b) == (0, 1)) + 3.0 * ((b, a) == (0, 1))
        assert graph.score((a, b, c)) == -(2.0 + 4.0 * (a == 1) + first + shared)


def test_a_network_has_names_and_shared_costs(file):
    graph = read_cfn(file(CFN, "a.cfn"))
    assert graph.names == ["rain", "road"]
    for rain, road in every(graph):
        pair = {(0, 2): np.inf, (1, 0): 1.0}.get((rain, road), 0.5)
        assert graph.score((rain, road)) == -(2.0 * [1.0, 2.5][rain] + pair)


def test_what_is_to_be_maximised_is_the_score(file):
    text = CFN.replace("<10.5", ">-20")
    graph = read_cfn(file(text, "a.cfn"))
    assert graph.score((0, 2)) == 2.0 + 11.0
    assert solve_map(graph).assignment.tolist() == [0, 2]


def test_a_state_with_which_no_sum_is_within_the_limit_is_forbidden(file):
    graph = read_cfn(file(CFN.replace("<10.5", "<3.9"), "a.cfn"))
    assert graph.score((0, 0)) == -2.5
    assert np.isneginf(graph.unary("rain")[1])  # 2.5, and 1 and 0.5 at least of the others


@pytest.mark.parametrize("ending", [".wcsp", ".wcsp.gz"])
def test_what_is_written_is_read(tmp_path, ending):
    rng = np.random.default_rng(0)
    graph = FactorGraph(unary=[rng.normal(size=k).round(3) for k in (2, 3, 1, 4)])
    graph.add_factor([0, 1], np.where(rng.random((2, 3)) < 0.3, -np.inf, -1.25))
    graph.add_factor([1, 3], rng.normal(size=(3, 4)).round(3))
    graph.add_factor([3, 0, 1], rng.normal(size=(4, 2, 3)).round(3), 2.0)
    path = tmp_path / f"a{ending}"
    write_wcsp(graph, path, decimals=3)
    again = read_graph(path)
    pairs = [(graph.score(x), again.score(x) / 1000.0) for x in every(graph)]
    finite = [a - b for a, b in pairs if np.isfinite(a)]
    assert np.ptp(finite) < 1e-9
    assert all(np.isneginf(b) for a, b in pairs if np.isneginf(a))


def test_large_pairs_stay_lists_of_states(file):
    text = "big 2 300 1 9\n300 300\n2 0 1 3 2\n299 1 0\n5 5 9\n"
    graph = read_wcsp(file(text, "a.wcsp"))
    assert [graph.score(x) for x in ((299, 1), (5, 5), (0, 0))] == [0.0, -np.inf, -3.0]
    assert solve_map(graph).assignment.tolist() == [299, 1]


def test_compressed_networks_are_read(file):
    graph = read_graph(file(gzip.compress(CFN.encode()), "a.cfn.gz"), {"rain": 1})
    assert solve_map(graph).assignment.tolist()[0] == 1


def test_evidence_of_a_file_is_used(file):
    graph = read_graph(file(WCSP, "a.wcsp"), file("1 1 1\n", "a.evid"))
    assert solve_map(graph).assignment[1] == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("queens 3 3 5 10", "queens 3 3 9 10", "end of the file"),
        ("2 2 3\n", "2 0 3\n", "line 2: the labels of variable 1 must be at least 1, got 0"),
        ("2 2 3\n", "2 2 99999999999\n", "line 2: domains and tables must have at most"),
        ("2 0 1 1 2", "2 0 7 1 2", r"line 6: a variable must be in 0\.\.2, got 7"),
        ("1 1 10", "1 9 10", r"line 8: a label of variable 1 must be in 0\.\.1, got 9"),
        ("1 1 10", "1 1 x", "line 8: a cost must be a finite number, got 'x'"),
        ("2 1 0 0 -1", "2 1 0 0 -3", "line 11: function 3 that is shared must come before"),
        ("2 1 0 0 -1", "2 1 2 0 -1", "line 11: function 1 that is shared must have the same"),
        ("0 1 3\n", "0 1 3\n7 7\n", "line 1[12]: "),
        ("2 0 1 1 2", "2 0 1 -1 salldiff", "line 6: a cost function must be a table"),
        ("1 4\n2 0 1 1 2\n0 0 0\n1 1 10", "1 4\n2 0 1 10 1\n0 0 10", "line 6: .*allow a state"),
        ("queens 3", "queens 1.5", "line 1: variables must be an integer, got 1.5"),
    ],
)  # fmt: skip
def test_refuses_a_bad_wcsp_file_with_its_line(file, old, new, message):
    assert old in WCSP
    with pytest.raises(DataFileError, match=message):
        read_wcsp(file(WCSP.replace(old, new), "a.wcsp"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  }\n}\n", "  }\n", "one object must end here"),
        ('"rain": ["no"', '"rain: ["no"', "line [23]: "),
        ("road: 3", "road: 0", "line 3: a variable must have labels, got 0"),
        ("road: 3", "road: 1e8", "line 3: domains and tables must have at most"),
        ("road: 3", "rain: 3", "line 3: variable 'rain' must come once"),
        ('["no", "yes"]', '["no", "no"]', "line 3: labels of a variable must be distinct"),
        ("costs: [1, 2.5]", "costs: [1]", "line 5: costs must be 2, got 1"),
        ("costs: [1, 2.5]", "costs: [1, b]", "line 5: a cost must be a number, got 'b'"),
        ('scope: ["rain"]', 'scope: ["snow"]', "line 5: scope must hold variables, got 'snow'"),
        ("yes 0 1", "maybe 0 1", "line 6: costs must name labels of the variables"),
        ("yes 0 1", "yes 0", "line 6: costs must be rows of 3, got 5 words"),
        ('"costs": "f"', '"costs": "h"', "line 7: costs must be those of a function before"),
        ('"costs": "f"', 'type: "salldiff"', "line 7: a function must have costs"),
        ("functions:", "things:", "functions must be given, got none"),
        ("<10.5", "10.5", "line 2: mustbe must be < or > and a number"),
    ],
)
def test_refuses_a_bad_network_with_its_line(file, old, new, message):
    assert old in CFN
    with pytest.raises(DataFileError, match=message):
        read_cfn(file(CFN.replace(old, new), "a.cfn"))


def test_refuses_to_write_what_is_no_graph_or_name(tmp_path):
    with pytest.raises(ValueError, match=r"write_wcsp\.graph must be a FactorGraph"):
        write_wcsp("graph", tmp_path / "a.wcsp")
    with pytest.raises(ValueError, match=r"write_wcsp\.name must be one word"):
        write_wcsp(FactorGraph([2]), tmp_path / "a.wcsp", name="two words")
    with pytest.raises(ValueError, match="below 2"):
        write_wcsp(FactorGraph(unary=[[0.0, 1.0]]), tmp_path / "a.wcsp", decimals=30)
