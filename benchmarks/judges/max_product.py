"""Loopy max-product belief propagation, all messages at once, damped.

Messages m_{f -> i}(a) are logarithms with maximum zero. On a tree the decoded assignment is optimal
once messages have gone from end to end; with cycles nothing is promised.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from harness.factors import FactorArrays, Group

__all__ = ["max_product"]

_CHUNK = 1 << 22  # cells that are worked on at a time


def max_product(
    problem: FactorArrays, damping: float = 0.5, tol: float = 1e-9
) -> Iterator[np.ndarray]:
    """The assignment of each iteration, until messages change by less than `tol`."""
    graph = problem.without_forbidden()
    messages = [[np.zeros((len(g.scopes), k)) for k in g.tables.shape[1:]] for g in graph.groups]
    change = np.inf
    while change > tol:
        beliefs = _beliefs(graph, messages)
        change = 0.0
        for group, old in zip(graph.groups, messages, strict=True):
            step = max(1, _CHUNK // group.n_cells)
            for first in range(0, len(group.scopes), step):
                part = slice(first, first + step)
                change = max(change, _update(graph, group, old, part, beliefs, damping))
        yield _decoded(graph, _beliefs(graph, messages))


def _beliefs(graph: FactorArrays, messages: list[list[np.ndarray]]) -> np.ndarray:
    """Scores of all labels with what the factors say of them."""
    out = graph.unary.copy()
    for group, own in zip(graph.groups, messages, strict=True):
        for axis, values in enumerate(own):
            np.add.at(out, _cells(graph, group.scopes[:, axis], values.shape[1]), values)
    return out


def _cells(graph: FactorArrays, variables: np.ndarray, n_labels: int) -> np.ndarray:
    return graph.begin[variables][:, None] + np.arange(n_labels)


def _update(
    graph: FactorArrays,
    group: Group,
    messages: list[np.ndarray],
    part: slice,
    beliefs: np.ndarray,
    damping: float,
) -> float:
    """New messages of some factors; the largest change of one."""
    scopes, shape = group.scopes[part], group.tables.shape[1:]
    arity = len(shape)
    scale = group.scale[part].reshape(-1, *[1] * arity)
    total = scale * group.tables[group.rows[part]]
    incoming = []
    for axis, k in enumerate(shape):
        said = beliefs[_cells(graph, scopes[:, axis], k)] - messages[axis][part]
        said -= said.max(axis=1, keepdims=True)
        incoming.append(said)
        total = total + said.reshape(-1, *[k if a == axis else 1 for a in range(arity)])
    change = 0.0
    for axis in range(arity):
        others = tuple(a + 1 for a in range(arity) if a != axis)
        new = total.max(axis=others) - incoming[axis]
        new -= new.max(axis=1, keepdims=True)
        new = damping * messages[axis][part] + (1 - damping) * new
        change = max(change, float(np.abs(new - messages[axis][part]).max(initial=0.0)))
        messages[axis][part] = new
    return change


def _decoded(graph: FactorArrays, beliefs: np.ndarray) -> np.ndarray:
    """The label with the best score of each variable, the first of equals."""
    owner = np.repeat(np.arange(graph.n_variables), graph.domain)
    order = np.lexsort((-np.arange(len(beliefs)), beliefs, owner))
    return order[graph.begin[1:] - 1] - graph.begin[:-1]
