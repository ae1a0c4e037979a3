"""XMC and LIBSVM files: round trips, compression, options, and what is refused."""

import bz2
import gzip
import lzma
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sublearn.io import load_svmlight, load_xmc, save_svmlight, save_xmc
from sublearn.io.dataset import csr_from_parts

ENDINGS = ["", ".gz", ".xz", ".bz2"]
COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_same_matrix(left, right):
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert (left != right).nnz == 0


@st.composite
def problems(draw, min_labels=0):
    n, d, k = (
        draw(st.integers(1, 6)),
        draw(st.integers(1, 5)),
        draw(st.integers(max(min_labels, 1), 4)),
    )
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    width = np.finfo(dtype).bits
    number = st.one_of(st.just(0.0), st.floats(width=width, allow_nan=False, allow_infinity=False))
    x = draw(st.lists(number, min_size=n * d, max_size=n * d))
    y = draw(st.lists(st.booleans(), min_size=n * k, max_size=n * k))
    X = sparse.csr_matrix(np.array(x, dtype=dtype).reshape(n, d))
    Y = sparse.csr_matrix(np.array(y, dtype=np.int8).reshape(n, k))
    return X, Y


@given(problems())
@settings(deadline=None, max_examples=100)
def test_what_save_xmc_writes_is_read_back(tmp_path_factory, problem):
    X, Y = problem
    path = tmp_path_factory.mktemp("xmc") / "data.xmc.txt"
    save_xmc(path, X, Y)
    X_again, Y_again = load_xmc(path, dtype=X.dtype)
    assert_same_matrix(X_again, X)
    assert_same_matrix(Y_again, Y)


@given(problems(), st.booleans())
@settings(deadline=None, max_examples=100)
def test_what_save_svmlight_writes_is_read_back(tmp_path_factory, problem, zero_based):
    X, Y = problem
    path = tmp_path_factory.mktemp("svm") / "data.svm"
    save_svmlight(path, X, Y, zero_based=zero_based)
    sizes = {"n_features": X.shape[1], "n_labels": Y.shape[1]}
    X_again, Y_again = load_svmlight(path, zero_based=zero_based, dtype=X.dtype, **sizes)
    assert_same_matrix(X_again, X)
    assert_same_matrix(Y_again, Y)


@pytest.mark.parametrize("y", [[1, -1, 3], [0.1, -2.5e-300, 1e300], [100000, 2**40, -(2**53)]])
def test_a_vector_of_labels_is_read_back(tmp_path, y):
    X = sparse.random(3, 8, density=0.5, random_state=0, format="csr")
    save_svmlight(tmp_path / "a.svm", X, y)
    X_again, y_again = load_svmlight(tmp_path / "a.svm", n_features=8, dtype=np.float64)
    assert_same_matrix(X_again, X)
    assert y_again.tolist() == y
    assert y_again.dtype == (np.int64 if isinstance(y[0], int) else np.float64)


@pytest.mark.parametrize("ending", ENDINGS)
def test_compressed_files_are_written_and_read(tmp_path, ending):
    X = sparse.random(5000, 30, density=0.2, random_state=0, format="csr", dtype=np.float32)
    Y = sparse.csr_matrix(np.random.default_rng(1).random((5000, 7)) < 0.3, dtype=np.int8)
    save_xmc(tmp_path / f"a.xmc.txt{ending}", X, Y)
    save_svmlight(tmp_path / f"a.svm{ending}", X, Y)
    raw = (tmp_path / f"a.xmc.txt{ending}").read_bytes()
    assert raw.startswith(b"5000 30 7\n") == (ending == "")
    for data in (
        load_xmc(tmp_path / f"a.xmc.txt{ending}"),
        load_svmlight(tmp_path / f"a.svm{ending}", n_features=30, n_labels=7),
    ):
        assert_same_matrix(data.X, X)
        assert_same_matrix(data.Y, Y)


def test_the_matrices_are_canonical(tmp_path):
    X, Y = load_xmc(write(tmp_path / "a.xmc", "2 9 4\n3,0 8:1 2:0 1:5\n 4:1\n"))
    assert type(X) is type(Y) is sparse.csr_matrix
    assert (X.indices.dtype, X.indptr.dtype, X.dtype) == (np.int32, np.int32, np.float32)
    assert X.has_canonical_format
    np.testing.assert_array_equal(X.indices, [1, 8, 4])
    np.testing.assert_array_equal(Y.toarray(), [[1, 0, 0, 1], [0, 0, 0, 0]])
    X.check_format()


