"""`sublearn evaluate`: how good a model's rankings are on labelled data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sublearn.cli.options import (
    Data,
    DataForm,
    Json,
    Model,
    given_of,
    refuse_given,
    with_groups,
)
from sublearn.typing import JsonObject, LabelsLike, Matrix

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table
    from sklearn.base import BaseEstimator

__all__ = ["command"]

_Number = TypeVar("_Number", int, float)

Cuts = Annotated[
    str | None,
    typer.Option(
        "--k", "-k", metavar="N,...", show_default="1,3,5", help="Where to cut the rankings."
    ),
]
Train = Annotated[
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
]
Propensity = Annotated[
    str,
    typer.Option(
        metavar="A,B",
        help="Constants of the propensities: 0.5,0.4 for data from Wikipedia, 0.6,2.6 for "
        "Amazon, 0.55,1.5 for all other.",
    ),
]


@dataclass(frozen=True)
class Rankings:
    """How rankings of labels are judged."""

    k: Cuts = None
    train: Train = None
    propensity: Propensity = "0.55,1.5"

    def cuts(self) -> list[int]:
        """Where to cut."""
        return _numbers(self.k or "1,3,5", int, "--k")

    def cuts_within(self, n_labels: int) -> list[int]:
        """Where to cut, but not beyond the labels there are."""
        cuts = self.cuts()
        if self.k is None:
            return [cut for cut in cuts if cut <= n_labels]
        if max(cuts) > n_labels:
            raise typer.BadParameter(
                f"must be at most the number of labels ({n_labels}), got {max(cuts)}",
                param_hint="--k",
            )
        return cuts

    def constants(self) -> list[float]:
        """A and B of the propensities."""
        found = _numbers(self.propensity, float, "--propensity")
        if len(found) != 2:
            raise typer.BadParameter(
                f"must be two numbers, got {self.propensity}", param_hint="--propensity"
            )
        return found

    def refuse(self, reason: str) -> None:
        """Refuse them for a model that ranks nothing."""
        refuse_given({"k": self.k, "train": self.train}, reason)


@dataclass(frozen=True)
class _Report:
    """What is printed as JSON, or as a table under a title."""

    figures: JsonObject
    title: str
    grid: Callable[[], Table]


@with_groups
def command(
    model: Model, data: Data, *, rankings: Rankings, form: DataForm, json: Json = False
) -> None:
    """Measure a model on the labelled rows of DATA.

    Prints precision, nDCG and recall of the k best labels in percent; with
    `--train` also the propensity-scored versions, which count rare labels more. Labels of DATA
    that the model never saw count as missed. Of a calibrated model also the expected calibration
    error (ECE): how far, on average, the probability of a label that is among the k best is from
    the share of such labels that are right. A row without text is answered with no label and counts
    as missed.

    Of a model of labels in a taxonomy (hiclass, hml): precision, recall and F1 with the ancestors
    of all labels included, and the F1 of each level.

    Of a model of sequences (chain): tokens and whole sequences with the right tags.

    Of a model of numbers (sparse-linear): R2, mean absolute error and root mean squared error.

    Example: `sublearn evaluate wiki.model test.txt --train train.txt --propensity 0.5,0.4`
    """
    import sublearn
    from sublearn.cli.console import print_json, print_titled
    from sublearn.cli.data import refuse_unless_of_rows
    from sublearn.cli.tagging import is_tagger

    rankings.cuts()
    rankings.constants()
    fitted = sublearn.load(model)
    if is_tagger(fitted):
        rankings.refuse("is not for a model of sequences (chain)")
        refuse_given(given_of(form), "is not for a model of sequences (chain)")
        report = _judge_tags(fitted, data)
    else:
        refuse_unless_of_rows(fitted)
        report = _judge_rows(fitted, data, rankings, form)
    if json:
        print_json(report.figures)
    else:
        print_titled(f"{model.name} on {data.name}, {report.title}", report.grid())


def _judge_rows(model: BaseEstimator, data: Path, rankings: Rankings, form: DataForm) -> _Report:
    """Numbers, labels of a taxonomy, or rankings, as the model predicts them."""
    from sublearn.cli.data import find_empty, predicts_numbers, read_rows, refuse_no_rows

    is_of_numbers, is_of_tree = predicts_numbers(model), hasattr(model, "taxonomy_")
    if is_of_numbers:
        rankings.refuse("needs a model of labels, got one of numbers")
    elif is_of_tree:
        rankings.refuse("needs a model of plain labels, got a taxonomy's")
    else:
        rankings.cuts_within(len(model.classes_))
    X, truth = read_rows(data, model, form)
    refuse_no_rows(X, data)
    is_empty = find_empty(X, data)
    if is_of_numbers:
        return _judge_numbers(model.predict(X), truth)
    if is_of_tree:
        return _judge_tree(model, X, truth)
    return _judge_rankings(model, X, truth, is_empty, rankings, form)


def _judge_tags(model: BaseEstimator, data: Path) -> _Report:
    from sublearn.cli.tagging import judge_tags

    figures = judge_tags(model, data)
    shares = dict(figures)
    n_sequences, n_tokens = shares.pop("sequences"), shares.pop("tokens")
    title = f"{n_tokens:,} tokens in {n_sequences:,} sequences, percent"
    return _Report(figures, title, lambda: _percents(shares))


def _judge_tree(model: BaseEstimator, X: Matrix, truth: LabelsLike) -> _Report:
    """How good labels of a taxonomy are, ancestors included."""
    from sublearn.cli.taxonomies import hierarchical_scores

    scores = hierarchical_scores(model, X, truth)
    title = f"{X.shape[0]:,} rows, percent, ancestors included"
    return _Report({"rows": X.shape[0], **scores}, title, lambda: _percents(scores))


def _judge_numbers(found: np.ndarray, numbers: LabelsLike) -> _Report:
    """How far predicted numbers are from the true ones."""
    import numpy as np
    from sklearn.metrics import r2_score

    from sublearn.cli.console import facts

    truth = np.asarray(numbers)
    errors = found - truth
    figures = {
        "R2": float(r2_score(truth, found)) if len(truth) > 1 else None,
        "MAE": float(np.abs(errors).mean()),
        "RMSE": float(np.sqrt((errors**2).mean())),
    }
    rows = [(name, f"{value:.4g}") for name, value in figures.items() if value is not None]
    title = f"{len(truth):,} rows"
    return _Report({"rows": len(truth), **figures}, title, lambda: facts(rows))


def _judge_rankings(
    model: BaseEstimator,
    X: Matrix | list[str],
    truth: LabelsLike,
    is_empty: np.ndarray,
    rankings: Rankings,
    form: DataForm,
) -> _Report:
    from sublearn.cli.console import table
    from sublearn.cli.data import read_rows

    cuts = rankings.cuts_within(len(model.classes_))
    ranked, _ = model.predict_top_k(X, max(cuts))
    seen = None if rankings.train is None else read_rows(rankings.train, model, form)[1]
    metrics = _measure(model.classes_, truth, ranked, is_empty, cuts, seen, rankings.constants())
    if hasattr(model, "predict_proba_top_k"):
        metrics["ECE"] = _calibration_error(model, X, truth, is_empty, cuts)

    def grid() -> Table:
        found = table(["k", *(f"{name}@k" for name in metrics)])
        for i, cut in enumerate(cuts):
            found.add_row(str(cut), *(f"{100 * values[i]:.2f}" for values in metrics.values()))
        return found

    figures = {
        f"{name}@{k}": float(v[i]) for name, v in metrics.items() for i, k in enumerate(cuts)
    }
    return _Report({"rows": len(ranked), **figures}, f"{len(ranked):,} rows, percent", grid)


def _percents(shares: dict[str, float]) -> Table:
    from sublearn.cli.console import facts

    return facts((name.replace("_", " "), f"{100 * v:.2f}") for name, v in shares.items())


def _calibration_error(
    model: BaseEstimator,
    X: Matrix | list[str],
    truth: LabelsLike,
    is_empty: np.ndarray,
    cuts: list[int],
) -> np.ndarray:
    import numpy as np

    from sublearn.metrics import expected_calibration_error

    if is_empty.all():
        return np.full(len(cuts), np.nan)
    labels, found = model.predict_proba_top_k(X, max(cuts))
    if isinstance(truth, list) and is_empty.any():
        labels, found = labels[~is_empty], found[~is_empty]
        truth = [names for names, is_out in zip(truth, is_empty, strict=True) if not is_out]
    classes = model.classes_
    return np.array(
        [
            expected_calibration_error(truth, labels[:, :k], found[:, :k], classes=classes)
            for k in cuts
        ]
    )


def _numbers(text: str, kind: type[_Number], option: str) -> list[_Number]:
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
    is_empty: np.ndarray,
    cuts: list[int],
    seen: LabelsLike | None,
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
    y_pred[is_empty] = -1  # which is no label
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
