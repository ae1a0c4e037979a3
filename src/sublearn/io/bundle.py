"""The container of saved models: one safetensors file of arrays and a JSON description.

The description is safetensors' `__metadata__` (strings only)::

    format            "sublearn"
    format_version    "1"
    sublearn_version  the version that wrote the file
    class             public name of the model's class
    params            JSON: its constructor parameters
    attributes        JSON: fitted values that are no arrays

Arrays are memory-mapped on load, so opening a model of many gigabytes takes no time and processes
share the pages. Nothing is ever pickled. A file is checked for its structure (every array lies
where the header says and nothing is missing or left over) before any array is made, not for flipped
bits inside an array, which would mean reading all of it.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np

import sublearn
from sublearn.errors import ModelFileError
from sublearn.io.files import replace_file
from sublearn.typing import PathLike, State
from sublearn.validation.values import is_int64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["FORMAT_VERSION", "Bundle", "load_bundle", "save_bundle"]

FORMAT_VERSION = 1

_MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors library
_MAX_NESTING = 64  # of lists and objects in a description; Python's own parser recurses
_MAX_DIMENSIONS = 32
_NOT_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^][{}"]+', re.DOTALL)
_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
_TUPLE, _FLOAT, _MAPPING = "__tuple__", "__float__", "__mapping__"


@dataclass(frozen=True, eq=False)
class Bundle:
    """What a saved model's file holds.

    Parameters
    ----------
    path : str
        Where it was read from, for messages.
    class_name : str
        Public name of the class.
    params, attributes : dict
        JSON values; tuples, non-finite floats and keys that are no strings survive.
    arrays : dict of str to ndarray
        Read-only views of the memory-mapped file.
    sublearn_version : str
        Version that wrote the file.
    """

    path: str
    class_name: str
    params: State
    attributes: State
    arrays: dict[str, np.ndarray] = field(repr=False)
    sublearn_version: str


def save_bundle(
    path: PathLike,
    *,
    class_name: str,
    params: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    attributes: Mapping[str, object],
) -> None:
    """Write a model's parts into one file, atomically.

    Parameters
    ----------
    path : path
        Replaced at once when the new file is complete; a failure leaves nothing behind.
    class_name : str
        Public name of the class.
    params, attributes : mapping of str to JSON values
        None, booleans, numbers (also NumPy scalars), strings, and lists, tuples and dicts of them.
    arrays : mapping of str to ndarray
        Booleans, integers, and floats of up to 64 bits, of any shape.

    Raises
    ------
    TypeError
        For a value that cannot be stored, naming it.
    OSError
        If the disk refuses.
    """
    metadata = {
        "format": "sublearn",
        "format_version": str(FORMAT_VERSION),
        "sublearn_version": sublearn.__version__,
        "class": class_name,
        "params": _to_json(params, f"{class_name}.params"),
        "attributes": _to_json(attributes, f"{class_name}.attributes"),
    }
    tensors = {name: _as_tensor(name, array) for name, array in arrays.items()}
    header, order = _make_header(metadata, tensors)
    with replace_file(path) as temporary, open(temporary, "wb") as stream:
        stream.write(header)
        for name in order:  # straight from memory or a mapped file, without a copy
            stream.write(tensors[name].data)


def load_bundle(path: PathLike, *, class_name: str | None = None, mapped: bool = True) -> Bundle:
    """Open a file of `save_bundle`.

    Parameters
    ----------
    path : path
        The file. Do not overwrite it in place while its arrays are in use; saving to it again is
        safe, since that puts a new file in its place.
    class_name : str, optional
        Refuse a file of another class.
    mapped : bool, default=True
        Whether arrays are views of the mapped file. If not, they are read into memory, and what
        happens to the file afterwards does not matter.

    Returns
    -------
    Bundle

    Raises
    ------
    ModelFileError
        For a damaged, truncated or foreign file, one of a newer format, or another class.
    """
    name = os.fspath(path)
    if os.path.isdir(path):
        raise ModelFileError(f"{name}: a saved model is one file, got a directory")
    with open(path, "rb") as stream:  # once: another file may take the name while this one is read
        size = os.fstat(stream.fileno()).st_size
        header, data_start = _read_header(name, stream, size)
        metadata = _check_metadata(name, header.pop("__metadata__", None))
        if class_name is not None and metadata["class"] != class_name:
            raise ModelFileError(
                f"{name}: a saved {class_name} is needed, got a {metadata['class']}"
            )
        return Bundle(
            path=name,
            class_name=metadata["class"],
            params=_from_json(name, metadata, "params"),
            attributes=_from_json(name, metadata, "attributes"),
            arrays=_map_arrays(name, stream, header, data_start, size, mapped),
            sublearn_version=metadata["sublearn_version"],
        )


# Description: JSON values in and out.


def _to_json(values: Mapping[str, object], where: str) -> str:
    return json.dumps(_encode(dict(values), where), allow_nan=False)


def _encode(value: object, where: str) -> object:
    """`value` in plain JSON types; what JSON lacks becomes an object of one entry."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if isinstance(value, tuple):
        return {_TUPLE: _encode(list(value), where)}
    if isinstance(value, list):
        return [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return {_MAPPING: [_encode(list(pair), where) for pair in value.items()]}
    if isinstance(value, dict):
        return {_key(key, where): _encode(item, f"{where}.{key}") for key, item in value.items()}
    raise TypeError(
        f"{where} must be None, a boolean, number or string, or a list, tuple or dict of them, "
        f"to be saved; got {type(value).__name__}"
    )


def _key(key: str, where: str) -> str:
    if key in (_TUPLE, _FLOAT, _MAPPING):
        raise TypeError(f"{where} must have other keys to be saved, got {key!r}")
    return key


def _decode(value: State) -> object:
    if _TUPLE in value:
        return tuple(value[_TUPLE])
    if _MAPPING in value:
        return dict(value[_MAPPING])
    return float(value[_FLOAT]) if _FLOAT in value else value


def _from_json(name: str, metadata: dict[str, str], key: str) -> State:
    try:
        values = _parse_json(metadata[key], object_hook=_decode)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{name}: the model's {key} are damaged: {error}") from None
    if not isinstance(values, dict):
        raise ModelFileError(f"{name}: the model's {key} are damaged: got {type(values).__name__}")
    return values


def _parse_json(text: str, **hooks: Any) -> Any:
    """Strict JSON, refused by its depth before the parser recurses into it."""
    depth = 0
    for bracket in _NOT_BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        if depth > _MAX_NESTING:
            raise ValueError(f"lists and objects must be nested at most {_MAX_NESTING} deep")
    return json.loads(text, parse_constant=_refuse_constant, **hooks)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"numbers must be finite, got {name}")


