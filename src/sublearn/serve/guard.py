"""Stands before the application: who may ask, by which name and in which form.

Browsers are the clients to fear on a machine of one's own: any page that its user opens may send
requests to it. A page of another site cannot read answers (no CORS), cannot post (content type and
`Origin`), cannot pretend to be the server's site by a DNS name that it points here (`Host`), and
cannot show the server's page in a frame.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sublearn.serve.limits import Refusal
from sublearn.serve.metrics import Metrics
from sublearn.validation.values import show

__all__ = ["LOCAL_NAMES", "SECURITY_HEADERS", "Guard", "Rules", "check_token", "refused"]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
#: On every response; the page has a policy of its own.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_READING = {"GET", "HEAD", "OPTIONS"}
_OPEN_PATHS = {"/", "/healthz", "/readyz", "/health", "/ready"}  # nothing of the model is in them
_SHORTEST_TOKEN = 16
_LOG = logging.getLogger("sublearn.serve")


class Guard:
    """ASGI middleware that refuses, adds headers, counts, and answers failures."""

    def __init__(self, app: ASGIApp, *, rules: Rules, metrics: Metrics):
        self.app, self.rules, self.metrics = app, rules, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self.metrics.begin()
        try:
            self.rules.check(scope)
            await self.app(scope, receive, send_safely)
        except Refusal as refusal:
            self.metrics.refuse(refusal.limit)
            await refused(refusal)(scope, receive, send_safely)
        except Exception as error:
            # What was not foreseen: the traceback goes to the log, not to the caller.
            _LOG.error("a question failed", exc_info=error)
            if status:
                raise
            sentence = f"unexpected {type(error).__name__}; the log of the server says where"
            response = JSONResponse({"error": sentence}, status_code=500)
            await response(scope, receive, send_safely)
        finally:
            self.metrics.end(scope["path"], status, time.perf_counter() - start)


class Rules:
    """Who may ask, by which name and in which form: what `Guard` and `Shortcut` go by."""

    def __init__(self, *, hosts: Iterable[str], token: str | None):
        self.hosts = {_plain(host) for host in (*hosts, *LOCAL_NAMES)}
        self.token = None if token is None else token.encode()

    def check(self, scope: Scope) -> None:
        """Refuse a request by what its head says."""
        headers = Headers(scope=scope)
        self._check_host(headers, scope)
        if scope["method"] not in _READING:
            _check_origin(headers)
        if self.token is not None and scope["path"] not in _OPEN_PATHS:
            self._check_token(headers)
        if scope["method"] not in _READING:
            _check_form(headers)

    def _check_host(self, headers: Headers, scope: Scope) -> None:
        """By a name that is allowed, or by the address to which the connection came."""
        name = _name_of(headers.get("host", ""))
        server = scope.get("server") or ("",)
        if name in self.hosts or "*" in self.hosts or (name and name == _plain(server[0])):
            return
        raise Refusal(
            421,
            "Host must be a name that this server is told to answer to (option --allow-host), "
            f"got {show(name)}",
            "allow_host",
        )

    def _check_token(self, headers: Headers) -> None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(given.strip().encode(), self.token or b"")
        if kind.lower() != "bearer" or not is_right:
            raise Refusal(401, "Authorization must be Bearer and the server's token", "token")


def _check_origin(headers: Headers) -> None:
    """A browser says from which page a request comes; programs do not."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise Refusal(403, f"Origin must be the site of this server, got {show(origin)}", "origin")


def _check_form(headers: Headers) -> None:
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        got = show(kind) if kind else "none"
        raise Refusal(415, f"Content-Type must be application/json, got {got}", "content_type")
    coding = headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise Refusal(
            415, f"Content-Encoding must be identity, got {show(coding)}", "content_encoding"
        )
    if "transfer-encoding" in headers:
        raise Refusal(411, "Content-Length must be given, got Transfer-Encoding", "content_length")


def refused(refusal: Refusal) -> JSONResponse:
    """The response to a request that is refused."""
    headers = {}
    if refusal.status == 503:
        headers["retry-after"] = "1"
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refusal.status in (408, 411):  # where the next request would begin is not known
        headers["connection"] = "close"
    return JSONResponse({"error": str(refusal)}, status_code=refusal.status, headers=headers)


def check_token(token: str | None) -> None:
    """Refuse a token that could be guessed or that no header can hold; never show it."""
    if token is None:
        return
    if len(token) < _SHORTEST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise ValueError(
            f"token must have at least {_SHORTEST_TOKEN} ASCII characters and no space, got another"
        )


def _name_of(host: str) -> str:
    """A Host header without its port, in one spelling."""
    if host.startswith("["):
        return _plain(host[1:].partition("]")[0])
    return _plain(host.partition(":")[0])


def _plain(name: str) -> str:
    """A name in lower case, an address in its shortest form."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()
