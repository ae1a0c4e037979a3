"""Records as Markdown: tables, and one section on where and how their figures were taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.records import Record, tables_of
from harness.table import Cell, form_of

__all__ = ["TITLE", "page_of", "path_of"]

TITLE = "### Where and how"
_HEAD = "<!-- Written by benchmarks/run.py; do not edit. -->"
_DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The page that is no part of docs/measured/.
_ELSEWHERE = {"extreme": "benchmarks_results"}


def path_of(page: str) -> Path:
    """The file of a page."""
    if page in _ELSEWHERE:
        return _DOCS / f"{_ELSEWHERE[page]}.md"
    return _DOCS / "measured" / f"{page}.md"


def page_of(records: Iterable[Record]) -> str:
    """A page; of a table that was measured more than once the last counts."""
    tables = {part[0]["table"]: part for part in tables_of(records)}
    parts = [_HEAD, *(_table(part) for part in tables.values())]
    origins = [(name.partition("/")[2], part[0]["origin"]) for name, part in tables.items()]
    return "\n\n".join([*parts, TITLE, _where_and_how(origins)]) + "\n"


def _table(records: Sequence[Record]) -> str:
    """Names come first, numbers stand to the right; a row begins with a name."""
    columns, first = records[0]["columns"], records[0]
    n_names = sum(form == "" for form in columns.values())
    rows = [
        [_text(*pair) for pair in zip(r["cells"], columns.values(), strict=True)] for r in records
    ]
    rule = ["---"] * n_names + ["---:"] * (len(columns) - n_names)
    named = [[f"`{row[0]}`" if row[0] else "", *row[1:]] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in [list(columns), rule, *named]]
    return "\n\n".join([f"### {first['title']}", first["note"], "\n".join(lines)])


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
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{_listed({n: runs[0][n] for n, shared in is_shared.items() if shared})}\n\n{lines}"


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
