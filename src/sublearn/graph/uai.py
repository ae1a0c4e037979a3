"""Files of the UAI inference competitions: models, evidence, assignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sublearn import _core
from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.factors import Factors
from sublearn.io.files import PathLike, open_binary, reading, write_atomically
from sublearn.io.limits import ReadLimits
from sublearn.validation import OneOf, check_argument
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sublearn.graph.map import MapResult

__all__ = ["read_evidence", "read_map", "read_uai", "write_map", "write_uai"]

_CHUNK_CELLS = 1 << 20
_LN10 = float(np.log(10.0))
_TABLES = OneOf("linear", "log", "log10")


def read_uai(
    path: PathLike,
    evidence: PathLike | Mapping[Any, int] | None = None,
    *,
    tables: str = "linear",
    limits: ReadLimits | None = None,
) -> FactorGraph:
    """Read a factor graph (MARKOV) or a Bayesian network (BAYES).

    Parameters
    ----------
    path : path
        Plain, or compressed when the name ends in ``.gz``, ``.xz`` or ``.bz2``.
    evidence : path, or mapping from variable to label, optional
        What is known: a file for `read_evidence`, or as for `FactorGraph.condition`.
    tables : {"linear", "log", "log10"}, default="linear"
        What the numbers of the tables are. The competitions' files have probabilities up to a
        factor ("linear"), of which zeros forbid a state.
    limits : ReadLimits, optional
        What a compressed file may unpack to.

    Returns
    -------
    FactorGraph
        Scores are natural logarithms. Equal tables are stored once; factors over one variable are
        part of its unary scores.

    Raises
    ------
    ValueError
        With file name, line and column: for a file that is cut, numbers that are none, negative or
        too large, variables that do not exist, tables of a wrong size or zero everywhere, text
        after the last table.
    """
    check_argument("read_uai.tables", tables, _TABLES)
    text = _read_text(path, limits)
    with reading(path):
        graph = _graph_of(_core.parse_uai(text, _core.UaiTables[tables]))
    if evidence is None:
        return graph
    if isinstance(evidence, Mapping):
        return graph.condition(evidence)
    found = read_evidence(evidence, limits=limits)
    with reading(evidence):
        return graph.condition(found)


def read_evidence(path: PathLike, *, limits: ReadLimits | None = None) -> dict[int, int]:
    """Read known variables and their labels.

    The file is ``k v x v x ...`` (competition of 2014) or ``1 k v x v x ...`` with the number
    of samples first (2012); an empty file says nothing. Which of the two it is tells its length.

    Raises
    ------
    ValueError
        For a file of another form, more than one sample, or a variable with two labels.
    """
    with reading(path):
        numbers, lines = _core.parse_integers(_read_text(path, limits), [])
        if len(numbers) == 0:
            return {}
        pairs, lines = _pairs_of(numbers, lines)
        out: dict[int, int] = {}
        for (variable, label), line in zip(pairs.tolist(), lines[::2].tolist(), strict=True):
            if out.setdefault(variable, label) != label:
                raise ValueError(
                    f"line {line}: variable {variable} must have one label, got "
                    f"{out[variable]} and {label}"
                )
        return out


def write_uai(graph: FactorGraph, path: PathLike, *, tables: str = "linear") -> None:
    """Write a graph for `read_uai`, compressed as the ending of `path` says.

    Names are lost, shared tables are written once for each factor. Unary scores come first, as
    factors of one variable.

    Parameters
    ----------
    graph : FactorGraph
    path : path
        Appears at once when it is complete.
    tables : {"linear", "log", "log10"}, default="linear"
        With "linear" the file holds exp(score), and scores beyond -700..700 are refused: other
        programs would read 0 or infinity.
    """
    if not isinstance(graph, FactorGraph):
        raise ValueError(f"write_uai.graph must be a FactorGraph, got {show(graph)}")
    check_argument("write_uai.tables", tables, _TABLES)
    n_scopes = graph.n_variables + graph.n_factors
    with write_atomically(path) as stream:
        stream.write(f"MARKOV\n{graph.n_variables}\n".encode())
        stream.write(" ".join(map(str, graph.domain.tolist())).encode())
        stream.write(f"\n{n_scopes}\n".encode())
        stream.writelines(f"1 {i}\n".encode() for i in range(graph.n_variables))
        for group in graph.factors:
            stream.writelines(_scope_lines(group))
        stream.write(b"\n")
        for rows in _tables_of(graph):
            stream.write(_core.format_tables(_as_written(rows, tables)))


def write_map(result: MapResult | ArrayLike, path: PathLike) -> None:
    """Write an assignment as the competitions want it: ``MAP``, then ``n x0 x1 ...``.

    Parameters
    ----------
    result : MapResult, or array-like of int
        What `solve_map` returned, or an assignment.
    path : path
    """
    labels = np.asarray(getattr(result, "assignment", result))
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"write_map.result must be an assignment of integers, got shape {labels.shape} and "
            f"dtype {labels.dtype}"
        )
    with write_atomically(path) as stream:
        stream.write(f"MAP\n{' '.join(map(str, [len(labels), *labels.tolist()]))}\n".encode())


def read_map(path: PathLike, *, limits: ReadLimits | None = None) -> np.ndarray:
    """Read an assignment that `write_map` or a competitor wrote.

    Returns
    -------
    ndarray of int32 of shape (n_variables,)
    """
    with reading(path):
        numbers, _ = _core.parse_integers(_read_text(path, limits), ["MAP", "MPE"])
        for n_heads in (1, 2):  # "n x ...", or "1 n x ..." with the number of samples first
            if len(numbers) > n_heads and numbers[n_heads - 1] == len(numbers) - n_heads:
                return numbers[n_heads:].astype(np.int32)
        raise ValueError(
            "an assignment must be MAP, the number of variables and a label for each of them, got "
            f"{len(numbers)} numbers"
            + (f", the first of them {numbers[0]}" if len(numbers) else "")
        )


def _read_text(path: PathLike, limits: ReadLimits | None) -> bytes:
    with open_binary(path, limits) as stream:
        return stream.read() + b"\n"  # numbers of the parser end before white space


def _graph_of(parts: Mapping[str, np.ndarray]) -> FactorGraph:
    graph = FactorGraph(parts["domain"])
    scope, begin = _without_single_labels(parts["scope"], parts["scope_begin"], graph.domain)
    arity = np.diff(begin)
    for k in np.unique(arity):
        chosen = np.flatnonzero(arity == k)
        if k == 0:  # a constant
            constant = parts["scores"][parts["table_begin"][chosen]].sum()
            graph.add_unary(0, np.full(graph.domain[0], constant))
            continue
        scopes = scope[begin[chosen][:, None] + np.arange(k)]
        _add_by_shape(graph, chosen, scopes, parts)
    graph._check_allowed()
    return graph


def _without_single_labels(
    scope: np.ndarray, begin: np.ndarray, domain: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scopes without variables of one label, whose axes make no difference to a table."""
    is_kept = domain[scope] > 1
    return scope[is_kept], np.concatenate([[0], np.cumsum(is_kept)])[begin]


