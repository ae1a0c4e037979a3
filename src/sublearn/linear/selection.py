"""Choosing l1 by cross-validation along a path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from sublearn.errors import ParameterError
from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.linear.targets import ClassTargets, Targets
from sublearn.optim.linear_solve import LinearSolution, SolverSettings
from sublearn.trace import frames_of_ours
from sublearn.typing import Matrix
from sublearn.validation import Interval, Rule, Settings

__all__ = [
    "BY_FOLDS", "CrossValidation", "Cv", "FoldScores", "Folds", "FoldsLike", "FoldsOrMore",
    "Scorer", "choose_l1", "follow_grid", "held_out_loss", "make_folds", "walk_path",
    "warn_of_the_least_l1",
]  # fmt: skip

#: Values of `l1` that leave the choice to folds: the best mean score, or the largest l1 whose mean
#: score is within one standard error of the best.
BY_FOLDS = ("cv", "cv_1se")
_FOLD_SEED = 0  # the same rows in the same folds in every fit: a splitter makes others

Fold = tuple[np.ndarray, np.ndarray]
#: Held-out rows and the solutions of a training part to a number, larger is better.
HeldOutScore: TypeAlias = "Callable[[Targets, list[LinearSolution]], float]"
#: As scikit-learn's scorers: `scorer(estimator, X, y)`, larger is better.
Scorer: TypeAlias = "Callable[[BaseEstimator, Matrix, np.ndarray], float]"


@runtime_checkable
class Splitter(Protocol):
    """What scikit-learn's splitters do."""

    def split(
        self, X: Matrix, y: np.ndarray | None = None, groups: np.ndarray | None = None, /
    ) -> Iterable[Fold]:
        """Pairs of training and held-out rows."""


#: What makes folds.
FoldsLike: TypeAlias = "int | Splitter | Iterable[Fold]"


class Folds(Rule):
    """A number of folds, or what makes them."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)):
            return False
        return isinstance(value, (Splitter, Iterable)) or Interval(int, 2, np.inf).accepts(value)

    def __str__(self) -> str:
        return "an integer of at least 2, a splitter or pairs of training and held-out rows"


class _Scoring(Rule):
    """None, the name of a scorer of scikit-learn, or a scorer."""

    def accepts(self, value: object) -> bool:
        return value is None or callable(value) or value in get_scorer_names()

    def __str__(self) -> str:
        return "None, a scorer or one of sklearn.metrics.get_scorer_names()"


@dataclass(frozen=True)
class CrossValidation(Settings):
    """How ``l1="cv"`` scores the values of l1.

    Parameters
    ----------
    folds : int, splitter or iterable, default=5
        A number of shuffled folds, the same in every fit, stratified by class; an object with a
        method `split`; or pairs of training and held-out rows. Rows of a group, where `fit` gets
        `groups`, are in one fold.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's, or its name, asked about the held-out rows of each fold: larger
        is better. None is minus the loss that the estimator minimises.
    """

    folds: FoldsLike = 5
    scoring: str | Scorer | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {"folds": Folds(), "scoring": _Scoring()}


#: What `cv` may be.
Cv: TypeAlias = "FoldsLike | CrossValidation"


class FoldsOrMore(Folds):
    """`cv` of linear models."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return isinstance(value, CrossValidation) or super().accepts(value)

    def __str__(self) -> str:
        return f"{Folds()} or a CrossValidation"


def walk_path(
    targets: Targets,
    l1s: np.ndarray,
    progress: Progress,
    last: list[LinearSolution] | None = None,
) -> Iterator[list[LinearSolution]]:
    """Solutions for each of `l1s`, started from those before; ends early if asked to stop."""
    for l1 in l1s:
        last = targets.solve(float(l1), progress, last)
        yield last
        if progress.stop_requested:
            return


def make_folds(
    targets: Targets, cv: FoldsLike, name: str, groups: np.ndarray | None = None
) -> list[Fold]:
    """Pairs of training rows and held-out rows; rows of one group are on one side."""
    if isinstance(cv, (int, np.integer)):
        return _shuffled_folds(targets, int(cv), name, groups)
    pairs = cv.split(targets.X, targets.y, groups) if isinstance(cv, Splitter) else cv
    folds = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
    if not folds or not all(targets.weights[rows].any() for fold in folds for rows in fold):
        raise ParameterError(f"{name}.cv must give folds with rows on both sides, got empty ones")
    if not all(targets.has_all_classes(train) for train, _ in folds):
        raise ParameterError(f"{name}.cv must leave every class in the training rows")
    return folds


