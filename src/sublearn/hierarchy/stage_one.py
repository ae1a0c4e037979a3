"""Stage one of HML: scores of labels between 0 and 1, each label learned apart from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone

from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.label_models import (
    LOSSES,
    LabelModels,
    TaskOptions,
    fit_labels,
    summarise,
)
from sublearn.interruption import aside
from sublearn.io.models import SavedModel
from sublearn.optim.linear_objective import as_columns
from sublearn.trace import Solution
from sublearn.validation.values import show

__all__ = ["StageOne", "hold_out"]


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
    """

    estimator: Any
    l1: float
    options: TaskOptions

    def fit(self, X: Any, Y: sp.csr_matrix, progress: Progress) -> tuple[Any, Solution]:
        """`LabelModels` or the fitted clone, and how well the models were solved."""
        if self.estimator is None:
            return fit_labels(X, Y.tocsc(), self.l1, self.options, progress)
        rows = X.tocsr() if sp.issparse(X) else X
        whole = Y.astype(np.int64)
        labels = whole if isinstance(self.estimator, SavedModel) else whole.toarray()
        try:
            model = aside(clone(self.estimator).fit, rows, labels, n_operations=np.inf)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                "HierarchicalMultilabelClassifier.estimator must take an indicator matrix, as "
                f"OneVsRestClassifier does for any classifier; {show(self.estimator)} said: {error}"
            ) from error
        return model, summarise([])

    def scores(self, model: Any, X: Any) -> np.ndarray:
        """Scores by what `fit` returned, in the type of the features."""
        if isinstance(model, LabelModels):
            scores = LOSSES[self.options.loss].scores(model.predictions(X))
        elif hasattr(model, "predict_proba"):
            found = model.predict_proba(X)
            is_by_label = isinstance(found, list)  # an array for each label, as forests return them
            scores = _of_ones(found, model.classes_) if is_by_label else np.asarray(found)
        else:
            scores = expit(model.decision_function(X))
        return np.ascontiguousarray(scores.astype(X.dtype, copy=False))

    def held_out_scores(
        self, X: Any, Y: sp.csr_matrix, folds: list[np.ndarray], progress: Progress
    ) -> np.ndarray:
        """Scores of the rows of all folds, each by models of the rows outside its fold."""
        parts = []
        is_kept = np.ones(X.shape[0], dtype=bool)
        for rows in folds:
            is_kept[:] = True
            is_kept[rows] = False
            model, _ = self.fit(as_columns(X[is_kept]), Y[is_kept], progress)
            parts.append(self.scores(model, X[rows]))
        return np.ascontiguousarray(np.concatenate(parts))


def _of_ones(found: list[np.ndarray], classes: list[np.ndarray]) -> np.ndarray:
    """Probabilities of 1, label by label; a label of all rows or of none has one class alone."""
    ones = [
        p[:, own.tolist().index(1)] if 1 in own else np.zeros(len(p))
        for p, own in zip(found, classes, strict=True)
    ]
    return np.column_stack(ones)


def hold_out(n_rows: int, held_out: float, seed: Any) -> list[np.ndarray]:
    """Rows of `held_out` folds, or of one share, in a random order."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if isinstance(held_out, (int, np.integer)):
        return [rows for rows in np.array_split(order, int(held_out)) if len(rows)]
    n_held = round(float(held_out) * n_rows)
    return [order[: min(max(1, n_held), n_rows - 1)]]
