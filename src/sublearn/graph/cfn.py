"""Cost function networks, as toulbar2 writes them: `.cfn`, JSON in which quotes may be missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union

import numpy as np

from sublearn.graph.cost_functions import CostFunction, Room, add_cost_functions
from sublearn.graph.factor_graph import FactorGraph
from sublearn.io.files import PathLike, open_binary
from sublearn.io.limits import ReadLimits
from sublearn.validation.values import show

__all__ = ["read_cfn"]

#: A word, a list, or the pairs of an object; names may be missing.
Value: TypeAlias = Union["Word", "list[Value]", "Pairs"]
_TOKEN = re.compile(r'"([^"\n]*)"|([{}\[\]])|(#[^\n]*)|([^\s{}\[\],:"#]+)|([\s,:]+)|(.)')
_MOST_DEPTH = 8


class Word(str):
    """A word or number of the file, with its line."""

    line: int


class Pairs(list[tuple["Word | None", Value]]):
    """The names and values of an object in their order."""


def read_cfn(path: PathLike, *, limits: ReadLimits | None = None) -> FactorGraph:
    """Read a cost function network whose functions are tables.

    ``problem`` has a ``name`` and ``mustbe``, a limit such as ``"<1000"``, or ``">0"`` where the
    sum is to be maximised; ``variables`` are names with a number of labels or a list of them;
    ``functions`` have a ``scope`` and ``costs``: all of them with the last variable fastest, or
    with a ``defaultcost`` the labels and the cost of each state that differs, or the name of a
    function whose costs they share.

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    limits : ReadLimits, optional
        What a compressed file may unpack to.

    Returns
    -------
    FactorGraph
        With the names of the variables. Scores are negative costs, or the numbers themselves where
        these are to be maximised; a state with which no sum is within the limit is forbidden.

    Raises
    ------
    ValueError
        With file name and line, as `read_wcsp`.
    """
    with open_binary(path, limits) as stream:
        text = stream.read()
        parts = _named(_parse(text.decode()), "problem", "variables", "functions")
        return _Network(parts, Room(len(text))).graph()


def _parse(text: str) -> Value:
    """The value that a text is, by a stack instead of calls."""
    stack: list[tuple[list[Value], bool]] = [([], False)]
    line = 1
    for match in _TOKEN.finditer(text):
        quoted, mark, _, word, _, wrong = match.groups()
        if wrong is not None:
            raise ValueError(f"line {line}: a word must be closed by quotes, got {show(wrong)}")
        if mark in ("{", "["):
            if len(stack) > _MOST_DEPTH:
                raise ValueError(f"line {line}: lists and objects must lie in {_MOST_DEPTH} others")
            stack.append(([], mark == "{"))
        elif mark in ("}", "]"):
            values, is_object = stack.pop()
            if not stack or is_object != (mark == "}"):
                raise ValueError(f"line {line}: {mark} must close what is open")
            stack[-1][0].append(_pairs(values) if is_object else values)
        elif quoted is not None or word is not None:
            found = Word(word if quoted is None else quoted)
            found.line = line
            stack[-1][0].append(found)
        line += match.group().count("\n")
    if len(stack) != 1 or len(stack[0][0]) != 1:
        raise ValueError(f"line {line}: one object must end here, got a file that is cut or longer")
    return stack[0][0][0]


def _pairs(values: list[Value]) -> Pairs:
    """Names and values of an object: an object in it may come without a name."""
    pairs, name = Pairs(), None
    for value in values:
        if name is None and isinstance(value, Word):
            name = value
        else:
            pairs.append((name, value))
            name = None
    if name is not None:
        raise ValueError(f"line {name.line}: {show(str(name))} must have a value")
    return pairs


def _named(value: Value, *names: str) -> dict[str, Value]:
    """The values of an object by name, all of `names` among them."""
    found = {} if not isinstance(value, Pairs) else {str(name): v for name, v in value}
    for name in names:
        if name not in found:
            raise ValueError(f"line {_line_of(value)}: {name} must be given, got none")
    return found


def _line_of(value: Value) -> int:
    """The line of the first word in it."""
    while not isinstance(value, Word):
        if not value:
            return 1
        first = value[0]
        value = first if not isinstance(first, tuple) else first[0] or first[1]
    return value.line


def _number(value: Value, what: str) -> float:
    try:
        number = float(value) if isinstance(value, Word) else math.nan
    except ValueError:
        number = math.nan
    if math.isnan(number):
        shown = show(str(value)) if isinstance(value, Word) else "a list"
        raise ValueError(f"line {_line_of(value)}: {what} must be a number, got {shown}")
    return number


class _Network:
    """The three parts of a file, made a graph."""

    def __init__(self, parts: Mapping[str, Value], room: Room):
        self._room = room
        self._sign, self._limit = _limit_of(parts["problem"])
        self._labels: dict[str, dict[str, int]] = {}  # of each variable
        self._place: dict[str, int] = {}
        self._read_variables(parts["variables"])
        self._functions = parts["functions"]
        self._costs: dict[str, CostFunction] = {}

    def graph(self) -> FactorGraph:
        names = list(self._place)
        domain = [len(labels) for labels in self._labels.values()]
        functions = self._forbid(list(self._all_functions()))
        graph = add_cost_functions(FactorGraph(domain, names=names), functions, self._room)
        graph._check_allowed()
        return graph

    def _read_variables(self, value: Value) -> None:
        for name, labels in value if isinstance(value, Pairs) else ():
            if name is None:
                raise ValueError(f"line {_line_of(labels)}: a variable must have a name")
            if name in self._place:
                raise ValueError(f"line {name.line}: variable {show(str(name))} must come once")
            self._place[str(name)] = len(self._place)
            self._labels[str(name)] = self._read_labels(labels, name.line)
        if not self._place:
            raise ValueError(f"line {_line_of(value)}: variables must be named, got none")

    def _read_labels(self, value: Value, line: int) -> dict[str, int]:
        if isinstance(value, list) and not isinstance(value, Pairs):
            labels = [str(word) for word in value if isinstance(word, Word)]
            if len(set(labels)) != len(value) or not labels:
                raise ValueError(f"line {line}: labels of a variable must be distinct words")
        else:
            count = _number(value, "the number of labels")
            if count % 1 or not 1 <= count < 2**31:
                raise ValueError(f"line {line}: a variable must have labels, got {count:g}")
            self._room.take(int(count), line)
            labels = [str(k) for k in range(int(count))]
        return {label: k for k, label in enumerate(labels)}

    def _all_functions(self) -> Iterator[CostFunction]:
        if not isinstance(self._functions, Pairs):
            raise ValueError(f"line {_line_of(self._functions)}: functions must be an object")
        for name, value in self._functions:
            function = self._function(value)
            if name is not None:
                self._costs[str(name)] = function
            yield function

    def _function(self, value: Value) -> CostFunction:
        parts, line = _named(value, "scope"), _line_of(value)
        if "costs" not in parts or "type" in parts:
            raise ValueError(f"line {line}: a function must have costs, got one given by name")
        scope, costs = self._scope(parts["scope"], line), parts["costs"]
        if isinstance(costs, Word):
            return self._as_before(scope, costs)
        if isinstance(costs, Pairs):
            raise ValueError(f"line {line}: costs must be a list")
        if "defaultcost" in parts:
            default = self._sign * _number(parts["defaultcost"], "defaultcost")
            states, scores = self._states(scope, costs, line)
            return CostFunction(scope, scores, line, states, default)
        n_cells = math.prod(self._shape(scope))
        if len(costs) != n_cells:
            raise ValueError(f"line {line}: costs must be {n_cells}, got {len(costs)}")
        return CostFunction(scope, self._scores(costs), line)

    def _scope(self, value: Value, line: int) -> tuple[int, ...]:
        if not isinstance(value, list) or isinstance(value, Pairs):
            raise ValueError(f"line {line}: scope must be a list of variables")
        for name in value:
            if not isinstance(name, Word) or not self._is_variable(name):
                raise ValueError(f"line {line}: scope must hold variables, got {show(name)}")
        return tuple(self._place.get(str(name), -1) if str(name) in self._place else int(str(name))
                     for name in value)  # fmt: skip

    def _is_variable(self, word: Word) -> bool:
        is_number = word.isascii() and word.isdigit() and len(word) < 10
        return word in self._place or (is_number and int(word) < len(self._place))

    def _shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        labels = list(self._labels.values())
        return tuple(len(labels[i]) for i in scope)

    def _states(
        self, scope: tuple[int, ...], values: list[Value], line: int
    ) -> tuple[np.ndarray, np.ndarray]:
        width = len(scope) + 1
        if len(values) % width:
            raise ValueError(f"line {line}: costs must be rows of {width}, got {len(values)} words")
        labels = [list(self._labels.values())[i] for i in scope]
        states = np.zeros((len(values) // width, len(scope)), dtype=np.int64)
        for row, p in np.ndindex(states.shape):
            states[row, p] = self._label(values[row * width + p], labels[p], line)
        return states, self._scores(values[width - 1 :: width])

    @staticmethod
    def _label(word: Value, labels: Mapping[str, int], line: int) -> int:
        if isinstance(word, Word):
            if word in labels:
                return labels[word]
            if word.isascii() and word.isdigit() and len(word) < 10 and int(word) < len(labels):
                return int(word)
            line = word.line
        raise ValueError(f"line {line}: costs must name labels of the variables")

    def _scores(self, values: list[Value]) -> np.ndarray:
        return self._sign * np.array([_number(value, "a cost") for value in values], dtype=float)

    def _as_before(self, scope: tuple[int, ...], name: Word) -> CostFunction:
        first = self._costs.get(str(name))
        if first is None or self._shape(first.scope) != self._shape(scope):
            raise ValueError(
                f"line {name.line}: costs must be those of a function before with the same "
                f"domains, got {show(str(name))}"
            )
        return CostFunction(scope, first.scores, name.line, first.states, first.default)

    def _forbid(self, functions: list[CostFunction]) -> list[CostFunction]:
        """States with which no assignment is within the limit have the score -inf."""
        most = [self._most(function) for function in functions]
        least = -self._limit - sum(most)  # what all others can gain above their own best: nothing
        out = []
        for function, own in zip(functions, most, strict=True):
            cut = least + own
            scores = np.where(function.scores <= cut, -np.inf, function.scores)
            default = -np.inf if function.default <= cut else function.default
            out.append(
                CostFunction(function.scope, scores, function.line, function.states, default)
            )
        return out

    def _most(self, function: CostFunction) -> float:
        n_cells = math.prod(self._shape(function.scope))
        most = float(function.scores.max()) if function.scores.size else -math.inf
        has_others = function.states is not None and len(function.states) < n_cells
        most = max(most, function.default) if has_others else most
        if math.isinf(most):
            raise ValueError(f"line {function.line}: a cost function must allow a state, got none")
        return most


def _limit_of(problem: Value) -> tuple[float, float]:
    """The sign that makes costs scores, and the limit as a cost."""
    given = _named(problem).get("mustbe")
    if given is None:
        return -1.0, math.inf
    if not isinstance(given, Word) or given[:1] not in ("<", ">"):
        raise ValueError(f"line {_line_of(given)}: mustbe must be < or > and a number")
    word = Word(given[1:])
    word.line = given.line
    number = _number(word, "mustbe")
    return (-1.0, number) if given[0] == "<" else (1.0, -number)
