"""Fitting the blocks of leads of all series, watched and on several threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sublearn.execution import Hints, map_blocks, n_places_elsewhere
from sublearn.forecast.block_model import BlockModel, BlockReport, BlockTask
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.plan import baselines_of, settings_of
from sublearn.forecast.progress import Progress
from sublearn.forecast.series import LoadSeries
from sublearn.trace import Solution, Status, Trace, watch
from sublearn.validation import as_n_threads

__all__ = ["Plan", "fit_blocks"]


@dataclass(frozen=True)
class Plan:
    """What a fit has decided before it learns: rows, calendar, last lead of each block, seed."""

    embedding: Embedding
    calendar: Calendar
    blocks: list[int]
    seed: int


def fit_blocks(
    model: Any, series: LoadSeries, X: np.ndarray | None, plan: Plan
) -> tuple[list[list[BlockModel]], Solution]:
    """The models of each series, one for each block, and how it went.

    `model` is the LoadForecaster that holds the parameters.
    """
    progress = Progress()
    tasks = _tasks(model, series, X, plan)

    def do(task: BlockTask) -> tuple[BlockModel, BlockReport]:
        return count(BlockModel.fit(task, progress.should_stop))

    def count(found: tuple[BlockModel, BlockReport]) -> tuple[BlockModel, BlockReport]:
        block, report = found
        progress.finish(report, block.n_weights)
        return found

    hints = Hints(arrived=count, asks_to_stop=progress.should_stop)
    # Threads of BLAS would change the rounding, hence the model, with their number.
    with threadpool_limits(1, user_api="blas"):
        done = watch(
            lambda: map_blocks(do, tasks, as_n_threads(model.n_jobs), hints=hints),
            progress, n_total=len(tasks), callback=model.callback, verbose=int(model.verbose),
            title="load forecast", may_be_left=True,
        )  # fmt: skip
    n = len(plan.blocks)
    models = [[found for found, _ in done[i : i + n]] for i in range(0, len(done), n)]
    reports = [report for _, report in done]
    return models, _solution(model, reports, plan.blocks, progress.stop_requested)


def _tasks(model: Any, series: LoadSeries, X: np.ndarray | None, plan: Plan) -> list[BlockTask]:
    n_tasks = len(plan.blocks) * series.values.shape[1]
    # Where there are more threads than blocks, the clusters of a block share them.
    n_threads = 1 if n_places_elsewhere() else max(as_n_threads(model.n_jobs) // n_tasks, 1)
    settings = replace(settings_of(model), n_threads=n_threads)
    return [
        BlockTask(
            series.values[:, s], X, plan.embedding, plan.calendar, before + 1, last, settings,
            baselines_of(model, last, series.clock), model.intervals, (plan.seed, s, b),
        )
        for s in range(series.values.shape[1])
        for b, (before, last) in enumerate(zip([0, *plan.blocks], plan.blocks, strict=False))
    ]  # fmt: skip


def _solution(
    model: Any, reports: list[BlockReport], blocks: list[int], was_stopped: bool
) -> Solution:
    objective = sum(report.objective for report in reports)
    gap = sum(report.gap for report in reports)
    certificate = gap / objective if objective > 0 else 0.0
    is_solved = certificate <= model.tol and not was_stopped
    failure = Status.STOPPED if was_stopped else Status.MAX_ITER
    return Solution(
        status=Status.CONVERGED if is_solved else failure,
        objective=objective,
        certificate=certificate,
        n_iter=max(report.n_iter for report in reports),
        trace=_trace(reports, blocks),
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
