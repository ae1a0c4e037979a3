"""Choosing l1 by cross-validation along a path."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from sublearn.errors import ParameterError
from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.linear.targets import ClassTargets, Targets
from sublearn.optim.linear_solve import LinearSolution
from sublearn.trace import frames_of_ours
from sublearn.typing import Matrix
from sublearn.validation import Interval, Rule

__all__ = [
    "BY_FOLDS", "Cv", "Folds", "choose_l1", "make_folds", "score_folds", "walk_path",
    "warn_of_the_least_l1",
]  # fmt: skip

#: Values of `l1` that leave the choice to folds: the best mean score, or the largest l1 whose mean
#: score is within one standard error of the best.
BY_FOLDS = ("cv", "cv_1se")
_FOLD_SEED = 0  # the same rows in the same folds in every fit: a splitter makes others

Fold = tuple[np.ndarray, np.ndarray]


@runtime_checkable
class Splitter(Protocol):
    """What scikit-learn's splitters do."""

    def split(self, X: Matrix, y: np.ndarray, /) -> Iterable[Fold]:
        """Pairs of training and held-out rows."""


#: What `cv` may be.
Cv: TypeAlias = "int | Splitter | Iterable[Fold]"


class Folds(Rule):
    """`cv`: a number of folds, or what makes them."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (str, bytes)):
            return False
        return isinstance(value, (Splitter, Iterable)) or Interval(int, 2, np.inf).accepts(value)

    def __str__(self) -> str:
        return "an integer of at least 2, a splitter or pairs of training and held-out rows"


def walk_path(
    targets: Targets, l1s: np.ndarray, progress: Progress
) -> Iterator[list[LinearSolution]]:
    """Solutions for each of `l1s`, started from those before; ends early if asked to stop."""
    last = None
    for l1 in l1s:
        last = targets.solve(float(l1), progress, last)
        yield last
        if progress.stop_requested:
            return


def make_folds(targets: Targets, cv: Cv, name: str) -> list[Fold]:
    """Pairs of training rows and held-out rows."""
    if isinstance(cv, (int, np.integer)):
        return _shuffled_folds(targets, int(cv), name)
    pairs = cv.split(targets.X, targets.y) if isinstance(cv, Splitter) else cv
    folds = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
    if not folds or not all(targets.weights[rows].any() for fold in folds for rows in fold):
        raise ParameterError(f"{name}.cv must give folds with rows on both sides, got empty ones")
    if not all(targets.has_all_classes(train) for train, _ in folds):
        raise ParameterError(f"{name}.cv must leave every class in the training rows")
    return folds


def _shuffled_folds(targets: Targets, n_folds: int, name: str) -> list[Fold]:
    rows = np.flatnonzero(targets.weights)
    y = targets.y[rows]
    is_classes = isinstance(targets, ClassTargets)
    most = int(np.bincount(y).min()) if is_classes else len(y)
    if n_folds > most:
        what = "rows of the smallest class" if is_classes else "samples"
        raise ParameterError(
            f"{name}.cv must be at most the number of {what} ({most}), got {n_folds}"
        )
    kind = StratifiedKFold if is_classes else KFold
    splitter = kind(n_folds, shuffle=True, random_state=_FOLD_SEED)
    return [(rows[train], rows[test]) for train, test in splitter.split(rows, y)]


def score_folds(
    targets: Targets, folds: list[Fold], l1s: np.ndarray, progress: Progress
) -> np.ndarray:
    """Minus the held-out loss of each l1 and fold, of shape (n_l1s, n_folds); NaN if not reached.

    Folds share the threads: each fold's own numbers do not depend on how many there are.
    """
    n_at_once, inner = targets.settings.shared_by(len(folds))

    def score(fold: Fold) -> np.ndarray:
        scores = np.full(len(l1s), np.nan)
        train, test = targets.take(fold[0], inner), targets.take(fold[1])
        for i, found in enumerate(walk_path(train, l1s, progress)):
            if progress.stop_requested:
                break
            scores[i] = -test.loss_of(test.predictions(found))
        return scores

    hints = progress.hints(n_solves=len(l1s) * targets.n_solves)
    return np.array(map_blocks(score, folds, n_at_once, hints=hints)).T


def choose_l1(scores: np.ndarray, rule: str) -> int:
    """Position of the l1 that `rule` of `BY_FOLDS` chooses; the first if none has all its scores.

    Rows of `scores` belong to values of l1 from the largest on, columns to folds.
    """
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        return 0
    best = int(np.nanargmax(means))
    if rule == "cv" or scores.shape[1] < 2 or not np.isfinite(means[best]):
        return best
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])


def warn_of_the_least_l1(name: str, l1s: np.ndarray, scores: np.ndarray) -> None:
    """Say so if the least of several values is the best: a smaller one may be better still."""
    means = scores.mean(axis=1)
    if len(l1s) < 2 or np.isnan(means).any() or means.argmax() < len(l1s) - 1:
        return
    warnings.warn(
        f"{name}: the best of the {len(l1s)} values of l1 is the least, {l1s[-1]:.3g}, and a "
        f"smaller one may be better; set l1s to values that go on below it, for instance "
        f"numpy.geomspace({l1s[0]:.3g}, {0.01 * l1s[-1]:.3g}, {len(l1s)})",
        UserWarning,
        stacklevel=frames_of_ours() + 1,
    )
