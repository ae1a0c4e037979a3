"""Stage one of HML: scores of labels between 0 and 1, each label learned apart from the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, clone

from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.label_models import (
    LOSSES,
    LabelModels,
    TaskOptions,
    by_rows,
    fit_labels,
    summarise,
)
from sublearn.hierarchy.margins import Line, has_probabilities
from sublearn.hierarchy.score_maps import line_of_margins
from sublearn.interruption import aside
from sublearn.io.models import SavedModel
from sublearn.optim.linear_objective import as_columns
from sublearn.trace import Event, Solution
from sublearn.typing import Matrix
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.model_selection import BaseCrossValidator

__all__ = ["Fold", "FoldsLike", "StageOne", "make_folds"]

#: Training rows and held-out rows.
Fold = tuple[np.ndarray, np.ndarray]
_N_PARTS = 4
_ENOUGH_ROWS = 3000  # weights of groups are few numbers: more held-out rows hardly change them
#: `cv`.
FoldsLike: TypeAlias = "int | str | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]]"


@dataclass(frozen=True, eq=False)
class StageOne:
    """How scores are learned: sparse linear models of labels, or a clone of `estimator`.

    Parameters
    ----------
    estimator : estimator or None
        Takes an indicator matrix, a sparse one if it is of this library.
    l1 : float
        Weight of the l1 penalty of linear models.
    options : TaskOptions
        How these are solved.
    line : Line
        The map from margins to scores, if that is what the estimator has.
    """

    estimator: BaseEstimator | None
    l1: float
    options: TaskOptions
    line: Line = field(default_factory=Line)

    def fit(
        self, X: Matrix, Y: sp.csr_matrix, progress: Progress
    ) -> tuple[LabelModels | BaseEstimator, Solution]:
        """`LabelModels` or the fitted clone, and how well the models were solved."""
        if self.estimator is None:
            return fit_labels(X, Y.tocsc(), self.l1, self.options, progress)
        whole = Y.astype(np.int64)
        labels = whole if isinstance(self.estimator, SavedModel) else whole.toarray()
        model = _following(clone(self.estimator), progress, Y.shape[1])
        try:
            model = aside(model.fit, by_rows(X), labels, n_operations=np.inf)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                "HierarchicalMultilabelClassifier.estimator must take an indicator matrix, as "
                f"OneVsRestClassifier does for any classifier; {show(self.estimator)} said: {error}"
            ) from error
        _forget(model, self.estimator)
        return model, summarise([])

    def scores(self, model: LabelModels | BaseEstimator, X: Matrix) -> np.ndarray:
        """Scores by what `fit` returned, in the type of the features."""
        if isinstance(model, LabelModels):
            scores = LOSSES[self.options.loss].scores(model.predictions(X))
        elif has_probabilities(model):
            found = model.predict_proba(X)
            is_by_label = isinstance(found, list)  # an array for each label, as forests return them
            scores = _of_ones(found, model.classes_) if is_by_label else np.asarray(found)
        else:
            scores = self._from_margins(model.decision_function(X))
        return np.ascontiguousarray(scores.astype(X.dtype, copy=False))

    def _from_margins(self, margins: np.ndarray) -> np.ndarray:
        return np.asarray(expit(self.line.slope * margins + self.line.offset))

    def held_out_scores(
        self, X: Matrix, Y: sp.csr_matrix, folds: list[Fold], progress: Progress
    ) -> tuple[StageOne, np.ndarray, np.ndarray]:
        """Scores of the held-out rows of all folds, by models of their training rows.

        Comes with their true labels, and behind itself with the map from margins to scores that
        these rows ask for.
        """
        truth = Y[np.concatenate([held_out for _, held_out in folds])].toarray()
        parts, are_margins = [], False
        for train, held_out in folds:
            model, _ = self.fit(as_columns(X[train]), Y[train], progress)
            rows = X[held_out]
            if isinstance(model, LabelModels) or has_probabilities(model):
                parts.append(self.scores(model, rows))
            else:
                are_margins = True
                parts.append(np.asarray(model.decision_function(rows)))
        found, learned = np.concatenate(parts), self
        if are_margins:
            learned = replace(self, line=line_of_margins(found, truth))
            found = learned._from_margins(found).astype(X.dtype, copy=False)
        return learned, np.ascontiguousarray(found), truth


def _following(model: BaseEstimator, progress: Progress, n_labels: int) -> BaseEstimator:
    """An estimator of this library that tells `progress` how far it is, and stops when asked to."""
    is_ours = isinstance(model, SavedModel)
    if not is_ours or model.get_params(deep=False).get("callback", model) is not None:
        return model
    before = progress.n_done

    def follow(event: Event) -> bool:
        progress.tell(before + int(n_labels * event.n_done / max(1, event.n_total)))
        return progress.stop_requested

    return model.set_params(callback=follow)


def _forget(model: BaseEstimator, estimator: BaseEstimator) -> None:
    """Take away what `_following` gave: a fitted model is as its user made it."""
    params = estimator.get_params(deep=False)
    if "callback" in params:
        model.set_params(callback=params["callback"])


def _of_ones(found: list[np.ndarray], classes: list[np.ndarray]) -> np.ndarray:
    """Probabilities of 1, label by label; a label of all rows or of none has one class alone."""
    ones = [
        p[:, own.tolist().index(1)] if 1 in own else np.zeros(len(p))
        for p, own in zip(found, classes, strict=True)
    ]
    return np.column_stack(ones)


def make_folds(X: Matrix, Y: sp.csr_matrix, cv: FoldsLike, seed: int) -> list[Fold]:
    """`cv` random parts of the rows, each held out once; or what `cv` makes of the rows.

    "auto" has four parts, of which it holds out as many as have enough rows together.
    """
    every = np.arange(X.shape[0])
    if isinstance(cv, (str, int, np.integer)):
        n_parts = _N_PARTS if isinstance(cv, str) else int(cv)
        parts = np.array_split(np.random.default_rng(seed).permutation(len(every)), n_parts)
        if isinstance(cv, str):
            parts = parts[: max(1, -(-_ENOUGH_ROWS // max(1, len(parts[0]))))]
        return [(np.setdiff1d(every, rows), rows) for rows in parts if len(rows)]
    pairs = cv.split(X, Y) if hasattr(cv, "split") else cv
    folds = [(np.asarray(train), np.asarray(held_out)) for train, held_out in pairs]
    if not folds or not all(len(rows) for fold in folds for rows in fold):
        raise ParameterError(
            "HierarchicalMultilabelClassifier.cv must give folds with rows on both sides, got "
            "empty ones"
        )
    return [(every[train], every[held_out]) for train, held_out in folds]
