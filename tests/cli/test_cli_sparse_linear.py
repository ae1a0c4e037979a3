"""Sparse linear regression on the command line, and l1 chosen by cross-validation."""

import json

import numpy as np
import pytest
from scipy import sparse

import sublearn as package
from sublearn.io import save_svmlight
from sublearn.linear import SparseLinearRegression


@pytest.fixture
def data(tmp_path):
    """A file of rows with a number each, and the numbers."""
    rng = np.random.default_rng(0)
    X = rng.random((90, 12)) * (rng.random((90, 12)) < 0.5)
    y = 3 * X[:, 2] - 2 * X[:, 7] + 0.01 * rng.normal(size=90) + 0.5
    save_svmlight(tmp_path / "rows.svm", sparse.csr_matrix(X), y)
    return tmp_path / "rows.svm", y


def fit(sublearn, file, model, *options):
    return sublearn("fit", file, "-m", model, "--method", "sparse-linear", *options)


def test_fits_and_predicts_numbers(sublearn, data, tmp_path):
    file, y = data
    done = fit(sublearn, file, tmp_path / "m", "--l1", 0.001, "--json")
    assert done.code == 0, done
    figures = json.loads(done.out)
    model = package.load(tmp_path / "m")
    assert isinstance(model, SparseLinearRegression)
    assert figures["weights"] == model.sparse_coef_.nnz
    assert "labels" not in figures
    assert not model.notes_["normalize"]
    done = sublearn("predict", tmp_path / "m", file)
    np.testing.assert_allclose([float(line) for line in done.out.splitlines()], y, atol=0.1)


def test_predictions_have_three_formats(sublearn, data, tmp_path):
    file, y = data
    assert fit(sublearn, file, tmp_path / "m", "--l1", 0.001, "-q").code == 0
    done = sublearn("predict", tmp_path / "m", file, "--format", "jsonl")
    lines = [json.loads(line)["prediction"] for line in done.out.splitlines()]
    assert sublearn("predict", tmp_path / "m", file, "-o", tmp_path / "p.npz").code == 0
    with np.load(tmp_path / "p.npz") as arrays:
        np.testing.assert_allclose(arrays["predictions"], lines)
    assert len(lines) == len(y)


def test_evaluates_and_inspects(sublearn, data, tmp_path):
    file, y = data
    assert fit(sublearn, file, tmp_path / "m", "--l1", 0.001, "-q").code == 0
    figures = json.loads(sublearn("evaluate", tmp_path / "m", file, "--json").out)
    assert figures["rows"] == 90
    assert figures["R2"] > 0.99
    assert 0 < figures["MAE"] <= figures["RMSE"] < 0.1 * y.std()
    assert "RMSE" in sublearn("evaluate", tmp_path / "m", file).out
    found = json.loads(sublearn("inspect", tmp_path / "m", "--json").out)
    assert [name for name, _ in found["top_weights"]["the model"]][:2] == ["2", "7"]
    assert "labels" not in found


@pytest.mark.filterwarnings("ignore:.*values of l1 is the least:UserWarning")
@pytest.mark.parametrize("method", ["sparse-linear", "sparse-logistic"])
def test_l1_is_chosen_by_cross_validation(sublearn, data, tmp_path, method):
    file, y = data
    if method == "sparse-logistic":
        X = package.io.load_svmlight(file).X
        save_svmlight(file, X, (y > np.median(y)).astype(np.int64))
    done = sublearn("fit", file, "-m", tmp_path / "m", "--method", method, "--l1", "cv", "--json")
    assert done.code == 0, done
    model = package.load(tmp_path / "m")
    assert json.loads(done.out)["l1"] == model.l1_ > 0
    done = sublearn("fit", file, "-m", tmp_path / "m", "--method", method, "--l1", "cv_1se")
    assert "chosen by cross-validation" in done.out
    assert package.load(tmp_path / "m").l1_ >= model.l1_


@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_other_losses(sublearn, data, tmp_path, loss):
    file, y = data
    X = package.io.load_svmlight(file).X
    save_svmlight(file, X, np.abs(y).round())
    assert fit(sublearn, file, tmp_path / "m", "--loss", loss, "-q").code == 0
    assert package.load(tmp_path / "m").loss == loss


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["fit", "ppd-sparse", "DATA", "-m", "OUT", "--l1", "cv"],
            "PPDSparseClassifier.l1 must be a non-negative number, got cv",
        ),
        (
            ["fit", "DATA", "-m", "OUT", "--l1", "much", "--method", "sparse-linear"],
            "must be a non-negative number, 'cv' or 'cv_1se', got much",
        ),
        (
            ["fit", "DATA", "-m", "OUT", "--text", "--method", "sparse-linear"],
            "needs a method that learns plain labels",
        ),
        (["predict", "MODEL", "DATA", "-k", "3"], "needs a model of labels"),
        (["predict", "MODEL", "DATA", "--probabilities"], "needs a model of labels"),
        (["evaluate", "MODEL", "DATA", "-k", "1"], "needs a model of labels"),
        (["evaluate", "MODEL", "DATA", "--train", "DATA"], "needs a model of labels"),
        (["inspect", "MODEL", "--label", "1"], "needs a model of labels"),
        (["inspect", "MODEL", "--labels", "all"], "needs a model of labels"),
    ],
)
def test_says_what_it_cannot_do(sublearn, data, tmp_path, arguments, sentence):
    file, _ = data
    assert fit(sublearn, file, tmp_path / "m", "--l1", 0.001, "-q").code == 0
    places = {"DATA": file, "MODEL": tmp_path / "m", "OUT": tmp_path / "out"}
    done = sublearn(*(places.get(argument, argument) for argument in arguments))
    assert done.code == 2, done
    assert sentence in " ".join(done.err.split())


def test_refuses_labels_in_place_of_numbers(sublearn, files, tmp_path):
    done = fit(sublearn, files["txt"], tmp_path / "m")
    assert done.code != 0
    assert "DATA must have one number per row" in " ".join(done.err.split())
