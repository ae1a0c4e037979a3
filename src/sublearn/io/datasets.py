"""One door to all data files: reader and writer are chosen by the ending of the file name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sublearn.io.arff import load_arff
from sublearn.io.dataset import Dataset
from sublearn.io.files import plain_name
from sublearn.io.npz import load_npz, save_npz
from sublearn.io.tables import load_table
from sublearn.io.text import load_svmlight, load_xmc, save_svmlight, save_xmc
from sublearn.typing import PathLike

__all__ = ["find_reader", "load_dataset", "save_dataset"]

_READERS: dict[str, Callable[..., Dataset]] = {
    ".xmc.txt": load_xmc,
    ".xmc": load_xmc,
    ".txt": load_xmc,  # how the Extreme Classification repository names its files
    ".svm": load_svmlight,
    ".svmlight": load_svmlight,
    ".libsvm": load_svmlight,
    ".arff": load_arff,
    ".npz": load_npz,
    ".csv": load_table,
}
_WRITERS: dict[Callable[..., Dataset], Callable[..., None]] = {
    load_xmc: save_xmc,
    load_svmlight: save_svmlight,
    load_npz: save_npz,
}


def load_dataset(path: PathLike, **options: Any) -> Dataset:
    """Read a data file by the reader that belongs to its ending.

    Parameters
    ----------
    path : path
        ``.xmc.txt``, ``.xmc``, ``.txt`` (`load_xmc`); ``.svm``, ``.svmlight``, ``.libsvm``
        (`load_svmlight`); ``.arff`` (`load_arff`); ``.npz`` (`load_npz`); ``.csv`` (`load_table`).
        A further ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` means compressed.
    **options
        Options of that reader, for instance ``labels=`` of `load_arff`.

    Returns
    -------
    Dataset
    """
    reader = find_reader(path)
    if reader is None:
        raise ValueError(
            f"load_dataset.path must end in one of {', '.join(_READERS)}, got "
            f"{os.fspath(path)!r}; for another name call the reader itself"
        )
    return reader(path, **options)


def save_dataset(path: PathLike, dataset: Dataset, **options: Any) -> None:
    """Write a data file in the format that belongs to its ending, for `load_dataset`.

    Parameters
    ----------
    path : path
        With an ending of `load_dataset`, except ``.arff`` and ``.csv``. Replaced atomically.
    dataset : Dataset
        Names of features and labels are kept in ``.npz`` files; the text formats have no place
        for them.
    **options
        Options of the writer: ``zero_based=`` of `save_svmlight`.
    """
    reader = find_reader(path)
    if reader is None or reader not in _WRITERS:
        endings = [ending for ending, found in _READERS.items() if found in _WRITERS]
        raise ValueError(
            f"save_dataset.path must end in one of {', '.join(endings)}, got {os.fspath(path)!r}"
        )
    if reader is load_npz:
        options |= {"feature_names": dataset.feature_names, "label_names": dataset.label_names}
    _WRITERS[reader](path, dataset.X, dataset.Y, **options)


def find_reader(path: PathLike) -> Callable[..., Dataset] | None:
    """The reader that belongs to the ending of a file name, None if no data file ends so."""
    name = plain_name(path)
    return next((reader for ending, reader in _READERS.items() if name.endswith(ending)), None)
