"""Mulan's ARFF files: dense and sparse rows, names, ways to say which attributes are labels."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn.io import load_arff


def write(path, text):
    path.write_bytes(text.encode())
    return path


DENSE = r"""% a comment
@RELATION 'some relation'

@attribute height NUMERIC
@Attribute 'two words' real
@attribute "a \"quoted\" name" integer
@attribute red {0,1}
@attribute blue { '1', '0' }
@DATA
% another comment
1.5,0,-2e3,1,0

0, 2 ,0, '1' ,"1"
"""


def test_reads_dense_rows_and_quoted_names(tmp_path):
    data = load_arff(write(tmp_path / "a.arff", DENSE), 2)
    assert data.X.toarray().tolist() == [[1.5, 0, -2000], [0, 2, 0]]
    assert data.Y.toarray().tolist() == [[1, 0], [1, 1]]
    assert data.feature_names.tolist() == ["height", "two words", 'a "quoted" name']
    assert data.label_names.tolist() == ["red", "blue"]
    assert (data.X.dtype, data.X.indices.dtype, data.Y.dtype) == (np.float32, np.int32, np.int8)


SPARSE = """@relation r
@attribute a numeric
@attribute red {0,1}
@attribute b {0,1}
@attribute blue {0,1}
@data
{0 2.5, 3 1}\r
{ }
{1 1,2 1,3 0}
{0\t1e1 ,  1   1}
"""


def test_reads_sparse_rows(tmp_path):
    X, Y = load_arff(write(tmp_path / "a.arff", SPARSE), ["blue", "red"])
    assert X.toarray().tolist() == [[2.5, 0], [0, 0], [0, 1], [10, 0]]
    assert Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1], [0, 1]]
    assert X.has_sorted_indices
    assert X.nnz == 3


def test_labels_come_in_the_order_of_the_xml_file(tmp_path):
    path = write(tmp_path / "a.arff", SPARSE)
    xml = '<labels xmlns="x"><label name="blue"><label name="red"></label></label></labels>'
    for labels in (write(tmp_path / "a.xml", xml), str(tmp_path / "a.xml")):
        data = load_arff(path, labels)
        assert data.label_names.tolist() == ["blue", "red"]
        assert data.feature_names.tolist() == ["a", "b"]
        assert data.Y.toarray()[0].tolist() == [1, 0]


def test_reads_compressed_files_and_old_encodings(tmp_path):
    text = SPARSE.replace("@attribute a ", "@attribute héight ")
    (tmp_path / "a.arff.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    assert load_arff(tmp_path / "a.arff.gz", ["red"]).feature_names[0] == "héight"


@given(
    st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        max_size=5,
    )
)
@settings(deadline=None, max_examples=50)
def test_dense_and_sparse_rows_say_the_same(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("arff")
    head = "@relation r\n" + "".join(f"@attribute x{j} numeric\n" for j in range(3))
    head += "@attribute label {0,1}\n@data\n"
    dense = "".join(",".join(map(repr, row)) + ",1\n" for row in table)
    sparse = "".join(
        "{" + ",".join(f"{j} {value!r}" for j, value in enumerate([*row, 1]) if value) + "}\n"
        for row in table
    )
    left = load_arff(write(folder / "dense.arff", head + dense), 1, dtype=np.float64)
    right = load_arff(write(folder / "sparse.arff", head + sparse), 1, dtype=np.float64)
    np.testing.assert_array_equal(left.X.toarray(), np.array(table).reshape(-1, 3))
    assert (left.X != right.X).nnz == 0
    assert (left.Y != right.Y).nnz == 0


ROWS = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute c {0,1}\n@data\n"
BAD_ROWS = {
    "a missing value": ("1,?,0", "missing values .* are not supported"),
    "a missing sparse value": ("{0 ?}", "missing values .* are not supported"),
    "too few values": ("1,0", "a dense row must have 3 values, got 2"),
    "too many values": ("1,0,0,0", "a dense row must have 3 values, got 4"),
    "a word": ("x,0,1", "could not convert string to float: 'x'"),
    "nan": ("nan,0,1", "a value must be a finite number, got 'nan'"),
    "inf": ("{0 inf}", "a value must be a finite number, got 'inf'"),
    "an underscore": ("1_0,0,1", "a value must be a finite number, got '1_0'"),
    "a nominal value not listed": ("1,2,0", "attribute number 1 must be 0 or 1, got 2"),
    "a sparse nominal value not listed": ("{1 0.5}", "attribute number 1 must be 0 or 1, got 0.5"),
    "an index too large": ("{3 1}", r"indices must increase within 0\.\.2, got 3 after -1"),
    "a negative index": ("{-1 1}", "an entry must be written `index value`, got '-1 1'"),
    "an index twice": ("{1 1,1 1}", "got 1 after 1"),
    "indices in the wrong order": ("{1 1,0 1}", "got 0 after 1"),
    "three words in an entry": ("{0 1 2}", "an entry must be written `index value`, got '0 1 2'"),
    "an empty entry": ("{0 1,}", "an entry must be written `index value`, got ''"),
    "an open brace": ("{0 1", "a sparse row must be written"),
    "a weight": ("{0 1}, {5}", "without a weight"),
}


@pytest.mark.parametrize(("row", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_refuses_a_row_with(tmp_path, row, message):
    path = write(tmp_path / "a.arff", ROWS + "1,0,1\n" + row + "\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 7: ") + f".*{message}"):
        load_arff(path, 1)


BAD_HEADERS = {
    "a string attribute": ("@attribute a string\n@data\n", 2, "'a' must be numeric or {0,1}, got"),
    "a nominal attribute": (
        "@attribute a {x,y}\n@data\n",
        2,
        "must be numeric or {0,1}, got '{x,y}'",
    ),
    "an attribute without a type": ("@attribute a\n@data\n", 2, "must be written `@attribute name"),
    "an attribute twice": ("@attribute a real\n@attribute a real\n@data\n", 3, "declared twice"),
    "no attributes": ("@data\n1\n", 2, "@attribute lines must stand before @data, got none"),
    "another keyword": ("@something a\n", 2, "expected, got '@something a'"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_refuses_a_header_with(tmp_path, text, line, message):
    path = write(tmp_path / "a.arff", "@relation r\n" + text)
    message = re.escape(message)
    with pytest.raises(ValueError, match=re.escape(f"{path}, line {line}: ") + f".*{message}"):
        load_arff(path, 1)


def test_refuses_files_that_end_too_early(tmp_path):
    with pytest.raises(ValueError, match=r"a\.arff: the file has no @data line"):
        load_arff(write(tmp_path / "a.arff", "@relation r\n@attribute a real\n"), 1)
    with pytest.raises(ValueError, match=r"b\.arff: not an ARFF file"):
        load_arff(write(tmp_path / "b.arff", ""), 1)
    with pytest.raises(ValueError, match="a file is needed, got a directory"):
        load_arff(tmp_path, 1)
    with pytest.raises(FileNotFoundError):
        load_arff(tmp_path / "none.arff", 1)


def test_refuses_sparse_rows_whose_absent_entries_would_mean_one(tmp_path):
    text = "@relation r\n@attribute a real\n@attribute b {1,0}\n@data\n{0 1}\n"
    with pytest.raises(ValueError, match="line 5: attribute 'b' must list 0 before 1"):
        load_arff(write(tmp_path / "a.arff", text), 1)


@pytest.mark.parametrize("labels", [None, True, 1.0])
def test_refuses_a_choice_of_labels_of_another_type(tmp_path, labels):
    text = "@relation r\n@attribute a real\n@attribute b {0,1}\n@data\n1,1\n"
    with pytest.raises(TypeError, match=rf"load_arff\.labels must be a path, .*, got {labels}"):
        load_arff(write(tmp_path / "a.arff", text), labels)


def test_refuses_labels_that_are_neither_zero_nor_one(tmp_path):
    text = "@relation r\n@attribute a real\n@attribute b real\n@data\n1,3\n"
    with pytest.raises(ValueError, match=r"a\.arff: labels must hold 0 and 1 only, got 3"):
        load_arff(write(tmp_path / "a.arff", text), 1)


def test_refuses_values_beyond_float32(tmp_path):
    path = write(tmp_path / "a.arff", ROWS + "1e39,0,1\n")
    assert load_arff(path, 1, dtype=np.float64).X[0, 0] == 1e39
    with pytest.raises(ValueError, match="values must be finite float32 numbers"):
        load_arff(path, 1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (0, r"load_arff\.labels must be in 1\.\.3, got 0"),
        (4, r"load_arff\.labels must be in 1\.\.3, got 4"),
        (["z"], "must name attributes of the file, got 'z'"),
        (["b", "b"], "at least one attribute and none twice"),
        ([], "at least one attribute and none twice"),
    ],
)
def test_refuses_labels_that_are_not_there(tmp_path, labels, message):
    with pytest.raises(ValueError, match=message):
        load_arff(write(tmp_path / "a.arff", ROWS), labels)


def test_refuses_files_that_name_no_labels(tmp_path):
    path = write(tmp_path / "a.arff", ROWS)
    with pytest.raises(ValueError, match=r"bad\.xml: not an XML file of labels"):
        load_arff(path, write(tmp_path / "bad.xml", "<labels>"))
    with pytest.raises(ValueError, match=r"none\.xml: no <label name=\.\.\.> found"):
        load_arff(path, write(tmp_path / "none.xml", "<other/>"))
    with pytest.raises(FileNotFoundError):
        load_arff(path, tmp_path / "missing.xml")
