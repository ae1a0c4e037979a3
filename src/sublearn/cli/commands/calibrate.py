"""`sublearn calibrate`: teach a saved model which probability a score stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import (
    Data,
    DataForm,
    Json,
    Model,
    Quiet,
    output_option,
    with_groups,
)
from sublearn.kinds.base import Refused

__all__ = ["command"]

_METHODS = ("sigmoid", "isotonic")

Output = Annotated[
    Path | None,
    output_option("MODEL itself", "Where to save the calibrated model.", metavar="OUT"),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="sigmoid: two numbers a label (Platt). isotonic: a non-decreasing line.",
    ),
]
MinPositives = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        show_default="20, isotonic 50",
        help="Labels that fewer rows carry share one line.",
    ),
]


@with_groups
def command(
    model: Model,
    data: Data,
    *,
    output: Output = None,
    method: Method = "sigmoid",
    min_positives: MinPositives = None,
    form: DataForm,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn probabilities from the labelled rows of DATA, which the model must not have seen.

    Afterwards `sublearn predict --probabilities` writes them and `sublearn evaluate` judges them.
    The order of predicted labels stays as it is.

    Example: `sublearn calibrate wiki.model heldout.txt`
    """
    from sublearn.cli.asking import open_model
    from sublearn.cli.console import facts, print_json, print_titled

    if method not in _METHODS:
        raise Refused("--method", f"must be one of {', '.join(_METHODS)}, got {method}")
    target = output or model
    from sublearn.io.files import check_target

    check_target(target, "--output")
    opened = open_model(model)
    opened.kind.check_calibration(opened.model)
    opened.check(form.form())
    asked = opened.read(data, form.form(), needs_truth=True)
    if not len(asked):
        raise ValueError(f"{data}: must have at least one row, got 0")
    n_shared, n_labels = opened.kind.calibrate(opened.model, asked, method, min_positives)
    opened.model.save(target)
    found = {
        "model": str(target),
        "method": method,
        "labels": len(opened.model.classes_),
        "labels_with_own_map": n_labels - n_shared,
        "labels_that_share_one": n_shared,
    }
    if json:
        print_json(found)
    elif not quiet:
        rows = [(key.replace("_", " "), str(value)) for key, value in found.items()]
        print_titled(f"{model.name} calibrated on {data.name}", facts(rows))
