"""Runs the application on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import uvicorn
from fastapi import FastAPI

from sublearn.serve.app import create_app
from sublearn.serve.connection import Connection, Turns
from sublearn.serve.limits import Limits
from sublearn.serve.models import ModelFile, Models
from sublearn.serve.shortcut import Shortcut
from sublearn.serve.workers import run_workers
from sublearn.typing import JsonObject
from sublearn.validation.params import Positive, check_argument
from sublearn.validation.values import show

__all__ = ["AppMaker", "Settings", "run", "serve"]

_WAITING = 128  # connections that may wait to be accepted
_OTHER_FILES = 128  # open files beside connections
_SEND_BUFFER = 1 << 18  # bytes of an answer that the system takes from us, else 4 MB on Linux
_WATCH_TICKS = 10  # a second
_SWITCH_SECONDS = 0.0002  # so that the loop soon gets its turn beside threads that predict


def serve(
    app: FastAPI | AppMaker,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    workers: int = 1,
    watch: bool = False,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    ready: Callable[[str], None] | None = None,
    log_level: str = "warning",
) -> None:
    """Answer until a signal ends it (Ctrl-C, SIGTERM); SIGHUP reads files of models again.

    Requests that run are answered first, for `Limits.shutdown_seconds`; then their connections are
    closed, whatever clients do.

    Parameters
    ----------
    app : fastapi.FastAPI or AppMaker
        From `create_app`, which also has the limits; or how to make it, for several processes.
    host : str, default="127.0.0.1"
        Address to listen at. The default is reached from this machine alone.
    port : int, default=8000
        0 takes a free one.
    workers : int, default=1
        Processes that answer, each with models and limits of its own, behind one port. More than
        one needs an `AppMaker`. A process that ends unasked is replaced.
    watch : bool, default=False
        Whether to look each second if a file of a model was replaced, and to read it then.
    certificate, key : path, optional
        PEM files for TLS: the certificate, with those that sign it behind it, and its key.
        Without `key`, the file of the certificate holds both.
    ready : function of the address, optional
        Called when the port is open and, with several processes, all of them answer.
    log_level : str, default="warning"
        Of uvicorn; "info" has a line for each request.

    Raises
    ------
    OSError
        If the port cannot be had.
    ValueError
        If the certificate or a model cannot be used, or several processes shall share an
        application that is made already.
    """
    check_argument("serve.workers", workers, Positive(int))
    if workers > 1 and not isinstance(app, AppMaker):
        raise ValueError(f"serve.app must be an AppMaker for several workers, got {show(app)}")
    settings = Settings(certificate, key, watch, log_level)
    is_safe = settings.context() is not None  # a wrong certificate is an error before anything
    if workers == 1 and isinstance(app, AppMaker):
        app = app()  # before there is a port that clients wait at
    with _bound_socket(host, port) as listening:
        address = _address(host, listening.getsockname()[1], is_safe)

        def tell() -> None:
            if ready is not None:
                ready(address)

        if isinstance(app, AppMaker):
            run_workers(app, workers, listening, settings, tell)
        else:
            run(app, listening, settings, tell)


@dataclass(frozen=True)
class AppMaker:
    """Makes the application in each process of a server; see `create_app` for what it takes."""

    models: Mapping[str, ModelFile]
    limits: Limits = field(default_factory=Limits)
    hosts: Sequence[str] = ()
    token: str | None = None

    def __call__(self) -> FastAPI:
        """The application."""
        return create_app(self.models, limits=self.limits, hosts=self.hosts, token=self.token)


@dataclass(frozen=True)
class Settings:
    """How one process serves; `parent` is the process without which it ends."""

    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    watch: bool = False
    log_level: str = "warning"
    parent: int | None = None

    def context(self) -> ssl.SSLContext | None:
        """For TLS."""
        return None if self.certificate is None else _tls(self.certificate, self.key)


def run(
    app: FastAPI, listening: socket.socket, settings: Settings, ready: Callable[[], None]
) -> None:
    """Answer in this process, on a socket that listens."""
    limits = app.state.limits
    _allow_open_files(limits.max_connections + _OTHER_FILES)
    with _short_turns():
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            loop="asyncio",
            log_config=_log_config(),
            log_level=settings.log_level,
            server_header=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=int(limits.shutdown_seconds) + 2,
        )
        server = _Server(config, app, listening, settings)
        with _told_by_hangup(server.tell):
            listening.listen(_WAITING)
            ready()
            server.run()


class _Server(uvicorn.Server):
    """uvicorn's, which makes `Connection` and looks after them and after files of models."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, listening: socket.socket, settings: Settings
    ):
        super().__init__(config)
        self.limits, self.metrics = app.state.limits, app.state.metrics
        self.models: Models = app.state.models
        self.listening, self.settings = listening, settings
        self.turns = Turns()
        self.shortcut = _shortcut_of(app)
        self._reading: threading.Thread | None = None
        self._is_told = False  # by SIGHUP to read files again

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen here and not in uvicorn, which sets no deadline for the handshake of TLS."""
        await super().startup(sockets=[])
        loop, context = asyncio.get_running_loop(), self.settings.context()
        listener = await loop.create_server(
            self._connection,
            sock=self.listening,
            ssl=context,
            backlog=1,  # as many are accepted at once: the rest may be another process's
            ssl_handshake_timeout=self.limits.header_seconds if context else None,
        )
        self.listening.listen(_WAITING)
        self.servers.append(listener)

    def _connection(self) -> Connection:
        return Connection(
            self.limits,
            self.metrics,
            self.turns,
            self.shortcut,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    def tell(self) -> None:
        """Have files of models read again at the next tick."""
        self._is_told = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.check(now)
        if self._is_told or (self.settings.watch and counter % _WATCH_TICKS == 0):
            self._read_again()
        is_alone = self.settings.parent not in (None, os.getppid())
        return await super().on_tick(counter) or is_alone

    def _read_again(self) -> None:
        """In a thread, which the end of the process does not wait for."""
        if self._reading is not None and self._reading.is_alive():
            return
        only_replaced, self._is_told = not self._is_told, False
        self._reading = threading.Thread(
            target=self.models.reload, args=(only_replaced,), daemon=True
        )
        self._reading.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for requests, and in the end for none of them."""
        asyncio.get_running_loop().call_later(self.limits.shutdown_seconds, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _shortcut_of(app: FastAPI) -> Shortcut | None:
    """The application's, unless the log is to have a line of each request, or there is more to go
    through than the application as it was made."""
    is_logged = logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO)
    found: Shortcut = app.state.shortcut
    return None if is_logged or len(app.user_middleware) != 1 else found


@contextlib.contextmanager
def _told_by_hangup(tell: Callable[[], None]) -> Iterator[None]:
    """SIGHUP calls `tell`, from before the port is open: by default it would end the process."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda number, frame: tell())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _tls(certificate: str | os.PathLike[str], key: str | os.PathLike[str] | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password="")  # never ask at the terminal
    except (ssl.SSLError, TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(certificate)}: must be a certificate in PEM with its key, without a "
            f"password, got {error}"
        ) from None
    return context


def _log_config() -> JsonObject:
    """uvicorn's, with the lines of requests on standard error."""
    config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    return config


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Threads hand over Python's lock soon, and the collector need not look at what is loaded."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(seconds)


def _allow_open_files(needed: int) -> None:
    """Raise what this process asked for, not what the system allows."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))


def _bound_socket(host: str, port: int) -> socket.socket:
    """Bound here and not by uvicorn, so that a port that is taken is an OSError.

    It must say that it is TCP: asyncio turns off Nagle's algorithm on such sockets alone, and with
    it an answer waits 40 ms for the acknowledgement of its head.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        listening.bind((host, port))
    except OSError:
        listening.close()
        raise
    return listening


def _address(host: str, port: int, is_safe: bool) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if is_safe else 'http'}://{name}:{port}"
