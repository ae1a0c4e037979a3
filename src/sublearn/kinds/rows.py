"""Files of rows of numbers, read the same way for a fit and for the model that comes out of it."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from sublearn.io import Dataset, load_arff, load_npz, load_svmlight, load_table, load_xmc
from sublearn.io.datasets import find_reader
from sublearn.io.files import Lines, open_binary
from sublearn.io.prepared import as_dense, find_scales, notes_of, prepare_rows, wide_scales
from sublearn.io.taxonomies import load_hmc_dataset
from sublearn.kinds.base import Asked, Field, Form, Kind, Lesson, Refused
from sublearn.kinds.json_rows import Rows
from sublearn.typing import JsonObject, LabelsLike, Matrix
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["OfRows", "as_targets", "number_targets", "read_dataset"]

_READERS: dict[str, Callable[..., Dataset]] = {
    "xmc": load_xmc,
    "libsvm": load_svmlight,
    "arff": load_arff,
    "npz": load_npz,
    "csv": load_table,
    "hmc": load_hmc_dataset,
}
_KNOWS = {
    load_arff: ("labels",),
    load_npz: ("labels",),
    load_table: ("labels",),
    load_svmlight: ("zero_based", "n_features", "multilabel"),
}
_NEEDS_LABELS = {
    load_arff: "attributes of an ARFF file are labels (Mulan's .xml file, their number or their "
    "names)",
    load_table: "column of a CSV file is to be learnt (its name, or how many stand at the end)",
}


def parse_labels(text: str | None) -> str | int | list[str] | None:
    """What `--labels` says, in the form the readers take: a path, a number, or names."""
    if text is None or Path(text).exists():
        return text
    if text.isdigit():
        return int(text)
    if text.endswith((".xml", ".npz")):
        raise Refused("--labels", f"no such file: {text}")
    return text.split(",")


def read_dataset(
    path: Path, form: Form, *, needs_labels: bool = True, **options: object
) -> Dataset:
    """Read a file of rows, giving its reader the options that it knows."""
    reader = _READERS.get(form.data_format) if form.data_format else find_reader(path)
    if reader is None:
        got = form.data_format or f"none, and {path.name} has no ending that tells"
        raise Refused("--data-format", f"must be one of {', '.join(_READERS)}, got {got}")
    options |= {"labels": parse_labels(form.labels), "zero_based": form.zero_based}
    if needs_labels and reader in _NEEDS_LABELS and options["labels"] is None:
        names = _columns_of(path) if reader is load_table else ""
        raise Refused("--labels", f"must say which {_NEEDS_LABELS[reader]}, got none{names}")
    if reader is load_arff and options["labels"] is None:
        raise Refused("--labels", f"must say which {_NEEDS_LABELS[reader]}, got none")
    if not needs_labels and reader is load_table and options["labels"] is None:
        return load_table(path)
    return reader(
        path, **{name: options[name] for name in _KNOWS.get(reader, ()) if name in options}
    )


def _columns_of(path: Path) -> str:
    with open_binary(path) as stream:
        first = next(Lines(stream).texts(), "").strip()
    names = first.split(",")
    return f"; its columns are {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}"


def as_targets(dataset: Dataset) -> LabelsLike:
    """Labels by name if the file has names, else as the file has them."""
    if dataset.label_names is None or isinstance(dataset.Y, np.ndarray):
        return dataset.Y
    names: np.ndarray = dataset.label_names[dataset.Y.indices]
    ends = dataset.Y.indptr.tolist()
    return [names[a:b].tolist() for a, b in itertools.pairwise(ends)]


def number_targets(dataset: Dataset) -> np.ndarray:
    """The numbers of the rows, refused where the file has lists of labels or names."""
    if dataset.Y.ndim != 1 or dataset.Y.dtype.kind not in "iuf":
        raise ValueError(
            "DATA must have one number per row for a model of numbers, got labels; LIBSVM files "
            "(.svm) and tables (.csv) have numbers"
        )
    return dataset.Y


class OfRows(Kind):
    """Kinds whose items are rows of numbers."""

    data: ClassVar[str] = "numbers"
    fit_form: ClassVar[tuple[str, ...]] = (
        "labels",
        "normalize",
        "standardize",
        "data_format",
        "zero_based",
    )
    form: ClassVar[tuple[str, ...]] = ("labels", "data_format", "zero_based")
    items_field = "rows"
    #: Whether rows are scaled to length one for a fit unless it is said, and targets are read.
    makes_unit_rows: ClassVar[bool] = True
    has_targets: ClassVar[bool] = True

    # --- fitting -----------------------------------------------------------------------------

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Rows prepared as wanted, and their targets."""
        dataset = read_dataset(path, form, needs_labels=self.has_targets)
        if dataset.X.shape[0] == 0:
            raise ValueError(f"{path}: must have at least one row, got 0")
        notes = self._preparation(dataset, form)
        targets = self.targets(estimator, dataset, path, form)
        X = prepare_rows(dataset.X, notes)
        notes |= {"zero_based": form.zero_based, "multilabel": dataset.Y.ndim == 2}
        notes |= self._memory(dataset, form)
        X = X if _takes_sparse(estimator) else as_dense(X)
        sizes = {"rows": X.shape[0], "features": X.shape[1]}
        arguments = (X, targets) if self.has_targets else (X,)
        return Lesson(arguments, X.shape[0], notes, sizes)

    def targets(
        self, estimator: BaseEstimator, dataset: Dataset, path: Path, form: Form
    ) -> LabelsLike:
        """What is learnt of each row."""
        return as_targets(dataset)

    def _preparation(self, dataset: Dataset, form: Form) -> JsonObject:
        is_wanted = self.makes_unit_rows and not form.standardize
        normalize = is_wanted if form.normalize is None else form.normalize
        if form.standardize:
            return {"normalize": normalize} | find_scales(dataset.X)
        sizes = wide_scales(dataset.X)
        if sizes is not None:
            warnings.warn(
                f"columns of DATA have very different sizes, from {sizes[0]:.2g} to "
                f"{sizes[1]:.2g}, and the large ones will rule: --standardize gives all the same",
                stacklevel=2,
            )
        return {"normalize": normalize}

    def _memory(self, dataset: Dataset, form: Form) -> JsonObject:
        notes: JsonObject = {}
        if dataset.feature_names is not None:
            notes["feature_names"] = dataset.feature_names
        if form.labels is not None and not Path(form.labels).exists():
            notes["labels"] = form.labels
        return notes

    # --- asking ------------------------------------------------------------------------------

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Rows as the model takes them; a blank line of a LIBSVM file is an empty item."""
        notes = notes_of(model)
        form = dataclasses.replace(
            form,
            labels=form.labels or _remembered(notes, path),
            zero_based=form.zero_based or bool(notes.get("zero_based", False)),
        )
        options = {"n_features": model.n_features_in_, "multilabel": notes.get("multilabel")}
        needs_labels = needs_truth and self.has_targets
        dataset = read_dataset(path, form, needs_labels=needs_labels, **options)
        dataset = _in_order_of(self.feature_names(model), dataset, is_table=_is_table(path, form))
        X = prepare_rows(dataset.X, notes)
        X = X if _takes_sparse(model) else as_dense(X)
        truth = self.truth(dataset) if needs_labels or not needs_truth else []
        is_blank = None if needs_truth else _find_blank_rows(path, form.data_format)
        if is_blank is not None and is_blank.any():
            return Asked(_spread(X, ~is_blank), truth, is_blank)
        return Asked(X, truth, np.zeros(X.shape[0], dtype=bool))

    def truth(self, dataset: Dataset) -> LabelsLike:
        """What is true of each row, as far as the file knows."""
        return as_targets(dataset)

    def n_scores(self, model: BaseEstimator) -> int:
        """Features, in a dense form, of one row."""
        return max(super().n_scores(model), int(model.n_features_in_))

    def feature_names(self, model: BaseEstimator) -> np.ndarray | None:
        """Names of the columns that the model was fitted to, if it knows them."""
        names = notes_of(model).get("feature_names")
        return vars(model).get("feature_names_in_") if names is None else names

    # --- over HTTP ---------------------------------------------------------------------------

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Rows of numbers."""
        what = (
            "Each a list of all values, an object with `indices` (columns from 0) and `values`, or "
            "an object from names of features to values."
        )
        kind = list[list[float] | dict[str, object]]
        return {"rows": Field(kind, ..., what, is_checked_by_kind=True)}

    def example(self, model: BaseEstimator) -> JsonObject:
        """One row with one value, by its name if there are names."""
        names = self.feature_names(model)
        row = {"indices": [0], "values": [1.0]} if names is None else {str(names[0]): 1.0}
        return {"rows": [row]}

    def answer(
        self,
        model: BaseEstimator,
        question: Mapping[str, object],
        check: Callable[[], None],
        reader: Callable[[list[object], int], Matrix | list[object]] | None = None,
    ) -> JsonObject:
        """The answer to rows, which are at least one."""
        rows = question["rows"]
        if not isinstance(rows, list) or not rows:
            raise ValueError(f"rows must be a list of at least one row, got {show(rows)}")
        return super().answer(model, question, check, reader)

    def reader(self, model: BaseEstimator) -> Callable[[list[object], int], Matrix | list[object]]:
        """A matrix of rows in any form."""
        rows = Rows(
            int(model.n_features_in_),
            self.feature_names(model),
            notes_of(model),
            takes_sparse=_takes_sparse(model),
        )
        return rows.matrix


