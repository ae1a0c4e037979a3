"""The short way of a question gives what the long way gives, and takes nothing that is odd."""

import json
import re
import socket
import threading
import time

import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")

import numpy as np
import uvicorn
from running_server import head, is_closed, parsed, running, running_here, until_closed

from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.serve import create_app
from sublearn.serve.limits import Limits
from sublearn.serve.server import Settings, _Server
from sublearn.serve.work import Work

SERVER = ("127.0.0.1", 8000)
GOOD = b'{"texts": ["word1 word2"], "k": 3}'
DATE = re.compile(rb"date: [^\r]+\r\n")


def request(body=GOOD, path="/predict", **headers):
    """A request that stays open, in the usual form."""
    return head("POST", path, body, **({"connection": None} | headers)) + body


def long_way(body=GOOD, **headers):
    """The same with a header that means something to HTTP."""
    return request(body, te="trailers", **headers)


@pytest.fixture(scope="module")
def server(tagger_file):
    with running(tagger_file) as found:
        yield found


@pytest.fixture(scope="module")
def shortcut():
    words = [f"word{i}" for i in range(20)]
    model = TextTagger(min_df=1).fit(words, [[word] for word in words])
    return create_app(model, name="tagger").state.shortcut


def n_short(server):
    """How many requests went the short way."""
    text = server.request("/metrics")[2]
    return int(float(re.search(r"^sublearn_short_requests_total (\S+)", text, re.M)[1]))


