"""Taxonomies: ways to make one, what they know, and what is none."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sublearn.errors import DataFileError
from sublearn.hierarchy import Taxonomy
from sublearn.io import load_hmc

PATHS = ["rec.autos", "rec.sport.hockey", "rec.sport.baseball", "sci"]


@pytest.fixture
def groups():
    return Taxonomy.from_paths(PATHS)


def test_knows_parents_children_ancestors_descendants(groups):
    assert groups.names.tolist()[:3] == ["rec", "rec.autos", "rec.sport"]
    assert groups.parents("rec.sport") == ["rec"]
    assert groups.parents("sci") == []
    assert groups.children("rec") == ["rec.autos", "rec.sport"]
    assert groups.ancestors("rec.sport.hockey") == ["rec", "rec.sport"]
    assert groups.descendants("rec.sport") == ["rec.sport.hockey", "rec.sport.baseball"]
    assert groups.levels.tolist() == [0, 1, 1, 2, 2, 0]
    assert groups.roots.tolist() == [0, 5]
    assert groups.leaves.tolist() == [1, 3, 4, 5]
    assert groups.is_forest


def test_several_parents_are_a_graph():
    graph = Taxonomy([-1, 0, 0, [1, 2]], names=["a", "b", "c", "d"])
    assert not graph.is_forest
    assert graph.ancestors("d") == ["a", "b", "c"]
    assert graph.levels.tolist() == [0, 1, 1, 2]
    assert "graph of 4 labels" in repr(graph)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: Taxonomy.from_edges(t.edges(), t.names),
        lambda t: Taxonomy.from_parents({n: (t.parents(n) or None) for n in t.names.tolist()}),
        lambda t: Taxonomy.from_networkx(t.to_networkx()),
        lambda t: pickle.loads(pickle.dumps(t)),
        lambda t: Taxonomy.from_paths([p.split(".") for p in PATHS]),
    ],
)
def test_all_ways_lead_to_one_taxonomy(make, groups):
    assert make(groups) == groups


def test_reads_topics_in_both_forms(tmp_path):
    short, original = tmp_path / "short", tmp_path / "original"
    short.write_text("Root\tC\tE\nC\tC1\tC2\nC1\tC11\n")
    original.write_text(
        "parent: None child: Root child-description: Root\n"
        "parent: Root child: C child-description: CORPORATE\n"
        "parent: Root child: E child-description: ECONOMICS\n"
        "parent: C child: C1 child-description: STRATEGY\n"
        "parent: C child: C2 child-description: LEGAL\n"
        "parent: C1 child: C11 child-description: PLANS\n"
    )
    taxonomy = Taxonomy.from_rcv1(short)
    assert taxonomy == Taxonomy.from_rcv1(original)
    assert taxonomy.names.tolist() == ["C", "E", "C1", "C2", "C11"]
    (tmp_path / "bad").write_text("no tab here\n")
    with pytest.raises(ValueError, match=r"bad:1: a line must be `parent TAB children`"):
        Taxonomy.from_rcv1(tmp_path / "bad")


def write_arff(path, classes, rows, attributes="@attribute size numeric\n"):
    path.write_text(
        f"@relation r\n{attributes}@attribute class hierarchical {classes}\n@data\n{rows}"
    )
    return path


def test_reads_hierarchical_classes(tmp_path):
    file = write_arff(tmp_path / "a.arff", "01,01/02,01/02/03,04", "1.5,01/02/03@04\n?,01\n")
    data = load_hmc(file)
    assert data.labels == [["01/02/03", "04"], ["01"]]
    assert np.isnan(data.X[1, 0])
    taxonomy = Taxonomy.from_hmc(file)
    assert taxonomy.ancestors("01/02/03") == ["01", "01/02"]
    found = taxonomy.encode(data.labels).toarray()
    assert found.tolist() == [[True] * 4, [True, False, False, False]]


def test_reads_classes_that_are_a_graph(tmp_path):
    file = write_arff(tmp_path / "a.arff", "root/G1,root/G2,G1/G3,G2/G3", "1,G3\n")
    taxonomy = Taxonomy.from_hmc(file)
    assert taxonomy.parents("G3") == ["G1", "G2"]
    assert not taxonomy.is_forest


def test_reads_nominal_attributes(tmp_path):
    attributes = "@attribute 'the colour' {red, 'dark blue'}\n"
    file = write_arff(tmp_path / "a.arff", "1,2", "red,1\n'dark blue',2\n?,2\n", attributes)
    data = load_hmc(file)
    assert data.feature_names.tolist() == ["the colour=red", "the colour=dark blue"]
    np.testing.assert_array_equal(data.X, [[1, 0], [0, 1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("1,2,3\n", "a.arff:5: a row must have 2 values, got 3"),
        ("big,1\n", "a.arff:5: could not convert"),
    ],
)
def test_refuses_broken_rows(rows, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        load_hmc(write_arff(tmp_path / "a.arff", "1,2", rows))


def test_refuses_a_file_without_a_hierarchical_class(tmp_path):
    (tmp_path / "a.arff").write_text("@relation r\n@attribute x numeric\n@data\n1\n")
    with pytest.raises(ValueError, match="the last attribute must be `hierarchical`"):
        load_hmc(tmp_path / "a.arff")


def test_reads_a_vocabulary(tmp_path):
    pytest.importorskip("rdflib")
    file = tmp_path / "v.ttl"
    file.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://x/> .\n"
        ":animal a skos:Concept .\n:cat a skos:Concept ; skos:broader :animal .\n"
        ":dog a skos:Concept .\n:animal skos:narrower :dog .\n"
    )
    taxonomy = Taxonomy.from_skos(file)
    assert taxonomy.parents("http://x/cat") == taxonomy.parents("http://x/dog")
    assert taxonomy.children("http://x/animal") == ["http://x/cat", "http://x/dog"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Taxonomy([]), "must have at least one label, got none"),
        (lambda: Taxonomy([1, 2, 0, -1]), "must have no cycle, got 0 -> 1 -> 2 -> 0"),
        (lambda: Taxonomy([0]), "must have no cycle, got 0 -> 0"),
        (lambda: Taxonomy([-1, 5]), "got 5 for label 1, an orphan"),
        (lambda: Taxonomy([-1, -2]), "got -2 for label 1, an orphan"),
        (lambda: Taxonomy([-1, 0.5]), "got 0.5 for label 1"),
        (lambda: Taxonomy([-1, "a"]), "got 'a' for label 1"),
        (lambda: Taxonomy([-1, 0], names=["a", "a"]), "must be all different, got 'a' twice"),
        (lambda: Taxonomy([-1, 0], names=["a"]), "must have 2 entries as parents has, got 1"),
        (lambda: Taxonomy.from_edges([("a", "b"), ("b", "a")]), "no cycle, got a -> b -> a"),
        (lambda: Taxonomy.from_edges([("a", "b", "c")]), "must be pairs"),
        (lambda: Taxonomy.from_edges([("a", "b")], ["a"]), "must join labels of names, got 'b'"),
        (lambda: Taxonomy.from_parents({"a": "z"}), "got 'z' as the parent of 'a', an orphan"),
        (lambda: Taxonomy.from_paths(["a..b"]), "no empty part"),
        (lambda: Taxonomy.from_paths("a.b"), "paths must be a list of paths, got 'a.b'"),
        (lambda: Taxonomy.from_paths(["a", np.nan]), "must be texts or lists of their parts, got"),
        (lambda: Taxonomy.from_paths(["a"], ""), "separator must be a text"),
        (lambda: Taxonomy(3), r"parents must be a sequence of positions.*, got 3"),
        (lambda: Taxonomy({"a": None}), r"from_parents takes a mapping.*, got \{'a': None\}"),
        (lambda: Taxonomy([-1], names=[["a"]]), r"names must be hashable.*, got \['a'\]"),
        (lambda: Taxonomy([-1], names=[None]), "names must be hashable and not missing, got None"),
        (lambda: Taxonomy.from_edges([("a", None)]), r"must be pairs.*, got \('a', None\)"),
        (lambda: Taxonomy.from_edges([1, 2]), "must be pairs .*, got 1"),
        (lambda: Taxonomy.from_edges("ab"), "must be pairs .*, got 'ab'"),
        (lambda: Taxonomy.from_parents(["a"]), r"must be a mapping .*, got \['a'\]"),
        (lambda: Taxonomy.from_networkx([("a", "b")]), "must be a graph of networkx, got"),
    ],
)
def test_refuses_what_is_no_taxonomy(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


CYCLE = "@relation r\n@attribute class hierarchical root/a,a/b,b/a\n@data\nb\n"


@pytest.mark.parametrize(
    ("make", "content", "sentence"),
    [
        (Taxonomy.from_rcv1, "", "must have at least one label, got none"),
        (Taxonomy.from_rcv1, "a\tb\nb\ta\n", "must have no cycle, got a -> b -> a"),
        (Taxonomy.from_hmc, CYCLE, "must have no cycle"),
        (Taxonomy.from_skos, "", "must have at least one label, got none"),
    ],
)
def test_a_file_that_holds_no_taxonomy_is_named(make, content, sentence, tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text(content)
    with pytest.raises(
        DataFileError, match=f"^{re.escape(str(path))}: Taxonomy.parents {sentence}"
    ):
        make(path)


def test_refuses_an_undirected_graph():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="must be directed"):
        Taxonomy.from_networkx(networkx.Graph([(1, 2)]))


def test_edges_and_parents_may_come_from_frames():
    edges = {"parent": ["a", "a"], "child": ["b", "c"]}
    parents = pd.Series({"a": None, "b": "a", "c": "a"})
    lists = {"a": np.nan, "b": ["a"], "c": ("a", None)}
    assert Taxonomy.from_edges(pd.DataFrame(edges)) == Taxonomy.from_parents(parents)
    assert Taxonomy.from_edges(pl.DataFrame(edges)) == Taxonomy.from_parents(lists)


def test_several_edges_between_two_labels_are_one():
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph([("a", "b"), ("a", "b")])
    assert Taxonomy.from_networkx(graph) == Taxonomy.from_edges([("a", "b")])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_found_by_name(groups, frame):
    some = ["sci", "rec.autos"]
    table = frame(dict(zip(some, np.eye(2, dtype=int), strict=True)))
    expected = groups.encode([["sci"], ["rec.autos"]])
    assert (groups.encode(table) != expected).nnz == 0
    with pytest.raises(
        ValueError, match=r"labels of the taxonomy as columns, got 'rec\.auto' \(is"
    ):
        groups.encode(frame({"rec.auto": [1], "sci": [0]}))
    with pytest.raises(ValueError, match="labels of the taxonomy as columns, got 'x'"):
        groups.encode(frame({f"{name}": [1] for name in "xyzuvw"}))


def test_columns_without_names_are_those_of_the_taxonomy(groups):
    plain = np.eye(6, dtype=int)
    assert (groups.encode(pd.DataFrame(plain)) != groups.encode(plain)).nnz == 0
    with pytest.raises(ValueError, match="must have a column once, got 'sci' twice"):
        groups.encode(pd.DataFrame(np.eye(2, dtype=int), columns=["sci", "sci"]))


def test_labels_get_their_ancestors(groups):
    closed = groups.encode([["rec.sport.hockey"], [], ["sci", "rec"]]).toarray()
    names = [groups.names[row].tolist() for row in closed]
    assert names == [["rec", "rec.sport", "rec.sport.hockey"], [], ["rec", "sci"]]
    assert groups.is_consistent(closed)
    assert not groups.is_consistent(groups.encode(["rec.autos"], closed=False))


def test_refuses_labels_outside(groups):
    with pytest.raises(ValueError, match=r"y must hold labels of the taxonomy, got 'rec\.chess'"):
        groups.encode([["rec.chess"], ["sci"]])
    with pytest.raises(ValueError, match=r"a column for each of the 6 labels .*, got 2"):
        groups.encode(np.eye(2))
    with pytest.raises(ValueError, match="has no label 'x'"):
        groups.position("x")
    with pytest.raises(ValueError, match=r"has no label 'rec\.auto' \(is 'rec\.autos' meant\?\)"):
        groups.ancestors("rec.auto")
    with pytest.raises(ValueError, match=r"has no label \['rec'\]"):
        groups.children(["rec"])
    for method in (groups.close, groups.is_consistent):
        with pytest.raises(ValueError, match=r"6 columns, one for each label, got shape \(3, 3\)"):
            method(np.eye(3))


def test_is_drawn_as_text(groups):
    drawn = groups.draw(counts=range(6), scores=np.linspace(0, 1, 6)).splitlines()
    assert drawn[0] == "rec  0  0.000"
    assert drawn[2] == "└── rec.sport  2  0.400"
    assert drawn[3] == "    ├── rec.sport.hockey  3  0.600"
    assert groups.draw(max_lines=2).splitlines()[-1] == "... 6 labels in all"
    twice = Taxonomy([-1, -1, [0, 1]]).draw().splitlines()
    assert twice == ["0", "└── 2", "1", "└── 2  (above)"]
    with pytest.raises(ValueError, match="counts must have one number for each of the 6 labels"):
        groups.draw(counts=[1])
    with pytest.raises(ValueError, match=r"scores must have one number .*, got \['a'"):
        groups.draw(scores=list("abcdef"))
    with pytest.raises(ValueError, match="max_lines must be a non-negative integer or None"):
        groups.draw(max_lines=-1)


def test_is_drawn_as_a_picture(groups):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = groups.plot(counts=np.arange(6), scores=np.linspace(0, 1, 6)).ax_
    whole = groups.names.tolist()
    shown = [text.get_text() for text in axes.texts]  # a name goes on where that of its parent ends
    assert shown == [name.split(".")[-1] for name in whole]
    matplotlib.pyplot.close(axes.figure)
    with pytest.raises(ValueError, match="counts must not be negative, got -1"):
        groups.plot(counts=np.full(6, -1))
