"""A real server in a process of its own, and a client that may break every rule of HTTP."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass


@dataclass
class Running:
    """`sublearn serve` and how to reach it."""

    process: subprocess.Popen
    address: str

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def connect(self, sent=b"", timeout=30, receive_buffer=None):
        """A connection on which something was sent."""
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(timeout)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(sent)
        return connection

    def raw(self, sent, timeout=30):
        """All that comes back until the server closes the connection."""
        with self.connect(sent, timeout) as connection:
            return until_closed(connection)

    def request(self, path, body=None, method=None, **headers):
        """Status, headers and text of a response."""
        method = method or ("GET" if body is None else "POST")
        body = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        sent = head(method, path, body, **headers) + (body or b"")
        return parsed(self.raw(sent))

    def ask(self, body, **headers):
        """Status and answer to a question."""
        status, _, text = self.request("/predict", body, **headers)
        return status, json.loads(text)

    def memory(self):
        """Megabytes that the process has."""
        with open(f"/proc/{self.process.pid}/status") as lines:
            return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


def head(method, path, body=None, **headers):
    """The head of a request; a header that is None is left out, _ in its name stands for -."""
    given = {"host": "localhost", "connection": "close"}
    if body is not None:
        given |= {"content_type": "application/json", "content_length": len(body)}
    given |= headers
    lines = [f"{k.replace('_', '-')}: {v}" for k, v in given.items() if v is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def until_closed(connection):
    """What comes until the other side closes; a reset after the answer is a close as well."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            found += part
    return found


def parsed(response):
    """Status, headers and text of the first response in these bytes."""
    top, _, text = response.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, text.decode()


def is_closed(connection):
    """Whether the other side has closed, with or without a word before."""
    try:
        while connection.recv(1 << 16, socket.MSG_DONTWAIT):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


@contextlib.contextmanager
def running(model, *options, environment=None):
    """`sublearn serve` with options, ended by force if it still runs."""
    call = [sys.executable, "-m", "sublearn", "serve", str(model), *options, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {})
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Running(process, process.stderr.readline().split()[0])
        finally:
            process.kill()


@contextlib.contextmanager
def running_here(app):
    """The port of a server in a thread of this process."""
    import uvicorn

    from sublearn.serve.server import Settings, _Server

    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, lifespan="off", log_level="warning")
        server = _Server(config, app, listening, Settings())
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
