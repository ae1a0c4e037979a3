"""Samples that are graphs: nodes with features, and factors by template, as arrays of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sublearn.graph.edges import grid_neighbours
from sublearn.structured.sequences import stack_rows
from sublearn.typing import Matrix, MatrixLike
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import count_rows, show

__all__ = ["MOST_NODES", "Graphs", "Sample", "stack_samples"]

MOST_NODES = 4  # of a factor: LineTable::kMostEnds of the core


@dataclass(frozen=True, eq=False)
class Sample:
    """A graph whose nodes are to be labelled.

    Edges that are of one kind, horizontal neighbours for instance, are listed under one name, the
    *template*; all of them, in all samples, share one table of scores of label pairs. A template
    may also connect three or four nodes: its table then has an axis for each of them.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (n_nodes, n_features)
        A row for each node.
    edges : mapping from template to array-like of int of shape (n_edges, 2), or 3 or 4 columns
        Pairs of nodes. The label of the first is the row of the table, that of the second the
        column. An edge without direction can be listed both ways. With three or four columns a
        factor of so many nodes, in the order of the table's axes.
    scale : mapping from template to number or array-like of shape (n_edges,), optional
        What the table is multiplied by at each edge, not negative: for instance how similar two
        pixels are. By default 1.
    edge_features : mapping from template to array-like or sparse matrix, optional
        A row of features for each edge, as many in all samples. The score of labels a and b is
        then that of the table, and for each feature its value times the score of a and b in a table
        of its own.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Sample(np.eye(3), {"child": [[0, 1], [0, 2]]})
    >>> image = Sample.grid(np.zeros((4, 5, 2)))
    >>> sorted(image.edges), len(image.edges["horizontal"]), len(image.edges["vertical"])
    (['horizontal', 'vertical'], 16, 15)
    """

    features: MatrixLike
    edges: Mapping[str, ArrayLike] = field(default_factory=dict)
    scale: Mapping[str, ArrayLike] = field(default_factory=dict)
    edge_features: Mapping[str, MatrixLike] = field(default_factory=dict)

    @classmethod
    def chain(cls, features: MatrixLike) -> Sample:
        """Nodes in a row, with the template "next"."""
        n_nodes = count_rows(features, "Sample.features")
        first = np.arange(n_nodes - 1)
        return cls(features, {"next": np.column_stack([first, first + 1])})

    @classmethod
    def grid(cls, features: ArrayLike) -> Sample:
        """Pixels with features of shape (height, width, n_features).

        Templates are "horizontal" (left, right) and "vertical" (upper, lower); node
        ``y * width + x`` is the pixel in row y, column x.
        """
        pixels = np.asarray(features)
        if pixels.ndim != 3:
            raise ValueError(
                f"Sample.grid: features must have shape (height, width, n_features), "
                f"got {pixels.shape}"
            )
        height, width, n_features = pixels.shape
        across, down = grid_neighbours(height, width)
        return cls(pixels.reshape(-1, n_features), {"horizontal": across, "vertical": down})


@dataclass(frozen=True, eq=False)
class Graphs:
    """Samples one after another: rows of nodes, and factors between numbers of rows.

    `arities` has the templates in order, with the number of nodes of their factors; `scope` has the
    nodes of one factor after another. `widths` has the number of features of each template's
    factors; a row of `edge_features` has the scale, then the features, and none of a template
    without any.
    """

    rows: Matrix
    n_nodes: np.ndarray
    n_factors: np.ndarray
    scope: np.ndarray
    table: np.ndarray
    scale: np.ndarray | None
    arities: dict[str, int]
    edge_features: sp.csr_matrix | None
    widths: dict[str, int]


def stack_samples(
    samples: Sequence[Sample],
    arities: dict[str, int] | None,
    widths: dict[str, int] | None,
    head: str,
) -> Graphs:
    """All samples as one graph; `arities` and `widths` are those of the fit, None in it."""
    if isinstance(samples, (Sample, str, bytes, Mapping)) or not isinstance(samples, Sequence):
        raise ValueError(f"{head}: X must be a list of Sample, got {show(samples)}")
    for i, sample in enumerate(samples):
        if not isinstance(sample, Sample):
            raise ValueError(f"{head}: X[{i}] must be a Sample, got {show(sample)}")
        _refuse_other_mappings(sample, f"{head}: X[{i}]")
    if not samples:
        raise ValueError(f"{head}: X must have at least one Sample, got none")
    matrices = [_as_matrix(s.features, f"{head}: X[{i}]") for i, s in enumerate(samples)]
    n_nodes = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    if arities is None:
        arities = _find_arities(samples, head)
    if widths is None:
        widths = _find_widths(samples, arities, head)
    edges = [
        _edges_of(sample, int(n), arities, f"{head}: X[{i}]")
        for i, (sample, n) in enumerate(zip(samples, n_nodes, strict=True))
    ]
    first = np.repeat(np.cumsum(n_nodes) - n_nodes, [len(scope) for scope, _, _ in edges])
    scale = np.concatenate([scale for _, _, scale in edges])
    return Graphs(
        rows=stack_rows(matrices, head),
        n_nodes=n_nodes,
        n_factors=np.array([len(table) for _, table, _ in edges], dtype=np.int64),
        scope=(np.concatenate([scope for scope, _, _ in edges]) + first).astype(np.int32),
        table=np.concatenate([table for _, table, _ in edges]),
        scale=None if (scale == 1.0).all() else scale,
        arities=arities,
        edge_features=_stack_features(samples, edges, widths, head),
        widths=widths,
    )


def _find_widths(samples: Sequence[Sample], arities: dict[str, int], head: str) -> dict[str, int]:
    """How many features the factors of each template have, by the first sample that has some."""
    found = dict.fromkeys(arities, 0)
    for i, sample in enumerate(samples):
        for name, features in sample.edge_features.items():
            if found.get(name) == 0:
                matrix = _as_matrix(features, f"{head}: X[{i}].edge_features[{name!r}]", "")
                found[name] = matrix.shape[1]
    return found


def _stack_features(
    samples: Sequence[Sample],
    edges: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    widths: dict[str, int],
    head: str,
) -> sp.csr_matrix | None:
    """A row for each factor of all samples, None if no template has features."""
    most = max(widths.values(), default=0)
    if not most:
        for i, sample in enumerate(samples):
            _refuse_features(sample, widths, f"{head}: X[{i}]")
        return None
    blocks = []
    for i, (sample, (_, table, scale)) in enumerate(zip(samples, edges, strict=True)):
        _refuse_features(sample, widths, f"{head}: X[{i}]")
        for number, (name, width) in enumerate(widths.items()):
            mine = table == number
            if not width:
                blocks.append(sp.csr_matrix((int(mine.sum()), 1 + most)))
                continue
            z = _features_of(sample, name, width, int(mine.sum()), f"{head}: X[{i}]")
            row = sp.hstack([sp.csr_matrix(scale[mine][:, None]), z], format="csr")
            row.resize(row.shape[0], 1 + most)
            blocks.append(row)
    return sp.vstack(blocks, format="csr", dtype=np.float64)


def _refuse_features(sample: Sample, widths: dict[str, int], head: str) -> None:
    for name in sample.edge_features:
        if name not in sample.edges:
            raise ValueError(
                f"{head}.edge_features must be of templates in edges, got {show(name)}"
            )
        if not widths.get(name):
            raise ValueError(
                f"{head}.edge_features must be of templates that had features in the fit, "
                f"got {show(name)}"
            )


def _features_of(sample: Sample, name: str, width: int, n_edges: int, head: str) -> sp.csr_matrix:
    argument = f"{head}.edge_features[{name!r}]"
    if name not in sample.edge_features:
        if n_edges:
            raise ValueError(f"{argument} must be given, as in other samples, got none")
        return sp.csr_matrix((0, width))
    matrix = _as_matrix(sample.edge_features[name], argument, "")
    if matrix.shape != (n_edges, width):
        raise ValueError(
            f"{argument} must have a row for each of {n_edges} edges and {width} columns, "
            f"got {matrix.shape}"
        )
    try:
        matrix = sp.csr_matrix(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{argument} must hold numbers, got {show(matrix)}") from None
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{argument} must be finite")
    return matrix


def _find_arities(samples: Sequence[Sample], head: str) -> dict[str, int]:
    """Templates of all samples, sorted; two nodes where a template has no edge anywhere."""
    found: dict[str, int] = {}
    for i, sample in enumerate(samples):
        for name, edges in sample.edges.items():
            shape = _as_array(edges, f"{head}: X[{i}].edges[{name!r}]").shape
            if len(shape) != 2 or not shape[0]:
                continue  # empty, or refused by _as_scopes
            if found.setdefault(name, shape[1]) != shape[1]:
                raise ValueError(
                    f"{head}: X[{i}].edges[{name!r}] must have {found[name]} nodes for each "
                    f"factor, as in samples before, got {shape[1]}"
                )
    names = {name for sample in samples for name in sample.edges}
    return {name: found.get(name, 2) for name in sorted(names)}


def _refuse_other_mappings(sample: Sample, head: str) -> None:
    given_all = {
        "edges": sample.edges, "scale": sample.scale, "edge_features": sample.edge_features
    }  # fmt: skip
    for argument, given in given_all.items():
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise ValueError(
                f"{head}.{argument} must be a mapping from the name of a template to an array, "
                f"got {show(given)}"
            )


def _as_matrix(features: MatrixLike, head: str, argument: str = ".features") -> Matrix:
    """A matrix with at least one row of nodes, or one of edges."""
    matrix = features if sp.issparse(features) else np.asarray(features)
    matrix = check_layout(matrix, f"{head}{argument}")
    if matrix.ndim != 2 or (argument and not matrix.shape[0]):
        kind = "(n_nodes, n_features) with at least one node" if argument else "(n_edges, n)"
        raise ValueError(f"{head}{argument} must have shape {kind}, got {matrix.shape}")
    if matrix.dtype.kind == "c":
        raise ValueError(f"{head}{argument} must hold real numbers, got complex ones")
    return matrix


def _edges_of(
    sample: Sample, n_nodes: int, arities: dict[str, int], head: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of one factor after another, the number of the template of each, and its scale."""
    for name in sample.edges:
        if name not in arities:
            known = ", ".join(map(repr, arities)) or "none"
            raise ValueError(
                f"{head}.edges must have templates of the fit ({known}), got {show(name)}"
            )
    for name in sample.scale:
        if name not in sample.edges:
            raise ValueError(f"{head}.scale must be of templates in edges, got {show(name)}")
    scopes, tables, scales = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
    for number, (name, arity) in enumerate(arities.items()):
        if name in sample.edges:
            found = _as_scopes(sample.edges[name], n_nodes, arity, f"{head}.edges[{name!r}]")
            scopes.append(found.reshape(-1))
            tables.append(np.full(len(found), number, dtype=np.int32))
            scale = sample.scale.get(name, 1.0)
            scales.append(_as_scale(scale, len(found), f"{head}.scale[{name!r}]"))
    return np.concatenate(scopes), np.concatenate(tables), np.concatenate(scales)


