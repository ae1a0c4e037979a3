"""What is learned from: rows with numbers or with classes, as one problem for each output."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.linear.multinomial import MultinomialProblem, largest_joint_l1, solve_joint
from sublearn.optim import concave
from sublearn.optim.concave import ConcavePenalty
from sublearn.optim.kinked import largest_l1, solve
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.linear_problem import LinearProblem, Penalty, SparsePenalty, predict_rows
from sublearn.optim.linear_solve import LinearSolution, SolverSettings
from sublearn.optim.row_losses import Logistic, Loss
from sublearn.trace import Trace
from sublearn.typing import Matrix

__all__ = [
    "ClassTargets",
    "NumberTargets",
    "RowNumbers",
    "Targets",
    "join_traces",
    "log_probabilities",
]

_Targets = TypeVar("_Targets", bound="Targets")


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """What `fit` gets for each row beside features and targets.

    Parameters
    ----------
    weights : ndarray of float64
        Row weights of any sum; rows of weight 0 are in no problem.
    offsets : ndarray of float64 or None
        What is added to each row's prediction.
    """

    weights: np.ndarray
    offsets: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Targets(abc.ABC):
    """Rows with targets and weights, and how to learn from them.

    Parameters
    ----------
    X : csc_matrix or ndarray in Fortran order
        Features.
    y : ndarray
        Numbers, or positions of classes.
    rows : RowNumbers
        Weights and offsets of the rows.
    fit_intercept : bool
        Whether there are intercepts.
    penalty : SparsePenalty
        Of the weights of each output.
    settings : SolverSettings
        Of each solve.
    """

    X: Matrix
    y: np.ndarray
    rows: RowNumbers
    fit_intercept: bool
    penalty: SparsePenalty
    settings: SolverSettings

    @cached_property
    def weights(self) -> np.ndarray:
        """Row weights of sum 1."""
        scaled = self.rows.weights / self.rows.weights.max()  # a sum of huge ones could overflow
        return scaled / scaled.sum()

    @property
    def offsets(self) -> np.ndarray | None:
        """What is added to each row's prediction."""
        return self.rows.offsets

    def take(self: _Targets, rows: np.ndarray, settings: SolverSettings | None = None) -> _Targets:
        """Some of the rows, to be learned from with these settings or the same."""
        offsets = None if self.offsets is None else self.offsets[rows]
        return replace(
            self, X=as_columns(self.X[rows]), y=self.y[rows],
            rows=RowNumbers(self.weights[rows], offsets), settings=settings or self.settings,
        )  # fmt: skip

    @cached_property
    def weighty(self) -> Targets:
        """The rows of positive weight, or these targets if all have one."""
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def has_all_classes(self, rows: np.ndarray) -> bool:
        """Whether some of the rows are enough to learn from."""
        return True

    def problem(self, y: np.ndarray, loss: Loss) -> LinearProblem:
        """The problem of these rows for one output."""
        return LinearProblem(self.X, y, self.weights, loss, self.fit_intercept, self.offsets)

    @cached_property
    @abc.abstractmethod
    def problems(self) -> list[LinearProblem]:
        """One for each output."""

    @property
    def is_joint(self) -> bool:
        """Whether all outputs are one problem, so that each solution has its figures."""
        return False

    @property
    def n_outputs(self) -> int:
        """Rows of the weights."""
        return len(self.problems)

    @property
    def n_solves(self) -> int:
        """Problems to solve for each l1."""
        return 1 if self.is_joint else self.n_outputs

    def largest_l1(self) -> float:
        """The least l1 for which the penalised weights of every output are 0."""
        return max(largest_l1(one, self.penalty, self.settings) for one in self.problems)

    @abc.abstractmethod
    def loss_of(self, z: np.ndarray) -> float:
        """Mean loss of the rows for predictions of shape (n_rows, n_outputs)."""

    def solve(
        self, l1: float, progress: Progress, inits: list[LinearSolution] | None = None
    ) -> list[LinearSolution]:
        """A solution for each output, several at a time."""
        problems, penalty = self.problems, self.penalty
        n_at_once, inner = self.settings.shared_by(len(problems))

        def solve_one(k: int) -> LinearSolution:
            init = None if inits is None else inits[k]
            if isinstance(penalty, ConcavePenalty):
                return concave.solve(problems[k], penalty, l1, inner, progress, init)
            return solve(problems[k], penalty, l1, inner, progress, init)

        return map_blocks(solve_one, range(len(problems)), n_at_once, hints=progress.hints())

    def predictions(self, solutions: list[LinearSolution]) -> np.ndarray:
        """z of shape (n_rows, n_outputs)."""
        z = np.column_stack([predict_rows(self.X, s.x, s.intercept) for s in solutions])
        return z if self.offsets is None else z + self.offsets[:, None]


