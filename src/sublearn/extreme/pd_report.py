"""What the passes of a PD-Sparse fit reported, as certificate, status and trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn.extreme.linear_labels import LinearLabels
from sublearn.trace import Solution, Status, Trace
from sublearn.validation import EncodedLabels, LabelKind

__all__ = [
    "PDReport",
    "best_held_out",
    "ended_early",
    "objective_of",
    "summarise",
    "with_objective",
]

_CHUNK = 2**22  # scores at a time
_COLUMNS = (
    "seconds", "objective", "dual", "certificate", "nnz_primal", "nnz_dual", "active", "work",
    "evaluated", "n_candidates", "n_partitions", "refit", "k_A", "k_W",
)  # fmt: skip
#: What the core tells of a fit: columns with a row for each pass, and figures of the whole.
PDReport: TypeAlias = dict[str, Any]


def summarise(report: PDReport) -> Solution:
    """The certificate is the relative gap at the weights returned, if it is known."""
    objective, certificate = float("nan"), float("inf")  # a pass was cut short
    if report["is_certified"]:
        objective = float(report["final_primal"])
        certificate = float(_relative_gap(objective, float(report["final_dual"])))
    status = Status.of(report["status"])
    if status is Status.STOPPED:
        certificate = float("inf")
    return Solution(
        status=status,
        objective=objective,
        certificate=certificate,
        n_iter=len(report["seconds"]),
        trace=_trace(report),
    )


def objective_of(
    model: LinearLabels,
    train: tuple[sp.csr_matrix, EncodedLabels],
    caps: np.ndarray,
    l1: float,
    n_threads: int,
) -> float:
    """Of any weights: all scores of all samples, some samples at a time."""
    X, labels = train
    weights, bias, halves = model.weights, model.bias, 1.0
    if labels.kind is LabelKind.BINARY:  # one column stands for two, of half its size each
        halves = 0.5
    squares = float((weights.data.astype(np.float64) ** 2).sum() + (bias.astype(float) ** 2).sum())
    value = 0.5 * halves * squares + l1 * float(np.abs(weights.data.astype(np.float64)).sum())
    indicator = labels.to_csr()
    step = max(1, _CHUNK // labels.n_classes)
    for at in range(0, X.shape[0], step):
        rows = slice(at, at + step)
        scores = model.scores(X[rows], n_threads).astype(np.float64)
        if labels.kind is LabelKind.BINARY:
            scores = np.hstack([-0.5 * scores, 0.5 * scores])
        is_theirs = indicator[rows].toarray() > 0
        lowest = np.where(is_theirs, scores, np.inf).min(axis=1)
        highest = np.where(is_theirs, -np.inf, scores).max(axis=1)
        losses = np.maximum(1.0 + highest - lowest, 0.0)  # none where a sample has no or all labels
        value += float(caps[rows] @ losses)
    return value


def with_objective(solution: Solution, objective: float, report: PDReport) -> Solution:
    """A solution for other weights: the dual value bounds their objective as well."""
    if not np.isfinite(solution.certificate):
        return replace(solution, objective=objective)
    certificate = float(_relative_gap(objective, float(report["final_dual"])))
    return replace(solution, objective=objective, certificate=certificate)


def ended_early(report: PDReport, max_iter: int) -> bool:
    """Whether held-out rows ended the fit before its limit: then nothing is amiss."""
    n_refit = int(report["is_refit"].sum())
    n_first = len(report["is_refit"]) - n_refit
    n_longest = max(n_first, n_refit)
    was_stopped = Status.of(report["status"]) is Status.STOPPED
    return report["has_held_out"] and not was_stopped and n_longest < max_iter


def best_held_out(report: PDReport) -> float | None:
    """Highest precision on the held-out rows, None if there were none."""
    return float(report["held_out"].max(initial=0.0)) if report["has_held_out"] else None


def _relative_gap(objective: np.ndarray | float, dual: np.ndarray | float) -> np.ndarray:
    gap = np.asarray(objective) - dual
    return np.divide(gap, objective, out=np.zeros_like(gap), where=np.asarray(objective) > 0)


def _trace(report: PDReport) -> Trace:
    gap = _relative_gap(report["primal"], report["dual"])
    named = report | {"objective": report["primal"], "certificate": gap}
    named |= {"evaluated": report["is_evaluated"], "refit": report["is_refit"]}
    n_rows, n_features = report["shape"]
    named |= {"k_A": report["nnz_dual"] / n_rows, "k_W": report["nnz_primal"] / n_features}
    names = _COLUMNS + ("held_out",) * report["has_held_out"]
    return Trace({name: named[name] for name in names})
