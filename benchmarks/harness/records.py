"""What a run keeps: a line of JSON for each row of each table, with where and how it was taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.machine import commit, machine, now
from harness.table import Figures, Table

__all__ = ["append", "origin_of", "read", "records_of", "tables_of"]

Record = dict[str, Any]


def origin_of(seed: int, options: str, **more: Any) -> dict[str, Any]:
    """Where, when and how figures were taken."""
    return {
        **commit(), "seed": seed, "options": options, "date": now(), "machine": machine(), **more
    }  # fmt: skip


def records_of(
    script: str, table: Table, found: Figures, origin: Mapping[str, Any]
) -> list[Record]:
    """A record for each row, which can be read without the others."""
    shared = {
        "table": f"{script}/{table.name}",
        "page": script if table.page == "" else table.page,
        "title": table.title,
        "note": " ".join(part for part in (table.note, found.note) if part),
        "columns": dict(found.columns),
        "origin": dict(origin),
    }
    kept = [{**shared, "row": n, "cells": list(row)} for n, row in enumerate(found.rows)]
    if found.charts and kept:
        charts = [c if isinstance(c, dict) else asdict(c) for c in found.charts]
        own = {"name": table.name, "title": table.title}
        kept[0]["charts"] = [c | {k: c[k] or own[k] for k in own} for c in charts]
    return kept


def append(path: Path, records: Iterable[Record]) -> None:
    """Add lines to a file of records, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def read(path: Path) -> list[Record]:
    """All records of a file; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tables_of(records: Iterable[Record]) -> list[Sequence[Record]]:
    """Records put together by measurement of a table, in the order in which they were taken."""
    found: list[list[Record]] = []
    for record in records:
        is_next = found and found[-1][0]["table"] == record["table"] and record["row"] > 0
        found[-1].append(record) if is_next else found.append([record])
    return found
