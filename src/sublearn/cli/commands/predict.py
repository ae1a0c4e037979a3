"""`sublearn predict`: what a model says of each item of a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import (
    FLAG,
    Csv,
    Data,
    DataForm,
    Model,
    output_option,
    with_groups,
)
from sublearn.kinds.base import Refused, Wish

__all__ = ["command"]

K = Annotated[
    int | None,
    typer.Option("--k", "-k", min=1, metavar="N", show_default="5", help="Labels per row."),
]
Output = Annotated[
    Path | None,
    output_option("standard output", "Where to write; the ending says the format."),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="text: `label:score` pairs with tabs between. jsonl: one object a row. csv: a table "
        "with names. npz: arrays.",
        show_default="by the ending of FILE, else text",
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        metavar=FLAG,
        help="Write probabilities instead of scores (calibrated models).",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        show_default=False,
        help="Leave out labels with a smaller score, or probability; a row may then have none.",
    ),
]
JsonLines = Annotated[
    bool, typer.Option("--json", metavar=FLAG, help="One JSON object a row: --format jsonl.")
]


@with_groups
def command(
    model: Model,
    data: Data,
    *,
    k: K = None,
    threshold: Threshold = None,
    probabilities: Probabilities = False,
    output: Output = None,
    format: Format = None,
    json: JsonLines = False,
    csv: Csv = False,
    form: DataForm,
) -> None:
    """Write what MODEL says of each row of DATA: the k best labels, best first, or as its kind is.

    Rows are prepared as they were when the model was fitted, and labels that DATA carries are
    ignored. A model of numbers writes one number a row, one of sequences (chain) the tokens of DATA
    with their tags as the last column, one of latent features zeros and ones, an index the numbers
    of the nearest rows, one of words the nearest words of the word on each line. For a model of raw
    text a line without a tab is text without labels. Each row has its answer, in the order of DATA;
    that of a row that is empty, or has no word that the model knows, is empty, and a warning counts
    them.

    Example: `sublearn predict wiki.model test.txt -k 3 | head`

    Example: `echo "A history of lighthouses" | sublearn predict tags.model - --json`
    """
    from sublearn.cli.asking import open_model
    from sublearn.cli.writing import choose_format, write_answers
    from sublearn.io.files import check_target

    check_target(output, "--output")
    opened = open_model(model)
    chosen = choose_format(_named(format, json=json, csv=csv), output, opened.kind)
    wish = Wish(k, probabilities, threshold)
    opened.check(form.form(), wish)
    asked = opened.read(data, form.form(), needs_truth=False)
    answers = opened.answers(asked, wish)
    write_answers(opened.kind, opened.model, answers, wish, output, chosen)


def _named(format: str | None, *, json: bool, csv: bool) -> str | None:
    given = [name for name, is_given in (("jsonl", json), ("csv", csv)) if is_given]
    if format is not None:
        given.append(format)
    if len(set(given)) > 1:
        raise Refused("--format", f"must be one, got {' and '.join(given)}")
    return given[0] if given else None
