"""Records as Markdown, for a page that shows figures nobody typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.growth import growth_rows, joined
from harness.provenance import written
from harness.report import comparison, facts_in_words, shapes_in_words

__all__ = ["origin", "render", "table"]

#: Options whose values are places on one machine.
_PLACES = {"--data", "--json", "--markdown"}


def render(records: Sequence[dict[str, Any]]) -> str:
    """A section per record: its tables, failures, and where and how the figures were taken.

    Series of growth that were measured in pieces, on one commit, become one table.
    """
    head = "<!-- Written by a benchmark script with --markdown; do not edit. -->\n\n## Results\n"
    return "\n".join([head, *(_section(group) for group in _grouped(records))])


def _grouped(records: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records that make one section: pieces of one growth together, all others alone."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for number, record in enumerate(records):
        growths = record.get("growth", [])
        key = (growths[0]["axis"], record["commit"], record["seed"]) if growths else number
        groups.setdefault(key, []).append(record)
    return list(groups.values())


def _section(records: Sequence[dict[str, Any]]) -> str:
    record = records[0]
    growths = joined([growth for part in records for growth in part.get("growth", [])])
    parts = [written([origin(record)])]
    if len(records) > 1:
        parts[0] += f"\n- pieces: {len(records)}, the last of {records[-1]['date']}"
    if growths:
        parts += [f"### Growth in {growths[0]['axis']}: cost = a * size^b", *_grown(growths)]
    else:
        by_problem = groupby(record["results"], key=lambda result: result["problem"])
        for problem, results in by_problem:
            parts += _compared(problem, list(results), record)
    parts += [f"`{name}` could not be loaded: {why}" for name, why in _unloaded(record)]
    return "\n\n".join(parts) + "\n"


def _compared(problem: str, results: list[dict[str, Any]], record: dict[str, Any]) -> list[str]:
    shapes = record["problems"][problem]
    headings, rows = comparison(results, shapes)
    threads, repeat = record["threads"], record["repeat"]
    limits = ", ".join(map(str, threads)) if isinstance(threads, list) else threads
    facts = facts_in_words(record.get("facts", {}).get(problem, {}))
    sizes = "; ".join(part for part in (shapes_in_words(shapes), facts) if part)
    conditions = f"{sizes}; threads {limits}, median of {repeat}."
    failures = [
        f"`{r['entrant']}` failed: `{r['error']}`" for r in results if r["status"] == "failed"
    ]
    return [f"### {problem}", conditions, table(headings, rows, n_names=1), *failures]


def _grown(growths: list[dict[str, Any]]) -> list[str]:
    headings, rows = growth_rows(growths)
    failures = [
        f"`{growth['entrant']}` at {size}: `{error}`"
        for growth in growths
        for size, error in zip(growth["sizes"], growth["errors"], strict=True)
        if error
    ]
    return [table(headings, rows, n_names=2), *failures]


def _unloaded(record: dict[str, Any]) -> list[tuple[str, str]]:
    return list(record.get("unloaded", {}).items())


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_names: int) -> str:
    """The first `n_names` columns hold names, the others numbers; a row begins with a name."""
    rule = ["---"] * n_names + ["---:"] * (len(headings) - n_names)
    named = [[f"`{row[0]}`" if row[0] else "", *row[1:]] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [headings, rule, *named])


def origin(record: Mapping[str, Any]) -> dict[str, str]:
    """Where, when and how the figures of a record were taken."""
    machine = record["machine"]
    commit = (record["commit"] or "unknown")[:12] + (" with changes" if record["modified"] else "")
    load = machine["load_average"][0]
    return {
        "date": record["date"],
        "commit": commit,
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB",
        "system": f"{machine['system']}, load average {load:.1f} at the end",
        "software": ", ".join([f"Python {machine['python']}", *_versions(record)]),
        "options": f"`{' '.join(_portable(record['arguments'])) or 'none'}`",
        "seed": str(record["seed"]),
    }


def _versions(record: Mapping[str, Any]) -> list[str]:
    """Our foundations, and the package that a rival's environment is named for."""
    found = []
    for environment, content in record["environments"].items():
        ours = ("numpy", "scipy", "scikit-learn", "sublearn", "annif", "omikuji")
        for name, version in content["packages"].items():
            is_named = name in ours if environment == "main" else environment in name.lower()
            found += [f"{name} {version}"] if is_named else []
    return found


def _portable(arguments: Sequence[str]) -> list[str]:
    """The arguments without places on this machine, which say nothing to a reader."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        is_place = argument.partition("=")[0] in _PLACES
        if not (skip or is_place):
            kept.append(argument)
        skip = is_place and "=" not in argument
    return kept