def _add_by_shape(
    graph: FactorGraph, chosen: np.ndarray, scopes: np.ndarray, parts: Mapping[str, np.ndarray]
) -> None:
    """Factors whose tables have the same shape become one group."""
    shapes, kind = np.unique(graph.domain[scopes], axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(kind.ravel(), minlength=len(shapes)))
    for shape, members in zip(shapes, np.split(order, ends[:-1]), strict=True):
        n_cells = int(np.prod(shape, dtype=np.int64))
        first = parts["table_begin"][chosen[members]]
        values = parts["scores"][first[:, None] + np.arange(n_cells)]
        try:
            graph.add_factors(scopes[members], values.reshape(len(members), *shape))
        except ValueError:  # which of them, for the message
            _name_bad_factor(
                graph, scopes[members], values.reshape(-1, *shape), chosen[members], parts
            )
            raise


def _name_bad_factor(
    graph: FactorGraph,
    scopes: np.ndarray,
    values: np.ndarray,
    numbers: np.ndarray,
    parts: Mapping[str, np.ndarray],
) -> None:
    trial = FactorGraph(graph.domain)
    for scope, table, f in zip(scopes, values, numbers.tolist(), strict=True):
        try:
            trial.add_factor(scope, table)
        except ValueError:
            raise ValueError(
                f"line {parts['table_line'][f]}: the table of factor {f} allows no joint state in "
                f"which its repeated variable has one label: the model gives every assignment "
                f"probability zero"
            ) from None


def _pairs_of(numbers: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of variable and label, in either convention."""
    for n_heads in (1, 2):
        count = int(numbers[n_heads - 1]) if len(numbers) >= n_heads else -1
        is_one_sample = n_heads == 1 or numbers[0] == 1
        if is_one_sample and len(numbers) == n_heads + 2 * count:
            return numbers[n_heads:].reshape(-1, 2), lines[n_heads:]
    if len(numbers) == 1 and numbers[0] == 1:  # one sample in which nothing is known
        return numbers[:0].reshape(-1, 2), lines[:0]
    raise ValueError(
        f"line {lines[0]}: evidence must be a number of variables and as many pairs of a variable "
        f"and a label, or the same after a 1 for one sample; got {len(numbers)} numbers, the first "
        f"{numbers[0]}"
    )


def _scope_lines(group: Factors) -> Iterator[bytes]:
    arity = group.scopes.shape[1]
    line = " ".join(["%d"] * (arity + 1)) + "\n"
    for scope in group.scopes.tolist():
        yield (line % (arity, *scope)).encode()


def _tables_of(graph: FactorGraph) -> Iterator[np.ndarray]:
    """Scores of all factors in the order of their scopes, some tables at a time."""
    for i in range(graph.n_variables):
        yield graph.unary(i)[None]
    for group in graph.factors:
        step = max(1, _CHUNK_CELLS // max(1, int(np.prod(group.table.shape, dtype=np.int64))))
        for begin in range(0, len(group), step):
            yield group.tables_of_factors(slice(begin, begin + step))


def _as_written(scores: np.ndarray, tables: str) -> np.ndarray:
    if tables == "log10":
        return np.ascontiguousarray(scores / _LN10)
    if tables == "log":
        return np.ascontiguousarray(scores)
    finite = scores[np.isfinite(scores)]
    if finite.size and np.abs(finite).max() > 700.0:
        raise ValueError(
            f"write_uai.tables must be log or log10 for scores beyond -700..700, got linear and a "
            f"score of {finite[np.argmax(np.abs(finite))]:.6g}"
        )
    return np.exp(np.ascontiguousarray(scores))
