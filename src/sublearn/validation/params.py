"""Parameter rules as data: an estimator lists them in `_rules`, `check_params` applies them.

`n_jobs` becomes a number of threads here, and `random_state` the one integer that seeds the core.

>>> class Model:
...     _rules = {"tol": Positive(float)}
...     tol = -1
>>> check_params(Model())
Traceback (most recent call last):
sublearn.errors.ParameterError: Model.tol must be a positive number, got -1
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator

from sublearn.errors import ParameterError
from sublearn.typing import Seed
from sublearn.validation.values import is_finite_number, is_int64, show

if TYPE_CHECKING:
    from sublearn.validation.settings import Settings

__all__ = [
    "EARLY_STOPPING",
    "RUN_RULES",
    "WATCH_RULES",
    "Boolean",
    "CallableOrNone",
    "ClassWeight",
    "Either",
    "Folds",
    "InstanceOf",
    "Interval",
    "JobCount",
    "NameOr",
    "NonNegative",
    "OneOf",
    "OneOfOrNone",
    "OrNone",
    "Positive",
    "RandomState",
    "Rule",
    "SettingsOf",
    "Verbosity",
    "as_n_threads",
    "as_seed",
    "assert_rules_complete",
    "check_argument",
    "check_arguments",
    "check_params",
]

_Kind = type[int] | type[float]
_MOST_THREADS = 2**31 - 1  # the core counts threads with 32 bits


class _HasRules(Protocol):
    _rules: ClassVar[Mapping[str, Rule]]


def check_params(estimator: _HasRules) -> None:
    """Refuse the first parameter of `estimator` that breaks its rule."""
    given = {name: getattr(estimator, name) for name in estimator._rules}
    check_arguments(type(estimator).__name__, given, estimator._rules)


def check_arguments(owner: str, arguments: Mapping[str, object], rules: Mapping[str, Rule]) -> None:
    """Refuse the first argument that breaks its rule; those without a rule are not looked at.

    >>> check_arguments("solve", {"X": None, "tol": -1}, {"tol": Positive(float)})
    Traceback (most recent call last):
    sublearn.errors.ParameterError: solve.tol must be a positive number, got -1
    """
    for name, rule in rules.items():
        check_argument(f"{owner}.{name}", arguments[name], rule)


def check_argument(name: str, value: object, rule: Rule) -> None:
    """Refuse a value that breaks a rule."""
    if not rule.accepts(value):
        raise ParameterError(f"{name} must be {rule}, got {show(value)}")


def assert_rules_complete(estimator: BaseEstimator) -> None:
    """For tests: every parameter has a rule, and every rule a parameter."""
    params, rules = set(estimator.get_params(deep=False)), set(estimator._rules)
    if params != rules:
        raise AssertionError(
            f"{type(estimator).__name__}: parameters without a rule {sorted(params - rules)}, "
            f"rules without a parameter {sorted(rules - params)}"
        )


class Rule(abc.ABC):
    """What a parameter may be; `str(rule)` completes the sentence "must be ..."."""

    @abc.abstractmethod
    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""

    @abc.abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Positive(Rule):
    """A number or integer above zero."""

    kind: _Kind

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return _is_kind(value, self.kind) and value > 0

    def __str__(self) -> str:
        return f"a positive {_KIND_NAMES[self.kind]}"


@dataclass(frozen=True)
class NonNegative(Rule):
    """A number or integer that is zero or more."""

    kind: _Kind

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return _is_kind(value, self.kind) and value >= 0

    def __str__(self) -> str:
        return f"a non-negative {_KIND_NAMES[self.kind]}"


@dataclass(frozen=True)
class Interval(Rule):
    """A number or integer between two ends; `closed` says which ends belong to it.

    An end may be infinite; infinity itself is refused all the same.
    """

    kind: _Kind
    low: float
    high: float
    closed: Literal["both", "left", "right", "neither"] = "both"

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if not _is_kind(value, self.kind):
            return False
        above = value >= self.low if self._has_low else value > self.low
        below = value <= self.high if self._has_high else value < self.high
        return bool(above and below)

    def __str__(self) -> str:
        left, right = "[" if self._has_low else "(", "]" if self._has_high else ")"
        article = "an" if self.kind is int else "a"
        return f"{article} {_KIND_NAMES[self.kind]} in {left}{self.low}, {self.high}{right}"

    @property
    def _has_low(self) -> bool:
        return self.closed in ("both", "left")

    @property
    def _has_high(self) -> bool:
        return self.closed in ("both", "right")


@dataclass(frozen=True, init=False)
class OneOf(Rule):
    """One of a few strings."""

    options: tuple[str, ...]

    def __init__(self, *options: str):
        object.__setattr__(self, "options", options)

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return _join_with_or(repr(option) for option in self.options)


@dataclass(frozen=True, init=False)
class Either(Rule):
    """Whatever one of several rules accepts."""

    rules: tuple[Rule, ...]

    def __init__(self, *rules: Rule):
        object.__setattr__(self, "rules", rules)

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return any(rule.accepts(value) for rule in self.rules)

    def __str__(self) -> str:
        return _join_with_or(str(rule) for rule in self.rules)


@dataclass(frozen=True)
class OrNone(Rule):
    """Whatever another rule accepts, or None."""

    rule: Rule

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or self.rule.accepts(value)

    def __str__(self) -> str:
        return f"{self.rule} or None"


@dataclass(frozen=True, init=False)
class OneOfOrNone(OrNone):
    """One of a few strings, or None."""

    def __init__(self, *options: str):
        super().__init__(OneOf(*options))


@dataclass(frozen=True)
class SettingsOf(Rule):
    """Settings of one class, or None for its defaults."""

    kind: type[Settings]

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or isinstance(value, self.kind)

    def restored(self, value: object) -> object:
        """What a file holds of such a parameter, as it was given."""
        return self.kind(**value) if isinstance(value, Mapping) else value

    def __str__(self) -> str:
        return f"an instance of {self.kind.__name__} or None"


@dataclass(frozen=True)
class NameOr(SettingsOf):
    """One of a few names, or settings that stand for one of them with other values."""

    names: tuple[str, ...]
    others: tuple[type[Settings], ...] = ()

    @property
    def kinds(self) -> tuple[type[Settings], ...]:
        """Classes of settings."""
        return (self.kind, *self.others)

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, self.kinds) or OneOf(*self.names).accepts(value)

    def restored(self, value: object) -> object:
        """What a file holds of such a parameter, as it was given."""
        for kind in self.kinds:
            if isinstance(value, Mapping) and set(value) == {one.name for one in fields(kind)}:
                return kind(**value)
        return value

    def __str__(self) -> str:
        *parts, last = [*map(repr, self.names), *(f"a {kind.__name__}" for kind in self.kinds)]
        return f"{', '.join(parts)} or {last}"


@dataclass(frozen=True)
class Boolean(Rule):
    """True or False, also NumPy's; not 0 or 1."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, (bool, np.bool_))

    def __str__(self) -> str:
        return "True or False"


