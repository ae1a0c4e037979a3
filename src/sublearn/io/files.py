"""Opening and replacing files: compression by file name ending, atomic writes, clear refusals."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import lzma
import os
import stat
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["PathLike", "open_binary", "plain_name", "replace_file", "write_atomically"]

PathLike = str | os.PathLike[str]

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

    Readers see the old file or the whole new one, also after a crash; a failure leaves nothing
    behind. A symbolic link stays one, and the file it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"{os.fspath(path)}: a file name is needed, got a directory")
    if target.exists() and not target.is_file():  # os.replace would put a plain file in its place
        raise ValueError(f"{os.fspath(path)}: a regular file is needed, got a device or pipe")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    temporary = target.with_name(f".{uuid.uuid4().hex}.part")
    temporary.touch(exist_ok=False)
    rights = stat.S_IMODE(temporary.stat().st_mode)  # the usual ones, which writers may narrow
    try:
        yield temporary
        temporary.chmod(rights)
        _flush_to_disk(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_to_disk(target.parent)


@contextlib.contextmanager
def write_atomically(path: PathLike) -> Iterator[IO[bytes]]:
    """Stream that is compressed as the ending of `path` says and replaces `path` at the end."""
    with (
        replace_file(path) as temporary,
        cast("IO[bytes]", _opener(path)(temporary, "wb")) as stream,
    ):
        yield stream


def _flush_to_disk(path: PathLike) -> None:
    if os.name != "posix" and os.path.isdir(path):
        return  # directories cannot be opened on Windows
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
