"""From data files to what an estimator takes, the same way when fitting and when predicting."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sublearn.cli.options import DataForm, parse_labels
from sublearn.typing import JsonObject, LabelsLike, Matrix

if TYPE_CHECKING:  # NumPy and SciPy take longer to import than `sublearn --help` may
    import numpy as np
    import scipy.sparse as sp
    from sklearn.base import BaseEstimator

    from sublearn.io import Dataset

__all__ = [
    "as_targets",
    "find_empty",
    "find_label",
    "n_rows_of",
    "notes_for",
    "number_targets",
    "predicts_numbers",
    "read_data",
    "read_for_model",
    "read_for_prediction",
    "read_rows",
    "refuse_no_rows",
    "refuse_numbers",
    "refuse_uncalibrated",
    "refuse_without",
    "sparse_weights",
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


def read_for_model(path: Path, form: DataForm, model: BaseEstimator) -> Dataset:
    """Read a data file as the training file was read, rows scaled as they were for `fit`."""
    from sublearn.io.prepared import feature_names, needs_unit_rows, unit_rows

    notes = getattr(model, "notes_", {})
    options = {
        "labels": parse_labels(form.labels),
        "zero_based": bool(notes.get("zero_based", False)),
        "n_features": model.n_features_in_,
        "multilabel": notes.get("multilabel"),
    }
    dataset = _in_order_of(feature_names(model), _read(path, form.data_format, options))
    if needs_unit_rows(model):
        unit_rows(dataset.X)
    return dataset


def read_rows(
    path: Path, model: BaseEstimator, form: DataForm, *, needs_labels: bool = True
) -> tuple[Matrix | list[str], LabelsLike]:
    """What `predict_top_k` of the model takes, texts or a matrix, and the true labels."""
    from sublearn.io import load_texts
    from sublearn.io.prepared import is_text_model

    if not is_text_model(model):
        return _read_numbers(path, model, form, needs_labels=needs_labels)
    form.refuse_numbers("text")
    as_fitted = form.of_text(getattr(model, "notes_", None))
    found = load_texts(path, **as_fitted, needs_labels=needs_labels)
    return found.texts, found.labels


def _read_numbers(
    path: Path, model: BaseEstimator, form: DataForm, *, needs_labels: bool
) -> tuple[Matrix, LabelsLike]:
    from sklearn.utils import get_tags

    if form.text:
        raise typer.BadParameter(
            "needs a model that was fitted to text, got one fitted to numbers", param_hint="--text"
        )
    form.refuse_text()
    dataset = read_for_model(path, form, model)
    X = dataset.X if get_tags(model).input_tags.sparse else dataset.X.toarray()
    if not predicts_numbers(model):
        return X, as_targets(dataset)
    return X, number_targets(dataset) if needs_labels else []


def find_label(model: BaseEstimator, label: str, option: str = "--label") -> int:
    """Position of a label among the model's, by its name as text."""
    names = [str(name) for name in model.classes_.tolist()]
    if label not in names:
        some = ", ".join(names[:3])
        raise typer.BadParameter(
            f"must be one of the model's {len(names)} labels ({some}, ...), got {label}",
            param_hint=option,
        )
    return names.index(label)


def refuse_uncalibrated(model: BaseEstimator, option: str) -> None:
    """Refuse a model that knows scores only."""
    if not hasattr(model, "predict_proba_top_k"):
        raise typer.BadParameter(
            "needs a model with probabilities, got one without; `sublearn calibrate` adds them",
            param_hint=option,
        )


def refuse_without(model: BaseEstimator, ability: str, option: str) -> None:
    """Refuse a model whose class, or whose classifier's class, has no such method."""
    for one in (model, getattr(model, "classifier_", model)):
        if not hasattr(one, ability):
            raise typer.BadParameter(
                f"needs a model that can {ability}, got a {type(one).__name__}", param_hint=option
            )


def refuse_unless_of_rows(model: BaseEstimator) -> None:
    """Refuse a model that has neither ranked labels nor a number for the row of a data file."""
    if predicts_numbers(model) or hasattr(model, "predict_top_k"):
        return
    name = type(model).__name__
    advice = "`sublearn forecast`" if name == "LoadForecaster" else "sublearn.load in Python"
    raise typer.BadParameter(
        f"must be a model that ranks labels or predicts numbers, got a {name}; use {advice}",
        param_hint="MODEL",
    )


def has_label_weights(model: BaseEstimator) -> bool:
    """Whether :func:`sparse_weights` has an answer: weights of features by label."""
    own = getattr(model, "classifier_", model)  # of a model of texts
    return hasattr(own, "sparse_coef_") or hasattr(getattr(own, "coef_", None), "tocsr")


def sparse_weights(model: BaseEstimator) -> sp.csr_matrix:
    """The weights as a CSR matrix with a row for each label, or one for two classes."""
    own = getattr(model, "classifier_", model)
    return own.sparse_coef_ if hasattr(own, "sparse_coef_") else own.coef_.tocsr()


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


