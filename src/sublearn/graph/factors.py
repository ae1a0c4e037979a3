"""Groups of factors that share a table or a stack of tables, kept as arrays.

A graph of seven million factors is a handful of such groups: nothing here loops over factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sublearn import _core
from sublearn.graph.names import as_places
from sublearn.graph.table_makers import TableLike, as_table
from sublearn.graph.tables import DenseTable, Table, TableStack
from sublearn.validation.values import is_finite_number, show

__all__ = ["Arguments", "Factors", "make_factors"]


@dataclass(frozen=True)
class Arguments:
    """What a method that adds factors calls its arguments: heads of the messages of refusals."""

    scopes: str
    table: str
    scale: str

    @classmethod
    def of(
        cls, method: str, *, scopes: str = "scopes", table: str = "table", scale: str = "scale"
    ) -> Arguments:
        """Those of a method of `FactorGraph`.

        >>> Arguments.of("add_interactions", scopes="pairs").scopes
        'FactorGraph.add_interactions: pairs'
        """
        return cls(*(f"FactorGraph.{method}: {name}" for name in (scopes, table, scale)))


@dataclass(frozen=True)
class Factors:
    """Factors of one arity over tables of one shape."""

    scopes: np.ndarray  # (n_factors, arity) int32
    table: Table
    rows: np.ndarray | None = None  # of a stack: the table of each factor
    scale: np.ndarray | None = None  # of each factor; None for 1

    def __len__(self) -> int:
        return len(self.scopes)

    def scores(self, labels: np.ndarray) -> np.ndarray:
        """The score of each factor under an assignment of all variables."""
        return self.scaled(self.table.at(labels[self.scopes], self.rows))

    def scaled(self, scores: np.ndarray) -> np.ndarray:
        """Scores times the scale; a factor of scale 0 forbids nothing."""
        if self.scale is None:
            return scores
        scale = self.scale.reshape(-1, *[1] * (scores.ndim - 1))
        return scale * np.where(scale == 0.0, 0.0, scores)

    def rows_or_first(self) -> np.ndarray:
        """Which of the group's tables each factor has."""
        return np.zeros(len(self), dtype=np.int32) if self.rows is None else self.rows

    def total_range(self) -> float:
        """Highest less lowest allowed score, or more, summed over the factors."""
        low, high = self.table.bounds
        if self.rows is None:
            return float(high[0] - low[0]) * float(self.weights().sum())
        return float(np.dot((high - low)[self.rows], self.weights()))

    def weights(self) -> np.ndarray:
        """Absolute scale of each factor."""
        return np.ones(len(self)) if self.scale is None else np.abs(self.scale)

    def tables_of_factors(self, chosen: slice) -> np.ndarray:
        """The scaled table of each chosen factor, in rows."""
        part = self.take(chosen)
        table = self.table
        values = table.values if isinstance(table, DenseTable) else table.to_array()[None]
        return part.scaled(values[part.rows_or_first()].reshape(len(part), -1))

    def take(self, chosen: slice | np.ndarray) -> Factors:
        """Some of the factors, by slice, positions or mask."""
        rows = None if self.rows is None else self.rows[chosen]
        scale = None if self.scale is None else self.scale[chosen]
        return Factors(self.scopes[chosen], self.table, rows, scale)


def make_factors(
    scopes: ArrayLike,
    table: TableLike,
    scale: ArrayLike | None,
    domain: np.ndarray,
    called: Arguments,
) -> list[Factors]:
    """Checked factors over distinct variables.

    Where a variable is repeated within a factor, only the diagonal of the table can be reached:
    those factors get that diagonal as their table, with one axis less.
    """
    places = _check_scopes(scopes, len(domain), called.scopes)
    n, arity = places.shape
    made = as_table(table, arity, called.table)
    rows = None
    if isinstance(made, TableStack):
        if made.n_tables != n:
            raise ValueError(
                f"{called.table} must be one table or one for each of {n} factors, "
                f"got {made.n_tables}"
            )
        made, rows = _share_equal_tables(made)
    _check_labels(places, made, domain, called.table)
    factors = Factors(places, made, rows, _check_scale(scale, n, made, called.scale))
    return _merge_repeated(factors, called.table)


