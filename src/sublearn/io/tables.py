"""Tables of numbers in comma-separated files with a line of column names."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from sublearn.io.dataset import Dataset, canonical_features
from sublearn.io.files import Lines, open_binary, reading
from sublearn.io.limits import ReadLimits
from sublearn.typing import PathLike
from sublearn.validation.values import show

__all__ = ["load_table"]


def load_table(
    path: PathLike,
    *,
    labels: str | int | list[str] | None = None,
    limits: ReadLimits | None = None,
) -> Dataset:
    """Read a table of numbers whose first line names its columns.

    Parameters
    ----------
    path : path
        A ``.csv`` file in UTF-8, fields quoted as spreadsheets do; with ``.gz``, ``.xz``, ``.bz2``
        or ``.zst`` if it is compressed. Blank lines are passed over.
    labels : str, int, list of str or None, default=None
        What is to be learnt: the name of a column, names of several, or how many stand at the end.
        One column gives a vector, of numbers or of words; several must hold 0 and 1 and give an
        indicator matrix. None gives no labels.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Dataset
        With names of features, and of labels where there are several columns of them.

    Raises
    ------
    DataFileError
        For a field that is no number, naming file, line and column.
    """
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            reader = csv.reader(lines.texts(), strict=True)
            names = [name.strip() for name in next(reader, [])]
            own = _label_columns(names, labels)
            features = [j for j in range(len(names)) if j not in own]
            rows, kept = [], []
            for fields in _records(reader, len(names)):
                rows.append([_number(fields[j], names[j]) for j in features])
                kept.append([fields[j].strip() for j in own])
    with reading(path):
        X = np.array(rows, dtype=np.float64).reshape(len(rows), len(features))
        found = canonical_features(X, "the columns")
        Y = _labels(kept, [names[j] for j in own])
    return Dataset(
        found,
        Y,
        feature_names=np.array([names[j] for j in features], dtype=str),
        label_names=np.array([names[j] for j in own], dtype=str) if len(own) > 1 else None,
    )


def _label_columns(names: list[str], labels: str | int | list[str] | None) -> list[int]:
    if not names:
        raise ValueError("a line of column names is needed, got an empty file")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ValueError(f"columns must have different names, got {twice[0]!r} twice")
    if labels is None:
        return []
    if isinstance(labels, int):
        if not 0 < labels < len(names):
            raise ValueError(f"labels must be from 1 to {len(names) - 1} columns, got {labels}")
        return list(range(len(names) - labels, len(names)))
    wanted = [labels] if isinstance(labels, str) else labels
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"labels must name columns ({', '.join(names[:9])}), got {missing[0]!r}")
    return [names.index(name) for name in wanted]


def _records(reader: Iterator[list[str]], n_columns: int) -> Iterator[list[str]]:
    for fields in reader:
        if not fields:
            continue
        if len(fields) != n_columns:
            raise ValueError(
                f"must have {n_columns} fields as the first line has, got {len(fields)}"
            )
        yield fields


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"column {name!r} must hold numbers, got {show(text)}") from None


def _labels(kept: list[list[str]], names: list[str]) -> np.ndarray | sparse.csr_matrix:
    if not names:
        return sparse.csr_matrix((len(kept), 0), dtype=np.int8)
    if len(names) == 1:
        return _vector([row[0] for row in kept])
    values = np.array(kept, dtype=object).reshape(len(kept), len(names))
    is_one = np.isin(values, ["1", "1.0"])
    wrong = values[~is_one & ~np.isin(values, ["0", "0.0", ""])]
    if len(wrong):
        raise ValueError(f"several columns of labels must hold 0 and 1, got {wrong[0]!r}")
    return sparse.csr_matrix(is_one.astype(np.int8))


def _vector(words: list[str]) -> np.ndarray:
    try:
        numbers = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        return np.array(words, dtype=str)
    is_whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return (
        numbers.astype(np.int64) if is_whole and np.abs(numbers).max(initial=0) < 2**53 else numbers
    )
