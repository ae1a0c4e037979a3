"""Features and labels in NumPy's .npz containers: our own pairs, and single matrices of SciPy."""

from __future__ import annotations

import os
import zipfile
from typing import IO, Any

import numpy as np
from scipy import sparse

from sublearn.io.dataset import (
    Dataset,
    as_names,
    canonical_csr,
    canonical_features,
    canonical_indicator,
    check_same_rows,
)
from sublearn.io.files import PathLike, open_binary, write_atomically

__all__ = ["load_npz", "save_npz"]

_COMPRESSED = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "bsr": sparse.bsr_matrix}


def save_npz(
    path: PathLike, X: Any, Y: Any, *, feature_names: Any = None, label_names: Any = None
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


def load_npz(path: PathLike, labels: PathLike | None = None) -> Dataset:
    """Read what `save_npz` wrote, or matrices written by `scipy.sparse.save_npz`.

    Parameters
    ----------
    path : path
        A pair written by `save_npz`, or SciPy's file of the features.
    labels : path, optional
        SciPy's file of the indicator matrix; needed exactly if `path` is SciPy's.

    Returns
    -------
    Dataset

    Notes
    -----
    Pickled content is never read.
    """
    content = _read(path)
    if "X.indptr" in content:
        if labels is not None:
            raise ValueError(
                f"load_npz.labels must be None, got {os.fspath(labels)!r}: "
                f"{os.fspath(path)} holds its own labels"
            )
        return _from_pair(content, path)
    X = canonical_features(_from_scipy(content, path), f"{os.fspath(path)}: the matrix")
    if labels is None:
        raise ValueError(
            f"load_npz.labels must name the file of the labels, got None: "
            f"{os.fspath(path)} holds one matrix"
        )
    Y = _from_scipy(_read(labels), labels)
    Y = canonical_indicator(Y, f"{os.fspath(labels)}: the matrix")
    check_same_rows(X, Y, "load_npz")
    return Dataset(X, Y)


def _pack(name: str, matrix: sparse.csr_matrix) -> dict[str, np.ndarray]:
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
    }


def _unpack(name: str, content: dict[str, np.ndarray]) -> sparse.csr_matrix:
    parts = (content[f"{name}.data"], content[f"{name}.indices"], content[f"{name}.indptr"])
    matrix = sparse.csr_matrix(parts, shape=tuple(content[f"{name}.shape"].tolist()))
    matrix.check_format()
    return canonical_csr(matrix, name)


def _read(path: PathLike) -> dict[str, np.ndarray]:
    with open_binary(path) as stream:
        try:
            return _read_stream(stream)
        except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
            raise ValueError(f"{os.fspath(path)}: not a readable .npz file: {error}") from None


def _read_stream(stream: IO[bytes]) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(stream):
        stream.seek(0)
    with np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _from_pair(content: dict[str, np.ndarray], path: PathLike) -> Dataset:
    try:
        X = _unpack("X", content)
        Y = content["Y"] if "Y" in content else _unpack("Y", content)
        check_same_rows(X, Y, "load_npz")
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: the pair of matrices is damaged: {error}") from None
    return Dataset(X, Y, content.get("feature_names"), content.get("label_names"))


def _from_scipy(content: dict[str, np.ndarray], path: PathLike) -> sparse.csr_matrix:
    """SciPy stores the kind of matrix as `format` and its parts by their attribute names."""
    kind = content["format"].item() if "format" in content else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in (*_COMPRESSED, "coo"):
        found = f"a matrix of format {kind}" if kind else ", ".join(sorted(content)) or "nothing"
        raise ValueError(
            f"{os.fspath(path)}: a pair of save_npz or a csr, csc, bsr or coo matrix of SciPy is "
            f"needed, got {found}"
        )
    try:
        shape = tuple(content["shape"].tolist())
        if kind == "coo":
            entries = (content["data"], (content["row"], content["col"]))
            return sparse.coo_matrix(entries, shape=shape).tocsr()
        parts = (content["data"], content["indices"], content["indptr"])
        matrix = _COMPRESSED[kind](parts, shape=shape)
        matrix.check_format()
        return matrix.tocsr()
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: the matrix is damaged: {error}") from None
