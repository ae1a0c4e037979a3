"""Names and edges of a taxonomy as users give them, made canonical or refused."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from sublearn.validation.values import is_int64, show

__all__ = ["as_names", "as_pair", "as_parents", "is_missing", "is_name", "items_of"]


def as_parents(entry: object, label: int) -> list[int]:
    """Positions of a label's parents, each once."""
    if entry is None or (is_int64(entry) and entry == -1):
        return []
    entries = list(entry) if isinstance(entry, (list, tuple, set, np.ndarray)) else [entry]
    found = [int(p) for p in entries if is_int64(p)]
    if len(found) < len(entries):
        raise ValueError(
            f"Taxonomy.parents must be positions, sequences of positions, or -1, "
            f"got {show(entry)} for label {label}"
        )
    return list(dict.fromkeys(found))


def items_of(given: object, what: str, must: str) -> list[object]:
    """The items of a sequence; text and mappings are none here."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ValueError(f"Taxonomy.{what} must be {must}, got {show(given)}")
    return list(given)


def as_pair(edge: object) -> tuple[Hashable, Hashable]:
    """Parent and child."""
    pair = edge if isinstance(edge, (Sequence, np.ndarray)) and not isinstance(edge, str) else ()
    if len(pair) != 2 or not all(map(is_name, pair)):
        raise ValueError(f"Taxonomy.edges must be pairs (parent, child), got {show(edge)}")
    return pair[0], pair[1]


def is_missing(name: object) -> bool:
    """Whether a name is a mark for what is missing."""
    return name is None or (isinstance(name, float) and name != name)


def is_name(name: object) -> bool:
    """Whether something can be looked up, and is not a mark for what is missing."""
    try:
        hash(name)
    except TypeError:
        return False
    return not is_missing(name)


def as_names(names: Iterable[Hashable] | None, n: int) -> np.ndarray:
    """Names of `n` labels, all different; their positions if none are given."""
    if names is None:
        return np.arange(n)
    listed = [name.item() if isinstance(name, np.generic) else name for name in names]
    if len(listed) != n:
        raise ValueError(f"Taxonomy.names must have {n} entries as parents has, got {len(listed)}")
    wrong = [name for name in listed if not is_name(name)]
    if wrong:
        raise ValueError(f"Taxonomy.names must be hashable and not missing, got {show(wrong[0])}")
    if len(set(listed)) != n:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"Taxonomy.names must be all different, got {show(twice)} twice")
    kinds = {type(name) for name in listed}
    if kinds == {str} or kinds == {int}:
        return np.array(listed)
    found = np.empty(n, dtype=object)
    found[:] = listed
    return found
