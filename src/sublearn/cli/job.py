"""A fit in parts on the command line: what each process was called with, for `sublearn join`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import typer

from sublearn.errors import ModelFileError
from sublearn.kinds.base import Refused
from sublearn.typing import JsonObject

__all__ = ["as_typed", "call_of", "check_call", "keep_call", "part_of", "recall"]

CALL, STANDARD_INPUT = "call.json", "standard-input"

_MOST_BYTES = 2**20
_NOT_KEPT = ("data", "model", "part", "n_jobs", "quiet", "json")  # of this process alone
_REFUSED = ("--model", "--part", "--quiet", "--json", "--help", "--help-all")


def part_of(text: str) -> tuple[int, int]:
    """The numbers of `--part 3/100`."""
    from sublearn.parts import parse_part

    found = parse_part(text)
    if found is None or not 1 <= found[0] <= found[1]:
        raise Refused("--part", f"must be K/N with 1 <= K <= N, such as 3/100, got {text}")
    return found


@contextlib.contextmanager
def as_typed() -> Iterator[None]:
    """Refusals of a fit in parts in the words of the command."""
    try:
        yield
    except ValueError as error:
        sentence = str(error)
        if sentence.startswith("n_parts must be "):
            n_parts, _, rest = sentence.removeprefix("n_parts must be ").partition(",")
            raise Refused("--part", f"must be K/{n_parts},{rest}") from None
        if sentence.startswith("model_path "):
            raise Refused("--model", sentence.removeprefix("model_path ")) from None
        if sentence.startswith("join_parts: "):
            raise ValueError(sentence.removeprefix("join_parts: ")) from None
        raise


def call_of(method: str, data: Path, context: typer.Context) -> JsonObject:
    """The method, the data file and the options of this command."""
    is_piped = data.stem.startswith(STANDARD_INPUT)  # its file is gone when the process ends
    where = "" if is_piped else str(data.resolve())
    return {"method": method, "data": where, "options": _words(context)}


def check_call(folder: Path, call: JsonObject) -> None:
    """Refuse a call that is not that of the parts which are done."""
    if not (folder / CALL).is_file():
        return
    method, data, options = recall(folder)
    known = {"method": method, "data": data, "options": options}
    other = [name for name in call if call[name] != known[name]]
    if other:
        raise Refused(
            "--part",
            f"needs the same call for all parts, got other {' and '.join(other)} than those in "
            f"{folder / CALL}; remove {folder} to start again",
        )


def keep_call(folder: Path, call: JsonObject) -> None:
    """Write the call beside the parts, unless they were joined meanwhile."""
    from sublearn.io.files import write_atomically

    check_call(folder, call)
    if not folder.is_dir():
        return
    with write_atomically(folder / CALL) as stream:
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
            is_file = isinstance(value, (str, Path)) and Path(value).is_file()
            words.append(f"{param.opts[0]}={Path(str(value)).resolve() if is_file else value}")
    return words


def recall(folder: Path) -> tuple[str, str, list[str]]:
    """Method, data file ("" for standard input) and options that `keep_call` wrote.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is none.
    """
    file = folder / CALL
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


def _checked(call: JsonObject) -> tuple[str, str, list[str]]:
    method, data, options = call["method"], call["data"], call["options"]
    if not isinstance(method, str) or not isinstance(data, str) or not isinstance(options, list):
        raise ValueError("method and data must be texts, options a list")
    for word in options:
        if not isinstance(word, str) or not word.startswith("--"):
            raise ValueError(f"options must begin with two dashes, got {word!r}")
        if word.partition("=")[0] in _REFUSED:
            raise ValueError(f"options must not hold {word.partition('=')[0]}")
    return method, data, options
