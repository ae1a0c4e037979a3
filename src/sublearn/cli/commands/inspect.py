"""`sublearn inspect`: what a saved model or a data file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import DataFormat, Json, ZeroBased, refuse_given
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from sklearn.base import BaseEstimator

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


def command(
    file: File,
    label: Label = None,
    top: Top = None,
    labels: WhichLabels = None,
    sort: Sort = None,
    limit: Limit = None,
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
    """
    from sublearn.cli.console import print_json
    from sublearn.cli.data import read_data
    from sublearn.io import load_bundle
    from sublearn.io.datasets import find_reader

    if sort is not None and sort not in _ORDERS:
        raise typer.BadParameter(
            f"must be one of {', '.join(_ORDERS)}, got {sort}", param_hint="--sort"
        )
    is_data = bool(data_format or find_reader(file))
    if is_data:
        refuse_given({"label": label or None, "top": top}, "needs a model, got a data file")
    if is_data or labels is None:
        refuse_given({"sort": sort, "limit": limit}, "needs --labels of a model, got none")
    if is_data:
        found = _describe_data(read_data(file, labels, data_format, zero_based=zero_based))
    else:
        found = _describe_model(load_bundle(file), label or [], top or 10)
        if labels is not None:
            found["each_label"] = _diagnose(file, labels, top or 3, sort, limit)
    found = {"file": str(file), "bytes": file.stat().st_size, **found}
    if json:
        print_json(found)
    else:
        _print(file, found)


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


def _describe_data(dataset: Dataset) -> JsonObject:
    import numpy as np

    X, Y = dataset.X, dataset.Y
    found: JsonObject = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "stored_values": int(X.nnz),
        "values_per_row": _spread(np.diff(X.indptr)),
        "dtype": str(X.dtype),
    }
    if isinstance(Y, np.ndarray):
        _, counts = np.unique(Y, return_counts=True)
        return found | {"labels": len(counts), "rows_per_label": _spread(counts)}
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    per_row = np.diff(Y.indptr)
    return found | {
        "labels": Y.shape[1],
        "labels_per_row": _spread(per_row),
        "rows_without_labels": int((per_row == 0).sum()),
        "rows_per_label": _spread(counts),
        "labels_without_rows": int((counts == 0).sum()),
        "labels_have_names": dataset.label_names is not None,
    }


def _describe_model(bundle: Bundle, labels: list[str], top: int) -> JsonObject:
    import sublearn
    from sublearn.cli.data import has_label_weights, refuse_numbers
    from sublearn.io.prepared import is_text_model

    model = sublearn.load(bundle.path)
    if labels:
        refuse_numbers(model, "--label")
    found: JsonObject = {
        "class": bundle.class_name,
        "written_by": f"sublearn {bundle.sublearn_version}",
        "parameters": bundle.params,
    }
    if is_text_model(model):
        params = model.classifier_.get_params(deep=False)
        found["classifier"] = {"class": type(model.classifier_).__name__} | params
        found["parameters"].pop("classifier", None)
    notes = getattr(model, "notes_", {})
    if notes:
        found["notes"] = {key: note for key, note in notes.items() if not hasattr(note, "shape")}
    if not has_label_weights(model):
        refuse_given(
            {"label": labels or None}, f"needs weights by label, got a {bundle.class_name}"
        )
        return found | _fitted_facts(model)
    return found | _describe_weights(model, labels, top)


def _fitted_facts(model: BaseEstimator) -> JsonObject:
    """What a model of another kind says of itself: fitted numbers and words, shapes of arrays."""
    found: JsonObject = {}
    for name, value in vars(model).items():
        if name.startswith("_") or not name.endswith("_") or name == "notes_":
            continue
        if isinstance(value, (str, int, float)) or value is None:
            found[name.strip("_")] = value
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            size = " x ".join(f"{n:,}" for n in value.shape)
            found[name.strip("_")] = f"{size} {value.dtype}" if size else value.item()
    return found


