"""Rows of a file block by block, for what is larger than memory: text, Parquet and Arrow.

A block is what the compiled parser makes of some lines, or what some rows of a table hold; nothing
of the file is kept between two of them. The rows are those of `load_xmc` and `load_svmlight`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import DataFileError, needs_extra
from sublearn.io.dataset import canonical_features, canonical_indicator, check_same_rows
from sublearn.io.datasets import find_reader
from sublearn.io.files import open_binary, plain_name, reading
from sublearn.io.limits import ReadLimits
from sublearn.io.text import PARSERS, as_label_rule, load_svmlight, load_xmc
from sublearn.typing import Matrix, MatrixLike, PathLike
from sublearn.validation.values import show

__all__ = ["RowForm", "RowStream", "Rows", "row_blocks"]

_HEADER = re.compile(rb"\s*(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s*")
_LINE = re.compile(r"line (\d+)")
_TABLES = (".parquet", ".arrow", ".feather")
_COLUMNS = ("indices", "values", "labels")
_BYTES_PER_ENTRY = 32  # of a block of a table, with what Arrow holds besides


@dataclass(frozen=True)
class RowForm:
    """What a file does not say: see `store_rows`."""

    dtype: np.dtype
    multilabel: bool
    zero_based: bool
    limits: ReadLimits


@dataclass(frozen=True)
class Rows:
    """Some rows: entries of each, columns increasing and no zero stored; their labels."""

    lengths: np.ndarray
    indices: np.ndarray  # int32
    values: np.ndarray
    label_lengths: np.ndarray | None  # None where each row has a number, in `targets`
    labels: np.ndarray  # int32
    targets: np.ndarray  # float64


@dataclass
class RowStream:
    """Blocks of rows, and what their file says of their sizes; None where it says nothing."""

    blocks: Iterator[Rows]
    n_features: int | None = None
    n_labels: int | None = None


def row_blocks(source: Any, form: RowForm, block_bytes: int) -> RowStream:
    """The rows of a file, or of pairs (X, Y), in blocks of about so many bytes."""
    if not isinstance(source, (str, os.PathLike)):
        return RowStream(_from_pairs(source, form))
    name = plain_name(source)
    if name.endswith(_TABLES):
        return RowStream(_from_table(source, form, block_bytes))
    reader = find_reader(source)
    if reader is load_xmc:
        n_rows, n_features, n_labels = _header(source, form.limits)
        sizes = (n_rows, n_features, n_labels)
        return RowStream(_from_xmc(source, form, block_bytes, sizes), n_features, n_labels)
    if reader is load_svmlight:
        return RowStream(_from_svmlight(source, form, block_bytes))
    raise ValueError(
        "store_rows.source must be a file of sparse rows (.txt, .xmc, .svm, .svmlight, .libsvm, "
        f".parquet, .arrow, .feather) or pairs (X, Y), got {show(str(source))}"
    )


# --- text --------------------------------------------------------------------------------------


def _header(path: PathLike, limits: ReadLimits) -> tuple[int, int, int]:
    with open_binary(path, limits) as stream:
        found = _HEADER.fullmatch(stream.readline(256))
        if found is None:
            raise ValueError("line 1: the numbers of rows, features and labels are needed")
        n_rows, n_features, n_labels = map(int, found.groups())
    if max(n_features, n_labels, n_rows) > np.iinfo(np.int32).max:
        raise DataFileError(
            f"{path}, line 1: counts must be below 2^31, got {found.group().decode()}"
        )
    return n_rows, n_features, n_labels


def _lines(stream: IO[bytes], block_bytes: int, limits: ReadLimits) -> Iterator[bytes]:
    """Whole lines, about `block_bytes` of them at a time."""
    rest = b""
    while chunk := stream.read(block_bytes):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
            limits.check_line(len(rest))
    if rest:
        yield rest


def _parsed(parser: Any, text: bytes, first_line: int) -> dict[str, Any]:
    """The arrays of some lines; errors name the line of the file."""
    try:
        parser.feed(np.frombuffer(text, dtype=np.uint8))
        found: dict[str, Any] = parser.finish()
        return found
    except ValueError as error:
        said = _LINE.sub(lambda m: f"line {int(m.group(1)) + first_line}", str(error), count=1)
        raise ValueError(said) from None


def _rows_of(parts: dict[str, Any], is_vector: bool) -> Rows:
    return Rows(
        np.diff(parts["indptr"]), parts["indices"].astype(np.int32, copy=False), parts["values"],
        None if is_vector else np.diff(parts["label_indptr"]),
        parts["label_ids"].astype(np.int32, copy=False), np.asarray(parts["targets"]),
    )  # fmt: skip


def _from_xmc(
    path: PathLike, form: RowForm, block_bytes: int, sizes: tuple[int, int, int]
) -> Iterator[Rows]:
    n_rows, n_features, n_labels = sizes
    with open_binary(path, form.limits) as stream:
        stream.readline()
        n_lines = 0
        for text in _lines(stream, block_bytes, form.limits):
            n_here = text.count(b"\n") + (not text.endswith(b"\n"))
            n_left = n_rows - n_lines
            if n_here > n_left:  # blank lines may follow the last row
                text, n_here = _first_lines(text, n_left, n_lines), n_left
            head = f"{n_here} {n_features} {n_labels}\n".encode()
            parser = PARSERS[form.dtype](has_header=True, first_feature=0,
                                         labels=_core.LabelRule.ids)  # fmt: skip
            yield _rows_of(_parsed(parser, head + text, n_lines), False)
            n_lines += n_here
        if n_lines < n_rows:
            raise ValueError(f"line 1: {n_rows} rows are announced, got {n_lines}")


def _first_lines(text: bytes, n: int, n_before: int) -> bytes:
    lines = text.split(b"\n")
    if any(line.strip() for line in lines[n:]):
        raise ValueError(f"line 1: {n_before + n} rows are announced, got more")
    return b"".join(line + b"\n" for line in lines[:n])


def _from_svmlight(path: PathLike, form: RowForm, block_bytes: int) -> Iterator[Rows]:
    n_lines = 0
    with open_binary(path, form.limits) as stream:
        for text in _lines(stream, block_bytes, form.limits):
            parser = PARSERS[form.dtype](
                has_header=False, first_feature=0 if form.zero_based else 1,
                labels=as_label_rule(form.multilabel),
            )  # fmt: skip
            yield _rows_of(_parsed(parser, text, n_lines), not form.multilabel)
            n_lines += text.count(b"\n")


# --- tables and matrices -----------------------------------------------------------------------


def _from_pairs(source: Any, form: RowForm) -> Iterator[Rows]:
    if not isinstance(source, Iterable):
        raise ValueError(
            f"store_rows.source must be a file or an iterable of pairs (X, Y), got {show(source)}"
        )
    for number, pair in enumerate(source):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise ValueError(
                f"store_rows.source must give pairs (X, Y), got {show(pair)} as number {number}"
            )
        X, Y = pair
        yield _of_matrices(X, Y, form)


def _of_matrices(X: MatrixLike, Y: Matrix, form: RowForm) -> Rows:
    X = canonical_features(X, "store_rows.X")
    none = np.empty(0)
    if form.multilabel:
        Y = canonical_indicator(Y, "store_rows.Y")
        lengths, labels = np.diff(Y.indptr), Y.indices
    else:
        Y = np.asarray(Y)
        if Y.ndim != 1 or Y.dtype.kind not in "fiub" or not np.isfinite(Y).all():
            raise ValueError(f"store_rows.Y must hold a finite number for each row, got {show(Y)}")
        lengths, labels = None, none
    check_same_rows(X, Y, "store_rows")
    targets = none if form.multilabel else Y.astype(np.float64)
    return Rows(np.diff(X.indptr), X.indices.astype(np.int32, copy=False),
                X.data.astype(form.dtype, copy=False), lengths,
                labels.astype(np.int32, copy=False), targets)  # fmt: skip


def _from_table(path: PathLike, form: RowForm, block_bytes: int) -> Iterator[Rows]:
    with needs_extra("a file of Parquet or Arrow", "arrow"):
        import pyarrow as pa
    with reading(path):
        try:
            for batch in _batches(path, block_bytes):
                yield _of_batch(batch, form)
        except pa.ArrowException as error:
            raise ValueError(f"cannot be read: {error}") from None


def _batches(path: PathLike, block_bytes: int) -> Iterator[Any]:
    """Rows of a table, as many as a block may hold by their mean length."""
    n_entries = max(1, block_bytes // _BYTES_PER_ENTRY)
    if plain_name(path).endswith(".parquet"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, memory_map=True) as file:
            about = file.metadata
            _refuse_columns(file.schema_arrow)
            groups = [about.row_group(g) for g in range(about.num_row_groups)]
            sizes = [
                group.column(c).num_values for group in groups for c in range(group.num_columns)
            ]
            n_rows = max(1, n_entries * max(1, about.num_rows) // max(1, sum(sizes)))
            yield from file.iter_batches(batch_size=n_rows, columns=list(_COLUMNS))
        return
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        _refuse_columns(file.schema)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number).select(list(_COLUMNS))
            step = max(1, batch.num_rows * block_bytes // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, step):
                yield batch.slice(first, step)


def _refuse_columns(schema: Any) -> None:
    missing = [name for name in _COLUMNS if name not in schema.names]
    if missing:
        raise ValueError(
            f"a table of rows must have the columns {', '.join(_COLUMNS)}, got none "
            f"called {', '.join(missing)}"
        )


def _of_batch(batch: Any, form: RowForm) -> Rows:
    column = partial(_lists, batch)
    lengths, indices = column("indices")
    value_lengths, values = column("values")
    if not np.array_equal(lengths, value_lengths):
        raise ValueError("indices and values must have the same length in each row, got others")
    X = _csr(values.astype(form.dtype, copy=False), indices, lengths)
    if form.multilabel:
        label_lengths, labels = column("labels")
        ones = np.ones(len(labels), dtype=np.int8)
        return _of_matrices(X, _csr(ones, labels, label_lengths), form)
    targets = batch.column("labels").to_numpy(zero_copy_only=False)
    return _of_matrices(X, targets, form)


def _lists(batch: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and entries of a column of lists of numbers."""
    column = batch.column(name)
    if not hasattr(column, "value_lengths") or column.null_count:
        raise ValueError(f"column {name} must hold a list in each row, got {column.type}")
    entries = column.flatten()
    if entries.null_count:
        raise ValueError(f"column {name} must hold numbers, got a null")
    found = entries.to_numpy(zero_copy_only=False)
    kinds = "fiu" if name == "values" else "iu"
    if found.dtype.kind not in kinds:
        raise ValueError(f"column {name} must hold numbers, got {column.type}")
    return column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64), found


def _csr(values: np.ndarray, ids: np.ndarray, lengths: np.ndarray) -> sp.csr_matrix:
    most = int(ids.max(initial=0))
    if int(ids.min(initial=0)) < 0 or most >= np.iinfo(np.int32).max:
        raise ValueError(f"ids must be from 0 to 2^31 - 2, got {ids.min()} to {most}")
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    csr = sp.csr_matrix((values, ids.astype(np.int32), indptr), shape=(len(lengths), most + 1))
    if not csr.has_canonical_format:
        csr.sort_indices()
        rows = np.repeat(np.arange(len(lengths)), lengths)
        if ((np.diff(csr.indices) == 0) & (np.diff(rows) == 0)).any():
            raise ValueError("a row must name each id once, got one twice")
    return csr
