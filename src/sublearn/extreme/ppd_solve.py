"""A PPD-Sparse fit from problem to solution: part by part, with or without a journal."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.extreme.fit_journal import FitJournal
from sublearn.extreme.ppd_problem import (
    Chunk,
    PPDProblem,
    gather_reports,
    gather_weights,
    trace_of,
)
from sublearn.trace import Callback, Solution, Status, watch

__all__ = ["solve_parts", "summarise"]

_JOURNAL_BLOCKS = 64  # blocks of labels between two entries of a journal


def solve_parts(
    problem: PPDProblem,
    loss: str,
    C: float,
    settings: Any,
    journal: FitJournal | None,
    *,
    callback: Callback | None,
    verbose: int,
) -> tuple[sp.csr_matrix, dict[str, np.ndarray]]:
    """Weights by feature and report columns; parts that the journal has are read, not solved."""
    monitor = _core.Monitor()
    chunks: list[Chunk] = []

    def solve(part: slice) -> Chunk:
        return problem.solve(part, loss, C, settings, monitor)

    def job() -> None:
        if journal is None:
            chunks.extend(solve(part) for part in problem.parts(None))
        else:
            _solve_with_journal(problem, solve, journal, monitor, chunks)

    watch(job, monitor, n_total=len(problem.order), callback=callback, verbose=verbose,
          title="PPD-Sparse")  # fmt: skip
    if journal is None:
        by_feature = gather_weights(chunks[0], problem.n_features)
    else:
        by_feature = journal.gather_weights(chunks, (problem.n_features, problem.n_labels))
    reports = gather_reports(chunks, problem.n_labels)
    reports["was_stopped"] = np.array(monitor.stop_requested)
    return by_feature, reports


def _solve_with_journal(
    problem: PPDProblem, solve: Any, journal: FitJournal, monitor: Any, chunks: list[Chunk]
) -> None:
    seconds = 0.0  # spent on the labels so far, also by a fit that was killed
    for number, part in enumerate(problem.parts(_JOURNAL_BLOCKS)):
        kept = journal.read(number, partial(problem.is_answer, part))
        if kept is not None:
            monitor.add_done(len(problem.order[part]))
            seconds = max(seconds, float(kept.reports["seconds"].max()))
            chunks.append(kept)
            continue
        began = time.perf_counter()
        chunk = solve(part).later(seconds)
        if monitor.stop_requested:  # what a stop cut short is in the model all the same
            chunks.append(chunk)
            return
        chunks.append(journal.keep(number, chunk))
        seconds += time.perf_counter() - began


def summarise(reports: dict[str, np.ndarray], counts: np.ndarray, max_iter: int) -> Solution:
    """Totals over labels; `counts` are the samples of each, and a label without any is done."""
    is_done = (reports["converged"] != 0) | (counts == 0)
    status = Status.CONVERGED
    if not is_done.all():
        was_cut = reports["was_stopped"] & (reports["n_iter"] < max_iter) & ~is_done
        status = Status.STOPPED if was_cut.any() else Status.MAX_ITER
    objective = float(reports["primal"].sum())
    gap = float((reports["primal"] - reports["dual"]).sum())
    if status is Status.STOPPED:
        certificate = float("inf")  # nothing is known of the labels that were not reached
    else:
        certificate = gap / objective if objective != 0 else 0.0
    return Solution(
        status=status,
        objective=objective,
        certificate=certificate,
        n_iter=int(reports["n_iter"].max()),
        trace=trace_of(reports),
    )