def one_response(connection):
    """The next response on a connection that stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1 << 16)
    top, _, text = found.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", top)[1])
    while len(text) < length:
        text += connection.recv(1 << 16)
    return top + b"\r\n\r\n" + text


def answers(server, *requests):
    with server.connect() as connection:
        found = []
        for sent in requests:
            connection.sendall(sent)
            found.append(DATE.sub(b"", one_response(connection)))
        return found


# --- the same bytes ----------------------------------------------------------------------------

BODIES = [
    GOOD,
    b'{"texts": ["word1", "", "none of them"], "k": 2}',
    b'{"texts": ["word1"], "threshold": 0.5}',
    '{"texts": ["wörd word7 \U0001f600"], "k": 300}'.encode(),
    b'{"texts": ["word1"] }  ',
    b'{"texts": ["word1", "word2", "word3", "word4", "word5", "word6", "word7", "word8"]}',
]
REFUSED = [
    b'{"texts": []}',
    b'{"texts": ["a"], "k": 0}',
    b'{"texts": ["a"], "k": 10000}',
    b'{"texts": ["a"], "probabilities": true}',
    b"{",
    b"",
    b'{"text": "a"}',
]


@pytest.mark.parametrize("body", BODIES + REFUSED, ids=str)
def test_both_ways_give_the_same_bytes(server, body):
    before = n_short(server)
    short, by_name = answers(server, request(body), request(body, "/models/tagger/predict"))
    assert n_short(server) == before + (2 if body in BODIES[:3] + BODIES[4:] else 0)
    assert [short, by_name] == answers(server, long_way(body), long_way(body))
    assert n_short(server) == before + (2 if body in BODIES[:3] + BODIES[4:] else 0)
    assert parsed(short)[0] == (200 if body in BODIES else parsed(short)[0])


def test_a_text_without_a_known_word_is_marked_as_empty(server):
    (answer,) = answers(server, request(BODIES[1]))
    found = json.loads(parsed(answer)[2])["predictions"]
    assert found[0]["labels"][0] == "label word1"
    assert found[1:] == [{"labels": [], "scores": [], "empty": True}] * 2


def test_rows_and_probabilities_go_the_short_way(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5))
    model = PPDSparseClassifier(random_state=0).fit(X, (X[:, :3] > 0).astype(int))
    model.calibrate(X, (X[:, :3] > 0).astype(int)).save(tmp_path / "rows.model")
    rows = [[0.5, 1, 0, -2, 3], {"indices": [4, 1], "values": [1.5, -0.25]}]
    bodies = [
        json.dumps({"rows": rows, "k": 2, "probabilities": p}).encode() for p in (False, True)
    ]
    with running(tmp_path / "rows.model") as server:
        short = answers(server, *map(request, bodies))
        assert n_short(server) == 2
        assert short == answers(server, *map(long_way, bodies))
        assert b"probabilities" in short[1]


def test_a_connection_that_is_to_be_closed_is_closed(server):
    before = n_short(server)
    short = server.raw(request(connection="close"))
    assert n_short(server) == before + 1
    assert DATE.sub(b"", short) == DATE.sub(b"", server.raw(long_way(connection="close")))
    assert b"Connection: close\r\n" in short


def test_requests_are_counted_as_on_the_long_way(server):
    def counts():
        text = server.request("/metrics")[2]
        names = (
            'requests_total{path="/predict",status="200"}',
            'questions_total{model="tagger"}',
            "predict_seconds_count",
            "requests_in_flight",
            "questions_in_work",
            "buffered_bytes",
        )
        return [float(re.search(rf"^sublearn_{re.escape(n)} (\S+)", text, re.M)[1]) for n in names]

    answers(server, request())
    before = counts()
    answers(server, request(), request(b"{"))
    after = counts()
    answers(server, long_way(), long_way(b"{"))
    both = counts()
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 2, 2, 0, 0, 0]
    assert [b - a for a, b in zip(after, both, strict=True)] == [1, 2, 2, 0, 0, 0]


# --- what goes the long way --------------------------------------------------------------------


def test_the_usual_head_goes_the_short_way(shortcut):
    for path in ("/predict", "/models/tagger/predict"):
        sent = request(path=path, authorization="Bearer x", user_agent="curl/8", accept="*/*")
        found = shortcut.head_of(sent, SERVER)
        assert (found.path, found.n_bytes, found.closes) == (path, len(sent), False)
    assert shortcut.head_of(request(connection="close"), SERVER).closes
    assert shortcut.head_of(request(host="127.0.0.1:8000"), SERVER)


@pytest.mark.parametrize(
    "headers",
    [
        {"transfer_encoding": "chunked"},
        {"content_length": None},
        {"content_length": "-1"},
        {"content_length": "+5"},
        {"content_length": "5, 5"},
        {"content_length": "0x5"},
        {"content_length": 100_000},
        {"content_length": "9" * 30},
        {"expect": "100-continue"},
        {"connection": "upgrade"},
        {"connection": "keep-alive, close"},
        {"upgrade": "h2c"},
        {"te": "trailers"},
        {"trailer": "x"},
        {"host": None},
        {"host": "evil.example"},
        {"host": "192.168.0.1"},
        {"origin": "http://evil.example"},
        {"content_type": "text/plain"},
        {"content_type": None},
        {"content_encoding": "gzip"},
        {"x": "\x01"},
        {"x": "a\tb"},
        {"x": "\xe9"},
        {"x": ""},
        {"x": "a" * 5000},
        {"x y": "a"},
        {"Content_Length": "1"},
        {"Host": "localhost"},
    ],
    ids=str,
)
def test_a_head_with_anything_odd_goes_the_long_way(shortcut, headers):
    assert shortcut.head_of(request(**headers), SERVER) is None


@pytest.mark.parametrize(
    "sent",
    [
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request().replace(b"POST", b"post"),
        request().replace(b"POST", b"GET"),
        request(path="/predict?x=1"),
        request(path="/predict/"),
        request(path="/%70redict"),
        request(path="http://localhost/predict"),
        request(path="/explain"),
        request(path="/models/other/predict"),
        request(path="/models/../predict"),
        request().replace(b"\r\n", b"\n"),
        request().replace(b"\r\nhost", b"\r\n host"),
        request().replace(b"host:", b"host :"),
        b"\r\n" + request(),
        request()[:40],
        b"",
    ],
    ids=lambda sent: str(sent[:50]),
)
def test_a_request_in_another_form_goes_the_long_way(shortcut, sent):
    assert shortcut.head_of(sent, SERVER) is None


def test_rules_are_asked_for_each_address_and_token():
    model = TextTagger(min_df=1).fit(["a1", "b1"], [["a"], ["b"]])
    found = create_app(model, token="0123456789abcdef").state.shortcut
    right = request(authorization="Bearer 0123456789abcdef", host="10.0.0.7")
    assert found.head_of(right, ("10.0.0.7", 80))
    assert found.head_of(right, ("10.0.0.8", 80)) is None
    for wrong in ("Bearer 0123456789abcdeg", "Basic 0123456789abcdef", "0123456789abcdef"):
        assert found.head_of(request(authorization=wrong), SERVER) is None
    assert found.head_of(request(), SERVER) is None


def test_no_more_heads_are_kept_than_a_thousand(shortcut):
    for i in range(3000):
        assert shortcut.head_of(request(x=i), SERVER)
    assert len(shortcut._known) <= 1024


def test_an_application_with_something_before_it_goes_the_long_way():
    model = TextTagger(min_df=1).fit(["a1", "b1"], [["a"], ["b"]])
    app = create_app(model)

    def shortcut_of(app):
        with socket.socket() as listening:
            config = uvicorn.Config(app, log_level="warning")
            return _Server(config, app, listening, Settings()).shortcut

    assert shortcut_of(app) is app.state.shortcut

    class Before:
        def __init__(self, app):
            self.app = app

    app.add_middleware(Before)
    assert shortcut_of(app) is None


# --- connections -------------------------------------------------------------------------------


def test_a_body_that_comes_after_its_head_is_waited_for(server):
    sent, before = request(), n_short(server)
    for parts in ([sent[:-30], sent[-30:]], [sent[:-3], sent[-3:-1], sent[-1:]]):
        with server.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                connection.sendall(part)
            assert one_response(connection).startswith(b"HTTP/1.1 200")
    assert n_short(server) <= before + 2


def test_requests_that_come_at_once_are_answered_in_order(server):
    bodies = [json.dumps({"texts": [f"word{i}"], "k": 1}).encode() for i in range(5)]
    ways = [request, long_way, request, request, long_way]
    sent = b"".join(way(body) for way, body in zip(ways, bodies, strict=True))
    with server.connect(sent) as connection:
        found = b""
        while found.count(b"HTTP/1.1 200") < 5 or not found.endswith(b"]}]}"):
            found += connection.recv(1 << 16)
    assert re.findall(rb'"labels":\["label (\w+)"\]', found) == [b"word%d" % i for i in range(5)]


def test_both_ways_take_turns_on_one_connection(server):
    found = answers(server, request(), long_way(), request(b"{"), request(), long_way(b"{"))
    assert [parsed(one)[0] for one in found] == [200, 200, 422, 200, 422]
    assert found[0] == found[1] == found[3]
    assert found[2] == found[4]


def test_deadlines_hold_on_the_short_way(tagger_file):
    """The rest of a body, and the next request."""
    with running(tagger_file, "--body-seconds", "1", "--idle-seconds", "1") as server:
        status, headers, text = parsed(server.raw(request()[:-5]))
        assert (status, headers["connection"]) == (408, "close")
        assert "limit body_seconds" in text
        response = server.raw(request())
        assert re.findall(rb"HTTP/1.1 (\d+)", response) == [b"200"]
        assert n_short(server) == 1
        with server.connect(request()[:-5]) as connection:
            assert parsed(until_closed(connection))[0] == 408


def test_a_client_that_leaves_is_forgotten(server):
    for _ in range(20):
        server.connect(request()).close()
    for _ in range(100):
        text = server.request("/metrics")[2]
        if "sublearn_questions_in_work 0.0" in text and "requests_in_flight 1.0" in text:
            break
        time.sleep(0.05)
    else:
        pytest.fail("still there")
    assert "sublearn_buffered_bytes 0.0\n" in text


def test_a_server_that_ends_answers_first_and_then_closes(tagger_file):
    with running(tagger_file) as server, server.connect(request()) as connection:
        assert one_response(connection).startswith(b"HTTP/1.1 200")
        server.process.terminate()
        server.process.wait(15)
        assert is_closed(connection)


def test_a_question_that_takes_too_long_is_given_up(monkeypatch):
    model = TextTagger(min_df=1).fit(["word1", "word2"], [["a"], ["b"]])
    app, gate = create_app(model, limits=Limits(work_seconds=0.3)), threading.Event()
    service_class, desk = type(app.state.models.only.loaded.service), app.state.shortcut.desk
    ask_model = service_class.answer

    def slow(self, question, check):
        gate.wait(30)
        return ask_model(self, question, check)

    monkeypatch.setattr(service_class, "answer", slow)
    with running_here(app) as port, socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(request())
        status, headers, text = parsed(until_closed(connection))
        gate.set()
    assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
    assert "limit work_seconds, option --work-seconds" in text
    assert (desk.work.n_jobs, desk.buffers.n_bytes) == (0, 0)


def test_too_many_questions_are_refused_by_the_long_way(shortcut):
    desk = shortcut.desk
    work, desk.work = desk.work, Work(Limits(max_working=1, max_waiting=1))
    try:
        desk.work.enter()
        desk.work.enter()
        sent = request()
        assert shortcut.begin(shortcut.head_of(sent, SERVER), sent, print) is None
        assert desk.buffers.n_bytes == 0
    finally:
        desk.work = work
