"""`sublearn inspect`: what a saved model or a data file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import DataFormat, Json, ZeroBased, refuse_given
from sublearn.kinds.base import Form, Refused
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sublearn.cli.asking import Opened
    from sublearn.io import Bundle, Dataset

__all__ = ["command"]

_ORDERS = ("positives", "weights", "bias", "name")


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="A saved model, or a data file (known by its ending).",
    ),
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="LABEL",
        show_default=False,
        help="Show the largest weights of this label of a model; may be repeated.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        show_default="10, with --labels 3",
        help="How many weights of a label to show.",
    ),
]
WhichLabels = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        show_default=False,
        help="Of a model: labels to diagnose, names with commas between, or `all`. Of a data "
        "file: as for `sublearn fit`.",
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        metavar="BY",
        show_default="positives if known, else weights",
        help="Order of the diagnosed labels: positives, weights, bias (largest first) or name.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", show_default="all", help="Diagnose the first N labels only."),
]
Html = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        show_default=False,
        help="Write a page with pictures: how the fit went, sizes, what labels look at; with "
        "`--data` also how good and how sure answers are.",
    ),
]
PageData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DATA",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Labelled data for the page.",
    ),
]


def command(
    file: File,
    label: Label = None,
    top: Top = None,
    labels: WhichLabels = None,
    sort: Sort = None,
    limit: Limit = None,
    html: Html = None,
    data: PageData = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    json: Json = False,
) -> None:
    """Show what FILE holds.

    Of a model: class, parameters, sizes, how sparse it is, with `--label` what speaks for and
    against a label, and with `--labels` a line for each label: training rows that carry it, number
    of weights, bias, strongest features. Of a data file: rows, features, labels, and how they are
    filled. A damaged file is refused with a sentence that says what is wrong.

    Example: `sublearn inspect wiki.model --label 17`

    Example: `sublearn inspect wiki.model --labels all --sort weights --limit 20`

    Example: `sublearn inspect wiki.model --html report.html --data test.txt`
    """
    from sublearn.cli.console import print_json
    from sublearn.io.datasets import find_reader

    if sort is not None and sort not in _ORDERS:
        raise Refused("--sort", f"must be one of {', '.join(_ORDERS)}, got {sort}")
    from sublearn.io.files import check_target

    check_target(html, "--html")
    is_data = html is None and bool(data_format or find_reader(file))
    if is_data:
        refuse_given({"label": label or None, "top": top}, "needs a model, got a data file")
    if is_data or labels is None:
        refuse_given({"sort": sort, "limit": limit}, "needs --labels of a model, got none")
    if html is None:
        refuse_given({"data": data}, "needs --html, got none")
    if is_data:
        from sublearn.kinds.rows import read_dataset

        form = Form(labels, data_format, zero_based)
        found = _describe_data(read_dataset(file, form, needs_labels=labels is not None))
    else:
        found = _describe_model(file, label or [], top, labels, sort, limit)
        if html is not None:
            _write_page(file, found, html, data, Form(data_format=data_format))
    found = {"file": str(file), "bytes": file.stat().st_size, **found}
    if json:
        print_json(found)
    elif html is None:
        _print(file, found)


def _describe_model(
    file: Path,
    label: list[str],
    top: int | None,
    labels: str | None,
    sort: str | None,
    limit: int | None,
) -> JsonObject:
    from sublearn.cli.asking import open_model
    from sublearn.io import load_bundle

    opened = open_model(file)
    for option, given in (("--label", label), ("--labels", labels)):
        if given:
            _refuse_without_labels(opened, option)
    found = _head(load_bundle(file), opened) | opened.kind.describe(opened.model)
    if label:
        found["top_weights"] = _weights_of(opened, label, top or 10)
    if labels is not None:
        found["each_label"] = _diagnose(opened, labels, top or 3, sort, limit)
    return found


def _head(bundle: Bundle, opened: Opened) -> JsonObject:
    """Class, version, parameters and notes."""
    from sublearn.io.prepared import notes_of

    model = opened.model
    found: JsonObject = {
        "class": bundle.class_name,
        "gives": opened.kind.gives,
        "written_by": f"sublearn {bundle.sublearn_version}",
        "parameters": dict(bundle.params),
    }
    if opened.kind.name == "text_labels":
        params = model.classifier_.get_params(deep=False)
        found["classifier"] = {"class": type(model.classifier_).__name__} | params
        found["parameters"].pop("classifier", None)
    notes = {key: one for key, one in notes_of(model).items() if _is_plain(one)}
    return found | ({"notes": notes} if notes else {})


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool, list, dict)) or value is None


def _refuse_without_labels(opened: Opened, option: str) -> None:
    from sublearn.kinds.base import label_weights

    name = type(opened.model).__name__
    if opened.kind.name in ("row_numbers", "row_codes", "row_likelihoods"):
        raise Refused(option, f"needs a model of labels, got a {name}")
    if not opened.kind.has_labels or label_weights(opened.kind.own(opened.model)) is None:
        raise Refused(option, f"needs weights by label, got a {name}")


def _weights_of(opened: Opened, labels: list[str], top: int) -> JsonObject:
    from sublearn.kinds.weights import find_label

    names = opened.kind.labels_of(opened.model)
    rows = [find_label(names, label) for label in labels]
    found = opened.kind.each_label(opened.model, rows, top)
    return {label: one["strongest"] for label, one in zip(labels, found, strict=True)}


def _diagnose(
    opened: Opened, labels: str, top: int, sort: str | None, limit: int | None
) -> list[JsonObject]:
    """One entry for each wanted label, sorted."""
    from sublearn.kinds.weights import find_label

    kind, model = opened.kind, opened.model
    names = kind.labels_of(model)
    parts = [name.strip() for name in labels.split(",")]
    wanted = (
        list(range(len(names)))
        if labels == "all"
        else [find_label(names, name, "--labels") for name in parts]
    )
    has_counts = kind.label_counts(model) is not None
    if sort == "positives" and not has_counts:
        raise Refused(
            "--sort",
            "positives needs a model that knows them, got one of an older version or of Python",
        )
    found = kind.each_label(model, wanted, top)
    by = sort or ("positives" if has_counts else "weights")
    key = "label" if by == "name" else by
    found.sort(key=lambda one: one[key] if key == "label" else -one[key])
    return found[:limit]


def _describe_data(dataset: Dataset) -> JsonObject:
    import numpy as np

    from sublearn.kinds.weights import spread_of

    X, Y = dataset.X, dataset.Y
    found: JsonObject = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "stored_values": int(X.nnz),
        "values_per_row": spread_of(np.diff(X.indptr)),
        "dtype": str(X.dtype),
    }
    if isinstance(Y, np.ndarray):
        _, counts = np.unique(Y, return_counts=True)
        return found | {"labels": len(counts), "rows_per_label": spread_of(counts)}
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    per_row = np.diff(Y.indptr)
    return found | {
        "labels": Y.shape[1],
        "labels_per_row": spread_of(per_row),
        "rows_without_labels": int((per_row == 0).sum()),
        "rows_per_label": spread_of(counts),
        "labels_without_rows": int((counts == 0).sum()),
        "labels_have_names": dataset.label_names is not None,
    }


def _write_page(file: Path, found: JsonObject, html: Path, data: Path | None, form: Form) -> None:
    from sublearn.cli.asking import open_model
    from sublearn.cli.report import write_report

    opened = open_model(file)
    judgement = None
    if data is not None:
        asked = opened.read(data, form, needs_truth=True)
        judgement = opened.kind.judge(opened.model, asked, {"constants": (0.55, 1.5)})
    write_report(html, opened, found, judgement, None if data is None else data.name)


# --- showing -----------------------------------------------------------------------------------


def _print(file: Path, found: JsonObject) -> None:
    from sublearn.cli.console import facts, print_titled

    weights = found.pop("top_weights", {})
    each_label = found.pop("each_label", [])
    rows = [(key.replace("_", " "), _in_words(value)) for key, value in found.items()]
    print_titled(file.name, facts(rows))
    for name, pairs in weights.items():
        _print_weights(name, pairs)
    if each_label:
        _print_each_label(each_label)


def _print_each_label(entries: list[JsonObject]) -> None:
    from rich.markup import escape

    from sublearn.cli.console import print_titled, table

    grid = table(["label", "positives", "weights", "bias", "strongest features"])
    grid.columns[4].justify = "left"
    for entry in entries:
        words = ", ".join(f"{name} {value:+.2f}" for name, value in entry["strongest"])
        positives = "" if entry["positives"] is None else f"{entry['positives']:,}"
        row = (entry["label"], positives, f"{entry['weights']:,}", f"{entry['bias']:+.3f}", words)
        grid.add_row(*map(escape, row))
    print_titled(f"\n{len(entries):,} labels", grid)


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(item)}" for key, item in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_weights(label: str, pairs: list[tuple[str, float]]) -> None:
    from sublearn.cli.console import print_titled, table

    grid = table(["feature", "weight"])
    for name, value in pairs:
        grid.add_row(name, f"{value:+.4f}")
    print_titled(f"\nlargest weights of {label}", grid)
