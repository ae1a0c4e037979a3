"""Labels written as paths: a row of names for each sample, the root first, empty places behind.

This is how the package hiclass has them: an array of texts or objects with as many columns as the
taxonomy has levels, in which "", None and NaN fill up what is short.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from sublearn.validation.values import show

if TYPE_CHECKING:
    from sublearn.hierarchy.taxonomy import Taxonomy

__all__ = ["as_path_array", "ends_of_paths", "forest_of_paths", "form_of_paths", "path_rows"]

_SEPARATORS = (".", "/", "--", "::", "|")  # that names of `from_paths` may be joined by

Path = tuple[Hashable, ...]


def as_path_array(y: object) -> np.ndarray | None:
    """An array or a frame of paths as an array; None if it is something else."""
    frame = getattr(y, "to_numpy", None)
    rows = y if frame is None else frame()
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.shape[1] < 2:
        return None
    if rows.dtype.kind == "O":
        has_name = any(isinstance(name, str) and name for name in rows.ravel().tolist())
        return rows if has_name else None
    return rows if rows.dtype.kind == "U" else None


def _is_empty_place(name: object) -> bool:
    """Whether a place of a row is there to fill it up."""
    return name is None or name == "" or name != name


def read_paths(rows: np.ndarray, argument: str) -> list[Path]:
    """The path of each row, without empty places."""
    found = []
    for row, names in enumerate(rows.tolist()):
        is_empty = [_is_empty_place(name) for name in names]
        length = is_empty.index(True) if True in is_empty else len(names)
        if length == 0 or not all(is_empty[length:]):
            raise ValueError(
                f"{argument} must have paths from a root on, with empty places behind them alone, "
                f"got {show(names)} in row {row}"
            )
        found.append(tuple(names[:length]))
    return found


def ends_of_paths(taxonomy: Taxonomy, rows: np.ndarray, argument: str) -> np.ndarray:
    """The label at the end of each path of a taxonomy, whose names are those of steps or joined."""
    paths = read_paths(rows, argument)
    position = {
        path: t for t, path in enumerate(_paths_of(taxonomy, max(paths, key=len, default=())))
    }
    unknown = next((path for path in paths if path not in position), None)
    if unknown is not None:
        shown = taxonomy.show_unknown(unknown[-1])
        raise ValueError(
            f"{argument} must hold paths of the taxonomy, got {show(list(unknown))}"
            if unknown[-1] in taxonomy._positions
            else f"{argument} must hold labels of the taxonomy, got {shown}"
        )
    return np.asarray(taxonomy.names[[position[path] for path in paths]])


def _paths_of(taxonomy: Taxonomy, like: Path) -> list[Path]:
    """The path to each label, of names as the steps of `like` are: whole ones, or their ends."""
    names = taxonomy.names.tolist()
    separator = _separator(set(names), like)
    found: list[Path] = [()] * len(names)
    for t in np.argsort(taxonomy.levels, kind="stable").tolist():
        parents = taxonomy._parents(t)
        above = found[parents[0]] if len(parents) else ()
        own = names[t] if separator is None else names[t].rsplit(separator, 1)[-1]
        found[t] = (*above, own)
    return found


def _separator(names: set[Hashable], path: Path) -> str | None:
    """What joins the steps of a path to the name of a label; None if the last step is the name."""
    if not path or path[-1] in names or not all(isinstance(step, str) for step in path):
        return None
    joined = ((s, s.join(map(str, path))) for s in _SEPARATORS)
    return next((separator for separator, name in joined if name in names), None)


def forest_of_paths(rows: np.ndarray, argument: str) -> tuple[list[int], list[Hashable]]:
    """Parents and names of the labels of paths; a name that stands at two places is joined."""
    places: dict[Path, int] = {}
    for path in read_paths(rows, argument):
        for n in range(1, len(path) + 1):
            places.setdefault(path[:n], len(places))
    steps = [path[-1] for path in places]
    parents = [places[path[:-1]] if len(path) > 1 else -1 for path in places]
    if len(set(steps)) == len(steps):
        return parents, steps
    is_free = {s: not any(s in str(step) for step in steps) for s in _SEPARATORS}
    separator = next((s for s, free in is_free.items() if free), None)
    if separator is None:
        raise ValueError(
            f"{argument} must have each name under one parent, or none with all of "
            f"{', '.join(_SEPARATORS)} in it"
        )
    return parents, [separator.join(map(str, path)) for path in places]


def form_of_paths(y: object) -> tuple[int, Path] | None:
    """Columns of an array of paths, and its longest one: what its steps look like."""
    rows = as_path_array(y)
    if rows is None or not len(rows):
        return None
    return rows.shape[1], max(read_paths(rows, "y"), key=len)


def path_rows(taxonomy: Taxonomy, ends: np.ndarray, width: int, like: Path) -> np.ndarray:
    """Paths to labels, by position, as rows of names; "" behind short ones."""
    paths = _paths_of(taxonomy, like)
    width = max(width, 1 + int(taxonomy.levels.max()))
    filled = [[*paths[end], *[""] * (width - len(paths[end]))] for end in ends.tolist()]
    kind = str if all(isinstance(name, str) for path in paths for name in path) else object
    return np.array(filled, dtype=kind).reshape(len(ends), width)