# Arrays: safetensors' layout is 8 bytes with the header's length (little endian), the header in
# JSON ({name: {dtype, shape, data_offsets}}), then the arrays without gaps.


def _as_tensor(name: str, array: ArrayLike) -> np.ndarray:
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"names of arrays must be strings other than __metadata__, got {name!r}")
    out = np.asarray(array, order="C")
    if out.dtype.newbyteorder("<") not in _DTYPES.values():
        raise TypeError(
            f"array {name!r} must hold booleans, integers or floats of up to 64 bits to be saved, "
            f"got dtype {out.dtype}"
        )
    return out.astype(out.dtype.newbyteorder("<"), copy=False)


def _make_header(
    metadata: dict[str, str], tensors: dict[str, np.ndarray]
) -> tuple[bytes, list[str]]:
    """The bytes before the arrays, and the names of the arrays in their order.

    Wide types come first and the header is a multiple of 8 bytes long, so that all are aligned.
    """
    names = {dtype: name for name, dtype in _DTYPES.items()}
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    entries: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + tensors[name].nbytes
        entries[name] = {"dtype": names[tensors[name].dtype], "shape": tensors[name].shape,
                         "data_offsets": (begin, end)}  # fmt: skip
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _MAX_HEADER_BYTES:
        raise ValueError(
            f"the description of a model must have at most {_MAX_HEADER_BYTES} bytes to be saved, "
            f"got {len(header)}"
        )
    return struct.pack("<Q", len(header)) + header, order


def _read_header(name: str, stream: IO[bytes], size: int) -> tuple[State, int]:
    foreign = f"{name}: not a saved model (safetensors)"
    if size < 8:
        raise ModelFileError(f"{foreign}, got {size} bytes")
    (n_header,) = struct.unpack("<Q", stream.read(8))
    if n_header > _MAX_HEADER_BYTES:
        raise ModelFileError(f"{foreign}, got a header of {n_header} bytes")
    if n_header > size - 8:
        raise ModelFileError(
            f"{name}: the file is truncated or no saved model: "
            f"a header of {n_header} bytes is announced, got {size - 8}"
        )
    try:
        raw = stream.read(n_header).decode("utf-8")
        header = _parse_json(raw, object_pairs_hook=_without_repeats)
    except ValueError as error:
        raise ModelFileError(f"{foreign} or damaged: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{foreign}, got a header of type {type(header).__name__}")
    return header, 8 + n_header


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name appears twice in the header")
    return out


