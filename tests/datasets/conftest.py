"""A real HTTP server on this machine that can also break the rules."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Served:
    """A file as the server has it, and how it misbehaves with it."""

    content: bytes
    tag: str | None = '"1"'
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)  # after so many bytes, one for each request
    drips: bool = False  # a byte at a time, and never the last one
    stalls: bool = False  # says nothing more before the last byte
    status: int = 200
    asked: list[str | None] = field(default_factory=list)  # ranges that were asked for
    has_length: bool = True
    claims: int | None = None  # another length


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        file = self.server.files.get(self.path)
        if file is None or file.status != 200:
            self.send_error(404 if file is None else file.status)
            return
        wanted = self.headers.get("Range")
        file.asked.append(wanted)
        start = self._start(file, wanted)
        if start is not None and start >= len(file.content):
            self.send_error(416)
            return
        rest = file.content[start or 0 :]
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(file.content) - 1}/*")
        if file.has_length:
            self.send_header("Content-Length", str(file.claims or len(rest)))
        if file.tag is not None:
            self.send_header("ETag", file.tag)
        self.send_header("Connection", "close")
        self.end_headers()
        self._send(file, rest)

    def _start(self, file, wanted):
        same = self.headers.get("If-Range") in (None, file.tag)
        if wanted is None or not file.ranges or not same:
            return None
        return int(wanted.removeprefix("bytes=").rstrip("-"))

    def _send(self, file, rest):
        if file.drips:
            for i in range(len(rest) - 1):
                if self.server.is_ending.wait(0.02):
                    break
                self.wfile.write(rest[i : i + 1])
                self.wfile.flush()
        elif file.stalls:
            self.wfile.write(rest[:-1])
            self.wfile.flush()
            self.server.is_ending.wait()
        else:
            self.wfile.write(rest[: file.cuts.pop(0)] if file.cuts else rest)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.is_ending = threading.Event()

    def handle_error(self, *_):
        """A client that hangs up is no news."""

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def serve(self, path, content, **how):
        self.files[path] = served = Served(content, **how)
        return served


@pytest.fixture
def server(monkeypatch):
    """Takes the place of every source: ``/<set>/<file>``."""
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("SUBLEARN_DATA_MIRROR", found.address)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield found
    found.is_ending.set()
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The cache of a test."""
    folder = tmp_path / "data"
    monkeypatch.setenv("SUBLEARN_DATA_HOME", str(folder))
    return folder
