"""Dense graphs of hard and soft tables, as weighted constraint problems have them, generated.

A broken constraint has a probability of 1e-4 and is finite, as in the wcsp files of the UAI
competition of 2014; costs are small beside it. Every kind can be met without a broken constraint.
`TUNED` kinds were looked at while the search was written; those of `HELD_OUT` were chosen before it
and run once, for the table.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from harness.factors import FactorArrays, Group

__all__ = ["HELD_OUT", "TUNED"]

BROKEN = float(np.log(1e-4))
Tables: TypeAlias = dict[tuple[int, int], np.ndarray]


def _as_graph(
    unary: list[np.ndarray], tables: Mapping[tuple[int, int], np.ndarray]
) -> FactorArrays:
    by_shape: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for pair, table in tables.items():
        by_shape[table.shape].append(pair)
    groups = [
        Group(np.array(pairs), np.stack([tables[p] for p in pairs]), np.arange(len(pairs)),
              np.ones(len(pairs)))
        for pairs in by_shape.values()
    ]  # fmt: skip
    return FactorArrays(np.array([len(u) for u in unary]), np.concatenate(unary), groups)


# --- plans of drivers, trucks and packages --------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """What it needs, makes true and makes false; `cost` is small for keeping a fact."""

    needs: frozenset[str]
    adds: frozenset[str]
    deletes: frozenset[str]
    cost: float

    def interferes(self, other: Action) -> bool:
        """Whether the two cannot happen at the same time."""
        return bool(
            self.deletes & (other.needs | other.adds) or other.deletes & (self.needs | self.adds)
        )


def planning(
    seed: int, n_places: int = 4, n_trucks: int = 2, n_packages: int = 4, n_levels: int = 10
) -> FactorArrays:
    """A planning graph as a constraint problem: which action makes each fact true at each level.

    A variable is a fact at a level, its labels "not needed" and the actions that make it true.
    Actions that exclude each other, or a need that is not met, break a constraint; actions cost.
    """
    rng = np.random.default_rng(seed)
    start, goal, actions = _transport(n_places, n_trucks, n_packages, rng)
    makers = _planning_graph(start, actions, n_levels)
    unary: list[np.ndarray] = []
    number: dict[tuple[int, str], int] = {}
    for level, (facts, _) in enumerate(makers, 1):
        for fact in sorted(facts):
            number[level, fact] = len(unary)
            scores = np.array([0.0, *(-action.cost for action in facts[fact])])
            if level == n_levels and fact in goal:
                scores[0] = BROKEN
            unary.append(scores)
    tables: Tables = {}
    for level, (facts, excluded) in enumerate(makers, 1):
        _exclude(level, facts, excluded, number, tables)
        _need(level, facts, [len(u) for u in unary], number, tables)
    return _as_graph(unary, tables)


def _transport(
    n_places: int, n_trucks: int, n_packages: int, rng: np.random.Generator
) -> tuple[frozenset[str], frozenset[str], list[Action]]:
    """Drivers walk and board, trucks drive, packages are loaded and unloaded."""
    places, trucks = range(n_places), range(n_trucks)
    found: list[Action] = []

    def act(needs: Iterable[str], adds: Iterable[str], deletes: Iterable[str]) -> None:
        cost = float(rng.integers(1, 10)) / 100.0
        found.append(Action(frozenset(needs), frozenset(adds), frozenset(deletes), cost))

    for t, at in itertools.product(trucks, places):
        for p in range(n_packages):
            act([f"p{p}@{at}", f"t{t}@{at}"], [f"p{p}in{t}"], [f"p{p}@{at}"])
            act([f"p{p}in{t}", f"t{t}@{at}"], [f"p{p}@{at}"], [f"p{p}in{t}"])
        for d in trucks:
            act(
                [f"d{d}@{at}", f"t{t}@{at}", f"free{t}"], [f"d{d}in{t}"], [f"d{d}@{at}", f"free{t}"]
            )
            act([f"d{d}in{t}", f"t{t}@{at}"], [f"d{d}@{at}", f"free{t}"], [f"d{d}in{t}"])
            for to in set(places) - {at}:
                act([f"d{d}in{t}", f"t{t}@{at}"], [f"t{t}@{to}"], [f"t{t}@{at}"])
    for d, at, to in itertools.product(trucks, places, places):
        if at != to:
            act([f"d{d}@{at}"], [f"d{d}@{to}"], [f"d{d}@{at}"])
    names = [f"p{p}" for p in range(n_packages)] + [f"{k}{t}" for t in trucks for k in "td"]
    where = {name: rng.permutation(n_places) for name in names}
    start = {f"{name}@{place[0]}" for name, place in where.items()} | {f"free{t}" for t in trucks}
    goal = {f"{name}@{place[1]}" for name, place in where.items() if name[0] == "p"}
    return frozenset(start), frozenset(goal), found


Layer: TypeAlias = "tuple[dict[str, list[Action]], set[tuple[Action, Action]]]"


def _planning_graph(start: frozenset[str], actions: list[Action], n_levels: int) -> list[Layer]:
    """Who can make which fact at each level, and which of them exclude each other."""
    facts, at_odds = set(start), set[tuple[str, str]]()
    layers: list[Layer] = []
    for _ in range(n_levels):
        keeps = [Action(frozenset([f]), frozenset([f]), frozenset(), 0.0) for f in sorted(facts)]
        able = [
            a for a in [*keeps, *actions]
            if a.needs <= facts
            and not any(pair in at_odds for pair in itertools.product(a.needs, a.needs))
        ]  # fmt: skip
        excluded = {
            (a, b) for a, b in itertools.product(able, able)
            if a != b and (a.interferes(b)
                           or any(p in at_odds for p in itertools.product(a.needs, b.needs)))
        }  # fmt: skip
        makers: dict[str, list[Action]] = defaultdict(list)
        for action in able:
            for fact in action.adds:
                makers[fact].append(action)
        layers.append((makers, excluded))
        facts = set(makers)
        at_odds = {
            (f, g) for f, g in itertools.product(facts, facts)
            if f != g and all((a, b) in excluded
                              for a, b in itertools.product(makers[f], makers[g]))
        }  # fmt: skip
    return layers


def _exclude(
    level: int,
    facts: Mapping[str, list[Action]],
    excluded: set[tuple[Action, Action]],
    number: Mapping[tuple[int, str], int],
    tables: Tables,
) -> None:
    for f, g in itertools.combinations(sorted(facts), 2):
        table = np.zeros((len(facts[f]) + 1, len(facts[g]) + 1))
        for a, b in np.ndindex(len(facts[f]), len(facts[g])):
            table[a + 1, b + 1] = BROKEN if (facts[f][a], facts[g][b]) in excluded else 0.0
        if table.any():
            tables[number[level, f], number[level, g]] = table


def _need(
    level: int,
    facts: Mapping[str, list[Action]],
    sizes: list[int],
    number: Mapping[tuple[int, str], int],
    tables: Tables,
) -> None:
    for fact, makers in facts.items():
        j = number[level, fact]
        for a, action in enumerate(makers, 1):
            for i in {number[level - 1, f] for f in action.needs if (level - 1, f) in number}:
                table = tables.setdefault((i, j), np.zeros((sizes[i], sizes[j])))
                table[0, a] = BROKEN


# --- other kinds ----------------------------------------------------------------------------------


def planted(seed: int, n: int = 300, n_labels: int = 8, n_pairs: int = 18000) -> FactorArrays:
    """Random tables in which a fifth of the states is broken, but for one assignment's."""
    rng = np.random.default_rng(seed)
    domain = rng.integers(2, n_labels + 1, n)
    hidden = rng.integers(0, domain)
    unary = [-0.1 * rng.random(k) * (rng.random(k) < 0.5) for k in domain]
    tables: Tables = {}
    for code in rng.choice(n * n, 3 * n_pairs, replace=False).tolist():
        i, j = divmod(code, n)
        if i < j and len(tables) < n_pairs:
            table = np.where(rng.random((domain[i], domain[j])) < 0.2, BROKEN, 0.0)
            soft = -0.1 * rng.random(table.shape) * (rng.random() < 0.3)
            table[hidden[i], hidden[j]] = 0.0
            tables[i, j] = table + soft
    return _as_graph(unary, tables)


