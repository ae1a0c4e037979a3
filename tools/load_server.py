"""Asks a `sublearn serve` on this machine many questions over many connections, and reports.

    python3 tools/load_server.py                                    # 64 connections, 10^5 requests
    python3 tools/load_server.py --requests 10000 --heavy 4         # beside heavy questions
    python3 tools/load_server.py --model my.model --body question.json
    python3 tools/load_server.py --compare --requests 5000          # with batches and without

--compare runs two servers and asks them in turns, so that whatever else the machine does burdens
both; the last lines are ratios.

Without --model it makes a tagger of 2,000 labels. The run ends after --seconds at the latest. The
exit code is 1 if a request failed, or if memory grew by more than --grown megabytes after the
first tenth of the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

N_LABELS = 2_000
N_TURNS = 6


@dataclass
class Load:
    """What is asked, and what has come of it."""

    port: int
    body: bytes
    n_requests: int
    ends: float
    n_asked: int = 0
    laps: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.n_asked >= self.n_requests or time.perf_counter() > self.ends


def main() -> int:
    options = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or make_tagger(Path(folder) / "tagger.model")
        body = options.body.read_bytes() if options.body else question(["word7 word8"], 5)
        if options.compare:
            return compare(model, body, options)
        with running(model, options.serve) as server:
            load = Load(server[1], body, options.requests, time.perf_counter() + options.seconds)
            put(load, options, server[0].pid)
    report(load, options)
    grown = load.memory[-1] - load.memory[1]
    return int(bool(load.failures) or len(load.laps) < options.requests or grown > options.grown)


def put(load: Load, options: argparse.Namespace, pid: int) -> None:
    """Put a load on a server and note what it took."""
    start, cpu = time.perf_counter(), cpu_seconds(pid)
    with probing(load):
        asyncio.run(ask_all(load, options.connections, options.heavy, pid))
    load.seconds += time.perf_counter() - start
    load.cpu_seconds += cpu_seconds(pid) - cpu


def compare(model: Path, body: bytes, options: argparse.Namespace) -> int:
    """Batches of 1 and of the default size, in turns."""
    ends = time.perf_counter() + options.seconds
    one_by_one = [*options.serve, "max-batch", "1"]
    with running(model, one_by_one) as alone, running(model, options.serve) as together:
        servers = {"alone": alone, "together": together}
        loads = {name: Load(port, body, 0, ends) for name, (_, port) in servers.items()}
        for turn in range(N_TURNS):
            for name, load in loads.items():
                load.n_requests = options.requests * (turn + 1) // N_TURNS
                put(load, options, servers[name][0].pid)
    for name, load in loads.items():
        print(f"--- {name}")
        report(load, options)
    print("--- together : alone")
    first, second = loads["alone"], loads["together"]
    print(f"requests a second  {first.seconds / second.seconds:.2f}")
    print(f"CPU of the server  {second.cpu_seconds / first.cpu_seconds:.2f}")
    return int(bool(first.failures or second.failures))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = found.add_argument
    add("--requests", type=int, default=100_000)
    add("--connections", type=int, default=64)
    add("--heavy", type=int, default=0, help="further connections with the largest questions")
    add("--seconds", type=float, default=1200.0, help="end after this time")
    add("--grown", type=float, default=32.0, help="megabytes by which memory may grow")
    add("--compare", action="store_true", help="with batches and without, in turns")
    add("--model", type=Path, help="a saved model")
    add("--body", type=Path, help="a file with a question to it")
    add(
        "--serve",
        nargs="*",
        default=[],
        help="further options of sublearn serve, without --, such as max-working 2",
    )
    return found


def make_tagger(path: Path) -> Path:
    from sublearn.extreme import TextTagger

    words = [f"word{i}" for i in range(N_LABELS)]
    TextTagger(min_df=1).fit(words, [[f"label {word}"] for word in words]).save(path)
    return path


def question(texts: list[str], k: int) -> bytes:
    return json.dumps({"texts": texts, "k": k}).encode()


@contextlib.contextmanager
def running(model: Path, options: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process of a server on loopback, and its port."""
    call = [sys.executable, "-m", "sublearn", "serve", str(model), "--port", "0"]
    for option in options:  # names have letters, values have none
        call.append(f"--{option}" if option[0].isalpha() else option)
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process, int(process.stderr.readline().split()[0].rsplit(":", 1)[1])
        finally:
            process.terminate()


