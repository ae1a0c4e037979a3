"""Rows with zeros up to a multiple of 16 numbers, as core/inner_products.hpp wants them."""

from __future__ import annotations

import numpy as np

__all__ = ["ROW_NUMBERS", "aligned", "padded", "padded_width"]

ROW_NUMBERS = 16  # float32 numbers in a cache line, and in the widest register
_LINE_BYTES = 64


def padded_width(n_columns: int) -> int:
    """Numbers of a padded row."""
    return -(-n_columns // ROW_NUMBERS) * ROW_NUMBERS


def padded(rows: np.ndarray) -> np.ndarray:
    """The rows in float32; not copied where nothing has to change."""
    missing = padded_width(rows.shape[1]) - rows.shape[1]
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)))
    return np.ascontiguousarray(rows, dtype=np.float32)


def aligned(rows: np.ndarray) -> np.ndarray:
    """A padded copy that begins with a cache line: rows that are read again and again."""
    n_rows, width = len(rows), padded_width(rows.shape[1])
    memory = np.zeros(n_rows * width + ROW_NUMBERS, dtype=np.float32)
    start = -memory.ctypes.data % _LINE_BYTES // memory.itemsize
    copy = memory[start : start + n_rows * width].reshape(n_rows, width)
    copy[:, : rows.shape[1]] = rows
    return copy
