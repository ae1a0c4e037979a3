"""Requests to real servers on this machine: bodies, headers and raw bytes.

A new endpoint is a line of `PATHS`, a new kind of model a line of `QUESTIONS`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from engine import SECONDS, Failure, Target
from model_targets import model_file
from mutate import mutate_bytes, mutate_json, some

MOST_MEMORY = 2 * 2**30  # resident bytes of a server
PATHS = (
    "/predict", "/explain", "/model", "/models", "/healthz", "/readyz", "/metrics", "/",
    "/openapi.json", "/models/x/predict", "/nothing",
)  # fmt: skip

#: Why a label; asked of the models that explain theirs.
WHY: dict[str, Any] = {
    "TextTagger": {"text": "a survey of the sea", "k": 5},
    "HierarchicalClassifier": {"row": {"indices": [0, 3], "values": [1.0, 2.5]}, "k": 5},
}
_ROWS: list[Any] = [[0.5, 0, 1, 2, 0, -1], {"indices": [0, 3], "values": [1.0, 2.5]}]
QUESTIONS: dict[str, Any] = {
    "TextTagger": {
        "texts": ["a survey of the sea", "", "ä"],
        "k": 2,
        "probabilities": False,
        "threshold": -1.0,
    },
    "HierarchicalClassifier": {"rows": _ROWS, "k": 3},
    "PairwiseMultilabelSVM": {"rows": _ROWS},
    "SparseLinearRegression": {"rows": _ROWS},
    "ChainSVM": {"sequences": [[["the"], ["dog"]], [{"the": 1.0}]]},
    "LoadForecaster": {"horizon": 1, "coverage": 0.9},
}

# --- servers -------------------------------------------------------------------------------------


class _Server:
    """A process that serves one golden model; made again when it is gone."""

    def __init__(self, name: str):
        self.name = name
        self.process: subprocess.Popen | None = None
        self.port = 0

    def start(self) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        command = [sys.executable, "-m", "sublearn", "serve", str(model_file(self.name))]
        self.process = subprocess.Popen(
            [*command, "--port", "0"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
        )
        atexit.register(self.stop, os.getpid())
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"://[^ ]*:(\d+)", line)
            if found:
                self.port = int(found[1])
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise RuntimeError(f"a server of {self.name} did not start")

    def stop(self, owner: int) -> None:
        if self.process is not None and os.getpid() == owner and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def check(self) -> None:
        """It answers, and has not grown."""
        try:
            status = Path(f"/proc/{self.process.pid}/statm").read_text()  # type: ignore[union-attr]
            resident = int(status.split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return
        if resident > MOST_MEMORY:
            raise Failure(f"the server has {resident >> 20} MB resident")
        if b"200" not in _exchange(self.port, _HEALTH)[:15]:
            raise Failure("the server's health is not 200")


_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_SERVERS = {name: _Server(name) for name in QUESTIONS}


# --- requests ------------------------------------------------------------------------------------

_TYPES = ("application/json", "application/json; charset=utf-8", "text/plain", "", "a/b", "é")
_HEADERS = (
    "Transfer-Encoding: chunked", "Content-Encoding: gzip", "Expect: 100-continue", "Upgrade: h2c",
    "Connection: close", "Connection: upgrade", "Content-Length: -1", "Content-Length: 99999999999",
    "Host: evil.example", "Host: localhost:1:2", "X-Long: " + "x" * 20_000,
    "Cookie: " + "a=b; " * 500,
    "Authorization: Bearer ", "Range: bytes=0-", ": nothing", "no colon", "X-Null: a\0b",
)  # fmt: skip


def make_request(rng: random.Random, name: str) -> bytes:
    """One request as it goes over the wire."""
    is_why = name in WHY and rng.random() < 0.3
    question = WHY[name] if is_why else QUESTIONS[name]
    if rng.random() < 0.85:
        for _ in range(some(rng, 3)):
            question = mutate_json(rng, question)
    body = json.dumps(question).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        body = mutate_bytes(rng, body, [body])
    is_usual = rng.random() < 0.8
    method = "POST" if is_usual else rng.choice(("POST", "GET", "PUT", "HEAD", "OPTIONS", "X", ""))
    path = (
        ("/explain" if is_why else "/predict")
        if is_usual
        else rng.choice((*PATHS, "/" + "a" * 5_000, "*", "//", "/%00", ""))
    )
    headers = [f"Content-Length: {len(body)}", "Host: localhost", f"Content-Type: {_TYPES[0]}"]
    headers.append("Connection: close")
    if rng.random() < 0.2:
        headers[rng.randrange(4)] = rng.choice((*_HEADERS, f"Content-Type: {rng.choice(_TYPES)}"))
    if rng.random() < 0.1:
        headers.append(rng.choice(_HEADERS))
    version = "HTTP/1.1" if is_usual else rng.choice(("HTTP/1.1", "HTTP/1.0", "HTTP/9", "", "H"))
    head = "\r\n".join((f"{method} {path} {version}", *headers)) + "\r\n\r\n"
    request = head.encode("utf-8", "surrogatepass") + body
    return mutate_bytes(rng, request, [request]) if rng.random() < 0.1 else request


def use_request(name: str, request: bytes, folder: Path) -> None:
    server = _SERVERS[name]
    answer = _exchange(server.port, request)
    if hash(request) % 50 == 0:
        server.check()
    if not answer:
        raise ValueError(
            "closed without an answer"
        )  # what a client gets for bytes that are no HTTP
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    if found is None:
        raise Failure(f"no answer of HTTP: {answer[:60]!r}")
    status = int(found[1])
    if status >= 500 and status != 503:  # 503 is a limit on work at the same time
        raise Failure(f"status {status}: {answer[-120:]!r}")
    if 400 <= status < 500:
        raise ValueError(f"status {status}")
    _, _, body = answer.partition(b"\r\n\r\n")
    if _is_whole(request) and b"application/json" in answer[:600] and body:
        json.loads(body, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise Failure(f"{name} in an answer, which is no JSON")


def _is_whole(request: bytes) -> bool:
    """Whether a server has nothing to wait for."""
    head, end, body = request.partition(b"\r\n\r\n")
    lengths = re.findall(rb"(?i)\r\ncontent-length: *(\d{1,9})(?=\r\n|$)", head)
    others = re.findall(rb"(?i)content-length|transfer-encoding|expect|upgrade", head)
    closes = b"connection: close" in head.lower()
    is_told = len(lengths) == len(others) == 1 and len(body) == int(lengths[0])
    return bool(end) and closes and (is_told or (not others and head.startswith(b"GET")))


def _exchange(port: int, request: bytes) -> bytes:
    """Send everything and read until the other side closes.

    Where the server would wait for more, it is told that this was all. It does not answer then, so
    that a whole request must not end so.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS - 1) as connection:
            parts = []
            try:
                connection.sendall(request)
                if not _is_whole(request):
                    connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    parts.append(part)
            except (ConnectionResetError, BrokenPipeError):
                pass  # it may close before it has read a body that is too long
            except TimeoutError:
                raise Failure("no answer and no end of the connection") from None
            return b"".join(parts)
    except ConnectionRefusedError:
        raise Failure("the server is gone") from None


TARGETS = [
    Target(f"serve-{name}", "requests", functools.partial(make_request, name=name),
           functools.partial(use_request, name), 2_500, _SERVERS[name].start)
    for name in QUESTIONS
]  # fmt: skip


def preload() -> None:
    """Servers start when their turn comes."""
