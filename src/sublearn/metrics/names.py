"""From names of labels to positions in a list of names."""

from __future__ import annotations

import numpy as np

__all__ = ["find_positions", "positions_with_new"]

_NUMBERS, _TEXT = "biuf", "US"


def find_positions(names: np.ndarray, wanted: np.ndarray, *, argument: str) -> np.ndarray:
    """Position of each wanted name in `names`, -1 where it is not there; shape of `wanted`."""
    kinds = names.dtype.kind, wanted.dtype.kind
    if len(names) == 0 or wanted.size == 0:
        return np.full(wanted.shape, -1)
    if "O" in kinds:
        return _find_by_hash(names, wanted)
    if any((kinds[0] in family) != (kinds[1] in family) for family in (_NUMBERS, _TEXT)):
        raise ValueError(
            f"{argument} must hold labels of the type of the others ({names.dtype}), "
            f"got {wanted.dtype}"
        )
    order = np.argsort(names, kind="stable")
    place = np.searchsorted(names, wanted, sorter=order)
    found = order[np.minimum(place, len(names) - 1)]
    return np.where(names[found] == wanted, found, -1)


def positions_with_new(
    names: np.ndarray, wanted: np.ndarray, *, argument: str
) -> tuple[np.ndarray, int]:
    """Positions as of `find_positions`, new ones for names that are not there, and their number."""
    found = find_positions(names, wanted, argument=argument)
    is_new = found < 0
    found[is_new] = len(names) + np.arange(is_new.sum())
    return found, len(names) + int(is_new.sum())


def _find_by_hash(names: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    position = {name: p for p, name in enumerate(names.tolist())}
    found = [position.get(name, -1) for name in wanted.ravel().tolist()]
    return np.asarray(found, dtype=np.int64).reshape(wanted.shape)
