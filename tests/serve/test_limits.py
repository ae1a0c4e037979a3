"""Each limit holds on a real server, and the refusal names it."""

import concurrent.futures
import dataclasses
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")

from running_server import head, is_closed, parsed, running, until_closed

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.serve import Limits
from sublearn.serve.services import service_of

SERVING = Path(__file__).resolve().parents[2] / "docs" / "serving.md"


def as_options(**limits):
    """As the command line has them."""
    return [part for k, v in limits.items() for part in (f"--{k.replace('_', '-')}", str(v))]


def is_named(sentence, limit):
    return f"(limit {limit}, option --{limit.replace('_', '-')})" in sentence


# --- the limits themselves ---------------------------------------------------------------------


@pytest.mark.parametrize("field", dataclasses.fields(Limits), ids=lambda field: field.name)
@pytest.mark.parametrize("value", [0, -1, True, "5", None, float("nan"), float("inf")])
def test_refuses_limits_that_are_none(field, value):
    with pytest.raises(ParameterError, match=f"Limits.{field.name} must be a positive"):
        Limits(**{field.name: value})


def test_the_documentation_has_every_limit_with_its_default_and_meaning():
    rows = re.findall(r"^\| `--([a-z-]+)` \| ([\d,.]+) \| (.+) \|$", SERVING.read_text(), re.M)
    meanings = Limits.meanings()
    assert rows == [
        (f.name.replace("_", "-"), f"{f.default:,}".removesuffix(".0"), meanings[f.name])
        for f in dataclasses.fields(Limits)
    ]
    for f in dataclasses.fields(Limits):
        assert f"{f.name} : {f.type}, default={f.default}\n" in Limits.__doc__


# --- questions ---------------------------------------------------------------------------------

SMALL = {
    "max_rows": 20,
    "max_k": 10,
    "max_labels": 50,
    "max_characters": 1000,
    "max_megabytes": 0.02,
    "max_answer_megabytes": 0.0015,
}


@pytest.fixture(scope="module")
def small(tagger_file):
    with running(tagger_file, *as_options(**SMALL)) as server:
        yield server


@pytest.mark.parametrize(
    ("question", "limit"),
    [
        ({"texts": [""] * 21, "k": 1}, "max_rows"),
        ({"texts": ["a"], "k": 11}, "max_k"),
        ({"texts": ["a"], "k": 10**30}, "max_k"),
        ({"texts": ["a"] * 6, "k": 10}, "max_labels"),
        ({"texts": ["a" * 600, "b" * 600]}, "max_characters"),
        ({"texts": ["a"] * 10_000}, "max_megabytes"),
        ({"texts": ["word1"] * 10, "k": 5}, "max_answer_megabytes"),
    ],
)
def test_a_question_over_a_limit_is_refused(small, question, limit):
    status, answer = small.ask(question)
    assert status == 413
    assert is_named(answer["error"], limit)


def test_a_question_within_all_limits_is_answered(small):
    status, answer = small.ask({"texts": ["word1"] * 5, "k": 5})
    assert status == 200
    assert [one["labels"][0] for one in answer["predictions"]] == ["label word1"] * 5


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(small):
    sent = head("POST", "/predict", content_type="application/json", content_length=10**12)
    assert parsed(small.raw(sent))[0] == 413


@pytest.mark.parametrize("k", ["true", '"5"', "5.0", "null", "[5]", "1e1", "-1", "0"])
def test_k_is_a_whole_number_and_nothing_like_it(small, k):
    status, answer = small.ask(f'{{"texts": ["a"], "k": {k}}}'.encode())
    assert status == 422
    assert answer["error"].startswith("k must be")


@pytest.mark.parametrize("value", ["1", '"true"', "null"])
def test_probabilities_are_true_or_false(small, value):
    assert small.ask(f'{{"texts": ["a"], "probabilities": {value}}}'.encode())[0] == 422


@pytest.mark.parametrize(
    "body",
    [
        b'{"texts": ' + b"[" * 9000 + b"]" * 9000 + b"}",
        b'{"texts": ["a"], "k": NaN}',
        b'{"texts": ["a"], "k": 1' + b"0" * 15_000 + b"}",
        b'{"texts": ["\xff"]}',
        b'{"texts": ["\\ud800"]}',
        b'{"texts": ["a"], "texts": ["b"]}',
    ],
    ids=lambda body: str(body)[:30],
)
def test_what_json_leaves_open_is_refused_over_http(small, body):
    status, answer = small.ask(body)
    assert status == 422
    assert answer["error"].startswith("the question must be")


def test_refusals_are_counted(small):
    small.ask({"texts": ["a"], "k": 11})
    status, _, text = small.request("/metrics")
    assert status == 200
    assert re.search(r'^sublearn_refusals_total\{limit="max_k"\} [1-9]', text, re.M)
    assert re.search(r'^sublearn_requests_total\{path="/predict",status="413"\} [1-9]', text, re.M)
    assert "sublearn_buffered_bytes 0.0\n" in text
    assert small.request("/ready")[0] == 200


