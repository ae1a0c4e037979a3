"""Files out of archives that may say anything: limits for what unpacks, no name leads elsewhere."""

from __future__ import annotations

import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sublearn.datasets.cache import Record, sha256_of
from sublearn.errors import DataFileError
from sublearn.io.files import open_binary, reading, replace_file
from sublearn.io.limits import ReadLimits

__all__ = ["members_of_tar", "unpack"]

_BLOCK = 1 << 20
_MOST_MEMBERS = 2_000_000
_MOST_BYTES_OF_A_TEXT = 16 << 20
_DRIVE = re.compile(r"^[A-Za-z]:")


def unpack(archive: Path, wanted: Mapping[str, tuple[str, str | None]]) -> dict[str, Path]:
    """Take files out of a zip archive into its folder; nothing else of it is written.

    Parameters
    ----------
    archive : Path
        The archive.
    wanted : mapping
        File name to be made, to the name in the archive, in whatever folder there, and the SHA-256
        it must have, if known.

    Returns
    -------
    dict of str to Path

    Raises
    ------
    DataFileError
        If the archive is damaged, has a name that leads out of it, lacks a file, or unpacks to more
        than `ReadLimits` allow.
    DownloadError
        If a file is not the one it must be.
    """
    record = Record(archive.parent)
    for name, (member, expected) in wanted.items():
        if record.has(name):
            continue
        with replace_file(archive.parent / name) as part:
            with reading(archive), zipfile.ZipFile(archive) as opened:
                _copy(opened, _entry(opened, member), part, archive)
            record.accept(name, sha256_of(part), expected, str(archive))
    return {name: record.check(name) for name in wanted}


def _entry(opened: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    """The one entry of this name, in whatever folder."""
    entries = opened.infolist()
    for entry in entries:
        _check_name(entry.filename)
    found = [entry for entry in entries if f"/{entry.filename}".endswith(f"/{member}")]
    if len(found) != 1:
        raise ValueError(f"must have one file {member}, got {len(found)} among {_some(entries)}")
    if found[0].flag_bits & 1 or stat.S_ISLNK(found[0].external_attr >> 16):
        raise ValueError(f"{member} must be a plain file, got one that is encrypted or a link")
    return found[0]


def _check_name(name: str) -> None:
    """Refuse a name that could lead out of a folder."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or _DRIVE.match(name) or "\0" in name:
        raise ValueError(f"a name in the archive leads out of it: {name[:80]!r}")


def _some(entries: list[zipfile.ZipInfo]) -> str:
    names = ", ".join(entry.filename for entry in entries[:5])
    return f"{len(entries)} ({names}{' ...' if len(entries) > 5 else ''})"


def _copy(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, part: Path, archive: Path) -> None:
    limits, n_packed, n_bytes = ReadLimits(), archive.stat().st_size, 0
    with opened.open(entry) as stream, part.open("wb") as out:
        while block := stream.read(_BLOCK):
            n_bytes += len(block)
            limits.check_unpacked(n_bytes, n_packed)
            out.write(block)


def members_of_tar(archive: Path, wants: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of small files of a ``.tar.gz``, in its order; nothing is written.

    Parameters
    ----------
    archive : Path
        The archive.
    wants : callable
        Says of a name, without the first folder of the archive, whether its content is wanted.

    Raises
    ------
    DataFileError
        If the archive is damaged, has a name that leads out of it, unpacks to more than
        `ReadLimits` allow, or has a wanted file that is large or no plain file.
    """
    with open_binary(archive) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as opened:
                for i, entry in enumerate(opened):
                    if i == _MOST_MEMBERS:
                        raise ValueError(f"has more than {_MOST_MEMBERS:,} files")
                    _check_name(entry.name)
                    name = entry.name.partition("/")[2]
                    if wants(name):
                        yield name, _content(opened, entry)
                    vars(opened)["members"].clear()  # else it keeps all of them
        except tarfile.TarError as error:
            raise DataFileError(f"{archive}: the archive is damaged ({error})") from None


def _content(opened: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    if not entry.isfile():
        raise ValueError(f"{entry.name} must be a plain file")
    if entry.size > _MOST_BYTES_OF_A_TEXT:
        raise ValueError(
            f"{entry.name} must have at most {_MOST_BYTES_OF_A_TEXT} bytes, got {entry.size}"
        )
    found = opened.extractfile(entry)
    content = b"" if found is None else found.read()
    if len(content) != entry.size:
        raise ValueError(f"{entry.name} ends early")
    return content
