"""Where paths end: labels with rows of their own above other rows get a child to end at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sublearn.hierarchy.taxonomy import Taxonomy

__all__ = ["Ends", "inner_ends"]


def inner_ends(taxonomy: Taxonomy, positions: np.ndarray) -> np.ndarray:
    """Labels that some rows end at while others go on below, by position."""
    ends = np.unique(positions)
    closed = taxonomy.ancestor_matrix[ends]
    n_through = np.bincount(closed.indices, minlength=taxonomy.n_labels)
    return ends[n_through[ends] > 1]


@dataclass(frozen=True, eq=False)
class Ends:
    """A forest in which a path may end at inner labels: each such label has a child to end at.

    Parameters
    ----------
    taxonomy : Taxonomy
        The labels.
    stops : ndarray of int
        Inner labels at which a path may end; the child of ``stops[k]`` is label n_labels + k of
        `tree`.
    """

    taxonomy: Taxonomy
    stops: np.ndarray

    @cached_property
    def tree(self) -> Taxonomy:
        """The labels, and behind them the children to end at."""
        if not len(self.stops):
            return self.taxonomy
        own = self.taxonomy
        parents = [own._parents(t).tolist() for t in range(own.n_labels)]
        return Taxonomy([*parents, *([stop] for stop in self.stops.tolist())])

    def place(self, positions: np.ndarray) -> np.ndarray:
        """Labels of the tree at which paths to these labels end."""
        found = np.arange(self.taxonomy.n_labels)
        found[self.stops] = self.taxonomy.n_labels + np.arange(len(self.stops))
        return found[positions]

    def labels(self, places: np.ndarray) -> np.ndarray:
        """Inverse of `place`, for any label of the tree."""
        return np.append(np.arange(self.taxonomy.n_labels), self.stops)[places]

    def fold(self, through: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the tree as those of labels: what ends at a child ends at its parent."""
        n_labels = self.taxonomy.n_labels
        own = ends[:, :n_labels].copy()
        own[:, self.stops] += ends[:, n_labels:]
        return through[:, :n_labels], own