def test_a_file_without_rows_is_a_matrix_without_rows(tmp_path):
    X, Y = load_xmc(write(tmp_path / "a.xmc", "0 3 2\n"))
    assert (X.shape, Y.shape) == ((0, 3), (0, 2))


def test_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random(200, 50, density=0.1, random_state=0, format="csr")
    for y in (rng.choice([-1, 1], 200), rng.normal(size=200)):
        dump_svmlight_file(X, y, str(tmp_path / "a.svm"), comment="a comment\nof two lines")
        X_theirs, y_theirs = load_svmlight_file(str(tmp_path / "a.svm"), n_features=50)
        X_ours, y_ours = load_svmlight(
            tmp_path / "a.svm", zero_based=True, n_features=50, dtype=float
        )
        assert_same_matrix(X_ours, X_theirs)
        np.testing.assert_array_equal(y_ours, y_theirs)


def test_one_label_in_every_row_is_a_vector_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "a.svm", "2 1:1\n0 2:1\n")
    assert load_svmlight(path).Y.tolist() == [2, 0]
    assert load_svmlight(path, multilabel=False).Y.tolist() == [2, 0]
    assert load_svmlight(path, multilabel=True).Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert load_svmlight(path, n_labels=4).Y.shape == (2, 4)


def test_rows_with_other_counts_of_labels_are_an_indicator_matrix(tmp_path):
    path = write(tmp_path / "a.svm", "2,0 1:1\n 2:1\n1 # nothing\n")
    assert load_svmlight(path).Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_a_file_of_comments_has_no_rows(tmp_path):
    data = load_svmlight(write(tmp_path / "a.svm", "# nothing here\n\n"))
    assert data.X.shape == (0, 0)
    assert data.Y.shape == (0,)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("reader", [load_xmc, load_svmlight])
def test_refuses_an_empty_file(tmp_path, reader, ending):
    path = write(tmp_path / f"a.txt{ending}", COMPRESS.get(ending, bytes)(b""))
    with pytest.raises(ValueError, match=re.escape(f"{path}: the file is empty")):
        reader(path)


@pytest.mark.parametrize("reader", [load_xmc, load_svmlight])
def test_refuses_a_directory(tmp_path, reader):
    with pytest.raises(
        ValueError, match=re.escape(f"{tmp_path}: a file is needed, got a directory")
    ):
        reader(tmp_path)


