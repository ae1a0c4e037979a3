"""Edges of grids, of lists and of networkx graphs as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from sublearn.validation.values import is_finite_number, is_int64, show

if TYPE_CHECKING:
    import networkx

__all__ = [
    "Edges",
    "GridWeights",
    "NodeScores",
    "edges_of",
    "grid_edges",
    "grid_neighbours",
    "nodes_of",
]


#: A graph of networkx, or pairs of nodes, perhaps with a scale behind them.
Edges: TypeAlias = "networkx.Graph | np.ndarray | Iterable[Sequence[Hashable]]"
#: Scale of all edges of a grid, or of those in rows and of those in columns.
GridWeights: TypeAlias = "float | tuple[ArrayLike, ArrayLike] | None"
#: Scores by node, or of all nodes in order.
NodeScores: TypeAlias = "ArrayLike | Mapping[Hashable, ArrayLike]"


def grid_neighbours(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of neighbours in rows and in columns; ``y * width + x`` is in row y, column x."""
    number = np.arange(height * width).reshape(height, width)
    across = np.stack([number[:, :-1], number[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([number[:-1], number[1:]], axis=-1).reshape(-1, 2)
    return across, down


def grid_edges(
    height: int, width: int, weights: GridWeights
) -> tuple[np.ndarray, float | np.ndarray | None]:
    """Neighbours in rows, then in columns, with their scale."""
    scopes = np.concatenate(grid_neighbours(height, width))
    if weights is None or is_finite_number(weights):
        return scopes, weights
    shapes = [(height, width - 1), (height - 1, width)]
    try:
        parts = [
            np.asarray(part, dtype=np.float64) for part in cast("Sequence[ArrayLike]", weights)
        ]
    except (TypeError, ValueError):
        parts = []
    if [part.shape for part in parts] != shapes:
        raise ValueError(
            f"FactorGraph.grid: weights must be a number or two arrays of shapes {shapes[0]} and "
            f"{shapes[1]}, got {show([part.shape for part in parts] or weights)}"
        )
    return scopes, np.concatenate([part.ravel() for part in parts])


def _is_graph(edges: Edges) -> TypeGuard[networkx.Graph]:
    return hasattr(edges, "nodes")


def nodes_of(edges: Edges, unary: NodeScores) -> tuple[list[Hashable] | None, ArrayLike]:
    """Names of the nodes, if they have any, and their unary scores in that order."""
    nodes = list(edges.nodes) if _is_graph(edges) else None
    if isinstance(unary, Mapping):
        names = list(unary) if nodes is None else nodes
        missing = [name for name in names if name not in unary]
        if missing:
            raise ValueError(
                f"FactorGraph.from_edges: unary must have scores for each node, got none for "
                f"{show(missing[0])}"
            )
        return names, [np.asarray(unary[name]) for name in names]
    return nodes, unary


def edges_of(
    edges: Edges, places: Mapping[Hashable, int], n_nodes: int, weight: str | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Pairs of variables, and the scale of each if there is one."""
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.dtype.kind in "iu":
        if edges.shape[1] != 2:
            raise ValueError(
                f"FactorGraph.from_edges: edges must have two columns, got {edges.shape[1]}"
            )
        if not places:
            return edges, None
    if _is_graph(edges):
        found = edges.edges() if weight is None else edges.edges(data=weight, default=1.0)
    elif weight is not None:
        raise ValueError("FactorGraph.from_edges: weight must be None for a list of edges")
    else:
        found = edges
    rows = [tuple(edge) for edge in found]
    sizes = {len(row) for row in rows} or {2}
    if not sizes <= {2, 3} or len(sizes) > 1:
        raise ValueError(
            "FactorGraph.from_edges: edges must be pairs (u, v), or all of them (u, v, scale)"
        )
    ends = [[_place(node, places, n_nodes) for node in row[:2]] for row in rows]
    scopes = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return scopes, _scale([row[2] for row in rows]) if sizes == {3} else None


def _place(node: Hashable, places: Mapping[Hashable, int], n_nodes: int) -> int:
    if places:
        if node in places:
            return places[node]
    elif is_int64(node) and 0 <= node < n_nodes:
        return int(node)
    raise ValueError(
        f"FactorGraph.from_edges: edges must join nodes that have unary scores, got {show(node)}"
    )


def _scale(values: Sequence[Hashable]) -> np.ndarray:
    for value in values:
        if not is_finite_number(value):
            raise ValueError(
                f"FactorGraph.from_edges: edges must have finite numbers as scale, got "
                f"{show(value)}"
            )
    return np.array(values, dtype=np.float64)
