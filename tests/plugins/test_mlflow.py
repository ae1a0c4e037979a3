"""Models through the real MLflow, with its tracking in a folder of the test."""

import numpy as np
import pytest

from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.linear import SparseLinearRegression

mlflow = pytest.importorskip("mlflow", reason="the plugin needs the extra mlflow")

import pandas as pd  # noqa: E402

from sublearn.plugins.mlflow import load_model, log_fit, log_model, save_model  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture(scope="module")
def fitted():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    return SparseLinearRegression(l1=0.05).fit(X, X["a"] - X["b"]), X


@pytest.fixture(scope="module", autouse=True)
def tracking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("tests", artifact_location=folder.as_uri())
    )


def test_a_logged_model_comes_back_and_predicts_as_a_function(fitted):
    model, X = fitted
    with mlflow.start_run():
        signature = mlflow.models.infer_signature(X, model.predict(X))
        info = log_model(model, "line", signature=signature)
    again = load_model(info.model_uri)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    function = mlflow.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(function.predict(X), model.predict(X))
    assert function.metadata.flavors["sublearn"]["model_class"] == "SparseLinearRegression"


def test_a_fit_is_logged_with_its_trace_and_certificate(fitted):
    model, _ = fitted
    with mlflow.start_run() as run:
        log_fit(model)
    client = mlflow.MlflowClient()
    found = client.get_run(run.info.run_id).data
    assert found.params["l1"] == "0.05"
    assert found.metrics["certificate"] == model.certificate_
    history = client.get_metric_history(run.info.run_id, "nnz_primal")
    assert [one.value for one in history] == model.trace_["nnz_primal"].tolist()


def test_a_tagger_takes_a_table_with_one_column(tmp_path):
    texts = ["a cat", "a dog", "the rain", "the snow"] * 3
    model = TextTagger().fit(texts, [["animal"], ["animal"], ["sky"], ["sky"]] * 3)
    save_model(model, tmp_path / "tagger")
    function = mlflow.pyfunc.load_model(str(tmp_path / "tagger"))
    assert function.predict(pd.DataFrame({"text": texts})) == model.predict(texts)
    with pytest.raises(ParameterError, match="must have one column of texts, got 2"):
        function.predict(pd.DataFrame({"text": texts, "more": texts}))


def test_sets_of_labels_come_back_as_an_indicator(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    model = PPDSparseClassifier(random_state=0).fit(X, (X[:, :3] > 0).astype(int))
    save_model(model, tmp_path / "sets")
    found = mlflow.pyfunc.load_model(str(tmp_path / "sets")).predict(X)
    np.testing.assert_array_equal(found, model.predict(X))


def test_refuses_what_it_cannot_save_or_load(fitted, tmp_path):
    with pytest.raises(ParameterError, match=r"save_model\.model must be a model of this library"):
        save_model(object(), tmp_path / "nothing")
    mlflow.pyfunc.save_model(
        str(tmp_path / "other"), python_model=lambda model_input: model_input, pip_requirements=[]
    )
    with pytest.raises(ParameterError, match="must be a model of the flavour sublearn, got one of"):
        load_model(str(tmp_path / "other"))
