"""What the stored values of a model must be: a table that one function checks.

A table maps names to kinds. Sizes in it are names as well: the first value that has a size named
"classes" decides it, and every other one has to agree. ``"classes+1"`` is one more, None any size.

>>> table = {"bias": Floats("classes"), "names": OrAbsent(Strings("classes"))}
>>> check_fields({"bias": np.zeros(3)}, table)
{'classes': 3}
>>> check_fields({"bias": np.zeros(3), "names": np.array(["a"])}, table)
Traceback (most recent call last):
ValueError: names must have shape (3,), that is (classes,), got (1,)
"""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sublearn.typing import State
from sublearn.validation.params import NonNegative, Rule
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "FEATURES",
    "FIGURES",
    "AnyOf",
    "Field",
    "Fields",
    "Flags",
    "Floats",
    "Integers",
    "Labels",
    "ListOf",
    "Number",
    "Offsets",
    "OrAbsent",
    "Parts",
    "Record",
    "Size",
    "Sparse",
    "Strings",
    "TraceTable",
    "check_fields",
    "take_parts",
]

Dim = str | int | None
Sizes = dict[str, int]
_BLOCK = 1 << 20  # numbers that are looked at together: a mapped array is not copied


def check_fields(
    state: Mapping[str, object],
    table: Mapping[str, Field | Rule | OrAbsent],
    sizes: Mapping[str, int] | None = None,
) -> Sizes:
    """Refuse a state with a value that is missing, not known, or not what the table says.

    Parameters
    ----------
    state : mapping
        Stored values by name.
    table : mapping of str to Field or Rule
        In the order in which values are looked at. A rule of `sublearn.validation` is for values
        that are no arrays. A name that ends in ``*`` stands for all that begin so.
    sizes : mapping of str to int, optional
        Sizes that are known before.

    Returns
    -------
    dict of str to int
        All sizes.
    """
    known = dict(sizes or {})
    left = dict(state)
    for name, field in table.items():
        kind, may_be_absent = (field.kind, True) if isinstance(field, OrAbsent) else (field, False)
        if name.endswith("*"):
            found = [other for other in left if other.startswith(name[:-1])]
        else:
            found = [name] if name in left else []
            if not found and not may_be_absent:
                raise ValueError(f"{name} must be there, got no such field")
        for own in found:
            _check(own, left.pop(own), kind, known)
    if left:
        raise ValueError(f"{min(left)} must not be there, got a field that is not known")
    return known


def take_parts(state: State, prefix: str) -> State:
    """The values whose names begin with `prefix`, taken out of `state` and named without it."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}


def _check(name: str, value: object, kind: Field | Rule, sizes: Sizes) -> None:
    if isinstance(kind, Field):
        kind.check(name, value, sizes)
    elif not kind.accepts(value):
        raise ValueError(f"{name} must be {kind}, got {show(value)}")


class Field(abc.ABC):
    """What one value must be."""

    @abc.abstractmethod
    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""


class OrAbsent:
    """A field that may be missing."""

    def __init__(self, kind: Field | Rule):
        self.kind = kind


class AnyOf(Field):
    """What one of several kinds accepts."""

    def __init__(self, *kinds: Field | Rule):
        self._kinds = kinds

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise the refusal of the last kind if all refuse."""
        *others, last = self._kinds
        for kind in others:
            try:
                return _check(name, value, kind, sizes)
            except ValueError:
                continue
        _check(name, value, last, sizes)


