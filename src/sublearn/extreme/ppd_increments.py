"""Labels that come to a fitted model or leave it, while the others stay as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sublearn.extreme.label_arrays import order_of, type_of
from sublearn.trace import Solution
from sublearn.validation import EncodedLabels, LabelKind
from sublearn.validation.values import show

__all__ = ["Fitted", "join", "labels_to_keep", "refuse_another_form", "unknown_labels"]


def refuse_another_form(
    kind: LabelKind, classes: np.ndarray, labels: EncodedLabels, subject: str
) -> None:
    """Labels added later come as those of the first fit: names or columns, one or several."""
    if _form(labels.kind) != _form(kind):
        raise ValueError(f"{subject} must be {_form(kind)} as in fit, got {_form(labels.kind)}")
    ours, theirs = type_of(classes), type_of(labels.classes)
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


def labels_to_keep(
    kind: LabelKind, classes: np.ndarray, unwanted: Iterable[Any], subject: str
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
    kind, weights, bias, objective = old.kind, old.weights, old.bias, old.solution.objective
    if kind is LabelKind.BINARY:  # two scores now, where one and its negative did
        weights, bias = sp.hstack([-weights, weights], "csr"), np.concatenate([-bias, bias])
        kind, objective = LabelKind.MULTICLASS, 2 * objective
    order = order_of(old.classes, new.classes)
    joined = sp.hstack([weights, new.weights], format="csr")[:, order]
    joined.sort_indices()
    classes, bias = (
        np.concatenate(parts)[order] for parts in ((old.classes, new.classes), (bias, new.bias))
    )
    solution = _joint(replace(old.solution, objective=objective), new.solution)
    return Fitted(kind, classes, joined, bias, solution)


def _joint(old: Solution, new: Solution) -> Solution:
    """Of both sets of labels; the trace tells of the new ones."""
    objective, certificate = old.objective + new.objective, float("inf")
    if np.isfinite([old.certificate, new.certificate]).all():
        gap = old.certificate * old.objective + new.certificate * new.objective
        certificate = gap / objective if objective != 0 else 0.0
    n_iter = max(old.n_iter, new.n_iter)
    return replace(new, objective=objective, certificate=certificate, n_iter=n_iter)