def _takes_sparse(model: BaseEstimator) -> bool:
    return bool(get_tags(model).input_tags.sparse)


def _is_table(path: Path, form: Form) -> bool:
    return form.data_format == "csv" or (
        form.data_format is None and find_reader(path) is load_table
    )


def _remembered(notes: JsonObject, path: Path) -> str | None:
    """`--labels` of the fit, where the new file has columns of that name."""
    found = notes.get("labels")
    if found is None or find_reader(path) is not load_table:
        return found
    with open_binary(path) as stream:
        first = next(Lines(stream).texts(), "")
    names = [name.strip().strip('"') for name in first.split(",")]
    return found if found.isdigit() or all(one in names for one in found.split(",")) else None


def _in_order_of(names: np.ndarray | None, dataset: Dataset, *, is_table: bool) -> Dataset:
    """The data set with its columns in the order of `names`, where both sides have names.

    A table may have further columns, such as labels, which are left out.
    """
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
    if not is_table and not len(names) == len(found) == len(position):
        raise ValueError(
            f"DATA must have the {len(names)} features of the model and no other, got {len(found)}"
        )
    X = dataset.X[:, [position[name] for name in names]]
    return dataclasses.replace(dataset, X=X, feature_names=np.asarray(names))


def _find_blank_rows(path: Path, format: str | None) -> np.ndarray | None:
    """Which lines of a LIBSVM file are blank, lines of comments left out; None for other files."""
    if format != "libsvm" and (format or find_reader(path) is not load_svmlight):
        return None
    with open_binary(path) as stream:
        stripped = (line.strip() for line in Lines(stream))
        return np.array([not line for line in stripped if not line.startswith(b"#")], dtype=bool)


def _spread(X: Matrix, is_filled: np.ndarray) -> Matrix:
    """A matrix with the rows of `X` where they belong and zeros in the others."""
    if isinstance(X, np.ndarray):
        found = np.zeros((len(is_filled), X.shape[1]), X.dtype)
        found[is_filled] = X
        return found
    counts = np.zeros(len(is_filled), X.indptr.dtype)
    counts[is_filled] = np.diff(X.indptr)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(X.indptr.dtype)
    return sp.csr_matrix((X.data, X.indices, ends), shape=(len(is_filled), X.shape[1]))
