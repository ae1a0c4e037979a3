"""Opening and replacing files: compression by file name ending, atomic writes, clear refusals."""

from __future__ import annotations

import bz2
import contextlib
import csv
import errno
import gzip
import importlib
import io
import lzma
import os
import re
import secrets
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from sublearn.errors import DataFileError, ParameterError, needs_extra
from sublearn.io.limits import ReadLimits
from sublearn.io.locks import open_locked, remove_abandoned
from sublearn.typing import PathLike

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "Lines",
    "check_target",
    "flush_folder",
    "most_bytes",
    "open_binary",
    "plain_name",
    "reading",
    "replace_file",
    "write_atomically",
]

_BUFFER_BYTES = 1 << 18
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def _open_zstd(path: PathLike, mode: str) -> IO[bytes]:
    """Open a file compressed by Zstandard, which Python has from 3.14 on and an extra before."""
    with needs_extra("a file that ends in .zst", "zstd"):
        try:
            zstd = importlib.import_module("compression.zstd")
        except ModuleNotFoundError:
            zstd = importlib.import_module("zstandard")
    return cast("IO[bytes]", zstd.open(path, mode))


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": _open_zstd,
}


def plain_name(path: PathLike) -> str:
    """File name in lower case, without the ending that stands for a compression."""
    name = Path(path).name.lower()
    stem, ending = os.path.splitext(name)
    return stem if ending in _OPENERS else name


def _opener(path: PathLike) -> Callable[..., IO[bytes]]:
    return _OPENERS.get(Path(path).suffix.lower(), open)


_USUAL_LIMITS = ReadLimits()
#: What readers, and the libraries they call, raise for content that cannot be read.
_UNREADABLE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    csv.Error,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@contextlib.contextmanager
def reading(path: PathLike, lines: Lines | None = None) -> Iterator[None]:
    """Whatever is wrong with the content of a file is a `DataFileError` that begins with its name.

    A message that begins with a line keeps it; with `lines`, the line read last is named. A file
    that is missing, or may not be read, stays the OSError it is.
    """
    name = os.fspath(path)
    try:
        yield
    except DataFileError as error:
        if str(error).startswith(name):
            raise
        raise DataFileError(_located(name, lines, error)) from None
    except _UNREADABLE as error:
        raise DataFileError(_located(name, lines, error)) from None
    except OSError as error:
        # Bad data of bz2 has no number, and a bad offset of an archive is an invalid argument.
        if error.errno in (None, errno.EINVAL):
            raise DataFileError(_located(name, lines, error)) from None
        raise


def _located(name: str, lines: Lines | None, error: Exception) -> str:
    what = f"must be UTF-8, got {error.reason}" if isinstance(error, UnicodeDecodeError) else ""
    what = what or str(error)
    if isinstance(error, (MemoryError, RecursionError)) or not what:
        what = f"cannot be read: {type(error).__name__} {what}".rstrip()
    if what.startswith("line "):
        return f"{name}, {what}"
    number = 0 if lines is None else lines.number
    return f"{name}:{number}: {what}" if number else f"{name}: {what}"


@contextlib.contextmanager
def open_binary(path: PathLike, limits: ReadLimits | None = None) -> Iterator[IO[bytes]]:
    """Open for reading, decompressed; what is wrong with it is a `DataFileError`.

    A compressed file is refused as soon as it unpacks to more than `limits` allow.
    """
    with reading(path):
        if os.path.isdir(path):
            raise DataFileError(f"{os.fspath(path)}: a file is needed, got a directory")
        with _opener(path)(path, "rb") as stream:
            try:
                yield stream if _opener(path) is open else _limited(stream, path, limits)
            except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"the compressed file is damaged: {error}") from None
            except OSError as error:
                if error.errno is None:  # what bz2 raises for bad data carries no system error
                    raise ValueError(f"the compressed file is damaged: {error}") from None
                raise
            except Exception as error:
                if type(error).__name__ != "ZstdError":  # of a package that may not be there
                    raise
                raise ValueError(f"the compressed file is damaged: {error}") from None


def most_bytes(path: PathLike, limits: ReadLimits) -> int:
    """How many bytes a file can have once it is decompressed."""
    size = os.path.getsize(path)
    return size if _opener(path) is open else limits.most_unpacked(size)


class _Unpacked(io.RawIOBase):
    """Counts what comes out of a compressed file."""

    def __init__(self, stream: IO[bytes], n_packed: int, limits: ReadLimits):
        self._stream, self._n_packed, self._limits = stream, n_packed, limits
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        n = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._n_read += n
        self._limits.check_unpacked(self._n_read, self._n_packed)
        return int(n)


def _limited(stream: IO[bytes], path: PathLike, limits: ReadLimits | None) -> IO[bytes]:
    raw = _Unpacked(stream, os.path.getsize(path), limits or _USUAL_LIMITS)
    return cast("IO[bytes]", io.BufferedReader(raw, _BUFFER_BYTES))


class Lines:
    """Lines of a stream as bytes, none longer than the limits allow; knows the last one's number.

    Parameters
    ----------
    stream : binary stream
        Where they come from.
    limits : ReadLimits, optional
        How long a line may be.
    """

    def __init__(self, stream: IO[bytes], limits: ReadLimits | None = None):
        self._stream, self._limits = stream, limits or _USUAL_LIMITS
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        most = self._limits.max_line_bytes + 1
        while line := self._stream.readline(most):
            self.number += 1
            if len(line) == most:
                self._limits.check_line(most)
            yield line

    def texts(self) -> Iterator[str]:
        """Lines decoded from UTF-8, without a mark of the byte order before the first."""
        for line in self:
            yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def check_target(path: Path | None, what: str) -> None:
    """Refuse a file that could not be written: better now than after an hour of work.

    `what` is the argument that names it; None, where nothing is to be written, is no refusal.
    """
    if path is None:
        return
    folder = path.resolve().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise ParameterError(f"{what}: must be in a folder that can be written, got {folder}")
    if path.exists() and not path.is_file():
        raise ParameterError(f"{what}: must be a regular file, got {path}")


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
        _opener(path)(temporary, "wb") as stream,
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
