"""UAI files: what is written is read, real files score as stated, bad files get a sentence."""

import contextlib
import gzip
import itertools
import lzma
import math
import random

import numpy as np
import pytest

from sublearn.graph import (
    FactorGraph,
    potts,
    read_evidence,
    read_map,
    read_uai,
    write_map,
    write_uai,
)

SMALL = """MARKOV
3
2 2 3
4
1 0
2 0 1
2 1 2
3 0 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189

12
 1 2 3 4 5 6 7 8 9 1e1 1.1E+1 .12e2
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="small.uai"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def probability(x):
    a, b, c = x
    pair, other = [[0.128, 0.872], [0.920, 0.080]], [[0.21, 0.333, 0.457], [0.811, 0.0, 0.189]]
    return [0.436, 0.564][a] * pair[a][b] * other[b][c] * (6 * a + 3 * b + c + 1)


@pytest.mark.parametrize("head", ["MARKOV", "BAYES"])
def test_scores_are_logarithms_of_the_product_of_tables(file, head):
    graph = read_uai(file(SMALL.replace("MARKOV", head)))
    assert (graph.n_variables, graph.n_factors, graph.domain.tolist()) == (3, 3, [2, 2, 3])
    for x in itertools.product(range(2), range(2), range(3)):
        expected = math.log(probability(x)) if probability(x) else -math.inf
        assert graph.score(x) == pytest.approx(expected)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_files_are_read(file, pack):
    ending = {gzip.compress: "gz", lzma.compress: "xz"}[pack]
    graph = read_uai(file(pack(SMALL.encode()), f"small.uai.{ending}"))
    assert graph.score([0, 0, 0]) == pytest.approx(math.log(probability((0, 0, 0))))


@pytest.mark.parametrize("kind", ["linear", "log", "log10"])
def test_what_is_written_is_read(tmp_path, file, kind):
    graph = read_uai(file(SMALL))
    graph.add_factors([[0, 1], [1, 0]], potts(2, 3.0), [1.0, -0.5])
    write_uai(graph, tmp_path / "again.uai.gz", tables=kind)
    again = read_uai(tmp_path / "again.uai.gz", tables=kind)
    for x in itertools.product(range(2), range(2), range(3)):
        assert again.score(x) == pytest.approx(graph.score(x), abs=1e-12)


def test_scores_that_probabilities_cannot_hold_are_refused_and_nothing_is_written(tmp_path):
    graph = FactorGraph(unary=[[0.0, -800.0]])
    path = tmp_path / "deep.uai"
    with pytest.raises(ValueError, match=r"beyond -700\.\.700, got linear and a score of -800"):
        write_uai(graph, path)
    assert not path.exists()
    write_uai(graph, path, tables="log")
    assert read_uai(path, tables="log").score([1]) == -800.0


def test_equal_tables_are_stored_once(file):
    text = "MARKOV 4 2 2 2 2 3 2 0 1 2 1 2 2 2 3 4 1 2 3 4 4 1 2 3 4 4 1 2 3 5"
    graph = read_uai(file(text))
    assert (graph.n_factors, graph.n_tables) == (3, 2)


def test_unusual_but_right_files_are_read(file):
    graph = read_uai(file("MARKOV 2 1 3 2 0 2 0 0\r\n1\t0.5\r\n1 0.25"))  # a constant, a repeat
    assert graph.score([0, 2]) == pytest.approx(math.log(0.125))
    scope = " ".join(str(i % 2) for i in range(99))  # of one label, but for the last
    graph = read_uai(file(f"MARKOV 3 1 1 2 1 100 {scope} 2 2 0.5 0.75"))
    assert graph.score([0, 0, 1]) == pytest.approx(math.log(0.75))
    graph = read_uai(file("BAYES 2 2 2 0"))  # no factor at all
    assert graph.score([1, 1]) == 0.0
    graph = read_uai(file("MARKOV 1 2 1 1 0 2 -inf -1.5"), tables="log")
    assert graph.unary(0).tolist() == [-np.inf, -1.5]


@pytest.mark.parametrize("tables", ["linear", "log"])
def test_a_file_cut_at_any_byte_is_read_or_refused_with_its_place(file, tables):
    last = SMALL.rindex(".12e2")  # cut in the last number: nothing tells that it was longer
    for end in range(last + 1):
        with pytest.raises(ValueError, match=r"small\.uai, line \d+, column \d+: \S"):
            read_uai(file(SMALL[:end]), tables=tables)
    for end in range(last + 1, len(SMALL)):
        with contextlib.suppress(ValueError):
            read_uai(file(SMALL[:end]), tables=tables)


def test_no_changed_byte_makes_it_crash(file):
    rng = random.Random(0)
    alphabet = b"0123456789 .-+eEnaif\n\x00\xff"
    n_refused = 0
    for _ in range(1500):
        text = bytearray(SMALL.encode())
        for _ in range(rng.choice([1, 1, 2, 5])):
            text[rng.randrange(len(text))] = rng.choice(alphabet)
        try:
            graph = read_uai(file(bytes(text)))
            graph.score([0] * graph.n_variables)
            graph._compiled()
        except ValueError:
            n_refused += 1
    assert 150 < n_refused < 1500


BAD = {
    "empty": ("", "line 1, column 1: the file ends where MARKOV or BAYES should be"),
    "kind": ("MARKOVIAN 1", "line 1, column 1: the first word must be MARKOV or BAYES, got"),
    "no variables": ("MARKOV 0 0", r"number of variables must be an integer in 1\..*, got '0'"),
    "too many variables": ("MARKOV\n900000000\n2", "line 2, column 1: the file is too short for"),
    "too many labels": ("MARKOV 1\n2000000000\n0", "line 2, column 1: the file is too short for"),
    "no labels": ("MARKOV 1\n0 0", "line 2, column 1: a variable's number of labels must be an"),
    "a fraction": ("MARKOV 1 2.5 0", "must be an integer in 1.*, got '2.5'"),
    "too many factors": ("MARKOV 1 2 99", "line 1, column 12: the file is too short for 99 fact"),
    "no such variable": ("MARKOV 2 2 2\n1\n2 0 2\n4 1 1 1 1", r"line 3, column 5: a variable of a"),
    "wrong size": (
        "MARKOV 1 2\n1 1 0\n3 1 1 1",
        "line 3, column 1: the table of factor 0",
    ),
    "negative": ("MARKOV 1 2\n1 1 0\n2 1 -0.5", "line 3, column 5: a table entry must not be neg"),
    "word": (
        "MARKOV 1 2\n1 1 0\n2 1 abc",
        "line 3, column 5: a table entry must be a number",
    ),
    "NaN": ("MARKOV 1 2\n1 1 0\n2 1 nan", "must be a number, got 'nan'"),
    "inf": ("MARKOV 1 2\n1 1 0\n2 1 inf", "must be a number, got 'inf'"),
    "overflow": ("MARKOV 1 2\n1 1 0\n2 1 1e400", "must fit a float64 number, got '1e400'"),
    "all zero": (
        "MARKOV 1 2\n1 1 0\n2 0 0.0",
        "the table of factor 0 is zero everywhere: the model gives every assignment probability",
    ),
    "zero together": (
        "MARKOV 1 2\n2 1 0 1 0\n2 0 1\n2 1 0",
        "variable 0 must have an allowed label, got -inf for each of them",
    ),
    "empty diagonal": (
        "MARKOV 1 2\n3 1 0 2 0 0 2 0 0\n2 1 1\n4 1 1 1 1\n4 0 1 1 0",
        "line 5: the table of factor 2 allows no joint state in which its repeated variable",
    ),
    "trailing": (
        "MARKOV 1 2\n1 1 0\n2 1 1\n7",
        "line 4, column 1: the file must end after",
    ),
    "huge table": ("MARKOV 2 99999 99999 1 2 0 1\n4 1", "must have 9999800001 entries"),
    "binary": (b"\x00\xff\x00", r"the first word must be MARKOV or BAYES, got '\?\?\?'"),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD.keys())
def test_refuses_with_the_place(file, text, sentence):
    with pytest.raises(ValueError, match=r"small\.uai[,:] .*" + sentence):
        read_uai(file(text))


def test_a_damaged_compressed_file_is_refused(file):
    packed = lzma.compress(SMALL.encode())
    with pytest.raises(ValueError, match="the compressed file is damaged"):
        read_uai(file(packed[:-9], "small.uai.xz"))


def test_other_kinds_of_tables_are_refused(file):
    with pytest.raises(ValueError, match=r"read_uai\.tables must be 'linear', 'log' or 'log10'"):
        read_uai(file(SMALL), tables="cubic")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 0 1 2 0", {0: 1, 2: 0}),
        ("1\n2 0 1 2 0\n", {0: 1, 2: 0}),
        ("1 2 1", {2: 1}),
        ("1 1 2 1", {2: 1}),
        ("0", {}),
        ("1 0", {}),
        ("1", {}),
        ("", {}),
        ("2 0 1 0 1", {0: 1}),
    ],
)
def test_evidence_in_both_conventions(file, text, expected):
    assert read_evidence(file(text, "e.evid")) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2 0 1", r"e\.evid, line 1: evidence must be a number of variables and as many pairs"),
        ("2 1 0 1", "evidence must be a number of variables"),
        ("1 x 0", r"e\.evid, line 1, column 3: a number must be an integer in .*, got 'x'"),
        ("1 0 -1", "line 1, column 5: a number must be an integer"),
        ("2\n0 1\n0 0", "line 3: variable 0 must have one label, got 1 and 0"),
    ],
)
def test_refuses_evidence(file, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_evidence(file(text, "e.evid"))


def test_evidence_conditions_the_graph(file):
    graph = read_uai(file(SMALL), file("1 1 1 0", "e.evid"))
    assert graph.score([0, 0, 0]) == pytest.approx(math.log(probability((0, 0, 0))))
    assert graph.score([0, 1, 0]) == -math.inf
    assert read_uai(file(SMALL), {1: 0}).score([0, 1, 0]) == -math.inf


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 7 0", r"e\.evid: .*must name a variable in 0\.\.2, got 7"),
        ("1 0 2", r"e\.evid: .*must give variable 0 a label in 0\.\.1, got 2"),
        ("2 1 1 2 1", r"e\.evid: .*must be possible, got \{1: 1, 2: 1\}, which a factor forbids"),
    ],
)
def test_refuses_evidence_that_does_not_fit_the_graph(file, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_uai(file(SMALL), file(text, "e.evid"))


def test_assignments(tmp_path, file):
    write_map(np.array([0, 1, 12]), tmp_path / "a.map")
    assert (tmp_path / "a.map").read_text() == "MAP\n3 0 1 12\n"
    assert read_map(tmp_path / "a.map").tolist() == [0, 1, 12]
    assert read_map(file("MPE\n1\n2 1 0", "b.map")).tolist() == [1, 0]
    for text in ("", "MAP", "MAP 3 0 1", "MAP 1 1 1 1"):
        with pytest.raises(ValueError, match=r"c\.map: an assignment must be MAP, the number"):
            read_map(file(text, "c.map"))
    with pytest.raises(ValueError, match=r"c\.map, line 1, column 1: .* got 'MAX'"):
        read_map(file("MAX 1 0", "c.map"))
    with pytest.raises(ValueError, match="must be an assignment of integers"):
        write_map([0.5], tmp_path / "c.map")


REFERENCES = {  # log10 of the assignment that comes with the file
    "segmentation/segmentation_11": -137.6123,
    "segmentation/segmentation_12": -22.8115,
    "imagealignment/imagealignment_12": -436.6694,
    "objectdetection/objectdetection_11": 4370.3132,
    "grids/grids_19": 1179.2310,
    "promedas/promedas_11": -20.9955,
    "promedas/promedas_70": -4.1216,
    "wcsp/wcsp_13": -8.0708,
    "wcsp/wcsp_15": -144.0,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_real_files_score_as_their_description_states(shared_data, name):
    path = shared_data / f"uai_{name}.uai"
    evidence = path.with_name(f"{path.name}.evid")
    graph = read_uai(f"{path}.xz", evidence if evidence.exists() else None)
    labels = read_map(f"{path}.map")
    assert graph.score(labels) / math.log(10) == pytest.approx(REFERENCES[name], abs=6e-5)
    assert graph._compiled().score(labels) == pytest.approx(graph.score(labels), rel=1e-12)
