"""Taxonomies in files: names of labels, and pairs of parent and child.

Each reader returns names in the order of the file and pairs of names. `sublearn.hierarchy.Taxonomy`
makes a taxonomy of them and refuses what is none.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sublearn.errors import DataFileError, needs_extra
from sublearn.io.dataset import Dataset, canonical_csr, indicator
from sublearn.io.files import Lines, open_binary, reading
from sublearn.io.limits import ReadLimits, check_expansion
from sublearn.typing import PathLike

__all__ = [
    "HmcData",
    "NamedEdges",
    "edges_of_paths",
    "load_hmc",
    "load_hmc_dataset",
    "read_rcv1",
    "read_skos",
]

_RCV1_ORIGINAL = re.compile(r"parent:\s*(\S+)\s+child:\s*(\S+)")
_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


class NamedEdges(NamedTuple):
    """Names of labels, and pairs of parent and child among them."""

    names: list[str]
    edges: list[tuple[str, str]]


class HmcData(NamedTuple):
    """A file with a hierarchical class: rows, their labels, and the taxonomy.

    Parameters
    ----------
    X : ndarray of float64, shape (n_samples, n_features)
        Numbers; missing ones are NaN. Each value of a nominal attribute is a 0/1 column.
    labels : list of list of str
        Labels of each row, as the file has them.
    taxonomy : NamedEdges
        For :meth:`sublearn.hierarchy.Taxonomy.from_edges`.
    feature_names : ndarray of str
        Names of the columns.
    """

    X: np.ndarray
    labels: list[list[str]]
    taxonomy: NamedEdges
    feature_names: np.ndarray


def edges_of_paths(paths: Iterable[object], separator: str) -> NamedEdges:
    """Names and edges of paths; a name is the path to it, and inner nodes need no path of theirs.

    >>> edges_of_paths(["rec.autos", "rec.sport.hockey"], ".").names
    ['rec', 'rec.autos', 'rec.sport', 'rec.sport.hockey']
    """
    if isinstance(paths, str) or not isinstance(paths, Iterable):
        raise ValueError(f"paths must be a list of paths, got {paths!r}")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be a text of one character or more, got {separator!r}")
    names: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    for path in paths:
        if not isinstance(path, Iterable):
            raise ValueError(f"paths must be texts or lists of their parts, got {path!r}")
        parts = path.split(separator) if isinstance(path, str) else [str(part) for part in path]
        if not parts or not all(parts):
            raise ValueError(f"paths must have no empty part between {separator!r}, got {path!r}")
        whole = [separator.join(parts[: n + 1]) for n in range(len(parts))]
        names |= dict.fromkeys(whole)
        edges |= dict.fromkeys(itertools.pairwise(whole))
    return NamedEdges(list(names), list(edges))


def read_rcv1(path: PathLike, *, limits: ReadLimits | None = None) -> NamedEdges:
    """The topics of RCV1: ``parent TAB child TAB child ...``, or the original hierarchy file.

    In the original a line is ``parent: P child: C child-description: ...``. The top node, which
    no document carries, is left out.
    """
    edges: list[tuple[str, str]] = []
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            for line in lines.texts():
                edges += _rcv1_edges(line)
    edges = [edge for edge in edges if edge[0] != "None"]
    children = {child for _, child in edges}
    tops = {parent for parent, _ in edges} - children
    if len(tops) == 1:
        edges_below = [edge for edge in edges if edge[0] not in tops]
        names = [child for _, child in edges]
        return NamedEdges(list(dict.fromkeys(names)), edges_below)
    return NamedEdges(list(dict.fromkeys(name for edge in edges for name in edge)), edges)


def _rcv1_edges(line: str) -> list[tuple[str, str]]:
    if not line.strip():
        return []
    found = _RCV1_ORIGINAL.match(line)
    fields = list(found.groups()) if found else line.rstrip("\r\n").split("\t")
    if len(fields) < 2 or not all(field.strip() for field in fields):
        raise ValueError(
            f"a line must be `parent TAB children` or `parent: P child: C`, got {line[:60]!r}"
        )
    return [(fields[0].strip(), child.strip()) for child in fields[1:]]


def read_skos(path: PathLike, *, limits: ReadLimits | None = None) -> NamedEdges:
    """Concepts of a SKOS vocabulary in Turtle and their broader concepts; needs rdflib.

    Names are the concepts' addresses.
    """
    with needs_extra("read_skos", "skos"):
        import rdflib
    graph = rdflib.Graph()
    with open_binary(path, limits) as stream:
        try:
            graph.parse(stream, format="turtle")
        except OSError:
            raise
        except Exception as error:  # its parser lets errors of all kinds out
            said = " ".join(str(error).split())[:200]
            raise ValueError(
                f"must be a vocabulary in Turtle: {type(error).__name__} {said}"
            ) from None
    skos = rdflib.namespace.SKOS
    names = dict.fromkeys(sorted(map(str, graph.subjects(rdflib.RDF.type, skos.Concept))))
    broader = {(str(parent), str(child)) for child, parent in graph.subject_objects(skos.broader)}
    broader |= {(str(p), str(child)) for p, child in graph.subject_objects(skos.narrower)}
    return NamedEdges(list(names), sorted(broader))


# --- ARFF with a hierarchical class ------------------------------------------------------------


def load_hmc(path: PathLike, *, limits: ReadLimits | None = None) -> HmcData:
    """Read an ARFF file whose last attribute is ``hierarchical``, as Clus writes them.

    A class attribute lists paths (``01,01/01,01/01/03``), or edges of a graph
    (``root/GO1,GO1/GO2``); a row lists labels with ``@`` between them.

    Parameters
    ----------
    path : path
        The file, which may be compressed.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    HmcData

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.arff"
    >>> _ = file.write_text(
    ...     "@relation r\\n@attribute size numeric\\n@attribute class hierarchical 1,1/2,3\\n"
    ...     "@data\\n0.5,1/2@3\\n?,1\\n")
    >>> data = load_hmc(file)
    >>> data.labels, data.taxonomy.names, data.X.tolist()
    ([['1/2', '3'], ['1']], ['1', '1/2', '3'], [[0.5], [nan]])
    """
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            attributes = _header(lines)
            taxonomy = _class_taxonomy(attributes)
            columns = [_Column(name, kind) for name, kind in attributes[:-1]]
            rows, labels = _read_rows(lines, columns)
    names = np.array([name for column in columns for name in column.names], dtype=str)
    X = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    return HmcData(X, labels, taxonomy, names)


def load_hmc_dataset(path: PathLike, *, limits: ReadLimits | None = None) -> Dataset:
    """As :func:`load_hmc`, as a sparse data set; missing values are refused."""
    found = load_hmc(path, limits=limits)
    if np.isnan(found.X).any():
        raise DataFileError(
            f"{os.fspath(path)}: missing values ('?') are not supported: fill them in first"
        )
    names = {name: column for column, name in enumerate(found.taxonomy.names)}
    unknown = next((n for row in found.labels for n in row if n not in names), None)
    if unknown is not None:
        raise DataFileError(f"{os.fspath(path)}: {unknown!r} is no label of the class attribute")
    columns = [sorted({names[name] for name in row}) for row in found.labels]
    indptr = np.cumsum([0, *map(len, columns)])
    indices = np.array([column for row in columns for column in row], dtype=np.int64)
    Y = indicator(indices, indptr, (len(columns), len(names)))
    X = canonical_csr(found.X, "load_hmc_dataset.X")
    return Dataset(X, Y, found.feature_names, np.array(list(names), dtype=str))


class _Column:
    """An attribute: one number, or a 0/1 column for each value of a nominal one."""

    def __init__(self, name: str, kind: str):
        name = name.strip("'\"")
        self.values: list[str] | None = None
        self.names = [name]
        if kind.startswith("{"):
            self.values = [value.strip().strip("'\"") for value in kind.strip("{} ").split(",")]
            self.names = [f"{name}={value}" for value in self.values]

    def read(self, text: str) -> list[float]:
        text = text.strip().strip("'\"")
        if text == "?":
            return [float("nan")] * len(self.names)
        if self.values is None:
            return [float(text)]
        if text not in self.values:
            raise ValueError(f"{self.names[0]} must be one of its listed values, got {text!r}")
        return [float(text == value) for value in self.values]


def _header(lines: Lines) -> list[tuple[str, str]]:
    attributes: list[tuple[str, str]] = []
    for line in lines.texts():
        if line.strip().lower() == "@data":
            return attributes
        found = _ATTRIBUTE.match(line.strip())
        if found:
            attributes.append((found.group(1), found.group(2).strip()))
    lines.number = 0  # not a matter of the last line
    raise ValueError("no line @data")


def _read_rows(lines: Lines, columns: list[_Column]) -> tuple[list[list[float]], list[list[str]]]:
    n_numbers = sum(len(column.names) for column in columns)
    rows: list[list[float]] = []
    labels: list[list[str]] = []
    n_bytes = 0
    for line in lines.texts():
        if not line.strip() or line.startswith("%"):
            continue
        *values, classes = line.strip().split(",")
        if len(values) != len(columns):
            raise ValueError(f"a row must have {len(columns) + 1} values, got {len(values) + 1}")
        n_bytes += len(line)
        # A value of a nominal attribute becomes as many numbers as the attribute has values.
        check_expansion("the table", 8 * (len(rows) + 1) * n_numbers, n_bytes)
        rows.append([x for c, text in zip(columns, values, strict=True) for x in c.read(text)])
        labels.append([label.strip() for label in classes.split("@") if label.strip()])
    return rows, labels


def _class_taxonomy(attributes: list[tuple[str, str]]) -> NamedEdges:
    """Edges if every entry is a pair and some child is a parent elsewhere, else paths."""
    kind, *rest = attributes[-1][1].split(None, 1) if attributes else ("",)
    listed = [entry.strip() for entry in "".join(rest).split(",") if entry.strip()]
    if kind.lower() != "hierarchical" or not listed:
        raise ValueError("the last attribute must be `hierarchical` and a list of labels")
    pairs = [tuple(entry.split("/")) for entry in listed]
    if all(len(pair) == 2 for pair in pairs):
        parents = {pair[0] for pair in pairs}
        if any(pair[1] in parents for pair in pairs):
            edges = [(pair[0], pair[1]) for pair in pairs if pair[0] != "root"]
            names = dict.fromkeys(name for pair in pairs for name in pair if name != "root")
            return NamedEdges(list(names), edges)
    return edges_of_paths(listed, "/")
