"""Passes of GDMM until the certificate, the limit, or held-out samples say that it is enough.

The core makes one pass at a time (cpp/include/sublearn/solvers/structured/gdmm.hpp). In between,
this file looks at the objective, at the dual bound and at held-out samples, and keeps the best
weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.trace import Solution, Status, Trace

__all__ = ["Learnt", "Plan", "Problem", "Weights", "learn"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples as the core reads them: nodes with features and true labels, factors over them.

    Parameters
    ----------
    X : csr_matrix
        A row for each node.
    truth : ndarray of int32
        Label of each node.
    n_labels : int
        Of every node.
    node_begin, factor_begin : ndarray of int64, shape (n_samples + 1,)
        First node and first factor of each sample, and the ends.
    scope : ndarray of int32
        Nodes of each factor, one factor after another.
    table : ndarray of int32, shape (n_factors,)
        Which table scores a factor.
    arity : tuple of int
        For each table, how many nodes its factors have.
    scale : ndarray of float64, shape (n_factors,), or None
        What the table is multiplied by; None is 1.
    weight : ndarray of float64, shape (n_samples,), or None
        What the loss of each sample counts; None is 1.
    """

    X: sp.csr_matrix
    truth: np.ndarray
    n_labels: int
    node_begin: np.ndarray
    factor_begin: np.ndarray
    scope: np.ndarray
    table: np.ndarray
    arity: tuple[int, ...]
    scale: np.ndarray | None
    weight: np.ndarray | None = None

    def learner(self, plan: Plan) -> Any:
        """The solver of the core at its start, where all weights are zero."""
        settings = _core.GdmmLearnSettings()
        settings.C, settings.rho, settings.seed = plan.C, plan.rho or 0.0, plan.seed
        settings.n_parts, settings.uses_away_steps = plan.n_parts, plan.method == "away"
        kind = "GdmmLearner" if max(self.arity, default=2) == 2 else "GdmmHighOrderLearner"
        make = getattr(_core, f"{kind}{8 * self.X.dtype.itemsize}")
        X, arity = self.X, np.array(self.arity, dtype=np.int32)
        indptr, indices = (ids.astype(np.int32, copy=False) for ids in (X.indptr, X.indices))
        nodes = (self.truth, self.node_begin)
        factors = (self.factor_begin, self.scope, self.table, arity)
        return make((indptr, indices, X.data), X.shape[1], nodes, self.n_labels, factors,
                    self.scale, self.weight, settings)  # fmt: skip

    def scopes_of(self, table: int) -> tuple[np.ndarray, np.ndarray]:
        """Which factors have this table, and their nodes: shape (n_factors, arity)."""
        chosen = np.flatnonzero(self.table == table)
        sizes = np.array(self.arity, dtype=np.int64)[self.table]
        begin = (np.cumsum(sizes) - sizes)[chosen]
        return chosen, self.scope[begin[:, None] + np.arange(self.arity[table])]

    def split_tables(self, cells: np.ndarray) -> list[np.ndarray]:
        """Tables of shape (n_labels, ..., n_labels) from their cells, one after another."""
        ends = np.cumsum([self.n_labels**arity for arity in self.arity])
        parts = np.split(cells, ends[:-1]) if self.arity else []
        shapes = [(self.n_labels,) * arity for arity in self.arity]
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def features_of_truth(self) -> Weights:
        """The sum of phi(x, y) over samples: its product with w is the score of all truths."""
        n_nodes = len(self.truth)
        weight = np.ones(len(self.node_begin) - 1) if self.weight is None else self.weight
        of_nodes = np.repeat(weight, np.diff(self.node_begin))
        of_factors = np.repeat(weight, np.diff(self.factor_begin))
        Y = sp.csr_matrix((of_nodes, self.truth, np.arange(n_nodes + 1)), (n_nodes, self.n_labels))
        if self.scale is not None:
            of_factors = of_factors * self.scale
        tables = [np.zeros((self.n_labels,) * arity) for arity in self.arity]
        for number, table in enumerate(tables):
            chosen, nodes = self.scopes_of(number)
            np.add.at(table, tuple(self.truth[nodes].T), of_factors[chosen])
        return Weights((self.X.T @ Y).tocsr(), tables)