def _check_scopes(scopes: ArrayLike, n_variables: int, name: str) -> np.ndarray:
    found = as_places(scopes, f"{name} must be integers of shape (n_factors, arity)")
    if found.ndim != 2 or found.shape[1] == 0 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of shape (n_factors, arity), got shape "
            f"{found.shape} and dtype {found.dtype}"
        )
    if found.size and (found.min() < 0 or found.max() >= n_variables):
        bad = found.min() if found.min() < 0 else found.max()
        raise ValueError(f"{name} must name variables in 0..{n_variables - 1}, got {int(bad)}")
    out = np.array(found, dtype=np.int32, order="C")
    out.flags.writeable = False
    return out


def _share_equal_tables(stack: TableStack) -> tuple[Table, np.ndarray]:
    values = stack.values.reshape(stack.n_tables, -1)
    first = _core.first_equal_rows(values)
    kept, rows = np.unique(first, return_inverse=True)
    if len(kept) == stack.n_tables:
        return stack, rows.astype(np.int32)
    return TableStack(np.ascontiguousarray(stack.values[kept])), rows.astype(np.int32)


def _check_labels(scopes: np.ndarray, table: Table, domain: np.ndarray, name: str) -> None:
    if (domain == table.shape[0]).all() and len(set(table.shape)) == 1:
        return  # the usual case, told without a look at each factor
    for axis, size in enumerate(table.shape):
        sizes = domain[scopes[:, axis]]
        if len(sizes) and (sizes != size).any():
            f = int(np.argmax(sizes != size))
            raise ValueError(
                f"{name} must have {int(sizes[f])} labels on axis {axis} as variable "
                f"{int(scopes[f, axis])} has, got {size}"
            )


def _check_scale(
    scale: ArrayLike | None, n_factors: int, table: Table, name: str
) -> np.ndarray | None:
    if scale is None or (is_finite_number(scale) and scale == 1):
        return None
    try:
        given = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {show(scale)}") from None
    if given.ndim > 0 and given.shape != (n_factors,):
        raise ValueError(
            f"{name} must be a number or have shape ({n_factors},), got shape {given.shape}"
        )
    out = np.array(np.broadcast_to(given, n_factors))
    if not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if (out < 0).any() and table.has_forbidden:
        raise ValueError(
            f"{name} must not be negative where the table forbids states (-inf), got {out.min()}"
        )
    out.flags.writeable = False
    return out


def _merge_repeated(factors: Factors, name: str) -> list[Factors]:
    if len(factors) == 0:
        return []
    scopes, arity = factors.scopes, factors.scopes.shape[1]
    pairs = [(p, q) for q in range(arity) for p in range(q)]
    if not any((scopes[:, p] == scopes[:, q]).any() for p, q in pairs):
        return [factors]
    # For each position the first position with the same variable: 0 1 2 if all are distinct.
    pattern = np.argmax(scopes[:, :, None] == scopes[:, None, :], axis=2)
    out = []
    for kind in np.unique(pattern, axis=0):
        chosen = factors.take((pattern == kind).all(axis=1))
        is_plain = (kind == np.arange(arity)).all()
        out.append(chosen if is_plain else _on_diagonal(chosen, kind, name))
    return out


def _on_diagonal(factors: Factors, kind: np.ndarray, name: str) -> Factors:
    kept = np.unique(kind)
    shape = tuple(factors.table.shape[p] for p in kept)
    labels = np.indices(shape).reshape(len(shape), -1).T[:, np.searchsorted(kept, kind)]
    if isinstance(factors.table, DenseTable):
        cells = (slice(None), *labels.T)
        values = factors.table.values[cells].reshape(-1, *shape)
    else:
        values = factors.table.at(labels).reshape(1, *shape)
    if np.isneginf(values.reshape(len(values), -1)).all(axis=1).any():
        raise ValueError(
            f"{name} must allow a joint state in which a repeated variable has one label, got none"
        )
    return Factors(factors.scopes[:, kept], DenseTable(values), factors.rows, factors.scale)
