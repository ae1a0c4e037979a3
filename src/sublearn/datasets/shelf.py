"""What all sets share: what is told of them, and their folder in the cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from sublearn.datasets.archives import unpack
from sublearn.datasets.cache import Record, data_home, sha256_of
from sublearn.datasets.download import Remote, obtain
from sublearn.validation import Boolean, InstanceOf, OneOf, OrNone, Positive, check_arguments

__all__ = ["Description", "Shelf", "check_choice"]

_RULES = {
    "data_home": OrNone(InstanceOf(str, os.PathLike)),
    "download_if_missing": Boolean(),
    "timeout": Positive(float),
    "verbose": Boolean(),
}


@dataclass(frozen=True)
class Description:
    """What is known of a set before it is there.

    Parameters
    ----------
    name : str
        Its folder in the cache, and its name for ``sublearn datasets fetch``.
    function : str
        The function of this package that loads it.
    argument : str or None
        Its first argument, if it has one.
    what : str
        What it holds and how much of it.
    licence : str
        The licence, as its source states it.
    page : str
        Where it comes from.
    sums : str
        Whose checksum its files must have: one of this library, or that of the first download.
    """

    name: str
    function: str
    argument: str | None
    what: str
    licence: str
    page: str
    sums: str

    @property
    def call(self) -> str:
        """The line of Python that loads it."""
        return f"{self.function}({'' if self.argument is None else json.dumps(self.argument)})"

    def bunch(self, **parts: object) -> Bunch:
        """The set with what is told of it."""
        told = f"{self.name}\n\n{self.what}\n\nLicence: {self.licence}\nSource: {self.page}\n"
        return Bunch(**parts, DESCR=told, licence=self.licence, source=self.page)


class Shelf:
    """The folder of a set, and how its files get there.

    Parameters
    ----------
    caller : str
        The function that was called, for refusals.
    name : str
        Name of the folder.
    options : mapping
        `data_home`, `download_if_missing`, `timeout` and `verbose` as the user gave them.
    """

    def __init__(self, caller: str, name: str, options: Mapping[str, Any]):
        check_arguments(caller, options, _RULES)
        self.folder = data_home(options["data_home"]) / name
        self._options = {key: value for key, value in options.items() if key != "data_home"}

    def obtain(self, remote: Remote) -> Path:
        """A file as its source has it."""
        return obtain(remote, self.folder, **self._options)

    def unpack(
        self, archive: Remote, wanted: Mapping[str, tuple[str, str | None]]
    ) -> dict[str, Path]:
        """Files of a zip archive, which is deleted when they are out."""
        record = Record(self.folder)
        if all(record.has(name) for name in wanted):
            return {name: record.check(name) for name in wanted}
        path = self.obtain(archive)
        found = unpack(path, wanted)
        path.unlink()
        return found

    def derive(
        self, archive: Remote, names: tuple[str, ...], make: Callable[[Path, Path], None]
    ) -> dict[str, Path]:
        """Files made of an archive, which is deleted when they are there.

        ``make(archive, folder)`` writes them. Archives that a host packs anew for each download
        differ in their bytes, so that the sums of what was made of them count, and not their own.
        """
        record = Record(self.folder)
        if not all(record.has(name) for name in names):
            path = self.obtain(archive)
            make(path, self.folder)
            for name in names:
                record = Record(self.folder)
                record.accept(name, sha256_of(self.folder / name), None, archive.url)
            record.forget(archive.name)
            path.unlink()
        return {name: record.check(name) for name in names}


def check_choice(caller: str, argument: str, value: object, options: tuple[str, ...]) -> None:
    """Refuse a name that is none of the options."""
    check_arguments(caller, {argument: value}, {argument: OneOf(*options)})
