"""Sequences in any of the forms that people have them in, as one CSR matrix and the lengths.

list of matrices            each of shape (length, n_features), dense or sparse
one matrix and `lengths`    all sequences one below the other
list of lists of positions  a position is a list of strings or a dict: see named_features.py
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sublearn.structured.named_features import Position, grow_vocabulary, look_up
from sublearn.typing import Matrix, MatrixLike
from sublearn.validation import check_features, encode_each
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import as_native, count_rows, show

if TYPE_CHECKING:
    from sublearn.structured.chain_svm import ChainSVM

__all__ = [
    "FlatInput",
    "LabelLists",
    "Sequences",
    "encode_flat",
    "flatten",
    "flatten_labels",
    "flatten_lists",
    "learn_rows",
    "read_rows",
    "split_lists",
    "stack_rows",
]

#: Sequences in one of the three forms.
Sequences: TypeAlias = (
    "Matrix | Sequence[MatrixLike] | Sequence[Sequence[Position]] | Sequence[Position]"
)
#: Labels of each sample, or of all of them in a row.
LabelLists: TypeAlias = (
    "Sequence[Sequence[Hashable] | np.ndarray] | Sequence[Hashable] | np.ndarray"
)

_MOST_ENTRIES = 2**31 - 1  # the core numbers entries with 32 bits


@dataclass(frozen=True, eq=False)
class FlatInput:
    """All positions one below the other, features not looked at yet.

    Parameters
    ----------
    lengths : ndarray of int64
        Of each sequence; zeros are allowed.
    is_one : bool
        Whether the user passed one matrix with `lengths`, and wants one array back.
    rows : matrix or None
        Features without names.
    positions : list or None
        Features with names.
    """

    lengths: np.ndarray
    is_one: bool
    rows: MatrixLike | None = None
    positions: list[Position] | None = None


def flatten(X: Sequences, lengths: ArrayLike | None, head: str) -> FlatInput:
    """Sequences of any form; `head` names who asks."""
    if lengths is not None:
        return _flatten_one(X, lengths, head)
    if sp.issparse(X) or isinstance(X, (str, bytes, Mapping)) or hasattr(X, "iloc"):
        raise _not_sequences(X, head)
    try:
        sequences = list(X)
    except TypeError:
        raise _not_sequences(X, head) from None
    if isinstance(X, np.ndarray) and X.ndim == 2:
        raise _not_sequences(X, head)
    if not sequences:
        raise ValueError(f"{head}: X must have at least one sequence, got none")
    return _flatten_many(sequences, head)


def _not_sequences(X: object, head: str) -> ValueError:
    got = f"a matrix of shape {X.shape}" if hasattr(X, "shape") else show(X)
    return ValueError(
        f"{head}: X must be a list of sequences, or one matrix together with lengths, got {got}"
    )


def _flatten_one(X: Sequences, lengths: ArrayLike, head: str) -> FlatInput:
    rows = X if hasattr(X, "shape") else list(X)
    found = _as_lengths(lengths, count_rows(rows, f"{head}: X"), head)
    if isinstance(rows, list) and _has_names(rows):
        return FlatInput(found, is_one=True, positions=rows)
    return FlatInput(found, is_one=True, rows=rows)


def _as_lengths(lengths: ArrayLike, n_rows: int, head: str) -> np.ndarray:
    found = np.asarray(lengths)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"{head}: lengths must be a list of integers, got {show(lengths)}")
    found = found.astype(np.int64)
    if (found < 0).any():
        raise ValueError(f"{head}: lengths must not be negative, got {found.min()}")
    if found.sum() != n_rows:
        raise ValueError(
            f"{head}: lengths must add up to the rows of X ({n_rows}), got {found.sum()}"
        )
    return found


def _flatten_many(sequences: list[MatrixLike | Sequence[Position]], head: str) -> FlatInput:
    for i, sequence in enumerate(sequences):
        is_sized = hasattr(sequence, "__len__") or hasattr(sequence, "shape")  # sparse: no len
        if not is_sized or isinstance(sequence, (str, bytes, Mapping)):
            raise ValueError(
                f"{head}: X[{i}] must be a matrix or a list of positions, got {show(sequence)}"
            )
    lists = cast("list[Sequence[Position]]", sequences)
    if not any(hasattr(s, "shape") for s in sequences):
        positions = list(chain.from_iterable(lists))
        if not positions or _has_names(positions):
            lengths = np.fromiter(map(len, lists), np.int64, len(lists))
            return FlatInput(lengths, is_one=False, positions=positions or None)
    matrices = [_as_matrix(s, f"{head}: X[{i}]") for i, s in enumerate(sequences)]
    lengths = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    return FlatInput(lengths, is_one=False, rows=stack_rows(matrices, head))


def _has_names(positions: Sequence[object]) -> bool:
    """Whether positions have named features: told by the first that has any feature."""
    for position in positions:
        if isinstance(position, (str, Mapping, set, frozenset)):
            return True  # a bare string is refused later, with a sentence about positions
        if not isinstance(position, (list, tuple)):
            return False
        if position:
            return not isinstance(position[0], (int, float, np.number, np.bool_))
    return True


def _as_matrix(sequence: MatrixLike, head: str) -> Matrix:
    if sp.issparse(sequence):
        return check_sparse(sequence, head)
    if hasattr(sequence, "iloc"):
        return sequence
    try:
        matrix = as_native(np.asarray(sequence))
    except ValueError:
        raise ValueError(f"{head} must have rows of one width, got several") from None
    if matrix.size == 0 and matrix.ndim < 2:
        return matrix.reshape(0, 0)
    if matrix.ndim != 2:
        raise ValueError(
            f"{head} must have shape (length, n_features), got {matrix.ndim} dimension(s)"
        )
    return matrix


def stack_rows(matrices: Sequence[Matrix], head: str) -> Matrix:
    """Matrices of one width, one below the other; of empty ones the width does not matter."""
    filled = [(i, matrix) for i, matrix in enumerate(matrices) if matrix.shape[0]]
    if not filled:
        return np.zeros((0, 0))
    width = filled[0][1].shape[1]
    for i, matrix in filled:
        if matrix.shape[1] != width:
            raise ValueError(
                f"{head}: X must have samples of one number of features, got {width} and "
                f"{matrix.shape[1]} (X[{i}])"
            )
    if any(sp.issparse(matrix) for _, matrix in filled):
        return sp.vstack([sp.csr_matrix(matrix) for _, matrix in filled], format="csr")
    return np.concatenate([np.asarray(matrix) for _, matrix in filled])


def learn_rows(estimator: ChainSVM, flat: FlatInput) -> tuple[sp.csr_matrix, dict[str, int] | None]:
    """Features of all positions in `fit` as CSR, and the column of each name if they have names."""
    head = f"{type(estimator).__name__}: X"
    if not flat.lengths.sum():
        raise ValueError(f"{head} must have at least one position, got only empty sequences")
    if flat.positions is None:
        return _checked(estimator, flat.rows, reset=True), None
    X, vocabulary = grow_vocabulary(flat.positions, head)
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit to a data frame
    return X, vocabulary


def read_rows(
    estimator: ChainSVM, flat: FlatInput, vocabulary: dict[str, int] | None
) -> sp.csr_matrix:
    """Features of new positions as CSR, with the columns of the fit."""
    head = f"{type(estimator).__name__}: X"
    if not flat.lengths.sum():
        return sp.csr_matrix((0, estimator.n_features_in_))
    if vocabulary is not None and flat.positions is not None:
        return look_up(flat.positions, vocabulary, head)
    if vocabulary is None and flat.positions is None:
        return _checked(estimator, flat.rows, reset=False)
    forms = ("matrices", "positions with named features")
    raise ValueError(
        f"{head} must have {forms[vocabulary is not None]}, as in fit, "
        f"got {forms[flat.positions is not None]}"
    )


def _checked(estimator: ChainSVM, rows: MatrixLike, *, reset: bool) -> sp.csr_matrix:
    X = check_features(estimator, rows, reset=reset)
    if X.nnz > _MOST_ENTRIES:
        raise ValueError(
            f"{type(estimator).__name__}: X must have at most {_MOST_ENTRIES} entries, got {X.nnz}"
        )
    return X


def flatten_labels(y: LabelLists, flat: FlatInput, name: str) -> list[Hashable]:
    """Labels of all positions one after another; `name` heads the message of a refusal."""
    if not flat.is_one:
        return flatten_lists(y, flat.lengths, name)
    labels = _as_list(y)
    if labels is None or len(labels) != flat.lengths.sum():
        got = show(y) if labels is None else len(labels)
        raise ValueError(f"{name} must have {flat.lengths.sum()} labels, got {got}")
    return labels


def flatten_lists(y: LabelLists, lengths: np.ndarray, name: str) -> list[Hashable]:
    """Labels of all samples one after another: for each sample a list of so many."""
    lists = _as_list(y)
    if lists is None or len(lists) != len(lengths):
        got = show(y) if lists is None else len(lists)
        raise ValueError(
            f"{name} must have a list of labels for each of {len(lengths)} samples, got {got}"
        )
    flat: list[Hashable] = []
    for i, (given, length) in enumerate(zip(lists, lengths.tolist(), strict=True)):
        labels = _as_list(given)
        if labels is None:
            raise ValueError(f"{name}[{i}] must be a list of labels, got {show(given)}")
        if len(labels) != length:
            raise ValueError(f"{name}[{i}] must have {length} labels, got {len(labels)}")
        flat.extend(labels)
    return flat


def _as_list(given: object) -> list[Hashable] | None:
    """Items of a list, a tuple, an array or a column of a data frame; None of anything else."""
    if hasattr(given, "tolist"):
        given = given.tolist()
    return list(given) if isinstance(given, (list, tuple)) else None


def split_lists(flat: list[Hashable], lengths: np.ndarray) -> list[list[Hashable]]:
    """Inverse of `flatten_lists`."""
    ends = np.cumsum(lengths).tolist()
    return [flat[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)]


def encode_flat(labels: list[Hashable], head: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels, and the number of each."""
    classes, codes = encode_each(labels, estimator_name=head)
    if len(classes) < 2:
        raise ValueError(f"{head}: y needs at least 2 different labels, got 1 ({show(classes[0])})")
    return classes, codes.astype(np.int32)
