"""Features that have names, as python-crfsuite takes them: strings or dicts to a CSR matrix.

A position is a list of strings, or a dict from name to string, bool or number. A string counts one,
`name: "value"` is the feature "name=value", True counts one and False nothing. Everything that is
done for each feature of each position runs inside of `map`, `chain` and NumPy: 20 million
features take seconds.
"""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from sublearn.validation.values import show

__all__ = ["Position", "grow_vocabulary", "look_up"]

#: Features of a position by name.
Position: TypeAlias = Collection[str] | Mapping[str, str | float]

_MOST_ENTRIES = 2**31 - 1  # the core numbers entries with 32 bits
_LISTS = (list, tuple, set, frozenset)


def grow_vocabulary(
    positions: Sequence[Position], head: str
) -> tuple[sp.csr_matrix, dict[str, int]]:
    """A row for each position, and the column of each name, in the order of first appearance.

    `head` stands at the beginning of error messages.
    """
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    names, values, counts = _flatten(positions, head)
    columns = _columns(map(vocabulary.__getitem__, names), counts, head)
    _refuse_other_names(vocabulary, head)
    found = dict(vocabulary)
    return _as_csr(columns, values, counts, len(found)), found


def look_up(
    positions: Sequence[Position], vocabulary: Mapping[str, int], head: str
) -> sp.csr_matrix:
    """A row for each position; names that the vocabulary lacks are left out."""
    names, values, counts = _flatten(positions, head)
    columns = _columns(map(vocabulary.get, names, repeat(-1)), counts, head)
    is_known = columns >= 0
    if not is_known.all():
        ends = np.concatenate([[0], np.cumsum(is_known)])
        counts = np.diff(ends[np.concatenate([[0], np.cumsum(counts)])])
        columns, values = columns[is_known], values[is_known]
    return _as_csr(columns, values, counts, len(vocabulary))


def _flatten(
    positions: Sequence[Position], head: str
) -> tuple[Iterable[str], np.ndarray, np.ndarray]:
    """Names of all features one after another, their values, and how many each position has."""
    types = set(map(type, positions))
    for wrong in types:
        if not issubclass(wrong, (*_LISTS, Mapping)):
            position = next(position for position in positions if type(position) is wrong)
            raise ValueError(
                f"{head} must have a list of strings or a dict for each position, "
                f"got {show(position)}"
            )
    counts = np.fromiter(map(len, positions), np.int64, len(positions))
    if all(issubclass(t, _LISTS) for t in types):
        return chain.from_iterable(positions), np.ones(counts.sum(), np.float32), counts
    if all(issubclass(t, Mapping) for t in types):
        dicts = cast("Sequence[Mapping[str, str | float]]", positions)
        return *_flatten_dicts(dicts, head), counts
    raise ValueError(f"{head} must have either lists or dicts as positions, got both")


def _flatten_dicts(
    positions: Sequence[Mapping[str, str | float]], head: str
) -> tuple[Iterable[str], np.ndarray]:
    names = chain.from_iterable(positions)
    values = list(chain.from_iterable(position.values() for position in positions))
    types = set(map(type, values))
    for wrong in types:
        if not issubclass(wrong, (str, bool, np.bool_, numbers.Real)):
            value = next(value for value in values if type(value) is wrong)
            raise ValueError(
                f"{head} must have a string, a bool or a number for each name, got {show(value)}"
            )
    is_text = {t for t in types if issubclass(t, str)}
    joined = [
        f"{name}={value}" if type(value) in is_text else name
        for name, value in zip(names, values, strict=True)
    ]
    amounts = (1.0 if type(value) in is_text else value for value in values)
    with np.errstate(over="ignore"):
        found = np.fromiter(amounts, np.float64, len(values)).astype(np.float32)
    is_bad = ~np.isfinite(found)
    if is_bad.any():
        value = values[int(np.argmax(is_bad))]
        raise ValueError(f"{head} must have finite numbers (as float32), got {show(value)}")
    return joined, found


def _columns(found: Iterable[int], counts: np.ndarray, head: str) -> np.ndarray:
    n_entries = int(counts.sum())
    if n_entries > _MOST_ENTRIES:
        raise ValueError(
            f"{head} must have at most {_MOST_ENTRIES} features in all, got {n_entries}"
        )
    try:
        return np.fromiter(found, np.int32, n_entries)
    except TypeError as error:  # a list or a dict in place of a string
        raise ValueError(f"{head} must have strings as names of features: {error}") from None


def _refuse_other_names(vocabulary: Mapping[str, int], head: str) -> None:
    for name in vocabulary:
        if not isinstance(name, str):
            raise ValueError(f"{head} must have strings as names of features, got {show(name)}")


def _as_csr(
    columns: np.ndarray, values: np.ndarray, counts: np.ndarray, n_columns: int
) -> sp.csr_matrix:
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    csr = sp.csr_matrix((values, columns, indptr), shape=(len(counts), n_columns))
    csr.sum_duplicates()  # a name that stands twice counts twice, as in CRFsuite
    if not csr.data.all():
        csr.eliminate_zeros()
    return csr
