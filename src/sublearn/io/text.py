"""Text files of sparse rows: the Extreme Classification repository's format and LIBSVM's.

Parsing and formatting are done by the compiled core in chunks; this module opens the files,
decompresses on the way, and dresses the arrays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from scipy import sparse

from sublearn import _core
from sublearn.io.dataset import (
    Dataset,
    as_float_dtype,
    canonical_features,
    canonical_indicator,
    check_same_rows,
    csr_from_parts,
    indicator,
)
from sublearn.io.files import open_binary, plain_name, write_atomically
from sublearn.io.limits import ReadLimits
from sublearn.typing import LabelsLike, Matrix, MatrixLike, PathLike, State
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["PARSERS", "as_label_rule", "load_svmlight", "load_xmc", "save_svmlight", "save_xmc"]

_CHUNK_BYTES = 1 << 20
_BLOCK_ROWS = 4096
_MAX_IDS = int(np.iinfo(np.int32).max)  # the core keeps ids in 32 bits
#: By the type of the values.
PARSERS: dict[np.dtype, type[_core.TextParserFloat32 | _core.TextParserFloat64]] = {
    np.dtype(np.float32): _core.TextParserFloat32,
    np.dtype(np.float64): _core.TextParserFloat64,
}


def load_xmc(
    path: PathLike, dtype: DTypeLike = np.float32, *, limits: ReadLimits | None = None
) -> Dataset:
    """Read a file of the Extreme Classification repository.

    The first line is ``N D K`` (rows, features, labels); then one row a line,
    ``l1,l2,... j:v j:v ...``, labels and features counted from 0. A row without labels starts with
    a blank.

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    dtype : float32 or float64
        Type of the values.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Dataset
        ``X, Y = load_xmc(path)`` works too.

    Raises
    ------
    DataFileError
        With file name and line number, for a line that cannot be read: a bad or non-finite number,
        an index outside the header's counts, more or fewer rows than announced. A feature that
        appears twice in a row is refused, since adding and overwriting are both in use; a
        repeated label counts once.

    Notes
    -----
    Features need not be sorted in the file. Zeros are not stored. A blank line is a row without
    labels and features as long as rows are missing, and is ignored after the last one.
    """
    dtype = as_float_dtype(dtype, "load_xmc")
    parser = PARSERS[dtype](has_header=True, first_feature=0, labels=_core.LabelRule.ids)
    parts = _parse(path, parser, limits)
    return Dataset(_features(parts), _label_matrix(parts))


def load_svmlight(
    path: PathLike,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    n_labels: int | None = None,
    multilabel: bool | None = None,
    dtype: DTypeLike = np.float32,
    part: tuple[int, int] | None = None,
    limits: ReadLimits | None = None,
) -> Dataset:
    """Read a LIBSVM file with one label per row, or with lists of label ids.

    A row is ``label j:v j:v ...`` or ``l1,l2,... j:v j:v ...``; one without labels starts with a
    blank. ``# ...`` at the end of a line is a comment; lines with nothing else are skipped.

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    zero_based : bool, default=False
        Whether features count from 0. Labels of multilabel files always do.
    n_features, n_labels : int, optional
        Number of columns of X and Y, which the file does not say; larger ids are refused. Without
        them the largest id decides. `n_labels` implies ``multilabel=True``.
    multilabel : bool, optional
        True: labels are ids (integers >= 0) and Y is an indicator matrix. False: each row has one
        number and Y is a vector. By default a file in which every row has exactly one label gives
        a vector; say True for a multilabel file that might look so by chance.
    dtype : float32 or float64
        Type of the values of X.
    part : pair of int, optional
        ``(k, n)`` reads the k-th (from 0) of n parts of about equal size, cut between lines, of a
        file that is not compressed: several processes then read one file together. Needs
        `n_features`, and `n_labels` or `multilabel`, since a part does not show what others hold.
        Line numbers in errors count from the start of the part.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Dataset
        A vector Y is int64 if all labels are integers, else float64.

    Raises
    ------
    DataFileError
        With file name and line number, as `load_xmc`; a repeated feature is refused, a repeated
        label counts once.
    """
    dtype = as_float_dtype(dtype, "load_svmlight")
    parser = PARSERS[dtype](
        has_header=False,
        first_feature=0 if zero_based else 1,
        labels=as_label_rule(multilabel, n_labels),
        n_features=_count(n_features, "n_features"),
        n_labels=_count(n_labels, "n_labels"),
    )
    if part is not None:
        _check_part(part, path, n_features, multilabel is None and n_labels is None)
    parts = _parse(path, parser, limits, part)
    X = _features(parts)
    is_vector = multilabel is not True and n_labels is None and len(parts["targets"]) == X.shape[0]
    return Dataset(X, _label_vector(parts) if is_vector else _label_matrix(parts))


def save_xmc(path: PathLike, X: MatrixLike, Y: LabelsLike) -> None:
    """Write features and an indicator matrix for `load_xmc`, which reads the same values back.

    Compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``. The file appears at once when it
    is complete; a failure leaves an old file as it was.
    """
    X = canonical_features(X, "save_xmc.X")
    Y = canonical_indicator(Y, "save_xmc.Y")
    check_same_rows(X, Y, "save_xmc")
    _check_ids_fit("save_xmc", X=X, Y=Y)
    with write_atomically(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for rows in _blocks(X.shape[0]):
            labels = Y[rows]
            stream.write(_format(X[rows], labels.indptr, labels.indices, 0, False))


def save_svmlight(path: PathLike, X: MatrixLike, Y: Matrix, *, zero_based: bool = False) -> None:
    """Write features and labels for `load_svmlight`, which reads the same values back.

    Y is an indicator matrix or a vector of numbers. The format does not store the numbers of
    columns: give `n_features` and `n_labels` when reading if the last columns may be empty. A row
    without labels and features is written with one zero feature, since readers skip blank lines.
    """
    X = canonical_features(X, "save_svmlight.X")
    is_vector = not sparse.issparse(Y) and np.ndim(Y) == 1
    Y = _as_targets(Y) if is_vector else canonical_indicator(Y, "save_svmlight.Y")
    check_same_rows(X, Y, "save_svmlight")
    _check_ids_fit("save_svmlight", X=X, Y=Y)
    with write_atomically(path) as stream:
        for rows in _blocks(X.shape[0]):
            block, first = X[rows], 0 if zero_based else 1
            if isinstance(Y, np.ndarray):
                indptr = np.arange(block.shape[0] + 1)
                stream.write(_format(block, indptr, Y[rows], first, True))
            else:
                labels = Y[rows]
                stream.write(_format(block, labels.indptr, labels.indices, first, True))


def _parse(
    path: PathLike,
    parser: _core.TextParserFloat32 | _core.TextParserFloat64,
    limits: ReadLimits | None,
    part: tuple[int, int] | None = None,
) -> State:
    limits = limits or ReadLimits()
    chunk = bytearray(_CHUNK_BYTES)
    buffer = np.frombuffer(chunk, dtype=np.uint8)
    is_empty = part is None  # a part may be
    n_lines, n_open = 0, 0  # lines so far, and bytes of the one that is not complete
    with open_binary(path, limits) as stream:
        n_left = _enter_part(stream, path, part, limits)
        if plain_name(path) == Path(path).name.lower() and os.path.isfile(path):
            parser.expect_bytes(min(n_left, os.path.getsize(path)))
        while n := stream.readinto(buffer[: min(n_left, _CHUNK_BYTES)]):  # type: ignore[attr-defined]
            is_empty = False
            n_left -= n
            parser.feed(buffer[:n])
            last = chunk.rfind(b"\n", 0, n)
            n_open = n - last - 1 if last >= 0 else n_open + n
            n_lines += chunk.count(b"\n", 0, n)
            limits.check_line(n_open, n_lines + 1)
        if is_empty:
            raise ValueError("the file is empty")
        return parser.finish()


def _enter_part(
    stream: IO[bytes], path: PathLike, part: tuple[int, int] | None, limits: ReadLimits
) -> int:
    """Go to where a part begins; its bytes. A line is of the part that holds its first byte."""
    if part is None:
        return sys.maxsize
    (k, n), size = part, os.path.getsize(path)
    ends = []
    for position in (size * k // n, size * (k + 1) // n):
        stream.seek(max(position - 1, 0))
        if position > 0:
            limits.check_line(len(stream.readline(limits.max_line_bytes + 1)))
        ends.append(stream.tell())
    stream.seek(ends[0])
    return ends[1] - ends[0]


def _check_part(
    part: tuple[int, int], path: PathLike, n_features: int | None, is_open: bool
) -> None:
    is_pair = isinstance(part, tuple) and len(part) == 2 and all(is_int64(end) for end in part)
    if not is_pair or not 0 <= part[0] < part[1]:
        raise ValueError(
            f"load_svmlight.part must be a pair (k, n) with 0 <= k < n or None, got {show(part)}"
        )
    if n_features is None or is_open:
        raise ValueError(
            "load_svmlight.part must be None where n_features, or both of n_labels and "
            f"multilabel, are None, got {show(part)}"
        )
    if plain_name(path) != Path(path).name.lower():
        raise ValueError(f"load_svmlight.part must be None for a compressed file, got {show(part)}")


def as_label_rule(multilabel: bool | None, n_labels: int | None = None) -> _core.LabelRule:
    """What stands before the features of a row."""
    if multilabel is False and n_labels is not None:
        raise ValueError(
            f"load_svmlight.n_labels must be None where multilabel=False, got {n_labels}"
        )
    if multilabel or n_labels is not None:
        return _core.LabelRule.ids
    return _core.LabelRule.either if multilabel is None else _core.LabelRule.number


def _count(value: int | None, name: str) -> int:
    if value is None:
        return -1
    if not is_int64(value) or not 0 <= value <= _MAX_IDS:
        raise ValueError(
            f"load_svmlight.{name} must be an integer in 0..{_MAX_IDS} or None, got {show(value)}"
        )
    return int(value)


def _check_ids_fit(caller: str, **matrices: Matrix) -> None:
    for name, matrix in matrices.items():
        if matrix.ndim == 2 and matrix.shape[1] > _MAX_IDS:
            raise ValueError(
                f"{caller}.{name} must have at most {_MAX_IDS} columns, got {matrix.shape[1]}"
            )


def _features(parts: State) -> sparse.csr_matrix:
    shape = (len(parts["indptr"]) - 1, parts["n_features"])
    return csr_from_parts(parts["values"], parts["indices"], parts["indptr"], shape)


def _label_matrix(parts: State) -> sparse.csr_matrix:
    shape = (len(parts["label_indptr"]) - 1, parts["n_labels"])
    return indicator(parts["label_ids"], parts["label_indptr"], shape)


def _label_vector(parts: State) -> np.ndarray:
    targets = parts["targets"]
    is_integer = np.all(np.abs(targets) <= 2**53) and np.all(targets == np.floor(targets))
    return targets.astype(np.int64) if is_integer else targets


def _as_targets(y: LabelsLike) -> np.ndarray:
    found = np.asarray(y)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"save_svmlight.Y must hold numbers, got dtype {found.dtype}")
    out = found.astype(np.float64)
    if not np.isfinite(out).all():
        raise ValueError("save_svmlight.Y must be finite, got NaN or infinity")
    return out


def _blocks(n_rows: int) -> Iterator[slice]:
    for begin in range(0, n_rows, _BLOCK_ROWS):
        yield slice(begin, begin + _BLOCK_ROWS)


def _format(
    X: sparse.csr_matrix,
    label_indptr: np.ndarray,
    labels: np.ndarray,
    first_feature: int,
    skips_blank_lines: bool,
) -> bytes:
    return _core.format_rows(
        X.indptr.astype(np.int64),
        X.indices.astype(np.int64),
        X.data,
        label_indptr.astype(np.int64),
        labels.astype(np.float64),
        first_feature=first_feature,
        skips_blank_lines=skips_blank_lines,
    )
