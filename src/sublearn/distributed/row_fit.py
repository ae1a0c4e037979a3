r"""Estimators fitted to rows that lie on workers, by LHAC.

.. math:: \min_{w, b} \sum_i s f(\langle x_i, w \rangle + b; y_i)
    + \lambda \|w\|_1 + \tfrac{l_2}{2} \|w\|^2 + \tfrac{l_b}{2} b^2

For PPD-Sparse s = C and both squared norms have weight 1: the problem of every label is that of
:class:`~sublearn.extreme.PPDSparseClassifier`, so is its optimum, and only the way there differs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy.sparse as sp

from sublearn.distributed.row_blocks import RowBlocks, RowLoss
from sublearn.distributed.row_bounds import RowTask
from sublearn.distributed.row_exchange import Exchange, RowObjective, solve_together
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.linear_labels import LinearLabels, is_small
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.linear import (
    GroupLinearRegression,
    GroupLogisticRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.optim import LhacSettings, lhac
from sublearn.optim.linear_solve import LinearSolution
from sublearn.optim.row_losses import Huber, Logistic, Loss, Squared
from sublearn.trace import Callback, Solution, Status, Trace
from sublearn.validation import EncodedLabels, LabelKind, check_params
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["fit_by_rows"]

_Estimator = TypeVar("_Estimator")
_BATCH_BYTES = 2**26  # of the gradients of one round
_MOST_TOGETHER = 32


def fit_by_rows(estimator: _Estimator, rows: RowBlocks) -> _Estimator:
    """Fit an estimator to rows that no machine could hold together.

    Workers keep their rows; a round sends a point to them and brings the sum of their gradients
    back. LHAC asks for one round in each outer iteration, and all else happens here.

    Parameters
    ----------
    estimator : SparseLogisticRegression, SparseLinearRegression or PPDSparseClassifier
        With its parameters. `solver` must be "auto" or "lhac", `l1` a number; weights of samples,
        classes and features are not supported, nor are the Poisson and the quantile loss.
        PPD-Sparse needs the squared hinge loss and a learned intercept; it reaches the optimum of
        the same problem, and its model is that of `fit` up to `tol`, not to the last bit.
        `callback` and `verbose` tell of finished problems; `n_jobs` counts when the fitted model
        predicts, since it is the cluster that says how many threads its workers have.
    rows : RowBlocks
        The data.

    Returns
    -------
    estimator
        Itself, fitted. `trace_` counts rounds, `bytes_sent` to and `bytes_received` from blocks.
        `certificate_` is the relative duality gap.
    """
    if not isinstance(rows, RowBlocks):
        raise ParameterError(f"fit_by_rows: rows must be RowBlocks, got {show(rows)}")
    if isinstance(estimator, PPDSparseClassifier):
        _fit_ppd(estimator, rows)
    elif isinstance(estimator, _LINEAR) and not isinstance(estimator, _OF_GROUPS):
        _fit_linear(estimator, rows)
    else:
        raise ParameterError(
            "fit_by_rows: estimator must be a SparseLogisticRegression, a SparseLinearRegression "
            f"or a PPDSparseClassifier, got {show(estimator)}"
        )
    return estimator


_LINEAR = SparseLogisticRegression, SparseLinearRegression
_OF_GROUPS = GroupLogisticRegression, GroupLinearRegression


# --- one problem -------------------------------------------------------------------------------


def _solve(exchange: Exchange, task: RowTask, callback: Callback | None) -> LinearSolution:
    """LHAC until the duality gap is small, with one round in each outer iteration."""
    objective = RowObjective(exchange, task)
    start = objective.begin()
    found = lhac(
        objective, start, task.l1 / objective.coordinates.sizes, tol=task.tol,
        max_iter=task.max_iter, active_set=False, settings=LhacSettings(globalisation="null_step"),
        bounds=(0.0, np.inf) if task.is_positive else (-np.inf, np.inf), callback=callback,
    )  # fmt: skip
    if found.status is not Status.CONVERGED:
        objective.certify()
    bound, value = objective.lower_bound(), found.objective
    is_solved = value - bound <= task.tol * abs(value)
    x, has_intercept = objective.coordinates.to_x(found.x), task.loss.fit_intercept
    if task.prune > 0:
        n = len(x) - has_intercept
        x[:n][is_small(x[:n], task.prune)] = 0.0
        value = exchange.ask(task.loss, x)[0] + task.penalty(x)
    return LinearSolution(
        status=Status.CONVERGED if is_solved else found.status,
        objective=value,
        certificate=max(value - bound, 0.0) / max(abs(value), 1e-300),
        n_iter=found.n_iter,
        trace=_trace(found.trace, objective, exchange),
        x=x[:-1] if has_intercept else x,
        intercept=float(x[-1]) if has_intercept else 0.0,
    )


def _trace(trace: Trace, objective: RowObjective, exchange: Exchange) -> Trace:
    """With the rounds and bytes until each row."""
    at = np.array(objective.rounds)[trace["n_values"].astype(int) - 1] - 1
    kept = ("seconds", "objective", "certificate", "violation", "nnz_primal", "n_active")
    columns = {name: trace[name] for name in kept} | {"round": at + 1}
    for name in ("bytes_sent", "bytes_received"):
        columns[name] = np.array([exchange.history[i][name] for i in at])
    return Trace(columns)


# --- sparse linear models ----------------------------------------------------------------------


def _fit_linear(estimator: BaseEstimator, rows: RowBlocks) -> None:
    check_params(estimator)
    name = type(estimator).__name__
    _refuse_others(estimator, name, penalty_weights=None, warm_start=False)
    if isinstance(estimator.l1, str) or estimator.l1 == 0:
        raise ParameterError(
            f"fit_by_rows: {name}.l1 must be a positive number, got {show(estimator.l1)}"
        )
    if estimator.solver not in ("auto", "lhac"):
        raise ParameterError(
            f"fit_by_rows: {name}.solver must be 'auto' or 'lhac', got {estimator.solver!r}"
        )
    if estimator._is_positive and estimator.fit_intercept:
        raise ParameterError(
            f"fit_by_rows: {name}.fit_intercept must be False where positive=True, got True"
        )
    if rows.is_indicator:
        raise ValueError(f"fit_by_rows: {name} needs one target per row, got a matrix of labels")
    is_classes = isinstance(estimator, SparseLogisticRegression)
    tasks = _class_tasks(estimator, rows) if is_classes else [_number_task(estimator, rows)]
    found = _solve_all(estimator, rows, tasks)
    estimator.n_features_in_ = rows.n_features
    estimator._forget_folds()
    estimator.l1_ = float(estimator.l1)
    estimator._keep_figures(found, found, rows.dtype)


def _class_tasks(estimator: SparseLogisticRegression, rows: RowBlocks) -> list[RowTask]:
    name = type(estimator).__name__
    _refuse_others(estimator, name, class_weight=None)
    _refuse_one_class(rows)
    if len(rows.classes) > 2 and estimator.multinomial:
        raise ParameterError(
            f"fit_by_rows: {name}.multinomial must be False for more than two classes, got True"
        )
    estimator.classes_ = rows.classes
    outputs = [1] if len(rows.classes) == 2 else range(len(rows.classes))
    odds = np.log(rows.counts / (rows.n_rows - rows.counts))
    return [_linear_task(estimator, rows, Logistic(), odds[k], rows.classes[k]) for k in outputs]


def _number_task(estimator: SparseLinearRegression, rows: RowBlocks) -> RowTask:
    if not isinstance(estimator._loss, (Squared, Huber)):
        raise ParameterError(
            f"fit_by_rows: {type(estimator).__name__}.loss must be 'squared' or 'huber', "
            f"got {estimator.loss!r}"
        )
    if rows.classes.dtype.kind not in "biuf":
        raise ValueError(f"fit_by_rows: y must hold numbers, got {show(rows.classes[0])}")
    return _linear_task(estimator, rows, estimator._loss, rows.total / rows.n_rows, None)


def _linear_task(
    estimator: BaseEstimator, rows: RowBlocks, loss: Loss, intercept: float, positive: Hashable
) -> RowTask:
    n, has_intercept = rows.n_features, bool(estimator.fit_intercept)
    positive = positive.item() if isinstance(positive, np.generic) else positive
    row_loss = RowLoss(loss.name, loss.parameter, 1.0 / rows.n_rows, has_intercept, positive)
    ones = np.ones(n + has_intercept)
    ones[n:] = 0.0
    start = (1.0 - ones) * intercept
    max_iter = 1000 if estimator.max_iter is None else int(estimator.max_iter)
    return RowTask(row_loss, float(estimator.l1) * ones, float(estimator.l2) * ones, start,
                 float(estimator.tol), max_iter, estimator._is_positive)  # fmt: skip


def _refuse_others(estimator: BaseEstimator, name: str, **supported: object) -> None:
    for parameter, value in supported.items():
        given = getattr(estimator, parameter)
        if given is not value and given != value:
            raise ParameterError(
                f"fit_by_rows: {name}.{parameter} must be {value!r}, got {show(given)}"
            )


def _refuse_one_class(rows: RowBlocks) -> None:
    if len(rows.classes) < 2:
        raise ValueError(f"fit_by_rows: y must have at least two classes, got {rows.classes}")


def _solve_all(
    estimator: FittedModel, rows: RowBlocks, tasks: list[RowTask]
) -> list[LinearSolution]:
    """All problems, as many side by side as a round can bring gradients for."""
    most = max(1, _BATCH_BYTES // (8 * (rows.n_features + 2)))
    n = min(len(tasks), most, _MOST_TOGETHER)
    exchange = Exchange(rows, n)
    progress = Progress(len(tasks), n_done=0)
    # A callback of our own, for the sake of the user's: who has none saves a thread a problem.
    stop = None if estimator.callback is None else lambda _: progress.stop_requested

    def solve(task: RowTask) -> LinearSolution:
        found = _solve(exchange, task, stop)
        gap, n_weights = found.certificate * abs(found.objective), int(np.count_nonzero(found.x))
        progress.add(n_done=1, objective=found.objective, gap=gap, nnz_primal=n_weights)
        return found

    return estimator._watch(lambda: solve_together(exchange, n, solve, tasks), progress)


# --- PPD-Sparse --------------------------------------------------------------------------------


def _fit_ppd(estimator: PPDSparseClassifier, rows: RowBlocks) -> None:
    check_params(estimator)
    name = type(estimator).__name__
    _refuse_others(estimator, name, loss="squared_hinge", fit_intercept=True, class_weight=None,
                   warm_start=False, model_path=None)  # fmt: skip
    kind, positives = _labels_of(rows)
    n = rows.n_features
    l1 = np.append(np.full(n, float(estimator.l1)), 0.0)
    tasks = [
        RowTask(RowLoss("squared_hinge", 1.0, float(estimator.C), True, k), l1, np.ones(n + 1),
              np.zeros(n + 1), float(estimator.tol), max(100, 10 * int(estimator.max_iter)),
              prune=float(estimator.prune))
        for k in positives
    ]  # fmt: skip
    found = _solve_all(estimator, rows, tasks)
    estimator.n_features_in_ = n
    nothing = (np.zeros(len(rows.classes) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    labels = EncodedLabels(*nothing, rows.classes, kind, rows.n_rows)
    estimator._take_over(labels, _linear_labels(found, rows), _summary(found))


def _labels_of(rows: RowBlocks) -> tuple[LabelKind, list[Hashable]]:
    if rows.is_indicator:
        return LabelKind.SPARSE_INDICATOR, list(range(len(rows.classes)))
    _refuse_one_class(rows)
    if len(rows.classes) == 2:
        return LabelKind.BINARY, rows.classes[1:].tolist()
    return LabelKind.MULTICLASS, rows.classes.tolist()


def _linear_labels(found: list[LinearSolution], rows: RowBlocks) -> LinearLabels:
    columns = [sp.csr_matrix(one.x.astype(rows.dtype)) for one in found]
    weights = sp.vstack(columns).T.tocsr().astype(rows.dtype)
    weights.sort_indices()
    return LinearLabels(weights, np.array([one.intercept for one in found], dtype=rows.dtype))


def _summary(found: list[LinearSolution]) -> Solution:
    """Totals over labels, and a trace with a row for each round of all of them."""
    objective = sum(one.objective for one in found)
    gap = sum(one.certificate * one.objective for one in found)
    failures = [one.status for one in found if one.status is not Status.CONVERGED]
    names = ("seconds", "round", "bytes_sent", "bytes_received")
    rows = {int(row["round"]): row for one in found for row in one.trace.rows()}
    ordered = [rows[number] for number in sorted(rows)]
    return Solution(
        failures[0] if failures else Status.CONVERGED,
        objective,
        gap / objective if objective else 0.0,
        max(one.n_iter for one in found),
        Trace({name: [row[name] for row in ordered] for name in names}),
    )
