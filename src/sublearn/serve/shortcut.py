"""The short way of a question: from the bytes of its request to a batch, and back.

Most requests to a busy server look alike: a `POST` to `/predict` with a small body, and nothing in
the head that means anything to HTTP but its length. For these, HTTP, ASGI and routing took three
times as long as the model. Here they are recognised by one regular expression, checked by the rules
of the application (:class:`Rules`), read and answered by its batches, and counted as it counts.

Only good answers are given here. All else goes the long way from its first byte, through h11 and
the application, which has the words: other paths and heads, questions that are wrong or not small,
whatever a rule or a limit refuses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sublearn.serve.batches import SMALL_BODY, Outcome, Waiting
from sublearn.serve.guard import SECURITY_HEADERS, Rules
from sublearn.serve.limits import Refusal

if TYPE_CHECKING:
    from sublearn.serve.app import Desk
    from sublearn.serve.models import Served
    from sublearn.serve.work import Held

__all__ = ["Head", "Pending", "Shortcut"]

#: Lines of printable ASCII without blanks around names and values; what is odd is for h11.
_HEAD = re.compile(
    rb"POST (/predict|/models/([A-Za-z0-9._-]+)/predict) HTTP/1\.1\r\n"
    rb"((?:[!#-'*+.^_`|~0-9A-Za-z-]+: ?[!-~](?:[ -~]*[!-~])?\r\n)+)\r\n"
)
_LENGTH = re.compile(rb"[0-9]{1,6}")
#: What changes how a message is read or a connection is used.
_FOR_HTTP = {b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer"}
_MOST_HEAD = 1 << 12  # bytes
_MOST_KNOWN = 1024  # heads; clients send the same ones again and again
_ANSWER = (
    "content-length: %d\r\ncontent-type: application/json\r\n"
    + "".join(f"{name}: {value}\r\n" for name, value in SECURITY_HEADERS.items())
).encode()

Server = tuple[str, int | None] | None


@dataclass(frozen=True, eq=False)
class Head:
    """A head that the rules allow: what it asks, and how many bytes its request has."""

    path: str
    served: Served
    n_head: int
    n_bytes: int
    closes: bool


class Shortcut:
    """Of one application; `desk` has its models, limits and counts."""

    def __init__(self, desk: Desk, rules: Rules):
        self.desk, self._rules = desk, rules
        self._known: dict[tuple[Server, bytes], Head] = {}

    def head_of(self, data: bytes, server: Server) -> Head | None:
        """The head with which `data` begins, received at an address, if it can go the short way."""
        end = data.find(b"\r\n\r\n", 0, _MOST_HEAD) + 4
        key = server, data[:end]
        found = self._known.get(key)
        if found is None:
            found = self._read(key[1], server)
            if found is not None:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = found
        return found

    def _read(self, head: bytes, server: Server) -> Head | None:
        match = _HEAD.fullmatch(head)
        if match is None:
            return None
        lines = (line.partition(b":") for line in match[3].split(b"\r\n")[:-1])
        headers = [(name.lower(), value.strip()) for name, _, value in lines]
        given = dict(headers)
        length = given.get(b"content-length", b"")
        connection = given.get(b"connection", b"keep-alive").lower()
        models = self.desk.models
        served = models.only if match[2] is None else models.get(match[2].decode())
        if (
            served is None
            or len(given) < len(headers)
            or b"host" not in given
            or not _LENGTH.fullmatch(length)
            or int(length) > min(SMALL_BODY, self.desk.most_bytes)
            or connection not in (b"keep-alive", b"close")
            or not _FOR_HTTP.isdisjoint(given)
        ):
            return None
        path = match[1].decode()
        try:
            self._rules.check(
                {"method": "POST", "path": path, "headers": headers, "server": server}
            )
        except Refusal:
            return None
        return Head(path, served, len(head), len(head) + int(length), connection == b"close")

    def begin(self, head: Head, data: bytes, tell: Callable[[Outcome], None]) -> Pending | None:
        """Have a whole request answered; None if it must go the long way."""
        desk, body = self.desk, data[head.n_head :]
        service = head.served.loaded.service
        if not desk.batches.takes(service, body):
            return None
        held = desk.buffers.hold()
        try:
            held.take(len(body))
            desk.work.enter()
        except Refusal:
            held.release()
            return None
        desk.metrics.begin()
        asked = desk.batches.put(service, body, tell)
        return Pending(desk, head, data, asked, held)


class Pending:
    """A request that is being answered; it ends by exactly one of its methods."""

    def __init__(self, desk: Desk, head: Head, data: bytes, asked: Waiting, held: Held):
        self.desk, self.head, self.data = desk, head, data
        self._asked, self._held = asked, held
        self._start = time.perf_counter()

    def response(
        self, outcome: Outcome, first: Sequence[tuple[bytes, bytes]], closes: bool
    ) -> bytes | None:
        """The bytes to send, with `first` before other headers; None: begin again, the long way."""
        self._leave()
        if not isinstance(outcome, list):
            self.desk.metrics.leave()
            return None
        self.desk.metrics.ask(self.head.served.name)
        self.desk.metrics.shorten()
        self._count(200)
        head = b"".join(b"%b: %b\r\n" % pair for pair in first)
        head += _ANSWER % sum(map(len, outcome))
        last = b"Connection: close\r\n\r\n" if closes else b"\r\n"
        return b"".join((b"HTTP/1.1 200 OK\r\n", head, last, *outcome))

    def give_up(self, status: int) -> None:
        """No one waits for it: the client has gone (499), or it took too long (503)."""
        self._asked.give_up()
        self._leave()
        self.desk.metrics.ask(self.head.served.name)
        self._count(status)

    def _leave(self) -> None:
        self._held.release()
        self.desk.work.leave()

    def _count(self, status: int) -> None:
        self.desk.metrics.end(self.head.path, status, time.perf_counter() - self._start)
