"""A model over HTTP answers what it answers in Python, and refuses by one sentence."""

import contextlib
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import sublearn
from sublearn.embed import MIPSIndex
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadForecaster, LocalKernels
from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.linear import SparseLinearRegression, SparseLogisticRegression
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, word_features

pytest.importorskip("fastapi", reason="serve needs FastAPI")
uvicorn = pytest.importorskip("uvicorn", reason="serve needs uvicorn")

from sublearn.serve import create_app  # noqa: E402
from sublearn.serve.services import service_of  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
LABELS = np.array(["left", "right"])[(X[:, 0] > 0).astype(int)]


@contextlib.contextmanager
def served(model, **options):
    """A real server in a thread: a function that asks it for a path, and gives status and text."""
    server = uvicorn.Server(uvicorn.Config(create_app(model, **options), log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()

        def request(path, body=None):
            asked = urllib.request.Request(
                address + path, body, {"Content-Type": "application/json"}
            )
            try:
                with urllib.request.urlopen(asked, timeout=60) as response:
                    return response.status, response.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        try:
            yield request
        finally:
            server.should_exit = True
            thread.join()


def asked(model, question, **options):
    """Status and answer to a question, JSON or bytes."""
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    with served(model, **options) as request:
        status, text = request("/predict", body)
    return status, json.loads(text)


def ask(model, question):
    status, answer = asked(model, question)
    assert status == 200, answer
    return answer


def refusal(model, question):
    status, answer = asked(model, question)
    assert status == 422, answer
    return answer["error"]


@pytest.fixture(scope="module")
def tagger():
    texts = ["sailing on the Baltic", "the Baltic coast", "survey statistics", "survey data"]
    return TextTagger(min_df=1).fit(texts, [["sea"], ["sea"], ["numbers"], ["numbers"]])


@pytest.fixture(scope="module")
def classifier():
    return SparseLogisticRegression(l1=0.01).fit(X, LABELS)


@pytest.fixture(scope="module")
def ranker():
    Y = (X[:, :3] > 0).astype(int)
    return PPDSparseClassifier(random_state=0).fit(X, Y)


# --- answers -----------------------------------------------------------------------------------


def test_an_empty_text_has_an_empty_answer_in_its_place(tagger):
    found = ask(tagger, {"texts": ["the coast", " \n", "data", ""], "k": 1})["predictions"]
    assert [one["labels"] for one in found] == [["sea"], [], ["numbers"], []]
    assert found[1] == found[3] == {"labels": [], "scores": [], "empty": True}


def test_a_tagger_with_another_classifier_shows_a_question_that_it_answers():
    texts = ["cats sit", "dogs bark", "a cat", "a dog barks"]
    model = TextTagger(SparseLogisticRegression(l1=0.001)).fit(texts, ["cat", "dog", "cat", "dog"])
    question = service_of(model).example()
    assert ask(model, question)["predictions"][0]["labels"][0] == "cat"


def test_texts_get_their_labels_best_first(tagger):
    found = ask(tagger, {"texts": ["the coast", "data"], "k": 2})["predictions"]
    labels, scores = tagger.predict_top_k(["the coast", "data"], 2)
    assert [one["labels"] for one in found] == labels.tolist()
    np.testing.assert_allclose([one["scores"] for one in found], scores)


def test_more_labels_than_there_are_is_all_of_them(tagger):
    assert len(ask(tagger, {"texts": ["coast"], "k": 99})["predictions"][0]["labels"]) == 2


def test_all_forms_of_a_row_are_the_same_row(ranker):
    row = [0.5, 0.0, -1.0, 0.0]
    positions = {"indices": [2, 0], "values": [-1.0, 0.5]}
    full = ask(ranker, {"rows": [row], "k": 3})
    assert ask(ranker, {"rows": [positions], "k": 3}) == full
    both = ask(ranker, {"rows": [positions, row], "k": 3})["predictions"]
    assert both[0] == both[1] == full["predictions"][0]
    labels, scores = ranker.predict_top_k(np.array([row]), 3)
    assert full["predictions"][0]["labels"] == labels[0].tolist()
    np.testing.assert_allclose(full["predictions"][0]["scores"], scores[0])


def test_rows_by_name_need_no_order():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SparseLogisticRegression(l1=0.01).fit(frame, LABELS)
    found = ask(model, {"rows": [{"c": 2.0, "a": 1.0}], "k": 2})
    assert ask(model, {"rows": [[1.0, 0.0, 2.0, 0.0]], "k": 2}) == found


def test_probabilities_where_the_model_has_them(classifier, tagger):
    found = ask(classifier, {"rows": [X[0].tolist()], "k": 2, "probabilities": True})
    assert sum(found["predictions"][0]["probabilities"]) == pytest.approx(1)
    assert "calibrate" in refusal(tagger, {"texts": ["a"], "probabilities": True})


def test_rows_are_scaled_as_they_were_for_the_fit(ranker, tmp_path):
    ranker.save(tmp_path / "m", notes={"normalize": True})
    model = sublearn.load(tmp_path / "m")
    row, unit = [3.0, 0.0, 4.0, 0.0], [0.6, 0.0, 0.8, 0.0]
    expected = ranker.predict_top_k(np.array([unit]), 3)[1][0]
    for form in (row, {"indices": [0, 2], "values": [3.0, 4.0]}):
        scores = ask(model, {"rows": [form], "k": 3})["predictions"][0]["scores"]
        np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_numbers_of_rows():
    model = SparseLinearRegression(l1=0.01).fit(X, X[:, 1])
    found = ask(model, {"rows": X[:3].tolist()})["predictions"]
    np.testing.assert_allclose(found, model.predict(X[:3]))


def test_sets_of_labels_with_their_bounds():
    Y = [["a", "b"] if x > 0 else ["c"] for x in X[:, 0]]
    model = PairwiseMultilabelSVM(random_state=0).fit(X, Y)
    found = ask(model, {"rows": X[:5].tolist()})["predictions"]
    assert [one["labels"] for one in found] == model.predict(X[:5])
    assert all(one["bound"] >= one["score"] - 1e-9 for one in found)


def test_labels_in_a_taxonomy():
    taxonomy = Taxonomy.from_edges([("root", "left"), ("root", "right")])
    model = HierarchicalClassifier(taxonomy).fit(X, LABELS)
    found = ask(model, {"rows": X[:2].tolist(), "k": 1})["predictions"]
    assert [one["labels"][0] for one in found] == model.predict_top_k(X[:2], 1)[0][:, 0].tolist()


def test_tags_of_sentences_and_of_features(tmp_path):
    sentences = [["the", "dog"], ["a", "run"]]
    tags = [["DET", "NOUN"], ["DET", "NOUN"]]
    model = ChainSVM(random_state=0).fit([word_features(s) for s in sentences], tags)
    features = [word_features(sentences[0])]
    assert ask(model, {"sequences": features})["predictions"] == [{"tags": tags[0]}]
    model.save(tmp_path / "m", notes={"token_columns": [], "n_columns": 1})
    saved = sublearn.load(tmp_path / "m")
    assert ask(saved, {"sequences": sentences})["predictions"] == [{"tags": t} for t in tags]


def test_tags_of_rows_of_numbers():
    model = ChainSVM(random_state=0).fit([X[:3], X[3:5]], [LABELS[:3], LABELS[3:5]])
    found = ask(model, {"sequences": [X[:3].tolist()]})["predictions"]
    assert found == [{"tags": model.predict([X[:3]])[0]}]


def test_forecasts_with_intervals():
    hours = np.arange(24 * 14)
    model = LoadForecaster(horizon=6, kernels=LocalKernels(1), random_state=0).fit(
        100 + 10 * np.sin(hours * np.pi / 12)
    )
    found = ask(model, {"horizon": 6, "coverage": 0.8})
    np.testing.assert_allclose(found["forecast"], model.predict(6))
    assert all(a <= b for a, b in zip(found["low"], found["high"], strict=True))


def test_every_page_is_there_and_the_example_is_answered(tagger):
    with served(tagger, name="my.model") as request:
        assert json.loads(request("/health")[1]) == {"status": "ok"}
        assert "<title>sublearn</title>" in request("/")[1]
        assert "/predict" in json.loads(request("/openapi.json")[1])["paths"]
        facts = json.loads(request("/model")[1])
        assert (facts["name"], facts["n_labels"]) == ("my.model", 2)
        assert request("/predict", json.dumps(facts["example"]).encode())[0] == 200
        assert request("/nothing")[0] == 404


# --- refusals ----------------------------------------------------------------------------------


def test_refuses_models_that_cannot_be_asked():
    with pytest.raises(ValueError, match="got a MIPSIndex"):
        create_app(MIPSIndex(random_state=0).fit(X.astype(np.float32)))


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({}, "texts must be given, got {}"),
        ({"texts": "coast"}, "texts must be a valid"),
        ({"texts": []}, "texts must hold at least one item, got none"),
        ({"texts": [3]}, r"texts[0] must be a valid string, got 3"),
        ({"texts": ["a"], "k": 0}, "k must be greater than or equal to 1, got 0"),
        ({"texts": ["a"], "K": 3}, "no field but k, probabilities, threshold, texts, got K"),
        ([], "the question must be"),
    ],
)
def test_refuses_questions_that_mean_nothing(tagger, question, sentence):
    assert sentence in refusal(tagger, question)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([1.0, 2.0], "rows[0] must have 4 values, as many as the model has features, got 2"),
        ({"indices": [4], "values": [1.0]}, "rows[0].indices must be from 0 to 3, got 4"),
        ({"indices": [-1], "values": [1.0]}, "rows[0].indices must be from 0 to 3, got -1"),
        ({"indices": [1.5], "values": [1.0]}, "rows[0].indices must be whole numbers, got 1.5"),
        ({"indices": [1], "values": ["x"]}, "rows[0].values must be numbers, got 'x'"),
        ({"indices": [1, 2], "values": [1.0]}, "rows[0].values must be as many as its indices, 2"),
        ({"indices": 3, "values": [1.0]}, "rows[0].indices must be a list of numbers, got 3"),
        ({"word": 1.0}, "does not know names of features"),
        (["x", 1, 2, 3], "rows[0] must be numbers, got 'x'"),
        ("x", "rows[0] must be a list of numbers, got 'x'"),
    ],
)
def test_refuses_rows_that_do_not_fit(ranker, row, sentence):
    assert sentence in refusal(ranker, {"rows": [row]})


