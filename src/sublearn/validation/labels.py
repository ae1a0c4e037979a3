"""Labels of any kind, made the list of rows that carry each label; and predictions turned back.

Four forms are known: one label per sample (1-D), a dense or a sparse 0/1 indicator matrix of
shape (n_samples, n_labels), and one list of labels per sample.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import numbers
from collections.abc import Collection, Hashable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sublearn.typing import LabelsLike, SparseMatrix
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import as_native, show

__all__ = ["EncodedLabels", "LabelKind", "decode_predictions", "encode_each", "encode_labels"]

#: Labels in the form of those of `fit`: an array, an indicator matrix or a list for each sample.
DecodedLabels: TypeAlias = "np.ndarray | sp.csr_matrix | list[list[Hashable]]"

_COLLECTIONS = (Sequence, Set, np.ndarray)


class LabelKind(enum.Enum):
    """The form in which labels were given, and in which predictions go back."""

    BINARY = "one of two labels per sample"
    MULTICLASS = "one of several labels per sample"
    DENSE_INDICATOR = "dense indicator matrix"
    SPARSE_INDICATOR = "sparse indicator matrix"
    LABEL_LISTS = "one list of labels per sample"

    @property
    def is_multilabel(self) -> bool:
        """Whether a sample may carry any number of labels."""
        return self not in (LabelKind.BINARY, LabelKind.MULTICLASS)

    @property
    def is_indicator(self) -> bool:
        """Whether labels are columns of a matrix."""
        return self in (LabelKind.DENSE_INDICATOR, LabelKind.SPARSE_INDICATOR)


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """The rows that carry each label: the indicator matrix, compressed by columns.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n_classes + 1,)
        The rows of label `k` are ``rows[indptr[k]:indptr[k + 1]]``, increasing.
    rows : ndarray of int32
        Row ids.
    classes : ndarray of shape (n_classes,)
        The label that each column stands for: sorted names, or column numbers for indicators.
    kind : LabelKind
        The form in which the labels were given.
    n_samples : int
        Number of rows, with those that carry no label.
    names : ndarray of str, or None
        What the columns of a data frame are called; `classes` are their numbers.
    """

    indptr: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    kind: LabelKind
    n_samples: int
    names: np.ndarray | None = None

    @property
    def n_classes(self) -> int:
        """Number of labels, with those that no row carries."""
        return len(self.classes)

    def counts(self) -> np.ndarray:
        """Number of rows that carry each label."""
        return np.diff(self.indptr)

    def to_csr(
        self, columns: np.ndarray | None = None, n_columns: int | None = None
    ) -> sp.csr_matrix:
        """The indicator matrix, boolean, with sorted indices.

        Its shape is (n_samples, n_classes), or (n_samples, n_columns) with label `k` in column
        ``columns[k]``.
        """
        if columns is None:
            columns, n_columns = np.arange(self.n_classes), self.n_classes
        ones = np.ones(len(self.rows), dtype=bool)
        entries = (ones, (self.rows, np.repeat(columns, self.counts())))
        csr = sp.csr_matrix(entries, shape=(self.n_samples, n_columns))
        csr.sort_indices()
        return csr


def encode_labels(
    y: LabelsLike | EncodedLabels,
    n_samples: int,
    *,
    estimator_name: str = "",
    argument: str = "y",
    for_fit: bool = True,
) -> EncodedLabels:
    """Labels in any of the known forms, as the rows that carry each label.

    Parameters
    ----------
    y : array-like, sparse matrix, or sequence of label collections
        - 1-D: integers, strings, bools or anything else hashable, of one type. A column of shape
          (n_samples, 1) is taken as 1-D with a warning. At least two different labels.
        - 2-D array or frame, or sparse matrix: 0/1 indicators, one column per label.
        - list, tuple, series or object array of lists, tuples, sets or arrays: the labels of each
          sample. Rows of one length, two or more, with nothing but 0 and 1 in them, are an
          indicator matrix written as lists, as scikit-learn reads them.
        - EncodedLabels: who fits another estimator has read them already.
    n_samples : int
        Rows of X.
    estimator_name : str
        Who asks; stands at the head of error messages.
    argument : str
        What the user calls `y`.
    for_fit : bool
        Refuse labels from which nothing can be learnt: one class only, or no label at all.

    Returns
    -------
    EncodedLabels
        Names are sorted. Names of one type that has no order stand as they first appear.
    """
    refuse = _refusal(estimator_name, argument)
    if y is None:
        raise ValueError(
            f"This {estimator_name or 'classifier'} estimator requires {argument} to be passed, "
            f"but the target {argument} is None."
        )
    encoded = _encode(y, n_samples, refuse)
    if encoded.kind is LabelKind.DENSE_INDICATOR and encoded.names is None:
        encoded = replace(encoded, names=_column_names(y))
    if for_fit:
        _refuse_nothing_to_learn(encoded, refuse)
    return encoded


def _encode(y: LabelsLike | EncodedLabels, n_samples: int, refuse: _Refusal) -> EncodedLabels:
    if isinstance(y, EncodedLabels) and y.n_samples == n_samples:
        return y
    if sp.issparse(y):
        return _encode_sparse_indicator(y, n_samples, refuse)
    if isinstance(y, (str, bytes)) or not (hasattr(y, "__len__") or hasattr(y, "__array__")):
        raise refuse(f"must be an array, a sparse matrix or a list, got {show(y)}")
    items = _as_array_or_list(y)
    if isinstance(items, list):
        return _encode_lists(items, n_samples, refuse)
    return _encode_array(items, n_samples, refuse)


def _column_names(y: LabelsLike | EncodedLabels) -> np.ndarray | None:
    """Names of the columns of a frame of any library, if they are strings."""
    names = list(getattr(y, "columns", ()))
    is_named = bool(names) and all(isinstance(name, str) for name in names)
    return np.array(names, dtype=object) if is_named else None


def encode_each(
    values: Sequence[Hashable], *, estimator_name: str = "", argument: str = "y"
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels, sorted, and the position of each value among them.

    One label per item, of any hashable type: a tuple is a label here, not a list of labels. Each
    item costs one look into a dict, so that a million of them are quick.
    """
    refuse = _refusal(estimator_name, argument)
    try:
        names = list(dict.fromkeys(values))
    except TypeError as error:
        raise refuse(f"must hold hashable labels: {error}") from None
    classes, codes = _find_classes(_as_array_of_one_family(names), refuse)
    position = dict(zip(names, codes.tolist(), strict=True))
    return classes, np.fromiter(map(position.__getitem__, values), np.int64, len(values))


