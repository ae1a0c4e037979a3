"""Passes of GDMM until the certificate, the limit, or held-out samples say that it is enough.

The core makes one pass at a time (cpp/include/sublearn/solvers/structured/gdmm.hpp). In between,
this file looks at the objective, at the dual bound and at held-out samples, and keeps the best
weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.fitting.held_out import patience_of
from sublearn.fitting.progress import Progress
from sublearn.structured.problem import Problem, Weights, split_tables
from sublearn.trace import Solution, Status, Trace
from sublearn.validation import Boolean, NonNegative, OneOf, OrNone, Positive, Rule, Settings

if TYPE_CHECKING:
    from sublearn.structured.model import StructuredModel

__all__ = ["Learnt", "Passes", "learn", "tol_of"]

#: The certificate that ends a fit of which no `tol` was asked. With `C=1` and named features 30
#: passes reach about 0.3 and 100 about 0.02, and label the training data equally well: it ends
#: the easy fits early, and is no promise.
_TOL = 0.01

#: Which factors a pass visits, by its name in the core.
_VISITS = {"all": "ALL", "violating": "VIOLATING", "most_violating": "MOST_VIOLATING"}

#: The solver of the core: by the precision of the features, and for pairs or larger factors.
Learner: TypeAlias = (
    "_core.GdmmLearner32 | _core.GdmmLearner64"
    " | _core.GdmmHighOrderLearner32 | _core.GdmmHighOrderLearner64"
)


@dataclass(frozen=True)
class Passes(Settings):
    r"""How the passes of a fit of :class:`ChainSVM` or :class:`StructuralSVM` go.

    The optimum is the same whatever they are.

    Parameters
    ----------
    evaluate_every : int, default=5
        Passes from one computation of the objective and its bound to the next; it takes exact
        decoding of all samples, as long as some passes. After the last pass it is computed in any
        case. 0 never computes it: the fit then takes `max_iter` passes.
    rho : float or None, default=None
        Penalty on disagreement of nodes and edges, and step of the messages. Larger values make
        them agree sooner and the weights follow the data later. None is 0.3 C times the mean of
        :math:`|x_t|^2`. In the paper: :math:`\rho = \eta`.
    label_parts : int, default=1
        Parts into which the labels are cut; a visit to a node searches one of them, drawn at
        random, beside the active labels, (21) of the paper. More parts make passes cheaper and more
        of them necessary: of use with thousands of labels whose features have weights for most of
        them. Where edges have features, a visit to one searches a part of the labels of its first
        node.
    eta : float or None, default=None
        Step of the messages, (13) of the paper. None is `rho`.
    factors : {"all", "violating", "most_violating"}, default="all"
        Which edges a pass visits. "violating": those whose labels were once beaten by others, and
        all that begin to be; the others are known to stay as they are. The optimum and nearly the
        way to it are the same, and a pass costs what violates: of use where most edges are easy,
        and many. "most_violating": in each pass only the one that violates most begins in a
        sample, as in algorithm 3 of the paper.
    factor_parts : int, default=1
        Parts into which the nodes and edges of a sample that are not active are cut; a pass
        searches one of them, drawn at random. More than 1 needs `factors` other than "all".
    full_search : bool, default=False
        Read all states of an edge in each visit instead of keeping them in heaps: what the paper
        calls GDMM without sublinear oracles. For comparisons.
    """

    evaluate_every: int = 5
    rho: float | None = None
    label_parts: int = 1
    eta: float | None = None
    factors: str = "all"
    factor_parts: int = 1
    full_search: bool = False

    _rules: ClassVar[dict[str, Rule]] = {
        "evaluate_every": NonNegative(int),
        "rho": OrNone(Positive(float)),
        "label_parts": Positive(int),
        "eta": OrNone(Positive(float)),
        "factors": OneOf(*_VISITS),
        "factor_parts": Positive(int),
        "full_search": Boolean(),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor_parts > 1 and self.factors == "all":
            raise ParameterError(
                f"Passes.factor_parts must be 1 where factors is 'all', got {self.factor_parts}"
            )


@dataclass(frozen=True, eq=False)
class Learnt:
    """The weights that are kept, and how they were found.

    `ended_early`: the fit ended as the user wanted, by held-out samples, or by its passes without
    evaluation or without a `tol`, so that there is nothing to warn of.
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

    model: StructuredModel
    problem: Problem
    held_out: Problem | None
    progress: Progress
    learner: Learner
    of_truth: Weights
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
                found = replace(found, held_out=self.ask(self.accuracy, found))
            if is_due:
                bound = self.update_bound()
                found = self.lower(found)
        self.note(report, found, bound)
        return found

    def is_due(self, n_iter: int) -> bool:
        """Whether the objective is computed after this pass."""
        every = Passes.of(self.model.passes).evaluate_every
        return every > 0 and (n_iter % every == 0 or n_iter == self.model.max_iter)

    def lower(self, found: _Candidate) -> _Candidate:
        """With its objective; without held-out samples the mean or the last, whichever is lower."""
        found = replace(found, primal=self.ask(self.primal, found))
        if not self.model.average or self.held_out is not None:
            return found
        last = replace(found, weights=self.weights(is_mean=False))
        last = replace(last, primal=self.ask(self.primal, last))
        return last if last.is_better_than(found) else found

    def weights(self, is_mean: bool | None = None) -> Weights:
        """Those of the learner, as arrays of their own; by default the mean if the model is one."""
        is_mean = bool(self.model.average if is_mean is None else is_mean)
        indptr, indices, values = self.learner.weights(is_mean)
        n_labels = self.problem.n_labels
        W = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_labels))
        return Weights(W, split_tables(self.learner.tables(is_mean), self.problem.table_shapes))

    def ask(self, judge: Callable[[Weights], float], found: _Candidate) -> float:
        """What `judge` says of the weights; NaN if a stop cut its work short."""
        assert found.weights is not None
        answer = judge(found.weights)
        return math.nan if self.progress.stop_requested else answer

    def primal(self, weights: Weights) -> float:
        """The objective, by exact inference; an upper bound where that cannot be had."""
        worst = self.model._worst_score(self.problem, weights, self.progress.core)
        loss = max(0.0, worst - weights.dot(self.of_truth))
        return 0.5 * weights.squared_norm() + self.model.C * loss

    def accuracy(self, weights: Weights) -> float:
        """Share of right labels on held-out samples."""
        assert self.held_out is not None
        return self.model._share_right(self.held_out, weights, self.progress.core)

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
            "n_factors": report["n_factors"],
            "n_visits": report["n_visits"],
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


