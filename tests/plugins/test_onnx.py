"""What ONNX Runtime computes from an exported model is what the model computes."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import load_xmc
from sublearn.linear import SparseLinearRegression, SparseLogisticRegression

pytest.importorskip("onnx", reason="the plugin needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="the judge is onnxruntime")

from sublearn.plugins.onnx import network_to_onnx, to_onnx  # noqa: E402

#: Largest difference to a score, relative to the largest score, or to a probability.
PRECISION = {"float32": 1e-5, "float64": 1e-12}


def run(model, X):
    session = runtime.InferenceSession(model.SerializeToString())
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(X)}), strict=True))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    return X, X @ rng.normal(size=12) + 0.1 * rng.normal(size=200)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_numbers_agree(rows, dtype, loss):
    X, y = rows
    y = np.floor(np.exp(y / 3)) if loss == "poisson" else y
    model = SparseLinearRegression(l1=0.01, loss=loss).fit(X, y)
    X = X.astype(dtype)
    found = run(to_onnx(model, dtype=dtype), X)["y"]
    assert found.dtype == dtype
    expected = model.predict(X.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=PRECISION[dtype] * expected.max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("multinomial", [False, True])
@pytest.mark.parametrize("names", [[3, -1], ["no", "yes"], ["a", "b", "ç"], [0.0, 1.0, 2.0]])
def test_labels_and_probabilities_agree(rows, dtype, multinomial, names):
    X, y = rows
    labels = np.array(names)[
        np.digitize(y, np.quantile(y, np.linspace(0, 1, len(names) + 1)[1:-1]))
    ]
    model = SparseLogisticRegression(l1=0.01, multinomial=multinomial).fit(X, labels)
    X = X.astype(dtype)
    found = run(to_onnx(model, dtype=dtype), X)
    expected = model.predict_proba(X.astype(np.float64))
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=PRECISION[dtype])
    assert found["label"].tolist() == model.predict(X.astype(np.float64)).tolist()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_scores_and_labels_of_an_extreme_classifier_agree(rows, n_classes):
    X = rows[0].astype(np.float32)
    y = X[:, :n_classes].argmax(axis=1)
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    found = run(to_onnx(model), X)
    expected = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5 * abs(expected).max())
    assert (found["label"] == model.predict(X)).all()


def test_scores_of_a_real_multilabel_set_agree(shared_data):
    data = load_xmc(shared_data / "yso_en" / "yso_en_test.xmc.txt.xz")
    often = np.argsort(-np.asarray(data.Y.sum(axis=0)).ravel())[:30]
    words = np.argsort(-data.X.getnnz(axis=0))[:500]
    X, Y = data.X[:, words], data.Y[:, often]
    model = PPDSparseClassifier(random_state=0).fit(X[:2000], Y[:2000])
    found = run(to_onnx(model), X[2000:2200].toarray())
    assert list(found) == ["scores"]
    expected = model.decision_function(X[2000:2200])
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5 * abs(expected).max())


def test_the_file_is_what_is_returned_and_says_who_wrote_it(rows, tmp_path):
    import onnx

    model = SparseLinearRegression(l1=0.1).fit(*rows)
    made = to_onnx(model, tmp_path / "model.onnx")
    again = onnx.load(tmp_path / "model.onnx")
    assert again == made
    assert again.producer_name == "sublearn"
    assert {one.key: one.value for one in again.metadata_props} == {
        "certificate": repr(model.certificate_)
    }


@pytest.mark.filterwarnings("ignore::FutureWarning:torch", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.isinstance.treespec:FutureWarning")
def test_a_trimmed_network_agrees_on_real_digits_and_is_smaller(tmp_path):
    torch = pytest.importorskip("torch", reason="networks need the extra torch")
    pytest.importorskip("onnxscript", reason="PyTorch's exporter needs onnxscript")
    from sublearn.trim import deep_trim, remove_neurons, to_sparse

    X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
    X = X.float() / 16
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 40), torch.nn.ReLU(), torch.nn.Linear(40, 10))
    steps = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(60):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(network(X), y).backward()
        steps.step()
    trimmed = deep_trim(network.eval(), (X, y), max_weights=300, random_state=0).module
    made = network_to_onnx(trimmed, X[:1], tmp_path / "network.onnx")
    session = runtime.InferenceSession(tmp_path / "network.onnx")
    (found,) = session.run(None, {"X": X.numpy()})
    with torch.no_grad():
        expected = trimmed(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    n_left = sum(p.numel() for p in remove_neurons(trimmed).parameters())
    n_stored = sum(int(np.prod(one.dims)) for one in made.graph.initializer)
    assert n_stored == n_left < sum(p.numel() for p in network.parameters())
    with pytest.raises(ParameterError, match="must have dense layers, got sparse ones"):
        network_to_onnx(to_sparse(trimmed), X[:1])


def test_refuses_what_it_cannot_write(rows, monkeypatch):
    X, y = rows
    with pytest.raises(ParameterError, match=r"to_onnx\.model must be one of .*got a LinearRegr"):
        to_onnx(LinearRegression().fit(X, y))
    model = PPDSparseClassifier(random_state=0).fit(X, X.argmax(axis=1))
    with pytest.raises(ParameterError, match=r"to_onnx\.dtype must be 'float32' or 'float64', got"):
        to_onnx(model, dtype="int8")
    said = "at most 100 bytes, got 12 features by 12 labels, which take 576"
    monkeypatch.setattr("sublearn.plugins.onnx._MOST_BYTES", 100)
    with pytest.raises(ParameterError, match=re.escape(said)):
        to_onnx(model)


def test_refuses_what_is_no_network():
    pytest.importorskip("onnxscript", reason="pip install onnxscript")
    with pytest.raises(ParameterError, match="needs a module and a tensor, got a list and a"):
        network_to_onnx([], sp.csr_matrix((1, 1)))
