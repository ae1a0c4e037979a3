"""How much a file may make a reader hold: sizes that a file only claims, lines, decompression."""

from __future__ import annotations

from dataclasses import dataclass

from sublearn.validation.params import Positive, check_arguments

__all__ = ["ReadLimits", "check_expansion"]

_ALWAYS_ALLOWED = 64 << 20  # bytes, however small the file is
_MOST_TIMES = 1000  # what a saved model may take in memory for each byte that is stored of it


@dataclass(frozen=True)
class ReadLimits:
    """How much a data file may make a reader hold; a file beyond a limit is a `DataFileError`.

    Parameters
    ----------
    max_bytes : int
        Most bytes of a decompressed file.
    max_ratio : int
        Most decompressed bytes for each byte of the file, from 64 MiB on. Text of sparse rows
        comes to 5 or 10, a file made to fill the memory to 1000.
    max_line_bytes : int
        Most bytes of one line, or of one word of a file of word vectors.

    Examples
    --------
    >>> from sublearn.io import ReadLimits, load_dataset
    >>> limits = ReadLimits(max_ratio=2000)  # load_dataset("zeros.svm.gz", limits=limits)
    """

    max_bytes: int = 64 << 30
    max_ratio: int = 200
    max_line_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        check_arguments("ReadLimits", vars(self), dict.fromkeys(vars(self), Positive(int)))

    def most_unpacked(self, n_packed: int) -> int:
        """Most bytes that may come out of a compressed file of `n_packed`."""
        return min(self.max_bytes, max(_ALWAYS_ALLOWED, self.max_ratio * n_packed))

    def check_unpacked(self, n_unpacked: int, n_packed: int) -> None:
        """Refuse so many bytes out of a compressed file of `n_packed`."""
        most = self.most_unpacked(n_packed)
        if n_unpacked > most:
            limit = "max_bytes" if most == self.max_bytes else "max_ratio"
            raise ValueError(
                f"a file of {n_packed} bytes must have at most {most} when decompressed "
                f"(limits.{limit}), got more"
            )

    def check_line(self, n_bytes: int, number: int | None = None) -> None:
        """Refuse a line of so many bytes; its number may be told."""
        if n_bytes > self.max_line_bytes:
            place = "" if number is None else f"line {number}: "
            raise ValueError(
                f"{place}a line must have at most {self.max_line_bytes} bytes "
                "(limits.max_line_bytes), got more"
            )


def check_expansion(what: str, n_bytes: int, n_stored: int) -> None:
    """Refuse a value that would take far more memory than is stored of it."""
    most = max(_ALWAYS_ALLOWED, _MOST_TIMES * n_stored)
    if n_bytes > most:
        raise ValueError(
            f"{what} must need at most {most} bytes of memory, as much as the file allows, "
            f"got {n_bytes}"
        )
