"""The number of latent features: fewest bits, where gains end, or entries the fit did not see.

The scores of the convex problem alone do not tell. With noise it takes several columns that differ
in a few rows in the place of one feature, and features of few rows have small scores (four shapes
in pictures with noise 0.5: scores 1, .63, .59, .32, .23, where the last two are one shape). After
refinement at each size the gains are 1, .67, .67, .63 and then .09.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.latent.atom_search import signal_rank
from sublearn.latent.codes import best_codes
from sublearn.latent.factorisation import Factorisation, Factoriser
from sublearn.latent.feature_learning import FeatureLearner, LearningSettings

__all__ = ["error_beyond_axes", "fewest_bits", "gains_by_size", "held_out_errors", "largest_fall"]

_BEYOND_RANK = 2  # sizes above the signal's rank, to see that they gain nothing
_FEW_AXES = 8
_FLOOR = 1e-3  # of the first gain: below it all are nothing
_NO_ERROR = 1e-9  # of the whole variation
_PRICE = 2.0  # of a feature's bits, since errors of real data are no independent entries
_N_FOLDS = 3  # of the rows
_N_PARTS = 4  # of the columns: of two, one may hold all of a small feature, and the other no code
_QUICK_STEPS = 10  # of the convex problem in a fold

# --- gains -------------------------------------------------------------------------------------


def gains_by_size(learner: FeatureLearner, known: np.ndarray, most: int) -> np.ndarray:
    """By how much the squared error falls with 1, 2, ... features; last, all that is left.

    Only the axes above noise are looked at, which is cheap and has little noise in it. Their number
    is that of the features, if no feature is a combination of others. The learner must have an
    intercept; `known` are atoms to choose from, in rows, and `most` is the largest size.
    """
    values, vectors = learner.axes
    rank = _n_axes(learner)
    axes = Factoriser(vectors[:, :rank] * values[:rank], True, learner.progress)
    Z = axes.chosen(known, min(rank + _BEYOND_RANK, most))
    models = [axes.refined(axes.fitted(Z[:, :size])) for size in range(Z.shape[1] + 1)]
    _improve_backwards(axes, models)
    errors = np.minimum.accumulate([model.error for model in models])
    return np.append(-np.diff(errors), errors[-1])


def error_beyond_axes(learner: FeatureLearner) -> float:
    """The squared error that `gains_by_size` leaves out: that along the axes of noise."""
    values, _ = learner.axes
    return float(np.square(values[_n_axes(learner) :]).sum())


def _n_axes(learner: FeatureLearner) -> int:
    """How many axes are above noise: all of a few, whose median says nothing of noise."""
    values, _ = learner.axes
    is_few = min(learner.X.shape) <= _FEW_AXES
    return len(values) if is_few else signal_rank(values, learner.X.shape)


def fewest_bits(gains: np.ndarray, beyond: float, shape: tuple[int, int]) -> int:
    r"""Number of features that describe the data in the fewest bits, at least 1 if any gains.

    .. math:: \min_K \tfrac{ND}{2} \log E_K + 2 K (N \log 2 + \tfrac{D}{2} \log N)

    with E_K the squared error that K features leave, N bits for the codes of a feature and, as in
    BIC, half a logarithm of N for each of its D numbers. `gains` are those of `gains_by_size` and
    `beyond` is the error it leaves out. All gains count, where :func:`largest_fall` looks at two
    neighbours: bootstrap samples of real data lead to nearly the same number.
    """
    n_samples, n_columns = shape
    errors = np.cumsum(gains[::-1])[::-1] + beyond  # with 0, 1, ... features
    if len(errors) < 2 or gains[0] <= 0:
        return 0
    sizes = np.arange(len(errors))
    bits = 0.5 * n_samples * n_columns * np.log(np.maximum(errors, _NO_ERROR * errors[0]))
    bits += _PRICE * sizes * (n_samples * np.log(2.0) + 0.5 * n_columns * np.log(n_samples))
    return max(1, int(np.argmin(bits)))


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


# --- held-out entries --------------------------------------------------------------------------


def held_out_errors(
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
            "LatentFeatureLasso.n_components must be a number or 'bic' where X has fewer than 2 "
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
    quick = replace(settings, n_exchanges=0, max_iter=min(settings.max_iter, _QUICK_STEPS))
    learner = FeatureLearner(X, quick, progress)
    narrow, wide = learner.factoriser, Factoriser(X, settings.has_intercept, progress)
    offered = learner.span_atoms(None)
    fit = learner.lasso(offered, certify=False)
    Z = narrow.chosen(np.vstack([fit.Z.T, offered]), int(sizes[-1]))
    refined = (narrow.refined(narrow.fitted(Z[:, :size])) for size in sizes)
    return [wide.fitted(model.Z) for model in refined]


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
