"""Two files of records beside each other: by how much each figure became worse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.records import Record, tables_of
from harness.table import is_less_better

__all__ = ["WORSE", "Change", "changes", "told"]

#: A ratio above this is flagged.
WORSE = 1.05

#: Table, the text in front of the figures, the how many-th row of that text, and the column.
Key = tuple[str, str, int, str]


@dataclass(frozen=True)
class Change:
    """A figure of a row, before and after; a ratio above 1 is a loss."""

    key: Key
    before: float
    after: float
    ratio: float


def changes(before: Iterable[Record], after: Iterable[Record]) -> list[Change]:
    """Every figure that both have and of which less or more is better."""
    old, new = _best(before), _best(after)
    found = []
    for key in (key for key in old if key in new):
        (a, is_less), (b, _) = old[key], new[key]
        ratio = _ratio(a, b) if is_less else _ratio(b, a)
        if ratio is not None:
            found.append(Change(key, a, b, ratio))
    return found


def _ratio(before: float, after: float) -> float | None:
    """None where a ratio says nothing."""
    is_usual = before > 0 and after > 0 and math.isfinite(before) and math.isfinite(after)
    return after / before if is_usual else 1.0 if before == after else None


def _best(records: Iterable[Record]) -> dict[Key, tuple[float, bool]]:
    """The figures of a file; the best of a row that was measured more than once."""
    found: dict[Key, tuple[float, bool]] = {}
    for part in tables_of(records):
        for key, value, is_less in _figures(part):
            known = found.get(key, (value, is_less))[0]
            found[key] = ((min if is_less else max)(known, value), is_less)
    return found


def _figures(records: Iterable[Record]) -> Iterator[tuple[Key, float, bool]]:
    seen: dict[str, int] = {}
    for record in records:
        columns = list(record["columns"].items())
        marks = [is_less_better(form) for _, form in columns]
        first = next((i for i, mark in enumerate(marks) if mark is not None), len(marks))
        name = ", ".join(cell for cell in record["cells"][:first] if isinstance(cell, str))
        seen[name] = seen.get(name, 0) + 1
        for (heading, _), mark, cell in zip(columns, marks, record["cells"], strict=True):
            if mark is not None and isinstance(cell, int | float):
                yield (record["table"], name, seen[name], heading), float(cell), mark


def told(found: list[Change]) -> str:
    """A line for each figure, those that became worse marked, and the mean of each table."""
    lines = []
    for change in found:
        table, name, number, heading = change.key
        mark = "  WORSE" if change.ratio > WORSE else ""
        row = f"{table} | {name or '-'}" + (f" ({number})" if number > 1 else "")
        lines.append(
            f"{row} | {heading}: {change.before:.4g} -> {change.after:.4g},"
            f" ratio {change.ratio:.3f}{mark}"
        )
    for table in dict.fromkeys(change.key[0] for change in found):
        logs = [math.log(change.ratio) for change in found if change.key[0] == table]
        lines.append(f"{table}: geometric mean {math.exp(sum(logs) / len(logs)):.3f}")
    n_worse = sum(change.ratio > WORSE for change in found)
    return "\n".join([*lines, f"{n_worse} of {len(found)} figures worse than {WORSE}"])