def frequencies(seed: int, n: int = 200, n_labels: int = 24, n_pairs: int = 1300) -> FactorArrays:
    """Links of radios: pairs of frequencies at a distance, interference that costs when near."""
    rng = np.random.default_rng(seed)
    where, tables = rng.random((n, 2)), Tables()
    far = np.linalg.norm(where[:, None] - where[None], axis=2)
    values = np.sort(rng.choice(np.arange(14, 800, 14), n_labels, replace=False))
    apart = np.abs(values[:, None] - values[None])
    hidden = rng.integers(0, n_labels, n)
    pairs = np.argwhere(np.triu(np.ones((n, n), bool), 1))
    for i, j in pairs[np.argsort(far[tuple(pairs.T)])[:n_pairs]].tolist():
        need = min(int(rng.integers(20, 150)), apart[hidden[i], hidden[j]])
        wish = need + int(rng.integers(20, 120))
        tables[i, j] = np.where(apart < need, BROKEN, -0.05 * (apart < wish))
    return _as_graph([-0.02 * rng.random(n_labels) for _ in range(n)], tables)


def timetable(seed: int, n: int = 150, n_slots: int = 20, share: float = 0.25) -> FactorArrays:
    """Lessons in slots: no class or teacher twice at a time, wishes of teachers, gaps that cost."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_slots, n)
    slots = np.arange(n_slots)
    same, near = slots[:, None] == slots, np.abs(slots[:, None] - slots) == 1
    tables = Tables()
    for i, j in itertools.combinations(range(n), 2):
        draw = rng.random()
        if draw < share and hidden[i] != hidden[j]:
            tables[i, j] = np.where(same, BROKEN, -0.03 * near)
        elif draw > 0.95:
            tables[i, j] = np.where(near, 0.05, 0.0)
    return _as_graph([-0.2 * rng.random(n_slots) for _ in range(n)], tables)


def colours(seed: int, n: int = 200, n_colours: int = 6, degree: float = 14.0) -> FactorArrays:
    """A graph to be coloured, with a taste for colours and pairs that like to agree."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_colours, n)
    different, tables = np.where(np.eye(n_colours) > 0, BROKEN, 0.0), Tables()
    for i, j in itertools.combinations(range(n), 2):
        draw = rng.random()
        if draw < degree / n and hidden[i] != hidden[j]:
            tables[i, j] = different
        elif draw > 1.0 - 4.0 / n:
            tables[i, j] = 0.1 * np.eye(n_colours)
    return _as_graph([-0.3 * rng.random(n_colours) for _ in range(n)], tables)


