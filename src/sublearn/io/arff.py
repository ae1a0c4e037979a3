"""Multilabel ARFF files as Mulan writes them: attributes, and which of them are labels."""

from __future__ import annotations

import math
import os
import re
import xml.etree.ElementTree as ElementTree
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sublearn.errors import DataFileError
from sublearn.io.dataset import Dataset, as_float_dtype, canonical_csr, canonical_indicator
from sublearn.io.files import Lines, open_binary, reading
from sublearn.io.limits import ReadLimits
from sublearn.typing import PathLike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["load_arff"]

_ATTRIBUTE = re.compile(
    r"""@attribute\s+ (?: '(?P<single>(?:\\.|[^'\\])*)' | "(?P<double>(?:\\.|[^"\\])*)"
                        | (?P<bare>[^\s{]+) ) \s* (?P<kind>.+)""",
    re.IGNORECASE | re.VERBOSE,
)
_NUMERIC = {"numeric", "real", "integer"}


def load_arff(
    path: PathLike,
    labels: PathLike | Sequence[str] | int,
    *,
    dtype: DTypeLike = np.float32,
    limits: ReadLimits | None = None,
) -> Dataset:
    """Read a multilabel ARFF file; rows may be dense or sparse (``{index value, ...}``).

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    labels : path, sequence of str, or int
        Which attributes are labels: Mulan's .xml file, their names, or how many stand at the end.
        Columns of Y come in this order; all other attributes are features, as in the file.
    dtype : float32 or float64
        Type of the values of X.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Dataset
        With `feature_names` and `label_names`.

    Raises
    ------
    DataFileError
        With file name and line number: attributes that are neither numeric nor ``{0,1}``, missing
        values (``?``), non-finite numbers, labels other than 0 and 1, instance weights.
    """
    dtype = as_float_dtype(dtype, "load_arff")
    with open_binary(path, limits) as stream:
        lines = _numbered_lines(Lines(stream, limits))
        attributes = _read_attributes(lines)
        rows = _read_rows(lines, attributes)
    names = [attribute.name for attribute in attributes]
    columns = _label_columns(labels, names, limits)
    return _split(rows.to_csr(len(names)), names, columns, dtype, os.fspath(path))


class _BadLine(ValueError):
    def __init__(self, line: int, what: str):
        super().__init__(f"line {line}: {what}")


@dataclass(frozen=True)
class _Attribute:
    name: str
    is_binary: bool  # nominal {0,1}, else numeric
    sparse_default: int  # what an absent entry of a sparse row means: the first nominal value


@dataclass
class _Rows:
    """Entries of all rows, in compact arrays that grow."""

    indptr: array[int]
    indices: array[int]
    values: array[float]

    def to_csr(self, n_columns: int) -> sparse.csr_matrix:
        parts = (
            np.frombuffer(self.values) if self.values else np.empty(0),
            np.frombuffer(self.indices, dtype=np.int64) if self.indices else np.empty(0, np.int64),
            np.frombuffer(self.indptr, dtype=np.int64),
        )
        return sparse.csr_matrix(parts, shape=(len(self.indptr) - 1, n_columns))


def _numbered_lines(lines: Lines) -> Iterator[tuple[int, str]]:
    """Lines that say something. Old files are often Latin-1, which no UTF-8 reader accepts."""
    for raw in lines:
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            line = raw.decode("latin-1")
        line = line.strip()
        if line and not line.startswith("%"):
            yield lines.number, line


def _read_attributes(lines: Iterator[tuple[int, str]]) -> list[_Attribute]:
    attributes: dict[str, _Attribute] = {}
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if not attributes:
                raise _BadLine(number, "@attribute lines must stand before @data, got none")
            return list(attributes.values())
        if keyword == "@attribute":
            attribute = _parse_attribute(number, line)
            if attribute.name in attributes:
                raise _BadLine(number, f"attribute {attribute.name!r} is declared twice")
            attributes[attribute.name] = attribute
        elif keyword != "@relation":
            raise _BadLine(number, f"@relation, @attribute or @data expected, got {_shown(line)}")
    raise ValueError("the file has no @data line" if attributes else "not an ARFF file")


