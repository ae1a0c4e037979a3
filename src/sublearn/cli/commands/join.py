"""`sublearn join`: put together what `sublearn fit --part` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import Json, Quiet

__all__ = ["command"]

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", show_default=False, dir_okay=False,
        help="The file that the parts were fitted for, as in `--model`.",
    ),
]  # fmt: skip
Data = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]", show_default=False, dir_okay=False,
        help="The training file, if it is not where the parts read it.",
    ),
]  # fmt: skip


def command(model: Model, data: Data = None, quiet: Quiet = False, json: Json = False) -> None:
    """Put the parts of a fit together to MODEL.

    Nothing is learned here: every part must be there. If some are missing, this says which; run
    these again, and only these. DATA is read once more, to check that the parts belong to it.

    Example: `sublearn fit text records.tsv --model tags.model --part 3/100`, for each part, then
    `sublearn join tags.model`
    """
    from sublearn.cli.commands.fit import make_group
    from sublearn.cli.fitting import find_method
    from sublearn.cli.job import recall
    from sublearn.kinds.base import Refused
    from sublearn.parts import join_parts

    method, known, options = recall(Path(f"{model}.parts"))
    find_method(method)
    if data is None and not known:
        raise Refused("DATA", "must be given: the parts read it from standard input")
    words = [method, str(data or known), f"--model={model}", *options]
    words += ["--quiet"] * quiet + ["--json"] * json
    with join_parts():
        typer.main.get_command(make_group(words)).main(
            words, prog_name="sublearn fit", standalone_mode=False
        )
