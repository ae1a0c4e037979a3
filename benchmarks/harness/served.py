"""A `sublearn serve` on this machine, and a client that costs little beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Asked", "Server", "as_request", "ask", "running"]


@dataclass(frozen=True)
class Server:
    """The first process of a server, and its port."""

    pid: int
    port: int

    def family(self) -> list[int]:
        """All its processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def memory(self) -> float:
        """Megabytes of all."""
        found = 0.0
        for pid in self.family():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found += next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
        return found

    def cpu_seconds(self) -> float:
        """That all have used, with all threads; a loaded machine does not change it much."""
        return sum(map(_cpu_seconds, self.family()))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(model: Path, options: Sequence[str] = ()) -> Iterator[Server]:
    """A server on loopback, which ends with the statement."""
    call = [sys.executable, "-m", "sublearn", "serve", str(model), "--port", "0", *options]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield Server(process.pid, int(process.stderr.readline().split()[0].rsplit(":", 1)[1]))
        finally:
            process.terminate()


def as_request(question: object, *, is_usual: bool = True) -> bytes:
    """A question as it goes over the wire; with a header for HTTP it goes the long way."""
    body = json.dumps(question).encode()
    more = "" if is_usual else "TE: trailers\r\n"
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\n{more}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Asked:
    """Questions over some connections, and what has come of them."""

    port: int
    requests: Sequence[bytes]
    n_requests: int
    ends: float = float("inf")  # of time.perf_counter
    n_asked: int = 0
    laps: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    client_seconds: float = 0.0  # of CPU

    @property
    def is_over(self) -> bool:
        """Whether no further question is asked."""
        return self.n_asked >= self.n_requests or time.perf_counter() > self.ends

    def next(self) -> bytes:
        """The request that is sent next."""
        self.n_asked += 1
        return self.requests[self.n_asked % len(self.requests)]


async def ask(asked: Asked, n_connections: int) -> None:
    """Ask all, each connection as soon as it has its answer."""
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_keep_asking(asked) for _ in range(n_connections)))
    asked.seconds += time.perf_counter() - start
    asked.client_seconds += time.process_time() - cpu


async def _keep_asking(asked: Asked) -> None:
    """One connection, which is opened again if it breaks."""
    loop = asyncio.get_running_loop()
    while not asked.is_over:
        try:
            _, client = await loop.create_connection(
                lambda: _Client(asked), "127.0.0.1", asked.port
            )
            await client.is_done
        except OSError as error:
            asked.failures[type(error).__name__] += 1


class _Client(asyncio.Protocol):
    """Sends the next question when the answer to the last one is there."""

    def __init__(self, asked: Asked):
        self._asked = asked
        self.is_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrived, self._start = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if self._asked.is_over:
            self._end()
            return
        self._start = time.perf_counter()
        self._transport.write(self._asked.next())

    def data_received(self, data: bytes) -> None:
        data = self._arrived + data
        end = data.find(b"\r\n\r\n")
        at = data.find(b"content-length: ")
        if not 0 <= at < end or len(data) < end + 4 + int(data[at + 16 : data.find(b"\r", at)]):
            self._arrived = data
            return
        self._arrived = b""
        self._asked.laps.append(time.perf_counter() - self._start)
        if not data.startswith(b"HTTP/1.1 200"):
            self._asked.failures[f"status {data[9:12].decode()}"] += 1
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_done.done():
            self._asked.failures["connection lost"] += 1
        self._end()

    def _end(self) -> None:
        if not self.is_done.done():
            self.is_done.set_result(None)
        self._transport.close()
