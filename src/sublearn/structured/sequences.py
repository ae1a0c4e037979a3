"""Sequences in any of the forms that people have them in, as one CSR matrix and the lengths.

list of matrices            each of shape (length, n_features), dense or sparse
one matrix and `lengths`    all sequences one below the other
list of lists of positions  a position is a list of strings or a dict: see named_features.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn.structured.named_features import grow_vocabulary, look_up
from sublearn.validation import check_features, encode_each
from sublearn.validation.native import as_native
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import count_rows, show

__all__ = ["Chains", "FlatInput", "encode_tags", "flatten", "flatten_tags", "read_rows"]

_MOST_ENTRIES = 2**31 - 1  # the core numbers entries with 32 bits


@dataclass(frozen=True, eq=False)
class FlatInput:
    """All positions one below the other, features not looked at yet.

    Parameters
    ----------
    rows : matrix, or list of positions with named features
    lengths : ndarray of int64
        Of each sequence; zeros are allowed.
    is_named : bool
        Whether features have names.
    is_one : bool
        Whether the user passed one matrix with `lengths`, and wants one array back.
    """

    rows: Any
    lengths: np.ndarray
    is_named: bool
    is_one: bool


@dataclass(frozen=True, eq=False)
class Chains:
    """Rows of features and the lengths of the sequences that they make up."""

    X: sp.csr_matrix
    lengths: np.ndarray

    @property
    def n_positions(self) -> int:
        """Of all sequences."""
        return self.X.shape[0]

    def take(self, sequences: np.ndarray) -> Chains:
        """Some sequences, in the order given."""
        return Chains(self.X[rows_of(self.lengths, sequences)], self.lengths[sequences])


def rows_of(lengths: np.ndarray, sequences: np.ndarray) -> np.ndarray:
    """Rows of some sequences, one after another."""
    begin = np.cumsum(lengths) - lengths
    taken = lengths[sequences]
    first = np.repeat(begin[sequences] - (np.cumsum(taken) - taken), taken)
    return first + np.arange(taken.sum())


def flatten(X: Any, lengths: Any, head: str) -> FlatInput:
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


def _not_sequences(X: Any, head: str) -> ValueError:
    got = f"a matrix of shape {X.shape}" if hasattr(X, "shape") else show(X)
    return ValueError(
        f"{head}: X must be a list of sequences, or one matrix together with lengths, got {got}"
    )


def _flatten_one(X: Any, lengths: Any, head: str) -> FlatInput:
    if not sp.issparse(X) and not hasattr(X, "shape"):
        X = list(X)
    n_rows = count_rows(X, f"{head}: X")
    is_named = isinstance(X, list) and _has_names(X)
    return FlatInput(X, _as_lengths(lengths, n_rows, head), is_named, is_one=True)


def _as_lengths(lengths: Any, n_rows: int, head: str) -> np.ndarray:
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


def _flatten_many(sequences: list[Any], head: str) -> FlatInput:
    for i, sequence in enumerate(sequences):
        is_sized = hasattr(sequence, "__len__") or hasattr(sequence, "shape")  # sparse: no len
        if not is_sized or isinstance(sequence, (str, bytes, Mapping)):
            raise ValueError(
                f"{head}: X[{i}] must be a matrix or a list of positions, got {show(sequence)}"
            )
    if not any(hasattr(s, "shape") for s in sequences):
        positions = list(chain.from_iterable(sequences))
        if not positions or _has_names(positions):
            lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
            return FlatInput(positions, lengths, is_named=bool(positions), is_one=False)
    matrices = [_as_matrix(s, f"{head}: X[{i}]") for i, s in enumerate(sequences)]
    lengths = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    return FlatInput(_stack(matrices, head), lengths, is_named=False, is_one=False)


def _has_names(positions: Sequence[Any]) -> bool:
    """Whether positions have named features: told by the first that has any feature."""
    for position in positions:
        if isinstance(position, (str, Mapping, set, frozenset)):
            return True  # a bare string is refused later, with a sentence about positions
        if not isinstance(position, (list, tuple)):
            return False
        if position:
            return isinstance(position[0], str) or not is_number(position[0])
    return True


def is_number(value: Any) -> bool:
    """Whether a row of such values is a row of a matrix."""
    return isinstance(value, (int, float, np.number, np.bool_))


def _as_matrix(sequence: Any, head: str) -> Any:
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


def _stack(matrices: list[Any], head: str) -> Any:
    filled = [matrix for matrix in matrices if matrix.shape[0]]
    widths = sorted({matrix.shape[1] for matrix in filled})
    if len(widths) > 1:
        i = next(
            i for i, m in enumerate(matrices) if m.shape[0] and m.shape[1] != filled[0].shape[1]
        )
        raise ValueError(
            f"{head}: X must have sequences of one number of features, got "
            f"{filled[0].shape[1]} and {matrices[i].shape[1]} (X[{i}])"
        )
    if not filled:
        return np.zeros((0, 0))
    if any(sp.issparse(matrix) for matrix in filled):
        return sp.vstack([sp.csr_matrix(matrix) for matrix in filled], format="csr")
    return np.concatenate([np.asarray(matrix) for matrix in filled])


def read_rows(
    estimator: Any, flat: FlatInput, vocabulary: dict[str, int] | None, *, reset: bool
) -> tuple[sp.csr_matrix, dict[str, int] | None]:
    """Features of all positions as CSR, and the vocabulary if they have names.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` if `reset`, is compared with it if not.
    flat : FlatInput
        The positions.
    vocabulary : dict or None
        That of the fit; None if there the features had no names.
    reset : bool
        True in `fit`.

    Returns
    -------
    csr_matrix, dict or None
    """
    head = f"{type(estimator).__name__}: X"
    if reset:
        if not flat.lengths.sum():
            raise ValueError(f"{head} must have at least one position, got only empty sequences")
        if not flat.is_named:
            return _checked(estimator, flat.rows, reset=True), None
        X, vocabulary = grow_vocabulary(flat.rows, head)
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)  # of an earlier fit to a data frame
        return X, vocabulary
    if not flat.lengths.sum():
        return sp.csr_matrix((0, estimator.n_features_in_)), vocabulary
    if flat.is_named != (vocabulary is not None):
        forms = ("matrices", "positions with named features")
        raise ValueError(
            f"{head} must have {forms[vocabulary is not None]}, as in fit, "
            f"got {forms[flat.is_named]}"
        )
    if vocabulary is not None:
        return look_up(flat.rows, vocabulary, head), vocabulary
    return _checked(estimator, flat.rows, reset=False), None


def _checked(estimator: Any, rows: Any, *, reset: bool) -> sp.csr_matrix:
    X = check_features(estimator, rows, reset=reset)
    if X.nnz > _MOST_ENTRIES:
        raise ValueError(
            f"{type(estimator).__name__}: X must have at most {_MOST_ENTRIES} entries, got {X.nnz}"
        )
    return X


def flatten_tags(y: Any, flat: FlatInput, head: str, argument: str = "y") -> list[Any]:
    """Tags of all positions one after another."""
    name = f"{head}: {argument}"
    if y is None or isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
        raise ValueError(f"{name} must have a tag for each position, got {show(y)}")
    if flat.is_one:
        tags = y.tolist() if hasattr(y, "tolist") else list(y)
        if len(tags) != flat.lengths.sum():
            raise ValueError(f"{name} must have {flat.lengths.sum()} tags, got {len(tags)}")
        return tags
    if len(y) != len(flat.lengths):
        raise ValueError(
            f"{name} must have a list of tags for each of {len(flat.lengths)} sequences, "
            f"got {len(y)}"
        )
    lists = [tags.tolist() if hasattr(tags, "tolist") else tags for tags in y]
    for i, (tags, length) in enumerate(zip(lists, flat.lengths.tolist(), strict=True)):
        if not isinstance(tags, (list, tuple)):
            raise ValueError(f"{name}[{i}] must be a list of tags, got {show(tags)}")
        if len(tags) != length:
            raise ValueError(
                f"{name}[{i}] must have a tag for each of {length} positions, got {len(tags)}"
            )
    return list(chain.from_iterable(lists))


def encode_tags(tags: list[Any], head: str, argument: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct tags, and the number of each."""
    classes, codes = encode_each(tags, estimator_name=head, argument=argument)
    if len(classes) < 2:
        raise ValueError(
            f"{head}: {argument} needs at least 2 different labels, got 1 ({show(classes[0])})"
        )
    return classes, codes.astype(np.int32)
