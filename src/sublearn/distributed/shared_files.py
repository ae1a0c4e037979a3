"""Functions and their arrays in files that every process of a machine maps: one copy per machine.

Scattering an array with Dask makes a copy for each worker. Here an array of some size is written
once, into a folder that the workers see, and its place in a pickle is taken by the file's name.
Workers map the file: the pages are shared by all processes of a machine. A machine that does not
see the folder is sent the files once, and keeps them in its own temporary folder.

Files are named after their content. So a file is never out of date, and equal arrays are written
once, whoever asks.

Workers run what the pickles say. So folders are made for one user only, under names that cannot be
guessed, and read only if they are still that user's own: a folder of another user, one that others
may enter and a symbolic link count as not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import shutil
import socket
import stat
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import cloudpickle
import numpy as np

from sublearn.errors import ClusterError
from sublearn.extreme.fit_journal import fingerprint
from sublearn.typing import PathLike

#: What one message has written so far, by `id`: the object, which must not be freed, and its file.
Written = dict[int, tuple[object, str]]

__all__ = ["FileStore", "Missing", "SharedFolder", "read_pickle", "write_copy"]

_LEAST_BYTES = 2**16  # smaller arrays travel in the pickle
_CHUNK_BYTES = 2**26
_ENDINGS = (".npy", ".pickle")


class Missing(Exception):
    """A machine lacks a file."""

    def __init__(self, host: str):
        super().__init__(host)
        self.host = host


@dataclass(frozen=True)
class SharedFolder:
    """Where files of one cluster are: the client's folder, or a copy on the machine."""

    path: str
    token: str  # a secret: it is in messages and private folders, and in no name outside them

    @property
    def copy(self) -> Path:
        """The folder of a machine that does not see the client's."""
        return Path(tempfile.gettempdir()) / f"sublearn-{self.token}"

    def find(self, name: str) -> Path:
        """The file on this machine."""
        for folder in (Path(self.path), self.copy):
            if _is_private(folder) and (folder / name).exists():
                return folder / name
        raise Missing(socket.gethostname())

    def is_seen(self) -> bool:
        """Whether this machine sees the client's folder."""
        return _is_private(Path(self.path)) and (Path(self.path) / self.token).exists()

    def forget_copy(self) -> None:
        """Delete the copies on this machine."""
        if _is_private(self.copy):
            shutil.rmtree(self.copy, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    """Whether this is a folder of the user, no link to one, that others cannot enter."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    if os.name != "posix":  # rights are those of the temporary folder, which is the user's own
        return stat.S_ISDIR(found.st_mode)
    is_own = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and is_own


class FileStore:
    """The client's side: makes pickles whose large arrays are files.

    Their folder is made in `directory`, best one that all machines see; None is the temporary
    folder of this machine.
    """

    def __init__(self, directory: PathLike | None = None):
        token = secrets.token_hex(16)
        base = Path(tempfile.gettempdir() if directory is None else directory).resolve()
        base.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix="sublearn-files-", dir=base))
        (self.path / token).touch(0o600)  # by this file a machine knows the folder
        self.folder = SharedFolder(str(self.path), token)  # what workers are told

    def dumps(self, value: object, written: Written) -> bytes:
        """A pickle; `written` are arrays of the same moment that have their files already."""
        stream = io.BytesIO()
        _Pickler(stream, self, written).dump(value)
        return stream.getvalue()

    def save_function(self, function: Callable[..., object], written: Written) -> str:
        """The pickle of a function in a file; its name."""
        data = self.dumps(function, written)
        name = _name_of_pickle(data)
        if not (self.path / name).exists():
            _write_at_once(self.path / name, lambda stream: stream.write(data))
        return name

    def save_array(self, array: np.ndarray, written: Written) -> str:
        """An array in a file; its name."""
        if id(array) not in written:
            plain = np.asarray(array)
            name = _name_of_array(plain)
            if not (self.path / name).exists():
                _write_at_once(
                    self.path / name, lambda stream: np.save(stream, plain, allow_pickle=False)
                )
            written[id(array)] = (array, name)  # holds the array: an id is of what lives
        return written[id(array)][1]

    def names(self) -> list[str]:
        """All files."""
        return sorted(file.name for file in self.path.iterdir() if file.suffix in _ENDINGS)

    def chunks(self, name: str) -> list[np.ndarray]:
        """A file in pieces, to be sent."""
        data = np.memmap(self.path / name, dtype=np.uint8, mode="r")
        return [np.array(data[i : i + _CHUNK_BYTES]) for i in range(0, len(data), _CHUNK_BYTES)]

    def remove(self) -> None:
        """Delete all files; processes that have mapped one keep what they see."""
        shutil.rmtree(self.path, ignore_errors=True)


class _Pickler(cloudpickle.Pickler):
    """Writes large arrays to files as it meets them."""

    def __init__(self, stream: io.BytesIO, store: FileStore, written: Written) -> None:
        super().__init__(stream, protocol=5)
        self._store, self._written = store, written

    def reducer_override(self, value: Any) -> object:
        is_array = type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject
        if is_array and value.nbytes >= _LEAST_BYTES:
            name = self._store.save_array(value, self._written)
            return open_array, (self._store.folder, name)
        return super().reducer_override(value)


def _name_of_pickle(data: bytes) -> str:
    return f"{hashlib.blake2b(data, digest_size=16).hexdigest()}.pickle"


def _name_of_array(array: np.ndarray) -> str:
    is_by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    digest = fingerprint(array.T if is_by_columns else array)
    return f"{digest}-{'F' if is_by_columns else 'C'}.npy"


def _write_at_once(
    path: Path, write: Callable[[IO[bytes]], object], is_right: Callable[[Path], bool] | None = None
) -> None:
    """A file for this user only, which gets its name when it is whole and `is_right`."""
    temporary = path.with_name(f".{secrets.token_hex(16)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as stream:
            write(stream)
        if is_right is not None and not is_right(temporary):
            raise _damaged(path)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _damaged(path: Path) -> ClusterError:
    return ClusterError(f"{path}: content must be what the file is named after, got other bytes")


# --- the workers' side -------------------------------------------------------------------------

_opened: weakref.WeakValueDictionary[str, np.ndarray] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def open_array(folder: SharedFolder, name: str) -> np.ndarray:
    """The array of a file, mapped and read-only; one mapping for all who hold it."""
    with _lock:
        array = _opened.get(name)
        if array is None:
            array = _map_array(folder.find(name))
            _opened[name] = array
        return array


def _map_array(path: Path) -> np.ndarray:
    """Refuses a file that is shorter than its header says, which would end a process later."""
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (EOFError, ValueError) as error:
        raise _damaged(path) from error


def read_pickle(folder: SharedFolder, name: str) -> bytes:
    """A pickle to be run, if its bytes are those that it is named after."""
    path = folder.find(name)
    data = path.read_bytes()
    if _name_of_pickle(data) != name:
        raise _damaged(path)
    return data


def write_copy(folder: SharedFolder, name: str, *chunks: np.ndarray) -> None:
    """A file of the client, for all processes of this machine; arrives whole or not at all."""
    with contextlib.suppress(FileExistsError):  # another process of this machine was first
        folder.copy.mkdir(0o700)
    if not _is_private(folder.copy):
        raise ClusterError(
            f"{folder.copy}: the folder must be a private one of the user who runs the worker"
        )

    def write(stream: IO[bytes]) -> None:
        for chunk in chunks:
            stream.write(chunk.data)

    def is_right(path: Path) -> bool:
        if name.endswith(".pickle"):
            return _name_of_pickle(path.read_bytes()) == name
        return _name_of_array(_map_array(path)) == name

    _write_at_once(folder.copy / name, write, is_right)
