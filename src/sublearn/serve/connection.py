"""One connection: uvicorn's, with deadlines for clients that are slow and a place for new ones.

uvicorn waits for ever for the rest of a head and for a client that takes no answer. Here a
connection is in one of four phases, the server looks at all of them ten times a second
(:meth:`Connection.check`), and one that stays in a phase for too long is closed.

uvicorn also reads all requests that have arrived before it does anything else: whoever asks for
`/healthz` beside 64 busy clients waits for 64 requests. Here :class:`Turns` begins one request at a
time, and `/healthz` at once. Questions in the usual form go a shorter way, past h11 and the
application (:mod:`sublearn.serve.shortcut`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import deque
from typing import NoReturn, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from sublearn.serve.batches import Outcome
from sublearn.serve.guard import SECURITY_HEADERS
from sublearn.serve.limits import Limits, Refusal
from sublearn.serve.metrics import Metrics
from sublearn.serve.shortcut import Pending, Shortcut
from sublearn.typing import JsonObject

__all__ = ["Connection", "Turns"]

_MOST_HEAD = 1 << 14  # bytes
_HEAD_END = re.compile(rb"\r?\n\r?\n")
#: What is answered before everything else.
_FIRST = tuple(b"GET /%b " % path for path in (b"healthz", b"readyz", b"health", b"ready"))
_LONG_TURN = 0.005  # seconds
_MOST_SKIPPED = 8  # turns
_PART_SECONDS = 0.1  # in which the rest of a request must come for the short way
_HEADING, _IDLE, _WORKING, _SENDING = "heading", "idle", "working", "sending"


class Turns:
    """Data of connections, handed over piece by piece, with a look at the sockets in between.

    After a long turn of the loop there is enough to do with the requests that have begun: no other
    one begins until a turn is short, or until some turns have passed.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Connection, bytes]] = deque()
        self._began = 0.0  # when the turn of the loop began
        self._n_skipped = 0

    def add(self, connection: Connection, data: bytes) -> None:
        """Wait for a turn; `connection` brings no more before it has had it."""
        self._waiting.append((connection, data))
        if len(self._waiting) == 1:
            self._began = time.perf_counter()
            connection.loop.call_soon(self._next)

    def _next(self) -> None:
        now = time.perf_counter()
        is_long, self._began = now - self._began > _LONG_TURN, now
        connection, data = self._waiting[0]
        if is_long and self._n_skipped < _MOST_SKIPPED:
            self._n_skipped += 1
            connection.loop.call_soon(self._next)
            return
        self._n_skipped = 0
        self._waiting.popleft()
        if self._waiting:
            connection.loop.call_soon(self._next)
        connection.take(data)


