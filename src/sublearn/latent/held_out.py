"""The number of latent features, by the error of entries that neither features nor codes saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.latent.codes import best_codes
from sublearn.latent.factorisation import Factorisation
from sublearn.latent.feature_learning import FeatureLearner, LearningSettings

__all__ = ["size_by_held_out_error"]

_N_FOLDS = 3  # of the rows
_N_PARTS = 4  # of the columns: of two, one may hold all of a small feature, and the other no code


def size_by_held_out_error(
    X: np.ndarray, settings: LearningSettings, progress: Progress, most: int
) -> dict[str, np.ndarray]:
    """Errors by number of features.

    The error of a part of the columns, in rows held out, is that of codes from the other columns:
    more features are not better by themselves.
    """
    n_samples, n_columns = X.shape
    rng = np.random.default_rng(settings.seed)
    n_folds = min(_N_FOLDS, n_samples)
    if n_folds < 2 or n_columns < 2:
        raise ValueError(
            "LatentFeatureLasso.n_components must be a number or 'gap' where X has fewer than 2 "
            f"rows or columns, got 'cv' with shape {X.shape}"
        )
    fold_of = rng.permutation(np.arange(n_samples) % n_folds)
    part_of = rng.permutation(np.arange(n_columns) % min(_N_PARTS, n_columns))
    sizes = _sizes(min(most, n_samples))
    errors = np.empty((len(sizes), n_folds))
    for fold in range(n_folds):
        train, test = X[fold_of != fold], X[fold_of == fold]
        for row, model in enumerate(_models(train, settings, progress, sizes)):
            errors[row, fold] = _error_across(model, test, part_of)
    return {"n_components": sizes, "mean_error": errors.mean(axis=1), "errors": errors}


def _sizes(most: int) -> np.ndarray:
    """1, 2, ... 8, then steps of about an eighth."""
    steps = np.unique(np.round(8 * 1.125 ** np.arange(40)).astype(int))
    sizes = np.unique(np.append(np.arange(1, 9), steps))
    return sizes[sizes <= most]


def _models(
    X: np.ndarray, settings: LearningSettings, progress: Progress, sizes: np.ndarray
) -> list[Factorisation]:
    quick = replace(settings, n_exchanges=0, max_iter=min(settings.max_iter, 10))
    learner = FeatureLearner(X, quick, progress)
    offered = learner.span_atoms(None)
    fit = learner.lasso(offered, certify=False)
    known = np.vstack([fit.Z.T, offered])
    Z = learner.factoriser.chosen(known, int(sizes[-1]))
    out = []
    for size in sizes:
        model = learner.factoriser.refined(learner.factoriser.fitted(Z[:, :size]))
        wide = type(learner.factoriser)(X, settings.has_intercept, progress)
        out.append(wide.fitted(model.Z))
    return out


def _error_across(model: Factorisation, X: np.ndarray, part_of: np.ndarray) -> float:
    """Mean square over the parts of the columns, each predicted by codes of all others."""
    total = 0.0
    for part in range(part_of.max() + 1):
        seen = part_of != part
        W, b = model.W[:, seen], model.b[seen]
        Z = best_codes((X[:, seen] - b) @ W.T, W @ W.T)
        left = X[:, ~seen] - model.b[~seen] - Z @ model.W[:, ~seen]
        total += float(np.square(left).sum())
    return total / X.size
