"""Asks a `sublearn serve` on this machine many questions over many connections, and reports.

    python3 tools/load_server.py                                    # 64 connections, 10^5 requests
    python3 tools/load_server.py --requests 10000 --heavy 4         # beside heavy questions
    python3 tools/load_server.py --model my.model --questions questions.jsonl --reload
    python3 tools/load_server.py --compare --requests 5000 --serve workers 2

--compare runs three servers and asks them in turns, so that whatever else the machine does burdens
all: one that answers each question by itself, one that answers them in batches, both asked in a way
that goes through HTTP's library and the application, and one that is asked in the usual way. CPU
for a request is the figure that other work on the machine changes least. --reload replaces the file
of the model again and again meanwhile.

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
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from harness.served import Asked, Server, as_request, ask, running

N_LABELS = 2_000
N_TURNS = 6


@dataclass
class Load(Asked):
    """What is asked, and what has come of it."""

    health: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    n_reloads: int = 0


def main() -> int:
    options = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "load.model"
        if options.model:
            shutil.copyfile(options.model, model)
        else:
            make_tagger(model)
        if options.compare:
            return compare(model, options)
        with running(model, serve_options(options)) as server:
            load = a_load(server, options)
            load.n_requests = options.requests
            put(load, options, server, model)
    report(load, options)
    grown = load.memory[-1] - load.memory[1]
    return int(bool(load.failures) or len(load.laps) < options.requests or grown > options.grown)


def a_load(server: Server, options: argparse.Namespace, *, is_usual: bool = True) -> Load:
    """Nothing yet."""
    if options.questions:
        questions = map(json.loads, options.questions.read_text().splitlines())
    else:
        questions = iter([{"texts": ["word7 word8"], "k": 5}])
    requests = [as_request(one, is_usual=is_usual) for one in questions]
    return Load(server.port, requests, 0, time.perf_counter() + options.seconds)


def put(load: Load, options: argparse.Namespace, server: Server, model: Path) -> None:
    """Put a load on a server and note what it took."""
    cpu = server.cpu_seconds()
    with probing(load):
        asyncio.run(ask_all(load, options, server, model))
    load.cpu_seconds += server.cpu_seconds() - cpu


def compare(model: Path, options: argparse.Namespace) -> int:
    """Each by itself, in batches, and in batches the short way, in turns."""
    own = serve_options(options)
    with (
        running(model, [*own, "--max-batch", "1"]) as alone,
        running(model, own) as together,
        running(model, own) as short,
    ):
        servers = {"alone": alone, "together": together, "short way": short}
        loads = {k: a_load(v, options, is_usual=v is short) for k, v in servers.items()}
        for turn in range(N_TURNS):
            for name, load in loads.items():
                load.n_requests = options.requests * (turn + 1) // N_TURNS
                put(load, options, servers[name], model)
    for name, load in loads.items():
        print(f"--- {name}")
        report(load, options)
    first = loads["alone"]
    for name, load in list(loads.items())[1:]:
        print(f"--- {name} : alone")
        print(f"requests a second  {first.seconds / load.seconds:.2f}")
        print(f"CPU of the server  {load.cpu_seconds / first.cpu_seconds:.2f}")
    return int(any(load.failures for load in loads.values()))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = found.add_argument
    add("--requests", type=int, default=100_000)
    add("--connections", type=int, default=64)
    add("--heavy", type=int, default=0, help="further connections with the largest questions")
    add("--seconds", type=float, default=1200.0, help="end after this time")
    add("--grown", type=float, default=32.0, help="megabytes by which memory may grow")
    add("--compare", action="store_true", help="alone, in batches, and the short way, in turns")
    add("--reload", action="store_true", help="replace the file of the model each second")
    add("--model", type=Path, help="a saved model")
    add("--questions", type=Path, help="a file with questions to it, one on each line")
    add(
        "--serve",
        nargs="*",
        default=[],
        help="further options of sublearn serve, without --, such as max-working 2",
    )
    return found


def serve_options(options: argparse.Namespace) -> list[str]:
    """As the command line has them: names have letters, values have none."""
    return [f"--{one}" if one[0].isalpha() else one for one in options.serve]


def make_tagger(path: Path) -> None:
    from sublearn.extreme import TextTagger

    words = [f"word{i}" for i in range(N_LABELS)]
    TextTagger(min_df=1).fit(words, [[f"label {word}"] for word in words]).save(path)


async def ask_all(load: Load, options: argparse.Namespace, server: Server, model: Path) -> None:
    if not load.memory:
        load.memory.append(server.memory())
    beside = [asyncio.create_task(watch(load, server))]
    beside += [asyncio.create_task(ask_heavily(load)) for _ in range(options.heavy)]
    if options.reload:
        beside.append(asyncio.create_task(keep_replacing(load, server, model)))
    await ask(load, options.connections)
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    load.memory[2:] = [server.memory()]


async def keep_replacing(load: Load, server: Server, model: Path) -> None:
    """The same model in another file, and the server told."""
    other = model.with_suffix(".other")
    while True:
        await asyncio.sleep(1)
        shutil.copyfile(model, other)
        other.replace(model)
        os.kill(server.pid, signal.SIGHUP)
        load.n_reloads += 1


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
    """As many labels as are granted, again and again."""
    request = as_request({"texts": ["word7 word8"] * 100, "k": 1000})
    while True:
        await ask(Asked(load.port, [request], 1), 1)


async def watch(load: Load, server: Server) -> None:
    """Memory after the first tenth, when everything has been used once."""
    while len(load.laps) < load.n_requests // 10:
        await asyncio.sleep(0.05)
    if len(load.memory) < 2:
        load.memory.append(server.memory())


def report(load: Load, options: argparse.Namespace) -> None:
    print(f"connections  {options.connections}, and {options.heavy} with heavy questions")
    n_done = len(load.laps)
    own, client = (1e3 * s / max(1, n_done) for s in (load.cpu_seconds, load.client_seconds))
    last_minute = os.getloadavg()[0]
    rate = n_done / load.seconds
    print(f"requests     {n_done:,} in {load.seconds:.1f} s, {rate:,.0f} a second")
    print(f"CPU          {own:.3f} ms of the server for a request, {client:.3f} of the client")
    print(f"machine      load {last_minute:.1f} on {os.cpu_count()} cores")
    print(f"failures     {dict(load.failures) or 'none'}")
    print(f"latency, ms  {quantiles(load.laps)}")
    print(f"health, ms   {quantiles(load.health)}, {len(load.health):,} times")
    if load.n_reloads:
        print(f"reloads      {load.n_reloads}")
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