class Parts(Field):
    """Parts of an object that checks them itself when it is made again."""

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Accept anything."""


# --- arrays ------------------------------------------------------------------------------------


class _Array(Field):
    """An array of some kinds of dtype and of a shape."""

    kinds: str
    what: str

    def __init__(self, *shape: Dim):
        self._shape = shape

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            got = f"dtype {value.dtype}" if isinstance(value, np.ndarray) else show(value)
            raise ValueError(f"{name} must be an array of {self.what}, got {got}")
        _bind_shape(name, value.shape, self._shape, sizes)


class Floats(_Array):
    """Numbers of 32 or 64 bits.

    Parameters
    ----------
    *shape : str, int or None
        Sizes.
    finite : bool
        Whether NaN and infinity are refused, for which all numbers are read.
    bits : int, optional
        32 or 64, if only one of them will do.
    low : float, optional
        Least value that is allowed, which includes that there is no NaN.
    """

    kinds, what = "f", "floats"

    def __init__(
        self,
        *shape: Dim,
        finite: bool = False,
        bits: int | None = None,
        low: float | None = None,
    ):
        super().__init__(*shape)
        self._finite, self._low = finite, low
        self._bits = (32, 64) if bits is None else (bits,)

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        super().check(name, value, sizes)
        if 8 * value.dtype.itemsize not in self._bits:
            wanted = " or ".join(f"float{bits}" for bits in self._bits)
            raise ValueError(f"{name} must be an array of {wanted}, got dtype {value.dtype}")
        if self._finite and not all(np.isfinite(part).all() for part in _blocks(value)):
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        if self._low is not None and not all((part >= self._low).all() for part in _blocks(value)):
            raise ValueError(f"{name} must be at least {self._low:g}, got less or NaN")


class Integers(_Array):
    """Integers in ``low .. high - 1``, `high` a number or a size; not read if `low` is None."""

    kinds, what = "iu", "integers"

    def __init__(
        self, *shape: Dim, low: int | None = 0, high: Dim = None, dtype: DTypeLike | None = None
    ):
        super().__init__(*shape)
        self._low, self._high = low, high
        self._dtype = None if dtype is None else np.dtype(dtype)

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        super().check(name, value, sizes)
        if self._dtype is not None and value.dtype != self._dtype:
            raise ValueError(f"{name} must be an array of {self._dtype}, got dtype {value.dtype}")
        if value.size == 0 or self._low is None:
            return
        least, most = int(value.min()), int(value.max())
        high = None if self._high is None else _size_of(self._high, sizes)
        if least < self._low or (high is not None and most >= high):
            end = "" if high is None else f" and below {high}"
            raise ValueError(f"{name} must be at least {self._low}{end}, got {least} and {most}")


class Offsets(_Array):
    """Where lists begin, and the end of the last one: from 0, never falling, to `n_entries`."""

    kinds, what = "iu", "integers"

    def __init__(self, n_lists: str, n_entries: str, *, is_lazy: bool = False):
        super().__init__(f"{n_lists}+1")
        self._n_entries, self._is_lazy = n_entries, is_lazy

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        super().check(name, value, sizes)
        last = int(value[-1])
        _bind(name, "entries", last, self._n_entries, sizes)
        if value[0] != 0 or (not self._is_lazy and (value[1:] < value[:-1]).any()):
            raise ValueError(f"{name} must rise from 0 to {last}, got {int(value[0])} or a fall")


class Flags(_Array):
    """True or False."""

    kinds, what = "b", "booleans"


class Strings(_Array):
    """Texts; all different if `distinct`."""

    kinds, what = "UOT", "strings"

    def __init__(self, *shape: Dim, distinct: bool = False):
        super().__init__(*shape)
        self._distinct = distinct

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        super().check(name, value, sizes)
        if self._distinct and len(set(value.tolist())) < len(value):
            raise ValueError(f"{name} must be all different, got one twice")


class Labels(_Array):
    """Names of labels, one at least: numbers, booleans or texts."""

    kinds, what = "iufbUOT", "numbers or strings"

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        super().check(name, value, sizes)
        if value.size == 0:
            raise ValueError(f"{name} must have at least one label, got none")


class Sparse(Field):
    """A CSR or CSC matrix of floats; `format` says which, `finite` as for `Floats`."""

    def __init__(self, rows: Dim, columns: Dim, format: str = "csr", *, finite: bool = False):
        self._shape, self._format, self._finite = (rows, columns), format, finite

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not sparse.issparse(value) or value.format != self._format:
            got = value.format if sparse.issparse(value) else show(value)
            raise ValueError(f"{name} must be a {self._format} matrix, got {got}")
        Floats(None, finite=self._finite).check(f"{name}.data", value.data, sizes)
        _bind_shape(name, value.shape, self._shape, sizes)


def _blocks(array: np.ndarray) -> list[np.ndarray]:
    flat = array.reshape(-1)
    return [flat[at : at + _BLOCK] for at in range(0, flat.size, _BLOCK)]


# --- values in JSON ----------------------------------------------------------------------------


class Number(Rule):
    """Any real number, also NaN and infinite; None if `or_none`."""

    def __init__(self, *, or_none: bool = False):
        self._or_none = or_none

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None:
            return self._or_none
        return isinstance(value, numbers.Real) and not isinstance(value, bool)

    def __str__(self) -> str:
        return "a number or None" if self._or_none else "a number"


class Size(Field):
    """An integer that is the size of that name."""

    def __init__(self, name: str, low: int = 0):
        self._name, self._low = name, low

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not is_int64(value) or value < self._low:
            raise ValueError(f"{name} must be an integer from {self._low} on, got {show(value)}")
        _bind(name, "value", int(value), self._name, sizes)


class ListOf(Field):
    """A list or tuple whose entries obey a rule, of a size."""

    def __init__(self, kind: Field | Rule, size: Dim = None):
        self._kind, self._size = kind, size

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{name} must be a list, got {show(value)}")
        _bind(name, "length", len(value), self._size, sizes)
        for i, entry in enumerate(value):
            _check(f"{name}[{i}]", entry, self._kind, sizes)


class Record(Field):
    """A mapping with a table of its own."""

    def __init__(self, table: Mapping[str, Field | Rule | OrAbsent]):
        self._table = table

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} must be a mapping, got {show(value)}")
        try:
            sizes |= check_fields(value, self._table, sizes)
        except ValueError as error:
            raise ValueError(f"{name}.{error}") from None


class TraceTable(Field):
    """Columns of numbers of one length, by name."""

    def check(self, name: str, value: object, sizes: Sizes) -> None:
        """Raise a ValueError that names the field, or note its sizes."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} must be a mapping, got {show(value)}")
        n_rows = {len(column) for column in value.values() if isinstance(column, list)}
        is_table = all(isinstance(column, list) for column in value.values())
        if not is_table or len(n_rows) > 1 or not all(isinstance(key, str) for key in value):
            raise ValueError(f"{name} must have lists of one length by name, got {show(value)}")
        for column in value:
            ListOf(Number()).check(f"{name}.{column}", value[column], sizes)


