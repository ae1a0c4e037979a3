"""Records as Markdown: charts above tables, and a section on where and how figures were taken."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import charts, verdicts
from harness.pictured import pictured
from harness.records import Record, tables_of
from harness.table import Cell, Chart, form_of

__all__ = ["PICTURES", "TITLE", "page_of", "path_of", "write"]

TITLE = "### Where and how"
_HEAD = "<!-- Written by benchmarks/run.py; do not edit. -->"
_DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Where pictures of tables lie.
PICTURES = _DOCS / "pictures" / "charts"
_FOLDED_FROM = 13  # rows of a table below its chart
#: The page that is no part of docs/measured/.
_ELSEWHERE = {"extreme": "benchmarks_results"}


def path_of(page: str) -> Path:
    """The file of a page."""
    if page in _ELSEWHERE:
        return _DOCS / f"{_ELSEWHERE[page]}.md"
    return _DOCS / "measured" / f"{page}.md"


def page_of(records: Iterable[Record], page: str | None = None, lacking: Sequence[str] = ()) -> str:
    """A page; of a table that was measured more than once the last counts.

    Charts are shown by the name of the `page`, else they are left out. `lacking` names tables of a
    paper that were not measured yet.
    """
    tables = _last(records)
    shown = None if page is None else f"{_way_to_pictures(page)}/{page}"
    parts = [_HEAD, *_verdicts(tables, lacking), *(_table(part, shown) for part in tables.values())]
    origins = [(name.partition("/")[2], part[0]["origin"]) for name, part in tables.items()]
    return "\n\n".join([*parts, TITLE, _where_and_how(origins)]) + "\n"


def write(records: Sequence[Record], page: str, lacking: Sequence[str] = ()) -> None:
    """The file of a page, and its pictures."""
    drawn = [chart for part in _last(records).values() for chart in _charts(part)]
    charts.write(PICTURES, page, drawn)
    path_of(page).write_text(page_of(records, page, lacking), encoding="utf-8")


def _last(records: Iterable[Record]) -> dict[str, Sequence[Record]]:
    return {part[0]["table"]: part for part in tables_of(records)}


def _way_to_pictures(page: str) -> str:
    """The pictures as seen from the page of the site that includes this one."""
    include = re.compile(rf'^--8<-- "{path_of(page).relative_to(_DOCS)}"$', re.MULTILINE)
    including = [path for path in sorted(_DOCS.rglob("*.md")) if include.search(path.read_text())]
    folder = including[0].parent if including else path_of(page).parent
    return Path(os.path.relpath(PICTURES, folder)).as_posix()


def _verdicts(tables: Mapping[str, Sequence[Record]], lacking: Sequence[str]) -> list[str]:
    """How a paper's figures compare, table by table, and which were not measured yet."""
    found = {part[0]["title"]: verdicts.counts(part) for part in tables.values()}
    judged = {title: count for title, count in found.items() if sum(count.values())}
    parts = []
    if judged:
        total = {word: sum(c[word] for c in judged.values()) for word in verdicts.VERDICTS}
        rows = [[title, *map(str, count.values())] for title, count in judged.items()]
        rows.append(["**all**", *(f"**{count}**" for count in total.values())])
        rule = ["---"] + ["---:"] * len(verdicts.VERDICTS)
        lines = [["rows beside those of the paper", *verdicts.VERDICTS], rule, *rows]
        sentence = verdicts.in_words(total)
        parts = [f"Of {sum(total.values())} rows: {sentence}.", _lines(lines)]
    if lacking:
        parts.append(f"Not measured yet: {', '.join(f'`{name}`' for name in lacking)}.")
    return parts


def _charts(part: Sequence[Record]) -> list[Chart]:
    """The charts that came with a table, else the one that its columns make."""
    found = [charts.chart_of(chart) for chart in part[0].get("charts", ())] or pictured(part)
    return [chart for chart in found if _can_be_drawn(chart, part[0]["table"])]


def _can_be_drawn(chart: Chart, table: str) -> bool:
    """A chart with a fault costs its page the picture, and no more; the fault is told."""
    try:
        charts.drawn(chart)
    except ValueError as error:
        print(f"{table}: {error}", file=sys.stderr)
        return False
    return True


def _table(records: Sequence[Record], pictures: str | None) -> str:
    """Numbers stand to the right; a row begins with a name."""
    columns, first = records[0]["columns"], records[0]
    rows = [
        [_text(*pair) for pair in zip(r["cells"], columns.values(), strict=True)] for r in records
    ]
    rule = ["---" if form == "" else "---:" for form in columns.values()]
    named = [[f"`{row[0]}`" if row[0] else "", *row[1:]] for row in rows]
    table = _lines([list(columns), rule, *named])
    shown = [] if pictures is None else _charts(records)
    embedded = [f"![{_alt(chart)}]({pictures}-{chart.name}.svg)" for chart in shown]
    captions = [chart.caption for chart in shown]
    if shown and len(rows) >= _FOLDED_FROM:
        indented = "\n".join(f"    {line}" for line in table.splitlines())
        table = f'??? note "The figures: {len(rows)} rows"\n\n{indented}'
    pairs = zip(embedded, captions, strict=True)
    drawn = [part for pair in pairs for part in pair if part]
    return "\n\n".join(
        [f"### {first['title']}", *([first["note"]] if first["note"] else []), *drawn, table]
    )


def _alt(chart: Chart) -> str:
    return re.sub(r"[\[\]*_`]", "", chart.title)


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _text(cell: Cell, form: str) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else format(cell, form_of(form))


def _where_and_how(origins: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Of one run a list; of several, shared facts as a list and the others as a table."""
    runs = _joined(origins)
    if len(runs) == 1:
        return _listed({name: value for name, value in runs[0].items() if name != "tables"})
    is_shared = {name: len({run[name] for run in runs}) == 1 for name in runs[0]}
    columns = ["tables", *(n for n, shared in is_shared.items() if not shared and n != "tables")]
    rows = [columns, ["---"] * len(columns), *([run[name] for name in columns] for run in runs)]
    shared = {n: runs[0][n] for n, is_one in is_shared.items() if is_one}
    return f"{_listed(shared)}\n\n{_lines(rows)}"


def _joined(origins: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, str]]:
    """Tables that were taken alike share a line, with the date and load of the last of them."""
    runs: dict[tuple[str, ...], dict[str, str]] = {}
    for name, origin in origins:
        facts = _facts(origin)
        key = tuple(value for fact, value in facts.items() if fact not in ("date (UTC)", "load"))
        before = runs.get(key, {}).get("tables")
        runs[key] = {"tables": f"{before}, `{name}`" if before else f"`{name}`", **facts}
    return list(runs.values())


def _facts(origin: Mapping[str, Any]) -> dict[str, str]:
    machine = origin["machine"]
    return {
        "date (UTC)": origin["date"][:16].replace("T", " "),
        "commit": (origin["commit"] or "unknown")[:12]
        + (" with changes" if origin["modified"] else ""),
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB",
        "system": machine["system"],
        "load": f"{machine['load_average'][0]:.1f}",
        "software": ", ".join([f"Python {machine['python']}", *origin["software"]]),
        "options": f"`{origin['options'] or 'none'}`",
        "seed": str(origin["seed"]),
    }


def _listed(facts: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())
