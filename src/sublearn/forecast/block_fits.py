"""Fitting the blocks of leads of all series, watched and on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sublearn.execution import Hints, map_blocks, n_places_elsewhere
from sublearn.fitting.progress import Progress
from sublearn.forecast.block_model import BlockModel, BlockReport, BlockTask
from sublearn.forecast.plan import Plan
from sublearn.trace import Solution, Status, Trace

__all__ = ["fit_blocks"]


def fit_blocks(
    plan: Plan, n_threads: int, watch: Callable[..., Any]
) -> tuple[list[list[BlockModel]], Solution]:
    """The models of each series, one for each block, and how it went.

    `watch` runs a job under the eyes of the user, as that of `FittedModel` does.
    """
    tasks = plan.tasks(1 if n_places_elsewhere() else n_threads)
    progress = Progress(len(tasks), n_done=0)

    def should_stop() -> bool:
        return progress.stop_requested

    def do(task: BlockTask) -> tuple[BlockModel, BlockReport]:
        return count(BlockModel.fit(task, should_stop))

    def count(found: tuple[BlockModel, BlockReport]) -> tuple[BlockModel, BlockReport]:
        block, report = found
        progress.add(
            n_done=1, objective=report.objective, gap=report.gap, nnz_primal=block.n_weights,
            nnz_dual=report.n_support, work=report.n_rows,
        )  # fmt: skip
        return found

    hints = Hints(arrived=count, asks_to_stop=should_stop)
    # Threads of BLAS would change the rounding, hence the model, with their number.
    with threadpool_limits(1, user_api="blas"):
        done = watch(
            lambda: map_blocks(do, tasks, n_threads, hints=hints), progress, may_be_left=True
        )
    n = len(plan.blocks)
    models = [[found for found, _ in done[i : i + n]] for i in range(0, len(done), n)]
    return models, _solution(plan, [report for _, report in done], progress.stop_requested)


def _solution(plan: Plan, reports: list[BlockReport], was_stopped: bool) -> Solution:
    objective = sum(report.objective for report in reports)
    gap = sum(report.gap for report in reports)
    certificate = gap / objective if objective > 0 else 0.0
    is_solved = certificate <= plan.choices.local.tol and not was_stopped
    failure = Status.STOPPED if was_stopped else Status.MAX_ITER
    return Solution(
        status=Status.CONVERGED if is_solved else failure,
        objective=objective,
        certificate=certificate,
        n_iter=max(report.n_iter for report in reports),
        trace=_trace(reports, plan.blocks),
    )


def _trace(reports: list[BlockReport], blocks: list[int]) -> Trace:
    objectives = np.array([report.objective for report in reports])
    gaps = np.array([report.gap for report in reports])
    return Trace(
        {
            "seconds": [report.seconds for report in reports],
            "series": [i // len(blocks) for i in range(len(reports))],
            "last_lead": [blocks[i % len(blocks)] for i in range(len(reports))],
            "objective": objectives,
            "certificate": gaps / np.maximum(objectives, 1e-300),
            "n_clusters": [report.n_clusters for report in reports],
            "nnz_dual": [report.n_support for report in reports],
            "work": [report.n_rows for report in reports],
        }
    )
