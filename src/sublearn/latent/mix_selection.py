"""How many components: the Bayesian information criterion over refined mixtures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sublearn.latent.mix_program import Point

__all__ = ["Selection", "select_size"]

_PATIENCE = 2  # sizes without a better criterion


@dataclass(frozen=True)
class Selection:
    """The mixture that was chosen, and the criterion of each size that was tried."""

    mixture: Any
    criteria: dict[int, float]


def select_size(
    refiner: Any, points: Iterable[Point], sizes: Iterable[int], n_rows: int
) -> Selection:
    """The mixture of least criterion; sizes are tried in turn until it rises twice.

    A size that explains the rows up to rounding ends the search: more components cannot be told
    from it.
    """
    best: Any = None
    criteria: dict[int, float] = {}
    n_worse = 0
    for size in sizes:
        mixture = refiner.best(points, size)
        criteria[size] = criterion(mixture, n_rows)
        if best is None or criteria[size] < criteria[best.size]:
            best, n_worse = mixture, 0
        else:
            n_worse += 1
        if refiner.is_exact(mixture) or n_worse == _PATIENCE or refiner.should_stop():
            break
    return Selection(best, criteria)


def criterion(mixture: Any, n_rows: int) -> float:
    """-2 log-likelihood + (number of weights, shares and variances) log N."""
    n_parameters = mixture.coef.size + 2 * len(mixture.shares) - 1
    n_parameters += getattr(mixture, "outliers", 0.0) > 0
    return float(-2 * mixture.log_likelihood + n_parameters * np.log(n_rows))
