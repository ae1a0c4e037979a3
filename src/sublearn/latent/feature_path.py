"""The convex problem of the Latent Feature Lasso at falling weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sublearn.errors import ParameterError
from sublearn.latent.lasso_problem import LassoFit
from sublearn.validation import Interval, check_argument
from sublearn.validation.values import is_int64, show
from sublearn.validation.weights import as_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LatentFeaturePath", "share_or_values"]

_WHO = "LatentFeatureLasso.fit_path"


@dataclass(frozen=True)
class LatentFeaturePath:
    """What :meth:`sublearn.latent.LatentFeatureLasso.fit_path` found.

    Parameters
    ----------
    l1s : ndarray
        Weights, largest first.
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

    @classmethod
    def of(cls, l1s: np.ndarray, fits: Sequence[LassoFit]) -> LatentFeaturePath:
        """The path of the first weights, as many as were reached."""
        return cls(
            l1s=l1s[: len(fits)],
            n_atoms=np.array([len(fit.c) for fit in fits], dtype=int),
            objectives=np.array([fit.objective for fit in fits]),
            certificates=np.array([fit.certificate for fit in fits]),
            scores=[fit.scores for fit in fits],
            codes=[fit.Z for fit in fits],
        )


def share_or_values(l1s: int | ArrayLike, ratio: float) -> tuple[np.ndarray, bool]:
    """Falling weights, and whether they are shares of the largest useful one."""
    if np.ndim(l1s) == 0:
        if not is_int64(l1s) or l1s <= 0:
            raise ParameterError(
                f"{_WHO}.l1s must be a positive integer or numbers, got {show(l1s)}"
            )
        check_argument(f"{_WHO}.ratio", ratio, Interval(float, 0, 1, "neither"))
        return np.geomspace(1.0, ratio, int(l1s) + 1)[1:], True
    values = as_weights(l1s, f"{_WHO}.l1s")
    if values.ndim != 1 or not len(values) or not values.all():
        raise ParameterError(f"{_WHO}.l1s must be positive numbers, got {show(l1s)}")
    return np.sort(values)[::-1], False
