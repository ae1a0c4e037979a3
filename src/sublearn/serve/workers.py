"""Several processes behind one port.

The process that was started opens the port and answers nothing. It starts the others, which take
connections from the same socket, passes signals on to them, replaces one that ends unasked, and
ends when they have ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import TYPE_CHECKING

from sublearn.serve.metrics import SHARED_FOLDER

if TYPE_CHECKING:
    from sublearn.serve.server import AppMaker, Settings

__all__ = ["run_workers"]

_LOOK_SECONDS = 0.2
_MORE_SECONDS = 5.0  # for a process to end, beyond the time that its requests have
_PAUSE_SECONDS = 1.0  # before a process that ended is replaced
_LOG = logging.getLogger("sublearn.serve")


def run_workers(
    make_app: AppMaker,
    n_workers: int,
    listening: socket.socket,
    settings: Settings,
    ready: Callable[[], None],
) -> None:
    """Answer in `n_workers` processes until a signal ends them.

    Raises
    ------
    ValueError
        If one of them cannot begin: its error.
    """
    settings = dataclasses.replace(settings, parent=os.getpid())
    with _shared_counts() as folder, _passing_signals() as told:
        family = _Family(lambda: _started(make_app, listening, settings), folder)
        try:
            for _ in range(n_workers):
                family.add()
            family.wait_until_ready(told)
            if not told.ends:
                ready()
            while not told.ends:
                family.look(told)
        finally:
            family.end(make_app.limits.shutdown_seconds + _MORE_SECONDS)


@dataclasses.dataclass
class _Told:
    """What signals have said."""

    ends: bool = False
    reloads: bool = False


class _Family:
    """The processes that answer, and the pipe of each that says when it is ready."""

    def __init__(self, start: Callable[[], tuple[SpawnProcess, Connection]], folder: str):
        self._start, self._folder = start, folder
        self._members: dict[SpawnProcess, Connection] = {}

    def add(self) -> None:
        """One more."""
        process, pipe = self._start()
        self._members[process] = pipe

    def wait_until_ready(self, told: _Told) -> None:
        """Return when each has said so; raise the error of one that cannot begin."""
        silent = list(self._members.values())
        while silent and not told.ends:
            wait(silent, _LOOK_SECONDS)
            for pipe in [one for one in silent if one.poll()]:
                silent.remove(pipe)
                try:
                    error = pipe.recv()
                except EOFError:
                    error = "a process of the server ended before it was ready"
                if error:
                    raise ValueError(error)

    def look(self, told: _Told) -> None:
        """Pass SIGHUP on, and replace processes that have ended."""
        wait([process.sentinel for process in self._members], _LOOK_SECONDS)
        if told.reloads:
            told.reloads = False
            self._send(signal.SIGHUP)
        for process in [one for one in self._members if not one.is_alive()]:
            if told.ends:
                return
            _LOG.error("process %s ended with code %s", process.pid, process.exitcode)
            self._forget(process)
            time.sleep(_PAUSE_SECONDS)
            self.add()

    def end(self, seconds: float) -> None:
        """Ask all to end, and end those by force that do not."""
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        for process in list(self._members):
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            self._forget(process)

    def _send(self, number: signal.Signals) -> None:
        for process in self._members:
            if process.pid is not None and process.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def _forget(self, process: SpawnProcess) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process.pid, self._folder)
        self._members.pop(process).close()


def _started(
    make_app: AppMaker, listening: socket.socket, settings: Settings
) -> tuple[SpawnProcess, Connection]:
    """A new process. Not a fork: OpenMP's threads do not survive one."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(make_app, listening, settings, theirs))
    process.start()
    theirs.close()
    return process, ours


def _work(
    make_app: AppMaker, listening: socket.socket, settings: Settings, pipe: Connection
) -> None:
    """What each process does."""
    from sublearn.serve.server import run

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again
    try:
        app = make_app()
    except (ValueError, OSError) as error:
        pipe.send(str(error) or type(error).__name__)
        return
    with contextlib.suppress(KeyboardInterrupt):
        run(app, listening, settings, lambda: pipe.send(""))


@contextlib.contextmanager
def _shared_counts() -> Iterator[str]:
    """A folder in which the processes count together; its name is in their environment."""
    before = os.environ.get(SHARED_FOLDER)
    with tempfile.TemporaryDirectory(prefix="sublearn-serve-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            yield folder
        finally:
            os.environ.pop(SHARED_FOLDER)
            if before is not None:
                os.environ[SHARED_FOLDER] = before


@contextlib.contextmanager
def _passing_signals() -> Iterator[_Told]:
    told = _Told()

    def end(number: int, frame: FrameType | None) -> None:
        told.ends = True

    def reload(number: int, frame: FrameType | None) -> None:
        told.reloads = True

    handlers = {signal.SIGINT: end, signal.SIGTERM: end, signal.SIGHUP: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
