"""Where and how figures were taken: a list for one run, a list and a table for several.

What all runs of a page share is said once; the table has a line for each run with the rest. A page
that was put together from several pages is joined by :func:`joined_page`, which changes no figure:
tables stay as they are, in their order, and one section at the end tells where they are from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["TITLE", "joined_page", "written"]

TITLE = "### Where and how"
_TABLES = "tables"
_DATE = "date (UTC)"
_COMMENT = re.compile(r"^<!-- Written by .*? -->$", re.M)
_FACT = re.compile(r"^- (?P<name>[\w ]+): (?P<value>.*)$")
_ON_DISK = re.compile(r" ?--(runs \S+?(?=[ `])|resume)")  # where a run kept what it had done
_NAMES = re.compile(r"^(`[^`]+`(, )?)+:$")

#: What is known of a run, in words, by the name of the fact; `tables` says which are its own.
Facts = Mapping[str, str]


def written(runs: Sequence[Facts]) -> str:
    """The facts of one run as a list; of several, shared facts as a list and others as a table."""
    if len(runs) == 1:
        return _listed({name: value for name, value in runs[0].items() if name != _TABLES})
    runs = [_split(run) for run in runs]
    names = list(dict.fromkeys(name for run in runs for name in run))
    is_shared = {name: len({run.get(name, "") for run in runs}) == 1 for name in names}
    shared = {name: runs[0].get(name, "") for name in names if is_shared[name] and name != _TABLES}
    shared = {name: value for name, value in shared.items() if value}
    columns = [name for name in names if not is_shared[name] or name == _TABLES]
    rows = [columns, ["---"] * len(columns)]
    rows += [[run.get(name, "") for name in columns] for run in runs]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{_listed(shared)}\n\n{table}" if shared else table


def joined_page(text: str) -> str:
    """A page of tables with one section on where and how, whatever it was put together from."""
    comments = list(dict.fromkeys(_COMMENT.findall(text)))
    tables, runs = [], []
    for piece in _COMMENT.split(text):
        body, _, end = piece.partition(TITLE)
        tables += [body.strip()] if body.strip() else []
        runs += _runs(end)
    if not runs:
        raise ValueError(f"a page with a section {TITLE!r} is needed, got none")
    return "\n\n".join([*comments, *tables, TITLE, written(runs)]) + "\n"


def _listed(facts: Facts) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _split(run: Facts) -> dict[str, str]:
    """Facts as columns of a table: the load apart from the system, options but for the tables."""
    found = {_TABLES: run.get(_TABLES, "")}
    for name, value in run.items():
        if name == "date":
            found[_DATE] = value[:16].replace("T", " ")
        elif name == "system":
            found[name], _, load = value.partition(", load average ")
            if load:
                found["load"] = load.removesuffix(" at the end")
        elif name == "options":
            value = _ON_DISK.sub("", value).replace("` ", "`")
            only = re.search(r"--only((?: [^ `-][^ `]*)+)", value)
            own = "" if only is None else ", ".join(f"`{word}`" for word in only[1].split())
            found[_TABLES] = found[_TABLES] or own
            is_said = value == f"`--only {found[_TABLES].replace('`, `', ' ').strip('`')}`"
            found[name] = "" if is_said else value
        elif name != _TABLES:
            found[name] = value
    return found


def _runs(section: str) -> list[dict[str, str]]:
    """The runs that a section tells of, in either form."""
    runs: list[dict[str, str]] = []
    tables, is_new = "", True
    columns: list[str] = []
    shared: dict[str, str] = {}
    for line in section.strip().splitlines():
        fact = _FACT.match(line)
        if _NAMES.match(line):
            tables, is_new = line.removesuffix(":"), True
        elif fact:
            if is_new or fact["name"] in runs[-1]:
                runs.append({_TABLES: tables} if tables else {})
                tables, is_new = "", False
            runs[-1][fact["name"]] = fact["value"]
        elif line.startswith("|") and not columns:
            columns, shared = _cells(line), runs.pop() if runs else {}
        elif line.startswith("|") and not line.startswith("| ---"):
            own = dict(zip(columns, _cells(line), strict=True))
            runs.append({_TABLES: own.pop(_TABLES), **shared, **own})
    return runs


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
