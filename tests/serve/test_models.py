"""Several models, files that are replaced while the server answers, several processes."""

import json
import os
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")

from running_server import head, parsed, running, until_closed

import sublearn
from sublearn.cli.app import run
from sublearn.embed import MIPSIndex
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.serve import AppMaker, Limits, ModelFile, create_app, serve

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
QUESTION = {"texts": ["the coast"], "k": 1}
WAIT = 60  # seconds, for what takes two on an idle machine


def tagger(label):
    texts = ["the coast", "the Baltic coast", "survey data", "survey"]
    return TextTagger(min_df=1).fit(texts, [[label], [label], ["numbers"], ["numbers"]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("models")
    tagger("sea").save(found / "old.model")
    tagger("ocean").save(found / "new.model")
    PPDSparseClassifier(random_state=0).fit(X, (X[:, :3] > 0).astype(int)).save(
        found / "rows.model"
    )
    return found


def until(condition):
    """Look ten times a second whether something has happened."""
    for _ in range(10 * WAIT):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen")


# --- several models ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(folder):
    with running(folder / "old.model", f"numbers={folder / 'rows.model'}") as server:
        yield server


def test_each_model_has_paths_of_its_own(two):
    listed = json.loads(two.request("/models")[2])
    assert [one["name"] for one in listed["models"]] == ["old", "numbers"]
    assert listed["limits"]["max_k"] == Limits().max_k
    for one in listed["models"]:
        path = f"/models/{one['name']}"
        assert json.loads(two.request(path)[2]) == one
        status, _, text = two.request(f"{path}/predict", one["example"])
        assert status == 200
        assert len(json.loads(text)["predictions"]) == 1


def test_a_question_must_say_which_of_several_models(two):
    for path in ("/predict", "/explain", "/model"):
        status, _, text = two.request(path, QUESTION if path != "/model" else None)
        assert status == 404
        assert "/models/NAME/predict" in json.loads(text)["error"]


@pytest.mark.parametrize("path", ["/models/other/predict", "/models/other", "/models/../predict"])
def test_a_model_that_is_not_there_is_named(two, path):
    body = QUESTION if path.endswith("predict") else None
    status, _, text = two.request(path, body)
    assert status == 404
    assert list(json.loads(text)) == ["error"]


def test_questions_are_counted_by_model_and_never_by_what_clients_invent(two):
    two.request("/models/old/predict", QUESTION)
    two.request("/models/invented/predict", QUESTION)
    text = two.request("/metrics")[2]
    assert re.search(r'^sublearn_questions_total\{model="old"\} [1-9]', text, re.M)
    assert 'path="/models/NAME/predict",status="200"' in text
    assert "invented" not in text


def test_a_single_model_has_both_forms(folder):
    with running(folder / "old.model") as server:
        assert server.ask(QUESTION)[0] == 200
        long, short = server.request("/models/old/predict", QUESTION), server.ask(QUESTION)
        assert json.loads(long[2]) == short[1]
        assert server.request("/model")[2] == server.request("/models/old")[2]


def test_the_description_for_programs_has_an_example_of_each_model_that_is_answered(two):
    paths = json.loads(two.request("/openapi.json")[2])["paths"]
    asked = [path for path in paths if path.endswith(("/predict", "/explain"))]
    assert len(asked) == 4
    for path in asked:
        post = paths[path]["post"]
        content = post["requestBody"]["content"]["application/json"]
        assert content["schema"]["properties"]
        status, _, text = two.request(path, content["example"])
        assert status == 200, text
        told = post["responses"]["200"]["content"]["application/json"].get("example")
        assert told is None or told == json.loads(text)
    assert {"/healthz", "/readyz", "/metrics", "/models", "/"} < set(paths)


def test_old_and_new_names_of_state_say_the_same(two):
    for new, old in {"/healthz": "/health", "/readyz": "/ready"}.items():
        assert two.request(new)[::2] == two.request(old)[::2]


@pytest.mark.parametrize("name", ["", "a/b", "ä", ".", "x" * 101])
def test_refuses_names_that_no_path_can_hold(name, folder):
    with pytest.raises(ValueError, match="a model's name must be letters"):
        create_app({name: ModelFile(folder / "old.model")})


def test_refuses_no_model():
    with pytest.raises(ValueError, match="models must be at least one"):
        create_app({})


def test_the_command_refuses_names_that_come_twice_and_files_that_are_not_there(folder, capsys):
    old = str(folder / "old.model")
    assert run(["serve", old, f"old={folder / 'rows.model'}"]) == 2
    assert "'old' twice" in capsys.readouterr().err
    assert run(["serve", f"a={folder / 'nothing.model'}"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_file_of_a_model_that_cannot_be_asked_is_named(tmp_path, capsys):
    MIPSIndex(random_state=0).fit(X.astype(np.float32)).save(tmp_path / "index.model")
    assert run(["serve", str(tmp_path / "index.model"), "--port", "0"]) == 1
    assert "index.model: model must give" in "".join(capsys.readouterr().err.split("\n"))


# --- why ---------------------------------------------------------------------------------------


def explained(server, question, path="/explain"):
    status, _, text = server.request(path, question)
    return status, json.loads(text)


def test_the_words_behind_a_label_add_up_and_say_where_they_stand(two, folder):
    text = "The coast 🎈 of the COAST"
    status, answer = explained(
        two, {"text": text, "labels": ["sea", "numbers"]}, "/models/old/explain"
    )
    assert status == 200
    model = sublearn.load(folder / "old.model")
    expected = [model.explain(text, label).to_dict() for label in ("sea", "numbers")]
    for found, one in zip(answer["explanations"], expected, strict=True):
        parts = [{k: v for k, v in part.items() if k != "spans"} for part in found["contributions"]]
        assert parts == one["contributions"]
        assert found["score"] == one["score"]
    spans = {part["feature"]: part["spans"] for part in answer["explanations"][0]["contributions"]}
    assert [text[a:b] for a, b in spans["coast"]] == ["coast", "COAST"]
    assert [text[a:b] for a, b in spans["the"]] == ["The", "the"]


def test_the_best_label_is_explained_if_none_is_named(two):
    row = {"indices": [0], "values": [1.0]}
    _, answer = explained(two, {"row": row}, "/models/numbers/explain")
    _, _, best = two.request("/models/numbers/predict", {"rows": [row], "k": 1})
    found = json.loads(best)["predictions"][0]
    (only,) = answer["explanations"]
    assert [only["label"]] == found["labels"]
    assert only["score"] == pytest.approx(found["scores"][0], abs=1e-5)


@pytest.mark.parametrize(
    ("question", "status", "sentence"),
    [
        (
            {"text": "a", "labels": ["nothing"]},
            422,
            "labels must be one of the model's 2 labels (numbers, sea, ...), got nothing",
        ),
        ({"text": "a", "labels": []}, 422, "labels must hold at least one item, got none"),
        ({"text": "a", "k": 0}, 422, "k must be greater than or equal to 1, got 0"),
        ({"text": "a", "k": 1001}, 413, "k must be at most 1,000, got 1001"),
        ({"text": "a" * 500_001}, 413, "at most 500,000 characters"),
        ({"text": "a", "labels": ["sea"] * 101, "k": 1000}, 413, "k times rows must be at most"),
        ({"texts": ["a"]}, 422, "text"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_why_that_means_nothing_or_asks_for_too_much_is_refused(two, question, status, sentence):
    found, answer = explained(two, question, "/models/old/explain")
    assert found == status
    assert sentence in answer["error"]


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
def test_parts_of_words_say_where_they_stand(analyzer):
    from sublearn.serve.metrics import Metrics
    from sublearn.serve.models import Models

    texts = ["sailing", "sails", "survey", "surveys"]
    model = TextTagger(min_df=1, analyzer=analyzer, ngram_range=(3, 3))
    model.fit(texts, ["sea", "sea", "numbers", "numbers"])
    explainer = Models({"m": model}, Metrics(()))["m"].loaded.explainer
    text = "Sailing sails"
    question = explainer.question.model_validate({"text": text, "labels": ["sea"], "k": 100})
    (found,) = explainer.answer(question, lambda: None)["explanations"]
    assert found["contributions"]
    for part in found["contributions"]:
        assert part["spans"]
        for start, end in part["spans"]:
            assert text[start:end].lower() == part["feature"].strip()


def test_a_label_in_a_taxonomy_has_its_path(tmp_path):
    edges = [("life", "animal"), ("animal", "bird"), ("life", "plant")]
    labels = np.array(["bird", "plant"])[(X[:, 0] > 0).astype(int)]
    model = HierarchicalClassifier(Taxonomy.from_edges(edges)).fit(X, labels)
    model.save(tmp_path / "tree.model")
    with running(tmp_path / "tree.model") as server:
        question = {"row": [0, 0, 0, 0], "labels": ["bird", "plant"]}
        _, answer = explained(server, question)
        assert [one["path"] for one in answer["explanations"]] == [
            ["life", "animal", "bird"],
            ["life", "plant"],
        ]
        status, answer = explained(server, {"row": [0, 0, 0, 0], "labels": ["stone"]})
        assert (status, "stone" in answer["error"]) == (422, True)


def test_a_model_that_explains_nothing_says_so(tmp_path):
    from sublearn.linear import SparseLinearRegression

    SparseLinearRegression(l1=0.01).fit(X, X[:, 1]).save(tmp_path / "m.model")
    with running(tmp_path / "m.model") as server:
        status, answer = explained(server, {"row": [0, 0, 0, 0]})
        assert status == 404
        gives = "a SparseLinearRegression, which gives numbers of rows: ask it at /predict"
        assert gives in answer["error"]
        assert answer["error"].endswith("by the fields rows")


def test_a_threshold_leaves_out_labels_below_it(two):
    everything = {"texts": ["the coast", "survey"], "k": 2}
    full = json.loads(two.request("/models/old/predict", everything)[2])["predictions"]
    least = sorted(score for one in full for score in one["scores"])[1]
    cut = json.loads(two.request("/models/old/predict", everything | {"threshold": least})[2])
    for one, other in zip(full, cut["predictions"], strict=True):
        n_kept = sum(score >= least for score in one["scores"])
        assert other == {"labels": one["labels"][:n_kept], "scores": one["scores"][:n_kept]}
    assert sum(len(one["labels"]) for one in cut["predictions"]) == 3


# --- files that are replaced -------------------------------------------------------------------


def replace(target, source):
    """As `save` and mv do: one name, two files, no moment without one."""
    shutil.copy(source, target.with_suffix(".part"))
    os.replace(target.with_suffix(".part"), target)


class Asking:
    """Threads that ask without a pause, each on one connection, and keep what they get."""

    def __init__(self, server, n_threads=4):
        self.server, self.labels, self.failures = server, [], []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(n_threads)]

    def _ask(self):
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        body = json.dumps(QUESTION)
        try:
            while not self._is_over.is_set():
                connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                text = response.read()
                if response.status != 200:
                    self.failures.append(text)
                self.labels.append(json.loads(text)["predictions"][0]["labels"][0])
        except Exception as error:  # whatever fails is a request that was dropped
            self.failures.append(error)
        finally:
            connection.close()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("how", ["SIGHUP", "--watch"])
def test_a_replaced_file_is_read_without_a_request_dropped(folder, tmp_path, how):
    path = tmp_path / "m.model"
    shutil.copy(folder / "old.model", path)
    options = [how] if how == "--watch" else []
    with running(path, *options) as server, Asking(server) as asking:
        until(lambda: "sea" in asking.labels)
        for source, label in [("new", "ocean"), ("old", "sea"), ("new", "ocean")]:
            replace(path, folder / f"{source}.model")
            if how == "SIGHUP":
                server.process.send_signal(signal.SIGHUP)
            until(lambda label=label: asking.labels[-1] == label)
        assert asking.failures == []
    assert set(asking.labels) == {"sea", "ocean"}


def n_failed(server):
    """How often a file could not be read again."""
    count = r'sublearn_reloads_total\{model="m",outcome="failed"\} (\d+)'
    found = re.search(count, server.request("/metrics")[2])
    return int(found[1]) if found else 0


def test_a_file_that_is_damaged_or_gone_leaves_the_model_that_is_there(folder, tmp_path):
    path = tmp_path / "m.model"
    shutil.copy(folder / "old.model", path)
    damaged = [b"no model", (folder / "new.model").read_bytes()[:500]]
    with running(path, "--watch") as server:
        for n, content in enumerate(damaged, 1):
            (tmp_path / "part").write_bytes(content)
            os.replace(tmp_path / "part", path)
            until(lambda n=n: n_failed(server) == n)
            assert server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["sea"]
        path.unlink()
        server.process.send_signal(signal.SIGHUP)
        until(lambda: n_failed(server) == 3)
        assert server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["sea"]
        replace(path, folder / "new.model")
        until(lambda: server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["ocean"])


def test_a_signal_right_after_the_start_is_obeyed_and_ends_nothing(folder, tmp_path):
    path = tmp_path / "m.model"
    shutil.copy(folder / "old.model", path)
    with running(path) as server:
        server.process.send_signal(signal.SIGHUP)
        reloads = 'sublearn_reloads_total{model="m",outcome="done"} 1.0'
        until(lambda: reloads in server.request("/metrics")[2])


def test_a_mapped_file_can_be_replaced_as_well(folder, tmp_path):
    path = tmp_path / "m.model"
    shutil.copy(folder / "old.model", path)
    with running(path, "--mapped", "--watch") as server:
        assert server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["sea"]
        replace(path, folder / "new.model")
        until(lambda: server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["ocean"])


def test_models_in_memory_have_nothing_to_reload():
    app = create_app(tagger("sea"))
    before = app.state.models["model"].loaded
    app.state.models.reload()
    assert app.state.models["model"].loaded is before


# --- several processes -------------------------------------------------------------------------


def children(process):
    """Processes that this one started, but for the one that keeps track of resources."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found}
    return [pid for pid, line in lines.items() if b"spawn_main" in line]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are read from /proc")
def test_processes_share_a_port_count_together_reload_and_are_replaced(folder, tmp_path):
    path = tmp_path / "m.model"
    shutil.copy(folder / "old.model", path)
    with running(path, "--workers", "2") as server:
        workers = children(server.process)
        assert len(workers) == 2
        n_asked = 40
        for _ in range(n_asked):
            assert server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["sea"]
        text = server.request("/metrics")[2]  # of both, whichever process answers
        assert f'sublearn_requests_total{{path="/predict",status="200"}} {n_asked}.0' in text

        replace(path, folder / "new.model")
        server.process.send_signal(signal.SIGHUP)
        reloads = 'sublearn_reloads_total{model="m",outcome="done"} 2.0'
        until(lambda: reloads in server.request("/metrics")[2])
        for _ in range(10):
            assert server.ask(QUESTION)[1]["predictions"][0]["labels"] == ["ocean"]

        os.kill(workers[0], signal.SIGKILL)
        until(lambda: len(set(children(server.process)) - set(workers)) == 1)
        assert server.ask(QUESTION)[0] == 200

        server.process.terminate()
        assert server.process.wait(WAIT) == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are read from /proc")
def test_processes_end_with_the_one_that_started_them(folder):
    with running(folder / "old.model", "--workers", "2") as server:
        workers = children(server.process)
        server.process.kill()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))


def test_an_error_of_a_process_that_cannot_begin_is_shown(tmp_path, capsys):
    (tmp_path / "bad.model").write_bytes(b"no model")
    assert run(["serve", str(tmp_path / "bad.model"), "--port", "0", "--workers", "2"]) == 1
    assert "bad.model" in capsys.readouterr().err


def test_several_processes_need_to_know_how_the_application_is_made(folder):
    with pytest.raises(ValueError, match=r"serve\.app must be an AppMaker"):
        serve(create_app(tagger("sea")), port=0, workers=2)
    with pytest.raises(ValueError, match=r"serve\.workers must be a positive integer, got 0"):
        serve(AppMaker({"m": ModelFile(folder / "old.model")}), port=0, workers=0)


# --- the end -----------------------------------------------------------------------------------


def test_a_question_that_runs_is_answered_before_the_end(folder):
    """Its body comes after SIGTERM."""
    with running(folder / "old.model") as server:
        body = json.dumps(QUESTION).encode()
        connection = server.connect(head("POST", "/predict", body) + body[:5])
        until(lambda: "sublearn_requests_in_flight 2.0" in server.request("/metrics")[2])
        server.process.terminate()
        time.sleep(0.5)
        connection.sendall(body[5:])
        status, _, text = parsed(until_closed(connection))
        connection.close()
        assert (status, json.loads(text)["predictions"][0]["labels"]) == (200, ["sea"])
        server.process.wait(WAIT)