def read_for_prediction(
    path: Path, model: BaseEstimator, form: DataForm
) -> tuple[Matrix | list[str], np.ndarray]:
    """What the model takes, and which rows are empty and get no answer: one row for each line.

    The reader of LIBSVM files passes over blank lines, which here are rows of zeros again.
    """
    X, _ = read_rows(path, model, form, needs_labels=False)
    if not isinstance(X, list):
        is_blank = _find_blank_rows(path, form.data_format)
        if is_blank is not None and is_blank.any():
            _say_empty(is_blank, path)
            return _spread(X, ~is_blank), is_blank
    return X, find_empty(X, path)


def _find_blank_rows(path: Path, format: str | None) -> np.ndarray | None:
    """Which lines of a LIBSVM file are blank, lines of comments left out; None for other files."""
    import numpy as np

    from sublearn.io import load_svmlight
    from sublearn.io.datasets import find_reader
    from sublearn.io.files import Lines, open_binary

    if format != "libsvm" and (format or find_reader(path) is not load_svmlight):
        return None
    with open_binary(path) as stream:
        stripped = (line.strip() for line in Lines(stream))
        return np.array([not line for line in stripped if not line.startswith(b"#")], dtype=bool)


def _spread(X: Matrix, is_filled: np.ndarray) -> Matrix:
    """A matrix with the rows of `X` where they belong and zeros in the others."""
    import numpy as np
    import scipy.sparse as sp

    if isinstance(X, np.ndarray):
        found = np.zeros((len(is_filled), X.shape[1]), X.dtype)
        found[is_filled] = X
        return found
    counts = np.zeros(len(is_filled), X.indptr.dtype)
    counts[is_filled] = np.diff(X.indptr)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(X.indptr.dtype)
    return sp.csr_matrix((X.data, X.indices, ends), shape=(len(is_filled), X.shape[1]))


def find_empty(X: Matrix | list[str], path: Path) -> np.ndarray:
    """Which rows have no text and get no answer, after a warning that counts them."""
    from sublearn.io.prepared import are_empty

    is_empty = are_empty(X)
    if is_empty.any():
        _say_empty(is_empty, path)
    return is_empty


def _say_empty(is_empty: np.ndarray, path: Path) -> None:
    from sublearn.cli.console import say_warning

    say_warning(
        f"{path.name}: {is_empty.sum():,} of {len(is_empty):,} rows are empty, and so are their "
        "answers"
    )


def n_rows_of(X: Matrix | list[str]) -> int:
    """Number of texts, or of rows of a matrix."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def refuse_no_rows(X: Matrix | list[str], path: Path) -> None:
    """Refuse a data file that has a header and nothing else."""
    if n_rows_of(X) == 0:
        raise ValueError(f"{path}: must have at least one row, got 0")


def notes_for(
    dataset: Dataset, *, normalize: bool, zero_based: bool, has_labels: bool = True
) -> JsonObject:
    """What a saved model must remember of how its data were read."""
    notes: JsonObject = {
        "normalize": normalize,
        "zero_based": zero_based,
        "multilabel": dataset.Y.ndim == 2,
    }
    if has_labels:
        notes["label_counts"] = _count_labels(as_targets(dataset), dataset.X.shape[0])
    if dataset.feature_names is not None:
        notes["feature_names"] = dataset.feature_names
    return notes


def _count_labels(targets: LabelsLike, n_rows: int) -> np.ndarray:
    """Number of rows that carry each label, in the order of `classes_`."""
    from sublearn.validation import encode_labels

    return encode_labels(targets, n_rows).counts()


def as_targets(dataset: Dataset) -> LabelsLike:
    """Labels by name if the file has names, else as the file has them."""
    import numpy as np

    if dataset.label_names is None or isinstance(dataset.Y, np.ndarray):
        return dataset.Y
    names: np.ndarray = dataset.label_names[dataset.Y.indices]
    ends = dataset.Y.indptr.tolist()
    return [names[a:b].tolist() for a, b in itertools.pairwise(ends)]


def predicts_numbers(model: BaseEstimator) -> bool:
    """Whether an estimator, fitted or not, learns a number for each row instead of labels."""
    from sklearn.base import is_regressor

    return bool(is_regressor(model))


def number_targets(dataset: Dataset) -> np.ndarray:
    """The numbers of the rows, refused where the file has lists of labels or names."""
    if dataset.Y.ndim != 1 or dataset.Y.dtype.kind not in "iuf":
        raise ValueError(
            "DATA must have one number per row for a model of numbers, got labels; LIBSVM files "
            "(.svm) have numbers"
        )
    return dataset.Y


def refuse_numbers(model: BaseEstimator, option: str) -> None:
    """Refuse a model that predicts numbers, for what speaks of labels."""
    if predicts_numbers(model):
        raise typer.BadParameter(
            f"needs a model of labels, got a {type(model).__name__}", param_hint=option
        )


def _read(path: Path, format: str | None, options: JsonObject) -> Dataset:
    from sublearn.io import load_arff, load_npz, load_svmlight, load_xmc
    from sublearn.io.datasets import find_reader
    from sublearn.io.taxonomies import load_hmc_dataset

    readers: dict[str, Callable[..., Dataset]] = {
        "xmc": load_xmc, "libsvm": load_svmlight, "arff": load_arff, "npz": load_npz,
        "hmc": load_hmc_dataset,
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
