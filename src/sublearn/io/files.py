"""Opening and replacing files: compression by file name ending, atomic writes, clear refusals."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import lzma
import os
import re
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from sublearn.io.locks import open_locked, remove_abandoned

__all__ = [
    "PathLike",
    "flush_folder",
    "open_binary",
    "plain_name",
    "replace_file",
    "write_atomically",
]

PathLike = str | os.PathLike[str]

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def plain_name(path: PathLike) -> str:
    """File name in lower case, without the ending that stands for a compression."""
    name = Path(path).name.lower()
    stem, ending = os.path.splitext(name)
    return stem if ending in _OPENERS else name


def _opener(path: PathLike) -> Callable[..., Any]:
    return _OPENERS.get(Path(path).suffix.lower(), open)


@contextlib.contextmanager
def open_binary(path: PathLike) -> Iterator[IO[bytes]]:
    """Open for reading, decompressed; a directory or a damaged compressed file is a ValueError."""
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)}: a file is needed, got a directory")
    with cast("IO[bytes]", _opener(path)(path, "rb")) as stream:
        try:
            yield stream
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{os.fspath(path)}: the compressed file is damaged: {error}"
            ) from None
        except OSError as error:
            if error.errno is None:  # what bz2 raises for bad data carries no system error
                raise ValueError(
                    f"{os.fspath(path)}: the compressed file is damaged: {error}"
                ) from None
            raise


@contextlib.contextmanager
def replace_file(path: PathLike) -> Iterator[Path]:
    """Name of a temporary file beside `path` that takes its place if the body succeeds.

    Readers see the old file or the whole new one, also after a crash or a loss of power: the new
    file is on the disk before it gets its name, and its name before the body's end is reported.
    Of several writers the last one wins. A failure leaves nothing behind; what a killed writer left
    is removed by the next one. A symbolic link stays one, and the file it points to is replaced.

    Raises
    ------
    OSError
        If the disk refuses, naming `path` and not the temporary file.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"{os.fspath(path)}: a file name is needed, got a directory")
    if target.exists() and not target.is_file():  # os.replace would put a plain file in its place
        raise ValueError(f"{os.fspath(path)}: a regular file is needed, got a device or pipe")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    _remove_left_over(target)
    with _in_the_name_of(path, target):
        part, handle = _begin_part(target)
        try:
            yield part
            _flush_to_disk(part)
            os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                part.unlink(missing_ok=True)
            raise
        finally:
            if handle is not None:
                os.close(handle)
    flush_folder(target.parent)


@contextlib.contextmanager
def write_atomically(path: PathLike) -> Iterator[IO[bytes]]:
    """Stream that is compressed as the ending of `path` says and replaces `path` at the end."""
    with (
        replace_file(path) as temporary,
        cast("IO[bytes]", _opener(path)(temporary, "wb")) as stream,
    ):
        yield stream


# Parts: `.<target>.<16 digits>.part`, locked by their writer. A part without a lock has lost it.


def _prefix(target: Path) -> str:
    """What the parts of a target begin with; 57 characters leave room in a name of 255 bytes."""
    return f".{target.name[:57]}."


def _begin_part(target: Path) -> tuple[Path, int | None]:
    """A new part, and the handle that holds its lock until it is closed."""
    while True:
        part = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.part")
        if sys.platform == "win32":  # where a lock would keep the writer out
            part.touch()
            return part, None
        try:
            handle = open_locked(part)
        except OSError as error:
            if error.errno in _NO_LOCKS and part.exists():
                return part, None  # without locks no other process removes it either
            raise
        if handle is not None:  # else a process that clears up was there first
            return part, handle


def _remove_left_over(target: Path) -> None:
    is_part = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{16}\.part").fullmatch
    with contextlib.suppress(OSError):  # a folder may be for writing only
        for name in os.listdir(target.parent):
            if is_part(name):
                remove_abandoned(target.parent / name)


@contextlib.contextmanager
def _in_the_name_of(path: PathLike, target: Path) -> Iterator[None]:
    """Errors of the system that name a part of the target, or nothing, name `path` instead."""
    try:
        yield
    except OSError as error:
        is_ours = error.filename is None or _prefix(target) in os.fsdecode(error.filename)
        if error.errno is None or not is_ours:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


def _flush_to_disk(path: PathLike) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        _sync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system has a way to."""
    if os.name != "posix":
        return
    try:
        _flush_to_disk(folder)
    except PermissionError:  # a folder for writing only cannot be opened
        return
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise OSError(error.errno, os.strerror(error.errno or 0), str(folder)) from error


if sys.platform == "darwin":
    import fcntl

    def _sync(handle: int) -> None:
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync stops at the drive's own memory there

else:
    _sync = os.fsync
