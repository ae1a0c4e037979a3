"""A fit in parts on the command line: what each process was called with, for `sublearn join`."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from sublearn.errors import ModelFileError
from sublearn.kinds.base import Refused
from sublearn.typing import JsonObject

__all__ = ["keep_call", "part_of", "recall"]

_MOST_BYTES = 2**20
_NOT_KEPT = ("data", "model", "part", "quiet", "json")  # of this process alone


def part_of(text: str) -> tuple[int, int]:
    """The numbers of `--part 3/100`."""
    from sublearn.parts import parse_part

    found = parse_part(text)
    if found is None or not 1 <= found[0] <= found[1]:
        raise Refused("--part", f"must be K/N with 1 <= K <= N, such as 3/100, got {text}")
    return found


def keep_call(folder: Path, method: str, data: Path, context: typer.Context) -> None:
    """Write the method, the data file and the options of this command into the folder."""
    from sublearn.io.files import write_atomically

    call = {"method": method, "data": str(data.resolve()), "options": _words(context)}
    with write_atomically(folder / "call.json") as stream:
        stream.write(json.dumps(call, indent=1).encode())


def _words(context: typer.Context) -> list[str]:
    """The options of a command, as they could be typed again."""
    words: list[str] = []
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if param.name in _NOT_KEPT or value is None or value == param.default:
            continue
        if isinstance(value, bool):
            words.append(param.opts[0] if value else param.secondary_opts[0])
        else:
            words.append(f"{param.opts[0]}={value}")
    return words


def recall(folder: Path) -> tuple[str, Path, list[str]]:
    """Method, data file and options that `keep_call` wrote.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is none.
    """
    file = folder / "call.json"
    if not file.is_file():
        raise ModelFileError(
            f"{file}: no such file; `sublearn fit --part K/N` writes it when a part is done, and a "
            "join that succeeds removes it"
        )
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        return _checked(json.loads(file.read_text(encoding="utf-8")))
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{file}: not the call of a fit in parts: {error}") from error


def _checked(call: JsonObject) -> tuple[str, Path, list[str]]:
    method, data, options = call["method"], call["data"], call["options"]
    if not isinstance(method, str) or not isinstance(data, str) or not isinstance(options, list):
        raise ValueError("method and data must be texts, options a list")
    for word in options:
        if not isinstance(word, str) or not word.startswith("--"):
            raise ValueError(f"options must begin with two dashes, got {word!r}")
    return method, Path(data), options
