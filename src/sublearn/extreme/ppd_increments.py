"""Labels that come to a fitted model or leave it, and those that two fits have in common."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from sublearn.trace import Solution
from sublearn.validation import EncodedLabels, LabelKind
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Fitted",
    "in_two",
    "join",
    "known_labels",
    "labels_to_keep",
    "matched",
    "order_of",
    "padded",
    "refuse_another_form",
    "refuse_other_labels",
    "unknown_labels",
]


def refuse_another_form(
    kind: LabelKind, classes: np.ndarray, labels: EncodedLabels, subject: str
) -> None:
    """Labels added later come as those of the first fit: names or columns, one or several."""
    if _form(labels.kind) != _form(kind):
        raise ValueError(f"{subject} must be {_form(kind)} as in fit, got {_form(labels.kind)}")
    ours, theirs = _type_of(classes), _type_of(labels.classes)
    if labels.n_classes and ours != theirs:
        raise ValueError(f"{subject} must hold labels of type {ours} as in fit, got {theirs}")


def _form(kind: LabelKind) -> str:
    if kind.is_indicator:
        return "an indicator matrix"
    return "a list of label lists" if kind.is_multilabel else "one label per sample"


def unknown_labels(classes: np.ndarray, labels: EncodedLabels, subject: str) -> EncodedLabels:
    """The labels that are not in `classes`."""
    if labels.kind.is_indicator and labels.n_classes < len(classes):
        raise ValueError(
            f"{subject} must have a column for each of {len(classes)} known labels, "
            f"got {labels.n_classes} columns"
        )
    known = set(classes.tolist())
    new = [k for k, label in enumerate(labels.classes.tolist()) if label not in known]
    rows = [labels.rows[labels.indptr[k] : labels.indptr[k + 1]] for k in new]
    return EncodedLabels(
        indptr=np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64),
        rows=np.concatenate(rows) if rows else labels.rows[:0],
        classes=labels.classes[new],
        kind=LabelKind.LABEL_LISTS if not labels.kind.is_indicator else labels.kind,
        n_samples=labels.n_samples,
    )


def known_labels(kind: LabelKind, classes: np.ndarray, labels: EncodedLabels) -> EncodedLabels:
    """Who carries each of `classes`; other labels are left out."""
    place = {label: k for k, label in enumerate(labels.classes.tolist())}
    at = [place.get(label, -1) for label in classes.tolist()]
    rows = [labels.rows[labels.indptr[k] : labels.indptr[k + 1]] if k >= 0 else labels.rows[:0]
            for k in at]  # fmt: skip
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return EncodedLabels(ends, np.concatenate(rows), classes, kind, labels.n_samples)


def labels_to_keep(
    kind: LabelKind, classes: np.ndarray, unwanted: Iterable[Hashable], subject: str
) -> np.ndarray:
    """Which of `classes` stay; refuses unknown labels, and to leave too few."""
    if kind.is_indicator:
        raise ValueError(
            f"{subject} needs labels with names, "
            "got a model fitted to an indicator matrix, whose labels are its columns"
        )
    known = classes.tolist()
    names = {label.item() if isinstance(label, np.generic) else label for label in unwanted}
    unknown = names - set(known)
    if unknown:
        raise ValueError(
            f"{subject}: labels must be known ones, got {show(min(unknown, key=repr))}"
        )
    keep = np.array([label not in names for label in known])
    least = 1 if kind.is_multilabel else 2
    if keep.sum() < least:
        raise ValueError(
            f"{subject} must leave at least {least} label{'s' * (least > 1)}, "
            f"got {len(names)} of {len(known)} to remove"
        )
    return keep


class Fitted(NamedTuple):
    """What a fit found, as far as two of them can be joined."""

    kind: LabelKind
    classes: np.ndarray
    weights: sp.csr_matrix  # (n_features, n_labels)
    bias: np.ndarray
    solution: Solution


def join(old: Fitted, new: Fitted) -> Fitted:
    """Both sets of labels, at the places that keep `classes` in order."""
    order = order_of(old.classes, new.classes)
    joined = sp.hstack([old.weights, new.weights], format="csr")[:, order]
    joined.sort_indices()
    classes, bias = (
        np.concatenate(parts)[order] for parts in ((old.classes, new.classes), (old.bias, new.bias))
    )
    return Fitted(old.kind, classes, joined, bias, _joint(old.solution, new.solution))


def in_two(fitted: Fitted) -> Fitted:
    """Two scores where one of two classes and its negative did; other models as they are."""
    if fitted.kind is not LabelKind.BINARY:
        return fitted
    weights = sp.hstack([-fitted.weights, fitted.weights], "csr")
    bias = np.concatenate([-fitted.bias, fitted.bias])
    solution = replace(fitted.solution, objective=2 * fitted.solution.objective)
    return Fitted(LabelKind.MULTICLASS, fitted.classes, weights, bias, solution)


def _joint(old: Solution, new: Solution) -> Solution:
    """Of both sets of labels; the trace tells of the new ones."""
    objective, certificate = old.objective + new.objective, float("inf")
    if np.isfinite([old.certificate, new.certificate]).all():
        gap = old.certificate * old.objective + new.certificate * new.objective
        certificate = gap / objective if objective != 0 else 0.0
    n_iter = max(old.n_iter, new.n_iter)
    return replace(new, objective=objective, certificate=certificate, n_iter=n_iter)


# --- labels by name ----------------------------------------------------------------------------


def padded(known: np.ndarray, labels: EncodedLabels) -> EncodedLabels:
    """Among known labels, which no sample carries here, in the order of the joined model."""
    order = order_of(known, labels.classes)
    counts = np.concatenate([np.zeros(len(known), dtype=np.int64), labels.counts()])[order]
    return replace(
        labels,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        classes=np.concatenate([known, labels.classes])[order],
    )


def matched(
    previous: tuple[np.ndarray, sp.csr_matrix, np.ndarray], labels: EncodedLabels, n_features: int
) -> tuple[sp.csr_matrix, np.ndarray] | None:
    """Earlier weights for the labels of this fit; no weights where a label is new."""
    classes, weights, bias = previous
    if weights.shape[1] != n_features:
        return None
    place = {label: k for k, label in enumerate(classes.tolist())}
    at = np.array([place.get(label, -1) for label in labels.classes.tolist()], dtype=np.int64)
    known = at >= 0
    pick = sp.csr_matrix(
        (np.ones(known.sum(), weights.dtype), (np.flatnonzero(known), at[known])),
        shape=(len(at), len(classes)),
    )
    start_bias = np.full(len(at), -1, dtype=bias.dtype)
    start_bias[known] = bias[at[known]]
    start = (pick @ weights.tocsr()).tocsr()
    start.sort_indices()
    return start, start_bias


def refuse_other_labels(found: np.ndarray, allowed: ArrayLike, subject: str) -> None:
    """Raise if a label is not among those allowed."""
    strangers = set(found.tolist()) - set(np.asarray(allowed).tolist())
    if strangers:
        raise ValueError(
            f"{subject} must hold labels of classes only, got {show(min(strangers, key=repr))}"
        )


def order_of(known: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Puts both, one after the other, in order; labels that have none stand as they came."""
    classes = np.concatenate([known, new])
    try:
        return np.argsort(classes, kind="stable")
    except TypeError:
        return np.arange(len(classes))


def _type_of(classes: np.ndarray) -> str:
    """Labels of one type are compared with each other; numbers of all types are."""
    first = classes[:1].tolist()
    if first and isinstance(first[0], numbers.Real) and not isinstance(first[0], bool):
        return "number"
    return type(first[0]).__name__ if first else "none"
