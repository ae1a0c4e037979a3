"""`sublearn explain`: the features behind the score of a label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Columns, DataForm, DataFormat, Json, Labels, Model, Separator
from sublearn.typing import Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.extreme import Explanation

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

    The parts add up to the score that `sublearn predict` writes. Without `--label` the best label
    of the row is explained.

    Example: `sublearn explain wiki.model test.txt --row 3 --label 17`

    Example: `sublearn explain tags.model --text "A history of lighthouses" --label history`
    """
    import sublearn
    from sublearn.cli.console import print_json
    from sublearn.cli.data import refuse_without

    _refuse_unclear(data, row, text)
    fitted = sublearn.load(model)
    refuse_without(fitted, "explain", "MODEL")
    form = DataForm(labels, data_format, separator=separator, columns=columns)
    x = _read(fitted, data, row, text, form)
    found = _explain(fitted, x, label, k)
    if json:
        print_json({"explanations": [explanation.to_dict() for explanation in found]})
    else:
        print("\n\n".join(map(str, found)))


def _refuse_unclear(data: Path | None, row: int | None, text: str | None) -> None:
    if text is None and data is None:
        raise typer.BadParameter(
            "must be a data file, or --text given, got none", param_hint="DATA"
        )
    if text is not None and data is not None:
        raise typer.BadParameter("must not be given with --text, got both", param_hint="DATA")
    if data is not None and row is None:
        raise typer.BadParameter("must say which row of DATA, got none", param_hint="--row")
    if text is not None and row is not None:
        raise typer.BadParameter("needs DATA, got --text", param_hint="--row")


def _read(
    model: BaseEstimator,
    data: Path | None,
    row: int | None,
    text: str | None,
    form: DataForm,
) -> Matrix | list[str]:
    """One row: a list with one text, or a matrix with one row."""
    from sublearn.cli.data import read_for_prediction
    from sublearn.io.prepared import is_text_model

    if data is None or row is None:
        if not is_text_model(model):
            raise typer.BadParameter(
                "needs a model that was fitted to text, got one fitted to numbers",
                param_hint="--text",
            )
        return [text]
    X, is_empty = read_for_prediction(data, model, form)
    n_rows = len(is_empty)
    if row > n_rows:
        raise typer.BadParameter(f"must be at most {n_rows}, got {row}", param_hint="--row")
    return X[row - 1 : row]


def _explain(
    model: BaseEstimator, x: Matrix | list[str], labels: list[str] | None, k: int
) -> list[Explanation]:
    from sublearn.cli.data import find_label
    from sublearn.io.prepared import feature_names, is_text_model

    if labels:
        wanted = [model.classes_[find_label(model, name)] for name in labels]
    else:
        wanted = [model.predict_top_k(x, 1)[0][0, 0]]
    if is_text_model(model):
        return [model.explain(x[0], label, k) for label in wanted]
    names = feature_names(model)
    return [model.explain(x, label, k, feature_names=names) for label in wanted]
