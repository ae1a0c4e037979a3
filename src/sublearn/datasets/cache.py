"""Where downloaded data sets are kept, and what is known about each file there.

``<data home>/<set>/<file>``, with a file ``record.json`` in each folder: the SHA-256 and size of
every file when it was first downloaded. A file without a checksum of its own in this library is
compared with that record whenever it is read or downloaded again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from sublearn.errors import DownloadError
from sublearn.io.files import write_atomically
from sublearn.typing import PathLike

__all__ = ["Record", "data_home", "sha256_of"]

_HOME = "SUBLEARN_DATA_HOME"
_RECORD = "record.json"
_BLOCK = 1 << 20


def data_home(path: PathLike | None = None) -> Path:
    """The folder of downloaded data sets; it is made when something is downloaded.

    Parameters
    ----------
    path : path, optional
        The folder. By default what the environment variable ``SUBLEARN_DATA_HOME`` says, else
        ``sublearn`` in the user's cache (``XDG_CACHE_HOME``, else ``~/.cache``).

    Returns
    -------
    Path
    """
    given = path if path is not None else os.environ.get(_HOME)
    if given:
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sublearn"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class Record:
    """What is known of the files of one set.

    Parameters
    ----------
    folder : Path
        Folder of the set.
    """

    def __init__(self, folder: Path):
        self.path = folder / _RECORD
        self._folder = folder
        self._sums = self._read()

    def _read(self) -> dict[str, str]:
        try:
            found: Any = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise DownloadError(f"{self.path} cannot be read ({error}): delete it") from None
        sums = found.get("sha256") if isinstance(found, dict) else None
        if not (isinstance(sums, dict) and all(isinstance(one, str) for one in sums.values())):
            raise DownloadError(f'{self.path} must hold {{"sha256": {{file: digits}}}}: delete it')
        return sums

    def has(self, name: str) -> bool:
        """Whether a file of this name is there and known."""
        return name in self._sums and (self._folder / name).is_file()

    def accept(self, name: str, digest: str, expected: str | None, source: str) -> None:
        """Note a file that arrived, or refuse it: it must be the expected one, or the first one's.

        Raises
        ------
        DownloadError
            If the sums differ.
        """
        if expected is not None and digest != expected:
            raise DownloadError(
                f"{source}: {name} must have the SHA-256 {expected}, got {digest}; it was changed, "
                "or damaged on its way, and was not kept"
            )
        known = self._sums.get(name, digest)
        if expected is None and digest != known:
            raise DownloadError(
                f"{source}: {name} must have the SHA-256 {known} of the first download, got "
                f"{digest}; it was not kept. If the change at its source is right, delete "
                f"{self.path}"
            )
        self._sums[name] = digest
        self._write()

    def forget(self, name: str) -> None:
        """Let the next file of this name be the first one."""
        self._sums.pop(name, None)
        self._write()

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with write_atomically(self.path) as stream:
            stream.write(json.dumps({"sha256": self._sums}, indent=1, sort_keys=True).encode())

    def check(self, name: str) -> Path:
        """Path of a file that is as it was when it arrived.

        Raises
        ------
        DownloadError
            If it was changed since.
        """
        path = self._folder / name
        if sha256_of(path) != self._sums[name]:
            raise DownloadError(
                f"{path}: changed since it was downloaded; delete it to download it again"
            )
        return path
