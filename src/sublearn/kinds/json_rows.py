"""Rows of a question, each in the form that suits it, made one matrix of the model's width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from sublearn.io.prepared import prepare_rows
from sublearn.typing import JsonObject, Matrix
from sublearn.validation.values import is_finite_number, is_int64, show

__all__ = ["Rows"]

_POSITIONS = {"indices", "values"}


class Rows:
    """Makes the matrix that a model takes of rows as they come in JSON.

    A row is a list of all its values, an object ``{"indices": [...], "values": [...]}`` with
    columns counted from 0, or, for a model that knows the names of its columns, an object from
    names to values. Columns that are not named are 0. Rows are prepared as the notes of the model
    say they were for `fit`.
    """

    def __init__(
        self, n_columns: int, names: np.ndarray | None, notes: JsonObject, *, takes_sparse: bool
    ):
        self.n_columns = n_columns
        self.column_of = (
            None if names is None else {str(name): j for j, name in enumerate(names.tolist())}
        )
        self.takes_sparse = takes_sparse
        self.notes = notes

    def matrix(self, rows: Sequence[object], first: int = 0) -> Matrix:
        """A CSR matrix if any row is an object and the model takes one, else an array.

        `first` is the number of the first of these rows in the question, for messages.
        """
        if any(isinstance(row, dict) for row in rows):
            X = self._sparse(rows, first)
            X = X if self.takes_sparse else X.toarray()
        else:
            X = np.array([self._all_values(row, i) for i, row in enumerate(rows, first)])
        return prepare_rows(X, self.notes)

    def _sparse(self, rows: Sequence[object], first: int) -> sparse.csr_matrix:
        entries = [self._entries(row, i) for i, row in enumerate(rows, first)]
        ends = np.cumsum([0, *(len(columns) for columns, _ in entries)])
        columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        X = sparse.csr_matrix((values, columns, ends), shape=(len(rows), self.n_columns))
        X.sum_duplicates()
        return X

    def _entries(self, row: object, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of a row in any form."""
        if not isinstance(row, dict):
            values = self._all_values(row, i)
            columns = np.flatnonzero(values)
            return columns, values[columns]
        if row.keys() == _POSITIONS:
            return self._by_position(row, i)
        return self._by_name(row, i)

    def _all_values(self, row: object, i: int) -> np.ndarray:
        values = _numbers(row, f"rows[{i}]", float)
        if len(values) != self.n_columns:
            raise ValueError(
                f"rows[{i}] must have {self.n_columns} values, as many as the model has features, "
                f"got {len(values)}"
            )
        return values

    def _by_position(self, row: JsonObject, i: int) -> tuple[np.ndarray, np.ndarray]:
        columns = _numbers(row["indices"], f"rows[{i}].indices", int)
        values = _numbers(row["values"], f"rows[{i}].values", float)
        if len(columns) != len(values):
            raise ValueError(
                f"rows[{i}].values must be as many as its indices, {len(columns)}, "
                f"got {len(values)}"
            )
        outside = columns[(columns < 0) | (columns >= self.n_columns)]
        if len(outside):
            raise ValueError(
                f"rows[{i}].indices must be from 0 to {self.n_columns - 1}, got {outside[0]}"
            )
        return columns, values

    def _by_name(self, row: JsonObject, i: int) -> tuple[np.ndarray, np.ndarray]:
        if self.column_of is None:
            raise ValueError(
                f"rows[{i}] must be a list of {self.n_columns} values or an object with indices "
                f"and values, as the model does not know names of features, got {show(row)}"
            )
        for name in row:
            if name not in self.column_of:
                raise ValueError(
                    f"rows[{i}] must name features of the model ({_some(self.column_of)}), "
                    f"got {show(name)}"
                )
        columns = np.array([self.column_of[name] for name in row], dtype=np.int64)
        return columns, _numbers(list(row.values()), f"rows[{i}]", float)


def _numbers(values: object, what: str, kind: type) -> np.ndarray:
    """A list of numbers as an array; true and false are no numbers, nor is what has no 64 bits."""
    if not isinstance(values, list):
        raise ValueError(f"{what} must be a list of numbers, got {show(values)}")
    is_whole = kind is int
    if not set(map(type, values)) <= ({int} if is_whole else {int, float}):
        wrong = next(v for v in values if type(v) is not int and (is_whole or type(v) is not float))
        noun = "whole numbers" if is_whole else "numbers"
        raise ValueError(f"{what} must be {noun}, got {show(wrong)}")
    try:
        found = np.array(values, dtype=np.int64 if is_whole else np.float64)
    except OverflowError:
        found = np.array([np.inf])
    if not np.isfinite(found).all():
        wrong = next(v for v in values if not (is_int64(v) if is_whole else is_finite_number(v)))
        raise ValueError(f"{what} must be finite numbers of 64 bits, got {show(wrong)}")
    return found


def _some(names: dict[str, int]) -> str:
    shown = ", ".join(list(names)[:3])
    return shown + (", ..." if len(names) > 3 else "")
