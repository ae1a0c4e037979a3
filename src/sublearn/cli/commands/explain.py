"""`sublearn explain`: the features behind the score of a label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Columns, DataFormat, Json, Labels, Model, Separator
from sublearn.kinds.base import Form, Refused
from sublearn.typing import Matrix

if TYPE_CHECKING:
    from sublearn.cli.asking import Opened

__all__ = ["command"]


Row = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", show_default=False, help="Row of DATA, the first is 1."),
]
OneText = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", show_default=False, help="Explain this text (models of raw text)."
    ),
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="LABEL",
        show_default="the best one",
        help="Label to explain; may be repeated.",
    ),
]
MostFeatures = Annotated[
    int, typer.Option("--k", "-k", min=1, metavar="N", help="Most features to list.")
]
MaybeData = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Data file of which `--row` is explained; not with `--text`.",
    ),
]


def command(
    model: Model,
    data: MaybeData = None,
    row: Row = None,
    text: OneText = None,
    label: Label = None,
    k: MostFeatures = 10,
    labels: Labels = None,
    data_format: DataFormat = None,
    separator: Separator = None,
    columns: Columns = None,
    json: Json = False,
) -> None:
    """Show what speaks for and against a label: value times weight of each feature, and the bias.

    The parts add up to the score that `sublearn predict` writes; of a label in a taxonomy, to the
    score of its own node. Without `--label` the best label of the row is explained. A model of
    numbers is explained alike.

    Example: `sublearn explain wiki.model test.txt --row 3 --label 17`

    Example: `sublearn explain tags.model --text "A history of lighthouses" --label history`
    """
    from sublearn.cli.asking import open_model
    from sublearn.cli.console import print_json

    _refuse_unclear(data, row, text)
    opened = open_model(model)
    form = Form(labels, data_format, separator=separator, columns=columns)
    item = _read(opened, data, row, text, form)
    found = opened.kind.explain(opened.model, item, label or [], k)
    if json:
        print_json({"explanations": [explanation.to_dict() for explanation in found]})
    else:
        print("\n\n".join(map(str, found)))


def _refuse_unclear(data: Path | None, row: int | None, text: str | None) -> None:
    if text is None and data is None:
        raise Refused("DATA", "must be a data file, or --text given, got none")
    if text is not None and data is not None:
        raise Refused("DATA", "must not be given with --text, got both")
    if data is not None and row is None:
        raise Refused("--row", "must say which row of DATA, got none")
    if text is not None and row is not None:
        raise Refused("--row", "needs DATA, got --text")


def _read(
    opened: Opened, data: Path | None, row: int | None, text: str | None, form: Form
) -> Matrix | list[object]:
    """One row: a list with one text, or a matrix with one row."""
    if data is None or row is None:
        opened.check(Form(text=True))
        return [text]
    if not opened.kind.explains:  # it says so itself, whatever the data are
        return []
    opened.check(form)
    asked = opened.read(data, form, needs_truth=False)
    if row > len(asked):
        raise Refused("--row", f"must be at most {len(asked)}, got {row}")
    return asked.items[row - 1 : row]
