"""The body of a request made a question, in short steps.

Python's lock is released between any two steps and never held for longer than it takes to read a
few thousand numbers, so that other requests are answered meanwhile: `json.loads` of 4 MB may hold
it for a third of a second, and for two seconds if the collector runs. What JSON leaves open is
refused: keys that come twice, NaN and Infinity, halves of surrogate pairs, deep nesting.
"""

from __future__ import annotations

import contextlib
import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from pydantic import BaseModel, ValidationError

from sublearn.serve.limits import Limits
from sublearn.validation.values import show

__all__ = ["read_json", "sentence_of"]

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEP = 1 << 14  # characters of a list that are read at once
_MAX_DEPTH = 8  # questions need five
_ITEM_DEPTH = 3  # a list of texts or rows is at level 2, one of positions at level 3


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_json(body: bytes, limits: Limits) -> object:
    """The value of a JSON text in UTF-8.

    Raises
    ------
    Refusal
        As soon as there are more items than a question may have.
    ValueError
        One sentence on what is wrong, and where.
    """
    try:
        text = body.decode("utf-8")
        reader = _Reader(text, limits)
        value, at = reader.value(reader.skip(0), 0)
    except UnicodeDecodeError as error:
        raise _wrong("UTF-8", "other bytes", error.start) from None
    if reader.skip(at) != len(text):
        raise _wrong("one JSON value", "more", at)
    return value


class _Reader:
    def __init__(self, text: str, limits: Limits):
        self.text, self.limits = text, limits
        self.decoder = _DECODER
        self.has_escapes = "\\u" in text

    def skip(self, at: int) -> int:
        """The next character that is no space."""
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[object, int]:
        """The value that begins at a character, and the character after it."""
        if depth > _MAX_DEPTH:
            raise _wrong(f"JSON of at most {_MAX_DEPTH} levels", "more", at)
        first = self.text[at : at + 1]
        if first == "[":
            return self.items(at + 1, depth + 1)
        if first == "{":
            return self.fields(at + 1, depth + 1)
        if first == '"':
            return self.string(at + 1)
        try:
            return self.decoder.scan_once(self.text, at)  # type: ignore[attr-defined]
        except StopIteration:
            raise _wrong("JSON", show(first) if first else "its end", at) from None
        except ValueError as error:  # also more digits than Python reads
            raise _wrong("JSON", str(error), at) from None

    def string(self, at: int) -> tuple[str, int]:
        try:
            value, at = scanstring(self.text, at, True)
        except ValueError as error:
            raise _wrong("JSON", str(error), at) from None
        if self.has_escapes and _SURROGATE.search(value):
            raise _wrong("JSON of whole characters", "half of a surrogate pair", at)
        return value, at

    def items(self, at: int, depth: int) -> tuple[list[object], int]:
        end = self.text.find("]", at)
        if end >= 0 and self.text.find("[", at, end) < 0 and self.text.find("{", at, end) < 0:
            if self.text.find('"', at, end) < 0:
                return self.plain_items(at, end), end + 1
            if end - at <= _STEP and not self.has_escapes:
                # If what stands before the first bracket is a list, it is this list.
                with contextlib.suppress(ValueError):
                    return self.counted(
                        self.decoder.decode(self.text[at - 1 : end + 1]), depth
                    ), end + 1
        found: list[object] = []
        while True:
            value, at = self.value(self.skip(at), depth)
            found.append(value)
            self.counted(found, depth)
            at = self.skip(at)
            if self.text[at : at + 1] == "]":
                return found, at + 1
            at = self.comma(at)

    def counted(self, found: list[object], depth: int) -> list[object]:
        """A list that has no more items than are granted."""
        if len(found) > self.limits.max_rows and depth <= _ITEM_DEPTH:
            sentence = "a question must have at most {} items, got more"
            raise self.limits.refusal("max_rows", sentence)
        return found

    def plain_items(self, at: int, end: int) -> list[object]:
        """Items without quotes and brackets: each comma parts two of them."""
        if self.skip(at) == end:
            return []
        found: list[object] = []
        while at <= end:
            comma = self.text.find(",", at + _STEP, end)
            stop = end if comma < 0 else comma
            try:
                found += self.decoder.decode(f"[{self.text[at:stop]}]")
            except ValueError as error:
                raise _wrong("JSON", getattr(error, "msg", str(error)), at) from None
            if self.skip(at) == stop:
                raise _wrong("JSON", "a comma without an item", at)
            at = stop + 1
        return found

    def fields(self, at: int, depth: int) -> tuple[dict[str, object], int]:
        found: dict[str, object] = {}
        at = self.skip(at)
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise _wrong("JSON with a name in quotes", show(self.text[at : at + 1]), at)
            name, at = self.string(at + 1)
            if name in found:
                raise _wrong("JSON with each name once", f"{show(name)} again", at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise _wrong("JSON with a colon after a name", show(self.text[at : at + 1]), at)
            found[name], at = self.value(self.skip(at + 1), depth)
            at = self.skip(at)
            if self.text[at : at + 1] == "}":
                return found, at + 1
            at = self.skip(self.comma(at))

    def comma(self, at: int) -> int:
        if self.text[at : at + 1] != ",":
            got = show(self.text[at]) if at < len(self.text) else "its end"
            raise _wrong("JSON with a comma between items", got, at)
        return at + 1


def _wrong(needed: str, got: str, at: int) -> ValueError:
    return ValueError(f"the question must be {needed}, got {got} at character {at}")


def sentence_of(error: ValidationError, question: type[BaseModel]) -> str:
    """The first thing that is wrong with a question."""
    first = error.errors(include_url=False)[0]
    where = _path(first["loc"])
    if first["type"] == "missing":
        return f"{where} must be given, got {show(first['input'])}"
    if first["type"] == "extra_forbidden":
        return f"a question must have no field but {', '.join(question.model_fields)}, got {where}"
    if first["type"] == "too_short":
        return f"{where} must hold at least one item, got none"
    must = first["msg"].replace("Input should", "must").replace("List should", "must")
    return f"{where or 'the question'} {must}, got {show(first['input'])}"


def _path(location: tuple[int | str, ...]) -> str:
    """`rows[0][2]` for ("rows", 0, 2); names of types, which pydantic adds for unions, are left."""
    parts = [location[0] if location else ""]
    parts += [f"[{step}]" for step in location[1:] if isinstance(step, int)]
    return "".join(map(str, parts))
