"""Writes a store of rows from what is larger than memory: one pass over the source, then an
external sort of its entries by columns, and of its labels by label.

The sort deals entries out to files by ranges of columns of about equal size, in the order in which
they come, and sorts one file at a time. A range of one column is in order already. So memory holds
a block of the source, or a range, and the counts of the columns.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from sublearn.errors import DataFileError, ParameterError
from sublearn.io.dataset import as_float_dtype
from sublearn.io.files import flush_folder, reading
from sublearn.io.limits import ReadLimits
from sublearn.io.row_store import MANIFEST, StoredRows, array_types, digest_of
from sublearn.io.row_streams import RowForm, Rows, row_blocks
from sublearn.typing import PathLike
from sublearn.validation.values import LARGEST, is_int64, show

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["as_bytes", "store_rows"]

_UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B?)\s*", re.IGNORECASE)
_LEAST_MEMORY = 16 * 2**20
_PER_TEXT_BYTE = 12  # of memory, for a byte of a block of the source: text, parser, arrays
_PER_ENTRY = 64  # of memory, for an entry that is being sorted
_MOST_RANGES = 512  # files that are open at a time
_NARROW = np.iinfo(np.int32).max


def store_rows(
    source: Any,
    folder: PathLike,
    *,
    memory: str | int = "1GB",
    dtype: DTypeLike = np.float32,
    multilabel: bool = True,
    zero_based: bool = False,
    n_features: int | None = None,
    n_labels: int | None = None,
    limits: ReadLimits | None = None,
) -> StoredRows:
    """Write rows and labels that need not fit into memory to a folder that a fit can map.

    Parameters
    ----------
    source : path or iterable of pairs (X, Y)
        A file of `load_xmc` or `load_svmlight`; a table of Parquet or Arrow with the columns
        `indices`, `values` and `labels`, a list of numbers each (needs ``pip install
        'sublearn[arrow]'``); or blocks of rows, for instance what a vectorizer without vocabulary
        makes of some texts at a time.
    folder : path
        A new folder. It appears at once when it is complete.
    memory : str or int, default="1GB"
        How much memory this may take beside what the process has already: bytes, or a text such as
        "512MB". Less memory takes more files at a time, not more passes.
    dtype : float32 or float64
        Type of the values.
    multilabel : bool, default=True
        Whether labels are ids, any number of them in a row. If not, each row has one number. XMC
        files know ids only.
    zero_based : bool, default=False
        Whether features of a LIBSVM file count from 0.
    n_features, n_labels : int, optional
        Numbers of columns, if more than the rows show; larger ids are refused.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    StoredRows
        ``X, y = rows`` go into ``PPDSparseClassifier(model_path=...).fit(X, y)``.

    Raises
    ------
    DataFileError
        For a file that cannot be read, as the readers do, with its line.
    ParameterError
        For a `memory` that is too small for these rows.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> blocks = ((np.eye(3), np.eye(3)) for _ in range(2))
    >>> rows = store_rows(blocks, f"{tempfile.mkdtemp()}/rows", memory="16MB")
    >>> rows.shape, rows.n_labels
    ((6, 3), 3)
    """
    target, budget = Path(folder), as_bytes(memory, "store_rows.memory")
    if os.path.lexists(target):
        raise ValueError(f"store_rows.folder must be new, got {target}")
    sizes = {"n_features": n_features, "n_labels": n_labels}
    for name, value in sizes.items():
        if value is not None and not (is_int64(value) and 0 <= value <= _NARROW):
            raise ParameterError(
                f"store_rows.{name} must be an integer in 0..{_NARROW} or None, got {show(value)}"
            )
    form = RowForm(as_float_dtype(dtype, "store_rows"), multilabel, zero_based,
                   limits or ReadLimits())  # fmt: skip
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    part.mkdir(parents=True, mode=0o700)
    try:
        writer = _Writer(part, form, budget, {k: v for k, v in sizes.items() if v is not None})
        with _reading(source):
            writer.read(source)
        writer.finish()
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    flush_folder(target.parent)
    return StoredRows(target, verify=False)


@contextlib.contextmanager
def _reading(source: Any) -> Iterator[None]:
    """What is wrong with a file is told with its name; what is wrong with a parameter is not."""
    if not isinstance(source, (str, os.PathLike)):
        yield
        return
    try:
        with reading(source):
            yield
    except DataFileError as error:
        if isinstance(error.__context__, ParameterError):
            raise error.__context__ from None
        raise


def as_bytes(memory: object, name: str) -> int:
    """Bytes out of a number or a text such as "2GB"."""
    found = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
    if found is not None:
        unit = found.group(2).upper().rstrip("B")
        memory = int(float(found.group(1)) * _UNITS[f"{unit}B" if unit else ""])
    if not is_int64(memory):
        raise ParameterError(f"{name} must be bytes or a text such as '2GB', got {show(memory)}")
    if memory < _LEAST_MEMORY:
        raise ParameterError(
            f"{name} must be at least {_LEAST_MEMORY >> 20} MB, got {memory} bytes"
        )
    return int(memory)


@dataclass
class _Lists:
    """Entries by rows as they come: ids and values in files, their counts by id in memory."""

    folder: Path
    head: str
    most_ids: int
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_entries: int = 0

    def add(self, ids: np.ndarray, name: str) -> None:
        """Count the entries of a block by their ids."""
        found, counts = np.unique(ids, return_counts=True)
        if len(found) and found[-1] >= len(self.counts):
            self._grow(int(found[-1]) + 1, name)
        self.counts[found] += counts
        self.n_entries += len(ids)

    def _grow(self, n: int, name: str) -> None:
        if n > self.most_ids:
            raise ParameterError(
                f"store_rows.memory must hold a number for each column ({name} up to {n - 1:,}), "
                f"got room for {self.most_ids:,}"
            )
        more = min(max(n, len(self.counts) + len(self.counts) // 2), self.most_ids)
        self.counts = np.concatenate([self.counts, np.zeros(more - len(self.counts), np.int64)])


class _Writer:
    """A store that grows; `known` are numbers of columns that are given."""

    def __init__(self, folder: Path, form: RowForm, memory: int, known: dict[str, int]):
        self.folder, self.form, self.memory, self.known = folder, form, memory, known
        most_ids = memory // 64  # eight bytes each, with copies, in a quarter of the memory
        self.n_rows = 0
        self.features = _Lists(folder, "rows", most_ids)
        self.labels = _Lists(folder, "labels", most_ids)

    def read(self, source: Any) -> None:
        """One pass over the source: X by rows, and labels by rows."""
        stream = row_blocks(source, self.form, self.memory // _PER_TEXT_BYTE // 2)
        for name in ("n_features", "n_labels"):
            told = getattr(stream, name)
            if told is not None and self.known.setdefault(name, told) != told:
                raise ParameterError(
                    f"store_rows.{name} must be that of the file or None, got {self.known[name]}"
                )
        with contextlib.ExitStack() as stack:
            names = ("lengths", "rows.indices", "rows.values", "label_lengths", "label_ids",
                     "targets")  # fmt: skip
            files: dict[str, IO[bytes]] = {
                n: stack.enter_context(open(self.folder / f"{n}.bin", "wb")) for n in names
            }
            for rows in stream.blocks:
                self._add(rows, files)
        if not self.n_rows:
            raise ValueError("there must be rows, got none")

    def _add(self, rows: Rows, files: dict[str, IO[bytes]]) -> None:
        largest = LARGEST[rows.values.dtype]
        if len(rows.values) and max(rows.values.max(), -rows.values.min()) > largest:
            raise ValueError(f"values must be at most {largest:g} in size, got a larger one")
        self.n_rows += len(rows.lengths)
        if self.n_rows > _NARROW:
            raise ValueError(f"there must be at most {_NARROW} rows, got more")
        self.features.add(rows.indices, "features")
        parts = {"lengths": rows.lengths.astype(np.int64), "rows.indices": rows.indices,
                 "rows.values": rows.values}  # fmt: skip
        if rows.label_lengths is None:
            parts["targets"] = rows.targets.astype(np.float64)
        else:
            self.labels.add(rows.labels, "labels")
            parts |= {"label_lengths": rows.label_lengths.astype(np.int64),
                      "label_ids": rows.labels}  # fmt: skip
        for name, array in parts.items():
            array.tofile(files[name])

    def finish(self) -> None:
        """Columns, labels by label, and the description; what was only on the way is removed."""
        n_features = self._n("n_features", self.features)
        n_labels = self._n("n_labels", self.labels) if self.form.multilabel else None
        types = array_types(self.form.dtype, self.features.n_entries, n_labels is not None)
        _offsets(self.folder, "lengths", "rows.indptr", types["rows.indptr"])
        self._turn(self.features, n_features, "rows.indices", "lengths", "columns", "rows.values")
        if n_labels is not None:
            self._turn(self.labels, n_labels, "label_ids", "label_lengths", "labels", None)
            (self.folder / "targets.bin").unlink()
        if types["rows.indices"] != np.int32:
            _widen(self.folder / "rows.indices.bin", types["rows.indices"])
        for name in ("lengths", "label_lengths", "label_ids"):
            (self.folder / f"{name}.bin").unlink()
        self._describe(types, (self.n_rows, n_features), n_labels)

    def _n(self, name: str, lists: _Lists) -> int:
        seen = int(np.flatnonzero(lists.counts).max(initial=-1)) + 1
        if self.known.get(name, seen) < seen:
            raise ValueError(f"ids must be below {name} = {self.known[name]}, got {seen - 1}")
        return self.known.get(name, seen)

    def _turn(self, lists: _Lists, n: int, ids: str, lengths: str, out: str,
              values: str | None) -> None:  # fmt: skip
        """From rows to columns: the external sort."""
        if n > lists.most_ids:
            lists._grow(n, out)
        counts = np.zeros(n, dtype=np.int64)
        counts[: len(lists.counts)] = lists.counts[:n]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        offsets.tofile(self.folder / f"{out}.indptr.bin")
        n_most = self.memory // 2 // _PER_ENTRY
        cuts = _ranges(offsets, n_most)
        if len(cuts) - 1 > _MOST_RANGES:
            need = 2 * _PER_ENTRY * (1 + int(offsets[-1]) // (_MOST_RANGES - 1))
            raise ParameterError(
                f"store_rows.memory must be at least {1 + (need >> 20)}MB for {offsets[-1]:,} "
                f"entries, got {self.memory >> 20}MB"
            )
        record: list[tuple[str, DTypeLike]] = [("id", np.int32), ("row", np.int32)]
        if values is not None:
            record.append(("value", self.form.dtype))
        sort = _Sort(self.folder, np.dtype(record), cuts, n_most)
        sort.deal(ids, lengths, values)
        sort.collect(out, offsets)

    def _describe(
        self, types: dict[str, np.dtype], shape: tuple[int, int], n_labels: int | None
    ) -> None:
        arrays = {}
        for name, kind in types.items():
            path = self.folder / f"{name}.bin"
            length = path.stat().st_size // kind.itemsize
            array = np.memmap(path, kind, mode="r") if length else np.empty(0, kind)
            arrays[name] = {"length": length, "digest": digest_of(array)}
            with open(path, "rb") as stream:
                os.fsync(stream.fileno())
            path.chmod(0o444)
        about = {"format": "sublearn rows", "version": 1, "shape": shape, "n_labels": n_labels,
                 "dtype": self.form.dtype.name, "arrays": arrays}  # fmt: skip
        (self.folder / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")
        self.folder.chmod(0o755)


# --- the external sort -------------------------------------------------------------------------


def _ranges(offsets: np.ndarray, n_most: int) -> np.ndarray:
    """Where ranges of columns begin that have at most `n_most` entries, or one column."""
    cuts, n = [0], len(offsets) - 1
    while cuts[-1] < n:
        end = int(np.searchsorted(offsets, offsets[cuts[-1]] + n_most, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return np.array(cuts)


@dataclass
class _Sort:
    """Entries dealt out to a file for each range of columns, then sorted file by file."""

    folder: Path
    record: np.dtype
    cuts: np.ndarray
    n_most: int

    def _file(self, k: int) -> Path:
        return self.folder / f"range-{k}.bin"

    def deal(self, ids: str, lengths: str, values: str | None) -> None:
        """One pass over the rows."""
        with contextlib.ExitStack() as stack:
            out = [
                stack.enter_context(open(self._file(k), "wb")) for k in range(len(self.cuts) - 1)
            ]
            for entries in self._entries(ids, lengths, values):
                entries = entries[np.argsort(entries["id"], kind="stable")]
                ends = np.searchsorted(entries["id"], self.cuts)
                for k in np.flatnonzero(np.diff(ends)):
                    entries[ends[k] : ends[k + 1]].tofile(out[k])

    def _entries(self, ids: str, lengths: str, values: str | None) -> Iterator[np.ndarray]:
        """The entries of the rows, some at a time, each with its row."""
        with contextlib.ExitStack() as stack:

            def reader(name: str) -> IO[bytes]:
                return stack.enter_context(open(self.folder / f"{name}.bin", "rb"))

            of_rows, of_ids = reader(lengths), reader(ids)
            of_values = None if values is None else reader(values)
            first_row = 0
            while len(counts := np.fromfile(of_rows, np.int64, max(1, self.n_most // 8))):
                ends, done = np.cumsum(counts), 0
                while done < (int(ends[-1]) if len(ends) else 0):
                    n = min(self.n_most, int(ends[-1]) - done)
                    entries = np.empty(n, self.record)
                    entries["id"] = np.fromfile(of_ids, np.int32, n)
                    at = np.arange(done, done + n)
                    entries["row"] = first_row + np.searchsorted(ends, at, side="right")
                    if of_values is not None:
                        entries["value"] = np.fromfile(of_values, self.record["value"], n)
                    yield entries
                    done += n
                first_row += len(counts)

    def collect(self, out: str, offsets: np.ndarray) -> None:
        """Sort each range and put them one behind the other."""
        has_values = "value" in (self.record.names or ())
        with contextlib.ExitStack() as stack:
            rows = stack.enter_context(open(self.folder / f"{out}.rows.bin", "wb"))
            path = self.folder / f"{out}.values.bin"
            values = stack.enter_context(open(path, "wb")) if has_values else None
            for k in range(len(self.cuts) - 1):
                is_one = self.cuts[k + 1] - self.cuts[k] == 1
                for entries in self._range(k, is_one):
                    np.ascontiguousarray(entries["row"]).tofile(rows)
                    if values is not None:
                        np.ascontiguousarray(entries["value"]).tofile(values)
                self._file(k).unlink()

    def _range(self, k: int, is_one_column: bool) -> Iterator[np.ndarray]:
        if not is_one_column:
            entries = np.fromfile(self._file(k), self.record)
            yield entries[np.argsort(entries["id"], kind="stable")]
            return
        with open(self._file(k), "rb") as stream:
            while len(entries := np.fromfile(stream, self.record, self.n_most)):
                yield entries


def _offsets(folder: Path, lengths: str, out: str, kind: np.dtype) -> None:
    """Offsets of rows out of their lengths."""
    with (
        open(folder / f"{lengths}.bin", "rb") as source,
        open(folder / f"{out}.bin", "wb") as target,
    ):
        np.zeros(1, kind).tofile(target)
        last = 0
        while len(counts := np.fromfile(source, np.int64, 2**18)):
            ends = last + np.cumsum(counts)
            ends.astype(kind).tofile(target)
            last = int(ends[-1])


def _widen(path: Path, kind: np.dtype) -> None:
    """Ids of 32 bits in more."""
    wide = path.with_name("wide")
    with open(path, "rb") as source, open(wide, "wb") as target:
        while len(ids := np.fromfile(source, np.int32, 2**20)):
            ids.astype(kind).tofile(target)
    os.replace(wide, path)
