"""Real files load with the sizes that their description states, and as scikit-learn reads them."""

import lzma

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from sublearn.io import load_arff, load_svmlight, load_xmc

ARFF = {  # folder, stem of the files, rows, features, labels
    "bibtex-test": ("bibtex", "bibtex", 2515, 1836, 159),
    "corel5k-train-sparse": ("corel5k", "corel5k", 4500, 499, 374),
    "corel5k-test-sparse": ("corel5k", "corel5k", 500, 499, 374),
    "delicious-test": ("delicious", "delicious", 3185, 500, 983),
    "emotions-train": ("emotions", "emotions", 391, 72, 6),
    "emotions-test": ("emotions", "emotions", 202, 72, 6),
    "enron-train": ("enron", "enron", 1123, 1001, 53),
    "enron-test": ("enron", "enron", 579, 1001, 53),
    "tmc2007-500-test": ("tmc2007_500", "tmc2007-500", 7077, 500, 22),
    "yeast-train": ("yeast", "yeast", 1500, 103, 14),
    "yeast-test": ("yeast", "yeast", 917, 103, 14),
}


@pytest.mark.parametrize("name", ARFF)
def test_arff_files_of_mulan(shared_data, name):
    folder, stem, n_rows, n_features, n_labels = ARFF[name]
    data = load_arff(shared_data / folder / f"{name}.arff.xz", shared_data / folder / f"{stem}.xml")
    assert data.X.shape == (n_rows, n_features)
    assert data.Y.shape == (n_rows, n_labels)
    assert len(data.feature_names) == n_features
    assert len(data.label_names) == n_labels


MULTILABEL = {  # rows, features, labels, stored features (None: not stated)
    "rcv1sub1": (6000, 47236, 101, 463400),
    "reutersk500": (6000, 500, 103, 47631),
    "ng20": (19300, 1006, 20, 619079),
    "stackex_cs": (9270, 635, 274, None),
    "yahoo_arts": (7484, 23146, 26, 831656),
}


@pytest.mark.parametrize("name", MULTILABEL)
def test_multilabel_libsvm_files(shared_data, name):
    n_rows, n_features, n_labels, nnz = MULTILABEL[name]
    path = shared_data / name / f"{name}.svm.xz"
    X, Y = load_svmlight(path, n_features=n_features, n_labels=n_labels)
    assert X.shape == (n_rows, n_features)
    assert Y.shape == (n_rows, n_labels)
    assert nnz is None or X.nnz == nnz


def test_label_statistics_are_those_of_the_description(shared_data):
    Y = load_svmlight(shared_data / "rcv1sub1" / "rcv1sub1.svm.xz").Y
    assert Y.nnz / Y.shape[0] == pytest.approx(2.88, abs=0.005)
    Y = load_svmlight(shared_data / "stackex_cs" / "stackex_cs.svm.xz").Y
    assert np.count_nonzero(np.diff(Y.indptr) == 0) == 36
    Y = load_svmlight(shared_data / "reutersk500" / "reutersk500.svm.xz").Y
    assert len(np.unique(Y.indices)) == 99


SINGLE = {  # file, rows, features, classes
    "sector/sector.heldout.svm.xz": (865, 55151, 105),
    "sector/sector.test.svm.xz": (961, 55188, 105),
    "basehock/basehock.svm.xz": (1993, 4862, 2),
    "a9a/a9a.xz": (32561, 123, 2),
    "a9a/a9a.t.xz": (16281, 122, 2),
    "vowel/vowel.scale": (528, 10, 11),
}


@pytest.mark.parametrize("name", SINGLE)
def test_ordinary_libsvm_files_as_scikit_learn_reads_them(shared_data, name):
    n_rows, n_features, n_classes = SINGLE[name]
    path = shared_data / name
    X, y = load_svmlight(path, dtype=np.float64)
    assert X.shape == (n_rows, n_features)
    assert y.dtype == np.int64
    assert len(np.unique(y)) == n_classes
    with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as stream:
        X_theirs, y_theirs = load_svmlight_file(stream, zero_based=False)
    np.testing.assert_array_equal(y, y_theirs)
    X_theirs.eliminate_zeros()
    assert (X_theirs != X).nnz == 0


@pytest.mark.parametrize(("part", "n_rows"), [("train", 50000), ("test", 9995)])
def test_xmc_files(shared_data, part, n_rows):
    X, Y = load_xmc(shared_data / "yso_en" / f"yso_en_{part}.xmc.txt.xz")
    assert X.shape == (n_rows, 16608)
    assert Y.shape == (n_rows, 20578)
    assert X.has_sorted_indices
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    np.testing.assert_allclose(norms, 1, atol=1e-3)  # stored with four digits
