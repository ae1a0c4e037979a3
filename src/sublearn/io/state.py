"""A model's fitted values as plain arrays and JSON values, and back.

`pack_state` takes the dictionary an estimator gives; `unpack_state` returns an equal one. Beyond
plain arrays it knows string arrays (UTF-8 bytes and offsets, so that one long name does not widen
all others) and sparse matrices. How a value was stored is noted under ``attributes["__stored__"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["pack_state", "pack_strings", "unpack_state", "unpack_strings"]

_STORED = "__stored__"
_SPARSE = {
    ("csr", False): sparse.csr_matrix,
    ("csc", False): sparse.csc_matrix,
    ("csr", True): sparse.csr_array,
    ("csc", True): sparse.csc_array,
}


def pack_state(state: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Split `state` into arrays and attributes for `save_bundle`.

    Values may be NumPy arrays of numbers, booleans or strings (dtype str or object), CSR and CSC
    matrices of SciPy, and whatever JSON can hold.
    """
    arrays: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}
    stored: dict[str, Any] = {}
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


def unpack_state(arrays: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary that `pack_state` got; arrays stay the views they are."""
    state = {name: value for name, value in attributes.items() if name != _STORED}
    rest = dict(arrays)
    for name, how in attributes.get(_STORED, {}).items():
        if how["kind"] == "strings":
            flat = unpack_strings(rest.pop(f"{name}.utf8"), rest.pop(f"{name}.offsets"))
            state[name] = flat.astype(_string_dtype(how["dtype"])).reshape(how["shape"])
        else:
            state[name] = _unpack_sparse(name, how, rest)
    return state | rest


def pack_strings(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Strings as UTF-8 bytes and the offsets (one more than strings) at which each begins."""
    encoded = [str(value).encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(utf8: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The strings of `pack_strings` in an array of dtype object."""
    text = utf8.tobytes()
    bounds = offsets.tolist()
    if not bounds or bounds[0] != 0 or bounds[-1] != len(text) or sorted(bounds) != bounds:
        raise ValueError("offsets must rise from 0 to the number of bytes")
    out = np.empty(len(bounds) - 1, dtype=object)
    for i in range(len(out)):
        out[i] = text[bounds[i] : bounds[i + 1]].decode("utf-8", "surrogatepass")
    return out


def _pack_string_array(name: str, value: np.ndarray) -> tuple[dict[str, np.ndarray], dict]:
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


def _string_dtype(code: str) -> Any:
    """`U<width>`, `O`, or `T` for NumPy 2's variable-width strings (object before NumPy 2)."""
    if code == "T":
        maker = getattr(getattr(np, "dtypes", None), "StringDType", None)
        return np.dtype(object) if maker is None else maker()
    return np.dtype(code)


def _pack_sparse(name: str, matrix: Any) -> tuple[dict[str, np.ndarray], dict]:
    is_array = isinstance(matrix, (sparse.csr_array, sparse.csc_array))
    if (matrix.format, is_array) not in _SPARSE:
        raise TypeError(f"{name} must be a CSR or CSC matrix to be saved, got {matrix.format}")
    how = {
        "kind": "sparse",
        "format": matrix.format,
        "is_array": is_array,
        "shape": list(matrix.shape),
    }
    parts = ("data", "indices", "indptr")
    return {f"{name}.{part}": getattr(matrix, part) for part in parts}, how


def _unpack_sparse(name: str, how: Mapping[str, Any], rest: dict[str, np.ndarray]) -> Any:
    maker = _SPARSE[how["format"], how["is_array"]]
    parts = tuple(rest.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
    matrix = maker(parts, shape=tuple(how["shape"]), copy=False)
    matrix.check_format()  # reads all indices once: a damaged file must not crash SciPy's loops
    return matrix
