"""A model's fitted values as plain arrays and JSON values, and back.

`pack_state` takes the dictionary an estimator gives; `unpack_state` returns an equal one. Beyond
plain arrays it knows string arrays (UTF-8 bytes and offsets, so that one long name does not widen
all others) and sparse matrices. How a value was stored is noted under ``attributes["__stored__"]``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np
from scipy import sparse

from sublearn.io.limits import check_expansion
from sublearn.typing import SparseMatrix, State
from sublearn.validation.sparse import check_compressed
from sublearn.validation.values import is_int64, show

__all__ = ["pack_state", "pack_strings", "unpack_state", "unpack_strings"]

_STORED = "__stored__"
_STRING_DTYPE = re.compile(r"O|T|U\d{1,8}")
_SPARSE: dict[tuple[object, object], type[SparseMatrix]] = {
    ("csr", False): sparse.csr_matrix,
    ("csc", False): sparse.csc_matrix,
    ("csr", True): sparse.csr_array,
    ("csc", True): sparse.csc_array,
}
_SPARSE_PARTS = ("data", "indices", "indptr")


def pack_state(state: Mapping[str, object]) -> tuple[dict[str, np.ndarray], State]:
    """Split `state` into arrays and attributes for `save_bundle`.

    Values may be NumPy arrays of numbers, booleans or strings (dtype str or object), CSR and CSC
    matrices of SciPy, and whatever JSON can hold.
    """
    arrays: dict[str, np.ndarray] = {}
    attributes: State = {}
    stored: dict[str, State] = {}
    for name, value in state.items():
        if sparse.issparse(value):
            parts, stored[name] = _pack_sparse(name, value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "UOT":
            parts, stored[name] = _pack_string_array(name, value)
        elif isinstance(value, np.ndarray):
            parts = {name: value}
        else:
            parts, attributes[name] = {}, value
        arrays |= parts
    return arrays, attributes | {_STORED: stored}


def unpack_state(arrays: Mapping[str, np.ndarray], attributes: Mapping[str, object]) -> State:
    """The dictionary that `pack_state` got; arrays stay the views they are.

    A ValueError names the value that cannot be made of its parts.
    """
    state = {name: value for name, value in attributes.items() if name != _STORED}
    rest = dict(arrays)
    stored = attributes.get(_STORED, {})
    if not isinstance(stored, Mapping):
        raise ValueError(f"{_STORED} must be a mapping, got {show(stored)}")
    for name, how in stored.items():
        kind = how.get("kind") if isinstance(how, Mapping) else None
        if kind not in _UNPACK or name in state:
            raise ValueError(f"{_STORED}.{name} must say how one value is stored, got {show(how)}")
        state[name] = _UNPACK[kind](name, how, rest)
    twice = state.keys() & rest.keys()
    if twice:
        raise ValueError(f"{min(twice)} must be stored once, got it twice")
    return state | rest


def pack_strings(values: Iterable[object]) -> tuple[np.ndarray, np.ndarray]:
    """Strings as UTF-8 bytes and the offsets (one more than strings) at which each begins."""
    encoded = [str(value).encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(utf8: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The strings of `pack_strings` in an array of dtype object."""
    text = utf8.tobytes()
    is_vector = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
    is_rising = is_vector and offsets[0] == 0 and not (offsets[1:] < offsets[:-1]).any()
    if not is_rising or offsets[-1] != len(text):
        raise ValueError("offsets must rise from 0 to the number of bytes")
    bounds = offsets.tolist()
    out = np.empty(len(bounds) - 1, dtype=object)
    for i in range(len(out)):
        out[i] = text[bounds[i] : bounds[i + 1]].decode("utf-8", "surrogatepass")
    return out


