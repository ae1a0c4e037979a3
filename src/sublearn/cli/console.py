"""What the commands print, and where: results on standard output, all else on standard error."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = [
    "err",
    "facts",
    "in_bytes",
    "out",
    "print_json",
    "print_titled",
    "say_error",
    "say_warning",
    "table",
    "working",
]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def say_error(sentence: str) -> None:
    """One red sentence on standard error."""
    err.print(f"[bold red]error:[/] [red]{escape(sentence)}[/]", soft_wrap=True)


def say_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one yellow sentence on standard error; also for `warnings.showwarning`."""
    err.print(f"[bold yellow]warning:[/] {escape(str(message))}", soft_wrap=True)


def working(sentence: str) -> contextlib.AbstractContextManager[object]:
    """A spinner on standard error for work without a progress bar; nothing if that is a file."""
    return err.status(escape(sentence))


def print_json(value: Mapping[str, object]) -> None:
    """One JSON object on one line of standard output; null stands for infinity and NaN."""
    print(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(columns: Iterable[str]) -> Table:
    """An empty table in the look of all commands; columns after the first are right-aligned."""
    grid = Table(box=None, header_style="dim")
    for i, name in enumerate(columns):
        grid.add_column(name, justify="right" if i else "left", overflow="fold")
    return grid


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Two columns: what, and its value."""
    grid = Table(box=None, show_header=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, value in rows:
        grid.add_row(what, escape(value))
    return grid


def print_titled(title: str, grid: Table) -> None:
    """A table under its title on standard output."""
    out.print(f"[bold]{escape(title)}[/]", soft_wrap=True)
    out.print(grid)


def in_bytes(n: int) -> str:
    """A file size for people: 812 bytes, 3.4 MB."""
    if n < 1000:
        return f"{n} bytes"
    size = float(n)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"