def _parse_attribute(number: int, line: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise _BadLine(number, f"an attribute must be written `@attribute name type`, got {line!r}")
    quoted = match["single"] if match["single"] is not None else match["double"]
    name = match["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    kind = match["kind"].strip()
    if kind.lower() in _NUMERIC:
        return _Attribute(name, is_binary=False, sparse_default=0)
    if kind.startswith("{") and kind.endswith("}"):
        values = [value.strip().strip("'\"") for value in kind[1:-1].split(",")]
        if sorted(values) == ["0", "1"]:
            return _Attribute(name, is_binary=True, sparse_default=int(values[0]))
    raise _BadLine(number, f"attribute {name!r} must be numeric or {{0,1}}, got {_shown(kind)}")


def _read_rows(lines: Iterator[tuple[int, str]], attributes: list[_Attribute]) -> _Rows:
    rows = _Rows(array("q", [0]), array("q"), array("d"))
    is_binary = [attribute.is_binary for attribute in attributes]
    inverted = next((a.name for a in attributes if a.sparse_default), None)
    for number, line in lines:
        try:
            if line.startswith("{"):
                if inverted is not None:
                    raise ValueError(
                        f"attribute {inverted!r} must list 0 before 1 in a file with sparse rows"
                    )
                _parse_sparse_row(line, is_binary, rows)
            else:
                _parse_dense_row(line, is_binary, rows)
        except ValueError as error:
            raise _BadLine(number, _explanation(line, error)) from None
        rows.indptr.append(len(rows.indices))
    return rows


def _parse_sparse_row(line: str, is_binary: list[bool], rows: _Rows) -> None:
    if not line.endswith("}") or line.count("{") > 1:
        raise ValueError("a sparse row must be written {index value, ...}, without a weight")
    body = line[1:-1].strip()
    previous = -1
    for pair in body.split(",") if body else ():
        fields = pair.split()
        if len(fields) != 2 or not fields[0].isdecimal():
            raise ValueError(f"an entry must be written `index value`, got {pair!r}")
        index, value = int(fields[0]), _parse_value(fields[1])
        if not previous < index < len(is_binary):
            raise ValueError(
                f"indices must increase within 0..{len(is_binary) - 1}, "
                f"got {index} after {previous}"
            )
        if is_binary[index] and value not in (0.0, 1.0):
            raise ValueError(f"attribute number {index} must be 0 or 1, got {value:g}")
        previous = index
        rows.indices.append(index)
        rows.values.append(value)


def _parse_dense_row(line: str, is_binary: list[bool], rows: _Rows) -> None:
    tokens = line.split(",")
    if len(tokens) != len(is_binary):
        raise ValueError(f"a dense row must have {len(is_binary)} values, got {len(tokens)}")
    for index, token in enumerate(tokens):
        value = _parse_value(token)
        if is_binary[index] and value not in (0.0, 1.0):
            raise ValueError(f"attribute number {index} must be 0 or 1, got {value:g}")
        if value:
            rows.indices.append(index)
            rows.values.append(value)


def _parse_value(token: str) -> float:
    try:
        value = float(token)
    except ValueError:
        value = float(token.strip().strip("'\""))  # nominal values may be quoted
    if not math.isfinite(value) or "_" in token:  # Python reads 1_000, no other program does
        raise ValueError(f"a value must be a finite number, got {token!r}")
    return value


def _explanation(line: str, error: ValueError) -> str:
    if "?" in line:
        return "missing values ('?') are not supported: fill them in first"
    return str(error)


def _label_columns(
    labels: PathLike | Sequence[str] | int, names: list[str], limits: ReadLimits | None
) -> list[int]:
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        if not 1 <= labels <= len(names):
            raise ValueError(f"load_arff.labels must be in 1..{len(names)}, got {labels}")
        return list(range(len(names) - int(labels), len(names)))
    if isinstance(labels, (bool, float)) or labels is None:
        raise TypeError(
            f"load_arff.labels must be a path, names or a number of attributes, got {labels!r}"
        )
    if isinstance(labels, (str, os.PathLike)):
        wanted = _label_names(labels, limits)
        with reading(labels):
            return _positions(wanted, names)
    return _positions(list(labels), names)


def _positions(wanted: list[str], names: list[str]) -> list[int]:
    position = {name: column for column, name in enumerate(names)}
    unknown = [name for name in wanted if name not in position]
    if unknown:
        raise ValueError(f"load_arff.labels must name attributes of the file, got {unknown[0]!r}")
    if not wanted or len(set(wanted)) != len(wanted):
        raise ValueError("load_arff.labels must name at least one attribute and none twice")
    return [position[name] for name in wanted]


def _label_names(path: PathLike, limits: ReadLimits | None) -> list[str]:
    """Labels of Mulan's XML in document order; nested ones follow the label they stand in."""
    with open_binary(path, limits) as stream:
        try:
            root = ElementTree.parse(stream).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(f"not an XML file of labels: {error}") from None
        found = [element.get("name") for element in root.iter() if element.tag.endswith("label")]
        if not found or None in found:
            raise ValueError("no <label name=...> found")
    return [name for name in found if name is not None]


def _split(
    table: sparse.csr_matrix, names: list[str], columns: list[int], dtype: np.dtype, path: str
) -> Dataset:
    is_feature = np.ones(len(names), dtype=bool)
    is_feature[columns] = False
    by_column = table.tocsc()
    with np.errstate(over="ignore"):
        X = canonical_csr(by_column[:, is_feature].astype(dtype), "load_arff.X")
    if not np.isfinite(X.data).all():
        raise DataFileError(f"{path}: values must be finite {dtype} numbers, got NaN or infinity")
    with reading(path):
        labels = canonical_indicator(by_column[:, columns], "labels")
    return Dataset(
        X,
        labels,
        feature_names=np.array(names, dtype=str)[is_feature],
        label_names=np.array(names, dtype=str)[columns],
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
