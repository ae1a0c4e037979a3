"""Downloading one file: resumed where it broke off, given up on a server that stalls, checked."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from sublearn.datasets.cache import Record, sha256_of
from sublearn.datasets.progress import DownloadBar
from sublearn.errors import DownloadError
from sublearn.io.locks import hold_alone

__all__ = ["Remote", "obtain"]

_MIRROR = "SUBLEARN_DATA_MIRROR"
_BLOCK = 1 << 16
_ATTEMPTS = 4
_LEAST_BYTES = 1 << 14  # that must come in each timeout
_MOST_BYTES = 1 << 36  # of one file: more is not one of ours
_SCHEMES = ("http", "https", "file")
#: How a file begins, by the ending of its name.
_BEGINNINGS = {".zip": b"PK", ".whl": b"PK", ".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b"}
_WEB_PAGE = (b"<!doctype", b"<html", b"<?xml")


@dataclass(frozen=True)
class Remote:
    """A file somewhere else.

    Parameters
    ----------
    name : str
        File name in the cache, and at a mirror.
    url : str
        Where it is.
    sha256 : str, optional
        Its checksum; without one, that of the first download holds from then on.
    """

    name: str
    url: str
    sha256: str | None = None


class _Cut(Exception):
    """The connection ended before the file did; what came is kept."""


def obtain(
    remote: Remote,
    folder: Path,
    *,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Path:
    """A file of the cache, downloaded if it is not there.

    A download that breaks off is resumed, now or by the next call, if the server can and its file
    is the same as before.

    Parameters
    ----------
    remote : Remote
        Which file.
    folder : Path
        Where it is kept; its last part names the set at a mirror.
    download_if_missing : bool
        Whether to download.
    timeout : float
        Seconds in which a server must answer, and then send at least 16 KiB.
    verbose : bool
        Whether to draw a progress bar.

    Returns
    -------
    Path

    Raises
    ------
    DownloadError
        If it cannot be had, or is not the file it was.
    """
    record = Record(folder)
    if record.has(remote.name):
        return record.check(remote.name)
    source, target = _source(remote, folder.name), folder / remote.name
    if target.is_file():  # put there by hand
        _check_beginning(target, source, target)
        record.accept(remote.name, sha256_of(target), remote.sha256, str(target))
        return target
    if not download_if_missing:
        raise DownloadError(f"{target} is not there, and download_if_missing is False ({source})")
    with _alone(target), _named(source, target):
        part = _Part(target, source, remote.sha256)
        with DownloadBar(remote.name, verbose) as bar:
            _transfer(part, timeout, bar)
        try:
            _check_beginning(part.path, source, target)
            record.accept(remote.name, sha256_of(part.path), remote.sha256, source)
        except DownloadError:
            part.drop()
            raise
        part.finish()
    return target


def _source(remote: Remote, name_of_set: str) -> str:
    """The address of a file, or its place at the mirror that the environment names."""
    mirror = os.environ.get(_MIRROR)
    url = f"{mirror.rstrip('/')}/{name_of_set}/{remote.name}" if mirror else remote.url
    if urllib.parse.urlsplit(url).scheme not in _SCHEMES:
        raise DownloadError(f"{url}: the address must begin with http, https or file")
    return url


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    with hold_alone(target.with_name(f".{target.name}.lock")) as is_ours:
        if not is_ours:
            raise DownloadError(f"{target}: another process is downloading it; call again later")
        yield


@contextlib.contextmanager
def _named(source: str, target: Path) -> Iterator[None]:
    """What went wrong, as one sentence that says what to do."""
    by_hand = f"or put the file at {target} yourself"
    try:
        yield
    except DownloadError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(
            f"{source}: the server answered {error.code} ({error.reason}); try later, {by_hand}"
        ) from None
    except urllib.error.URLError as error:
        raise DownloadError(
            f"{source}: cannot be reached ({error.reason}); connect to a network, {by_hand}"
        ) from None
    except _Cut as error:
        raise DownloadError(f"{source}: {error}; call again to go on from what has come") from None


class _Part:
    """The file on its way: what has come, and what it is a part of."""

    def __init__(self, target: Path, source: str, sha256: str | None):
        self.path = target.with_name(f"{target.name}.part")
        self.source = source
        self._note = target.with_name(f"{target.name}.part.json")
        self._target, self._is_known = target, sha256 is not None
        self.validator = self._read_validator()
        if self.validator is None and not self._is_known:
            self.path.unlink(missing_ok=True)  # of which file it is a part, no server can say

    def _read_validator(self) -> str | None:
        try:
            note: Any = json.loads(self._note.read_text(encoding="utf-8"))
            same = note["source"] == self.source and isinstance(note["validator"], str)
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return note["validator"] if same else None

    def __len__(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def headers(self) -> dict[str, str]:
        """What asks for the rest, if a beginning is there."""
        if not len(self):
            return {}
        wanted = {"Range": f"bytes={len(self)}-"}
        return wanted | ({"If-Range": self.validator} if self.validator else {})

    def begin(self, validator: str | None) -> None:
        """Forget what came, and note which file comes now."""
        self.path.write_bytes(b"")
        self.validator = validator
        self._note.write_text(
            json.dumps({"source": self.source, "validator": validator}), encoding="utf-8"
        )

    def finish(self) -> None:
        """Give the file its name."""
        os.replace(self.path, self._target)
        self._note.unlink(missing_ok=True)

    def drop(self) -> None:
        """Delete what came."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def _transfer(part: _Part, timeout: float, bar: DownloadBar) -> None:
    """Fetch until the file is whole; a cut connection is taken up again a few times."""
    for attempt in range(_ATTEMPTS):
        before = len(part)
        try:
            return _receive(part, timeout, bar)
        except _Cut:
            if attempt + 1 == _ATTEMPTS:
                raise
            if len(part) <= before and attempt:
                raise  # nothing came twice
    raise AssertionError("unreachable")