@dataclass(frozen=True, eq=False)
class Weights:
    """W, a row for each feature and a column for each label, and a table for each template."""

    W: sp.csr_matrix
    tables: Sequence[np.ndarray]

    def dot(self, other: Weights) -> float:
        """Inner product."""
        of_nodes = self.W.astype(np.float64).multiply(other.W).sum()
        pairs = zip(self.tables, other.tables, strict=True)
        return float(of_nodes + sum(np.vdot(mine, its) for mine, its in pairs))

    def squared_norm(self) -> float:
        """|w|^2."""
        of_nodes = np.square(self.W.data, dtype=np.float64).sum()
        return float(of_nodes + sum(np.vdot(table, table) for table in self.tables))


@dataclass(frozen=True)
class Plan:
    """How to learn and when to stop; `patience` is None without held-out samples."""

    C: float
    rho: float | None
    tol: float
    max_iter: int
    evaluate_every: int
    patience: int | None
    average: bool
    method: str
    n_parts: int
    seed: int


@dataclass(frozen=True, eq=False)
class Learnt:
    """The weights that are kept, and how they were found.

    `ended_early`: the fit ended as the user wanted, by held-out samples or without evaluation, so
    that there is nothing to warn of.
    """

    weights: Weights
    solution: Solution
    held_out: float | None
    ended_early: bool


@dataclass(frozen=True, eq=False)
class _Candidate:
    """Weights after a pass; NaN for what was not looked at."""

    n_iter: int
    weights: Weights | None = None
    primal: float = math.nan
    held_out: float = math.nan

    def is_better_than(self, other: _Candidate | None) -> bool:
        if self.weights is None:
            return False
        if other is None:
            return True
        if not math.isnan(other.held_out):
            return self.held_out > other.held_out
        return self.primal < other.primal


@dataclass(eq=False)
class _Run:
    """A fit while it goes on."""

    problem: Problem
    plan: Plan
    primal: Callable[[Weights], float]
    held_out: Callable[[Weights], float] | None
    progress: Progress
    learner: Any
    bound: float = -math.inf  # the best lower bound so far
    best: _Candidate | None = None
    rows: list[dict[str, float]] = field(default_factory=list)
    start: float = field(default_factory=time.perf_counter)

    def step(self, n_iter: int) -> _Candidate:
        """One pass, and a look at what came of it; weights are fetched only to be looked at."""
        report = self.learner.run_pass(self.progress.core)
        self.progress.add(work=report["work"])
        found = _Candidate(n_iter)
        bound = math.nan
        if not self.progress.stop_requested:
            is_due = self.is_due(n_iter)
            if is_due or self.held_out is not None:
                found = replace(found, weights=self.weights())
            if self.held_out is not None:
                found = replace(found, held_out=self.ask(self.held_out, found))
            if is_due:
                bound = self.update_bound()
                found = self.lower(found)
        self.note(report, found, bound)
        return found

    def is_due(self, n_iter: int) -> bool:
        """Whether the objective is computed after this pass."""
        every = self.plan.evaluate_every
        return every > 0 and (n_iter % every == 0 or n_iter == self.plan.max_iter)

    def lower(self, found: _Candidate) -> _Candidate:
        """With its objective; without held-out samples the mean or the last, whichever is lower."""
        found = replace(found, primal=self.ask(self.primal, found))
        if not self.plan.average or self.held_out is not None:
            return found
        last = replace(found, weights=self.weights(is_mean=False))
        last = replace(last, primal=self.ask(self.primal, last))
        return last if last.is_better_than(found) else found

    def weights(self, is_mean: bool | None = None) -> Weights:
        """Those of the learner, as arrays of their own; the mean over passes by the plan."""
        is_mean = self.plan.average if is_mean is None else is_mean
        indptr, indices, values = self.learner.weights(is_mean)
        n_labels = self.problem.n_labels
        W = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_labels))
        return Weights(W, self.problem.split_tables(self.learner.tables(is_mean)))

    def ask(self, judge: Callable[[Weights], float], found: _Candidate) -> float:
        """What `judge` says of the weights; NaN if a stop cut its work short."""
        assert found.weights is not None
        answer = judge(found.weights)
        return math.nan if self.progress.stop_requested else answer

    def update_bound(self) -> float:
        bound = float(self.learner.feasible_dual())
        self.bound = max(self.bound, bound)
        return bound

    def certificate(self, found: _Candidate) -> float:
        """How far the objective can be above the optimum, as a share of it."""
        if math.isnan(found.primal):
            return math.nan
        return max(0.0, found.primal - self.bound) / max(found.primal, 1e-300)

    def note(self, report: dict[str, float], found: _Candidate, bound: float) -> None:
        """A row of the trace, and figures for whoever watches."""
        certificate = self.certificate(found)
        row = {
            "seconds": time.perf_counter() - self.start,
            "primal": found.primal,
            "dual": self.learner.dual_value(),
            "bound": bound,
            "certificate": certificate,
            "infeasibility": report["primal_residual"],
            "n_labels": report["n_labels"],
            "n_states": report["n_states"],
            "work": self.progress.work,
            "rho": report["rho"],
        }
        if self.held_out is not None:
            row["held_out"] = found.held_out
        self.rows.append(row)
        self.progress.tell(found.n_iter, nnz_dual=int(report["n_labels"]))
        if found.weights is not None:
            self.progress.tell(nnz_primal=found.weights.W.nnz)
        if not math.isnan(certificate):
            self.progress.tell(objective=found.primal, gap=certificate * found.primal)


