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
    check_folder,
    output_option,
    with_groups,
)
from sublearn.typing import LabelsLike, Matrix

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
    import sublearn
    from sublearn.cli.console import facts, print_json, print_titled
    from sublearn.cli.data import read_rows, refuse_no_rows, refuse_without

    if method not in _METHODS:
        raise typer.BadParameter(
            f"must be one of {', '.join(_METHODS)}, got {method}", param_hint="--method"
        )
    target = output or model
    check_folder(target, "--output")
    fitted = sublearn.load(model)
    refuse_without(fitted, "calibrate", "MODEL")
    X, y = _without_empty(*read_rows(data, fitted, form))
    refuse_no_rows(X, data)
    fitted.calibrate(X, y, method, min_positives=min_positives)
    fitted.save(target)
    calibration = getattr(fitted, "classifier_", fitted).calibration_
    n_shared = int(calibration.is_pooled.sum())
    found = {
        "model": str(target),
        "method": method,
        "labels": len(fitted.classes_),
        "labels_with_own_map": len(calibration.is_pooled) - n_shared,
        "labels_that_share_one": n_shared,
    }
    if json:
        print_json(found)
    elif not quiet:
        rows = [(key.replace("_", " "), str(value)) for key, value in found.items()]
        print_titled(f"{model.name} calibrated on {data.name}", facts(rows))


def _without_empty(X: Matrix | list[str], y: LabelsLike) -> tuple[Matrix | list[str], LabelsLike]:
    """Texts with something in them: others get no answer, hence no probability."""
    if not isinstance(X, list) or not isinstance(y, list):
        return X, y
    pairs = [(text, labels) for text, labels in zip(X, y, strict=True) if text.strip()]
    return [text for text, _ in pairs], [labels for _, labels in pairs]
