"""Variables as users write them: by number, or by name where they have names."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from sublearn.validation.values import is_int64, show

__all__ = ["Names", "Scopes", "Variables", "as_places"]

#: The variables of one factor, by number or name.
Variables: TypeAlias = "ArrayLike | Iterable[Hashable]"
#: The variables of each of several factors.
Scopes: TypeAlias = "ArrayLike | Iterable[Iterable[Hashable]]"


class Names:
    """The numbers of a graph's variables by their names, if they have any."""

    def __init__(self, names: Sequence[Hashable] | None, n_variables: int):
        self.names = None if names is None else list(names)
        self.places: Mapping[Hashable, int] = {name: i for i, name in enumerate(self.names or ())}
        if self.names is not None and len(self.places) != n_variables:
            raise ValueError(
                f"FactorGraph.names must be {n_variables} distinct names, got {len(self.places)}"
            )
        self._n_variables = n_variables
        self._has_numbers = any(isinstance(name, numbers.Number) for name in self.places)

    def place(self, variable: Hashable, what: str) -> int:
        """The number of a variable; one that is a name is taken as the name."""
        if self.names is not None and _is_key(variable, self.places):
            return self.places[variable]
        if not is_int64(variable) or not 0 <= variable < self._n_variables:
            raise ValueError(f"{what} must {self._rule()}, got {show(variable)}")
        return int(variable)

    def name(self, place: int) -> Hashable:
        """What the variable with this number is called, by default its number."""
        return int(place) if self.names is None else self.names[place]

    def row(self, variables: Variables, what: str) -> np.ndarray:
        """The numbers of the variables of one factor."""
        must = f"{what} must be a list of variables"
        if not self._is_plain(variables):
            listed = _as_list(variables, what)
            return np.array([self.place(variable, what) for variable in listed], dtype=np.int64)
        places = as_places(variables, must)
        if places.ndim != 1 or places.size == 0 or places.dtype.kind not in "iu":
            last = self._n_variables - 1
            raise ValueError(f"{must} in 0..{last}, got {show(variables)}")
        return places

    def rows(self, scopes: Scopes, what: str) -> ArrayLike:
        """The numbers of the variables of many factors of one arity."""
        if self._is_plain(scopes):
            return scopes
        return [
            [self.place(variable, what) for variable in _as_list(scope, what)]
            for scope in _as_list(scopes, what)
        ]

    def _is_plain(self, variables: object) -> TypeGuard[ArrayLike]:
        """Whether there is nothing to look up: no names, or numbers where no name is a number."""
        if self.names is None:
            return True
        if not isinstance(variables, np.ndarray) or variables.dtype.kind not in "iu":
            return False
        return variables.size == 0 or not self._has_numbers

    def _rule(self) -> str:
        numbered = f"name a variable in 0..{self._n_variables - 1}"
        return numbered if self.names is None else f"{numbered}, or by its name"


def as_places(values: ArrayLike, must: str) -> np.ndarray:
    """An array; `must` heads the message that refuses rows of several lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{must}, got {show(values)}") from None


def _as_list(values: object, what: str) -> list[Hashable]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{what} must be a list of variables, got {show(values)}")
    return list(values)


def _is_key(value: Hashable, mapping: Mapping[Hashable, int]) -> bool:
    try:
        return value in mapping
    except TypeError:  # unhashable
        return False
