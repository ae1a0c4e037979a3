"""A chart of a table that has none of its own, where its columns say what to draw.

Columns headed by a size (``500 rows``, ``K = 4``) become lines over it; a column of ratios becomes
bars, or points if there are several data sets. Other tables have no picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.records import Record
from harness.table import Chart, Series, form_of

__all__ = ["pictured"]

_SIZE = re.compile(r"^([^\d@%]*?)(\d[\d,]*(?:\.\d+)?)([^\d@%]*)$")
_LEAST_SIZES, _LEAST_BARS, _MOST_SERIES, _MOST_NAMES, _WIDE = 3, 3, 8, 30, 10.0


def pictured(records: Sequence[Record]) -> list[Chart]:
    """The chart that shows a table faster than its rows do; none if there is no such chart."""
    chart = _growth(records) or _ratios(records)
    return [] if chart is None else [chart]


def _name_of(records: Sequence[Record]) -> str:
    return re.sub(r"[^\w-]", "-", str(records[0]["table"]).partition("/")[2])


def _naming(columns: Mapping[str, str]) -> list[int]:
    """The columns that say what a row is of: all up to the last text before the first figure."""
    figure = next((n for n, form in enumerate(columns.values()) if form[-1:] in "<>" and form), 99)
    texts = [n for n, form in enumerate(columns.values()) if form == "" and n < figure]
    return list(range(max(texts) + 1)) if texts else []


def _text(record: Record, column: int) -> str:
    cell, form = record["cells"][column], list(record["columns"].values())[column]
    return str(cell) if cell is None or isinstance(cell, str) else format(cell, form_of(form))


def _named(record: Record, places: Sequence[int]) -> str:
    return ", ".join(_text(record, n) for n in places if record["cells"][n] not in (None, ""))


def _number(record: Record, column: int) -> float | None:
    cell = record["cells"][column]
    return None if cell is None or isinstance(cell, str) else float(cell)


# --- over sizes -----------------------------------------------------------------------------------


def _growth(records: Sequence[Record]) -> Chart | None:
    """Lines over sizes in headings that have the same words, if they grow fivefold or more."""
    columns = records[0]["columns"]
    before, after, sizes = _sizes(columns)
    named = _naming(columns)
    if len(sizes) < _LEAST_SIZES or len(records) > _MOST_SERIES or not named:
        return None
    xs = list(sizes)
    series = [
        Series(_named(r, named), xs, [_number(r, n) for n in sizes.values()]) for r in records
    ]
    values = [y for one in series for y in one.y if y is not None]
    if len(values) < _LEAST_SIZES or max(xs) < _WIDE / 2 * min(xs):
        return None
    is_setting = before.endswith("=")  # K = 4: a heading of values would say what they are
    x = (before.removesuffix("=").strip() if is_setting else after) or "size"
    y = "" if is_setting else before.strip(" ,") or list(columns)[named[-1]]
    log_y = min(values) > 0 and max(values) > _WIDE * min(values)
    title = str(records[0]["title"])
    return Chart(_name_of(records), title, x, y, series, log_x=True, log_y=log_y)


def _sizes(columns: Mapping[str, str]) -> tuple[str, str, dict[float, int]]:
    """Words before and after the sizes, and the column of each size."""
    found: dict[tuple[str, str], dict[float, int]] = {}
    for n, (heading, form) in enumerate(columns.items()):
        match = _SIZE.match(heading) if form.endswith("<") else None
        if match:
            before, size, after = match.groups()
            found.setdefault((before.strip(), after.strip()), {})[float(size.replace(",", ""))] = n
    words = max(found, key=lambda key: len(found[key]), default=("", ""))
    return *words, found.get(words, {})


# --- ratios ---------------------------------------------------------------------------------------


def _ratios(records: Sequence[Record]) -> Chart | None:
    """Ratios on a log axis: bars, or points if there are several data sets and entrants."""
    columns = records[0]["columns"]
    headings = list(columns)
    ratios = [n for n, heading in enumerate(headings) if re.match(r"ratio\b", heading)]
    named = _naming(columns)
    if not ratios or not named:
        return None
    is_repeated = len({headings[n].strip() for n in ratios}) == 1
    filled = {n: [_number(record, n) for record in records] for n in ratios}
    column = ratios[0] if is_repeated else max(ratios, key=lambda n: (_count(filled[n]), n))
    values = filled[column]
    if _count(values) < _LEAST_BARS:
        return None
    of_what, heading = headings[column - 1], headings[column].partition(",")[0].strip()
    label = heading if column - 1 in named else f"{of_what}: {heading}"
    names = [_named(record, named) for record in records]
    kind, shown = "points", _by_data(records, named, values) if len(named) > 1 else None
    if shown is None:
        if len(set(names)) < len(names) or len(names) > _MOST_NAMES:
            return None
        kind, shown = "bars", [Series("", names, values)]
    title = str(records[0]["title"])
    return Chart(_name_of(records), title, headings[named[0]], label, shown, kind, log_y=True)


def _count(values: Sequence[float | None]) -> int:
    return sum(value is not None and value > 0 for value in values)


def _by_data(
    records: Sequence[Record], named: Sequence[int], values: Sequence[float | None]
) -> list[Series] | None:
    """Points, a row for what has more names, data or entrants; None if many, or a pair twice."""
    pairs = [(_text(r, named[0]), _named(r, named[1:])) for r in records]
    data, entrants = (list(dict.fromkeys(part)) for part in zip(*pairs, strict=True))
    kept = dict(zip(pairs, values, strict=True))
    is_filled = len(data) * len(entrants) <= 2 * len(records)
    if len(kept) < len(records) or not is_filled or min(len(data), len(entrants)) < 2:
        return None
    if max(len(data), len(entrants)) > _MOST_NAMES or min(len(data), len(entrants)) > _MOST_SERIES:
        return None
    if len(entrants) > len(data):
        heading = list(records[0]["columns"])[named[0]]
        names = [f"{heading} {d}" if re.match(r"[\d.]+$", d) else d for d in data]
        return [
            Series(name, entrants, [kept.get((d, e)) for e in entrants])
            for name, d in zip(names, data, strict=True)
        ]
    return [Series(e, data, [kept.get((d, e)) for d in data]) for e in entrants]
