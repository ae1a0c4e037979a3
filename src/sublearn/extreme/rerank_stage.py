"""The first stage of a second one: what lists labels for texts, and what is known of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn.extreme.rerank_features import features, support
from sublearn.extreme.rerank_sources import Candidates, Listed, Neighbours, Titles
from sublearn.extreme.text_tagger import TextTagger
from sublearn.metrics.names import find_positions
from sublearn.validation import EncodedLabels, LabelKind, encode_labels
from sublearn.validation.values import show

__all__ = ["FirstStage", "shares_together", "used_labels", "with_named"]


@dataclass(frozen=True, eq=False)
class FirstStage:
    """What lists labels for texts, and what is known of the labels."""

    classes: np.ndarray
    taggers: list[TextTagger]
    counts: np.ndarray
    together: sp.csr_matrix
    neighbours: Neighbours | None
    titles: Titles | None

    def look(
        self, texts: list[str], size: int, n_near: int, n_threads: int
    ) -> tuple[Candidates, list[str], np.ndarray]:
        """Candidates, and their features with names."""
        lists = {}
        X = self.taggers[0].transform(texts)
        for i, tagger in enumerate(self.taggers):
            found, scores = tagger.predict_top_k(texts, size)
            places = find_positions(self.classes, found, argument="texts")
            lists[f"tagger {i + 1}" if i else "tagger"] = Listed(places, scores)
        if self.neighbours is not None:
            lists["neighbours"] = self.neighbours.listed(X, n_near, size, n_threads)
        rows = None if self.titles is None else self.titles.rows(texts)
        if self.titles is not None:
            lists["title"] = self.titles.listed(rows, size, n_threads)
        candidates = Candidates.union(list(lists.values()), len(self.classes))
        scored = {n: candidates.scores_by(one) for n, one in lists.items() if n != "title"}
        scored["support"] = candidates.values_in(support(lists["tagger"], self.together))
        if self.titles is not None:
            cosines, shares = self.titles.overlaps(rows, candidates)
            scored |= {"title": cosines, "title in text": shares}
        return candidates, *features(candidates, scored, self.counts)


def with_named(
    labels: EncodedLabels, names: Mapping[Any, str] | None
) -> tuple[EncodedLabels, list[str] | None]:
    """Labels with those that are only named after them, and the titles of all, if there are any."""
    if names is None:
        is_text = all(isinstance(label, str) for label in labels.classes.tolist())
        return labels, labels.classes.tolist() if is_text else None
    if not isinstance(names, Mapping) or not all(isinstance(n, str) for n in names.values()):
        raise ValueError(
            "LabelReranker.fit.label_names must be a mapping from labels to strings, "
            f"got {show(names)}"
        )
    if labels.kind is LabelKind.LABEL_LISTS:
        labels = _extended(labels, names)
    titles = [names.get(label, "") for label in labels.classes.tolist()]
    return labels, titles if any(titles) else None


def _extended(labels: EncodedLabels, names: Mapping[Any, str]) -> EncodedLabels:
    """With the labels that are only named, after the others."""
    own = set(labels.classes.tolist())
    more = [label for label in names if label not in own]
    if not more:
        return labels
    further = encode_labels([[label] for label in more], len(more)).classes
    kinds = further.dtype.kind, labels.classes.dtype.kind
    if (kinds[0] in "US") != (kinds[1] in "US") or (kinds[0] == "O") != (kinds[1] == "O"):
        raise ValueError(
            "LabelReranker.fit.label_names must have labels of the type of y "
            f"({labels.classes.dtype}), got {show(more[0])}"
        )
    ends = np.full(len(further), labels.indptr[-1])
    classes = np.concatenate([labels.classes, further])
    return replace(labels, indptr=np.append(labels.indptr, ends), classes=classes)


def used_labels(labels: EncodedLabels) -> EncodedLabels:
    """The labels that some text carries, as lists: all that a tagger can learn."""
    is_used = labels.counts() > 0
    ends = np.append(0, np.cumsum(labels.counts()[is_used]))
    return EncodedLabels(
        indptr=ends.astype(np.int64),
        rows=labels.rows,
        classes=labels.classes[is_used],
        kind=LabelKind.LABEL_LISTS,
        n_samples=labels.n_samples,
    )


def shares_together(indicator: sp.csr_matrix, counts: np.ndarray) -> sp.csr_matrix:
    """For labels a and b the share of the texts with a that carry b too."""
    Y = indicator.astype(np.float64)
    both = sp.csr_matrix(Y.T @ Y)
    both.setdiag(0)
    both.eliminate_zeros()
    shares = sp.csr_matrix(sp.diags(1 / np.maximum(counts, 1)) @ both, dtype=np.float32)
    shares.sort_indices()
    return shares
