"""Answers as text, JSON lines, CSV or arrays, to a file or to standard output."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sublearn.kinds.base import Kind, Refused, Wish
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["choose_format", "open_text", "write_answers"]

FORMATS = ("text", "jsonl", "csv", "npz")


def choose_format(name: str | None, output: Path | None, kind: Kind) -> str:
    """The format that is wanted, by its name, by the ending of the file, or text."""
    if name is None:
        ending = output.name.split(".", 1)[-1].split(".")[0] if output else ""
        last = output.suffix.removeprefix(".") if output else ""
        name = next((one for one in (last, ending) if one in FORMATS), "text")
    if name not in FORMATS:
        raise Refused("--format", f"must be one of {', '.join(FORMATS)}, got {name}")
    if name not in kind.formats:
        *others, final = kind.formats
        raise Refused(
            "--format", f"must be {', '.join(others)} or {final} for {kind.gives}, got {name}"
        )
    if name == "npz" and output is None:
        raise Refused("--output", "npz needs a file, got none")
    return name


def write_answers(
    kind: Kind,
    model: BaseEstimator,
    answers: Iterable[JsonObject],
    wish: Wish,
    output: Path | None,
    format: str,
) -> None:
    """Write answers as they come; arrays when all of them are there."""
    if format == "npz":
        _write_arrays(kind, model, answers, wish, output)
        return
    with open_text(output) as stream:
        if format == "csv":
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(kind.header(model, wish))
            for i, answer in enumerate(answers):
                writer.writerows(kind.records(answer, i))
            return
        for answer in answers:
            line = kind.line(answer) if format == "text" else _json_line(kind.as_json(answer))
            stream.write(line)


def _json_line(answer: JsonObject) -> str:
    return json.dumps(answer, ensure_ascii=False) + "\n"


def _write_arrays(
    kind: Kind,
    model: BaseEstimator,
    answers: Iterable[JsonObject],
    wish: Wish,
    output: Path | None,
) -> None:
    import numpy as np

    from sublearn.io.files import write_atomically

    arrays = kind.arrays(model, list(answers), wish)
    with write_atomically(output or "") as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]


@contextlib.contextmanager
def open_text(output: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears when it is complete."""
    if output is None:
        yield sys.stdout
        return
    from sublearn.io.files import write_atomically

    with (
        write_atomically(output) as stream,
        io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text,
    ):
        yield text