def decode_predictions(
    kind: LabelKind, classes: np.ndarray, predicted: sp.spmatrix
) -> DecodedLabels:
    """Predicted labels in the form in which the labels were given to `fit`.

    Parameters
    ----------
    kind : LabelKind
        The form.
    classes : ndarray of shape (n_classes,)
        The label that each column stands for.
    predicted : sparse matrix of shape (n_samples, n_classes)
        Each stored entry that is not zero predicts a label.

    Returns
    -------
    ndarray, csr_matrix or list
        1-D array of labels; int64 indicator matrix, dense or sparse; or a list of lists of
        labels, each in the order of `classes`.
    """
    csr = sp.csr_matrix(predicted, dtype=bool, copy=True)
    csr.eliminate_zeros()
    csr.sort_indices()
    if csr.shape[1] != len(classes):
        raise ValueError(
            f"predicted must have one column per class ({len(classes)}), got {csr.shape[1]}"
        )
    if kind is LabelKind.DENSE_INDICATOR:
        return csr.astype(np.int64).toarray()
    if kind is LabelKind.SPARSE_INDICATOR:
        return csr.astype(np.int64)
    if kind is LabelKind.LABEL_LISTS:
        names = classes[csr.indices].tolist()
        return [names[a:b] for a, b in itertools.pairwise(csr.indptr.tolist())]
    if (np.diff(csr.indptr) != 1).any():
        raise ValueError("predicted must have exactly one label in each row of a 1-D target")
    return classes[csr.indices]


@dataclass(frozen=True)
class _Refusal:
    """What to raise about labels; `head` names them and who asks."""

    head: str

    def __call__(self, sentence: str) -> ValueError:
        return ValueError(f"{self.head} {sentence}")


def _refusal(estimator_name: str, argument: str) -> _Refusal:
    return _Refusal(f"{estimator_name}: {argument}" if estimator_name else argument)


