"""Standard input as a data file: what comes there is kept in a file whose ending says its form."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sublearn.kinds.base import Refused

__all__ = ["in_words", "with_standard_input"]

_WRITES = ("--model", "-m", "--output", "-o", "--html", "--picture")
_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_folders: list[str] = []


def with_standard_input(arguments: Sequence[str]) -> list[str]:
    """The arguments with `-` replaced by a file of what comes on standard input."""
    found = list(arguments)
    places = [i for i, one in enumerate(found) if one == "-" and i > 1]
    for i in places:
        if found[i - 1] in _WRITES:
            raise Refused(found[i - 1], "must be the name of a file, got -")
    if len(places) > 1:
        raise Refused("-", f"must stand for one file, got it {len(places)} times")
    for i in places:
        found[i] = str(_keep(sys.stdin.buffer.read()))
    return found


def _keep(content: bytes) -> Path:
    folder = tempfile.mkdtemp(prefix="sublearn-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _folders.append(folder)
    path = Path(folder) / f"standard-input{_ending(content)}"
    path.write_bytes(content)
    return path


def _ending(content: bytes) -> str:
    """What the form of some bytes is called at the end of a file name."""
    for start, packed in _PACKED.items():
        if content.startswith(start):
            return _ending(_unpacked(content, packed)) + packed
    if content.startswith(b"PK"):
        return ".npz"
    head = content[:4096].decode("utf-8-sig", errors="replace").lstrip("\n\r ")
    first = head.split("\n", 1)[0].strip()
    if first.startswith("{"):
        return ".jsonl"
    if re.match(r"(?i)(%|@relation)", first):
        return ".arff"
    if re.fullmatch(r"\d+ \d+ \d+", first):
        return ".xmc"
    if re.match(r"\S+( \d+:\S+)*( #.*)?$", first) and re.search(r" \d+:", head):
        return ".svm"
    return ".csv" if _is_table(head.splitlines()[:2]) else ".tsv"


def _is_table(lines: list[str]) -> bool:
    """Names with commas between, among them `text`, or a line of as many numbers after them."""
    names = [name.strip().strip('"') for name in lines[0].split(",")] if lines else []
    if len(names) < 2 or "\t" in lines[0]:
        return "text" in names
    fields = lines[1].split(",") if len(lines) > 1 else []
    numbers = [field for field in fields if re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", field)]
    return "text" in names or (len(fields) == len(names) and bool(numbers))


def _unpacked(content: bytes, packed: str) -> bytes:
    """The beginning of what is compressed; nothing if it cannot be read, as its reader will say."""
    from sublearn.io.files import open_binary

    with tempfile.NamedTemporaryFile(suffix=packed) as file:
        file.write(content)
        file.flush()
        try:
            with open_binary(file.name) as stream:
                return stream.read(4096)
        except (ValueError, OSError):
            return b""


def in_words(sentence: str) -> str:
    """A message in which the file that was kept is called by what it is."""
    for folder in _folders:
        sentence = re.sub(re.escape(folder) + r"/standard-input[.\w]*", "standard input", sentence)
    return sentence