def test_paths_that_clients_invent_are_not_kept(small):
    small.request("/invented")
    assert "invented" not in small.request("/metrics")[2]


# --- rows --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows_service():
    X = np.random.default_rng(0).normal(size=(40, 4))
    return service_of(PPDSparseClassifier(random_state=0).fit(X, (X[:, :3] > 0).astype(int)))


@pytest.mark.parametrize(
    "row",
    [
        {"indices": [92233720368547758080], "values": [1.0]},
        {"indices": [-(2**63) - 1], "values": [1.0]},
        {"indices": [True], "values": [1.0]},
        {"indices": [0], "values": [10**400]},
        {"indices": [0], "values": [float("inf")]},
        {"indices": [0], "values": [True]},
        [10**400, 0, 0, 0],
        [float("nan"), 0, 0, 0],
        [True, 0, 0, 0],
        ["1", 0, 0, 0],
        None,
    ],
    ids=str,
)
def test_numbers_that_no_64_bits_hold_are_refused(rows_service, row):
    question = rows_service.question.model_validate({"rows": [[0, 0, 0, 0], row]})
    with pytest.raises(ValueError, match=r"^rows\[1\]"):
        rows_service.answer(question, lambda: None)


def test_rows_in_parts_are_the_rows_at_once(rows_service, monkeypatch):
    rows = np.random.default_rng(1).normal(size=(7, 4)).tolist()
    question = rows_service.question.model_validate({"rows": rows, "k": 2})
    whole = rows_service.answer(question, lambda: None)
    monkeypatch.setattr("sublearn.kinds.base._MOST_VALUES", 8)  # two rows at once
    checks = []
    assert rows_service.answer(question, lambda: checks.append(1)) == whole
    assert len(checks) == 4


# --- clients that are slow or many -------------------------------------------------------------

IMPATIENT = {
    "header_seconds": 1,
    "body_seconds": 1,
    "send_seconds": 1,
    "idle_seconds": 2,
    "max_connections": 20,
    "max_buffered_megabytes": 3,
    "max_megabytes": 1,
    "max_working": 1,
    "max_waiting": 1,
    "shutdown_seconds": 1,
}
HALF_A_HEAD = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx:"
HALF_A_BODY = head("POST", "/predict", b"", content_length=900_000, connection=None)
LARGE = json.dumps({"texts": ["word1"] * 300, "k": 200}).encode()  # an answer of 2 MB


@pytest.fixture(scope="module")
def impatient(tagger_file):
    with running(tagger_file, *as_options(**IMPATIENT)) as server:
        yield server


def test_half_a_head_is_closed(impatient):
    status, _, text = parsed(impatient.raw(HALF_A_HEAD))
    assert status == 408
    assert is_named(text, "header_seconds")


def test_half_a_head_after_a_request_is_closed_as_well(impatient):
    first = head("GET", "/health", connection=None)
    response = impatient.raw(first + HALF_A_HEAD)
    assert re.findall(rb"HTTP/1.1 (\d+)", response) == [b"200", b"408"]


def test_a_connection_without_a_word_is_closed(impatient):
    assert parsed(impatient.raw(b""))[0] == 408


def test_half_a_body_is_closed(impatient):
    status, headers, text = parsed(impatient.raw(HALF_A_BODY + b"{"))
    assert (status, headers["connection"]) == (408, "close")
    assert is_named(text, "body_seconds")


def test_a_connection_without_a_further_request_is_closed(impatient):
    response = impatient.raw(head("GET", "/health", connection=None))
    assert re.findall(rb"HTTP/1.1 (\d+)", response) == [b"200"]


def test_a_head_request_that_is_refused_is_answered_without_a_body(impatient):
    sent = head("HEAD", "/predict", b"{}", connection=None, transfer_encoding="chunked") + b"{}"
    status, _, text = parsed(impatient.raw(sent))
    assert (status, text) == (411, "")


def test_a_question_that_takes_too_long_is_given_up(tagger_file):
    with running(tagger_file, *as_options(work_seconds=0.001)) as server:
        status, headers, text = server.request("/predict", LARGE)
        assert (status, headers["retry-after"]) == (503, "1")
        assert is_named(text, "work_seconds")
        assert server.request("/health")[0] == 200


def test_connections_without_requests_keep_nobody_out(impatient):
    """More of them than connections are granted, and more than the deadline would close."""
    opened = [impatient.connect(HALF_A_HEAD) for _ in range(60)]
    assert impatient.request("/health")[0] == 200
    assert sum(map(is_closed, opened)) >= 40
    for one in opened:
        one.close()