def _describe_weights(model: BaseEstimator, labels: list[str], top: int) -> JsonObject:
    import numpy as np

    from sublearn.cli.data import predicts_numbers, sparse_weights

    found: JsonObject = {}
    coef = sparse_weights(model)
    is_of_numbers = predicts_numbers(model)
    if not is_of_numbers:
        found["labels"] = len(model.classes_)
        found["probabilities"] = hasattr(model, "predict_proba")
    found |= {
        "features": coef.shape[1],
        "weights_not_zero": int(coef.nnz),
        "share_of_weights_not_zero": coef.nnz / max(1, coef.shape[0] * coef.shape[1]),
    }
    if is_of_numbers:
        found["intercept"] = float(model.intercept_)
        found["top_weights"] = {"the model": _top_weights(model, coef, top)}
    else:
        found["weights_per_label"] = _spread(np.diff(coef.indptr))
    found |= {
        "certificate": float(getattr(model, "classifier_", model).certificate_),
    }
    if labels:
        found["top_weights"] = {
            label: _top_weights(model, _weights_of(model, coef, label), top) for label in labels
        }
    return found


def _weights_of(model: BaseEstimator, coef: sp.csr_matrix, label: str) -> sp.csr_matrix:
    from sublearn.cli.data import find_label

    return _weights_at(model, coef, find_label(model, label))


def _weights_at(model: BaseEstimator, coef: sp.csr_matrix, row: int) -> sp.csr_matrix:
    if coef.shape[0] < len(model.classes_):
        return coef if row else -coef  # two classes share one row, which speaks for the second
    return coef[row]


def _top_weights(model: BaseEstimator, row: sp.csr_matrix, top: int) -> list[tuple[str, float]]:
    import numpy as np

    from sublearn.io.prepared import feature_names

    largest = np.argsort(-np.abs(row.data), kind="stable")[:top]
    names = feature_names(model)
    return [
        (str(j) if names is None else str(names[j]), value)
        for j, value in zip(row.indices[largest].tolist(), row.data[largest].tolist(), strict=True)
    ]


def _diagnose(
    file: Path, labels: str, top: int, sort: str | None, limit: int | None
) -> list[JsonObject]:
    """One entry for each wanted label, sorted."""
    import sublearn
    from sublearn.cli.data import has_label_weights, refuse_numbers, sparse_weights

    model = sublearn.load(file)
    refuse_numbers(model, "--labels")
    if not has_label_weights(model):
        raise typer.BadParameter(
            f"needs weights by label, got a {type(model).__name__}", param_hint="--labels"
        )
    coef = sparse_weights(model)
    n_weights = coef.indptr[1:] - coef.indptr[:-1]
    names = [str(name) for name in model.classes_.tolist()]
    wanted = range(len(names)) if labels == "all" else _find_all(model, labels)
    notes = getattr(model, "notes_", {})
    counts: np.ndarray | None = getattr(model, "label_counts_", notes.get("label_counts"))
    if sort == "positives" and counts is None:
        raise typer.BadParameter(
            "positives needs a model that knows them, got one of an older version or of Python",
            param_hint="--sort",
        )
    keys: JsonObject = {
        "positives": lambda i: 0 if counts is None else -counts[i],
        "weights": lambda i: -n_weights[i if len(n_weights) == len(names) else 0],
        "bias": lambda i: -_bias_at(model, i),
        "name": lambda i: names[i],
    }
    order = sorted(wanted, key=keys[sort or ("weights" if counts is None else "positives")])
    return [_describe_label(model, coef, names[i], i, counts, top) for i in order[:limit]]


def _find_all(model: BaseEstimator, labels: str) -> list[int]:
    from sublearn.cli.data import find_label

    return [find_label(model, name.strip(), "--labels") for name in labels.split(",")]


def _bias_at(model: BaseEstimator, row: int) -> float:
    bias = model.intercept_
    if len(bias) < len(model.classes_):
        return float(bias[0] if row else -bias[0])
    return float(bias[row])


def _describe_label(
    model: BaseEstimator,
    coef: sp.csr_matrix,
    name: str,
    row: int,
    counts: np.ndarray | None,
    top: int,
) -> JsonObject:
    weights = _weights_at(model, coef, row)
    return {
        "label": name,
        "positives": None if counts is None else int(counts[row]),
        "weights": int(weights.nnz),
        "bias": _bias_at(model, row),
        "strongest": _top_weights(model, weights, top),
    }


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


def _spread(counts: np.ndarray) -> dict[str, float]:
    import numpy as np

    if counts.size == 0:
        return {"mean": 0.0, "median": 0.0, "max": 0}
    return {
        "mean": round(float(counts.mean()), 2),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
    }


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