class Connection(H11Protocol):
    """See above; `limits` and `metrics` are the application's."""

    def __init__(
        self,
        limits: Limits,
        metrics: Metrics,
        turns: Turns,
        shortcut: Shortcut | None,
        config: Config,
        server_state: ServerState,
        app_state: JsonObject,
    ):
        super().__init__(config, server_state, app_state)
        self.limits, self.metrics, self.turns = limits, metrics, turns
        self.shortcut = shortcut
        self.conn: _Requests = _Requests(h11.SERVER)
        self._phase: tuple[str, object] = (_HEADING, None)
        self._since = 0.0
        self._part, self._part_since = b"", 0.0  # the beginning of a request
        self._pending: Pending | None = None
        self._early = b""  # what came before the answer
        self._n_short = 0  # answers that went the short way
        self._was_short = self._ends = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, if need be in place of another one."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.limits.max_connections and not self._push_out_another():
            self._refuse(
                self.limits.refusal(
                    "max_connections", "at most {} connections may be open; try again", 503
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """No one waits any longer."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.give_up(499)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the short way where there is one."""
        self._unset_keepalive_if_required()
        if self._pending is not None:
            self.transport.pause_reading()
            self._early += data
            return
        data, self._part = self._part + data, b""
        if not (self._is_between_requests() and self._shorten(data)):
            self._go_on(data)

    def _is_between_requests(self) -> bool:
        """Whether neither h11 nor the transport holds anything back."""
        is_free = self.cycle is None or self.cycle.response_complete
        is_free = is_free and not self.flow.write_paused and not self.transport.is_closing()
        return is_free and self.conn.our_state is h11.IDLE and not self.conn.trailing_data[0]

    def _shorten(self, data: bytes) -> bool:
        """Begin to answer a request that can go the short way, or wait for its rest."""
        if self.shortcut is None or (head := self.shortcut.head_of(data, self.server)) is None:
            return False
        if len(data) < head.n_bytes:
            self._part, self._part_since = data, self._part_since or self.loop.time()
            return True
        self._part_since = 0.0
        if len(data) > head.n_bytes:
            return False
        self._pending = self.shortcut.begin(head, data, self._answer)
        return self._pending is not None

    def _answer(self, outcome: Outcome) -> None:
        """Send what has come of the pending question, and take what has come meanwhile."""
        pending, self._pending = self._pending, None
        early, self._early = self._early, b""
        if pending is None:
            return
        closes = self._ends or pending.head.closes
        response = pending.response(outcome, self.server_state.default_headers, closes)
        if response is None:
            self._go_on(pending.data + early)
            return
        self.transport.write(response)
        self.server_state.total_requests += 1
        self._n_short += 1
        self._was_short = True
        if closes:
            self.transport.close()
        elif early:
            self.transport.resume_reading()
            self.data_received(early)

    def _go_on(self, data: bytes) -> None:
        """Wait for a turn without reading on, but for what is answered first."""
        self._was_short, self._part_since = False, 0.0
        if data.startswith(_FIRST):
            super().data_received(data)
        else:
            self.transport.pause_reading()
            self.turns.add(self, data)

    def take(self, data: bytes) -> None:
        """Read what has waited for its turn, unless the client is gone."""
        if self.transport.is_closing():
            return
        try:
            super().data_received(data)
        except BaseException:  # the loop would log it and leave the connection open
            self.transport.abort()
            raise
        if not (self.flow.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def check(self, now: float) -> None:
        """Close it if the client has been too slow."""
        phase = self._find_phase()
        if self._part and now > self._part_since + _PART_SECONDS:
            data, self._part = self._part, b""
            self._go_on(data)
        elif phase != self._phase:
            self._phase, self._since = phase, now
        elif phase[0] == _HEADING and now > self._since + self.limits.header_seconds:
            sentence = "the head of a request must come within {} s"
            self._refuse(self.limits.refusal("header_seconds", sentence, 408))
        elif phase[0] == _SENDING and now > self._since + self.limits.send_seconds:
            self.metrics.refuse("send_seconds")
            self.transport.abort()
        elif self._pending is not None and now > self._since + self.limits.work_seconds:
            pending, self._pending = self._pending, None
            pending.give_up(503)
            self._refuse(pending.desk.work.too_long())
        elif phase[0] == _IDLE and self._was_short and now > self._since + self.limits.idle_seconds:
            self.transport.close()

    def shutdown(self) -> None:
        """Close it, after the answer to a pending question."""
        self._ends = True
        if self._pending is None:
            super().shutdown()

    def _find_phase(self) -> tuple[str, object]:
        """What it does, and for which request."""
        cycle, request = self.cycle, (self.cycle, self._n_short)
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return _SENDING, request
        if self._pending is not None:
            return _WORKING, request
        if cycle is None or cycle.response_complete:
            is_idle = self._was_short or self.timeout_keep_alive_task is not None
            is_idle = is_idle and not self._part and not self.conn.trailing_data[0]
            return (_IDLE if is_idle else _HEADING), request
        return (_SENDING if cycle.response_started else _WORKING), request

    def _push_out_another(self) -> bool:
        """Close the connection that has waited for its client longest, if one does."""
        others = cast("set[Connection]", self.connections - {self})  # the server makes no other
        phases = {one: one._find_phase()[0] for one in others}
        waiting = [one for one, phase in phases.items() if phase in (_HEADING, _IDLE)]
        if not waiting:
            return False
        self.metrics.refuse("max_connections")
        oldest = min(waiting, key=lambda one: one._since)
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a connection that has no request, and close it."""
        self.metrics.refuse(refusal.limit)
        body = json.dumps({"error": str(refusal)}).encode()
        headers = SECURITY_HEADERS | {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        if refusal.status == 503:
            headers["retry-after"] = "1"
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            head = h11.Response(status_code=refusal.status, headers=list(headers.items()))
            with contextlib.suppress(h11.LocalProtocolError):  # an answer to HEAD has no body
                for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what is no HTTP, or is HTTP that two readers read differently."""
        refusal = self.conn.refusal or Refusal(
            400, "a request must be valid HTTP, got something else", "http"
        )
        self._refuse(refusal)


class _Requests(h11.Connection):
    """Refuses what is dear to read before it is read.

    h11 measures a head only while it is incomplete, and takes 3 microseconds for each of its lines.
    A body in chunks of one byte costs 20 microseconds for each of them; and a length beside chunks
    is how requests are smuggled past a proxy.
    """

    refusal: Refusal | None = None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """h11's, or a protocol error."""
        if self.their_state is h11.IDLE:
            arrived, _ = self.trailing_data
            if len(arrived) > _MOST_HEAD and not _HEAD_END.search(arrived, 0, _MOST_HEAD):
                self._refuse(431, f"the head of a request must have at most {_MOST_HEAD} bytes")
        event = super().next_event()
        if isinstance(event, h11.Request) and any(
            name == b"transfer-encoding" for name, _ in event.headers
        ):
            self._refuse(411, "Content-Length must be given, got Transfer-Encoding")
        return event

    def _refuse(self, status: int, sentence: str) -> NoReturn:
        self.refusal = Refusal(status, sentence, "http")
        raise h11.RemoteProtocolError(sentence, error_status_hint=status)
