"""`sublearn evaluate`: how good a model's rankings are on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublearn.cli.options import (
    Columns,
    Data,
    DataFormat,
    Json,
    Labels,
    Model,
    Separator,
    Text,
    TextForm,
    refuse_given,
)
from sublearn.typing import JsonObject, LabelsLike, Matrix

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

__all__ = ["command"]


def command(
    model: Model,
    data: Data,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            "-k",
            metavar="N,...",
            show_default="1,3,5",
            help="Where to cut the rankings.",
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            "--train",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Training data; adds propensity-scored precision and nDCG, with propensities "
            "estimated from how often its rows carry each label.",
        ),
    ] = None,
    propensity: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Constants of the propensities: 0.5,0.4 for data from Wikipedia, 0.6,2.6 for "
            "Amazon, 0.55,1.5 for all other.",
        ),
    ] = "0.55,1.5",
    labels: Labels = None,
    data_format: DataFormat = None,
    text: Text = False,
    separator: Separator = None,
    columns: Columns = None,
    json: Json = False,
) -> None:
    """Measure a model on the labelled rows of DATA.

    Prints precision, nDCG and recall of the k best labels in percent; with
    `--train` also the propensity-scored versions, which count rare labels more. Labels of DATA
    that the model never saw count as missed. Of a calibrated model also the expected calibration
    error (ECE): how far, on average, the probability of a label that is among the k best is from
    the share of such labels that are right.

    Of a model of labels in a taxonomy (hiclass, hml): precision, recall and F1 with the ancestors
    of all labels included, and the F1 of each level.

    Of a model of sequences (chain): tokens and whole sequences with the right tags.

    Of a model of numbers (sparse-linear): R2, mean absolute error and root mean squared error.

    Example: `sublearn evaluate wiki.model test.txt --train train.txt --propensity 0.5,0.4`
    """
    import sublearn
    from sublearn.cli.data import (
        predicts_numbers,
        read_rows,
        refuse_no_rows,
        refuse_unless_of_rows,
    )
    from sublearn.cli.tagging import is_tagger, judge_tags

    cuts = _numbers(k or "1,3,5", int, "--k")
    constants = _numbers(propensity, float, "--propensity")
    if len(constants) != 2:
        raise typer.BadParameter(
            f"must be two numbers, got {propensity}", param_hint="--propensity"
        )
    fitted = sublearn.load(model)
    form = TextForm(text, separator, columns)
    if is_tagger(fitted):
        given: JsonObject = {
            "k": k,
            "train": train,
            "labels": labels,
            "data_format": data_format,
        }
        given |= {"text": text or None, "separator": separator, "columns": columns}
        refuse_given(given, "is not for a model of sequences (chain)")
        _show_tagging(judge_tags(fitted, data), title=f"{model.name} on {data.name}", json=json)
        return
    refuse_unless_of_rows(fitted)
    if predicts_numbers(fitted):
        refuse_given({"k": k, "train": train}, "needs a model of labels, got one of numbers")
        X, truth = read_rows(data, fitted, labels, data_format, form)
        refuse_no_rows(X, data)
        _show_errors(fitted.predict(X), truth, title=f"{model.name} on {data.name}", json=json)
        return
    if hasattr(fitted, "taxonomy_"):
        refuse_given({"k": k, "train": train}, "needs a model of plain labels, got a taxonomy's")
        X, truth = read_rows(data, fitted, labels, data_format, form)
        refuse_no_rows(X, data)
        _show_hierarchical(fitted, X, truth, title=f"{model.name} on {data.name}", json=json)
        return
    if k is None:
        cuts = [cut for cut in cuts if cut <= len(fitted.classes_)]
    elif max(cuts) > len(fitted.classes_):
        raise typer.BadParameter(
            f"must be at most the number of labels ({len(fitted.classes_)}), got {max(cuts)}",
            param_hint="--k",
        )
    X, truth = read_rows(data, fitted, labels, data_format, form)
    refuse_no_rows(X, data)
    ranked, _ = fitted.predict_top_k(X, max(cuts))
    seen = None if train is None else read_rows(train, fitted, labels, data_format, form)[1]
    metrics = _measure(fitted.classes_, truth, ranked, cuts, seen, constants)
    if hasattr(fitted, "predict_proba_top_k"):
        metrics["ECE"] = _calibration_error(fitted, X, truth, cuts)
    _show(metrics, cuts, len(ranked), title=f"{model.name} on {data.name}", json=json)


def _show_hierarchical(
    model: BaseEstimator, X: Matrix, truth: LabelsLike, *, title: str, json: bool
) -> None:
    """How good labels of a taxonomy are, ancestors included."""
    from sublearn.cli.console import facts, print_json, print_titled
    from sublearn.cli.taxonomies import hierarchical_scores

    scores = hierarchical_scores(model, X, truth)
    if json:
        print_json({"rows": X.shape[0], **scores})
        return
    rows = [(name, f"{100 * value:.2f}") for name, value in scores.items()]
    print_titled(f"{title}, {X.shape[0]:,} rows, percent, ancestors included", facts(rows))


def _show_tagging(figures: dict[str, float], *, title: str, json: bool) -> None:
    from sublearn.cli.console import facts, print_json, print_titled

    if json:
        print_json(figures)
        return
    n_sequences, n_tokens = figures.pop("sequences"), figures.pop("tokens")
    rows = [(name.replace("_", " "), f"{100 * value:.2f}") for name, value in figures.items()]
    print_titled(f"{title}, {n_tokens:,} tokens in {n_sequences:,} sequences, percent", facts(rows))


def _show_errors(found: np.ndarray, truth: np.ndarray, *, title: str, json: bool) -> None:
    """How far predicted numbers are from the true ones."""
    import numpy as np
    from sklearn.metrics import r2_score

    from sublearn.cli.console import facts, print_json, print_titled

    errors = found - truth
    figures = {
        "R2": float(r2_score(truth, found)) if len(truth) > 1 else None,
        "MAE": float(np.abs(errors).mean()),
        "RMSE": float(np.sqrt((errors**2).mean())),
    }
    if json:
        print_json({"rows": len(truth), **figures})
        return
    rows = [(name, f"{value:.4g}") for name, value in figures.items() if value is not None]
    print_titled(f"{title}, {len(truth):,} rows", facts(rows))


def _calibration_error(
    model: BaseEstimator, X: Matrix, truth: LabelsLike, cuts: list[int]
) -> np.ndarray:
    import numpy as np

    from sublearn.metrics import expected_calibration_error

    labels, found = model.predict_proba_top_k(X, max(cuts))
    classes = model.classes_
    return np.array(
        [
            expected_calibration_error(truth, labels[:, :k], found[:, :k], classes=classes)
            for k in cuts
        ]
    )


def _numbers(text: str, kind: type, option: str) -> list[Any]:
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) <= 0:
        raise typer.BadParameter(
            f"must be positive numbers with commas between, got {text}", param_hint=option
        )
    return numbers


def _measure(
    classes: np.ndarray,
    truth: LabelsLike,
    ranked: np.ndarray,
    cuts: list[int],
    seen: Any,
    constants: list[float],
) -> dict[str, np.ndarray]:
    """Metrics by name, one value for each cut.

    The model may know labels that the data do not carry and the other way round, so both are
    first numbered by one list of names.
    """
    import numpy as np

    from sublearn import metrics
    from sublearn.metrics.names import find_positions
    from sublearn.validation import encode_labels

    encoded = encode_labels(truth, len(ranked), for_fit=False, argument="the labels of DATA")
    _refuse_numbers_for_names(classes, encoded.classes)
    names = np.union1d(classes, encoded.classes)
    y_true = encoded.to_csr(find_positions(names, encoded.classes, argument="DATA"), len(names))
    y_pred = find_positions(names, ranked, argument="MODEL")
    out = {
        "P": metrics.precision_at_k(y_true, y_pred, cuts),
        "nDCG": metrics.ndcg_at_k(y_true, y_pred, cuts),
        "R": metrics.recall_at_k(y_true, y_pred, cuts),
    }
    if seen is not None:
        weights = metrics.propensities(seen, A=constants[0], B=constants[1], classes=names)
        out["PSP"] = metrics.psp_at_k(y_true, y_pred, weights, cuts)
        out["PSnDCG"] = metrics.psndcg_at_k(y_true, y_pred, weights, cuts)
    return {name: np.asarray(values) for name, values in out.items()}


def _refuse_numbers_for_names(classes: np.ndarray, found: np.ndarray) -> None:
    is_text = [array.dtype.kind in "UO" for array in (classes, found)]
    if len(found) and is_text[0] != is_text[1]:
        kinds = ["names" if flag else "numbers" for flag in is_text]
        raise ValueError(
            f"labels of DATA must be {kinds[0]} as those of the model are, got {kinds[1]}"
        )


def _show(
    metrics: dict[str, np.ndarray], cuts: list[int], n_rows: int, *, title: str, json: bool
) -> None:
    from sublearn.cli.console import print_json, print_titled, table

    if json:
        values = {
            f"{name}@{k}": float(v[i]) for name, v in metrics.items() for i, k in enumerate(cuts)
        }
        print_json({"rows": n_rows, **values})
        return
    grid = table(["k", *(f"{name}@k" for name in metrics)])
    for i, cut in enumerate(cuts):
        grid.add_row(str(cut), *(f"{100 * values[i]:.2f}" for values in metrics.values()))
    print_titled(f"{title}, {n_rows:,} rows, percent", grid)