def _as_array(edges: ArrayLike, name: str) -> np.ndarray:
    try:
        return np.asarray(edges)
    except ValueError:
        raise ValueError(f"{name} must have as many nodes in each row, got several") from None


def _as_scopes(edges: ArrayLike, n_nodes: int, arity: int, name: str) -> np.ndarray:
    scopes = _as_array(edges, name)
    if scopes.size == 0:
        return np.zeros((0, arity), dtype=np.int64)
    if scopes.ndim == 2 and not 2 <= scopes.shape[1] <= MOST_NODES:
        raise ValueError(
            f"{name} must have 2 to {MOST_NODES} nodes for each factor, got {scopes.shape[1]}"
        )
    if scopes.ndim != 2 or scopes.shape[1] != arity or scopes.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of shape (n_edges, {arity}), got {show(edges)}")
    if scopes.min() < 0 or scopes.max() >= n_nodes:
        raise ValueError(
            f"{name} must be nodes in 0..{n_nodes - 1}, got {scopes.min()} to {scopes.max()}"
        )
    ordered = np.sort(scopes, axis=1)
    loops = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if loops.any():
        raise ValueError(
            f"{name} must connect different nodes, got {scopes[int(np.argmax(loops))].tolist()}"
        )
    return scopes.astype(np.int64)


def _as_scale(scale: ArrayLike, n_edges: int, name: str) -> np.ndarray:
    try:
        found = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(2, np.nan)
    if found.shape not in ((), (n_edges,)):
        raise ValueError(
            f"{name} must be a number or have one for each of {n_edges} edges, got {show(scale)}"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative, got {show(scale)}")
    return np.broadcast_to(found, (n_edges,))
