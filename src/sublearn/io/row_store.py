"""Rows and labels on disk, in the arrays that solvers read: data larger than memory.

A store is a folder that is written once, whole or not at all, and never changed:

    rows.json             what follows, and a digest of each array
    rows.*                X by rows: indptr, indices, values
    columns.*             X by columns, the inverted lists of PPD-Sparse
    labels.*              the rows of each label: indptr, rows; or `targets`, a number for each row

Arrays are mapped, so that the system reads what is used and drops what is not: processes share the
pages, and none of them counts as memory of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import DataFileError
from sublearn.typing import JsonObject, PathLike
from sublearn.validation.labels import EncodedLabels, LabelKind
from sublearn.validation.values import LARGEST, is_int64

__all__ = ["MANIFEST", "StoredMatrix", "StoredRows", "array_types", "digest_of", "open_rows"]

MANIFEST = "rows.json"
_FORMAT = {"format": "sublearn rows", "version": 1}
_MOST_MANIFEST_BYTES = 2**16
_STEP = 2**18  # entries that are looked at together
_NARROW = np.iinfo(np.int32).max
_Stamp: TypeAlias = tuple[int, int, int]


def array_types(dtype: np.dtype, n_entries: int, is_multilabel: bool) -> dict[str, np.dtype]:
    """The arrays of a store, and their types: those that the core reads without a copy."""
    index = np.dtype(np.int32 if n_entries <= _NARROW else np.int64)
    long, short = np.dtype(np.int64), np.dtype(np.int32)
    labels: dict[str, np.dtype] = {"labels.indptr": long, "labels.rows": short}
    numbers: dict[str, np.dtype] = {"targets": np.dtype(np.float64)}
    return {
        "rows.indptr": index, "rows.indices": index, "rows.values": dtype,
        "columns.indptr": long, "columns.rows": short, "columns.values": dtype,
        **(labels if is_multilabel else numbers),
    }  # fmt: skip


class StoredMatrix(sp.csr_matrix):
    """X by rows, whose `stored_columns` are X by columns; all arrays are mapped and read-only.

    A CSR matrix as any other; slices of it are in memory and have no stored columns.
    """

    stored_columns: sp.csc_matrix | None = None

    def tocsc(self, copy: bool = False) -> sp.csc_matrix:
        """The stored columns, where there are some."""
        if copy or self.stored_columns is None:
            return super().tocsc(copy=copy)
        return self.stored_columns


class StoredRows:
    """An open store: unpacks as ``X, y = rows``.

    Attributes
    ----------
    shape : tuple of int
        Rows and features.
    n_labels : int or None
        Columns of the labels; None if each row has a number.
    nbytes : int
        Size of all arrays.
    """

    def __init__(self, folder: PathLike, *, verify: bool = True):
        self.folder = Path(folder)
        about = _read_manifest(self.folder)
        self.shape: tuple[int, int] = about["shape"]
        self.n_labels: int | None = about["n_labels"]
        self._stamps: dict[str, _Stamp] = {}
        self._arrays = {
            name: self._map(name, kind, length, digest if verify else None)
            for name, (kind, length, digest) in about["arrays"].items()
        }
        self.nbytes = sum(array.nbytes for array in self._arrays.values())
        self._check_structure(self._arrays)
        self._refuse_changed()

    def __repr__(self) -> str:
        n_rows, n_features = self.shape
        labels = "a number each" if self.n_labels is None else f"{self.n_labels:,} labels"
        return f"StoredRows({n_rows:,} rows, {n_features:,} features, {labels}, {self.folder})"

    def __iter__(self) -> Any:
        yield self.X
        yield self.y

    @property
    def X(self) -> StoredMatrix:
        """Features, mapped; what a solver needs by columns comes with them."""
        self._refuse_changed()
        arrays = self._arrays
        X = StoredMatrix(self.shape, dtype=arrays["rows.values"].dtype)
        X.indptr, X.indices, X.data = (arrays[f"rows.{p}"] for p in ("indptr", "indices", "values"))
        columns = sp.csc_matrix(self.shape, dtype=X.dtype)
        columns.indptr, columns.indices, columns.data = (
            arrays[f"columns.{part}"] for part in ("indptr", "rows", "values")
        )
        X.stored_columns = columns
        return X

    @property
    def y(self) -> EncodedLabels | np.ndarray:
        """The rows of each label, as `fit` takes them; or the numbers."""
        self._refuse_changed()
        if self.n_labels is None:
            targets = self._arrays["targets"]
            is_whole = bool(
                (targets == np.floor(targets)).all() and (np.abs(targets) < 2**53).all()
            )
            return targets.astype(np.int64) if is_whole else targets
        return EncodedLabels(
            self._arrays["labels.indptr"], self._arrays["labels.rows"], np.arange(self.n_labels),
            LabelKind.SPARSE_INDICATOR, self.shape[0],
        )  # fmt: skip

    # --- what a folder may hold --------------------------------------------------------------

    def _map(self, name: str, kind: np.dtype, length: int, digest: str | None) -> np.ndarray:
        """An array of its file, which must be a plain one of the size that is announced."""
        path = self.folder / f"{name}.bin"
        if path.is_symlink() or not path.is_file():
            raise DataFileError(f"{path}: a plain file is needed")
        self._stamps[name] = _stamp(path)
        size = path.stat().st_size
        if size != length * kind.itemsize:
            raise DataFileError(
                f"{path}: must have {length * kind.itemsize} bytes, got {size}; the store is "
                "truncated or was changed"
            )
        array = np.asarray(np.memmap(path, kind, mode="r")) if length else np.empty(0, kind)
        if digest is not None and digest_of(array) != digest:
            raise DataFileError(
                f"{path}: content must be what {MANIFEST} says, got other bytes; the store is "
                "damaged or was changed"
            )
        return array

    def _check_structure(self, arrays: Mapping[str, np.ndarray]) -> None:
        """One pass over all arrays: nothing that reads them later leaves them."""
        n_rows, n_features = self.shape
        rows = [arrays[f"rows.{part}"] for part in ("indptr", "indices", "values")]
        columns = [arrays[f"columns.{part}"] for part in ("indptr", "rows", "values")]
        lists = (("rows", rows, (n_rows, n_features)), ("columns", columns, (n_features, n_rows)))
        for head, (indptr, ids, values), sizes in lists:
            self._check_lists(head, indptr, ids, sizes)
            if not _are_moderate(values):
                raise self._damaged(head, f"numbers of at most {LARGEST[values.dtype]:g}")
        if not np.array_equal(np.diff(columns[0]), _counts(rows[1], n_features)):
            raise self._damaged("columns", "the columns of the rows")
        if self.n_labels is None:
            if not np.isfinite(arrays["targets"]).all():
                raise self._damaged("targets", "finite numbers")
            return
        indptr, ids = arrays["labels.indptr"], arrays["labels.rows"]
        self._check_lists("labels", indptr, ids, (self.n_labels, n_rows))

    def _check_lists(
        self, head: str, indptr: np.ndarray, ids: np.ndarray, sizes: tuple[int, int]
    ) -> None:
        try:
            _core.check_compressed(indptr, ids, *sizes, f"{head}.indptr", head)
            if indptr[-1] != len(ids):
                raise ValueError(f"{head}.indptr must end at {len(ids)}, got {indptr[-1]}")
            if not _are_increasing(indptr, ids):
                raise ValueError(f"{head} must be increasing in each list, got others")
        except ValueError as error:
            raise DataFileError(f"{self.folder}: {error}") from None

    def _damaged(self, head: str, what: str) -> DataFileError:
        return DataFileError(f"{self.folder}: {head} must be {what}, got others")

    def _refuse_changed(self) -> None:
        for name, stamp in self._stamps.items():
            path = self.folder / f"{name}.bin"
            if not path.is_file() or _stamp(path) != stamp:
                raise DataFileError(
                    f"{path}: the store was changed while it was open; open it anew"
                )


def open_rows(folder: PathLike, *, verify: bool = True) -> StoredRows:
    """Open rows that `store_rows` wrote.

    Parameters
    ----------
    folder : path
        The store.
    verify : bool, default=True
        Whether to compare each array with its digest, which reads all of them. The structure is
        checked in any case, once, so that no solver reads outside of the arrays.

    Returns
    -------
    StoredRows

    Raises
    ------
    DataFileError
        For a store that is truncated, damaged, foreign, or changed while it is open.

    Notes
    -----
    Do not change the files of an open store: what is mapped cannot be guarded against that.
    """
    return StoredRows(folder, verify=verify)


def digest_of(array: np.ndarray) -> str:
    """A digest of the bytes of an array."""
    digest, flat = hashlib.blake2b(digest_size=16), array.view(np.uint8)
    for first in range(0, len(flat), _STEP):
        digest.update(flat[first : first + _STEP].data)
    return digest.hexdigest()


def _counts(ids: np.ndarray, n: int) -> np.ndarray:
    found = np.zeros(n, dtype=np.int64)
    for first in range(0, len(ids), _STEP):
        found += np.bincount(ids[first : first + _STEP], minlength=n)
    return found


def _are_increasing(indptr: np.ndarray, ids: np.ndarray) -> bool:
    """Whether each list is; some entries at a time, since there may be many."""
    for first in range(0, len(ids) - 1, _STEP):
        part = ids[first : first + _STEP + 1]
        falls = 1 + first + np.flatnonzero(part[1:] <= part[:-1])
        if not (indptr[np.minimum(np.searchsorted(indptr, falls), len(indptr) - 1)] == falls).all():
            return False
    return True


def _are_moderate(values: np.ndarray) -> bool:
    largest = LARGEST[values.dtype]
    parts = (values[i : i + _STEP] for i in range(0, len(values), _STEP))
    return all(-largest <= part.min() and part.max() <= largest for part in parts)


def _stamp(path: Path) -> _Stamp:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_manifest(folder: Path) -> JsonObject:
    """Sizes and arrays of a store, each of the kind that it must be."""
    path = folder / MANIFEST
    if not path.is_file() or path.stat().st_size > _MOST_MANIFEST_BYTES:
        raise DataFileError(f"{folder}: a folder that store_rows wrote is needed, got another")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        known = {name: about[name] for name in _FORMAT}
        shape, n_labels, dtype = tuple(about["shape"]), about["n_labels"], about["dtype"]
        arrays = dict(about["arrays"])
        counts = [*shape, *([] if n_labels is None else [n_labels])]
        is_right = known == _FORMAT and len(shape) == 2 and dtype in ("float32", "float64")
        if not is_right or not all(is_int64(n) and 0 <= n <= _NARROW for n in counts):
            raise ValueError("other sizes or another version")
        n_entries = arrays["rows.values"]["length"]
        types = array_types(np.dtype(dtype), n_entries, n_labels is not None)
        found = {}
        for name, kind in types.items():
            length, digest = arrays.pop(name)["length"], about["arrays"][name]["digest"]
            if not is_int64(length) or length < 0 or not isinstance(digest, str):
                raise ValueError(f"{name} must have a length and a digest")
            found[name] = (kind, length, digest)
        if arrays:
            raise ValueError(f"no array may be called {min(arrays)}")
        _check_lengths({name: size for name, (_, size, _) in found.items()}, shape, n_labels)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataFileError(f"{path}: does not describe rows: {error}") from None
    return {"shape": shape, "n_labels": n_labels, "arrays": found}


def _check_lengths(found: dict[str, int], shape: tuple[int, int], n_labels: int | None) -> None:
    n_entries = found["rows.values"]
    wanted = {"rows.indptr": shape[0] + 1, "rows.indices": n_entries, "columns.rows": n_entries,
              "columns.values": n_entries, "columns.indptr": shape[1] + 1}  # fmt: skip
    wanted |= {"targets": shape[0]} if n_labels is None else {"labels.indptr": n_labels + 1}
    for name, length in wanted.items():
        if found[name] != length:
            raise ValueError(f"{name} must have {length} entries, got {found[name]}")
