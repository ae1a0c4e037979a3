"""Pairs of matrices in .npz files, ours and SciPy's; and the choice of a reader by file name."""

import re

import numpy as np
import pytest
from scipy import sparse

from sublearn.io import load_dataset, load_npz, save_npz, save_svmlight, save_xmc

X = sparse.random(20, 12, density=0.3, random_state=0, format="csr")
Y = sparse.csr_matrix(np.random.default_rng(1).random((20, 5)) < 0.3, dtype=np.int8)


def assert_same_matrix(left, right):
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert (left != right).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pair_is_read_back_with_its_names(tmp_path, dtype):
    features, labels = [f"word {j}" for j in range(12)], list("äbcde")
    save_npz(tmp_path / "a.npz", X.astype(dtype), Y, feature_names=features, label_names=labels)
    data = load_npz(tmp_path / "a.npz")
    assert_same_matrix(data.X, X.astype(dtype))
    assert_same_matrix(data.Y, Y)
    assert data.feature_names.tolist() == features
    assert data.label_names.tolist() == labels


def test_a_pair_without_names_has_none(tmp_path):
    save_npz(tmp_path / "a.npz", X, Y)
    data = load_npz(tmp_path / "a.npz")
    assert data.feature_names is None
    assert data.label_names is None


@pytest.mark.parametrize("y", [np.arange(20), np.linspace(0, 1, 20), np.array(["ä"] * 20)])
def test_a_vector_of_labels_is_read_back(tmp_path, y):
    save_npz(tmp_path / "a.npz", X, y)
    y_again = load_npz(tmp_path / "a.npz").Y
    assert y_again.dtype == y.dtype
    np.testing.assert_array_equal(y_again, y)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_matrices_of_scipy_are_read(tmp_path, kind):
    sparse.save_npz(tmp_path / "X.npz", X.asformat(kind))
    sparse.save_npz(tmp_path / "Y.npz", Y.asformat(kind).astype(np.float64))
    data = load_npz(tmp_path / "X.npz", labels=tmp_path / "Y.npz")
    assert_same_matrix(data.X, X)
    assert_same_matrix(data.Y, Y)
    assert data.X.has_canonical_format


def test_refuses_to_save(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(ValueError, match=r"save_npz\.Y must have 20 rows as X has, got 3"):
        save_npz(path, X, np.eye(3))
    with pytest.raises(ValueError, match=r"save_npz\.Y must hold numbers or strings, got dtype"):
        save_npz(path, X, np.array([None] * 20))
    with pytest.raises(ValueError, match=r"save_npz\.feature_names must have 12 entries"):
        save_npz(path, X, Y, feature_names=["a"])
    with pytest.raises(ValueError, match=r"save_npz\.label_names must have 5 entries"):
        save_npz(path, X, Y, label_names=["a"])
    with pytest.raises(ValueError, match=r"save_npz\.label_names must be None where Y is a vector"):
        save_npz(path, X, np.zeros(20), label_names=["a"])
    assert list(tmp_path.iterdir()) == []


def test_refuses_one_matrix_without_labels_and_labels_given_twice(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", X)
    save_npz(tmp_path / "pair.npz", X, Y)
    with pytest.raises(ValueError, match=r"load_npz\.labels must name .*, got None: .* one matrix"):
        load_npz(tmp_path / "X.npz")
    with pytest.raises(ValueError, match=r"load_npz\.labels must be None, got .*its own labels"):
        load_npz(tmp_path / "pair.npz", labels=tmp_path / "X.npz")


def test_refuses_matrices_of_other_lengths(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", X)
    sparse.save_npz(tmp_path / "Y.npz", Y[:3])
    with pytest.raises(ValueError, match=r"load_npz\.Y must have 20 rows as X has, got 3"):
        load_npz(tmp_path / "X.npz", labels=tmp_path / "Y.npz")


def test_refuses_files_that_hold_something_else(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    sparse.save_npz(tmp_path / "dia.npz", sparse.dia_matrix(np.eye(3)))
    for name in ("other.npz", "dia.npz"):
        with pytest.raises(
            ValueError, match=re.escape(str(tmp_path / name)) + ": a pair .* is needed"
        ):
            load_npz(tmp_path / name)


def test_refuses_a_matrix_of_scipy_whose_parts_do_not_fit(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", X)
    content = dict(np.load(tmp_path / "a.npz"))
    for bad in ({"indices": content["indices"] + 1000}, {"indptr": content["indptr"][::-1]}):
        np.savez(tmp_path / "bad.npz", **(content | bad))
        with pytest.raises(ValueError, match=r"bad\.npz: the matrix is damaged"):
            load_npz(tmp_path / "bad.npz", labels=tmp_path / "a.npz")


def test_refuses_files_that_are_no_npz_or_hold_pickles(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "pickle.npz", a=np.array([{}]))
    save_npz(tmp_path / "whole.npz", X, Y)
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    for name in ("text.npz", "pickle.npz", "cut.npz"):
        with pytest.raises(ValueError, match=re.escape(str(tmp_path / name)) + ": not a readable"):
            load_npz(tmp_path / name)


def test_refuses_pairs_whose_parts_do_not_fit(tmp_path):
    save_npz(tmp_path / "a.npz", X, Y)
    content = dict(np.load(tmp_path / "a.npz"))
    for name, bad in [("X.indices", content["X.indices"] + 1000), ("Y.shape", np.array([3, 5]))]:
        np.savez(tmp_path / "bad.npz", **(content | {name: bad}))
        with pytest.raises(ValueError, match=r"bad\.npz: the pair of matrices is damaged"):
            load_npz(tmp_path / "bad.npz")
    del content["Y.data"]
    np.savez(tmp_path / "bad.npz", **content)
    with pytest.raises(ValueError, match=r"bad\.npz: the pair of matrices is damaged"):
        load_npz(tmp_path / "bad.npz")


@pytest.mark.parametrize("compression", ["", ".gz", ".xz", ".bz2", ".XZ"])
def test_load_dataset_chooses_the_reader_by_the_ending(tmp_path, compression):
    ones = sparse.csr_matrix(np.ones((20, 1)))
    features = sparse.csr_matrix(sparse.hstack([ones, X, ones]))  # no empty column at the end
    labels = sparse.csr_matrix(sparse.hstack([Y, ones.astype(np.int8)]))
    writers = {".xmc.txt": save_xmc, ".xmc": save_xmc, ".txt": save_xmc, ".TXT": save_xmc}
    writers |= {".svm": save_svmlight, ".svmlight": save_svmlight, ".libsvm": save_svmlight}
    for ending, save in writers.items():
        path = tmp_path / f"a{ending}{compression}"
        save(path, features, labels)
        data = load_dataset(path, dtype=np.float64)
        assert_same_matrix(data.X, features)
        assert_same_matrix(data.Y, labels)


def test_load_dataset_hands_its_options_on(tmp_path):
    save_npz(tmp_path / "a.npz", X, Y)
    assert_same_matrix(load_dataset(tmp_path / "a.npz").Y, Y)
    text = "@relation r\n@attribute a real\n@attribute b {0,1}\n@data\n3,1\n"
    (tmp_path / "a.arff").write_text(text)
    assert load_dataset(str(tmp_path / "a.arff"), labels=["b"]).X.toarray().tolist() == [[3]]


@pytest.mark.parametrize("name", ["a9a", "a.xlsx", "a.svm.zip", "svm"])
def test_load_dataset_refuses_other_endings(name):
    with pytest.raises(ValueError, match=r"load_dataset\.path must end in one of .*, got"):
        load_dataset(name)