def learn(
    problem: Problem,
    plan: Plan,
    primal: Callable[[Weights], float],
    held_out: Callable[[Weights], float] | None,
    progress: Progress,
) -> Learnt:
    """Algorithm 1 with algorithm 4 or 2 inside, until one of the rules of `plan` ends it.

    Parameters
    ----------
    problem : Problem
    plan : Plan
    primal : callable
        Objective of given weights, by exact inference; an upper bound where that cannot be had.
    held_out : callable or None
        Share of right labels on held-out samples.
    progress : Progress
        Told about each pass; may ask to stop.

    Returns
    -------
    Learnt
        Its weights are those of the pass that was best on held-out samples; without them, those
        of least objective among the evaluated ones, and the last if none was.
    """
    learner = problem.learner(plan)
    run = _Run(problem, plan, primal, held_out, progress, learner)
    ended_early = False
    for n_iter in range(1, plan.max_iter + 1):
        found = run.step(n_iter)
        if found.is_better_than(run.best):
            run.best = found
        if progress.stop_requested or run.certificate(found) <= plan.tol:
            ended_early = held_out is not None  # the best pass may have been another one
            break
        if run.best is not None and n_iter - run.best.n_iter >= (plan.patience or math.inf):
            ended_early = True
            break
    return _finish(run, found, ended_early)


def _finish(run: _Run, last: _Candidate, ended_early: bool) -> Learnt:
    best, plan, was_stopped = run.best, run.plan, run.progress.stop_requested
    if best is None or best.weights is None or (was_stopped and run.held_out is None):
        best = last if last.weights is not None else replace(last, weights=run.weights())
    if plan.evaluate_every > 0 and math.isnan(best.primal) and not was_stopped:
        run.update_bound()
        best = replace(best, primal=run.ask(run.primal, best))
    assert best.weights is not None
    certificate = run.certificate(best)
    status = Status.MAX_ITER
    if certificate <= plan.tol:
        status = Status.CONVERGED
    elif was_stopped:
        status = Status.STOPPED
        ended_early = False
    solution = Solution(
        status=status,
        objective=best.primal,
        certificate=math.inf if math.isnan(certificate) else certificate,
        n_iter=len(run.rows),
        trace=Trace({name: [row[name] for row in run.rows] for name in run.rows[0]}),
    )
    held_out = None if run.held_out is None else best.held_out
    is_blind = plan.evaluate_every == 0 and not was_stopped
    return Learnt(best.weights, solution, held_out, ended_early or is_blind)