def _shuffled_folds(
    targets: Targets, n_folds: int, name: str, groups: np.ndarray | None
) -> list[Fold]:
    rows = np.flatnonzero(targets.weights)
    y = targets.y[rows]
    is_classes = isinstance(targets, ClassTargets)
    most = int(np.bincount(y).min()) if is_classes else len(y)
    what = "rows of the smallest class" if is_classes else "samples"
    if groups is not None:
        groups = groups[rows]
        most, what = min(most, len(np.unique(groups))), f"{what} and of groups"
    if n_folds > most:
        raise ParameterError(
            f"{name}.cv must be at most the number of {what} ({most}), got {n_folds}"
        )
    kinds = (StratifiedKFold, StratifiedGroupKFold) if is_classes else (KFold, GroupKFold)
    splitter = kinds[groups is not None](n_folds, shuffle=True, random_state=_FOLD_SEED)
    pairs = [(rows[train], rows[test]) for train, test in splitter.split(rows, y, groups)]
    if not all(targets.has_all_classes(train) for train, _ in pairs):
        raise ParameterError(f"{name}.cv must leave every class in the training rows")
    return pairs


def held_out_loss(test: Targets, found: list[LinearSolution]) -> float:
    """Minus the mean loss of held-out rows."""
    return -test.loss_of(test.predictions(found))


class FoldScores:
    """Held-out scores of folds along falling values of l1, which may be asked to go on.

    Folds share the threads: each fold's own numbers do not depend on how many there are.
    """

    def __init__(
        self, targets: Targets, folds: list[Fold], progress: Progress,
        score: HeldOutScore = held_out_loss,
    ):  # fmt: skip
        self._targets, self._folds, self._progress, self._score = targets, folds, progress, score
        self._last: list[list[LinearSolution] | None] = [None] * len(folds)

    def __call__(self, l1s: np.ndarray) -> np.ndarray:
        """Scores of shape (n_l1s, n_folds); NaN if not reached."""
        n_at_once, inner = self._targets.settings.shared_by(len(self._folds))
        hints = self._progress.hints(n_solves=len(l1s) * self._targets.n_solves)
        found = map_blocks(
            lambda k: self._follow(k, l1s, inner), range(len(self._folds)), n_at_once, hints=hints
        )
        self._last = [last for _, last in found]
        return np.array([scores for scores, _ in found]).T

    def _follow(
        self, k: int, l1s: np.ndarray, settings: SolverSettings
    ) -> tuple[np.ndarray, list[LinearSolution] | None]:
        scores, last = np.full(len(l1s), np.nan), self._last[k]
        train = self._targets.take(self._folds[k][0], settings)
        test = self._targets.take(self._folds[k][1])
        for i, found in enumerate(walk_path(train, l1s, self._progress, last)):
            if self._progress.stop_requested:
                break
            scores[i], last = self._score(test, found), found
        return scores, last


def follow_grid(
    score: Callable[[np.ndarray], np.ndarray], l1s: np.ndarray, is_given: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Values of l1 and their scores; a grid that was not given goes on while its end is the best.

    It goes on by half its length at a time, in the same ratio, and at most as far again, in ratio,
    as it is long.
    """
    n, grid, scores = len(l1s), l1s, score(l1s)
    while not is_given and len(grid) < 2 * n - 1 and is_least_best(scores):
        more = grid[-1] * (l1s[1] / l1s[0]) ** np.arange(1, min(n // 2, 2 * n - 1 - len(grid)) + 1)
        grid, scores = np.append(grid, more), np.vstack([scores, score(more)])
    return grid, scores


def is_least_best(scores: np.ndarray) -> bool:
    """Whether the last of several values of l1 has the best mean score; False if any is missing."""
    means = scores.mean(axis=1)
    return bool(len(means) > 1 and not np.isnan(means).any() and means.argmax() == len(means) - 1)


def choose_l1(scores: np.ndarray, rule: str) -> int:
    """Position of the l1 that `rule` chooses; the first if none has all its scores.

    Rows of `scores` belong to values of l1 from the largest on, columns to folds.
    """
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        return 0
    best = int(np.nanargmax(means))
    if rule != "cv_1se" or scores.shape[1] < 2 or not np.isfinite(means[best]):
        return best
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])


def warn_of_the_least_l1(name: str, l1s: np.ndarray, scores: np.ndarray) -> None:
    """Say so if the least of several values is the best: a smaller one may be better still."""
    if not is_least_best(scores):
        return
    warnings.warn(
        f"{name}: the best of the {len(l1s)} values of l1 is the least, {l1s[-1]:.3g}, and a "
        f"smaller one may be better; set l1s to values that go on below it, for instance "
        f"numpy.geomspace({l1s[0]:.3g}, {0.01 * l1s[-1]:.3g}, {len(l1s)})",
        UserWarning,
        stacklevel=frames_of_ours() + 1,
    )
