"""Files of weighted constraint problems, as toulbar2 and others read them: `.wcsp`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from sublearn.graph.cost_functions import CostFunction, Room, add_cost_functions
from sublearn.graph.factor_graph import FactorGraph
from sublearn.io.files import PathLike, open_binary, write_atomically
from sublearn.io.limits import ReadLimits
from sublearn.validation import NonNegative, check_argument
from sublearn.validation.values import show

__all__ = ["read_wcsp", "write_wcsp"]


def read_wcsp(path: PathLike, *, limits: ReadLimits | None = None) -> FactorGraph:
    """Read a weighted constraint problem whose cost functions are tables.

    The file has a name, the numbers of variables, of labels at most and of cost functions, and a
    limit on the cost; the number of labels of each variable; and for each function how many
    variables it has and which, the cost of states that are not listed, how many are listed, and
    each of them as labels and a cost. A negative number of variables begins a function whose table
    others share: these have minus its number, from 1 on, in place of the number of states.

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    limits : ReadLimits, optional
        What a compressed file may unpack to.

    Returns
    -------
    FactorGraph
        Scores are negative costs, and a cost at or above the limit forbids a state. An assignment
        whose costs come to the limit in sum is no solution of the file's problem.

    Raises
    ------
    ValueError
        With file name and line: for a file that is cut, for numbers that are none, variables and
        labels that do not exist, functions that are no tables, and sizes that the file's own does
        not make plausible.
    """
    with open_binary(path, limits) as stream:
        text = stream.read()
        return _Reader(text).graph()


class _Reader:
    """The numbers of a file one after another, and the line of each if it has to be named."""

    def __init__(self, text: bytes):
        self._text = text
        self._words = text.split()
        self._next = 0
        self._room = Room(len(text))

    def graph(self) -> FactorGraph:
        self._word("the name of the problem")
        n, _, n_functions = (self._count(what) for what in ("variables", "labels", "functions"))
        self._top = self._cost("the limit on the cost")
        if n < 1 or n > len(self._words):
            raise self._refuse(f"the number of variables must fit the file, got {n}")
        domain = []
        for i in range(n):
            domain.append(self._count(f"the labels of variable {i}", least=1))
            self._room.take(domain[-1], self._line())
        self._domain, self._shared = np.array(domain), list[CostFunction]()
        functions = [self._function() for _ in range(n_functions)]
        if self._next < len(self._words):
            self._next += 1
            raise self._refuse(f"text must end after function {n_functions - 1}")
        graph = add_cost_functions(FactorGraph(self._domain), functions, self._room)
        graph._check_allowed()
        return graph

    def _function(self) -> CostFunction:
        arity = self._integer("the number of variables of a cost function")
        line = self._line()
        if abs(arity) > len(self._words):
            raise self._refuse(f"a cost function must fit the file, got {arity} variables")
        last = len(self._domain) - 1
        scope = tuple(self._within("a variable", last) for _ in range(abs(arity)))
        default = self._cost("the cost of states that are not listed")
        n_states = self._integer("a number of states")
        if n_states < 0:
            return self._as_before(scope, -n_states, line)
        states, costs = self._states(scope, n_states)
        function = CostFunction(scope, self._scores(costs), line, states, self._score(default))
        if arity < 0:
            self._shared.append(function)
        return function

    def _as_before(self, scope: tuple[int, ...], number: int, line: int) -> CostFunction:
        if number > len(self._shared):
            raise self._refuse(f"function {number} that is shared must come before, got none")
        first = self._shared[number - 1]
        shapes = [self._domain[list(which)].tolist() for which in (scope, first.scope)]
        if shapes[0] != shapes[1]:
            raise self._refuse(f"function {number} that is shared must have the same domains")
        return CostFunction(scope, first.scores, line, first.states, first.default)

    def _states(self, scope: tuple[int, ...], n_states: int) -> tuple[np.ndarray, np.ndarray]:
        width = len(scope) + 1
        begin, end = self._next, self._next + n_states * width
        if end > len(self._words):
            raise ValueError(f"{n_states} states must follow, got the end of the file")
        try:
            numbers = np.array(list(map(float, self._words[begin:end]))).reshape(n_states, width)
        except ValueError:
            numbers = np.full((n_states, width), np.nan)
        states = numbers[:, :-1]
        is_bad = (states < 0) | (states >= self._domain[list(scope)]) | (states % 1 != 0)
        is_bad = np.column_stack([is_bad | np.isnan(states), ~np.isfinite(numbers[:, -1])])
        if is_bad.any():
            return self._states_one_by_one(scope, n_states)
        self._next = end
        return states.astype(np.int64), numbers[:, -1]

    def _states_one_by_one(
        self, scope: tuple[int, ...], n_states: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """For the sentence with the line of what is wrong."""
        for _ in range(n_states):
            for i in scope:
                self._within(f"a label of variable {i}", int(self._domain[i]) - 1)
            self._cost("a cost")
        raise AssertionError("states that were refused at once are refused one by one")

    def _scores(self, costs: np.ndarray) -> np.ndarray:
        return np.where(costs >= self._top, -np.inf, -costs)

    def _score(self, cost: float) -> float:
        return -np.inf if cost >= self._top else -cost

    def _word(self, what: str) -> bytes:
        if self._next >= len(self._words):
            raise ValueError(f"{what} must follow, got the end of the file")
        self._next += 1
        return self._words[self._next - 1]

    def _cost(self, what: str) -> float:
        word = self._word(what)
        try:
            cost = float(word)
        except ValueError:
            cost = np.nan
        if not np.isfinite(cost):
            raise self._refuse(f"{what} must be a finite number, got {show(word.decode('latin1'))}")
        if what.startswith("the cost of states") and cost == -1.0:
            raise self._refuse("a cost function must be a table, got one that is given by name")
        return cost

    def _integer(self, what: str) -> int:
        number = self._cost(what)
        if number % 1 or abs(number) > 2**53:
            raise self._refuse(f"{what} must be an integer, got {number:g}")
        return int(number)

    def _count(self, what: str, least: int = 0) -> int:
        number = self._integer(what)
        if number < least:
            raise self._refuse(f"{what} must be at least {least}, got {number}")
        return number

    def _within(self, what: str, last: int) -> int:
        number = self._integer(what)
        if not 0 <= number <= last:
            raise self._refuse(f"{what} must be in 0..{last}, got {number}")
        return number

    def _refuse(self, message: str) -> ValueError:
        return ValueError(f"line {self._line()}: {message}")

    def _line(self) -> int:
        """The line of the word read last."""
        return int(np.searchsorted(self._words_before, self._next, side="left")) + 1

    @cached_property
    def _words_before(self) -> np.ndarray:
        return np.cumsum([len(line.split()) for line in self._text.split(b"\n")])


def write_wcsp(
    graph: FactorGraph, path: PathLike, *, decimals: int = 6, name: str = "sublearn"
) -> None:
    """Write a graph for `read_wcsp` and for solvers of weighted constraint problems.

    Costs of the format are integers that are not negative: scores are rounded to `decimals`, made
    costs above the best one of their table, and multiplied by a power of ten. What was subtracted
    is written as a function of no variable, unless the sum is negative, which the format cannot
    say: then scores of the file read again are shifted by one number.

    Parameters
    ----------
    graph : FactorGraph
        Names are lost.
    path : path
        Appears at once when it is complete; compressed as its ending says.
    decimals : int, default=6
        Of the scores.
    name : str, default="sublearn"
        Of the problem, one word.
    """
    if not isinstance(graph, FactorGraph):
        raise ValueError(f"write_wcsp.graph must be a FactorGraph, got {show(graph)}")
    check_argument("write_wcsp.decimals", decimals, NonNegative(int))
    if not isinstance(name, str) or len(name.split()) != 1:
        raise ValueError(f"write_wcsp.name must be one word, got {show(name)}")
    tables = list(_costs(graph, 10.0**decimals))
    constant = sum(least for _, _, least in tables)
    top = int(1 + max(0.0, constant) + sum(_largest(costs) for _, costs, _ in tables))
    if top >= 2**62:
        raise ValueError(f"write_wcsp.decimals must keep costs below 2**62, got {decimals}")
    head = [name, graph.n_variables, int(graph.domain.max()), len(tables) + 1, top]
    with write_atomically(path) as stream:
        stream.write((" ".join(map(str, head)) + "\n").encode())
        stream.write((" ".join(map(str, graph.domain.tolist())) + "\n").encode())
        stream.write(f"0 {max(0, int(constant))} 0\n".encode())
        for scope, costs, _ in tables:
            stream.write(_lines(scope, costs, top).encode())


def _costs(graph: FactorGraph, scale: float) -> Iterator[tuple[tuple[int, ...], np.ndarray, float]]:
    """Variables and costs of each function, the least of which is zero, and what that was."""
    for i in range(graph.n_variables):
        if graph.unary(i).any():
            yield (i,), *_above_least(graph.unary(i), scale)
    for group in graph.factors:
        for f, scope in enumerate(group.scopes.tolist()):
            scores = group.tables_of_factors(slice(f, f + 1)).reshape(group.table.shape)
            yield tuple(scope), *_above_least(scores, scale)


def _above_least(scores: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
    costs = np.round(-scores * scale)
    least = float(costs.min())
    return costs - least, least


def _largest(costs: np.ndarray) -> float:
    return float(costs[np.isfinite(costs)].max())


def _lines(scope: tuple[int, ...], costs: np.ndarray, top: int) -> str:
    """The function as text: states that cost nothing are left to the default."""
    states = np.argwhere(costs > 0)
    own = np.where(np.isfinite(costs), costs, top)[tuple(states.T)].astype(np.int64)
    head = " ".join(map(str, [len(scope), *scope, 0, len(states)]))
    rows = np.column_stack([states, own]).tolist()
    return "\n".join([head, *(" ".join(map(str, row)) for row in rows)]) + "\n"