@dataclass(frozen=True)
class CallableOrNone(Rule):
    """Something to call, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or callable(value)

    def __str__(self) -> str:
        return "a callable or None"


@dataclass(frozen=True, init=False)
class InstanceOf(Rule):
    """An object of one of the given types."""

    types: tuple[type, ...]

    def __init__(self, *types: type):
        object.__setattr__(self, "types", types)

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return f"an instance of {_join_with_or(t.__name__ for t in self.types)}"


@dataclass(frozen=True, init=False)
class ClassWeight(Rule):
    """`class_weight`: None, a known name, a mapping or one number per class."""

    names: tuple[str, ...]

    def __init__(self, *names: str):
        object.__setattr__(self, "names", names)

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule; its length is checked against the labels."""
        if value is None or isinstance(value, Mapping):
            return True
        if isinstance(value, str):
            return value in self.names
        return isinstance(value, (np.ndarray, list, tuple))

    def __str__(self) -> str:
        names = ", ".join(repr(name) for name in self.names)
        return f"None, {names}, a mapping from labels to weights or an array of one weight a label"


@dataclass(frozen=True)
class Folds(Rule):
    """`cv`: a number of folds, or what makes them."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if is_int64(value):
            return value >= 2
        is_splitter = callable(getattr(value, "split", None)) or isinstance(value, Iterable)
        return is_splitter and not isinstance(value, (str, bytes))

    def __str__(self) -> str:
        return "an integer of at least 2, a splitter or pairs of training and held-out rows"


@dataclass(frozen=True)
class JobCount(Rule):
    """`n_jobs` as in joblib; `as_n_threads` makes it a number."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or (is_int64(value) and value != 0)

    def __str__(self) -> str:
        return "an integer other than 0 (-1 uses all cores) or None"


@dataclass(frozen=True)
class RandomState(Rule):
    """`random_state`; `as_seed` makes it a seed."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None or isinstance(value, (np.random.RandomState, np.random.Generator)):
            return True
        return is_int64(value) and value >= 0

    def __str__(self) -> str:
        return "a non-negative integer, a NumPy RandomState or Generator, or None"


@dataclass(frozen=True)
class Verbosity(Rule):
    """`verbose`: False or 0 is silent, True or 1 draws a progress bar."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, (bool, np.bool_)) or (is_int64(value) and value >= 0)

    def __str__(self) -> str:
        return "a non-negative integer, True or False"


#: Of `early_stopping`: whether, or how many passes without a gain end the fit.
EARLY_STOPPING = Either(Boolean(), Positive(int))
#: Of what is watched while it runs.
WATCH_RULES: dict[str, Rule] = {"verbose": Verbosity(), "callback": CallableOrNone()}
#: Of what has threads and draws random numbers besides.
RUN_RULES: dict[str, Rule] = {"n_jobs": JobCount(), "random_state": RandomState(), **WATCH_RULES}

# --- parameters as the core takes them --------------------------------------------------------


def as_n_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for, with joblib's meaning of negative numbers.

    None is 1, -1 all cores this process may use, -2 all but one, and so on, never below 1.
    """
    check_argument("n_jobs", n_jobs, JobCount())
    if n_jobs is None:
        return 1
    if n_jobs > 0:
        return min(int(n_jobs), _MOST_THREADS)
    return max(1, _n_usable_cores() + 1 + int(n_jobs))


def _n_usable_cores() -> int:
    # Containers and batch systems restrict a process to fewer cores than the machine has;
    # macOS does not offer the question.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_seed(random_state: Seed) -> int:
    """A seed in [0, 2**63): an integer as it is, a draw from a generator, fresh entropy for None.

    Drawing advances the generator, so two fits with one generator differ, as in scikit-learn.
    """
    check_argument("random_state", random_state, RandomState())
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63, dtype=np.int64))
    return int(random_state)


_KIND_NAMES = {int: "integer", float: "number"}


def _is_kind(value: object, kind: _Kind) -> TypeGuard[float]:
    return is_int64(value) if kind is int else is_finite_number(value)


def _join_with_or(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
