"""Choosing l1 by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from sublearn.errors import ParameterError
from sublearn.linear.path import largest_l1
from sublearn.linear.problem import Penalty
from sublearn.linear.progress import Progress, run_all
from sublearn.linear.solvers import LinearSolution, SolverSettings
from sublearn.linear.targets import ClassTargets, Targets
from sublearn.validation import as_seed
from sublearn.validation.values import is_int64

__all__ = ["choose_l1", "find_l1_max", "make_folds", "score_folds", "walk_path"]

Fold = tuple[np.ndarray, np.ndarray]


def find_l1_max(targets: Targets, penalty: Penalty, settings: SolverSettings) -> float:
    """The least l1 for which the penalised weights of every output are 0."""
    return max(largest_l1(problem, penalty, settings) for problem in targets.problems)


def walk_path(
    targets: Targets,
    penalty: Penalty,
    l1s: np.ndarray,
    settings: SolverSettings,
    progress: Progress,
) -> Iterator[list[LinearSolution]]:
    """Solutions for each of `l1s`, started from those before; ends early if asked to stop."""
    last = None
    for l1 in l1s:
        last = targets.solve(penalty, float(l1), settings, progress, last)
        yield last
        if progress.stop_requested:
            return


def make_folds(targets: Targets, cv: Any, random_state: Any, name: str) -> list[Fold]:
    """Pairs of training rows and held-out rows."""
    if not is_int64(cv):
        folds = [tuple(map(np.asarray, fold)) for fold in cv.split(targets.X, targets.y)]
        _refuse_poor_folds(targets, folds, name)
        return folds  # type: ignore[return-value]
    is_classes = isinstance(targets, ClassTargets)
    most = int(np.bincount(targets.y).min()) if is_classes else len(targets.y)
    if cv > most:
        what = "rows of the smallest class" if is_classes else "samples"
        raise ParameterError(f"{name}.cv must be at most the number of {what} ({most}), got {cv}")
    seed = as_seed(random_state) % 2**32
    make = StratifiedKFold if is_classes else KFold
    folds = make(int(cv), shuffle=True, random_state=seed).split(
        np.zeros(len(targets.y)), targets.y
    )
    return list(folds)


def _refuse_poor_folds(targets: Targets, folds: list[Any], name: str) -> None:
    if not folds or any(len(train) == 0 or len(test) == 0 for train, test in folds):
        raise ParameterError(f"{name}.cv must give folds with rows on both sides, got empty ones")
    if isinstance(targets, ClassTargets):
        for train, _ in folds:
            if len(np.unique(targets.y[train])) < targets.n_classes:
                raise ParameterError(f"{name}.cv must leave every class in the training rows")


def score_folds(
    targets: Targets,
    folds: list[Fold],
    penalty: Penalty,
    l1s: np.ndarray,
    settings: SolverSettings,
    progress: Progress,
) -> np.ndarray:
    """Minus the held-out loss of each l1 and fold, of shape (n_l1s, n_folds); NaN if not reached.

    Folds share the threads: each fold's own numbers do not depend on how many there are.
    """
    n_at_once = min(settings.n_threads, len(folds))
    inner = replace(settings, n_threads=max(1, settings.n_threads // n_at_once))

    def score(fold: Fold) -> np.ndarray:
        scores = np.full(len(l1s), np.nan)
        train, test = targets.take(fold[0]), targets.take(fold[1])
        for i, found in enumerate(walk_path(train, penalty, l1s, inner, progress)):
            if progress.stop_requested:
                break
            scores[i] = -test.loss_of(test.predictions(found))
        return scores

    return np.array(run_all(score, folds, n_at_once)).T


def choose_l1(scores: np.ndarray, rule: str) -> int:
    """Position of the chosen l1; the first if no l1 has all its scores.

    "1se" takes the largest l1 whose mean score is within one standard error of the best.
    """
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        return 0
    best = int(np.nanargmax(means))
    if rule == "best" or scores.shape[1] < 2 or not np.isfinite(means[best]):
        return best
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])
