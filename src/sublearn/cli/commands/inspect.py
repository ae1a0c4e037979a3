"""`sublearn inspect`: what a saved model or a data file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublearn.cli.options import DataFormat, Json, Labels, ZeroBased

if TYPE_CHECKING:
    import numpy as np

    from sublearn.io import Bundle, Dataset

__all__ = ["command"]


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="A saved model, or a data file (known by its ending).",
        ),
    ],
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="LABEL",
            show_default=False,
            help="Show the largest weights of this label of a model; may be repeated.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many weights of a label to show.")
    ] = 10,
    labels: Labels = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    json: Json = False,
) -> None:
    """Show what FILE holds.

    Of a model: class, parameters, sizes, how sparse it is, and with `--label` what speaks for and
    against a label. Of a data file: rows, features, labels, and how they are filled. A damaged
    file is refused with a sentence that says what is wrong.

    Example: `sublearn inspect wiki.model --label 17`
    """
    from sublearn.cli.console import facts, print_json, print_titled
    from sublearn.cli.data import read_data
    from sublearn.io import load_bundle
    from sublearn.io.datasets import find_reader

    if data_format or find_reader(file):
        found = _describe_data(read_data(file, labels, data_format, zero_based=zero_based))
    else:
        found = _describe_model(load_bundle(file), label or [], top)
    found = {"file": str(file), "bytes": file.stat().st_size, **found}
    if json:
        print_json(found)
        return
    weights = found.pop("top_weights", {})
    rows = [(key.replace("_", " "), _in_words(value)) for key, value in found.items()]
    print_titled(file.name, facts(rows))
    for name, pairs in weights.items():
        _print_weights(name, pairs)


def _describe_data(dataset: Dataset) -> dict[str, Any]:
    import numpy as np

    X, Y = dataset.X, dataset.Y
    found: dict[str, Any] = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "stored_values": int(X.nnz),
        "values_per_row": _spread(np.diff(X.indptr)),
        "dtype": str(X.dtype),
    }
    if Y.ndim == 1:
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


def _describe_model(bundle: Bundle, labels: list[str], top: int) -> dict[str, Any]:
    import numpy as np

    import sublearn

    model = sublearn.load(bundle.path)
    found: dict[str, Any] = {
        "class": bundle.class_name,
        "written_by": f"sublearn {bundle.sublearn_version}",
        "parameters": bundle.params,
    }
    notes = getattr(model, "notes_", {})
    if notes:
        found["notes"] = {key: note for key, note in notes.items() if not hasattr(note, "shape")}
    coef = model.coef_.tocsr()
    found |= {
        "labels": len(model.classes_),
        "features": coef.shape[1],
        "weights_not_zero": int(coef.nnz),
        "share_of_weights_not_zero": coef.nnz / max(1, coef.shape[0] * coef.shape[1]),
        "weights_per_label": _spread(np.diff(coef.indptr)),
        "certificate": float(model.certificate_),
    }
    if labels:
        found["top_weights"] = {
            label: _top_weights(model, _weights_of(model, coef, label), top) for label in labels
        }
    return found


def _find_label(model: Any, label: str) -> int:
    names = [str(name) for name in model.classes_.tolist()]
    if label not in names:
        some = ", ".join(names[:3])
        raise typer.BadParameter(
            f"must be one of the model's {len(names)} labels ({some}, ...), got {label}",
            param_hint="--label",
        )
    return names.index(label)


def _weights_of(model: Any, coef: Any, label: str) -> Any:
    row = _find_label(model, label)
    if coef.shape[0] < len(model.classes_):
        return coef if row else -coef  # two classes share one row, which speaks for the second
    return coef[row]


def _top_weights(model: Any, row: Any, top: int) -> list[tuple[str, float]]:
    import numpy as np

    largest = np.argsort(-np.abs(row.data), kind="stable")[:top]
    names = getattr(model, "notes_", {}).get(
        "feature_names", getattr(model, "feature_names_in_", None)
    )
    return [
        (str(j) if names is None else str(names[j]), value)
        for j, value in zip(row.indices[largest].tolist(), row.data[largest].tolist(), strict=True)
    ]


def _spread(counts: np.ndarray) -> dict[str, float]:
    import numpy as np

    if counts.size == 0:
        return {"mean": 0.0, "median": 0.0, "max": 0}
    return {
        "mean": round(float(counts.mean()), 2),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
    }


def _in_words(value: Any) -> str:
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
