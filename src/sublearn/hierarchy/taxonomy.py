"""A taxonomy of labels: a tree, several trees, or a graph in which a label has several parents."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.hierarchy.drawing import draw_text, plot_taxonomy
from sublearn.hierarchy.given_names import as_names, as_pair, as_parents, is_missing, items_of
from sublearn.hierarchy.path_arrays import as_path_array, ends_of_paths, forest_of_paths
from sublearn.io.files import reading
from sublearn.io.taxonomies import NamedEdges, edges_of_paths, load_hmc, read_rcv1, read_skos
from sublearn.typing import LabelsLike, MatrixLike, PathLike, State
from sublearn.validation import EncodedLabels, NonNegative, OrNone, check_argument, encode_labels
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import count_rows, show

if TYPE_CHECKING:
    import networkx
    import pandas as pd
    from numpy.typing import ArrayLike

    from sublearn.display import TaxonomyDisplay
    from sublearn.display.base import AxesLike

__all__ = ["Taxonomy", "find_levels"]

#: A number for each label, to be drawn.
_Numbers: TypeAlias = "ArrayLike | None"

_MOST_COMPARED = 5_000  # names that a misspelt one is compared with: 50 ms


class Taxonomy:
    """Labels and their parents.

    A label without a parent is a root; there may be several roots. A label may have several
    parents, as long as there is no cycle. Labels have positions 0 .. n_labels - 1, and names.

    Parameters
    ----------
    parents : sequence of int or of sequences of int
        ``parents[i]`` is the position of i's parent, -1 (or None) for a root; a sequence where a
        label has several.
    names : sequence of hashable, optional
        Names of the labels, all different; their positions if not given.

    Attributes
    ----------
    names : ndarray of shape (n_labels,)
        Names.
    n_labels : int
        Number of labels.
    is_forest : bool
        Whether no label has two parents.
    roots, leaves : ndarray of int
        Positions of labels without parents, and without children.
    levels : ndarray of int, shape (n_labels,)
        0 for roots, else one more than the lowest parent has.

    Examples
    --------
    >>> taxonomy = Taxonomy([-1, 0, 0, 2], names=["animal", "bird", "mammal", "cat"])
    >>> taxonomy.ancestors("cat"), taxonomy.levels.tolist()
    (['animal', 'mammal'], [0, 1, 1, 2])
    >>> print(taxonomy.draw(counts=[7, 3, 4, 2]))
    animal  7
    ├── bird  3
    └── mammal  4
        └── cat  2
    """

    def __init__(
        self,
        parents: Iterable[int | Sequence[int] | None],
        names: Iterable[Hashable] | None = None,
    ):
        how = "a sequence of positions (from_parents takes a mapping, from_edges pairs)"
        lists = [as_parents(entry, i) for i, entry in enumerate(items_of(parents, "parents", how))]
        if not lists:
            raise ValueError("Taxonomy.parents must have at least one label, got none")
        self._set_parents(lists)
        self.names = as_names(names, len(lists))
        self._refuse_cycles()

    def _set_parents(self, lists: list[list[int]]) -> None:
        n = len(lists)
        for label, own in enumerate(lists):
            for parent in own:
                if not 0 <= parent < n:
                    raise ValueError(
                        f"Taxonomy.parents must be -1 or positions from 0 to {n - 1}, "
                        f"got {parent} for label {label}, an orphan"
                    )
        self.indptr = np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
        self.indices = np.array([p for own in lists for p in own], dtype=np.int32)
        self._graph = _core.LabelGraph(self.indptr, self.indices)

    def _refuse_cycles(self) -> None:
        order = self._graph.order()
        if len(order) == self.n_labels:
            return
        on_cycle = np.ones(self.n_labels, dtype=bool)
        on_cycle[order] = False
        at, seen = int(np.flatnonzero(on_cycle)[0]), []
        while at not in seen:  # a label that is left over has a parent that is left over
            seen.append(at)
            at = next(int(p) for p in self._parents(at) if on_cycle[p])
        names = [str(self.names[t]) for t in [*seen[seen.index(at) :], at]]
        raise ValueError(f"Taxonomy.parents must have no cycle, got {' -> '.join(names)}")

    # --- other ways to make one ----------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[Hashable, Hashable]] | NamedEdges | pd.DataFrame,
        names: Iterable[Hashable] | None = None,
    ) -> Taxonomy:
        """A taxonomy of pairs (parent, child).

        Parameters
        ----------
        edges : iterable of pairs, data frame of two columns, or NamedEdges
            Parent and child; what :func:`sublearn.io.load_hmc` returns as `taxonomy` will do.
        names : iterable, optional
            All labels, in the order in which they shall stand; with it, an edge to another label
            is refused. Without, labels stand in the order in which edges name them.
        """
        if isinstance(edges, NamedEdges):
            names, edges = edges.names if names is None else names, edges.edges
        rows = edges.to_numpy().tolist() if hasattr(edges, "to_numpy") else edges
        pairs = [as_pair(edge) for edge in items_of(rows, "edges", "pairs (parent, child)")]
        order = list(names) if names is not None else [name for pair in pairs for name in pair]
        position = {name: i for i, name in enumerate(dict.fromkeys(order))}
        if names is not None and len(position) != len(order):
            raise ValueError("Taxonomy.names must be all different")
        lists: list[list[int]] = [[] for _ in position]
        for parent, child in dict.fromkeys(pairs):
            for name, other in ((parent, child), (child, parent)):
                if name not in position:
                    raise ValueError(
                        f"Taxonomy.edges must join labels of names, got {show(name)}, "
                        f"joined to {show(other)}"
                    )
            lists[position[child]].append(position[parent])
        return cls(lists, list(position))

    @classmethod
    def from_parents(cls, parents: Mapping[Hashable, object] | pd.Series) -> Taxonomy:
        """A taxonomy of a mapping from each label to its parent, a list of them, or None (NaN).

        Every parent must be a key as well. A pandas series will do.
        """
        if not hasattr(parents, "items"):
            raise ValueError(
                "Taxonomy.parents must be a mapping from labels to parents for from_parents, "
                f"got {show(parents)}"
            )
        position = {name: i for i, name in enumerate(parents.keys())}
        lists = []
        for name, own in parents.items():
            several = own if isinstance(own, (list, tuple, set)) else [own]
            several = [parent for parent in several if not is_missing(parent)]
            unknown = next((p for p in several if p not in position), None)
            if unknown is not None:
                raise ValueError(
                    f"Taxonomy.parents must name labels, got {show(unknown)} as the parent of "
                    f"{show(name)}, an orphan"
                )
            lists.append([position[p] for p in several])
        return cls(lists, list(position))

    @classmethod
    def from_paths(cls, paths: Iterable[str | Sequence[str]], separator: str = ".") -> Taxonomy:
        """A taxonomy of paths such as ``rec.sport.hockey``; a label's name is the path to it.

        Parameters
        ----------
        paths : iterable of str or of sequences of str
            Paths from a root; labels on the way need no path of their own. Repeated ones are one.
        separator : str, default="."
            What stands between the parts.

        Examples
        --------
        >>> Taxonomy.from_paths(["rec.autos", "rec.sport.hockey", "sci"]).names.tolist()
        ['rec', 'rec.autos', 'rec.sport', 'rec.sport.hockey', 'sci']
        """
        return cls.from_edges(edges_of_paths(paths, separator))

    @classmethod
    def from_path_array(cls, paths: ArrayLike) -> Taxonomy:
        """A taxonomy of paths in the rows of an array, empty places behind, as hiclass has them.

        A label has the name of its step; if a name stands under two parents, all names are whole
        paths, joined by the first of ``. / -- :: |`` that no name contains.

        Examples
        --------
        >>> paths = np.array([["animal", "bird"], ["animal", "cat"], ["stone", ""]])
        >>> Taxonomy.from_path_array(paths).names.tolist()
        ['animal', 'bird', 'cat', 'stone']
        """
        rows = as_path_array(paths)
        if rows is None:
            raise ValueError(
                "Taxonomy.paths must be an array of texts with a row for each path and a column "
                f"for each level, got {show(paths)}"
            )
        return cls(*forest_of_paths(rows, "Taxonomy.paths"))

    @classmethod
    def from_rcv1(cls, path: PathLike) -> Taxonomy:
        """The topics of RCV1 from a file of theirs; see :func:`sublearn.io.read_rcv1`."""
        return cls._from_file(path, read_rcv1)

    @classmethod
    def from_hmc(cls, path: PathLike) -> Taxonomy:
        """The taxonomy of an ARFF file with a hierarchical class."""
        return cls._from_file(path, lambda path: load_hmc(path).taxonomy)

    @classmethod
    def from_skos(cls, path: PathLike) -> Taxonomy:
        """Concepts of a SKOS vocabulary in Turtle; needs the extra ``skos``."""
        return cls._from_file(path, read_skos)

    @classmethod
    def _from_file(cls, path: PathLike, read: Callable[[PathLike], NamedEdges]) -> Taxonomy:
        edges = read(path)
        with reading(path):
            return cls.from_edges(edges)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Taxonomy:
        """A taxonomy of a directed graph of networkx with edges from parents to children."""
        if not hasattr(graph, "is_directed"):
            raise ValueError(f"Taxonomy.graph must be a graph of networkx, got {show(graph)}")
        if not graph.is_directed():
            raise ValueError("Taxonomy.graph must be directed, got an undirected one")
        return cls.from_edges(list(graph.edges()), list(graph.nodes))

    @classmethod
    def flat(cls, names: Sequence[Hashable]) -> Taxonomy:
        """A taxonomy without hierarchy: every label is a root."""
        return cls([-1] * len(names), names)

    def to_networkx(self) -> networkx.DiGraph:
        """A directed graph of networkx with edges from parents to children."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names.tolist())
        graph.add_edges_from(self.edges())
        return graph

    # --- what it looks like --------------------------------------------------------------------

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.indptr) - 1

    @property
    def is_forest(self) -> bool:
        """Whether no label has two parents."""
        return bool(self._graph.is_forest)

    @cached_property
    def parent_matrix(self) -> sp.csr_matrix:
        """Boolean matrix with a row of parents for each label."""
        entries = (np.ones(len(self.indices), dtype=bool), self.indices, self.indptr)
        return sp.csr_matrix(entries, shape=(self.n_labels, self.n_labels))

    @cached_property
    def child_matrix(self) -> sp.csr_matrix:
        """Boolean matrix with a row of children for each label."""
        return self.parent_matrix.T.tocsr()

    @cached_property
    def ancestor_matrix(self) -> sp.csr_matrix:
        """Boolean matrix with a row of ancestors for each label, itself among them."""
        step = self.parent_matrix
        reached = sp.identity(self.n_labels, dtype=bool, format="csr")
        frontier = reached
        while frontier.nnz:
            frontier = (frontier @ step).astype(bool)
            reached = (reached + frontier).astype(bool)
        reached.sort_indices()
        return reached

    @cached_property
    def roots(self) -> np.ndarray:
        """Positions of labels without parents."""
        return np.flatnonzero(np.diff(self.indptr) == 0)

    @cached_property
    def leaves(self) -> np.ndarray:
        """Positions of labels without children."""
        return np.setdiff1d(np.arange(self.n_labels), self.indices)

    @cached_property
    def levels(self) -> np.ndarray:
        """0 for roots, else one more than the lowest parent has."""
        found = find_levels(self.indptr, self.indices, most=self.n_labels)
        return cast("np.ndarray", found)  # there is no cycle

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {name: i for i, name in enumerate(self.names.tolist())}

    def position(self, name: Hashable) -> int:
        """Position of a label, by its name."""
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            raise ValueError(f"Taxonomy has no label {self.show_unknown(name)}") from None

    def show_unknown(self, name: object) -> str:
        """A name that is no label, and the label that may have been meant."""
        if not isinstance(name, str) or self.n_labels > _MOST_COMPARED:
            return show(name)
        labels = [label for label in self.names.tolist() if isinstance(label, str)]
        near = difflib.get_close_matches(name, labels, n=1, cutoff=0.75)
        return f"{show(name)} (is {show(near[0])} meant?)" if near else show(name)

    def _parents(self, t: int) -> np.ndarray:
        return self.indices[self.indptr[t] : self.indptr[t + 1]]

    def _children(self, t: int) -> np.ndarray:
        children = self.child_matrix
        return np.sort(children.indices[children.indptr[t] : children.indptr[t + 1]])

    def _row(self, matrix: sp.csr_matrix, name: Hashable) -> list[Hashable]:
        t = self.position(name)
        found = np.sort(matrix.indices[matrix.indptr[t] : matrix.indptr[t + 1]])
        return list(self.names[found[found != t]].tolist())

    def parents(self, name: Hashable) -> list[Hashable]:
        """Names of a label's parents."""
        return self._row(self.parent_matrix, name)

    def children(self, name: Hashable) -> list[Hashable]:
        """Names of a label's children."""
        return self._row(self.child_matrix, name)

    def ancestors(self, name: Hashable) -> list[Hashable]:
        """Names of all labels above one, in the order of positions."""
        return self._row(self.ancestor_matrix, name)

    def descendants(self, name: Hashable) -> list[Hashable]:
        """Names of all labels below one, in the order of positions."""
        return self._row(self.ancestor_matrix.T.tocsr(), name)

    @property
    def edge_positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the parents and of the children of all edges."""
        return self.indices, np.repeat(np.arange(self.n_labels), np.diff(self.indptr))

    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """Pairs (parent, child) of names."""
        parents, children = (self.names[at].tolist() for at in self.edge_positions)
        return list(zip(parents, children, strict=True))

    def __len__(self) -> int:
        return self.n_labels

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and self.names.tolist() == other.names.tolist()
        )

    def __getstate__(self) -> State:
        return {"indptr": self.indptr, "indices": self.indices, "names": self.names}

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(state)
        self._graph = _core.LabelGraph(self.indptr, self.indices)

    def __repr__(self) -> str:
        kind = "forest" if self.is_forest else "graph"
        return (
            f"Taxonomy({kind} of {self.n_labels} labels, {len(self.roots)} roots, "
            f"{len(self.leaves)} leaves, {int(self.levels.max()) + 1} levels)"
        )

    # --- labels of samples ---------------------------------------------------------------------

    def encode(self, y: LabelsLike, *, closed: bool = True, argument: str = "y") -> sp.csr_matrix:
        """Labels of samples as a boolean matrix with a column for each label of the taxonomy.

        Parameters
        ----------
        y : array-like, sparse matrix or list of label lists
            Names, one per sample (1-D) or a list of them; an array of paths, a row for each sample;
            or an indicator matrix with the columns of the taxonomy, of which a data frame may have
            some, named, in any order.
        closed : bool, default=True
            Whether to add the ancestors of each label.
        argument : str, default="y"
            What error messages call `y`.

        Returns
        -------
        csr_matrix of shape (n_samples, n_labels)
        """
        y = self.arrange(y, argument)
        encoded = encode_labels(y, count_rows(y, argument), argument=argument, for_fit=False)
        found = encoded.to_csr(self.columns_of(encoded, argument), self.n_labels)
        return self.close(found) if closed else found

    def columns_of(self, encoded: EncodedLabels, argument: str = "y") -> np.ndarray:
        """Positions of the classes of encoded labels; a label that is none is refused."""
        if encoded.kind.is_indicator:
            if encoded.n_classes != self.n_labels:
                raise ValueError(
                    f"{argument} must have a column for each of the {self.n_labels} labels of the "
                    f"taxonomy, got {encoded.n_classes}"
                )
            return np.arange(self.n_labels)
        names = encoded.classes.tolist()
        unknown = next((name for name in names if name not in self._positions), None)
        if unknown is not None:
            shown = self.show_unknown(unknown)
            raise ValueError(f"{argument} must hold labels of the taxonomy, got {shown}")
        return np.array([self._positions[name] for name in names], dtype=np.int64)

    def arrange(self, y: LabelsLike, argument: str = "y") -> LabelsLike:
        """Frames of indicators and arrays of paths, in the forms that all readers of labels know.

        A frame of indicators with named columns becomes an array with those of the taxonomy:
        names decide, not places; the columns may be some of the labels, in any order. An array
        of paths becomes the label at the end of each. All else is returned as it is.
        """
        paths = as_path_array(y)
        if paths is not None:
            return ends_of_paths(self, paths, argument)
        names = list(getattr(y, "columns", ()))
        is_named = any(name in self._positions for name in names)
        could_be = {type(name) for name in names} == {str} and self.names.dtype.kind == "U"
        if len(names) < 2 or not (is_named or could_be):
            return y
        unknown = [name for name in names if name not in self._positions]
        if unknown:
            shown = self.show_unknown(unknown[0])
            raise ValueError(f"{argument} must have labels of the taxonomy as columns, got {shown}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{argument} must have a column once, got {show(twice)} twice")
        values = cast("pd.DataFrame", y).to_numpy()
        arranged = np.zeros((len(values), self.n_labels), dtype=values.dtype)
        arranged[:, [self._positions[name] for name in names]] = values
        return arranged

    def close(self, Y: MatrixLike) -> sp.csr_matrix:
        """An indicator matrix with the ancestors of each label added."""
        closed = (self._indicators(Y) @ self.ancestor_matrix).astype(bool)
        closed.sort_indices()
        return closed

    def is_consistent(self, Y: MatrixLike) -> bool:
        """Whether all ancestors of each label in an indicator matrix are there as well."""
        Y = self._indicators(Y)
        Y.eliminate_zeros()
        return bool(self.close(Y).nnz == Y.nnz)

    def _indicators(self, Y: MatrixLike) -> sp.csr_matrix:
        found = check_sparse(Y, "Y") if sp.issparse(Y) else np.asarray(Y)
        if found.ndim != 2 or found.shape[1] != self.n_labels:
            raise ValueError(
                f"Y must be an indicator matrix with {self.n_labels} columns, one for each label, "
                f"got shape {found.shape}"
            )
        return sp.csr_matrix(found).astype(bool)

    # --- pictures ------------------------------------------------------------------------------

    def draw(
        self, counts: _Numbers = None, scores: _Numbers = None, *, max_lines: int | None = None
    ) -> str:
        """The taxonomy as text, a line for each label.

        Parameters
        ----------
        counts, scores : array-like of shape (n_labels,), optional
            Numbers to show behind names.
        max_lines : int, optional
            Lines after which it ends.
        """
        check_argument("Taxonomy.draw.max_lines", max_lines, OrNone(NonNegative(int)))
        of_labels = self._per_label(counts, "counts"), self._per_label(scores, "scores")
        return draw_text(self, *of_labels, max_lines)

    def plot(
        self, counts: _Numbers = None, scores: _Numbers = None, *, ax: AxesLike = None
    ) -> TaxonomyDisplay:
        """Draw the taxonomy, roots on the left; needs matplotlib.

        Parameters
        ----------
        counts, scores : array-like of shape (n_labels,), optional
            Sizes and colours of the labels.
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        TaxonomyDisplay
        """
        sizes = self._per_label(counts, "counts")
        if sizes is not None and not (sizes >= 0).all():
            raise ValueError(f"counts must not be negative, got {show(sizes.min())}")
        return plot_taxonomy(self, sizes, self._per_label(scores, "scores"), ax)

    def _per_label(self, numbers: _Numbers, what: str) -> np.ndarray | None:
        if numbers is None:
            return None
        found = np.asarray(numbers)
        if found.shape != (self.n_labels,) or found.dtype.kind not in "biuf":
            got = f"shape {found.shape}" if found.dtype.kind in "biuf" else show(numbers)
            raise ValueError(
                f"{what} must have one number for each of the {self.n_labels} labels, got {got}"
            )
        return found


def find_levels(indptr: np.ndarray, parents: np.ndarray, most: int) -> np.ndarray | None:
    """Level of each label, one more than that of its lowest parent; None if above `most`."""
    levels = np.zeros(len(indptr) - 1, dtype=np.int64)
    children = np.repeat(np.arange(len(levels)), np.diff(indptr))
    for _ in range(most):
        before = levels.copy()
        np.maximum.at(levels, children, before[parents] + 1)
        if np.array_equal(levels, before):
            return levels
    return None
