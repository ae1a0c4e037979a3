r"""Estimators fitted to rows that lie on workers, by LHAC.

.. math:: \min_{w, b} \sum_i s f(\langle x_i, w \rangle + b; y_i)
    + \lambda \|w\|_1 + \tfrac{l_2}{2} \|w\|^2 + \tfrac{l_b}{2} b^2

For PPD-Sparse s = C and both squared norms have weight 1: the problem of every label is that of
:class:`~sublearn.extreme.PPDSparseClassifier`, so is its optimum, and only the way there differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sublearn.distributed.row_blocks import RowBlocks, RowLoss
from sublearn.distributed.row_exchange import (
    Exchange,
    RowObjective,
    conjugates,
    dual_sides,
    solve_together,
)
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.linear_labels import LinearLabels, is_small
from sublearn.linear import SparseLinearRegression, SparseLogisticRegression
from sublearn.optim import lhac
from sublearn.optim.linear_solve import LinearSolution
from sublearn.trace import Solution, Status, Trace
from sublearn.validation import EncodedLabels, LabelKind, check_params
from sublearn.validation.values import show

__all__ = ["fit_by_rows"]

_Estimator = TypeVar("_Estimator")
_BATCH_BYTES = 2**26  # of the gradients of one round
_MOST_TOGETHER = 32
_MOST_CALLS = 20  # of LHAC for one problem, each to a smaller subgradient than the one before


@dataclass(frozen=True, eq=False)
class _Task:
    """One problem.

    `l1` and `l2` have an entry for each coordinate, the intercept last if there is one.
    """

    loss: RowLoss
    l1: np.ndarray
    l2: np.ndarray
    start: np.ndarray
    tol: float
    max_iter: int
    is_positive: bool = False


def fit_by_rows(estimator: _Estimator, rows: RowBlocks) -> _Estimator:
    """Fit an estimator to rows that no machine could hold together.

    Workers keep their rows; a round sends a point to them and brings the sum of their gradients
    back. LHAC asks for one round in each outer iteration, and all else happens here.

    Parameters
    ----------
    estimator : SparseLogisticRegression, SparseLinearRegression or PPDSparseClassifier
        With its parameters. `solver` must be "auto" or "lhac", `l1` a number; weights of samples,
        classes and features are not supported, nor is the Poisson loss. PPD-Sparse needs the
        squared hinge loss and a learned bias; it reaches the optimum of the same problem, and its
        model is that of `fit` up to `tol`, not to the last bit. `n_jobs`, `verbose` and `callback`
        are not used.
    rows : RowBlocks
        The data.

    Returns
    -------
    estimator
        Itself, fitted. `trace_` counts rounds, `bytes_sent` to and `bytes_received` from blocks.
        `certificate_` is the relative duality gap; for Huber's loss, where no dual point was
        found, the size of the subgradient over that at the start. Columns are used as they are:
        unlike `fit`, nothing is scaled or centred.
    """
    if not isinstance(rows, RowBlocks):
        raise ParameterError(f"fit_by_rows: rows must be RowBlocks, got {show(rows)}")
    if isinstance(estimator, PPDSparseClassifier):
        _fit_ppd(estimator, rows)
    elif isinstance(estimator, (SparseLogisticRegression, SparseLinearRegression)):
        _fit_linear(estimator, rows)
    else:
        raise ParameterError(
            "fit_by_rows: estimator must be a SparseLogisticRegression, a SparseLinearRegression "
            f"or a PPDSparseClassifier, got {show(estimator)}"
        )
    return estimator


# --- one problem -------------------------------------------------------------------------------


def _solve(exchange: Exchange, task: _Task) -> LinearSolution:
    """LHAC until the duality gap is small; its own test is on the subgradient alone."""
    objective = RowObjective(exchange, task.loss, task.l2)
    # Near the optimum the gap falls with the square of the subgradient.
    goal = float(np.clip(np.sqrt(task.tol), 1e-3, 0.1))
    x, parts, n_left = task.start, [], task.max_iter
    for _ in range(_MOST_CALLS):
        found = lhac(
            objective, x, task.l1, tol=goal, max_iter=max(n_left, 1), working_set=False,
            bounds=(0.0, np.inf) if task.is_positive else (-np.inf, np.inf),
        )  # fmt: skip
        x, n_left = found.x, n_left - found.n_iter
        parts.append(found.trace)
        bound = _lower_bound(exchange, task, objective, x)
        gap = max(found.objective - bound, 0.0) / max(abs(found.objective), 1e-300)
        certificate = gap if np.isfinite(gap) else found.certificate
        if certificate <= task.tol or n_left <= 0 or found.status is Status.STALLED:
            break
        goal = found.certificate * min(0.5 * np.sqrt(task.tol / certificate), 0.3)
    is_done = certificate <= task.tol
    status = Status.CONVERGED if is_done else Status.MAX_ITER if n_left <= 0 else Status.STALLED
    has_intercept = task.loss.fit_intercept
    return LinearSolution(
        status=status,
        objective=found.objective,
        certificate=certificate,
        n_iter=task.max_iter - n_left,
        trace=_trace(parts, objective, exchange),
        w=x[:-1] if has_intercept else x,
        intercept=float(x[-1]) if has_intercept else 0.0,
    )


def _trace(parts: list[Trace], objective: RowObjective, exchange: Exchange) -> Trace:
    """The rows of all calls, and the rounds and bytes until each of them."""
    columns: dict[str, list[np.ndarray]] = {}
    seconds = n_values = 0.0
    for part in parts:
        calls = (part["n_values"] + n_values).astype(int) - 1
        at = np.array(objective.rounds)[calls] - 1
        counted = {name: np.array([exchange.history[i][name] for i in at])
                   for name in ("bytes_sent", "bytes_received")}  # fmt: skip
        own = {name: part[name] for name in ("objective", "violation", "nnz_primal", "n_free")}
        own |= {"seconds": part["seconds"] + seconds, "round": at + 1} | counted
        for name, values in own.items():
            columns.setdefault(name, []).append(values)
        seconds, n_values = own["seconds"][-1], calls[-1] + 1
    return Trace({name: np.concatenate(values) for name, values in columns.items()})


def _lower_bound(exchange: Exchange, task: _Task, objective: RowObjective, x: np.ndarray) -> float:
    """The value of a dual point that belongs to `x`; minus infinity if none was found.

    Where a squared norm holds every coordinate, the slopes are a dual point as they are, and
    sum f*(f'(z)) = <x, gradient> - value: no round is needed.
    """
    if (task.loss.fit_intercept and task.l2[-1] == 0) or not task.l2.all():
        return _bound_by_rounds(exchange, task, x)
    value, gradient = objective.of_rows(x)
    pull = -gradient if task.is_positive else np.abs(gradient)
    excess = np.maximum(pull - task.l1, 0.0)
    return value - float(x @ gradient) - 0.5 * float((excess**2 / task.l2).sum())


def _bound_by_rounds(exchange: Exchange, task: _Task, x: np.ndarray) -> float:
    """Two rounds: slopes are combined so that they add up to 0, and shrunk to be feasible."""
    loss, at = task.loss, np.flatnonzero(x)
    point = (at.astype(np.int32), x[at])
    sides = exchange.sum_over(dual_sides, 1, loss, point)
    scales = _balanced(loss, sides[:, -1]) if loss.fit_intercept else np.array(
        [1.0, 0.0 if loss.positive is None else 1.0]
    )  # fmt: skip
    n = sides.shape[1] - 1
    v = loss.row_weight * (scales @ sides[:, :n])
    pull, l2 = (-v if task.is_positive else np.abs(v)), task.l2[:n]
    free = l2 == 0
    over = free & (pull > task.l1[:n])
    shrink = float((task.l1[:n][over] / pull[over]).min(initial=1.0))
    excess = np.maximum(shrink * pull - task.l1[:n], 0.0)[~free]
    total = exchange.sum_over(conjugates, 1, loss, point, tuple(shrink * scales))[0]
    return -loss.row_weight * float(total) - 0.5 * float((excess**2 / l2[~free]).sum())


def _balanced(loss: RowLoss, sums: np.ndarray) -> np.ndarray:
    """Factors of two vectors with these sums that make their combination sum to 0."""
    if loss.positive is None:
        return np.array([1.0, -sums[0] / sums[1]])
    down, up = -sums[0], sums[1]
    return np.array([min(1.0, up / down) if down > 0 else 0.0,
                     min(1.0, down / up) if up > 0 else 0.0])  # fmt: skip


# --- sparse linear models ----------------------------------------------------------------------


def _fit_linear(estimator: Any, rows: RowBlocks) -> None:
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
    found = _solve_all(rows, tasks)
    estimator.n_features_in_ = rows.n_features
    estimator._forget_folds()
    estimator.l1_ = float(estimator.l1)
    estimator._keep_figures(found, found, rows.dtype)


def _class_tasks(estimator: SparseLogisticRegression, rows: RowBlocks) -> list[_Task]:
    name = type(estimator).__name__
    _refuse_others(estimator, name, class_weight=None)
    _refuse_one_class(rows)
    if len(rows.classes) > 2 and estimator.multi_class != "ovr":
        raise ParameterError(
            f"fit_by_rows: {name}.multi_class must be 'ovr' for more than two classes, "
            f"got {estimator.multi_class!r}"
        )
    estimator.classes_ = rows.classes
    outputs = [1] if len(rows.classes) == 2 else range(len(rows.classes))
    odds = np.log(rows.counts / (rows.n_rows - rows.counts))
    return [_linear_task(estimator, rows, "logistic", odds[k], rows.classes[k]) for k in outputs]


def _number_task(estimator: SparseLinearRegression, rows: RowBlocks) -> _Task:
    if estimator.loss == "poisson":
        raise ParameterError(
            f"fit_by_rows: {type(estimator).__name__}.loss must be 'squared' or 'huber', "
            "got 'poisson'"
        )
    if rows.classes.dtype.kind not in "biuf":
        raise ValueError(f"fit_by_rows: y must hold numbers, got {show(rows.classes[0])}")
    return _linear_task(estimator, rows, estimator.loss, rows.total / rows.n_rows, None)


def _linear_task(
    estimator: Any, rows: RowBlocks, loss: str, intercept: float, positive: Any
) -> _Task:
    n, has_intercept = rows.n_features, bool(estimator.fit_intercept)
    parameter = float(getattr(estimator, "huber_delta", 1.0))
    positive = positive.item() if isinstance(positive, np.generic) else positive
    row_loss = RowLoss(loss, parameter, 1.0 / rows.n_rows, has_intercept, positive)
    ones = np.ones(n + has_intercept)
    ones[n:] = 0.0
    start = (1.0 - ones) * intercept
    max_iter = 1000 if estimator.max_iter is None else int(estimator.max_iter)
    return _Task(row_loss, float(estimator.l1) * ones, float(estimator.l2) * ones, start,
                 float(estimator.tol), max_iter, estimator._is_positive)  # fmt: skip


def _refuse_others(estimator: Any, name: str, **supported: Any) -> None:
    for parameter, value in supported.items():
        given = getattr(estimator, parameter)
        if given is not value and given != value:
            raise ParameterError(
                f"fit_by_rows: {name}.{parameter} must be {value!r}, got {show(given)}"
            )


def _refuse_one_class(rows: RowBlocks) -> None:
    if len(rows.classes) < 2:
        raise ValueError(f"fit_by_rows: y must have at least two classes, got {rows.classes}")


def _solve_all(rows: RowBlocks, tasks: list[_Task]) -> list[LinearSolution]:
    """All problems, as many side by side as a round can bring gradients for."""
    most = max(1, _BATCH_BYTES // (8 * (rows.n_features + 2)))
    n = min(len(tasks), most, _MOST_TOGETHER)
    exchange = Exchange(rows, n)
    return solve_together(exchange, n, lambda task: _solve(exchange, task), tasks)


# --- PPD-Sparse --------------------------------------------------------------------------------


def _fit_ppd(estimator: PPDSparseClassifier, rows: RowBlocks) -> None:
    check_params(estimator)
    name = type(estimator).__name__
    _refuse_others(estimator, name, loss="squared_hinge", bias="learned", class_weight=None,
                   warm_start=False, model_path=None)  # fmt: skip
    kind, positives = _labels_of(rows)
    n = rows.n_features
    l1 = np.append(np.full(n, float(estimator.l1)), 0.0)
    tasks = [
        _Task(RowLoss("squared_hinge", 1.0, float(estimator.C), True, k), l1, np.ones(n + 1),
              np.zeros(n + 1), float(estimator.tol), max(100, 10 * int(estimator.max_iter)))
        for k in positives
    ]  # fmt: skip
    found = _solve_all(rows, tasks)
    estimator.n_features_in_ = n
    nothing = (np.zeros(len(rows.classes) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    labels = EncodedLabels(*nothing, rows.classes, kind, rows.n_rows)
    solution = _summary(found)
    solution.warn_unless_converged(estimator, float(estimator.tol))
    estimator._take_over(labels, _linear_labels(found, rows, float(estimator.prune)), solution)


def _labels_of(rows: RowBlocks) -> tuple[LabelKind, list[Any]]:
    if rows.is_indicator:
        return LabelKind.SPARSE_INDICATOR, list(range(len(rows.classes)))
    _refuse_one_class(rows)
    if len(rows.classes) == 2:
        return LabelKind.BINARY, rows.classes[1:].tolist()
    return LabelKind.MULTICLASS, rows.classes.tolist()


def _linear_labels(found: list[LinearSolution], rows: RowBlocks, prune: float) -> LinearLabels:
    columns = [sp.csr_matrix(_pruned(one.w.astype(rows.dtype), prune)) for one in found]
    weights = sp.vstack(columns).T.tocsr().astype(rows.dtype)
    weights.sort_indices()
    return LinearLabels(weights, np.array([one.intercept for one in found], dtype=rows.dtype))


def _pruned(w: np.ndarray, prune: float) -> np.ndarray:
    return np.where(is_small(w, prune), 0, w).astype(w.dtype)


def _summary(found: list[LinearSolution]) -> Solution:
    """Totals over labels, and a trace with a row for each round of all of them."""
    objective = sum(one.objective for one in found)
    gap = sum(one.certificate * one.objective for one in found)
    is_done = all(one.status is Status.CONVERGED for one in found)
    names = ("seconds", "round", "bytes_sent", "bytes_received")
    rows = {int(row["round"]): row for one in found for row in one.trace.rows()}
    ordered = [rows[number] for number in sorted(rows)]
    return Solution(
        Status.CONVERGED if is_done else Status.MAX_ITER,
        objective,
        gap / objective if objective else 0.0,
        max(one.n_iter for one in found),
        Trace({name: [row[name] for row in ordered] for name in names}),
    )
