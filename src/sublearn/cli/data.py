"""From data files to what an estimator takes, the same way when fitting and when predicting."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sublearn.cli.options import parse_labels

if TYPE_CHECKING:  # NumPy and SciPy take longer to import than `sublearn --help` may
    import numpy as np
    from scipy import sparse

    from sublearn.io import Dataset

__all__ = [
    "as_targets",
    "notes_for",
    "read_data",
    "read_for_model",
    "refuse_no_rows",
    "unit_rows",
]


def read_data(
    path: Path,
    labels: str | None = None,
    format: str | None = None,
    *,
    zero_based: bool = False,
    multilabel: bool | None = None,
) -> Dataset:
    """Read a data file, giving its reader the options that it knows."""
    options = {"labels": parse_labels(labels), "zero_based": zero_based, "multilabel": multilabel}
    return _read(path, format, options)


def read_for_model(path: Path, labels: str | None, format: str | None, model: Any) -> Dataset:
    """Read a data file as the training file was read, rows scaled as they were for `fit`."""
    notes = getattr(model, "notes_", {})
    options = {
        "labels": parse_labels(labels),
        "zero_based": bool(notes.get("zero_based", False)),
        "n_features": model.n_features_in_,
        "multilabel": notes.get("multilabel"),
    }
    dataset = _in_order_of(_feature_names(model), _read(path, format, options))
    if notes.get("normalize"):
        unit_rows(dataset.X)
    return dataset


def _feature_names(model: Any) -> np.ndarray | None:
    """Names of the columns that the model was fitted to, if it knows them."""
    names = getattr(model, "notes_", {}).get("feature_names")
    return getattr(model, "feature_names_in_", None) if names is None else names


def _in_order_of(names: np.ndarray | None, dataset: Dataset) -> Dataset:
    """The data set with its columns in the order of `names`, where both sides have names."""
    import numpy as np

    found = dataset.feature_names
    if names is None or found is None or np.array_equal(names, found):
        return dataset
    position = {name: column for column, name in enumerate(found.tolist())}
    missing = [name for name in np.asarray(names).tolist() if name not in position]
    if missing:
        raise ValueError(
            f"DATA must have the features of the model, got none named {missing[0]!r} "
            f"({len(missing)} are missing)"
        )
    if not len(names) == len(found) == len(position):
        raise ValueError(
            f"DATA must have the {len(names)} features of the model and no other, got {len(found)}"
        )
    X = dataset.X[:, [position[name] for name in names]]
    return dataclasses.replace(dataset, X=X, feature_names=np.asarray(names))


def refuse_no_rows(dataset: Dataset, path: Path) -> None:
    """Refuse a data file that has a header and nothing else."""
    if dataset.X.shape[0] == 0:
        raise ValueError(f"{path}: must have at least one row, got 0")


def notes_for(dataset: Dataset, *, normalize: bool, zero_based: bool) -> dict[str, Any]:
    """What a saved model must remember of how its data were read."""
    notes = {
        "normalize": normalize,
        "zero_based": zero_based,
        "multilabel": dataset.Y.ndim == 2,
    }
    if dataset.feature_names is not None:
        notes["feature_names"] = dataset.feature_names
    return notes


def unit_rows(X: sparse.csr_matrix) -> None:
    """Scale each row to Euclidean length 1, in place; rows of zeros stay."""
    from sklearn.preprocessing import normalize

    if X.shape[0]:  # scikit-learn refuses a matrix without rows
        normalize(X, copy=False)


def as_targets(dataset: Dataset) -> Any:
    """Labels by name if the file has names, else as the file has them."""
    if dataset.label_names is None or dataset.Y.ndim == 1:
        return dataset.Y
    names: np.ndarray = dataset.label_names[dataset.Y.indices]
    ends = dataset.Y.indptr.tolist()
    return [names[a:b].tolist() for a, b in itertools.pairwise(ends)]


def _read(path: Path, format: str | None, options: dict[str, Any]) -> Dataset:
    from sublearn.io import load_arff, load_npz, load_svmlight, load_xmc
    from sublearn.io.datasets import find_reader

    readers: dict[str, Callable[..., Dataset]] = {
        "xmc": load_xmc, "libsvm": load_svmlight, "arff": load_arff, "npz": load_npz
    }  # fmt: skip
    knows = {
        load_arff: ("labels",),
        load_npz: ("labels",),
        load_svmlight: ("zero_based", "n_features", "multilabel"),
    }
    reader = readers.get(format) if format else find_reader(path)
    if reader is None:
        got = format or f"none, and {path.name} has no ending that tells"
        raise typer.BadParameter(
            f"must be one of {', '.join(readers)}, got {got}", param_hint="--data-format"
        )
    if reader is load_arff and options["labels"] is None:
        raise typer.BadParameter(
            "must say which attributes of an ARFF file are labels (Mulan's .xml file, their number "
            "or their names), got none",
            param_hint="--labels",
        )
    return reader(
        path, **{name: options[name] for name in knows.get(reader, ()) if name in options}
    )