def _check_metadata(name: str, metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict) or metadata.get("format") != "sublearn":
        found = sorted(metadata) if isinstance(metadata, dict) else "none"
        raise ModelFileError(
            f"{name}: a safetensors file, but not of sublearn; got metadata {found}"
        )
    try:
        version = int(metadata.get("format_version", ""))
    except (TypeError, ValueError):
        version = 0
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{name}: saved in format {version} by sublearn {metadata.get('sublearn_version')}; "
            f"sublearn {sublearn.__version__} reads formats up to {FORMAT_VERSION}"
        )
    needed = ("class", "params", "attributes", "sublearn_version")
    missing = [key for key in needed if not isinstance(metadata.get(key), str)]
    if version < 1 or missing:
        what = f"without {', '.join(missing)}" if missing else "without a format version"
        raise ModelFileError(f"{name}: the model's description is damaged, got one {what}")
    return metadata


def _map_arrays(
    name: str,
    stream: IO[bytes],
    header: State,
    data_start: int,
    size: int,
    mapped: bool,
) -> dict[str, np.ndarray]:
    entries = {key: _check_entry(name, key, entry) for key, entry in header.items()}
    _check_layout(name, [span for _, _, span in entries.values()], size - data_start)
    try:
        return {
            key: _map_array(stream, dtype, shape, data_start + begin, mapped)
            for key, (dtype, shape, (begin, _)) in entries.items()
        }
    except (ValueError, OSError) as error:
        raise ModelFileError(f"{name}: the file cannot be read: {error}") from None


def _map_array(
    stream: IO[bytes], dtype: np.dtype, shape: tuple[int, ...], offset: int, mapped: bool
) -> np.ndarray:
    """One map per array: SciPy copies an array that is a small view of a much larger one."""
    if math.prod(shape) == 0:  # nothing to map, which the system refuses
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    if offset % dtype.itemsize:
        raise ValueError("the file is damaged: its arrays are not aligned")
    if not mapped:
        return _read_array(stream, dtype, shape, offset)
    return np.asarray(np.memmap(stream, dtype=dtype, mode="r", offset=offset, shape=shape))


def _read_array(
    stream: IO[bytes], dtype: np.dtype, shape: tuple[int, ...], offset: int
) -> np.ndarray:
    stream.seek(offset)
    array = np.fromfile(stream, dtype, math.prod(shape))
    if array.size != math.prod(shape):
        raise ValueError("it became shorter while it was read")
    array.flags.writeable = False
    return array.reshape(shape)


def _check_entry(
    name: str, key: str, entry: Any
) -> tuple[np.dtype, tuple[int, ...], tuple[int, int]]:
    try:
        dtype = _DTYPES[entry["dtype"]]
        shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        shape, begin, end = (None,), 0, 0
    is_right = all(is_int64(n) and n >= 0 for n in (*shape, begin, end))
    if not is_right or len(shape) > _MAX_DIMENSIONS:
        got = repr(entry)
        got = got if len(got) < 200 else got[:200] + "..."
        raise ModelFileError(f"{name}: the entry of array {key!r} is damaged, got {got}")
    n_bytes = math.prod(shape) * dtype.itemsize
    is_empty = n_bytes == 0  # then NumPy's limit counts, not that of the file
    extent = math.prod(n for n in shape if n) * dtype.itemsize
    if end - begin != n_bytes or (is_empty and extent > np.iinfo(np.int64).max):
        raise ModelFileError(
            f"{name}: array {key!r} of shape {shape} and dtype {dtype} does not fill "
            f"bytes {begin} to {end}"
        )
    return dtype, shape, (begin, end)


def _check_layout(name: str, spans: list[tuple[int, int]], n_bytes: int) -> None:
    ordered = [(0, 0), *sorted(spans)]
    if any(left[1] != right[0] for left, right in pairwise(ordered)):
        raise ModelFileError(f"{name}: the file is damaged: its arrays overlap or leave gaps")
    announced = ordered[-1][1]
    if announced != n_bytes:
        kind = "truncated" if n_bytes < announced else "damaged"
        raise ModelFileError(
            f"{name}: the file is {kind}: arrays of {announced} bytes are announced, got {n_bytes}"
        )
