"""`sublearn evaluate`: how good a model is on data whose answers are known."""

from __future__ import annotations

import csv as csv_files
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sublearn.cli.options import Csv, Data, DataForm, Json, Model, refuse_given, with_groups
from sublearn.kinds.base import Form, Refused
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from rich.table import Table

    from sublearn.cli.asking import Opened
    from sublearn.kinds.judging import Comparison, Judgement, Measure

__all__ = ["command"]

_Number = TypeVar("_Number", int, float)
_RANKED = ("text_labels", "row_labels")
_NO_BREAK = "\N{NO-BREAK SPACE}"

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
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Another model to compare with, on the same rows.",
    ),
]


@dataclass(frozen=True)
class Rankings:
    """How rankings of labels are judged."""

    k: Cuts = None
    train: Train = None
    propensity: Propensity = "0.55,1.5"

    def options(self, opened: Opened, form: Form) -> JsonObject:
        """What a kind needs to know; refused for a model that ranks nothing."""
        cuts = None if self.k is None else _numbers(self.k, int, "--k")
        constants = _numbers(self.propensity, float, "--propensity")
        if len(constants) != 2:
            raise Refused("--propensity", f"must be two numbers, got {self.propensity}")
        if opened.kind.name not in _RANKED:
            reason = f"needs a model of labels, got one of {opened.kind.gives}"
            refuse_given({"k": self.k, "train": self.train}, reason)
            return {}
        from sublearn.kinds.rankings import cuts_within

        cuts = cuts_within(cuts, len(opened.model.classes_))
        seen = None
        if self.train is not None:
            seen = opened.kind.read(opened.model, self.train, form, needs_truth=True).truth
        return {"cuts": cuts, "constants": constants, "seen": seen}


@with_groups
def command(
    model: Model,
    data: Data,
    *,
    baseline: Baseline = None,
    rankings: Rankings,
    form: DataForm,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Measure a model on the labelled rows of DATA, with intervals that hold 95 % of resamples.

    Of labels: precision (P), nDCG and recall (R) of the k best in percent, and the F1 of predicted
    sets; with `--train` also the propensity-scored versions, which count rare labels more. Labels
    that the model never saw count as missed, and so does a row without text. Of a calibrated model
    also the expected calibration error (ECE). Of labels in a taxonomy: precision, recall and F1
    with ancestors included. Of sequences: tokens and whole sequences with the right tags. Of
    numbers: R2 and mean errors. Of loads: errors of forecasts of the steps in DATA, which follow
    those of the fit.

    Intervals are those of 1,000 resamples of the rows. `--baseline` shows the difference to another
    model on the same resamples; it is marked where its interval leaves out zero.

    Example: `sublearn evaluate wiki.model test.txt --train train.txt --propensity 0.5,0.4`

    Example: `sublearn evaluate new.model test.tsv --baseline old.model`
    """
    from sublearn.cli.asking import open_model
    from sublearn.kinds.judging import compare, intervals

    opened = open_model(model)
    found = _judge(opened, data, rankings, form.form())
    ranges = intervals(found.measures)
    others: Mapping[str, Comparison] = {}
    if baseline is not None:
        other = _judge(open_model(baseline), data, rankings, form.form())
        others = compare(found.measures, other.measures)
    title = f"{model.name} on {data.name}, {found.title}"
    _show(found, ranges, others, title, as_json=json, as_csv=csv)


def _judge(opened: Opened, data: Path, rankings: Rankings, form: Form) -> Judgement:
    options = rankings.options(opened, form)
    opened.check(form)
    asked = opened.read(data, form, needs_truth=True)
    if not len(asked):
        raise ValueError(f"{data}: must have at least one row, got 0")
    return opened.kind.judge(opened.model, asked, options)


def _numbers(text: str, kind: type[_Number], option: str) -> list[_Number]:
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) <= 0:
        raise Refused(option, f"must be positive numbers with commas between, got {text}")
    return numbers


# --- showing -----------------------------------------------------------------------------------


def _show(
    found: Judgement,
    ranges: Mapping[str, tuple[float, float]],
    others: Mapping[str, Comparison],
    title: str,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    from sublearn.cli.console import out, print_json, print_titled

    if as_json:
        print_json(found.figures() | _for_json(ranges, others))
    elif as_csv:
        _write_csv(found, ranges, others)
    else:
        print_titled(title, _table(found.measures, ranges, others))
        if others:
            out.print("[dim]+ and -: better and worse than the baseline beyond chance (95 %)[/]")


def _for_json(
    ranges: Mapping[str, tuple[float, float]], others: Mapping[str, Comparison]
) -> JsonObject:
    extra: JsonObject = {"intervals": {name: list(ends) for name, ends in ranges.items()}}
    if others:
        extra["differences"] = {
            name: {"difference": one.difference, "interval": [one.low, one.high]}
            for name, one in others.items()
        }
    return extra


def _write_csv(
    found: Judgement,
    ranges: Mapping[str, tuple[float, float]],
    others: Mapping[str, Comparison],
) -> None:
    writer = csv_files.writer(sys.stdout, lineterminator="\n")
    columns = ["difference", "difference_low", "difference_high"] if others else []
    writer.writerow(["measure", "value", "low", "high", *columns])
    for name, measure in found.measures.items():
        row = [name, measure.value, *ranges[name]]
        if name in others:
            row += [others[name].difference, others[name].low, others[name].high]
        writer.writerow([one if isinstance(one, str) else f"{one:.6g}" for one in row])


def _table(
    measures: Mapping[str, Measure],
    ranges: Mapping[str, tuple[float, float]],
    others: Mapping[str, Comparison],
) -> Table:
    """A line for each measure, or one for each measure of rankings with a column for each cut."""
    from sublearn.cli.console import table

    cuts = list(dict.fromkeys(name.partition("@")[2] for name in measures if "@" in name))
    names = list(dict.fromkeys(name.partition("@")[0] for name in measures))
    grid = table(["", *(f"@{cut}" for cut in cuts)] if cuts else ["", "value"])
    for name in names:
        keys = (
            [f"{name}@{cut}" for cut in cuts]
            if f"{name}@{cuts[0] if cuts else ''}" in measures
            else [name]
        )
        title = f"{name}@k" if keys != [name] else name.replace("_", " ")
        grid.add_row(title, *(_cell(measures[key], ranges[key], others.get(key)) for key in keys))
    return grid


def _cell(measure: Measure, ends: tuple[float, float], other: Comparison | None) -> str:
    shown = _in_words(measure, measure.value)
    low, high = (_in_words(measure, end) for end in ends)
    text = f"{shown} [dim]({low} to {high})[/]".replace(" ", _NO_BREAK)
    return text if other is None else f"{text}  {_difference(measure, other)}"


def _difference(measure: Measure, other: Comparison) -> str:
    shown = _in_words(measure, other.difference)
    text = shown if shown.startswith("-") else f"+{shown}"
    if not other.is_clear or measure.is_better_high is None:
        return f"[dim]{text}[/]"
    is_better = (other.difference > 0) == measure.is_better_high
    return f"[green]{text}{_NO_BREAK}+[/]" if is_better else f"[red]{text}{_NO_BREAK}-[/]"


def _in_words(measure: Measure, value: float) -> str:
    return f"{100 * value:.2f}" if measure.is_share else f"{value:.4g}"