def tol_of(tol: float | None) -> float:
    """The certificate at which a fit ends."""
    return _TOL if tol is None else float(tol)


def _learner(model: StructuredModel, problem: Problem, seed: int) -> Learner:
    """The solver of the core at its start, where all weights are zero."""
    settings, passes = _core.GdmmLearnSettings(), Passes.of(model.passes)
    settings.C, settings.rho, settings.seed = float(model.C), float(passes.rho or 0.0), seed
    settings.n_parts, settings.eta = int(passes.label_parts), float(passes.eta or 0.0)
    settings.visits = getattr(_core.FactorVisits, _VISITS[passes.factors])
    settings.n_factor_parts = int(passes.factor_parts)
    settings.has_full_search = bool(passes.full_search)
    settings.uses_away_steps = model.solver == "frank_wolfe"
    kind = "GdmmLearner" if max(problem.arity, default=2) == 2 else "GdmmHighOrderLearner"
    make = getattr(_core, f"{kind}{8 * problem.X.dtype.itemsize}")
    X, arity = problem.X, np.array(problem.arity, dtype=np.int32)
    indptr, indices = (ids.astype(np.int32, copy=False) for ids in (X.indptr, X.indices))
    filled = problem.n_nodes > 0
    kept = np.concatenate([[True], filled])  # empty samples are not visited
    nodes = (problem.truth, problem.node_begin[kept])
    factors = (problem.factor_begin[kept], problem.scope, problem.table, arity)
    weight = None if problem.weight is None else problem.weight[filled]
    features = width = None
    if (Z := problem.features) is not None:
        features = (Z.indptr.astype(np.int32), Z.indices.astype(np.int32), Z.data)
        width = np.array(problem.width, dtype=np.int32)
    costs = None if problem.costs is None else np.ascontiguousarray(problem.costs).reshape(-1)
    return make((indptr, indices, X.data), X.shape[1], nodes, problem.n_labels, factors,
                problem.scale, weight, settings, features, width, costs)  # fmt: skip


def learn(
    model: StructuredModel,
    problem: Problem,
    held_out: Problem | None,
    seed: int,
    progress: Progress,
) -> Learnt:
    """Algorithm 1 with algorithm 4 or 2 inside, until one of the rules of `model` ends it.

    The weights are those of the pass that was best on held-out samples; without them, those of
    least objective among the evaluated ones, and the last if none was.
    """
    learner = _learner(model, problem, seed)
    run = _Run(model, problem, held_out, progress, learner, problem.features_of_truth())
    patience = math.inf if held_out is None else patience_of(model.early_stopping)
    ended_early = False
    for n_iter in range(1, int(model.max_iter) + 1):
        found = run.step(n_iter)
        if found.is_better_than(run.best):
            run.best = found
        if progress.stop_requested or run.certificate(found) <= tol_of(model.tol):
            ended_early = held_out is not None  # the best pass may have been another one
            break
        if run.best is not None and n_iter - run.best.n_iter >= patience:
            ended_early = True
            break
    return _finish(run, found, ended_early)


def _finish(run: _Run, last: _Candidate, ended_early: bool) -> Learnt:
    best, was_stopped = run.best, run.progress.stop_requested
    is_evaluated = Passes.of(run.model.passes).evaluate_every > 0
    if best is None or best.weights is None or (was_stopped and run.held_out is None):
        best = last if last.weights is not None else replace(last, weights=run.weights())
    if is_evaluated and math.isnan(best.primal) and not was_stopped:
        run.update_bound()
        best = replace(best, primal=run.ask(run.primal, best))
    assert best.weights is not None
    certificate = run.certificate(best)
    status = Status.MAX_ITER
    if certificate <= tol_of(run.model.tol):
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
    has_no_goal = run.model.tol is None or not is_evaluated
    return Learnt(
        best.weights, solution, held_out, ended_early or (has_no_goal and not was_stopped)
    )
