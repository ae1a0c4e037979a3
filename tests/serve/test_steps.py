"""What keeps `/healthz` quick while heavy questions run: where work is done, and in which pieces.

Python's lock is released between pieces, so the longest piece is what a short request waits for.
Pieces are counted here; `tools/load_server.py --heavy 4` measures the time.
"""

import json
import socket
import threading

import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")

from running_server import head, parsed, running_here, until_closed

from sublearn.extreme import TextTagger
from sublearn.serve import asking, batches, create_app, reading, writing
from sublearn.serve.limits import Limits

HEAVY = [
    {"texts": ["word1 word2"] * 300, "k": 300},
    {"texts": ["word1 " * 1000] * 80, "k": 5},
    {"texts": ["word1"], "k": 1},
]


@pytest.fixture(scope="module")
def app():
    words = [f"word{i}" for i in range(300)]
    return create_app(TextTagger(min_df=1).fit(words, [[f"label {word}"] for word in words]))


def test_no_question_is_read_answered_or_written_on_the_thread_of_the_event_loop(app, monkeypatch):
    threads = {}

    def noting(name, function):
        def noted(*arguments):
            threads.setdefault(name, set()).add(threading.current_thread().name)
            return function(*arguments)

        return noted

    monkeypatch.setattr(asking, "read_json", noting("read", asking.read_json))
    for module in (asking, batches):
        monkeypatch.setattr(module, "write_json", noting("written", module.write_json))
    service = type(app.state.models.only.loaded.service)
    monkeypatch.setattr(service, "answer", noting("answered", service.answer))
    with running_here(app) as port:
        for question in HEAVY:
            body = json.dumps(question).encode()
            with socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(head("POST", "/predict", body) + body)
                assert parsed(until_closed(connection))[0] == 200
    assert threads.keys() == {"read", "answered", "written"}
    for names in threads.values():
        kinds = {name.rpartition("_")[0] for name in names}
        assert kinds == {"sublearn-serve", "sublearn-batch"}


def test_no_piece_of_json_that_is_read_at_once_is_long(monkeypatch):
    pieces = []

    class Noting(json.JSONDecoder):
        def decode(self, text):
            pieces.append(len(text))
            return super().decode(text)

    monkeypatch.setattr(reading, "_DECODER", Noting())
    limits = Limits(max_rows=10**7)
    for body in (b"[" + b"1," * 900_000 + b"1]", json.dumps({"texts": ["abc"] * 500_000}).encode()):
        pieces.clear()
        reading.read_json(body, limits)
        assert max(pieces, default=0) <= reading._STEP + 64


@pytest.mark.parametrize("k", [1, 300, 5000])
def test_no_piece_of_an_answer_that_is_written_at_once_has_many_values(k, monkeypatch):
    pieces, encode = [], writing._encode

    def noting(value):
        pieces.append(writing._size(value))
        return encode(value)

    monkeypatch.setattr(writing, "_encode", noting)
    one = {"labels": [f"label {i}" for i in range(k)], "scores": [0.5] * k}
    answer = {"predictions": [one] * max(1, 50_000 // k)}
    found = b"".join(writing.write_json(answer, Limits(), lambda: None))
    assert json.loads(found) == answer
    assert max(pieces) <= writing._STEP


def test_the_event_loop_begins_one_request_of_the_long_way_at_a_time(app):
    """What 64 clients send at once is not read in one turn."""
    from sublearn.serve.connection import Turns

    turns, begun = Turns(), []

    class Loop:
        def __init__(self):
            self.soon = []

        def call_soon(self, function):
            self.soon.append(function)

    class Waiting:
        loop = Loop()

        def take(self, data):
            begun.append(data)

    for i in range(64):
        turns.add(Waiting(), i)
    n_before = 0
    while Waiting.loop.soon:
        now, Waiting.loop.soon = Waiting.loop.soon, []
        for function in now:
            function()
        assert len(begun) - n_before <= 1
        n_before = len(begun)
    assert begun == list(range(64))