def latin(seed: int, n: int = 12, known: float = 0.35) -> FactorArrays:
    """A Latin square to be filled, some cells given, with a cost for each entry."""
    rng = np.random.default_rng(seed)
    square = (np.add.outer(rng.permutation(n), rng.permutation(n)) % n).ravel()
    unary = [-0.1 * rng.random(n) for _ in range(n * n)]
    for i in np.flatnonzero(rng.random(n * n) < known):
        unary[i][np.arange(n) != square[i]] += BROKEN
    different = np.where(np.eye(n) > 0, BROKEN, 0.0)
    pairs = itertools.combinations(range(n * n), 2)
    alike = {(i, j) for i, j in pairs if i // n == j // n or i % n == j % n}
    return _as_graph(unary, dict.fromkeys(sorted(alike), different))


def squads(seed: int, n: int = 120, n_teams: int = 8) -> FactorArrays:
    """People in teams: enemies apart, friends together for a gain, distances between teams."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_teams, n)
    apart = np.where(np.eye(n_teams) > 0, BROKEN, 0.0)
    between = -0.05 * np.abs(np.subtract.outer(np.arange(n_teams), np.arange(n_teams)))
    tables = Tables()
    for i, j in itertools.combinations(range(n), 2):
        draw = rng.random()
        if draw < 0.2 and hidden[i] != hidden[j]:
            tables[i, j] = apart
        elif draw > 0.85:
            tables[i, j] = between
    return _as_graph([-0.1 * rng.random(n_teams) for _ in range(n)], tables)


def spins(seed: int, side: int = 30, n_labels: int = 3) -> FactorArrays:
    """A torus whose neighbours have random tables: nothing is forbidden, much is frustrated."""
    rng = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    tables = Tables()
    for axis in (0, 1):
        for i, j in zip(number.ravel(), np.roll(number, -1, axis).ravel(), strict=True):
            tables[int(i), int(j)] = rng.normal(size=(n_labels, n_labels))
    return _as_graph(list(rng.normal(0.0, 0.3, (side * side, n_labels))), tables)


def random_tables(seed: int, n: int = 150, degree: float = 10.0) -> FactorArrays:
    """A sparse random graph of domains from 2 to 10 with tables of exponential costs."""
    rng = np.random.default_rng(seed)
    domain = rng.integers(2, 11, n)
    tables = Tables()
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < degree / n:
            tables[i, j] = -rng.exponential(size=(domain[i], domain[j]))
    return _as_graph([-rng.exponential(size=k) for k in domain], tables)


def cliques(seed: int, n: int = 160, n_cliques: int = 25, size: int = 16) -> FactorArrays:
    """Cliques that overlap: some want all labels different, some want them near to each other."""
    rng = np.random.default_rng(seed)
    n_labels = 2 * size
    apart = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels)))
    tables = Tables()
    for clique in range(n_cliques):
        members = np.sort(rng.choice(n, size, replace=False)).tolist()
        is_hard = clique % 2 == 0
        table = np.where(apart == 0, BROKEN, 0.0) if is_hard else -0.02 * np.minimum(apart, 6)
        for pair in itertools.combinations(members, 2):
            tables[pair] = tables.get(pair, 0.0) + table
    return _as_graph([-0.5 * rng.random(n_labels) for _ in range(n)], tables)


def clauses(seed: int, n: int = 250, n_clauses: int = 1100, share: float = 0.7) -> FactorArrays:
    """Clauses of three literals over binary variables: most are hard, the others have weights."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, n)
    scopes = np.array([np.sort(rng.choice(n, 3, replace=False)) for _ in range(n_clauses)])
    signs = rng.integers(0, 2, scopes.shape)
    tables = np.zeros((n_clauses, 2, 2, 2))
    for c, (scope, bad) in enumerate(zip(scopes, signs, strict=True)):
        is_hard = rng.random() < share and (bad != hidden[scope]).any()
        tables[(c, *bad)] = BROKEN if is_hard else -rng.random()
    group = Group(scopes, tables, np.arange(n_clauses), np.ones(n_clauses))
    unary = np.stack([np.zeros(n), rng.normal(0.0, 0.3, n)], axis=1)
    return FactorArrays(np.full(n, 2), unary.ravel(), [group])


def places(seed: int, n: int = 22) -> FactorArrays:
    """Firms to places, each its own: what flows between two costs by how far they are apart."""
    rng = np.random.default_rng(seed)
    where = rng.random((n, 2))
    far = np.linalg.norm(where[:, None] - where[None], axis=2)
    same = np.where(np.eye(n) > 0, BROKEN, 0.0)
    tables = Tables()
    for pair in itertools.combinations(range(n), 2):
        flow = rng.exponential() * (rng.random() < 0.4)
        tables[pair] = same - flow * far
    return _as_graph([-0.2 * rng.random(n) for _ in range(n)], tables)


Kind: TypeAlias = "Callable[[int], FactorArrays]"
TUNED: dict[str, Kind] = {"planning": planning, "planted": planted}
HELD_OUT: dict[str, Kind] = {
    "frequencies": frequencies,
    "timetable": timetable,
    "colours": colours,
    "latin": latin,
    "squads": squads,
    "spins": spins,
    "random-tables": random_tables,
    "cliques": cliques,
    "clauses": clauses,
    "places": places,
}