def _receive(part: _Part, timeout: float, bar: DownloadBar) -> None:
    headers = {"User-Agent": "sublearn", "Accept-Encoding": "identity", **part.headers()}
    request = urllib.request.Request(part.source, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            total = _begin(part, answer)
            bar.show(len(part), total)
            with part.path.open("ab") as out:
                for block in _blocks(answer, timeout):
                    out.write(block)
                    bar.show(out.tell(), total)
                    _refuse_too_large(out.tell(), part.source)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not len(part):  # 416: what came is longer than the file is now
            raise
        error.close()
        part.drop()
        raise _Cut("the server's file is shorter than what has come") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _Cut(f"the connection broke off ({error or type(error).__name__})") from None
    if total is not None and len(part) != total:
        raise _Cut(f"the connection broke off after {len(part)} of {total} bytes")


def _begin(part: _Part, answer: Any) -> int | None:
    """Keep what came if this is the rest of it; the size of the whole file, if the server knows."""
    length = answer.headers.get("Content-Length")
    n_coming = int(length) if length and length.isdigit() else None
    first = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    goes_on = getattr(answer, "status", None) == 206 and first == str(len(part)) and len(part) > 0
    if not goes_on:
        part.begin(_validator(answer.headers))
    if n_coming is not None:
        _refuse_too_large(len(part) + n_coming, part.source)
    return None if n_coming is None else len(part) + n_coming


def _validator(headers: Any) -> str | None:
    """What tells one state of a file from another: a strong tag or a date."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified")


def _blocks(answer: Any, timeout: float) -> Iterator[bytes]:
    """What comes, as it comes; a server that drips is given up like one that is silent."""
    read: Callable[[int], bytes] = getattr(answer, "read1", answer.read)
    start, n_bytes = monotonic(), 0
    while block := read(_BLOCK):
        yield block
        n_bytes += len(block)
        if monotonic() - start > timeout:
            if n_bytes < _LEAST_BYTES:
                raise _Cut(f"the server sent {n_bytes} bytes in {timeout:g} seconds")
            start, n_bytes = monotonic(), 0


def _refuse_too_large(n_bytes: int, source: str) -> None:
    if n_bytes > _MOST_BYTES:
        raise DownloadError(f"{source}: the file must have at most {_MOST_BYTES} bytes, got more")


def _check_beginning(path: Path, source: str, target: Path) -> None:
    """Refuse a web page, such as one that asks for a confirmation, in the place of an archive."""
    with path.open("rb") as stream:
        found = stream.read(64)
    wanted = _BEGINNINGS.get(target.suffix)
    is_page = found.lstrip().lower().startswith(_WEB_PAGE)
    if is_page or (wanted is not None and not found.startswith(wanted)):
        got = "a web page" if is_page else f"a file that begins with {found[:8]!r}"
        raise DownloadError(
            f"{source}: must be a {target.suffix} file, got {got}; open the address in a browser "
            f"and put the file at {target}"
        )
