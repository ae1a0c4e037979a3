"""`sublearn shards`: cut a model into files by its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import Model

__all__ = ["command"]

Folder = Annotated[
    Path, typer.Argument(metavar="OUT", show_default=False, help="New folder for the shards.")
]
Shards = Annotated[
    int, typer.Option("--shards", "-n", min=1, help="Into how many files of about equal size.")
]


def command(model: Model, folder: Folder, shards: Shards = 2) -> None:
    """Cut MODEL into shards by its labels.

    The answers of all shards together are those of MODEL, to the last bit. OUT/shards.json is taken
    wherever a saved model is: by `predict`, `serve` and the others.

    Example: `sublearn shards tags.model tags --shards 8`, then `sublearn serve tags/shards.json`
    """
    import sublearn
    from sublearn.extreme import save_shards
    from sublearn.kinds.base import Refused

    try:
        save_shards(sublearn.load(model), folder, shards)
    except ValueError as error:
        name, _, words = str(error).partition(" ")
        known = {"save_shards.n_shards": "--shards", "save_shards.folder": "OUT",
                 "save_shards.model": "MODEL"}  # fmt: skip
        if name not in known:
            raise
        raise Refused(known[name], words) from None
