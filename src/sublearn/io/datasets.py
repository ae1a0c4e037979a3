"""One door to all data files: the reader is chosen by the ending of the file name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sublearn.io.arff import load_arff
from sublearn.io.dataset import Dataset
from sublearn.io.files import PathLike, plain_name
from sublearn.io.npz import load_npz
from sublearn.io.text import load_svmlight, load_xmc

__all__ = ["load_dataset"]

_READERS: dict[str, Callable[..., Dataset]] = {
    ".xmc.txt": load_xmc,
    ".xmc": load_xmc,
    ".txt": load_xmc,  # how the Extreme Classification repository names its files
    ".svm": load_svmlight,
    ".svmlight": load_svmlight,
    ".libsvm": load_svmlight,
    ".arff": load_arff,
    ".npz": load_npz,
}


def load_dataset(path: PathLike, **options: Any) -> Dataset:
    """Read a data file by the reader that belongs to its ending.

    Parameters
    ----------
    path : path
        ``.xmc.txt``, ``.xmc``, ``.txt`` (`load_xmc`); ``.svm``, ``.svmlight``, ``.libsvm``
        (`load_svmlight`); ``.arff`` (`load_arff`); ``.npz`` (`load_npz`). A further ``.gz``,
        ``.xz`` or ``.bz2`` means compressed.
    **options
        Options of that reader, for instance ``labels=`` of `load_arff`.

    Returns
    -------
    Dataset
    """
    name = plain_name(path)
    for ending, reader in _READERS.items():
        if name.endswith(ending):
            return reader(path, **options)
    raise ValueError(
        f"load_dataset.path must end in one of {', '.join(_READERS)}, got {os.fspath(path)!r}; "
        "for another name call the reader itself"
    )
