"""The number of latent features: by how much each lowers the error, and where that ends.

The scores of the convex problem alone do not tell. With noise it takes several columns that differ
in a few rows in the place of one feature, and features of few rows have small scores (four shapes
in pictures with noise 0.5: scores 1, .63, .59, .32, .23, where the last two are one shape). After
refinement at each size the gains are 1, .67, .67, .63 and then .09.
"""

from __future__ import annotations

import numpy as np

from sublearn.latent.atom_search import signal_rank
from sublearn.latent.factorisation import Factorisation, Factoriser
from sublearn.latent.feature_learning import FeatureLearner

__all__ = ["gains_by_size", "largest_fall"]

_BEYOND_RANK = 2  # sizes above the signal's rank, to see that they gain nothing
_FLOOR = 1e-3  # of the first gain: below it all are nothing


def gains_by_size(learner: FeatureLearner, known: np.ndarray, most: int) -> np.ndarray:
    """By how much the squared error falls with 1, 2, ... features; last, all that is left.

    Only the axes above noise are looked at, which is cheap and has little noise in it. Their number
    is that of the features, if no feature is a combination of others.

    Parameters
    ----------
    learner : FeatureLearner
        Of data with an intercept.
    known : ndarray of shape (n_atoms, n_samples)
        Atoms to choose from.
    most : int
        Largest size.
    """
    values, vectors = learner.axes
    rank = signal_rank(values, learner.X.shape)
    axes = Factoriser(vectors[:, :rank] * values[:rank], True, learner.progress)
    Z = axes.chosen(known, min(rank + _BEYOND_RANK, most))
    models = [axes.refined(axes.fitted(Z[:, :size])) for size in range(Z.shape[1] + 1)]
    _improve_backwards(axes, models)
    errors = np.minimum.accumulate([model.error for model in models])
    return np.append(-np.diff(errors), errors[-1])


def largest_fall(gains: np.ndarray) -> int:
    """Number of gains before the largest ratio between neighbours."""
    if len(gains) < 2 or gains[0] <= 0:
        return 0
    floor = _FLOOR * gains[0]
    ratios = gains[:-1] / np.maximum(gains[1:], floor)
    return int(np.argmax(np.where(gains[:-1] > floor, ratios, 0.0))) + 1


def _improve_backwards(factoriser: Factoriser, models: list[Factorisation]) -> None:
    """Where a greedy choice went wrong, a larger model without its least feature does better."""
    for size in range(len(models) - 1, 1, -1):
        Z = np.delete(models[size].Z, factoriser.least_useful(models[size])[0], axis=1)
        found = factoriser.refined(factoriser.fitted(Z))
        if found.error < models[size - 1].error:
            models[size - 1] = found