def _refuse_nothing_to_learn(encoded: EncodedLabels, refuse: _Refusal) -> None:
    classes = encoded.classes
    if not encoded.kind.is_multilabel and len(classes) < 2:
        got = f"1 class ({show(classes[0])})" if len(classes) else "0"
        raise refuse(f"needs at least 2 classes, got {got}")
    if len(encoded.rows) == 0:
        is_lists = encoded.kind is LabelKind.LABEL_LISTS
        got = "only empty lists" if is_lists else "an indicator matrix of zeros"
        raise refuse(f"must assign at least one label, got {got}")


def _refuse_wrong_length(length: int, n_samples: int, refuse: _Refusal) -> None:
    if length != n_samples:
        raise refuse(f"must have one row per sample ({n_samples}), got {length}")


def _as_array_or_list(y: LabelsLike) -> np.ndarray | list[Collection[Hashable]]:
    """A list if `y` holds collections of labels, an array if not."""
    items = y if isinstance(y, (list, tuple)) else as_native(np.asarray(y))
    if isinstance(items, np.ndarray) and (items.dtype.kind != "O" or items.ndim != 1):
        return items
    if not any(map(_is_collection, set(map(type, items)))):
        return _as_array_of_one_family(items)
    lists = list(items)
    return np.asarray(lists) if _is_indicator(lists) else lists


def _is_indicator(lists: list[Collection[Hashable]]) -> bool:
    """Whether an indicator matrix came as nested lists.

    Read as labels, such rows would name 0 or 1 twice, or all carry the labels {0, 1}.
    """
    if not all(_is_flat(row) and not isinstance(row, Set) for row in lists):
        return False
    lengths = set(map(len, lists))
    if len(lengths) != 1 or min(lengths) < 2:
        return False
    families = {_family(t) for t in set(map(type, itertools.chain.from_iterable(lists)))}
    return families <= {"number", "bool"} and set(itertools.chain.from_iterable(lists)) <= {0, 1}


def _is_flat(labels: object) -> bool:
    return _is_collection(type(labels)) and getattr(labels, "ndim", 1) == 1


def _is_collection(type_: type) -> bool:
    return issubclass(type_, _COLLECTIONS) and not issubclass(type_, (str, bytes))


# --- one label per sample --------------------------------------------------------------------


def _encode_array(array: np.ndarray, n_samples: int, refuse: _Refusal) -> EncodedLabels:
    if array.ndim not in (1, 2):
        raise refuse(f"must be 1-D or 2-D, got {array.ndim}-D")
    _refuse_wrong_length(len(array), n_samples, refuse)
    if array.ndim == 2 and array.shape[1] != 1:
        return _encode_dense_indicator(array, refuse)
    classes, codes = _find_classes(column_or_1d(array, warn=True), refuse)
    kind = LabelKind.BINARY if len(classes) <= 2 else LabelKind.MULTICLASS
    return _from_entries(np.arange(n_samples), codes, classes, kind, n_samples)


# --- indicator matrices ----------------------------------------------------------------------


def _encode_dense_indicator(array: np.ndarray, refuse: _Refusal) -> EncodedLabels:
    if array.dtype.kind == "O":
        array = np.asarray(array.tolist())  # what the objects are, frames of mixed columns too
    if array.dtype.kind not in "biuf":
        raise refuse("must hold only 0 and 1 in an indicator matrix, got other types")
    _refuse_other_than_0_and_1(array, refuse)
    return _from_csc(
        sp.csc_matrix(array != 0), np.arange(array.shape[1]), LabelKind.DENSE_INDICATOR
    )


def _encode_sparse_indicator(y: SparseMatrix, n_samples: int, refuse: _Refusal) -> EncodedLabels:
    if y.ndim != 2:
        raise refuse(f"must be 2-D if it is sparse, got {y.ndim}-D")
    _refuse_wrong_length(y.shape[0], n_samples, refuse)
    csc = sp.csc_matrix(check_sparse(y, refuse.head), copy=True)
    csc.sum_duplicates()
    _refuse_other_than_0_and_1(csc.data, refuse)
    csc.eliminate_zeros()
    return _from_csc(csc, np.arange(csc.shape[1]), LabelKind.SPARSE_INDICATOR)


def _refuse_other_than_0_and_1(values: np.ndarray, refuse: _Refusal) -> None:
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        value = values[wrong][0]
        raise refuse(f"must hold only 0 and 1 in an indicator matrix, got {show(value)}")


# --- lists of labels -------------------------------------------------------------------------


