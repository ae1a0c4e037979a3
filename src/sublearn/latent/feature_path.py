"""The convex problem of the Latent Feature Lasso at falling weights, each from the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sublearn.fitting.progress import Progress
from sublearn.latent.boolean_quadratic import as_matrix
from sublearn.latent.feature_learning import FeatureLearner, LearningSettings
from sublearn.latent.lasso_problem import LassoFit
from sublearn.trace import Callback, watch
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Interval,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_arguments,
)

__all__ = ["LatentFeaturePath", "latent_feature_path"]

_RULES: dict[str, Rule] = {
    "n_l1": Positive(int),
    "l1_end": Interval(float, 0, 1, "neither"),
    "l2": Positive(float),
    "fit_intercept": Boolean(),
    "tol": Positive(float),
    "max_iter": Positive(int),
    **RUN_RULES,
}


@dataclass(frozen=True)
class LatentFeaturePath:
    """What :func:`latent_feature_path` found.

    Parameters
    ----------
    l1s : ndarray
        Weights, falling.
    n_atoms : ndarray of int
        Columns with weight at each.
    objectives : ndarray
        Values of the convex problem.
    certificates : ndarray
        Shares by which they may be above the optimum.
    scores : list of ndarray
        Sizes of the features at each weight, largest first.
    codes : list of ndarray of int8
        Columns at each weight, in the order of `scores`.
    """

    l1s: np.ndarray
    n_atoms: np.ndarray
    objectives: np.ndarray
    certificates: np.ndarray
    scores: list[np.ndarray] = field(repr=False)
    codes: list[np.ndarray] = field(repr=False)


def latent_feature_path(
    X: Any,
    *,
    n_l1: int = 8,
    l1_end: float = 0.05,
    l2: float = 1.0,
    fit_intercept: bool = True,
    tol: float = 0.05,
    max_iter: int = 50,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    callback: Callback | None = None,
) -> LatentFeaturePath:
    """Solve the convex problem of :class:`sublearn.latent.LatentFeatureLasso` along l1.

    Weights fall geometrically from just below the least one at which no column has weight to
    `l1_end` of it. Columns, weights and the vectors of the search pass from one to the next.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    n_l1 : int, default=8
        Weights.
    l1_end : float, default=0.05
        The last over the first.
    l2, fit_intercept, tol, max_iter, n_jobs, random_state, verbose, callback
        As of the estimator; `max_iter` is for each weight.

    Returns
    -------
    LatentFeaturePath

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.latent import latent_feature_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, size=(60, 3)) @ rng.normal(size=(3, 8))
    >>> path = latent_feature_path(X, n_l1=4)
    >>> bool((np.diff(path.l1s) < 0).all()), bool((np.diff(path.objectives) < 0).all())
    (True, True)
    """
    check_arguments("latent_feature_path", locals(), _RULES)
    X = as_matrix("latent_feature_path.X", X, accept_sparse="csr")
    X = X.toarray() if sp.issparse(X) else X
    settings = LearningSettings(
        l1=None, l2=float(l2), has_intercept=bool(fit_intercept), tol=float(tol),
        max_iter=int(max_iter), n_exchanges=0, does_refine=False,
        seed=as_seed(random_state) % 2**62, n_threads=as_n_threads(n_jobs),
    )  # fmt: skip
    progress = Progress(n_l1 * int(max_iter), n_done=0)

    def follow() -> tuple[np.ndarray, list[LassoFit]]:
        learner = FeatureLearner(X, settings, progress)
        first = learner.largest_l1 or 1.0  # of data that do not vary every weight does the same
        l1s = first * np.geomspace(1.0, l1_end, n_l1 + 1)[1:]
        return l1s, learner.follow(l1s)

    with threadpool_limits(1, user_api="blas"):
        l1s, fits = watch(
            follow,
            progress,
            n_total=progress.n_total,
            callback=callback,
            verbose=verbose,
            title="latent feature path",
            may_be_left=True,
        )
    return _path(l1s[: len(fits)], fits)


def _path(l1s: np.ndarray, fits: list[LassoFit]) -> LatentFeaturePath:
    return LatentFeaturePath(
        l1s=l1s,
        n_atoms=np.array([len(fit.c) for fit in fits], dtype=int),
        objectives=np.array([fit.objective for fit in fits]),
        certificates=np.array([fit.certificate for fit in fits]),
        scores=[fit.scores for fit in fits],
        codes=[fit.Z for fit in fits],
    )
