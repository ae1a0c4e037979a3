"""Runs the application on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

__all__ = ["serve"]

_WAITING = 128  # connections that may wait to be accepted


def serve(
    app: FastAPI,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    ready: Callable[[str], None] | None = None,
    log_level: str = "warning",
) -> None:
    """Answer until a signal ends it (Ctrl-C, SIGTERM); requests that run are answered first.

    Parameters
    ----------
    app : fastapi.FastAPI
        From `create_app`.
    host : str, default="127.0.0.1"
        Address to listen at. The default is reached from this machine alone.
    port : int, default=8000
        0 takes a free one.
    ready : function of the address, optional
        Called when the port is open.
    log_level : str, default="warning"
        Of uvicorn; "info" has a line for each request.

    Raises
    ------
    OSError
        If the port cannot be had.
    """
    with _listening_socket(host, port) as listening:
        if ready is not None:
            ready(_address(host, listening.getsockname()[1]))
        settings = uvicorn.Config(app, log_level=log_level, backlog=_WAITING)
        uvicorn.Server(settings).run(sockets=[listening])


def _listening_socket(host: str, port: int) -> socket.socket:
    """Bound here and not by uvicorn, so that a port that is taken is an OSError.

    It must say that it is TCP: asyncio turns off Nagle's algorithm on such sockets alone, and with
    it an answer waits 40 ms for the acknowledgement of its head.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError:
        listening.close()
        raise
    return listening


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
