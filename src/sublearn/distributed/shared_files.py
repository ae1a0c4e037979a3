"""Functions and their arrays in files that every process of a machine maps: one copy per machine.

Scattering an array with Dask makes a copy for each worker. Here an array of some size is written
once, into a folder that the workers see, and its place in a pickle is taken by the file's name.
Workers map the file: the pages are shared by all processes of a machine. A machine that does not
see the folder is sent the files once, and keeps them in its own temporary folder.

Files are named after their content. So a file is never out of date, and equal arrays are written
once, whoever asks.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import tempfile
import threading
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from sublearn.extreme.fit_journal import fingerprint

__all__ = ["FileStore", "Missing", "SharedFolder", "write_copy"]

_LEAST_BYTES = 2**16  # smaller arrays travel in the pickle
_CHUNK_BYTES = 2**26


class Missing(Exception):
    """A machine lacks a file."""

    def __init__(self, host: str):
        super().__init__(host)
        self.host = host


@dataclass(frozen=True)
class SharedFolder:
    """Where files of one cluster are: the client's folder, or a copy on the machine."""

    path: str
    token: str

    @property
    def copy(self) -> Path:
        """The folder of a machine that does not see the client's."""
        return Path(tempfile.gettempdir()) / f"sublearn-{self.token}"

    def find(self, name: str) -> Path:
        """The file on this machine."""
        for folder in (Path(self.path), self.copy):
            if (folder / name).exists():
                return folder / name
        raise Missing(socket.gethostname())

    def is_seen(self) -> bool:
        """Whether this machine sees the client's folder."""
        return (Path(self.path) / self.token).exists()


class FileStore:
    """The client's side: makes pickles whose large arrays are files.

    Parameters
    ----------
    directory : path or None
        Where the folder of the files is made; best one that all machines see. None for the
        temporary folder of this machine.
    """

    def __init__(self, directory: Any = None):
        token = uuid.uuid4().hex
        base = Path(tempfile.gettempdir() if directory is None else directory).resolve()
        self.path = base / f"sublearn-files-{token}"
        self.path.mkdir(parents=True)
        (self.path / token).touch()  # by this file a machine knows the folder
        self.folder = SharedFolder(str(self.path), token)  # what workers are told

    def dumps(self, value: Any, written: dict[int, tuple[Any, str]]) -> bytes:
        """A pickle; `written` are arrays of the same moment that have their files already."""
        stream = io.BytesIO()
        _Pickler(stream, self, written).dump(value)
        return stream.getvalue()

    def save_function(self, function: Any, written: dict[int, tuple[Any, str]]) -> str:
        """The pickle of a function in a file; its name."""
        data = self.dumps(function, written)
        name = f"{hashlib.blake2b(data, digest_size=16).hexdigest()}.pickle"
        if not (self.path / name).exists():
            _write_at_once(self.path / name, data)
        return name

    def save_array(self, array: np.ndarray, written: dict[int, tuple[Any, str]]) -> str:
        """An array in a file; its name."""
        if id(array) not in written:
            plain = np.asarray(array)
            is_by_columns = plain.flags.f_contiguous and not plain.flags.c_contiguous
            digest = fingerprint(plain.T if is_by_columns else plain)
            name = f"{digest}-{'F' if is_by_columns else 'C'}.npy"
            if not (self.path / name).exists():
                temporary = self.path / f".{uuid.uuid4().hex}.npy"
                np.save(temporary, plain, allow_pickle=False)
                os.replace(temporary, self.path / name)
            written[id(array)] = (array, name)  # holds the array: an id is of what lives
        return written[id(array)][1]

    def names(self) -> list[str]:
        """All files."""
        return sorted(file.name for file in self.path.iterdir() if file.suffix != "")

    def chunks(self, name: str) -> list[np.ndarray]:
        """A file in pieces, to be sent."""
        data = np.memmap(self.path / name, dtype=np.uint8, mode="r")
        return [np.array(data[i : i + _CHUNK_BYTES]) for i in range(0, len(data), _CHUNK_BYTES)]

    def remove(self) -> None:
        """Delete all files; processes that have mapped one keep what they see."""
        shutil.rmtree(self.path, ignore_errors=True)


class _Pickler(cloudpickle.Pickler):
    """Writes large arrays to files as it meets them."""

    def __init__(
        self, stream: io.BytesIO, store: FileStore, written: dict[int, tuple[Any, str]]
    ) -> None:
        super().__init__(stream, protocol=5)
        self._store, self._written = store, written

    def reducer_override(self, value: Any) -> Any:
        is_array = type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject
        if is_array and value.nbytes >= _LEAST_BYTES:
            name = self._store.save_array(value, self._written)
            return open_array, (self._store.folder, name)
        return super().reducer_override(value)


def _write_at_once(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    temporary.write_bytes(data)
    os.replace(temporary, path)


# --- the workers' side -------------------------------------------------------------------------

_opened: weakref.WeakValueDictionary[str, np.ndarray] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def open_array(folder: SharedFolder, name: str) -> np.ndarray:
    """The array of a file, mapped and read-only; one mapping for all who hold it."""
    with _lock:
        array = _opened.get(name)
        if array is None:
            array = np.asarray(np.load(folder.find(name), mmap_mode="r", allow_pickle=False))
            _opened[name] = array
        return array


def write_copy(folder: SharedFolder, name: str, *chunks: np.ndarray) -> None:
    """A file of the client, for all processes of this machine."""
    folder.copy.mkdir(parents=True, exist_ok=True)
    temporary = folder.copy / f".{uuid.uuid4().hex}"
    with open(temporary, "wb") as stream:
        for chunk in chunks:
            stream.write(chunk.data)
    os.replace(temporary, folder.copy / name)