def _pack_string_array(name: str, value: np.ndarray) -> tuple[dict[str, np.ndarray], State]:
    flat = value.ravel().tolist()
    other = next((item for item in flat if not isinstance(item, str)), None)
    if other is not None or (None in flat):
        raise TypeError(
            f"{name} of dtype {value.dtype} must hold strings only to be saved, "
            f"got {type(other).__name__}"
        )
    utf8, offsets = pack_strings(flat)
    dtype = value.dtype.newbyteorder("=").str[1:] if value.dtype.kind == "U" else value.dtype.kind
    how = {"kind": "strings", "dtype": dtype, "shape": list(value.shape)}
    return {f"{name}.utf8": utf8, f"{name}.offsets": offsets}, how


def _unpack_string_array(
    name: str, how: Mapping[str, object], rest: dict[str, np.ndarray]
) -> np.ndarray:
    utf8, offsets = _take(rest, f"{name}.utf8"), _take(rest, f"{name}.offsets")
    code, shape = how.get("dtype"), _as_shape(name, how)
    if not isinstance(code, str) or not _STRING_DTYPE.fullmatch(code):
        raise ValueError(f"{name}.dtype must be that of strings, got {show(code)}")
    try:
        flat = unpack_strings(utf8, offsets)
    except ValueError as error:
        raise ValueError(f"{name}.{error}") from None
    if math.prod(shape) != len(flat):
        raise ValueError(f"{name}.shape must be one of {len(flat)} strings, got {shape}")
    dtype = _string_dtype(code)
    check_expansion(f"{name}.dtype", len(flat) * dtype.itemsize, utf8.nbytes + offsets.nbytes)
    return flat.astype(dtype).reshape(shape)


def _string_dtype(code: str) -> np.dtype:
    """`U<width>`, `O`, or `T` for NumPy 2's variable-width strings (object before NumPy 2)."""
    if code == "T":
        maker = getattr(getattr(np, "dtypes", None), "StringDType", None)
        return np.dtype(object) if maker is None else maker()
    return np.dtype(code)


def _pack_sparse(name: str, matrix: SparseMatrix) -> tuple[dict[str, np.ndarray], State]:
    is_array = isinstance(matrix, (sparse.csr_array, sparse.csc_array))
    if (matrix.format, is_array) not in _SPARSE:
        raise TypeError(f"{name} must be a CSR or CSC matrix to be saved, got {matrix.format}")
    how = {
        "kind": "sparse",
        "format": matrix.format,
        "is_array": is_array,
        "shape": list(matrix.shape),
    }
    return {f"{name}.{part}": getattr(matrix, part) for part in _SPARSE_PARTS}, how


def _unpack_sparse(
    name: str, how: Mapping[str, object], rest: dict[str, np.ndarray]
) -> SparseMatrix:
    maker = _SPARSE.get((how.get("format"), how.get("is_array")))
    if maker is None:
        raise ValueError(f"{name}.format must be csr or csc, got {show(how.get('format'))}")
    data, indices, indptr = (_take(rest, f"{name}.{part}") for part in _SPARSE_PARTS)
    shape = _as_shape(name, how)
    n_major = shape[how["format"] == "csc"] if len(shape) == 2 else -1
    if indptr.shape != (n_major + 1,):  # else the matrix would not be made, or be a large one
        raise ValueError(f"{name}.shape must fit indptr of shape {indptr.shape}, got {shape}")
    matrix = maker((data, indices, indptr), shape=shape, copy=False)
    return check_compressed(matrix, name)


def _as_shape(name: str, how: Mapping[str, object]) -> tuple[int, ...]:
    shape = how.get("shape")
    if not isinstance(shape, list) or not all(is_int64(n) and n >= 0 for n in shape):
        raise ValueError(f"{name}.shape must be a list of sizes, got {show(shape)}")
    return tuple(shape)


def _take(rest: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in rest:
        raise ValueError(f"{name} must be there, got no such array")
    return rest.pop(name)


_UNPACK = {"strings": _unpack_string_array, "sparse": _unpack_sparse}
