"""Sparse logistic regression on the command line."""

import json

import numpy as np
import pytest
from scipy import sparse

import sublearn as package
from sublearn.io import save_svmlight
from sublearn.linear import SparseLogisticRegression


@pytest.fixture(params=[2, 3])
def data(request, tmp_path):
    """A file of rows with one class each, and the number of classes."""
    rng = np.random.default_rng(0)
    X = 0.2 * rng.random((80, 12)) * (rng.random((80, 12)) < 0.5)
    y = np.arange(80) % request.param
    X[np.arange(80), y] += 1.0
    save_svmlight(tmp_path / "rows.svm", sparse.csr_matrix(X), y)
    return tmp_path / "rows.svm", request.param


def test_fits_predicts_evaluates_and_inspects(sublearn, data, tmp_path):
    file, n_classes = data
    options = ("--method", "sparse-logistic", "--l1", 0.002, "--json")
    done = sublearn("fit", file, "-m", tmp_path / "m", *options)
    assert done.code == 0, done
    figures = json.loads(done.out)
    model = package.load(tmp_path / "m")
    assert isinstance(model, SparseLogisticRegression)
    assert (figures["labels"], figures["weights"]) == (n_classes, model.sparse_coef_.nnz)
    assert figures["certificate"] <= 1e-6
    done = sublearn("predict", tmp_path / "m", file, "-k", 1, "--probabilities")
    pairs = [line.split(":") for line in done.out.splitlines()]
    assert [int(label) for label, _ in pairs] == (np.arange(80) % n_classes).tolist()
    assert all(1 / n_classes <= float(value) <= 1 for _, value in pairs)
    done = sublearn("evaluate", tmp_path / "m", file, "--k", 1, "--json")
    assert json.loads(done.out)["P@1"] == 1.0
    for flags in (["--label", 1], ["--labels", "all"]):
        done = sublearn("inspect", tmp_path / "m", *flags)
        assert done.code == 0, done


def test_says_what_it_cannot_do(sublearn, data, tmp_path):
    file, _ = data
    fit = ("fit", file, "-m", tmp_path / "m", "--method", "sparse-logistic", "-q")
    done = sublearn(*fit, "--bits", 8)
    assert done.code == 2
    assert "No such option: --bits" in done.err
    assert sublearn(*fit).code == 0
    done = sublearn("calibrate", tmp_path / "m", file)
    assert done.code == 2
    assert "needs a model that can calibrate, got a SparseLogisticRegression" in done.err


def test_explains_a_row_by_its_weights(sublearn, data, tmp_path):
    file, _ = data
    fit = ("fit", "sparse-logistic", file, "-m", tmp_path / "m", "-q", "--l1", 0.002)
    assert sublearn(*fit).code == 0
    done = sublearn("explain", tmp_path / "m", file, "--row", 2, "--label", 1, "--json")
    (found,) = json.loads(done.out)["explanations"]
    model, X = package.load(tmp_path / "m"), package.io.load_svmlight(file).X
    x = X[1].toarray() / np.linalg.norm(X[1].toarray())
    expected = np.ravel(model.decision_function(x))[-1 if len(model.classes_) == 2 else 1]
    assert found["score"] == pytest.approx(expected)
    assert found["probability"] == pytest.approx(model.predict_proba(x)[0, 1])


def test_refuses_rows_with_several_labels(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "-m", tmp_path / "m", "--method", "sparse-logistic")
    assert done.code != 0
    assert "y must have one label per sample" in done.err