def test_connections_with_requests_are_not_pushed_out(impatient):
    opened = [impatient.connect(HALF_A_BODY) for _ in range(20)]
    time.sleep(0.3)
    status, headers, text = impatient.request("/health")
    assert (status, headers["retry-after"]) == (503, "1")
    assert is_named(text, "max_connections")
    for one in opened:
        assert parsed(until_closed(one))[0] == 408
        one.close()


def test_questions_in_memory_are_bounded_together(impatient):
    part = HALF_A_BODY + b" " * 800_000
    opened = [impatient.connect(part) for _ in range(6)]
    answers = [parsed(until_closed(one)) for one in opened]
    for one in opened:
        one.close()
    statuses = [status for status, *_ in answers]
    assert set(statuses) == {408, 503}
    assert statuses.count(408) <= 3
    refused = next(one for one in answers if one[0] == 503)
    assert refused[1]["retry-after"] == "1"
    assert is_named(refused[2], "max_buffered_megabytes")
    assert "sublearn_buffered_bytes 0.0\n" in impatient.request("/metrics")[2]


def test_a_client_that_takes_no_answer_is_closed(impatient):
    connection = impatient.connect(
        head("POST", "/predict", LARGE, connection=None) + LARGE, receive_buffer=4096
    )
    for _ in range(100):
        if 'limit="send_seconds"' in impatient.request("/metrics")[2]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("not closed")
    assert len(until_closed(connection)) < 2_000_000
    connection.close()
    assert "sublearn_buffered_bytes 0.0\n" in impatient.request("/metrics")[2]


def test_more_questions_than_may_wait_are_refused_and_the_rest_answered(impatient):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: impatient.request("/predict", LARGE), range(8)))
    refused = [answer for answer in answers if answer[0] == 503]
    assert {status for status, *_ in answers} == {200, 503}
    assert all(answer[1]["retry-after"] == "1" for answer in refused)
    assert any(is_named(answer[2], "max_waiting") for answer in refused)


def test_sigterm_ends_it_whatever_clients_do(impatient):
    """The last of these tests: it ends their server."""
    opened = [impatient.connect(HALF_A_HEAD) for _ in range(3)]
    opened += [impatient.connect(HALF_A_BODY + b"{") for _ in range(3)]
    sent = head("POST", "/predict", LARGE, connection=None) + LARGE
    opened.append(impatient.connect(sent, receive_buffer=4096))
    time.sleep(0.2)
    impatient.process.terminate()
    impatient.process.wait(15)
    for one in opened:
        one.close()


# --- with the limits as they are ---------------------------------------------------------------


@pytest.fixture(scope="module")
def usual(tagger_file, tmp_path_factory):
    path = tmp_path_factory.mktemp("usual") / "tagger.model"
    path.write_bytes(tagger_file.read_bytes())
    with running(path) as server:
        yield server, path


def test_a_small_question_makes_no_huge_answer(usual):
    server, _ = usual
    before = server.memory()
    status, answer = server.ask({"texts": [""] * 1000, "k": 3861})
    assert (status, is_named(answer["error"], "max_k")) == (413, True)
    status, answer = server.ask({"texts": [""] * 1000, "k": 300})
    assert (status, is_named(answer["error"], "max_labels")) == (413, True)
    assert server.memory() < before + 50


def test_health_is_answered_while_others_work(usual):
    """The limit is generous for machines under load; benchmarks measure what it is."""
    server, _ = usual
    heavy = [
        json.dumps({"texts": ["word1 word2"] * 300, "k": 300}).encode(),
        json.dumps({"texts": ["word1 " * 1000] * 160, "k": 5}).encode(),
        b'{"texts": [' + b"[]," * 1_300_000 + b"[]]}",
        b'{"texts": [' + b"1," * 1_900_000 + b"1]}",
    ]
    laps = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        work = [pool.submit(server.request, "/predict", heavy[i % 4]) for i in range(8)]
        while not all(one.done() for one in work):
            start = time.perf_counter()
            assert server.request("/health")[0] == 200
            laps.append(time.perf_counter() - start)
    statuses = [one.result()[0] for one in work]
    assert set(statuses) == {200, 413}
    assert np.median(laps) < 0.5
    assert max(laps) < 3


def test_a_model_file_cut_in_place_does_not_matter(usual):
    """The last of these tests: it spoils their model."""
    server, path = usual
    question = {"texts": ["word7", "word8 word9"], "k": 3}
    expected = server.ask(question)
    with path.open("r+b") as file:
        file.truncate(100)
    assert server.ask(question) == expected
    assert server.process.poll() is None


def test_a_model_in_memory_is_the_model_of_the_file(tagger_file):
    mapped, read = sublearn.load(tagger_file), sublearn.load(tagger_file, mapped=False)
    texts = [f"word{i} word{i + 1}" for i in range(20)]
    for one, other in zip(
        mapped.predict_top_k(texts, 3), read.predict_top_k(texts, 3), strict=True
    ):
        np.testing.assert_array_equal(one, other)