@dataclass(frozen=True, eq=False)
class NumberTargets(Targets):
    """Rows with a number each."""

    loss: Loss

    @cached_property
    def problems(self) -> list[LinearProblem]:
        """The one problem."""
        return [self.weighty.problem(self.weighty.y, self.loss)]

    def loss_of(self, z: np.ndarray) -> float:
        """Mean loss of the rows."""
        counts = self.weights > 0  # a loss may be infinite
        return float(self.weights[counts] @ self.loss.value(z[counts, 0], self.y[counts]))


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """Rows with the position of a class each; two classes are one output, more are one each."""

    n_classes: int
    multinomial: bool

    @cached_property
    def problems(self) -> list[LinearProblem]:
        """The second class against the first, or each class against all others."""
        outputs = [1] if self.n_classes == 2 else range(self.n_classes)
        return [self._against_rest(k) for k in outputs]

    def _against_rest(self, k: int) -> LinearProblem:
        rows = self.weighty
        return rows.problem(np.where(rows.y == k, 1.0, -1.0), Logistic())

    @cached_property
    def joint_problem(self) -> MultinomialProblem:
        """All classes in one."""
        rows = self.weighty
        return MultinomialProblem(rows.X, rows.y, rows.weights, self.n_classes, self.fit_intercept)

    @property
    def is_joint(self) -> bool:
        """Whether there are more than two classes, learned together."""
        return self.n_classes > 2 and self.multinomial

    @property
    def n_outputs(self) -> int:
        """One for two classes, else one for each."""
        return 1 if self.n_classes == 2 else self.n_classes

    def largest_l1(self) -> float:
        """The least l1 for which all penalised weights are 0."""
        if self.is_joint:
            assert isinstance(self.penalty, Penalty)
            return largest_joint_l1(self.joint_problem, self.penalty, self.settings)
        return super().largest_l1()

    def has_all_classes(self, rows: np.ndarray) -> bool:
        """Whether rows of positive weight of every class are among `rows`."""
        rows = np.asarray(rows)
        counts = np.bincount(self.y[rows], self.weights[rows] > 0, minlength=self.n_classes)
        return bool((counts > 0).all())

    def solve(
        self, l1: float, progress: Progress, inits: list[LinearSolution] | None = None
    ) -> list[LinearSolution]:
        """A solution for each output."""
        if not self.is_joint:
            return super().solve(l1, progress, inits)
        problem, penalty, settings = self.joint_problem, self.penalty, self.settings
        assert isinstance(penalty, Penalty)
        return solve_joint(problem, penalty, l1, settings, progress, inits)

    def loss_of(self, z: np.ndarray) -> float:
        """Mean of minus the log probabilities of the right classes."""
        right = log_probabilities(z, self.multinomial)[np.arange(len(self.y)), self.y]
        return -float(self.weights @ right)


def log_probabilities(z: np.ndarray, multinomial: bool) -> np.ndarray:
    """Logarithms of probabilities, of shape (n_rows, n_classes), from scores of the outputs.

    The softmax of the scores, or each class's own probability divided by the sum of all.
    """
    if z.shape[1] == 1:
        return np.column_stack([log_expit(-z[:, 0]), log_expit(z[:, 0])])
    if multinomial:
        return log_softmax(z, axis=1)
    own = log_expit(z)
    return own - logsumexp(own, axis=1, keepdims=True)


def join_traces(traces: list[Trace]) -> Trace:
    """The rows of all outputs; with several, a column says whose a row is."""
    if len(traces) == 1:
        return traces[0]
    columns = {
        name: np.concatenate([trace[name] for trace in traces]) for name in traces[0].columns
    }
    owners = np.repeat(np.arange(len(traces)), [len(trace) for trace in traces])
    return Trace(columns | {"output": owners})