def _encode_lists(
    lists: list[Collection[Hashable]], n_samples: int, refuse: _Refusal
) -> EncodedLabels:
    _refuse_wrong_length(len(lists), n_samples, refuse)
    for row, labels in enumerate(lists):
        if not _is_flat(labels):
            raise refuse(
                f"must hold a list of labels for each sample, got {show(labels)} in row {row}"
            )
    flat = list(itertools.chain.from_iterable(lists))
    classes, codes = _find_classes(_as_array_of_one_family(flat), refuse)
    rows = np.repeat(np.arange(n_samples), [len(labels) for labels in lists])
    return _from_entries(rows, codes, classes, LabelKind.LABEL_LISTS, n_samples)


# --- names of labels -------------------------------------------------------------------------


def _find_classes(values: np.ndarray, refuse: _Refusal) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels, sorted, and the position of each value among them."""
    if values.dtype.kind == "O":
        _refuse_missing_or_mixed(values, refuse)
        return _find_classes_by_hash(values, refuse)
    if values.dtype.kind in "fmM":
        _refuse_missing_or_continuous(values, refuse)
    classes, codes = np.unique(values, return_inverse=True)
    return classes, codes.reshape(-1)


def _as_array_of_one_family(values: Sequence[object] | np.ndarray) -> np.ndarray:
    """An array of numbers, bools or strings where all values are; else of the objects.

    np.asarray would turn the numbers of a list of numbers and strings into strings.
    """
    if {_family(t) for t in set(map(type, values))} in ({"number"}, {"bool"}, {"str"}, set()):
        return np.asarray(values.tolist() if isinstance(values, np.ndarray) else values)
    return _object_array(values)


def _family(type_: type) -> str:
    """Types whose labels may stand together: numbers of all types compare with each other."""
    if issubclass(type_, (bool, np.bool_)):
        return "bool"
    if issubclass(type_, str):
        return "str"
    return "number" if issubclass(type_, numbers.Real) else type_.__name__


def _refuse_missing_or_mixed(values: np.ndarray, refuse: _Refusal) -> None:
    if any(map(_is_missing, values)):
        raise refuse("must not have missing labels, got None or NaN")
    families = sorted({_family(t) for t in set(map(type, values))})
    if len(families) > 1:
        raise refuse(f"must hold labels of one type, got {' and '.join(families)}")


def _is_missing(value: object) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def _refuse_missing_or_continuous(values: np.ndarray, refuse: _Refusal) -> None:
    if (values != values).any():
        raise refuse("must not have missing labels, got None or NaN")
    if values.dtype.kind != "f":
        return
    if not np.isfinite(values).all():
        raise refuse("must be finite, got infinity")
    if (values != np.floor(values)).any():
        check_classification_targets(values)  # "Unknown label type: continuous"


def _find_classes_by_hash(values: np.ndarray, refuse: _Refusal) -> tuple[np.ndarray, np.ndarray]:
    try:
        names = list(dict.fromkeys(values))
    except TypeError:
        raise refuse(f"must hold hashable labels, got {type(values[0]).__name__}") from None
    with contextlib.suppress(TypeError):  # no order of their own: as they first appear
        names = sorted(names)
    position = {name: k for k, name in enumerate(names)}
    codes = np.fromiter((position[value] for value in values), np.int64, len(values))
    return _object_array(names), codes


def _object_array(items: Collection[object] | np.ndarray) -> np.ndarray:
    return np.fromiter(items, dtype=object, count=len(items))


# --- compression by label --------------------------------------------------------------------


def _from_entries(
    rows: np.ndarray, codes: np.ndarray, classes: np.ndarray, kind: LabelKind, n_samples: int
) -> EncodedLabels:
    ones = np.ones(len(rows), dtype=bool)
    csc = sp.csc_matrix((ones, (rows, codes)), shape=(n_samples, len(classes)))
    return _from_csc(csc, classes, kind)


def _from_csc(csc: sp.csc_matrix, classes: np.ndarray, kind: LabelKind) -> EncodedLabels:
    csc.sum_duplicates()  # sorts the rows of each label; a label named twice counts once
    rows = csc.indices.astype(np.int32, copy=False)
    indptr = csc.indptr.astype(np.int64, copy=False)
    return EncodedLabels(indptr, rows, classes, kind, csc.shape[0])