@pytest.mark.parametrize("reader", [load_xmc, load_svmlight])
def test_a_missing_file_is_reported_as_usual(tmp_path, reader):
    with pytest.raises(FileNotFoundError):
        reader(tmp_path / "none.txt")


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_refuses_damaged_compressed_files(tmp_path, ending):
    whole = COMPRESS[ending](b"0 1:1\n" * 1000)
    for content in (b"no such thing at all", whole[: len(whole) // 2], whole[:-12] + b"x" * 12):
        path = write(tmp_path / f"a.svm{ending}", content)
        with pytest.raises(ValueError, match=re.escape(str(path)) + ".* damaged"):
            load_svmlight(path)


def test_an_error_names_file_and_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data.xmc.txt", "16 3 3\n" + "0 1:1\n" * 15 + "0 1:x\n")
    with pytest.raises(ValueError, match=r"^data\.xmc\.txt, line 17: a value must be"):
        load_xmc("data.xmc.txt")


@pytest.mark.parametrize("dtype", [np.float16, int, "complex128"])
def test_refuses_other_dtypes(tmp_path, dtype):
    with pytest.raises(ValueError, match=r"load_xmc\.dtype must be float32 or float64, got"):
        load_xmc(tmp_path / "a.xmc", dtype=dtype)
    with pytest.raises(ValueError, match=r"load_svmlight\.dtype must be float32 or float64, got"):
        load_svmlight(tmp_path / "a.svm", dtype=dtype)


@pytest.mark.parametrize("value", [-1, 2**31, 1.5, "3", True])
@pytest.mark.parametrize("name", ["n_features", "n_labels"])
def test_refuses_bad_counts(tmp_path, name, value):
    with pytest.raises(ValueError, match=rf"load_svmlight\.{name} must be an integer in 0\.\."):
        load_svmlight(write(tmp_path / "a.svm", "0 1:1\n"), **{name: value})


def test_refuses_a_count_of_labels_for_one_number_per_row(tmp_path):
    with pytest.raises(ValueError, match=r"n_labels must be None where multilabel=False, got 3"):
        load_svmlight(tmp_path / "a.svm", n_labels=3, multilabel=False)


def test_refuses_a_feature_beyond_float32(tmp_path):
    path = write(tmp_path / "a.svm", "0 1:1e39\n")
    assert load_svmlight(path, dtype=np.float64).X[0, 0] == 1e39
    with pytest.raises(
        ValueError, match=r"line 1: a value must be a finite float32 number, got '1e39'"
    ):
        load_svmlight(path)


@pytest.mark.parametrize("save", [save_xmc, save_svmlight])
def test_refuses_to_write(tmp_path, save):
    name, path = save.__name__, tmp_path / "a.txt"
    X, Y = np.ones((2, 3)), np.eye(2)
    cases = [
        (np.array([[np.nan]]), np.ones((1, 1)), rf"{name}\.X must be finite"),
        (np.array([["a"]]), np.ones((1, 1)), rf"{name}\.X must hold numbers"),
        (np.ones(3), Y, rf"{name}\.X must be a matrix, got 1 dimension"),
        (X, 2 * Y, rf"{name}\.Y must hold 0 and 1 only, got 2"),
        (X, np.eye(3), rf"{name}\.Y must have 2 rows as X has, got 3"),
    ]
    for bad_X, bad_Y, message in cases:
        with pytest.raises(ValueError, match=message):
            save(path, bad_X, bad_Y)
    assert list(tmp_path.iterdir()) == []


def test_refuses_to_write_targets_that_are_no_finite_numbers(tmp_path):
    with pytest.raises(ValueError, match=r"save_svmlight\.Y must be finite"):
        save_svmlight(tmp_path / "a.svm", np.ones((2, 1)), [1.0, np.inf])
    with pytest.raises(ValueError, match=r"save_svmlight\.Y must hold numbers, got dtype"):
        save_svmlight(tmp_path / "a.svm", np.ones((2, 1)), ["cat", "dog"])
    with pytest.raises(ValueError, match=r"save_xmc\.Y must be a matrix, got 1 dimension"):
        save_xmc(tmp_path / "a.xmc", np.ones((2, 1)), [1, 0])


def test_writing_leaves_its_input_as_it_was(tmp_path):
    X = sparse.csr_matrix(
        (np.array([1.0, 0.0, 2.0]), np.array([2, 1, 2]), np.array([0, 3])), (1, 3)
    )
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    save_xmc(tmp_path / "a.xmc", X, np.ones((1, 1)))
    for part, old in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)
    assert load_xmc(tmp_path / "a.xmc").X.toarray().tolist() == [[0, 0, 3]]


def test_integer_features_are_written_as_numbers(tmp_path):
    save_xmc(tmp_path / "a.xmc", np.array([[1, 0, 100000]]), np.array([[True]]))
    assert load_xmc(tmp_path / "a.xmc").X.toarray().tolist() == [[1, 0, 100000]]


@pytest.mark.parametrize("save", [save_xmc, save_svmlight])
def test_refuses_to_write_more_columns_than_can_be_read(tmp_path, save):
    wide, one = sparse.csr_matrix((1, 2**31)), np.ones((1, 1))
    with pytest.raises(ValueError, match=r"X must have at most 2147483647 columns, got 2147483648"):
        save(tmp_path / "a.txt", wide, one)
    with pytest.raises(ValueError, match=r"Y must have at most 2147483647 columns, got 2147483648"):
        save(tmp_path / "a.txt", one, wide)


def test_indices_are_int64_only_where_int32_does_not_hold_them():
    parts = (np.ones(1), np.array([5]), np.array([0, 1]))
    assert csr_from_parts(*parts, (1, 2**31 - 1)).indices.dtype == np.int32
    assert csr_from_parts(*parts, (1, 2**31)).indices.dtype == np.int64
    assert csr_from_parts(*parts, (1, 2**31)).indptr.dtype == np.int64


def test_refuses_to_write_over_a_directory(tmp_path):
    with pytest.raises(ValueError, match="a file name is needed, got a directory"):
        save_xmc(tmp_path, np.ones((1, 1)), np.ones((1, 1)))
