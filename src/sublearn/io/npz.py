"""Features and labels in NumPy's .npz containers: our own pairs, and single matrices of SciPy."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from scipy import sparse

from sublearn.io.dataset import (
    Dataset,
    as_names,
    canonical_features,
    canonical_indicator,
    check_same_rows,
)
from sublearn.io.files import open_binary, plain_name, reading, write_atomically
from sublearn.io.limits import ReadLimits, check_expansion
from sublearn.typing import Matrix, MatrixLike, PathLike
from sublearn.validation.sparse import check_compressed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["load_npz", "save_npz"]

_PARTS = ("data", "indices", "indptr")
#: What Python's archives and NumPy's arrays raise for content that is none.
_NOT_AN_ARCHIVE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)

_MOST_ROWS_OR_COLUMNS = np.iinfo(np.int32).max  # ids of the core have 32 bits


def save_npz(
    path: PathLike,
    X: MatrixLike,
    Y: Matrix,
    *,
    feature_names: ArrayLike | None = None,
    label_names: ArrayLike | None = None,
) -> None:
    """Write features and labels (indicator matrix or vector) and their names into one .npz file."""
    X = canonical_features(X, "save_npz.X")
    content = _pack("X", X)
    if not sparse.issparse(Y) and np.ndim(Y) == 1:
        Y = np.asarray(Y)
        if Y.dtype.kind not in "fiubU":
            raise ValueError(f"save_npz.Y must hold numbers or strings, got dtype {Y.dtype}")
        content["Y"] = Y
        n_labels = None
    else:
        Y = canonical_indicator(Y, "save_npz.Y")
        content |= _pack("Y", Y)
        n_labels = Y.shape[1]
    check_same_rows(X, Y, "save_npz")
    if label_names is not None and n_labels is None:
        raise ValueError("save_npz.label_names must be None where Y is a vector, got names")
    names = {
        "feature_names": as_names(feature_names, X.shape[1], "save_npz.feature_names"),
        "label_names": as_names(label_names, n_labels or 0, "save_npz.label_names"),
    }
    content |= {name: value for name, value in names.items() if value is not None}
    with write_atomically(path) as stream:
        np.savez_compressed(stream, **content)  # type: ignore[arg-type]


def load_npz(
    path: PathLike, labels: PathLike | None = None, *, limits: ReadLimits | None = None
) -> Dataset:
    """Read what `save_npz` wrote, or matrices written by `scipy.sparse.save_npz`.

    Parameters
    ----------
    path : path
        A pair written by `save_npz`, or SciPy's file of the features.
    labels : path, optional
        SciPy's file of the indicator matrix; needed exactly if `path` is SciPy's.
    limits : ReadLimits, optional
        What the file may unpack to.

    Returns
    -------
    Dataset

    Raises
    ------
    DataFileError
        For a damaged file, matrices whose parts do not fit, NaN or infinity among the features,
        names of another number than columns.

    Notes
    -----
    Pickled content is never read.
    """
    content = _read(path, limits)
    if "X.indptr" in content:
        if labels is not None:
            raise ValueError(
                f"load_npz.labels must be None, got {os.fspath(labels)!r}: "
                f"{os.fspath(path)} holds its own labels"
            )
        with reading(path):
            return _from_pair(content)
    with reading(path):
        X = canonical_features(_from_scipy(content), "the matrix")
    if labels is None:
        raise ValueError(
            f"load_npz.labels must name the file of the labels, got None: "
            f"{os.fspath(path)} holds one matrix"
        )
    with reading(labels):
        Y = canonical_indicator(_from_scipy(_read(labels, limits)), "the matrix")
        check_same_rows(X, Y, "load_npz")
    return Dataset(X, Y)


def _pack(name: str, matrix: sparse.csr_matrix) -> dict[str, np.ndarray]:
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
    }


def _read(path: PathLike, limits: ReadLimits | None) -> dict[str, np.ndarray]:
    with open_binary(path, limits) as stream:
        try:
            if plain_name(path) != Path(path).name.lower():  # an archive is read from its end
                stream = io.BytesIO(stream.read())
            with zipfile.ZipFile(stream) as archive:
                return _read_archive(archive, stream, limits or ReadLimits())
        except _NOT_AN_ARCHIVE as error:
            raise ValueError(f"not a readable .npz file: {error}") from None


def _read_archive(
    archive: zipfile.ZipFile, stream: IO[bytes], limits: ReadLimits
) -> dict[str, np.ndarray]:
    """All arrays, after what the archive says of itself is possible and within the limits."""
    members = archive.infolist()
    n_packed = stream.seek(0, io.SEEK_END)
    if len({member.filename for member in members}) < len(members):
        raise ValueError("a name appears twice")
    if sum(member.compress_size for member in members) > n_packed:
        raise ValueError(f"its parts are larger than the {n_packed} bytes of the file")
    limits.check_unpacked(sum(member.file_size for member in members), n_packed)
    return {
        member.filename.removesuffix(".npy"): _read_member(archive, member) for member in members
    }


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    name = member.filename
    if "/" in name or "\\" in name or not name.endswith(".npy"):
        raise ValueError(f"it must hold arrays, got {name!r}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} must be stored or deflated, got {member.compress_type}")
    with archive.open(member) as stream:
        shape, is_fortran, dtype = _read_npy_header(stream)
        n_bytes = math.prod(shape) * dtype.itemsize
        is_numbers = dtype.kind in "?biufUS" and all(n >= 0 for n in shape)
        # Checked before memory is taken: the header is free to claim anything.
        if not is_numbers or n_bytes != member.file_size - stream.tell():
            raise ValueError(
                f"{name} must hold the numbers or strings it claims, got shape {shape}, dtype "
                f"{dtype} and {member.file_size} bytes"
            )
        flat = np.empty(n_bytes, dtype=np.uint8)
        n_read = 0
        while n_read < n_bytes and (n := stream.readinto(flat[n_read:].data)):  # type: ignore[attr-defined]
            n_read += n
        if n_read < n_bytes or stream.read(1):
            raise ValueError(f"{name} must have {n_bytes} bytes of numbers, got {n_read}")
    array = np.ndarray(shape, dtype, flat.data, order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    if version not in read:
        raise ValueError(f"arrays of version {version} are not known")
    try:
        return read[version](stream)
    except Exception as error:  # Python's tokenizer and parser let errors of all kinds out
        raise ValueError(f"the header of an array cannot be read: {error}") from None


def _from_pair(content: dict[str, np.ndarray]) -> Dataset:
    try:
        X = canonical_features(_unpack("X", content), "X")
        Y = content["Y"] if "Y" in content else canonical_indicator(_unpack("Y", content), "Y")
        if "Y" in content and (Y.ndim != 1 or Y.dtype.kind not in "fiubU"):
            raise ValueError(
                f"Y must be a vector of numbers or strings, got shape {Y.shape} and dtype {Y.dtype}"
            )
        check_same_rows(X, Y, "load_npz")
        names = {"feature_names": X.shape[1], "label_names": Y.shape[1] if Y.ndim == 2 else 0}
        found = [as_names(content.get(name), n, name) for name, n in names.items()]
    except KeyError as error:
        raise ValueError(f"the pair of matrices is damaged: {error} is missing") from None
    except ValueError as error:
        raise ValueError(f"the pair of matrices is damaged: {error}") from None
    return Dataset(X, Y, *found)


def _unpack(name: str, content: dict[str, np.ndarray]) -> sparse.csr_matrix:
    shape = _as_shape(content[f"{name}.shape"])
    data, indices, indptr = (content[f"{name}.{part}"] for part in _PARTS)
    return _compressed("csr", shape, data, indices, indptr, name)


def _from_scipy(content: dict[str, np.ndarray]) -> sparse.csr_matrix:
    """SciPy stores the kind of matrix as `format` and its parts by their attribute names."""
    stored = content.get("format")
    kind = stored.item() if stored is not None and stored.size == 1 else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc", "bsr", "coo"):
        found = f"a matrix of format {kind}" if kind else ", ".join(sorted(content)) or "nothing"
        raise ValueError(
            f"a pair of save_npz or a csr, csc, bsr or coo matrix of SciPy is needed, got {found}"
        )
    try:
        shape = _as_shape(content["shape"])
        n_stored = sum(array.nbytes for array in content.values())
        # The other formats become csr, which has an entry for each row, also for empty ones.
        check_expansion("shape", 8 * shape[0] if kind != "csr" else 0, n_stored)
        if kind == "coo":
            return _from_coordinates(content["data"], content["row"], content["col"], shape)
        data, indices, indptr = (content[part] for part in _PARTS)
        if kind == "bsr":
            return _from_blocks(data, indices, indptr, shape)
        return _compressed(kind, shape, data, indices, indptr, "matrix").tocsr()
    except KeyError as error:
        raise ValueError(f"the matrix is damaged: {error} is missing") from None
    except ValueError as error:
        raise ValueError(f"the matrix is damaged: {error}") from None


def _as_shape(stored: np.ndarray) -> tuple[int, int]:
    if stored.shape != (2,) or stored.dtype.kind not in "iu" or stored.min() < 0:
        raise ValueError(f"shape must be two sizes, got {stored.tolist()}")
    if stored.max() > _MOST_ROWS_OR_COLUMNS:
        raise ValueError(
            f"shape must be two sizes of at most {_MOST_ROWS_OR_COLUMNS:,}, got {stored.tolist()}"
        )
    return int(stored[0]), int(stored[1])


def _compressed(
    kind: str,
    shape: tuple[int, int],
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    name: str,
) -> sparse.csr_matrix | sparse.csc_matrix:
    """A CSR or CSC matrix that SciPy's loops may run over."""
    if indptr.shape != (shape[kind == "csc"] + 1,):
        raise ValueError(f"shape must fit indptr of shape {indptr.shape}, got {shape}")
    if data.ndim != 1 or data.dtype.kind not in "fiub" or data.dtype.itemsize > 8:
        raise ValueError(f"data must be a vector of numbers, got dtype {data.dtype}")
    maker = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
    return check_compressed(maker((data, indices, indptr), shape=shape), name)


def _from_coordinates(
    data: np.ndarray, row: np.ndarray, col: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_matrix:
    for name, ids, size in (("row", row, shape[0]), ("col", col, shape[1])):
        is_vector = ids.ndim == 1 and ids.dtype.kind in "iu" and ids.shape == data.shape
        if not is_vector or (len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < size):
            raise ValueError(f"{name} must have a position below {size} for each value")
    return sparse.coo_matrix((data, (row, col)), shape=shape).tocsr()


def _from_blocks(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """The blocks are checked as the entries of a matrix of blocks."""
    if data.ndim != 3 or 0 in data.shape[1:]:
        raise ValueError(f"data must be blocks, got shape {data.shape}")
    height, width = data.shape[1:]
    blocks = (shape[0] // height, shape[1] // width)
    if shape != (blocks[0] * height, blocks[1] * width):
        raise ValueError(f"shape must be a multiple of the blocks {data.shape[1:]}, got {shape}")
    _compressed("csr", blocks, np.ones(len(data)), indices, indptr, "matrix")
    return sparse.bsr_matrix((data, indices, indptr), shape=shape).tocsr()
