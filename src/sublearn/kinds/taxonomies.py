"""Rows to labels in a taxonomy."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from sublearn.io import Dataset
from sublearn.io.files import plain_name
from sublearn.io.prepared import n_values
from sublearn.kinds.base import Asked, Field, Form, Lesson, Refused, fit_figures
from sublearn.kinds.judging import Judgement, quotient
from sublearn.kinds.labels import OfLabels
from sublearn.kinds.rows import OfRows
from sublearn.typing import JsonObject, LabelsLike

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.hierarchy import Taxonomy

__all__ = ["TaxonomyLabels"]


class TaxonomyLabels(OfRows, OfLabels):
    """Labels of rows, with the ancestors that each has."""

    name = "taxonomy_labels"
    gives = "labels of rows in a taxonomy"
    fit_form: ClassVar[tuple[str, ...]] = ("taxonomy", "label_paths", *OfRows.fit_form)
    main_measure = "F1"

    def labels_of(self, model: BaseEstimator) -> np.ndarray:
        """All labels of the taxonomy."""
        return model.taxonomy_.names

    def label_counts(self, model: BaseEstimator) -> np.ndarray | None:
        """Not counted: a row carries the ancestors of its labels too."""
        return None

    # --- fitting -----------------------------------------------------------------------------

    def targets(
        self, estimator: BaseEstimator, dataset: Dataset, path: Path, form: Form
    ) -> LabelsLike:
        """Labels of the taxonomy, which the estimator is given."""
        taxonomy = _choose_taxonomy(path, form, dataset)
        estimator.set_params(taxonomy=taxonomy)
        is_single = not get_tags(estimator).classifier_tags.multi_label
        return _labels_in(taxonomy, dataset, is_single=is_single)

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the number of labels, and what held-out rows said of it."""
        X = lesson.arguments[0]
        size = (lesson.n_rows, int(lesson.figures["features"]), n_values(X))
        found = fit_figures(model, size, seconds) | {"labels": len(model.classes_)}
        if vars(model).get("phi_") is not None:
            found["held_out_score"] = float(model.held_out_score_)
        return found

    # --- judging -----------------------------------------------------------------------------

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """Precision, recall and F1 with ancestors included, and micro F1 of each level."""
        own = model.taxonomy_
        truth = own.encode(_as_lists(asked.truth), argument="y_true")
        found = own.encode(model.predict(asked.items), argument="y_pred")
        counts = [_by_level(one, own) for one in (truth.multiply(found), truth, found)]
        hits, n_true, n_found = (one.sum(axis=1) for one in counts)
        measures = {
            "precision": quotient(hits, n_found),
            "recall": quotient(hits, n_true),
            "F1": quotient(2 * hits, n_true + n_found),
        }
        for level in range(counts[0].shape[1]):
            right, true, given = (one[:, level] for one in counts)
            measures[f"F1 of level {level}"] = quotient(2 * right, true + given)
        title = f"{len(asked):,} rows, percent, ancestors included"
        return Judgement(title, {"rows": len(asked)}, measures)

    # --- over HTTP ---------------------------------------------------------------------------

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Rows, and how many labels."""
        return self.label_fields() | super().question(model)

    def example(self, model: BaseEstimator) -> JsonObject:
        """As for all rows, and how many labels."""
        return super().example(model) | {"k": min(5, len(model.classes_))}


def _by_level(encoded: sp.csr_matrix, taxonomy: Taxonomy) -> np.ndarray:
    """Number of labels of each row, by level."""
    n_levels = int(taxonomy.levels.max()) + 1
    of_level = sp.csr_matrix(
        (np.ones(len(taxonomy.levels)), (np.arange(len(taxonomy.levels)), taxonomy.levels)),
        shape=(len(taxonomy.levels), n_levels),
    )
    return (sp.csr_matrix(encoded).astype(np.float64) @ of_level).toarray()


def _as_lists(truth: LabelsLike) -> LabelsLike:
    """Numbers of labels as lists: the taxonomy may have more labels than a matrix has columns."""
    if not isinstance(truth, sp.csr_matrix):
        return truth
    ends = itertools.pairwise(truth.indptr.tolist())
    return [truth.indices[a:b].tolist() for a, b in ends]


def _choose_taxonomy(path: Path, form: Form, dataset: Dataset) -> Taxonomy:
    """The taxonomy of `--taxonomy` or `--label-paths`, or that of an ARFF file with one."""
    from sublearn.hierarchy import Taxonomy

    if form.taxonomy is not None and form.label_paths is not None:
        raise Refused("--label-paths", "must not be given with --taxonomy")
    if form.label_paths is not None:
        names = {name for row in _lists(dataset) for name in row}
        return Taxonomy.from_paths(sorted(map(str, names)), form.label_paths)
    if form.taxonomy is not None:
        return _read_taxonomy(form.taxonomy, is_of_names=dataset.label_names is not None)
    if not plain_name(path).endswith(".arff"):
        raise Refused("--taxonomy", "must name the taxonomy's file, got none")
    return Taxonomy.from_hmc(path)


def _read_taxonomy(file: Path, *, is_of_names: bool) -> Taxonomy:
    from sublearn.hierarchy import Taxonomy
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
    if isinstance(dataset.Y, np.ndarray):
        return [[label] for label in dataset.Y.tolist()]
    names = dataset.label_names
    labels = dataset.Y.indices if names is None else names[dataset.Y.indices]
    return [labels[a:b].tolist() for a, b in itertools.pairwise(dataset.Y.indptr.tolist())]


def _labels_in(
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
