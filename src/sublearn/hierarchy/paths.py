"""Where a row's path down a forest leads: step by step, or to the most probable leaf.

A node is asked for the log probabilities of its children, each against its siblings, and of a path
that ends there; `ask(node, rows)` answers for some rows. Nodes come parents first.

A path is scored by a product over its steps, and probabilities of ends are these products divided
by their sum. A step is p_i / (p_1 + ... + p_m)^s. With s = 1 a node must share out all that reaches
it, however little any child suits the row: an error at the top is never noticed below. With s = 0
every step costs, and short paths win. Cross-validation on training rows wants s below 1
(`benchmarks/run.py --only hierarchy`); half of it keeps most of the gain, and on small
test sets does not fall behind greedy paths as 0 does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from sublearn.hierarchy.nodes import TOP, Node

__all__ = [
    "Ask",
    "best_leaves",
    "blend",
    "expected_f1",
    "greedy_ends",
    "path_probabilities",
]

_SHARED = 0.5  # s
_FLAT_SHARE = (
    0.7  # of a blend; chosen on rcv1_dev, 20news, imclef07a and gnd_bk, where 0.5 is as good
)
_LEAST = 1e-12  # a probability that one side of a blend may have

Ask = Callable[[Node, np.ndarray], tuple[np.ndarray, np.ndarray]]


def greedy_ends(
    nodes: list[Node], ask: Ask, n_rows: int, limits: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of Tang (2016): on to the best child until there is none.

    With `limits`, log probabilities of labels, only to a child that reaches its own. Returns the
    ends of the paths, and the logs of their products.
    """
    at, product = np.full(n_rows, TOP), np.zeros(n_rows)
    for node in nodes:
        rows = np.flatnonzero(at == node.label)
        if not len(rows):
            continue
        own, stay = ask(node, rows)
        best = own.argmax(axis=1)
        child, every = node.children[best], np.arange(len(rows))
        goes = np.ones(len(rows), dtype=bool)
        if limits is not None and node.label != TOP:
            goes = own[every, best] >= limits[child]
        at[rows[goes]] = child[goes]
        product[rows[goes]] += _log_steps(own, stay)[every, best][goes]
    return at, product


def best_leaves(nodes: list[Node], ask: Ask, n_rows: int, n_labels: int) -> np.ndarray:
    """The leaf whose path has the largest product.

    A product only falls along a path, since p_i / sqrt(p_1 + ... + p_m) is at most sqrt(p_i). So a
    node is asked for the rows alone whose product up to it is above that of a leaf already known;
    the first one known is the end of the greedy path.
    """
    best, product = greedy_ends(nodes, ask, n_rows)
    through = np.full((n_rows, n_labels), -np.inf)
    is_leaf = _is_leaf(nodes, n_labels)
    for node in nodes:
        above = np.zeros(n_rows) if node.label == TOP else through[:, node.label]
        rows = np.flatnonzero(above > product)
        if not len(rows):
            continue
        reached = above[rows, None] + _log_steps(*ask(node, rows))[:, :-1]
        through[rows[:, None], node.children] = reached
        reached = np.where(is_leaf[node.children], reached, -np.inf)
        child = reached.argmax(axis=1)
        found = reached[np.arange(len(rows)), child]
        is_better = found > product[rows]
        best[rows[is_better]] = node.children[child[is_better]]
        product[rows[is_better]] = found[is_better]
    return best


def path_probabilities(
    nodes: list[Node], ask: Ask, n_rows: int, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of passing through each label, and of ending at it, of shape (n_rows, n_labels)."""
    every = np.arange(n_rows)
    through, ends = (np.full((n_rows, n_labels), -np.inf) for _ in range(2))  # logs of products
    for node in nodes:
        above = np.zeros(n_rows) if node.label == TOP else through[:, node.label]
        steps = _log_steps(*ask(node, every))
        through[:, node.children] = above[:, None] + steps[:, :-1]
        if node.label != TOP:
            ends[:, node.label] = above + steps[:, -1]
    is_leaf = _is_leaf(nodes, n_labels)
    ends[:, is_leaf] = through[:, is_leaf]
    ends = softmax(ends, axis=1)
    through = ends.copy()
    for node in reversed(nodes):
        if node.label != TOP:
            through[:, node.label] += through[:, node.children].sum(axis=1)
    return through, ends


def _log_steps(own: np.ndarray, stay: np.ndarray) -> np.ndarray:
    """Logs of the steps to the children and of ending at a node."""
    every = np.column_stack([own, stay])
    return np.asarray(every - _SHARED * logsumexp(every, axis=1, keepdims=True))


def _is_leaf(nodes: list[Node], n_labels: int) -> np.ndarray:
    """Which labels have no node of their own: paths end there."""
    found = np.ones(n_labels, dtype=bool)
    found[[node.label for node in nodes if node.label != TOP]] = False
    return found


def blend(flat: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Geometric mean of two sides' probabilities of ends, divided by their sums.

    A flat model sees all rows in each decision, nodes see few but easy ones: their errors differ.
    What no path reaches, or no flat class is, stays at 0.
    """
    logs = _FLAT_SHARE * np.log(flat + _LEAST) + (1 - _FLAT_SHARE) * np.log(nodes + _LEAST)
    return np.asarray(softmax(np.where((flat > 0) & (nodes > 0), logs, -np.inf), axis=1))


def expected_f1(ends: np.ndarray, closed: sp.csr_matrix) -> np.ndarray:
    """Hierarchical F1 to be expected of each end, given the probabilities of all of them.

    `closed` has a row of labels for each end, ancestors included. With P(e) the labels of end e
    and t the true end, sum_t p_t 2 |P(e) & P(t)| / (|P(e)| + sum_t p_t |P(t)|): the mean of a
    quotient as a quotient of means.
    """
    steps = closed.astype(np.float64)
    n_steps = np.asarray(steps.sum(axis=1)).ravel()
    through = ends @ steps
    shared = (steps @ through.T).T
    return np.asarray(2 * shared / (n_steps + (ends @ n_steps)[:, None]))
