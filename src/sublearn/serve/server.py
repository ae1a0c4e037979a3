"""Runs the application on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import os
import socket
import ssl
import sys
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI

from sublearn.serve.connection import Connection, Turns
from sublearn.serve.limits import Limits
from sublearn.serve.metrics import Metrics
from sublearn.typing import JsonObject

__all__ = ["serve"]

_WAITING = 128  # connections that may wait to be accepted
_OTHER_FILES = 128  # open files beside connections
_SEND_BUFFER = 1 << 18  # bytes of an answer that the system takes from us, else 4 MB on Linux
_SWITCH_SECONDS = 0.0002  # so that the loop soon gets its turn beside threads that predict


def serve(
    app: FastAPI,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    ready: Callable[[str], None] | None = None,
    log_level: str = "warning",
) -> None:
    """Answer until a signal ends it (Ctrl-C, SIGTERM).

    Requests that run are answered first, for `Limits.shutdown_seconds`; then their connections are
    closed, whatever clients do.

    Parameters
    ----------
    app : fastapi.FastAPI
        From `create_app`, which also has the limits.
    host : str, default="127.0.0.1"
        Address to listen at. The default is reached from this machine alone.
    port : int, default=8000
        0 takes a free one.
    certificate, key : path, optional
        PEM files for TLS: the certificate, with those that sign it behind it, and its key.
        Without `key`, the file of the certificate holds both.
    ready : function of the address, optional
        Called when the port is open.
    log_level : str, default="warning"
        Of uvicorn; "info" has a line for each request.

    Raises
    ------
    OSError
        If the port cannot be had.
    ValueError
        If the certificate cannot be used.
    """
    context = None if certificate is None else _tls(certificate, key)
    limits, metrics = app.state.limits, app.state.metrics
    _allow_open_files(limits.max_connections + _OTHER_FILES)
    with _listening_socket(host, port) as listening, _short_turns():
        if ready is not None:
            ready(_address(host, listening.getsockname()[1], context is not None))
        settings = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            loop="asyncio",
            log_config=_log_config(),
            log_level=log_level,
            server_header=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=int(limits.shutdown_seconds) + 2,
        )
        _Server(settings, limits, metrics, listening, context).run()


class _Server(uvicorn.Server):
    """uvicorn's, which makes `Connection` and looks after them."""

    def __init__(
        self,
        config: uvicorn.Config,
        limits: Limits,
        metrics: Metrics,
        listening: socket.socket,
        context: ssl.SSLContext | None,
    ):
        super().__init__(config)
        self.limits, self.metrics = limits, metrics
        self.listening, self.context = listening, context
        self.turns = Turns()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen here and not in uvicorn, which sets no deadline for the handshake of TLS."""
        await super().startup(sockets=[])
        listener = await asyncio.get_running_loop().create_server(
            self._connection,
            sock=self.listening,
            ssl=self.context,
            backlog=_WAITING,
            ssl_handshake_timeout=self.limits.header_seconds if self.context else None,
        )
        self.servers.append(listener)

    def _connection(self) -> Connection:
        return Connection(
            self.limits,
            self.metrics,
            self.turns,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.check(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for requests, and in the end for none of them."""
        asyncio.get_running_loop().call_later(self.limits.shutdown_seconds, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


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


def _listening_socket(host: str, port: int) -> socket.socket:
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
        listening.listen(_WAITING)
    except OSError:
        listening.close()
        raise
    return listening


def _address(host: str, port: int, is_safe: bool) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if is_safe else 'http'}://{name}:{port}"
