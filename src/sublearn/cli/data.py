"""From data files to what an estimator takes, the same way when fitting and when predicting."""

from __future__ import annotations

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

__all__ = ["as_targets", "notes_for", "read_data", "read_for_model", "unit_rows"]


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
    dataset = _read(path, format, options)
    if notes.get("normalize"):
        unit_rows(dataset.X)
    return dataset


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
        raise typer.BadParameter("an ARFF file needs it", param_hint="--labels")
    return reader(
        path, **{name: options[name] for name in knows.get(reader, ()) if name in options}
    )
