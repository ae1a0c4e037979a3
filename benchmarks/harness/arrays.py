"""Named arrays and sparse matrices, to and from one file: all that crosses a process border."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Arrays", "load_arrays", "save_arrays"]

#: Dense arrays and sparse matrices by name.
Arrays = Mapping[str, np.ndarray | sp.csr_matrix]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write `arrays` to `path`; a sparse matrix is stored as CSR, or as CSC if it is that."""
    flat: dict[str, Any] = {}
    for name, value in arrays.items():
        if sp.issparse(value):
            matrix = value if value.format == "csc" else sp.csr_matrix(value)
            flat[f"{name}|{matrix.format}"] = np.asarray(matrix.shape)
            for part in ("data", "indices", "indptr"):
                flat[f"{name}|{part}"] = getattr(matrix, part)
        else:
            flat[name] = np.asarray(value)
    np.savez(path, **flat)


def load_arrays(path: Path) -> dict[str, np.ndarray | sp.csr_matrix]:
    """Read what :func:`save_arrays` wrote; objects are refused, so nothing is unpickled."""
    with np.load(path, allow_pickle=False) as archive:
        flat = {name: archive[name] for name in archive.files}
    arrays = {name: value for name, value in flat.items() if "|" not in name}
    kinds = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    for name, form in (key.split("|") for key in flat if key.endswith(("|csr", "|csc"))):
        parts = tuple(flat[f"{name}|{part}"] for part in ("data", "indices", "indptr"))
        arrays[name] = kinds[form](parts, shape=tuple(flat[f"{name}|{form}"]))
    return arrays
