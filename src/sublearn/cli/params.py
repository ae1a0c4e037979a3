"""Parameters of estimators as options: names from the signature, rules, help from the docstring."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sublearn.errors import ParameterError
from sublearn.typing import JsonObject
from sublearn.validation.params import (
    Boolean,
    CallableOrNone,
    InstanceOf,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    SettingsOf,
)
from sublearn.validation.settings import Settings

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Param", "build", "params_of"]

#: Parameters that no word on a command line can be, or that the commands set themselves.
_NOT_TYPED = {
    "callback", "classifier", "estimator", "holidays", "model_path", "penalty_weights", "taggers",
    "taxonomy", "verbose", "warm_start",
}  # fmt: skip
_LONG = 70  # characters of help that fill a line
_WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}


@dataclass(frozen=True)
class Param:
    """A parameter of an estimator, or a field of one of its settings, as an option."""

    owner: str
    name: str  # a field of settings is called `settings__field`
    default: object
    rule: Rule
    help: str

    @property
    def flag(self) -> str:
        """The option: `--search-n-probe` for the field `n_probe` of `search`."""
        return "--" + self.name.replace("__", "-").replace("_", "-")

    @property
    def metavar(self) -> str:
        """What stands for the value in the help."""
        rule = self.rule.rule if isinstance(self.rule, OrNone) else self.rule
        if isinstance(rule, Boolean):
            return "True|False"
        if isinstance(rule, OneOf):
            return "|".join(rule.options) if len("|".join(rule.options)) < 30 else "NAME"
        if isinstance(rule, (Positive, NonNegative, Interval)):
            return "N" if rule.kind is int else "X"
        return "N" if isinstance(self.default, int) and not isinstance(self.default, bool) else "X"

    def parse(self, text: str) -> object:
        """The value that a word stands for: the first reading that the rule accepts."""
        for value in _readings(text, is_float=isinstance(self.default, float)):
            if self.rule.accepts(value):
                return value
        raise ParameterError(
            f"{self.owner}.{self.name.replace('__', '.')} must be {self.rule}, got {text}"
        )


def _readings(text: str, *, is_float: bool) -> list[object]:
    """What a word may stand for, the most likely first."""
    found: list[object] = []
    if text.lower() in _WORDS:
        found.append(_WORDS[text.lower()])
    for kind in (float, int) if is_float else (int, float):
        try:
            found.append(kind(text))
        except ValueError:
            continue
    if "," in text:
        parts = [_readings(part.strip(), is_float=False)[0] for part in text.split(",")]
        found += [tuple(parts), parts]
    return [*found, text]


def params_of(cls: type[BaseEstimator]) -> dict[str, Param]:
    """Options of a class, by name, in the order of its signature."""
    found: dict[str, Param] = {}
    helps = _help_of(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        rule = cls._rules[name]
        if isinstance(rule, SettingsOf):
            found |= _fields_of(name, rule.kind)
        is_word = isinstance(parameter.default, str)  # settings, or the name of some
        if name not in _NOT_TYPED and (is_word or _is_typed(rule)):
            found[name] = Param(cls.__name__, name, parameter.default, rule, helps.get(name, ""))
    return found


def _fields_of(name: str, kind: type[Settings]) -> dict[str, Param]:
    helps = _help_of(kind)
    return {
        f"{name}__{one.name}": Param(
            kind.__name__, f"{name}__{one.name}", one.default, kind._rules[one.name],
            helps.get(one.name, ""),
        )
        for one in dataclasses.fields(kind)
        if one.name in kind._rules and _is_typed(kind._rules[one.name])
    }  # fmt: skip


def _is_typed(rule: Rule) -> bool:
    inner = rule.rule if isinstance(rule, OrNone) else rule
    return not isinstance(inner, (InstanceOf, CallableOrNone, SettingsOf))


def build(cls: type[BaseEstimator], values: Mapping[str, object]) -> BaseEstimator:
    """An estimator with these values; those of settings become one object each."""
    given: JsonObject = {}
    groups: dict[str, JsonObject] = {}
    for name, value in values.items():
        owner, _, one = name.partition("__")
        if one:
            groups.setdefault(owner, {})[one] = value
        else:
            given[name] = value
    for owner, fields in groups.items():
        rule = cls._rules[owner]
        assert isinstance(rule, SettingsOf)
        given[owner] = rule.kind(**fields)
    return cls(**given)


# --- docstrings --------------------------------------------------------------------------------


def _help_of(cls: type) -> dict[str, str]:
    """The first sentence of the description of each parameter of a NumPy docstring."""
    text = re.sub(r"\\\n\s*", " ", inspect.cleandoc(cls.__doc__ or ""))
    section = re.search(r"\nParameters\n-+\n(.*?)(\n\n?\w[\w ]*\n-{3,}\n|\Z)", text, re.DOTALL)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        if line and not line[0].isspace():
            names = [name.strip() for name in line.partition(" :")[0].split(",")]
        for name in names if line[:1].isspace() else []:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return {name: _said_elsewhere(cls, name, words) for name, words in found.items()}


def _said_elsewhere(cls: type, name: str, description: str) -> str:
    """The first sentence; of "As in `Other`" that of the other class of the same room."""
    other = re.match(r"As in `(\w+)`", description)
    room = importlib.import_module(cls.__module__.rpartition(".")[0])
    found = vars(room).get(other[1]) if other else None
    return _help_of(found)[name] if isinstance(found, type) else _first_sentence(description)


def _first_sentence(description: str) -> str:
    """The first sentence in plain words; of a long one what stands before its first break."""
    without = re.sub(r" ?:math:`[^`]*`", "", description)
    plain = without if without.strip(". ") else description
    plain = re.sub(r":[a-z]+:`~?(?:\w+\.)*([^`<]*?)(?: <[^>]*>)?`", r"\1", plain)
    plain = re.sub(r" ?\[\d+\]_", "", plain.replace("``", "`")).replace("\\", "")
    match = re.match(r"(.+?[.])(?= [A-Z\"'`(]|$)", plain)
    found = match[1] if match else plain
    if len(found) > _LONG:
        shorter = re.split(r"(?<=.{25})[;:](?= )", found, maxsplit=1)[0]
        found = shorter if shorter.count("(") == shorter.count(")") else found
    return found.rstrip(";:.") + "."
