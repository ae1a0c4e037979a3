"""Weights of features by label: what a label looks at, and why it got its score."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from sublearn.kinds.base import Refused, label_weights, offers
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.extreme.explanation import Explanation, Names

__all__ = [
    "bias_at",
    "describe_labels",
    "explain_by_weights",
    "find_label",
    "spread_of",
    "top_weights",
    "weights_at",
]


def weights_at(coef: sp.csr_matrix, n_labels: int, row: int) -> sp.csr_matrix:
    """Weights of a label; two classes share one row, which speaks for the second."""
    if coef.shape[0] < n_labels:
        return coef if row else -coef
    return coef[row]


def bias_at(model: BaseEstimator, n_labels: int, row: int) -> float:
    """Bias of a label."""
    bias = np.atleast_1d(model.intercept_)
    if len(bias) < n_labels:
        return float(bias[0] if row else -bias[0])
    return float(bias[row])


def top_weights(names: np.ndarray | None, row: sp.csr_matrix, top: int) -> list[tuple[str, float]]:
    """The largest weights of a row, by feature."""
    largest = np.argsort(-np.abs(row.data), kind="stable")[:top]
    columns, values = row.indices[largest].tolist(), row.data[largest].tolist()
    return [
        (str(j) if names is None else str(names[j]), value)
        for j, value in zip(columns, values, strict=True)
    ]


def find_label(names: np.ndarray, label: str, option: str = "--label") -> int:
    """Position of a label, by its name as text."""
    texts = [str(name) for name in names.tolist()]
    if label in texts:
        return texts.index(label)
    import difflib

    near = difflib.get_close_matches(label, texts, 3) or texts[:3]
    raise Refused(
        option,
        f"must be one of the model's {len(texts)} labels ({', '.join(near)}, ...), got {label}",
    )


def explain_by_weights(
    model: BaseEstimator,
    x: Matrix,
    labels: np.ndarray,
    row: int,
    k: int,
    names: Names | None,
) -> Explanation:
    """Value times weight of each feature and the bias; with a probability where there is one."""
    from sublearn.extreme.explanation import explain_score

    coef = label_weights(model)
    assert coef is not None
    own = sp.csr_matrix(weights_at(coef, len(labels), row))
    bias = bias_at(model, len(labels), row)
    found = explain_score(sp.csr_matrix(x), own, bias, labels[row], k, names)
    if not offers(model, "predict_proba"):
        return found
    return dataclasses.replace(found, probability=float(model.predict_proba(x)[0, row]))


def describe_labels(
    model: BaseEstimator,
    labels: np.ndarray,
    wanted: list[int],
    counts: np.ndarray | None,
    names: np.ndarray | None,
    top: int,
) -> list[JsonObject]:
    """For each wanted label: rows that carry it, number of weights, bias, strongest features."""
    coef = label_weights(model)
    assert coef is not None
    found = []
    for row in wanted:
        own = weights_at(coef, len(labels), row)
        found.append(
            {
                "label": str(labels[row]),
                "positives": None if counts is None else int(counts[row]),
                "weights": int(own.nnz),
                "bias": bias_at(model, len(labels), row),
                "strongest": top_weights(names, own, top),
            }
        )
    return found


def spread_of(counts: np.ndarray) -> dict[str, float]:
    """Mean, median and largest of some counts."""
    if counts.size == 0:
        return {"mean": 0.0, "median": 0.0, "max": 0}
    return {
        "mean": round(float(counts.mean()), 2),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
    }
