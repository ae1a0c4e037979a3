"""An answer made the body of a response, in short steps and never larger than is granted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sublearn.serve.limits import MEGABYTE, Limits

__all__ = ["PiecesResponse", "write_json"]

_STEP = 512  # values that are written at once, about half a millisecond
_PIECE = 1 << 16  # bytes that are sent at once
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def write_json(
    answer: Mapping[str, object], limits: Limits, check: Callable[[], None]
) -> list[bytes]:
    """The answer as JSON, in pieces.

    Python's lock is released between steps, and `check` is called, which raises if no one waits
    any longer.

    Raises
    ------
    Refusal
        If it is larger than `limits.max_answer_megabytes`.
    ValueError
        If it has a number that is not finite.
    """
    found, piece, n_bytes = [], bytearray(), 0
    for part in _parts(answer):
        check()
        piece += part.encode()
        if len(piece) >= _PIECE:
            found.append(bytes(piece))
            n_bytes += len(piece)
            piece.clear()
        if n_bytes + len(piece) > limits.max_answer_megabytes * MEGABYTE:
            raise limits.refusal(
                "max_answer_megabytes",
                "an answer must have at most {} MB, got more; ask for fewer items",
            )
    return [*found, bytes(piece)]


def _parts(value: object) -> Iterator[str]:
    """JSON in parts of at most `_STEP` values."""
    if _size(value) <= _STEP:
        yield _dumped(value)
    elif isinstance(value, dict):
        for i, (name, inner) in enumerate(value.items()):
            yield f"{',' if i else '{'}{_dumped(name)}:"
            yield from _parts(inner)
        yield "}"
    elif isinstance(value, list):
        largest = max(map(_size, value)) if _has_inner(value) else 1
        step = max(1, _STEP // largest)
        for at in range(0, len(value), step):
            yield "," if at else "["
            yield from _parts(value[at]) if step == 1 else [_dumped(value[at : at + step])[1:-1]]
        yield "]"


def _size(value: object) -> int:
    """How many values it holds."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if not isinstance(value, list):
        return 1
    return sum(map(_size, value)) if _has_inner(value) else len(value)


def _has_inner(values: Sequence[object]) -> bool:
    return bool(values) and isinstance(values[0], (list, dict))


def _dumped(value: object) -> str:
    try:
        return _encode(value)
    except ValueError:
        raise ValueError(
            "the values of a question must give finite scores, got NaN or infinity; "
            "are they too large?"
        ) from None


class PiecesResponse(Response):
    """Sends pieces as fast as the client takes them, and calls `sent` at the end of it."""

    media_type = "application/json"

    def __init__(self, pieces: list[bytes], sent: Callable[[], None]):
        super().__init__()
        self.headers["content-length"] = str(sum(map(len, pieces)))
        self.pieces, self.sent = pieces, sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send."""
        try:
            head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(head)
            last = len(self.pieces) - 1
            for i, piece in enumerate(self.pieces):
                await send({"type": "http.response.body", "body": piece, "more_body": i < last})
        finally:
            self.sent()
