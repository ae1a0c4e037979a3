"""The passes of a fit with weights for pairs of labels: run, evaluated, and the best kept."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.fitting.progress import Progress
from sublearn.trace import Solution, Status, Trace

__all__ = ["Learner", "PairWeights", "run_passes"]

#: The solver of the core, by the precision of the features.
Learner: TypeAlias = "_core.PairwiseLearnerFloat32 | _core.PairwiseLearnerFloat64"

_COLUMNS = (
    "seconds", "objective", "dual", "certificate", "nnz_primal", "nnz_dual", "work", "evaluated",
    "active_labels", "active_pairs",
)  # fmt: skip


#: With more labels than this, the first passes are without pairs, which cost a fraction, and let
#: most labels into their rows. With fewer, a fit from zero takes as long.
_MANY_LABELS = 200
_ALONE = 0.02  # relative gap of labels alone at which pairs join


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Weights of features by label, and symmetric weights of pairs of labels."""

    features: sp.csr_matrix
    pairs: sp.csr_matrix

    @property
    def nnz(self) -> int:
        """Weights that are not zero, each pair counted once."""
        return int(self.features.nnz + self.pairs.nnz // 2)


def run_passes(
    learner: Learner,
    n_labels: int,
    has_pairs: bool,
    tol: float,
    max_iter: int,
    evaluate_every: int,
    progress: Progress,
) -> tuple[PairWeights, Solution]:
    """Pass after pass until the certificate is at most `tol`; the weights of least objective.

    With pairs of many labels the first passes are without pairs, which is much cheaper, until they
    are nearly optimal: most labels are then in the active sets of their rows, and the fit goes on
    from there.

    Objective and dual are known at evaluated passes, and stand in the rows between them.
    """
    best, objective, dual = None, math.nan, 0.0
    rows: list[tuple[float, ...]] = []
    start = time.perf_counter()
    status = Status.MAX_ITER
    is_alone = has_pairs and n_labels > _MANY_LABELS and max_iter > 1
    is_nearly_optimal = False
    if is_alone:
        learner.leave_pairs_out()
    for n_iter in range(1, max_iter + 1):
        report = learner.run_pass(progress.core)
        is_due = n_iter % evaluate_every == 0 or n_iter == max_iter
        if is_due and not progress.stop_requested:
            primal, lower = learner.certify(progress.core)
            dual = max(dual, 0.0 if is_alone else lower)
            if not (math.isnan(primal) or primal >= objective):  # which is NaN at first
                objective, best = primal, _weights(learner, n_labels)
            is_nearly_optimal = _relative_gap(primal, lower) <= _ALONE
        if is_alone and (is_nearly_optimal or 2 * n_iter >= max_iter):
            learner.join_pairs(progress.core)
            is_alone = False
        certificate = _relative_gap(objective, dual)
        progress.tell(n_iter, nnz_dual=report["n_labels"] + report["n_pairs"])
        progress.add(work=report["work"])
        if best is not None:
            progress.tell(objective=objective, gap=objective - dual, nnz_primal=best.nnz)
        rows.append((
            time.perf_counter() - start, objective, dual, certificate, progress.nnz_primal,
            progress.nnz_dual, progress.work, float(is_due), report["n_labels"], report["n_pairs"],
        ))  # fmt: skip
        if certificate <= tol or progress.stop_requested:
            status = Status.CONVERGED if certificate <= tol else Status.STOPPED
            break
    trace = Trace(dict(zip(_COLUMNS, np.array(rows).T, strict=True)))
    solution = Solution(status, objective, _relative_gap(objective, dual), len(rows), trace)
    return best or _weights(learner, n_labels), solution


def _relative_gap(objective: float, dual: float) -> float:
    """Infinite as long as no objective is known."""
    if math.isnan(objective):
        return math.inf
    return max(0.0, objective - dual) / objective if objective > 0 else 0.0


def _weights(learner: Learner, n_labels: int) -> PairWeights:
    return PairWeights(_csr(learner.weights(), n_labels), _csr(learner.pairs(), n_labels))


def _csr(arrays: tuple[np.ndarray, ...], n_columns: int) -> sp.csr_matrix:
    indptr, indices, values = arrays
    csr = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns))
    csr.has_sorted_indices = True
    return csr