async def ask_all(load: Load, n_connections: int, n_heavy: int, pid: int) -> None:
    if not load.memory:
        load.memory.append(memory(pid))
    beside = [asyncio.create_task(watch(load, pid))]
    beside += [asyncio.create_task(ask_heavily(load)) for _ in range(n_heavy)]
    await asyncio.gather(*(ask(load) for _ in range(n_connections)))
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    load.memory[2:] = [memory(pid)]


async def ask(load: Load) -> None:
    """One connection, which is opened again if it breaks."""
    while not load.is_over:
        try:
            async with connected(load.port) as (reader, writer):
                while not load.is_over:
                    load.n_asked += 1
                    start = time.perf_counter()
                    status = await exchanged(reader, writer, "POST", "/predict", load.body)
                    load.laps.append(time.perf_counter() - start)
                    if status != 200:
                        load.failures[f"status {status}"] += 1
        except (OSError, asyncio.IncompleteReadError) as error:
            load.failures[type(error).__name__] += 1


def probe(port: int, is_over: Event, answers: Connection) -> None:
    """How long /healthz takes, on a connection for each request; in a process of its own.

    In the process that asks the questions it would wait for that process as well.
    """
    laps, failures = [], Counter[str]()
    while not is_over.wait(0.05):
        start = time.perf_counter()
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("GET", "/healthz")
        status = client.getresponse().status
        client.close()
        laps.append(time.perf_counter() - start)
        if status != 200:
            failures[f"health {status}"] += 1
    answers.send((laps, failures))


@contextlib.contextmanager
def probing(load: Load) -> Iterator[None]:
    is_over, (ours, theirs) = multiprocessing.Event(), multiprocessing.Pipe()
    process = multiprocessing.Process(target=probe, args=(load.port, is_over, theirs))
    process.start()
    try:
        yield
    finally:
        is_over.set()
        laps, failures = ours.recv()
        load.health += laps
        load.failures.update(failures)
        process.join()


async def ask_heavily(load: Load) -> None:
    body = question(["word7 word8"] * 100, 1000)  # as many labels as are granted
    while True:
        async with connected(load.port) as (reader, writer):
            await exchanged(reader, writer, "POST", "/predict", body)


async def watch(load: Load, pid: int) -> None:
    """Memory after the first tenth, when everything has been used once."""
    while len(load.laps) < load.n_requests // 10:
        await asyncio.sleep(0.05)
    if len(load.memory) < 2:
        load.memory.append(memory(pid))


@contextlib.asynccontextmanager
async def connected(port: int):  # type: ignore[no-untyped-def]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def exchanged(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    body: bytes = b"",
) -> int:
    """The status of a response, which is read to its end."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = top.partition("content-length: ")[2].partition("\r")[0]
    await reader.readexactly(int(length))
    return int(top.split()[1])


def memory(pid: int) -> float:
    """Megabytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def cpu_seconds(pid: int) -> float:
    """That a process has used, of all its threads; a loaded machine does not change it much."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(load: Load, options: argparse.Namespace) -> None:
    print(f"connections  {options.connections}, and {options.heavy} with heavy questions")
    n_done = len(load.laps)
    each = 1e3 * load.cpu_seconds / max(1, n_done)
    rate = n_done / load.seconds
    print(f"requests     {n_done:,} in {load.seconds:.1f} s, {rate:,.0f} a second")
    print(f"CPU          {each:.2f} ms of the server for a request")
    print(f"failures     {dict(load.failures) or 'none'}")
    print(f"latency, ms  {quantiles(load.laps)}")
    print(f"health, ms   {quantiles(load.health)}, {len(load.health):,} times")
    shown = ", ".join(f"{one:.0f}" for one in load.memory)
    print(f"memory, MB   {shown} (before, after a tenth, after)")


def quantiles(laps: list[float]) -> str:
    ordered = sorted(laps) or [float("nan")]
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return ", ".join(
        f"{name} {1e3 * ordered[min(int(q * len(ordered)), len(ordered) - 1)]:.1f}"
        for name, q in at.items()
    )


if __name__ == "__main__":
    raise SystemExit(main())
