"""What the passes of a PD-Sparse fit reported, as certificate, status and trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from sublearn.trace import Solution, Status, Trace

__all__ = ["best_held_out", "ended_early", "summarise"]


def summarise(report: dict[str, Any], tol: float) -> Solution:
    """The certificate is the relative gap at the weights returned, if it is known."""
    objective, certificate = float("nan"), float("inf")  # a pass was cut short
    if report["is_certified"]:
        objective = float(report["final_primal"])
        certificate = _relative_gap(objective, float(report["final_dual"]))
    status = Status.CONVERGED
    if report["was_stopped"] and not certificate <= tol:
        status, certificate = Status.STOPPED, float("inf")
    elif not certificate <= tol:
        status = Status.MAX_ITER
    return Solution(
        status=status,
        objective=objective,
        certificate=certificate,
        n_iter=len(report["seconds"]),
        trace=_trace(report),
    )


def ended_early(report: dict[str, Any], max_iter: int) -> bool:
    """Whether held-out rows ended the fit before its limit: then nothing is amiss."""
    n_refit = int(report["is_refit"].sum())
    n_first = len(report["is_refit"]) - n_refit
    n_longest = max(n_first, n_refit)
    return report["has_held_out"] and not report["was_stopped"] and n_longest < max_iter


def best_held_out(report: dict[str, Any]) -> float | None:
    """Highest precision on the held-out rows, None if there were none."""
    return float(report["held_out"].max(initial=0.0)) if report["has_held_out"] else None


def _relative_gap(objective: Any, dual: Any) -> Any:
    gap = np.asarray(objective) - dual
    relative = np.divide(gap, objective, out=np.zeros_like(gap), where=np.asarray(objective) > 0)
    return relative if relative.ndim else float(relative)


def _trace(report: dict[str, Any]) -> Trace:
    columns = {
        "seconds": report["seconds"],
        "objective": report["primal"],
        "dual": report["dual"],
        "certificate": _relative_gap(report["primal"], report["dual"]),
        "nnz_primal": report["nnz_primal"],
        "nnz_dual": report["nnz_dual"],
        "active": report["active"],
        "work": report["work"],
        "evaluated": report["is_evaluated"],
        "n_candidates": report["n_candidates"],
        "n_partitions": report["n_partitions"],
        "refit": report["is_refit"],
    }
    if report["has_held_out"]:
        columns["held_out"] = report["held_out"]
    return Trace(columns)