#: What each stored value of a model must be.
Fields = dict[str, Field | Rule | OrAbsent]

#: Of estimators that know their columns.
FEATURES: Fields = {
    "n_features_in_": Size("features"),
    "feature_names_in_": OrAbsent(Strings("features")),
}
#: How a fit went.
FIGURES: Fields = {
    "objective_": Number(),
    "certificate_": Number(),
    "n_iter_": NonNegative(int),
    "trace_": TraceTable(),
}


# --- sizes -------------------------------------------------------------------------------------


def _bind_shape(name: str, shape: tuple[int, ...], wanted: tuple[Dim, ...], sizes: Sizes) -> None:
    if len(shape) == len(wanted):
        trial = dict(sizes)
        if all(_fits(n, dim, trial) for n, dim in zip(shape, wanted, strict=True)):
            sizes |= trial
            return
    names = _as_tuple("any" if dim is None else str(dim) for dim in wanted)
    numbers_ = _as_tuple(_known(dim, sizes) for dim in wanted)
    raise ValueError(f"{name} must have shape {numbers_}, that is {names}, got {shape}")


def _bind(name: str, what: str, n: int, dim: Dim, sizes: Sizes) -> None:
    if not _fits(n, dim, sizes):
        raise ValueError(f"{name} must have a {what} of {_known(dim, sizes)} ({dim}), got {n}")


def _fits(n: int, dim: Dim, sizes: Sizes) -> bool:
    if dim is None:
        return True
    symbol, more = _split(dim)
    if symbol is None:
        return n == more
    return n >= more and sizes.setdefault(symbol, n - more) == n - more


def _size_of(dim: Dim, sizes: Sizes) -> int:
    symbol, more = _split(dim)
    return more if symbol is None else sizes[symbol] + more


def _known(dim: Dim, sizes: Sizes) -> str:
    symbol, more = _split(0 if dim is None else dim)
    if dim is None or (symbol is not None and symbol not in sizes):
        return "any"
    return str(more if symbol is None else sizes[symbol] + more)


def _split(dim: Dim) -> tuple[str | None, int]:
    if not isinstance(dim, str):
        return None, int(dim or 0)
    symbol, _, more = dim.partition("+")
    return symbol, int(more or 0)


def _as_tuple(parts: Iterable[str]) -> str:
    found = list(parts)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"