def test_refuses_names_that_the_model_does_not_have(ranker, tmp_path):
    ranker.save(tmp_path / "m", notes={"feature_names": np.array(["a", "b", "c", "d"])})
    model = sublearn.load(tmp_path / "m")
    assert "(a, b, c, ...), got 'e'" in refusal(model, {"rows": [{"e": 1.0}]})
    assert "rows[0] must be numbers, got None" in refusal(model, {"rows": [{"a": None}]})


@pytest.mark.parametrize("body", [b"{", b"\xff", b" ", b'{"texts": ["a"]'])
def test_refuses_what_is_no_json(tagger, body):
    assert "the question must be " in refusal(tagger, body)


def test_a_failure_nobody_foresaw_shows_no_inside(ranker, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("secret")

    log = logging.getLogger("sublearn.serve")  # programs of other tests may have turned it off
    monkeypatch.setattr(log, "disabled", False)
    monkeypatch.setattr(log, "handlers", [caplog.handler])
    caplog.set_level(logging.ERROR, logger=log.name)
    with served(ranker) as request:
        monkeypatch.setattr(type(ranker), "predict_top_k", fail)
        status, text = request("/predict", b'{"rows": [[0, 0, 0, 0]]}')
    assert status == 500
    assert json.loads(text) == {
        "error": "unexpected RuntimeError; the log of the server says where"
    }
    assert "secret" in caplog.text


def test_questions_at_the_same_time_get_their_own_answers(ranker):
    rows = X[:20].tolist()
    expected = ranker.predict_top_k(X[:20], 3)[0].tolist()
    found = [None] * len(rows)
    with served(ranker) as request:

        def one(i):
            body = json.dumps({"rows": [rows[i]], "k": 3}).encode()
            found[i] = json.loads(request("/predict", body)[1])["predictions"][0]["labels"]

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(rows))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == expected


# --- the command -------------------------------------------------------------------------------


def test_the_command_answers_until_it_is_stopped(tagger, tmp_path):
    path = tmp_path / "tagger.model"
    tagger.save(path)
    call = [sys.executable, "-m", "sublearn", "serve", str(path), "--port", "0"]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as server:
        address = server.stderr.readline().split()[0]
        body = json.dumps({"texts": ["the coast"], "k": 1}).encode()
        asked = urllib.request.Request(
            f"{address}/predict", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as response:
            assert json.load(response)["predictions"][0]["labels"] == ["sea"]
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
        assert server.stderr.read() == ""


def test_the_command_refuses_a_port_that_is_taken(tagger, tmp_path):
    path = tmp_path / "tagger.model"
    tagger.save(path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        call = [sys.executable, "-m", "sublearn", "serve", str(path), "--port", port]
        done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "in use" in done.stderr
