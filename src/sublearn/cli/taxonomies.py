"""Taxonomies on the command line: where one comes from, and labels as its estimators take them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sublearn.typing import LabelsLike, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.hierarchy import Taxonomy
    from sublearn.io import Dataset

__all__ = ["HIERARCHICAL", "choose_taxonomy", "hierarchical_scores", "labels_in"]

#: Methods that learn labels of a taxonomy; the first has one label a row.
HIERARCHICAL = ("hiclass", "hml")


def choose_taxonomy(
    method: str, file: Path | None, separator: str | None, data: Path, dataset: Dataset
) -> Taxonomy | None:
    """The taxonomy of `--taxonomy` or `--label-paths`, or that of an ARFF file with one."""
    from sublearn.hierarchy import Taxonomy
    from sublearn.io.files import plain_name

    if file is not None and separator is not None:
        raise typer.BadParameter("must not be given with --taxonomy", param_hint="--label-paths")
    if method not in HIERARCHICAL:
        for option, value in (("--taxonomy", file), ("--label-paths", separator)):
            if value is not None:
                raise typer.BadParameter(
                    f"is for {' and '.join(HIERARCHICAL)}, got {method}", param_hint=option
                )
        return None
    if separator is not None:
        names = {name for row in _lists(dataset) for name in row}
        return Taxonomy.from_paths(sorted(map(str, names)), separator)
    if file is None:
        if not plain_name(data).endswith(".arff"):
            raise typer.BadParameter(
                f"must name the taxonomy's file for {method}, got none", param_hint="--taxonomy"
            )
        return Taxonomy.from_hmc(data)
    return _read_taxonomy(file, is_of_names=dataset.label_names is not None)


def _read_taxonomy(file: Path, *, is_of_names: bool) -> Taxonomy:
    from sublearn.hierarchy import Taxonomy
    from sublearn.io.files import plain_name
    from sublearn.io.taxonomies import read_rcv1

    name = plain_name(file)
    if name.endswith(".ttl"):
        return Taxonomy.from_skos(file)
    if name.endswith(".arff"):
        return Taxonomy.from_hmc(file)
    found = read_rcv1(file)
    if is_of_names:
        return Taxonomy.from_edges(found)
    try:
        names = [int(label) for label in found.names]
    except ValueError:
        raise ValueError(
            f"{file}: labels must be numbers as those of DATA are, got names"
        ) from None
    edges = [(int(parent), int(child)) for parent, child in found.edges]
    return Taxonomy.from_edges(edges, names)


def _lists(dataset: Dataset) -> list[list[Hashable]]:
    """Labels of each row: names if the file has them, else numbers."""
    import numpy as np

    if isinstance(dataset.Y, np.ndarray):
        return [[label] for label in dataset.Y.tolist()]
    names = dataset.label_names
    labels = dataset.Y.indices if names is None else names[dataset.Y.indices]
    return [labels[a:b].tolist() for a, b in itertools.pairwise(dataset.Y.indptr.tolist())]


def labels_in(
    taxonomy: Taxonomy, dataset: Dataset, *, is_single: bool
) -> list[Hashable] | list[list[Hashable]]:
    """Labels as lists; or of each row the end of the one path that its labels are."""
    lists = _lists(dataset)
    if not is_single:
        return lists
    closed = taxonomy.encode(lists, argument="the labels of DATA")
    ends = []
    for row, own in enumerate(itertools.pairwise(closed.indptr.tolist())):
        path = closed.indices[slice(*own)]
        levels = taxonomy.levels[path]
        if len(path) == 0 or len(path) != levels.max() + 1:
            raise ValueError(
                f"the labels of DATA must be one path in each row for hiclass, got "
                f"{lists[row][:5]} in row {row}; hml takes several"
            )
        ends.append(taxonomy.names.tolist()[path[levels.argmax()]])
    return ends


def hierarchical_scores(model: BaseEstimator, X: Matrix, truth: LabelsLike) -> dict[str, float]:
    """Precision, recall and F1 with ancestors included, and micro F1 of each level."""
    import scipy.sparse as sp

    from sublearn import metrics

    own, found = model.taxonomy_, model.predict(X)
    if isinstance(truth, sp.csr_matrix):  # numbers of labels, of which the taxonomy may have more
        ends = itertools.pairwise(truth.indptr.tolist())
        truth = [truth.indices[a:b].tolist() for a, b in ends]
    scores = {
        "precision": metrics.hierarchical_precision(truth, found, own),
        "recall": metrics.hierarchical_recall(truth, found, own),
        "F1": metrics.hierarchical_f1(truth, found, own),
    }
    levels = metrics.f1_by_level(truth, found, own)
    return scores | {f"F1 of level {k}": float(v) for k, v in enumerate(levels.micro)}
