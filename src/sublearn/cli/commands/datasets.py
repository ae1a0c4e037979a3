"""`sublearn datasets`: what data sets there are to download, and downloading one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Json
from sublearn.kinds.base import Refused

if TYPE_CHECKING:
    from sublearn.datasets.shelf import Description

__all__ = ["command"]

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", show_default=False, help="A set to download; without it, all are listed."
    ),
]
Home = Annotated[
    Path | None,
    typer.Option(
        "--data-home",
        metavar="FOLDER",
        file_okay=False,
        show_default="SUBLEARN_DATA_HOME, else the user's cache",
        help="Where downloaded sets are kept.",
    ),
]


def command(name: Name = None, data_home: Home = None, json: Json = False) -> None:
    """List the data sets that can be downloaded, or download NAME.

    A set is downloaded once and checked; a download that broke off goes on where it ended. The line
    of Python that loads it is printed then.

    Example: `sublearn datasets`

    Example: `sublearn datasets eurlex-4k`
    """
    import sublearn.datasets
    from sublearn.cli.console import out, print_json

    known = {one.name: one for one in sublearn.datasets.list_datasets()}
    if name is None:
        _list(list(known.values()), json)
        return
    if name not in known:
        raise Refused("NAME", f"must be one of {', '.join(known)}, got {name}")
    one = known[name]
    function = getattr(sublearn.datasets, one.function)
    arguments = [] if one.argument is None else [one.argument]
    function(*arguments, data_home=data_home)
    folder = sublearn.datasets.data_home(data_home) / one.name
    if json:
        print_json({"name": one.name, "folder": str(folder), "licence": one.licence})
    else:
        out.print(f"{one.name} is in {folder}: {one.call}", soft_wrap=True, markup=False)


def _list(sets: list[Description], json: bool) -> None:
    from sublearn.cli.console import out, print_json, table

    if json:
        fields = ("name", "call", "what", "licence", "page", "sums")
        print_json({"datasets": [{key: getattr(one, key) for key in fields} for one in sets]})
        return
    grid = table(["name", "what", "licence"])
    for column in grid.columns:
        column.justify = "left"
    for one in sets:
        grid.add_row(one.name, one.what, one.licence)
    out.print(grid)
